"""Schema: the columns of a table, their domains, and constraints; read from schema.toml.

A schema is public. It is written by hand, or drafted from the data and then confirmed by a person,
or drafted with differential privacy, at a cost that it states.
"""

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from deniable.errors import ConfigError, OutputError, SchemaError
from deniable.files import parse_toml, require_regular_file
from deniable.html import notebook_summary, table
from deniable.schema.attribute import Attribute, Confirmed, summarize_values
from deniable.schema.constraint_solver import ConstraintSolver
from deniable.schema.constraints import Constraint, parse_constraint
from deniable.schema.draft_cost import DraftCost, parse_draft
from deniable.schema.heaping import Heaping
from deniable.schema.pair_masks import PairMasks, find_pair_masks
from deniable.schema.toml_reader import parse_column, parse_confirmed, require_keys
from deniable.schema.toml_writer import write_column, write_constraint, write_value
from deniable.schema.unmodelled_columns import (
    Computed,
    Identifier,
    SchemaColumn,
    require_formulas,
)

SCHEMA_FORMAT = 1
DEFAULT_ROWS_MAX = 10_000_000


_TOP_LEVEL_KEYS = (
    "format",
    "header",
    "rows_max",
    "rows_max_confirmed",
    "unit",
    "max_rows_per_unit",
    "target",
    "draft",
    "attribute",
    "constraint",
)
_UNIT_NEEDED = "max_rows_per_unit needs unit: the column that identifies the person"


