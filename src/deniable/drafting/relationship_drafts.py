"""Write relationships into a draft: computed columns, and constraints at the end of the file.

All of them were read off the data, and are marked as unconfirmed. Those that the schema, as it
would be read, does not confirm in every row of the table are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from deniable.data.codec import Codec, position
from deniable.data.complete_records import add_unmodelled_columns, format_csv_cells
from deniable.data.polars_errors import POLARS_ERRORS
from deniable.drafting.column_formulas import ColumnFormula
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.dependencies import Dependency
from deniable.drafting.description import (
    FROM_DATA,
    ColumnDraft,
    DraftField,
    Note,
    TomlScalar,
    TomlValue,
)
from deniable.drafting.empty_regions import Exclusion
from deniable.drafting.relationships import ColumnOrder, Relationship, Relationships
from deniable.drafting.toml_text import comment_lines, commented_line, write_attribute
from deniable.errors import DeniableError
from deniable.randomness import Keyed
from deniable.schema.constraint_solver import ConstraintSolver
from deniable.schema.schema import Schema
from deniable.schema.toml_writer import write_constraint, write_value
from deniable.schema.unmodelled_columns import Computed, SchemaColumn

_KEPT_KEYS = ("missing",)
_CONSTRAINTS_INTRODUCTION = (
    "Constraints, read off the data: no row breaks them. Of each, a comment has the number of rows "
    "that would break it if its columns were independent. Delete those that are no rules, such as "
    "a combination that is merely rare; set confirmed = true for the others."
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
    """Write the constraints, each with the evidence for it as a comment.

    Those on the same columns stand together. The most surprising come first: those that chance
    would have broken in the most rows.
    """
    lines: list[str] = []
    for group in _ranked_groups(related):
        for number, each in enumerate(group, 1):
            names = " and ".join(map(write_value, each.columns))
            place = f"{number} of {len(group)} on {names}. " if len(group) > 1 else ""
            chance = f"Expected by chance {each.expected:,.0f}, found 0."
            lines += _constraint(_as_table(each), f"{place}{chance}")
    return [*comment_lines(_CONSTRAINTS_INTRODUCTION), "", *lines] if lines else []


def constraint_notes(related: Relationships) -> list[Note]:
    """Ask the user to confirm the constraints, and say how many were left out."""
    groups = _ranked_groups(related)
    number = sum(map(len, groups))
    if not number:
        return []
    are = "constraint is" if number == 1 else "constraints are"
    pieces = (
        f" They are on {len(groups):,} sets of columns: several on one set may be pieces of one "
        "relation, such as that of age and year of birth, which a computed column says at once."
        if len(groups) < number
        else ""
    )
    were = "combination was" if related.left_out == 1 else "combinations were"
    more = (
        f" {related.left_out:,} more {were} found and left out, as records take long to draw under "
        "many constraints."
        if related.left_out
        else ""
    )
    return [
        Note(
            f"{number} {are} at the end of the file, the most surprising first: combinations that "
            "no row has, and columns that never exceed others. Records will obey them. Delete "
            f"those that are no rules.{pieces}{more}",
            priority=3,
        )
    ]


def _ranked_groups(related: Relationships) -> list[list[ColumnOrder | Exclusion]]:
    """Group constraints by their columns, and rank groups and members: most surprising first."""
    rules: list[ColumnOrder | Exclusion] = [*related.orders, *related.exclusions]
    groups: dict[frozenset[str], list[ColumnOrder | Exclusion]] = {}
    for each in sorted(rules, key=lambda rule: -rule.expected):
        groups.setdefault(frozenset(each.columns), []).append(each)
    return [*groups.values()]


def _as_table(rule: ColumnOrder | Exclusion) -> dict[str, object]:
    if isinstance(rule, Exclusion):
        return {"forbid": rule.to_toml()}
    return {"less" if rule.is_strict else "at_most": [*rule.columns]}


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


# Relationships that survive


def surviving_relationships(
    related: Relationships, columns: Sequence[ColumnProfile], attributes: Sequence[ColumnDraft]
) -> Relationships:
    """Leave out relationships that do not parse, or that a row of the table breaks.

    Args:
        related: What was found.
        columns: The columns of the table.
        attributes: The description of each column, as it would be learnt.
    """
    by_columns: dict[frozenset[str], list[Relationship]] = {}
    for each in related.all:
        by_columns.setdefault(frozenset(each.columns), []).append(each)
    kept: list[Relationship] = []
    for names, group in by_columns.items():
        described = [each for each in attributes if each.name in names]
        rows = _distinct_rows([each for each in columns if each.name in names])
        kept += keep_accepted(group, partial(_hold, related, described, rows))
    return related.only(kept)


def keep_accepted(
    items: Sequence[Relationship],
    are_accepted: Callable[[Sequence[Relationship]], bool],
    kept: Sequence[Relationship] = (),
) -> list[Relationship]:
    """Keep the items that are accepted together with those before; one test if all are."""
    if not items or are_accepted([*kept, *items]):
        return [*kept, *items]
    if len(items) == 1:
        return [*kept]
    half = len(items) // 2
    return keep_accepted(
        items[half:], are_accepted, keep_accepted(items[:half], are_accepted, kept)
    )


def _hold(
    found: Relationships,
    described: Sequence[ColumnDraft],
    rows: pl.DataFrame,
    some: Sequence[Relationship],
) -> bool:
    """Whether the schema of these columns with some relationships parses, and fits all rows."""
    related = found.only(some)
    head = ["format = 1", ""]
    learnt = map(write_attribute, described)
    drafted = map(write_attribute, add_computed_columns(described, related))
    try:
        plain = Schema.parse("\n".join([*head, *learnt]))
        schema = Schema.parse("\n".join([*head, *drafted, *constraint_lines(related)]))
        return _fits(schema, plain, rows)
    except (DeniableError, *POLARS_ERRORS):
        return False


def _fits(schema: Schema, plain: Schema, rows: pl.DataFrame) -> bool:
    """Whether all rows obey the constraints of a schema and have what it computes.

    Args:
        schema: The schema.
        plain: The same, with every column learnt and without constraints.
        rows: The rows, as the table has them.
    """
    codec = Codec(plain)
    codes = codec.encode(rows)
    binned = [each for each in plain.attributes if each.is_binned]
    cells = rows.select(position(each, rows.schema[each.name]) for each in binned)
    positions = codec.given_positions(codes, cells, Keyed(0).at("values"))
    if schema.constraints:
        solver = ConstraintSolver(plain.attributes, schema.constraints)
        numeric = (j for j, each in enumerate(plain.attributes) if each.is_numeric)
        if not solver.feasible(codes, {j: positions[:, j] for j in numeric}).all():
            return False
    values = codec.values(codes, positions)
    given = {each.name: each for each in plain.columns}
    computed = [each for each in schema.columns if isinstance(each, Computed)]
    complete = add_unmodelled_columns(values.drop(each.name for each in computed), schema)
    return all(_agree(values, given[each.name], complete, each) for each in computed)


def _agree(
    values: pl.DataFrame, learnt: SchemaColumn, complete: pl.DataFrame, computed: Computed
) -> bool:
    """Whether a computed column is the given one; its last decimal may differ by one."""
    one, two = values[learnt.name], complete[computed.name]
    if one.dtype.is_numeric() and two.dtype.is_numeric():
        error = 0.0 if computed.decimals is None else 1.01 * 10.0**-computed.decimals
        far = (one.cast(pl.Float64) - two.cast(pl.Float64)).abs() > error
        return bool((one.is_null() == two.is_null()).all()) and not far.any()
    one, two = (
        frame.select(format_csv_cells(column).alias("cells")).to_series()
        for frame, column in ((values, learnt), (complete, computed))
    )
    return bool(one.eq_missing(two).all())


def _distinct_rows(columns: Sequence[ColumnProfile]) -> pl.DataFrame:
    """List the distinct rows of a few columns, as the table has them."""
    rows = pl.DataFrame({each.name: each.value_indices for each in columns}).unique()
    return pl.DataFrame(
        [each.values.extend_constant(None, 1).gather(rows[each.name]) for each in columns]
    )
