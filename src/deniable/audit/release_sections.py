"""Sections on the attacks on one release: singling out, linkability, inference, and its seeds."""

from collections.abc import Mapping, Sequence

from deniable.audit.audit_report import AuditSection, AuditTable
from deniable.audit.inference_attacks import AttackComparison
from deniable.audit.seed_posterior import SeedPosterior
from deniable.audit.standards import Standard

_KNOWN_NAMES: Mapping[str, Standard] = {
    "singling out": "singling out",
    "linkability": "linkability",
    "attribute inference": "inference",
}


def inference_sections(comparisons: Sequence[AttackComparison]) -> list[AuditSection]:
    """Build a section for each attack, with single columns below attribute inference.

    No limit is stated: (ε, δ) bounds what an attack gains by the presence of one row, and these
    compare different rows. A holdout of another population would exceed any limit.
    """
    sections = []
    named = [each for each in comparisons if not each.is_column]
    columns = [each for each in comparisons if each.is_column]
    for each in named:
        inference = each.name == "attribute inference"
        sections.append(
            AuditSection(
                name=each.name.replace(" ", "_"),
                title=each.name.capitalize(),
                words=(_comparison_finding(each), _COMPARISON_METHODS[each.name]),
                tables=(_comparison_table([each, *columns] if inference else [each]),),
                standards=(_KNOWN_NAMES[each.name],),
                results={
                    **each.document(),
                    **({"columns": [c.document() for c in columns]} if inference else {}),
                },
            )
        )
    return sections


_COMPARISON_METHODS = {
    "singling out": (
        "The attacker picks the combinations of values that are rarest among the released records, "
        "and claims that exactly one row has them. The same claims are made about as many control "
        "rows, which were not in the table."
    ),
    "linkability": (
        "The attacker knows half of a row's columns from one source and half from another, and "
        "links them if both lead to the same released records. The same is tried with control "
        "rows."
    ),
    "attribute inference": (
        "The attacker knows all columns of a row but one, and takes the missing value from the "
        "nearest released record. The same is tried with control rows: what is inferred of them "
        "too is knowledge about everybody, not about a row. The first line is the mean over "
        "columns; single columns are shown for orientation, and one in forty is above zero by "
        "chance."
    ),
}


def _comparison_finding(found: AttackComparison) -> str:
    low, high = (100 * side for side in found.interval)
    numbers = f"{100 * found.difference:+.1f} points [{low:+.1f}, {high:+.1f}]"
    if found.shows_evidence:
        return (
            f"There is evidence of {found.name}: the attack succeeds more often on rows of the "
            f"table than on other rows, by {numbers}."
        )
    return (
        f"No evidence of {found.name}: success on rows of the table less success on other rows is "
        f"{numbers}."
    )


def _comparison_table(comparisons: Sequence[AttackComparison]) -> AuditTable:
    return AuditTable(
        caption="Success on rows of the table and on control rows, with the 95 % interval",
        head=("", "attempts", "table", "control", "difference"),
        rows=[
            (
                each.name,
                f"{each.attempts[0]:,}",
                f"{100 * each.table:.1f} %",
                f"{100 * each.control:.1f} %",
                f"{100 * each.difference:+.1f} [{100 * each.interval[0]:+.1f}, "
                f"{100 * each.interval[1]:+.1f}]",
            )
            for each in comparisons
        ],
    )


def posterior_section(found: SeedPosterior) -> AuditSection:
    """Build the section on the seeds of mode ``tested``: promised, and not promised."""
    median, most_of_them, most = (100 * value for value in found.largest)
    rows = [
        ("largest posterior of a seed, median record", f"{median:.3g} %"),
        ("largest posterior of a seed, 95 % of the records", f"{most_of_them:.3g} %"),
        ("largest posterior of a seed, any record", f"{most:.3g} %"),
        ("seeds that share the largest posterior, at least", f"{found.sharing:,}"),
        ("seeds whose prefix exactly k share", f"{100 * found.at_limit:.3g} %"),
    ]
    if found.proven is not None:
        rows.append(("seeds that this release proves to be present", f"{100 * found.proven:.3g} %"))
    confirmed = []
    if found.with_row is not None and found.without_row is not None:
        rows.append(("k-th rows in the table whose prefix was released", _ratio(found.with_row)))
        rows.append(("k-th rows left out whose prefix was released", _ratio(found.without_row)))
        confirmed = [
            "This was tried, in releases with and without the last row of such prefixes: of "
            f"{found.with_row[1]:,} rows that were in the table {found.with_row[0]:,} were seen in "
            f"this way, of {found.without_row[1]:,} that were not, {found.without_row[0]:,}."
        ]
    return AuditSection(
        name="seeds",
        title="Plausible seeds",
        words=(
            f"What is promised holds: every record has at least {found.sharing:,} equally likely "
            f"seeds (k = {found.k}), and none is likelier than {most:.3g} %.",
            "What is not promised: that the presence of a row stays hidden. If exactly k rows "
            "share a prefix, someone who knows k - 1 of them sees from one released record that "
            "the k-th is in the table. Plausible deniability is no protection against this "
            "attacker; differential privacy is (--mode one-shot).",
            *confirmed,
        ),
        tables=(AuditTable(caption="Seeds of released records", head=("", "value"), rows=rows),),
        standards=("membership", "singling out"),
        within=found.sharing >= found.k,
        results=found.document(),
    )


def _ratio(seen: tuple[int, int]) -> str:
    return f"{seen[0]:,} of {seen[1]:,}"