@dataclass(frozen=True)
class Schema:
    """Columns of a table, with their domains and constraints.

    Attributes:
        columns: All columns, in the order of the released table.
        rows_max: Public estimate of the number of rows. It affects the noise, never the guarantee.
        rows_max_confirmed: Whether that estimate is public knowledge, not read off the data; or
            "draft", as in a column.
        unit: The column that identifies the person, if one person may have several rows.
        max_rows_per_unit: The number of rows of one person that are used.
        target: Columns that matter most; their pairs get more of the budget.
        draft: The privacy cost of the schema, if it was drafted with differential privacy.
        constraints: Combinations of values that cannot occur in a record.
        header: Whether CSV files of the table, and of its records, have a header line. Without
            one, their columns are those of the schema, in their order.
        constraint_solver: Enforces ``constraints`` on generated records; None without any.
    """

    columns: tuple[SchemaColumn, ...]
    rows_max: int = DEFAULT_ROWS_MAX
    rows_max_confirmed: Confirmed = True
    unit: str | None = None
    max_rows_per_unit: int = 1
    draft: DraftCost | None = None
    constraints: tuple[Constraint, ...] = ()
    target: tuple[str, ...] = ()
    header: bool = True
    constraint_solver: ConstraintSolver | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "constraints", tuple(self.constraints))
        self._require_columns()
        solver = None
        if self.constraints:
            solver = ConstraintSolver(self.attributes, self.constraints)
        object.__setattr__(self, "constraint_solver", solver)
        if type(self.rows_max) is not int or self.rows_max < 1:
            raise SchemaError(
                "rows_max must be a whole number, at least 1: an estimate of the number of rows"
            )
        if self.rows_max_confirmed != "draft" and type(self.rows_max_confirmed) is not bool:
            raise SchemaError('rows_max_confirmed must be true, false or "draft"')
        if type(self.header) is not bool:
            raise SchemaError("header must be true or false: whether CSV files have a header line")
        if any(isinstance(column, Computed) for column in self.columns):
            require_formulas(self.columns)
        self._require_unit()
        object.__setattr__(self, "target", _checked_target(self.columns, self.target))

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The modelled attributes, one column of codes each; roundness precedes its column."""
        modelled: list[Attribute] = []
        for column in self.columns:
            if column.name in self.heaping:
                modelled.append(self.heaping[column.name].attribute)
            if isinstance(column, Attribute):
                modelled.append(column)
        return tuple(modelled)

    @cached_property
    def heaping(self) -> dict[str, Heaping]:
        """The columns whose roundness is modelled, by name."""
        attributes = (column for column in self.columns if isinstance(column, Attribute))
        return {column.name: Heaping(column) for column in attributes if column.heaps}

    @cached_property
    def roundness_names(self) -> frozenset[str]:
        """The names of the roundness attributes: modelled, but not columns of the table."""
        return frozenset(heaping.attribute.name for heaping in self.heaping.values())

    @cached_property
    def pair_masks(self) -> PairMasks:
        """The combinations of two attributes' codes that the constraints allow."""
        return find_pair_masks(self.attributes, self.constraints) if self.constraints else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the modelled attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each modelled attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def drafted(self) -> tuple[str, ...]:
        """The unconfirmed parts: ``rows_max``, names of columns, and constraints.

        Without ``draft``, whose cost covers them, entries of a private draft are unconfirmed, too.
        """
        lost = () if self.draft is not None else self.drafted_privately
        rows = () if self.rows_max_confirmed else ("rows_max",)
        names = (column.name for column in self.columns if not column.confirmed)
        constraints = (each.title for each in self.constraints if not each.confirmed)
        return (*lost, *rows, *constraints, *names)

    @property
    def drafted_privately(self) -> tuple[str, ...]:
        """The parts that a private draft found: ``rows_max``, and names of columns."""
        rows = ("rows_max",) if self.rows_max_confirmed == "draft" else ()
        return (*rows, *(each.name for each in self.columns if each.confirmed == "draft"))

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """Read a schema from a TOML file.

        Raises:
            SchemaError: The file does not exist, cannot be read, or is not a valid schema.
            ConfigError: ``path`` is not a path.
        """
        if not isinstance(path, str | Path):
            raise ConfigError(
                f"schema is a {type(path).__name__}: give a deniable.Schema, or the path of a "
                "schema.toml"
            )
        path = Path(path)
        absent = "no such file; check the path, or draft one with deniable init TABLE"
        require_regular_file(path, SchemaError, absent=absent)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise SchemaError(
                f"{path}: byte {error.start:,} is not UTF-8; save the file as UTF-8"
            ) from None
        except OSError as error:
            raise SchemaError(f"{path}: cannot be read ({error.strerror})") from None
        try:
            return cls.parse(text)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> "Schema":
        """Parse a schema from TOML text.

        Raises:
            SchemaError: The text is not TOML, not a schema, or contradicts itself.
        """
        try:
            document = parse_toml(text)
        except ValueError as error:
            raise SchemaError(f"invalid TOML: {error}. Correct it there") from None
        if document.get("format") != SCHEMA_FORMAT:
            raise SchemaError(
                f"the first line must be: format = {SCHEMA_FORMAT}; other formats need another "
                "version of deniable"
            )
        require_keys(document, _TOP_LEVEL_KEYS, place="the schema")
        if "max_rows_per_unit" in document and "unit" not in document:
            raise SchemaError(_UNIT_NEEDED)
        tables = _parse_tables(document, "attribute")
        columns = tuple(parse_column(table, i + 1) for i, table in enumerate(tables))
        names = [column.name for column in columns if isinstance(column, Attribute)]
        return cls(
            columns,
            rows_max=document.get("rows_max", DEFAULT_ROWS_MAX),
            rows_max_confirmed=parse_confirmed(document, "the schema", "rows_max_confirmed"),
            unit=document.get("unit"),
            max_rows_per_unit=document.get("max_rows_per_unit", 1),
            draft=parse_draft(document["draft"]) if "draft" in document else None,
            constraints=tuple(
                parse_constraint(table, names) for table in _parse_tables(document, "constraint")
            ),
            target=document.get("target", ()),
            header=document.get("header", True),
        )

    def write(self, path: str | Path) -> None:
        """Write the schema to a TOML file.

        A new file of an unconfirmed plain draft is readable by its owner only: it is as
        confidential as the table.

        Raises:
            OutputError: The file cannot be written.
        """
        mode = 0o600 if self.drafted and self.draft is None else 0o666
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(file, "w", encoding="utf-8", newline="\n") as opened:
                opened.write(self.text())
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror}). Free some disk space, or choose an "
                "existing folder that you may write to."
            ) from None

    def _repr_html_(self) -> str:
        """Show the columns in a notebook."""
        open_entries = set(self.drafted)
        states = {True: "yes", "draft": "by the private draft"}
        rows = [
            [
                column.name,
                column.kind,
                f"{len(column.values):,}" if isinstance(column, Attribute) else "",
                "no" if column.name in open_entries else states.get(column.confirmed, "no"),
            ]
            for column in self.columns
        ]
        shown = table(["column", "type", "values", "confirmed"], rows, left=4)
        return notebook_summary("Schema", {"rows_max": f"{self.rows_max:,}"}, shown)

    def text(self) -> str:
        """Write the schema as TOML text; ``parse`` reads it back as an equal schema."""
        return self._text

    @cached_property
    def _text(self) -> str:
        head = f"format = {SCHEMA_FORMAT}\n"
        head += "" if self.header else "header = false\n"
        head += f"rows_max = {self.rows_max:_}\n"
        if self.rows_max_confirmed is not True:
            head += f"rows_max_confirmed = {write_value(self.rows_max_confirmed)}\n"
        if self.unit is not None:
            head += f"unit = {write_value(self.unit)}\n"
            head += f"max_rows_per_unit = {self.max_rows_per_unit:_}\n"
        head += f"target = {write_value(self.target)}\n" if self.target else ""
        parts = [head]
        if self.draft is not None:
            parts.append("".join(f"{line}\n" for line in self.draft.lines()))
        parts += map(write_column, self.columns)
        parts += (write_constraint(constraint.to_toml()) for constraint in self.constraints)
        return "\n".join(parts)

    def _require_columns(self) -> None:
        if not self.attributes:
            raise SchemaError(
                "the schema describes no column to learn; add an [[attribute]] for each column"
            )
        names = [*(column.name for column in self.columns), *sorted(self.roundness_names)]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise SchemaError(
                f"columns described more than once: {summarize_values(twice)}; keep one of each"
            )

    def _require_unit(self) -> None:
        if type(self.max_rows_per_unit) is not int or self.max_rows_per_unit < 1:
            raise SchemaError("max_rows_per_unit must be a whole number, at least 1")
        if self.unit is None and self.max_rows_per_unit != 1:
            raise SchemaError(_UNIT_NEEDED)
        if self.draft is not None and self.draft.unit != self.unit:
            raise SchemaError(_describe_other_unit(self.unit, self.draft.unit))
        if self.unit is None:
            return
        named = next((column for column in self.columns if column.name == self.unit), None)
        if not isinstance(named, Attribute | Identifier):
            raise SchemaError(
                f"unit = {write_value(self.unit)}: unit must name a column of the schema that is "
                'an identifier or is learnt; add an [[attribute]] of type = "identifier" for it'
            )
        if isinstance(named, Attribute) and not _has_distinct_codes(named):
            raise SchemaError(
                f'unit = "{self.unit}": two people could have the same code in this column; set '
                'type = "identifier", or give every value a code of its own'
            )
        if isinstance(named, Attribute) and named.missing:
            raise SchemaError(
                f'unit = "{self.unit}": a row with a missing cell in this column could not be '
                "assigned to a person; remove its key missing"
            )


