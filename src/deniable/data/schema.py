"""Schema: public knowledge about a table. Read from, and written to, schema.toml."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from deniable.arrays import Codes
from deniable.data.attributes import Attribute
from deniable.data.beside import Described, Identifier, require_formulas
from deniable.data.codec import Codec
from deniable.data.columns import dtypes_of, finish
from deniable.data.constraints import Constraint, parse_constraint
from deniable.data.notation import write_column, write_constraint, write_value
from deniable.data.reading import read_column, require_keys
from deniable.data.rules import Rules
from deniable.errors import OutputError, SchemaError
from deniable.randomness import Rng

FORMAT = 1
ROWS_MAX = 10_000_000

_TOP_KEYS = (
    "format",
    "rows_max",
    "rows_max_confirmed",
    "unit",
    "max_rows_per_unit",
    "draft",
    "attribute",
    "constraint",
)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a schema cost that was drafted with differential privacy.

    Attributes:
        epsilon: ε.
        delta: δ.
        unit: The column whose units that cost is for; None: it is for one row.
    """

    epsilon: float
    delta: float
    unit: str | None = None

    def __post_init__(self) -> None:
        numbers = all(type(number) in (int, float) for number in (self.epsilon, self.delta))
        if not (numbers and 0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise SchemaError("draft has epsilon, above 0, and delta, at least 0 and below 1")


@dataclass(frozen=True)
class Schema:
    """What every column of a table may hold.

    Attributes:
        columns: All of them, in the order in which records are written.
        rows_max: A public guess of the table's size. It steers noise, never the guarantee.
        rows_max_confirmed: Whether that guess is public, not read off the data.
        unit: The column that says whose record it is, where one person has several.
        max_rows_per_unit: How many records of one person count.
        draft: What the schema cost, where it was bought from the data.
        constraints: What cannot occur in one record.
    """

    columns: tuple[Described, ...]
    rows_max: int = ROWS_MAX
    rows_max_confirmed: bool = True
    unit: str | None = None
    max_rows_per_unit: int = 1
    draft: Draft | None = None
    constraints: tuple[Constraint, ...] = ()
    codec: Codec = field(init=False, repr=False, compare=False)
    rules: Rules = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "constraints", tuple(self.constraints))
        object.__setattr__(self, "codec", Codec(self.columns, self.unit))
        object.__setattr__(self, "rules", Rules(self.attributes, self.constraints))
        if type(self.rows_max) is not int or self.rows_max < 1:
            raise SchemaError("rows_max is a whole number, at least 1: a guess of the table's size")
        if type(self.rows_max_confirmed) is not bool:
            raise SchemaError("rows_max_confirmed is true or false")
        require_formulas(self.columns)
        self._require_unit()

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that are learnt; their order is that of the columns of codes."""
        return self.codec.attributes

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of codes."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def dtypes(self) -> dict[str, pl.DataType]:
        """The columns of records and their types, in the order in which they are written."""
        return dtypes_of(self.columns)

    @property
    def drafted(self) -> tuple[str, ...]:
        """The columns whose description nobody has confirmed; and the number of rows."""
        rows = () if self.rows_max_confirmed else ("rows_max",)
        return (*rows, *(column.name for column in self.columns if not column.confirmed))

    def records(
        self, codes: Codes, rng: Rng | None = None, *, first_record: int = 1, salt: bytes = b""
    ) -> pl.DataFrame:
        """Return whole records: values drawn inside bins, constraints kept, all columns there.

        Args:
            codes: Records, encoded; where there are constraints, possible ones.
            rng: Values inside bins are drawn from it; needed where a bin holds several.
            first_record: The running number of the first; identifiers follow from it.
            salt: Identifiers in the form of a UUID follow from it too.
        """
        positions = self.codec.positions(codes, rng)
        if self.rules and rng is not None:
            positions = self.rules.settle(codes, positions, rng)
        return self.finish(self.codec.values(codes, positions), first_record, salt=salt)

    def finish(
        self, frame: pl.DataFrame, first_record: int = 1, *, salt: bytes = b""
    ) -> pl.DataFrame:
        """Return decoded records with the columns that are not learnt; see ``columns.finish``."""
        return finish(frame, self.columns, first_record=first_record, salt=salt)

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """Return the schema in a TOML file.

        Raises:
            SchemaError: There is no such file, or it does not hold a schema.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise SchemaError(
                f"{path}: there is no such file; describe the table's columns there (README.md)"
            ) from None
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
        """Return the schema that a TOML text says.

        Raises:
            SchemaError: It is not TOML, not a schema, or contradicts itself.
        """
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"not TOML: {error}. Correct the text there") from None
        if document.get("format") != FORMAT:
            newer = "; another number is for another version of deniable"
            raise SchemaError(f"its first line must be: format = {FORMAT}{newer}")
        require_keys(document, _TOP_KEYS, place="the schema")
        if "max_rows_per_unit" in document and "unit" not in document:
            raise SchemaError(
                "max_rows_per_unit needs unit: the column that says whose record it is"
            )
        tables = _tables(document, "attribute")
        columns = tuple(read_column(table, i + 1) for i, table in enumerate(tables))
        names = [column.name for column in columns if isinstance(column, Attribute)]
        return cls(
            columns,
            rows_max=document.get("rows_max", ROWS_MAX),
            rows_max_confirmed=document.get("rows_max_confirmed", True),
            unit=document.get("unit"),
            max_rows_per_unit=document.get("max_rows_per_unit", 1),
            draft=_read_draft(document.get("draft")),
            constraints=tuple(
                parse_constraint(table, names) for table in _tables(document, "constraint")
            ),
        )

    def write(self, path: str | Path) -> None:
        """Write the schema to a TOML file.

        Raises:
            OutputError: It cannot be written there.
        """
        try:
            Path(path).write_text(self.text(), encoding="utf-8", newline="\n")
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror}). Make room, or choose a folder that "
                "exists and that you may write to."
            ) from None

    def text(self) -> str:
        """Return the schema as TOML that reads back equal."""
        head = f"format = {FORMAT}\nrows_max = {self.rows_max:_}\n"
        head += "" if self.rows_max_confirmed else "rows_max_confirmed = false\n"
        if self.unit is not None:
            head += f"unit = {write_value(self.unit)}\n"
            head += f"max_rows_per_unit = {self.max_rows_per_unit:_}\n"
        parts = [head]
        if self.draft is not None:
            epsilon, delta = map(write_value, (self.draft.epsilon, self.draft.delta))
            unit = f"unit = {write_value(self.draft.unit)}\n" if self.draft.unit else ""
            parts.append(f"[draft]\nepsilon = {epsilon}\ndelta = {delta}\n{unit}")
        parts += map(write_column, self.columns)
        parts += (write_constraint(constraint.table()) for constraint in self.constraints)
        return "\n".join(parts)

    def _require_unit(self) -> None:
        if type(self.max_rows_per_unit) is not int or self.max_rows_per_unit < 1:
            raise SchemaError("max_rows_per_unit is a whole number, at least 1")
        if self.unit is None:
            if self.max_rows_per_unit != 1:
                raise SchemaError("max_rows_per_unit needs unit: the column that says whose it is")
            return
        named = next((column for column in self.columns if column.name == self.unit), None)
        if not isinstance(named, Attribute | Identifier):
            raise SchemaError(
                f"unit = {write_value(self.unit)}: it names a column of the schema that is an "
                'identifier or is learnt; add an [[attribute]] of type = "identifier" for it'
            )
        if self.draft is not None and self.draft.unit != self.unit:
            raise SchemaError(
                f"unit = {write_value(self.unit)}, but [draft] was bought for "
                f"{write_value(self.draft.unit) if self.draft.unit else 'single rows'}: what it "
                "cost a unit is not known. Draft again with --unit, or describe the columns by hand"
            )
        if isinstance(named, Attribute) and not _tells_apart(named):
            raise SchemaError(
                f'unit = "{self.unit}": two persons could have the same code in this column; make '
                'it of type = "identifier", or list or count every value of it'
            )
        if isinstance(named, Attribute) and named.missing:
            raise SchemaError(
                f'unit = "{self.unit}": this column may be missing, and then nobody knows whose '
                "record it is; remove its missing"
            )


def _tells_apart(attribute: Attribute) -> bool:
    """Return whether different cells of an attribute have different codes, always.

    Rows are bounded by the unit's code. Were two persons pooled, removing one would let rows of
    the other in.
    """
    plain = attribute.kind in ("categorical", "ordered", "integer") and not attribute.is_binned
    return plain and attribute.outside != "clip"


def _tables(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    tables = document.get(key, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise SchemaError(f"{key} is not a list of tables: begin each with [[{key}]]")
    return tables


def _read_draft(table: object) -> Draft | None:
    if table is None:
        return None
    if not (isinstance(table, dict) and set(table) - {"unit"} == {"epsilon", "delta"}):
        raise SchemaError("[draft] has epsilon and delta, for units their unit, and nothing else")
    return Draft(epsilon=table["epsilon"], delta=table["delta"], unit=table.get("unit"))
