"""Guarantee sentences of a release: one template per mode, filled with the certified numbers.

They state the claims of guarantee.md. ``manifest.json`` contains them, the command line prints
them, and ``verify`` rebuilds them from the manifest's numbers and compares byte for byte.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.privacy.composition import Guarantee

# Above these little is promised: a larger δ must be accepted, and a larger ε is shown in red.
LARGE_DELTA, LARGE_EPSILON = 1e-4, 10.0

UNIT = "one input row"
NEIGHBOURS = "adding or removing one input row"
# Reasons for ``no_claim``.
WITHOUT_NOISE = "the model was learnt without noise (epsilon = inf)"
ROW_DRAWS = "SHAKE-256"
KNOWN_NOISE = "the noise came from a test source that can be repeated"

_MEANINGLESS = re.compile(
    r"No meaningful guarantee.*?, on average [\d,.]+ of (\d[\d,]{0,30}) rows, would satisfy it, too"
)

# A computational claim, if tasks of a cluster drew which rows are used.
_ROW_DRAWS_CLAIM = (
    " Which rows each stage uses was drawn by tasks of a cluster from a secret of 256 bits, "
    f"expanded by {ROW_DRAWS}: where the guarantee needs these draws, it holds against "
    f"adversaries who cannot tell {ROW_DRAWS} from a random function."
)
_NOT_DP = (
    "This is not differential privacy: an adversary who knows the other rows may learn whether a "
    "row is present, and the guarantee does not compose over records."
)


def round_up(value: float) -> float:
    """Round up to six significant digits.

    >>> round_up(0.99603060232), round_up(1e-9), round_up(0.5)
    (0.996031, 1e-09, 0.5)
    """
    if value == 0 or math.isinf(value):
        return value
    with localcontext(prec=6, rounding=ROUND_CEILING):
        return float(+Decimal(repr(value)))


def format_cost(cost: "Guarantee") -> str:
    """Format (ε, δ) for a guarantee sentence, rounded up."""
    return f"ε = {round_up(cost.epsilon)!r}, δ = {round_up(cost.delta)!r}"


def is_meaningless(delta: float, *, rows: int | None) -> bool:
    """Whether a δ allows to publish a row or more of the table as they are, or is large anyway.

    >>> is_meaningless(1e-5, rows=10_000), is_meaningless(1e-4, rows=10_000)
    (False, True)

    Args:
        delta: δ of a run.
        rows: The public number of rows, at least 1; None if there is none.
    """
    return delta > LARGE_DELTA or (rows is not None and delta >= 1 / rows)


def meaningless_claim(
    delta: float, *, rows: int | None, unit: str | None = None, of_model: bool = False
) -> str:
    """Sentence that comes before any claim with a δ that promises nothing; else empty.

    The release that it names is (0, δ)-differentially private, and publishes rows.

    Args:
        delta: The claimed δ.
        rows: The public number of rows; None if there is none.
        unit: Column that identifies the owner of a row.
        of_model: Whether δ is of the model alone, as in mode tested.
    """
    if not is_meaningless(delta, rows=rows):
        return ""
    what = "every input row" if unit is None else f'all input rows of every "{unit}"'
    subject = "guarantee of the model" if of_model else "guarantee"
    average = delta * (rows or 0)
    mean = f"{average:,.1f}".removesuffix(".0") if average >= 0.95 else f"{average:.1g}"
    count = "" if rows is None else f", on average {mean} of {rows:,} rows"
    return (
        f"No meaningful {subject}: publishing {what} unchanged, each with probability "
        f"δ = {round_up(delta)!r}{count}, would satisfy it, too. "
    )


def rows_named(sentence: str) -> int:
    """The number of rows that a ``meaningless_claim`` at the start of a sentence names; else 0.

    >>> rows_named(meaningless_claim(1e-3, rows=12_500)), rows_named("This record")
    (12500, 0)
    """
    found = _MEANINGLESS.match(sentence)
    return int(found[1].replace(",", "")) if found else 0


def caution(cost: "Guarantee", *, rows: int | None, unit: str | None, of_model: bool) -> str:
    """Warn of an ε or a δ that promises little or nothing; empty for usual ones.

    Args:
        cost: The planned or claimed cost.
        rows: The public number of rows; None if there is none.
        unit: Column that identifies the owner of a row.
        of_model: Whether the cost is of the model alone, as in mode tested.
    """
    epsilon = cost.epsilon
    if epsilon == math.inf:
        return "ε = inf: nothing is promised, and the result is as confidential as the table."
    words = meaningless_claim(cost.delta, rows=rows, unit=unit, of_model=of_model)
    if epsilon > LARGE_EPSILON:
        words += (
            f"ε = {epsilon:g} is above {LARGE_EPSILON:g} and promises next to nothing: someone who "
            "knows much can become almost certain whether a row is in the table."
        )
    return words.strip()


def one_shot_claim(cost: "Guarantee", *, k: int | None, private_draft: bool = False) -> str:
    """Claim M1, mode one-shot: the artefact and any number of records are (ε, δ)-DP.

    Without ``k``, no record is generated from a copied prefix. With a private draft,
    ``schema_claim`` describes the schema, which was not fixed in advance.
    """
    fixed = "k was" if private_draft else "Schema and k were"
    return (
        "The released artefact, and any number of synthetic records generated from it, is "
        f"(ε, δ)-differentially private with respect to {NEIGHBOURS} [{format_cost(cost)}; noise: "
        f"integers, from the operating system's CSPRNG].{prefix_claim(k)} {fixed} "
        "fixed in advance; the number of records, ω, the attribute order and the prefix lengths "
        "were fixed in advance or computed from the released noisy values."
    )


def prefix_claim(k: int | None) -> str:
    """Sentence of mode one-shot about the k rows that share a copied prefix; empty for one."""
    if k is None or k == 1:
        return ""
    return (
        f" In addition, every record generated from a copied prefix has at least {k} input rows "
        "that, with that prefix length, would have produced it with exactly the same probability."
    )


def without_prefix_claim(sentence: str, k: int) -> str:
    """Leave the sentence about k rows out of a claim of mode one-shot, and what else names k."""
    short = sentence.replace(prefix_claim(k), "") if prefix_claim(k) else sentence
    short = short.replace(
        " Schema and k were fixed in advance;", " The schema was fixed in advance;"
    )
    return short.replace(" k was fixed in advance; the number", " The number")


def seedless_claim(cost: "Guarantee", *, private_draft: bool = False) -> str:
    """Claim M2, mode seedless: as M1, and no record was used as a seed."""
    fixed = "" if private_draft else "The schema was fixed in advance; the"
    return (
        "The released artefact, and any number of synthetic records generated from it, is "
        f"(ε, δ)-differentially private with respect to {NEIGHBOURS} [{format_cost(cost)}; noise: "
        "integers, from the operating system's CSPRNG]. No record was used as a seed. "
        f"{fixed or 'The'} number of records and the attribute order were fixed in advance or "
        "computed from the released noisy values."
    )


def split_claim(fractions: Mapping[str, float]) -> str:
    """Claim M3, appended to any mode's claim if each row served one stage (a random split)."""
    parts = ", ".join(f"{part} {share:g}" for part, share in fractions.items())
    return (
        " Each input row served at most one stage, chosen by a secret draw of its own with public "
        f"probabilities ({parts}); the total is ε = ln(1 + Σ p_j (e^ε_j - 1)) over the stages."
    )


