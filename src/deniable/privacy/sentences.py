"""What may be said about a release: each mode's sentence, with its slots, here and nowhere else.

guarantee.md, written out. ``manifest.json`` carries them, the command line prints them,
and ``verify`` composes them again from the manifest's numbers.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext

from deniable.privacy.composition import Guarantee

UNIT = "one input row"
NEIGHBOURS = "adding or removing one input row"

_NOT_DP = (
    "This is not differential privacy: somebody who knows the other rows may learn whether a row "
    "is present, and the guarantee does not compose over records."
)


def round_up(value: float) -> float:
    """Return the number with six significant digits that is not below ``value``.

    >>> round_up(0.99603060232), round_up(1e-9), round_up(0.5)
    (0.996031, 1e-09, 0.5)
    """
    if value == 0 or math.isinf(value):
        return value
    with localcontext(prec=6, rounding=ROUND_CEILING):
        return float(+Decimal(repr(value)))


def show(cost: Guarantee) -> str:
    """Return (ε, δ) as sentences print it: rounded up."""
    return f"ε = {round_up(cost.epsilon)!r}, δ = {round_up(cost.delta)!r}"


def one_shot(cost: Guarantee, *, k: int) -> str:
    """Return M1: the artefact and any number of records are differentially private."""
    deniable = (
        f" In addition, every record generated from a copied prefix has at least {k} input rows "
        "that, with that prefix length, would have produced it with exactly the same probability."
    )
    return (
        "The released artefact, and any number of synthetic records generated from it, is "
        f"(ε, δ)-differentially private with respect to {NEIGHBOURS} [{show(cost)}; noise: "
        f"integers, from the operating system's CSPRNG].{deniable if k > 1 else ''} Schema and k "
        "were fixed in advance; the number of records, ω, the attribute order and the prefix "
        "lengths were fixed in advance or computed from the released noisy values."
    )


def seedless(cost: Guarantee) -> str:
    """Return M2: no seeds were used."""
    return (
        "The released artefact, and any number of synthetic records generated from it, is "
        f"(ε, δ)-differentially private with respect to {NEIGHBOURS} [{show(cost)}; noise: "
        "integers, from the operating system's CSPRNG]. No record was used as a seed. The schema "
        "was fixed in advance; the number of records and the attribute order were fixed in "
        "advance or computed from the released noisy values."
    )


def split(fractions: Mapping[str, float]) -> str:
    """Return M3, which follows the sentence of any mode whose rows served one stage each."""
    parts = ", ".join(f"{part} {share:g}" for part, share in fractions.items())
    return (
        " Each input row served at most one stage, chosen by a secret draw of its own with public "
        f"probabilities ({parts}); the total is ε = ln(1 + Σ p_j (e^ε_j - 1)) over the stages."
    )


def randomized(cost: Guarantee, *, records: int, each: Guarantee) -> str:
    """Return M4: the paper's randomized test, repaired, for so many records."""
    those = "This record" if records == 1 else f"These {records} records"
    return (
        f"{those}, and the model behind, are (ε, δ)-differentially "
        f"private with respect to {NEIGHBOURS}, for tables of any size [{show(cost)}; noise: "
        "integers, from the operating system's CSPRNG]. The seeds' share is the optimal "
        f"composition of {records} × ({show(each)}); a candidate that failed its test was "
        "replaced by a record drawn without a seed. More records would cost more."
    )


def tested(cost: Guarantee | None, *, k: int, gamma: float | None, one_omega: bool) -> str:
    """Return M5: plausible deniability, record by record; and the model's cost beside it.

    Args:
        cost: What the model costs; None: it is the user's, and nothing is said about it.
        k: Records that share what a record kept.
        gamma: How far their probabilities may lie apart; None: not at all, ω being known.
        one_omega: Whether every record kept the same attributes.
    """
    if gamma is not None:
        first = (
            f"Each record is ({k}, {gamma:g})-plausibly deniable given the model: at least {k} "
            "input rows would have produced it with probabilities within a factor "
            f"{gamma:g} of each other, its own seed among them."
        )
    elif one_omega:
        first = (
            f"Each record is ({k}, 1)-plausibly deniable given the model: at least {k} input rows "
            "would have produced it with exactly the same probability."
        )
    else:
        first = (
            f"Given the model, at least {k} input rows share the highest posterior probability of "
            "having been the seed of each record."
        )
    if cost is None:
        model = "Nothing is claimed about what the model reveals: it was not learnt here."
    else:
        model = (
            f"The model alone is (ε, δ)-differentially private with respect to {NEIGHBOURS} "
            f"[{show(cost)}; noise: integers, from the operating system's CSPRNG]."
        )
    return f"{first} {_NOT_DP} {model}"


def unit_of(unit: str | None) -> str:
    """Return whom the guarantee protects: a row, or all rows of one unit."""
    return UNIT if unit is None else f'all input rows of one "{unit}"'


def neighbours_of(unit: str | None) -> str:
    """Return which tables are neighbours."""
    return f"adding or removing {unit_of(unit)}"


def about_schema(
    *, unit: str | None, rows: int, k: int | None, draft: Guarantee | None, drafted: Sequence[str]
) -> str:
    """Return what follows any claim, where the schema asks for it.

    Args:
        unit: The column that says whose row it is.
        rows: The most rows of one unit that were used.
        k: Rows that share what a record kept, where something is kept.
        draft: What the schema cost, where it was bought from the table.
        drafted: The columns whose description was read off the table, unconfirmed.
    """
    said = ""
    if unit is not None:
        those = "one row" if rows == 1 else f"{rows} rows"
        said += (
            f' At most {those} of each "{unit}", chosen at random, were used, and the total (ε, δ) '
            f"holds for adding or removing {unit_of(unit)}; other numbers here are of one row."
        )
        if rows > 1 and k is not None:
            said += f' The {k} rows may be of as few as {-(-k // rows)} different "{unit}".'
    if draft is not None:
        said += (
            " The schema was not fixed in advance but drafted from this table, with differential "
            f"privacy: {show(draft)} of the total were spent on it."
        )
    if drafted:
        said += (
            f" Given the schema: {len(drafted)} of its descriptions were read off this table and "
            "nobody confirmed them, so what they tell of it is not covered."
        )
    return said


def nothing_claimed(*, why: str) -> str:
    """Return what is said where there was no noise, or noise that somebody could know."""
    return (
        f"No privacy is claimed: {why}. The release is as confidential as the table it came from."
    )


WITHOUT_NOISE = "the model was learnt without noise (epsilon = inf)"
KNOWN_NOISE = "the noise came from a test source that can be repeated"