def _describe_other_unit(unit: str | None, drafted: str | None) -> str:
    """Explain why a draft for another unit, or for single rows, does not fit a schema.

    The cost per row does not follow from the cost per unit either: one row more may displace
    another of the same unit, so it can change two rows of what the draft has read.
    """
    run = "the schema has no unit" if unit is None else f"unit = {write_value(unit)}"
    cost = "row" if drafted is None else write_value(drafted)
    fix = (
        f"Set unit = {write_value(drafted)} and max_rows_per_unit, or draft again without --unit"
        if drafted is not None
        else "Draft again with --unit, or describe the columns by hand"
    )
    return f"{run}, but the cost in [draft] is per {cost}: its cost here is unknown. {fix}"


def _has_distinct_codes(attribute: Attribute) -> bool:
    """Check that different values of an attribute always have different codes.

    Rows per person are bounded by code. If two people shared a code, removing one would admit
    rows of the other.
    """
    plain = attribute.kind in ("categorical", "ordered", "integer") and not attribute.is_binned
    return plain and attribute.outside != "clip" and attribute.fallback is None


def _parse_tables(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    tables = document.get(key, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise SchemaError(f"{key} must be a list of tables: begin each with [[{key}]]")
    return tables


def find_target_fault(columns: Sequence[SchemaColumn], names: Sequence[str]) -> str:
    """Explain why one of the names is not a target; "" if all of them are learnt columns."""
    by_name = {column.name: column for column in columns}
    for name in names:
        column = by_name.get(name)
        if column is None:
            near = difflib.get_close_matches(name, by_name, n=1)
            hint = f'did you mean "{near[0]}"?' if near else "name a column that is learnt"
            return f'target "{name}": the schema has no such column; {hint}'
        if not isinstance(column, Attribute):
            return (
                f'target "{name}": this column is not learnt (type = "{column.kind}"); name one '
                "that is"
            )
    return ""


def _checked_target(columns: tuple[SchemaColumn, ...], target: object) -> tuple[str, ...]:
    """Check the target columns: names of learnt columns, each once."""
    is_list = isinstance(target, list | tuple) and all(type(name) is str for name in target)
    if not (isinstance(target, list | tuple) and is_list and len(set(target)) == len(target)):
        raise SchemaError(
            'target must be a list of names of columns, each once: target = ["income"]'
        )
    if target and (fault := find_target_fault(columns, target)):
        raise SchemaError(fault)
    return tuple(target)