def randomized_claim(cost: "Guarantee", *, records: int, each: "Guarantee") -> str:
    """Claim M4, mode randomized: N records under the repaired randomized test are (ε, δ)-DP."""
    those = "This record" if records == 1 else f"These {records} records"
    return (
        f"{those}, and the model behind, are (ε, δ)-differentially private with respect to "
        f"{NEIGHBOURS}, for tables of any size [{format_cost(cost)}; noise: "
        "integers, from the operating system's CSPRNG]. The seeds' share is the optimal "
        f"composition of {records} × ({format_cost(each)}); a candidate that failed its test was "
        "replaced by a record drawn without a seed. More records would cost more."
    )


def tested_claim(cost: "Guarantee | None", *, k: int, gamma: float | None, one_omega: bool) -> str:
    """Claim M5, mode tested: plausible deniability of each record, and the cost of the model.

    Args:
        cost: Cost of the model; None for the user's own model, about which nothing is claimed.
        k: Minimum number of plausible seeds.
        gamma: Largest ratio of their probabilities; None if they are equal because ω is known.
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
            f"[{format_cost(cost)}; noise: integers, from the operating system's CSPRNG]."
        )
    return f"{first} {_NOT_DP} {model}"


def protected_unit(unit: str | None) -> str:
    """Name the privacy unit: one row, or all rows with one value of the unit column."""
    return UNIT if unit is None else f'all input rows of one "{unit}"'


def neighbouring_relation(unit: str | None) -> str:
    """Name the neighbouring relation: add or remove one privacy unit."""
    return f"adding or removing {protected_unit(unit)}"


def schema_claim(
    *,
    unit: str | None,
    rows: int,
    k: int | None,
    draft: "Guarantee | None",
    composed_draft: bool = False,
    drafted: Sequence[str],
    row_draws: bool = False,
) -> str:
    """Sentences about the schema, appended to any claim: privacy unit, draft cost, drafted columns.

    Args:
        unit: Column that identifies the owner of a row.
        rows: Maximum number of rows used per unit.
        k: Minimum number of plausible seeds, if records keep attributes of a seed.
        draft: Cost of the schema, if it was drafted from the table with differential privacy.
        composed_draft: Whether the total composes the noise of draft and run; otherwise the cost of
            the draft was added.
        drafted: Columns whose description was read off the table and not confirmed.
        row_draws: Whether tasks of a cluster drew which rows are used.
    """
    sentences = ""
    if unit is not None:
        those = "one row" if rows == 1 else f"{rows} rows"
        sentences += (
            f' At most {those} of each "{unit}", chosen at random, were used, and the total (ε, δ) '
            f"holds for {neighbouring_relation(unit)}; other numbers here are of one row."
        )
        if rows > 1 and k is not None:
            sentences += units_claim(unit, rows=rows, k=k)
    if draft is not None:
        spent = f"{format_cost(draft)} of the total were spent on it."
        if composed_draft:
            spent = f"{format_cost(draft)} alone; the total covers the draft and this run together."
        sentences += (
            " The schema was not fixed in advance but drafted from this table, with differential "
            f"privacy: {spent}"
        )
    if drafted:
        sentences += (
            f" Given the schema: {len(drafted)} of its entries were read off this table and not "
            "confirmed; what they reveal about it is not covered."
        )
    return sentences + (_ROW_DRAWS_CLAIM if row_draws else "")


def units_claim(unit: str, *, rows: int, k: int) -> str:
    """Sentence about how few units the k rows behind a record may have."""
    return f' The {k} rows may be of as few as {-(-k // rows)} different "{unit}".'


def condition_claim() -> str:
    """Sentence of records drawn given a condition or shares, appended to a mode's claim."""
    return (
        " The records were drawn given a condition or shares of values that were fixed in advance "
        "or chosen from released values; ε and δ are those of the artefact."
    )


def given_claim() -> str:
    """Sentence of completed rows, appended to a mode's claim without its sentence about k rows."""
    return (
        " The records were completed from given rows. Given cells are copied as they are and "
        "covered by no promise. The drawn cells are computed from the artefact and the given rows, "
        "so (ε, δ), which are those of the artefact, hold for them if the given rows do not depend "
        "on the input table."
    )


def no_claim(*, why: str) -> str:
    """Statement without any claim: there was no noise, or it was not secret."""
    return (
        f"No privacy is claimed: {why}. The release is as confidential as the table it came from."
    )
