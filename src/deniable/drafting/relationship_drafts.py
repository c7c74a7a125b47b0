"""Write relationships into a draft: computed columns, and constraints at the end of the file.

All of them were read off the data, and are marked as unconfirmed.
"""

from collections.abc import Sequence
from dataclasses import replace

from deniable.drafting.column_formulas import ColumnFormula
from deniable.drafting.dependencies import Dependency
from deniable.drafting.description import (
    FROM_DATA,
    ColumnDraft,
    DraftField,
    Note,
    TomlScalar,
    TomlValue,
)
from deniable.drafting.relationships import Relationships
from deniable.drafting.toml_text import comment_lines, commented_line
from deniable.schema.toml_writer import write_constraint, write_value

_KEPT_KEYS = ("missing",)
_CONSTRAINTS_INTRODUCTION = (
    "Constraints, read off the data: no row breaks them. Delete those that are no rules, such as a "
    "combination that is merely rare; set confirmed = true for the others."
)


def add_computed_columns(
    attributes: Sequence[ColumnDraft], related: Relationships
) -> tuple[ColumnDraft, ...]:
    """Describe as computed the columns that follow from others."""
    formulas = {formula.column: formula for formula in related.formulas}
    dependencies = {each.target: each for each in related.dependencies}
    drafted = []
    for attribute in attributes:
        if attribute.name in formulas:
            drafted.append(_computed_by_formula(attribute, formulas[attribute.name]))
        elif attribute.name in dependencies:
            drafted.append(_computed_by_map(attribute, dependencies[attribute.name]))
        else:
            drafted.append(_group_values(attribute, related.dependencies))
    return tuple(drafted)


def constraint_lines(related: Relationships) -> list[str]:
    """Write the constraints, each with the evidence for it as a comment."""
    lines: list[str] = []
    for low, high, strict in related.orders:
        key, word = ("less", "less than") if strict else ("at_most", "at most")
        remark = f"{write_value(low)} is {word} {write_value(high)} in every row."
        lines += _constraint({key: [low, high]}, remark)
    for exclusion in related.exclusions:
        remark = (
            f"No row. If the two columns were independent, about {exclusion.expected:,.0f} rows."
        )
        lines += _constraint({"forbid": exclusion.to_toml()}, remark)
    return [*comment_lines(_CONSTRAINTS_INTRODUCTION), "", *lines] if lines else []


def constraint_notes(related: Relationships) -> list[Note]:
    """Ask the user to confirm the constraints."""
    number = len(related.orders) + len(related.exclusions)
    if not number:
        return []
    are = "constraint is" if number == 1 else "constraints are"
    return [
        Note(
            f"{number} {are} at the end of the file: combinations that no row has, and columns "
            "that never exceed others. Records will obey them. Delete those that are no rules.",
            priority=3,
        )
    ]


def _constraint(table: dict[str, object], remark: str) -> list[str]:
    written = write_constraint(table).rstrip("\n").split("\n")
    return [
        written[0],
        *comment_lines(remark),
        *written[1:],
        commented_line("confirmed = false", FROM_DATA),
        "",
    ]


def _computed_by_formula(attribute: ColumnDraft, formula: ColumnFormula) -> ColumnDraft:
    fields = [DraftField("formula", formula.text, "holds in every row")]
    if formula.decimals is not None:
        fields.append(DraftField("decimals", formula.decimals, FROM_DATA))
    note = Note(
        f"it equals {formula.text} in every row, and is computed so: please check", priority=3
    )
    return _as_computed(attribute, fields, note)


def _computed_by_map(attribute: ColumnDraft, found: Dependency) -> ColumnDraft:
    key = "steps" if found.by_steps else "map"
    fields = [
        DraftField("from", found.source, "it follows from this column in every row"),
        DraftField(key, found.pairs, FROM_DATA),
    ]
    decimals = next((each for each in attribute.fields if each.key == "decimals"), None)
    if decimals is not None and decimals.value != 0:
        fields.append(decimals)
    follows = "each follows from the other" if found.both else "the value follows"
    note = Note(
        f"computed from {write_value(found.source)}, since {follows} in every row: please check "
        f"the {key} against the data dictionary. If it is chance, write a type with values instead",
        priority=3,
    )
    return _as_computed(attribute, fields, note)


def _as_computed(attribute: ColumnDraft, fields: list[DraftField], note: Note) -> ColumnDraft:
    kept = [each for each in attribute.fields if each.key in _KEPT_KEYS]
    return ColumnDraft(
        name=attribute.name,
        kind="computed",
        fields=(*fields, *kept),
        notes=(*(each for each in attribute.notes if "mean missing" in each), note),
        origin=attribute.origin,
    )


def _group_values(attribute: ColumnDraft, dependencies: Sequence[Dependency]) -> ColumnDraft:
    """List the values of an unordered column by the group that they belong to.

    The model merges rare neighbours, so a rare value is merged with others of its group.
    """
    if attribute.kind != "categorical":
        return attribute
    for found in dependencies:
        if found.source == attribute.name and not found.both:
            groups: dict[object, int] = {}
            rank = {value: groups.setdefault(group, len(groups)) for value, group in found.pairs}
            fields = tuple(
                replace(each, value=_sort_by(each.value, rank)) if each.key == "values" else each
                for each in attribute.fields
            )
            return replace(attribute, fields=fields)
    return attribute


def _sort_by(values: TomlValue, rank: dict[TomlScalar, int]) -> TomlValue:
    return (
        sorted(values, key=lambda value: rank.get(value, 0)) if isinstance(values, list) else values
    )
