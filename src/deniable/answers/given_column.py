"""Given column: the cells of one column of given rows, as codes, positions and texts to copy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from deniable.data.column_encoder import NO_CODE, CellOrigin, ColumnEncoder, parse_exactly
from deniable.data.complete_records import column_dtype
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Computed, Constant, Identifier, SchemaColumn
from deniable.schema.value_map import ValueMap

# A number counts as one of the grid if it is this near, in steps: floats are not exact decimals.
_MAX_DISTANCE = 1e-6
_MICROSECONDS_PER_SECOND = 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenColumn:
    """One column of given rows.

    Attributes:
        column: The column in the schema.
        dtype: The polars type of the column.
        origin: Whether cells are typed, or text from a CSV file.
        encoder: Encodes the cells; None for identifiers and computed columns.
        needs: The columns that a computed column is computed from.
        released: The type of the released column, for cells that are copied without a code.
    """

    column: SchemaColumn
    dtype: pl.DataType
    origin: CellOrigin
    encoder: ColumnEncoder | None = field(repr=False)
    needs: Mapping[str, pl.DataType | None] = field(repr=False)
    released: pl.DataType

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def filled_name(self) -> str:
        """The name of the expression that marks filled cells."""
        return f"filled {self.name}"

    @property
    def code_name(self) -> str:
        """The name of the expression of codes."""
        return f"code {self.name}"

    @property
    def position_name(self) -> str:
        """The name of the expression of positions."""
        return f"position {self.name}"

    @property
    def copied_name(self) -> str:
        """The name of the expression of copied cells."""
        return f"copied {self.name}"

    @property
    def has_positions(self) -> bool:
        """Whether the cells have positions on a grid."""
        return isinstance(self.column, Attribute) and self.column.is_numeric

    @property
    def is_copied(self) -> bool:
        """Whether cells are copied without a code: texts, identifiers, computed columns."""
        is_text = isinstance(self.column, Attribute) and self.column.kind == "text"
        return is_text or isinstance(self.column, Identifier | Computed)

    def expressions(self) -> list[pl.Expr]:
        """Compute what a block of rows needs of this column."""
        filled = _is_filled(self.name, self.dtype)
        found = [filled.alias(self.filled_name)]
        if self.encoder is not None:
            found.append(self.encoder.code().alias(self.code_name))
        if self.has_positions:
            found.append(self._position().fill_null(0).alias(self.position_name))
        if self.is_copied:
            cell = pl.when(filled).then(pl.col(self.name))
            if isinstance(self.column, Attribute) and self.column.missing:
                cell = pl.when(~pl.col(self.name).cast(pl.String).is_in(self.column.missing)).then(
                    cell
                )
            found.append(cell.cast(self.released, strict=False).alias(self.copied_name))
        return found

    def faults(self) -> list[tuple[str, pl.Expr]]:
        """List what may be wrong with cells: a message, and the expression that marks them.

        A message has the slots ``place`` and ``affected``.
        """
        filled = _is_filled(self.name, self.dtype)
        start = f'column "{_braces(self.name)}", {{place}}: the given cell '
        outside = (
            f"{start}is not a value that the schema describes. {{affected}} this fault. Correct "
            "them, or leave the cells empty to have them drawn."
        )
        if self.encoder is not None:
            wrong = self.encoder.code() == NO_CODE
            if self.has_positions:
                wrong = wrong | self._is_between_grid_points()
            return [(outside, filled & wrong.fill_null(value=False))]
        unreadable = filled & pl.col(self.name).cast(self.released, strict=False).is_null()
        found = [(outside, unreadable)]
        if self.needs:
            names = ", ".join(f'"{_braces(name)}"' for name in self.needs)
            computed = (
                f"{start}belongs to a computed column. {{affected}} it filled without {names}, "
                "from which it is computed. Fill these too, or leave it empty."
            )
            known = [
                pl.lit(value=False) if dtype is None else _is_filled(name, dtype)
                for name, dtype in self.needs.items()
            ]
            found.append((computed, filled & ~pl.all_horizontal(known)))
        return found

    def _position(self) -> pl.Expr:
        encoder, grid = self._grid()
        return grid.positions(parse_exactly(encoder, grid))

    def _is_between_grid_points(self) -> pl.Expr:
        encoder, grid = self._grid()
        if grid.kind == "real":
            exact = parse_exactly(encoder, grid) / float(grid.step)
            return (exact - self._position()).abs() > _MAX_DISTANCE
        if grid.kind == "datetime" and isinstance(self.dtype, pl.Datetime):
            step = int(grid.step) * _MICROSECONDS_PER_SECOND
            return pl.col(self.name).dt.epoch("us") % step != 0
        return pl.lit(value=False)

    def _grid(self) -> tuple[ColumnEncoder, Grid]:
        if self.encoder is None or self.encoder.grid is None:
            raise TypeError(f"{self.name} has no grid")
        return self.encoder, self.encoder.grid


def given_column(
    column: SchemaColumn, dtypes: pl.Schema, origin: CellOrigin, schema: Schema
) -> GivenColumn:
    """Describe one column of given rows.

    Raises:
        DataError: The type of the column does not fit the schema.
    """
    encoder, needs = None, {}
    dtype = dtypes[column.name]
    if isinstance(column, Attribute):
        # Cells must fit: nothing is clipped, dropped or replaced. An empty cell has a code, which
        # is not used.
        missing = column.missing if "" in column.missing else (*column.missing, "")
        own = replace(column, missing=missing, groups=(), outside="error", fallback=None)
        encoder = ColumnEncoder(attribute=own, dtype=dtype, origin=origin)
    elif isinstance(column, Constant):
        own = replace(column.attribute, outside="error")
        encoder = ColumnEncoder(
            attribute=own, dtype=dtype, origin=origin, required_code=column.code
        )
    elif isinstance(column, Computed):
        rule = column.rule
        names = (rule.source,) if isinstance(rule, ValueMap) else rule.names
        needs = {name: dtypes.get(name) for name in names}
    return GivenColumn(
        column=column,
        dtype=dtype,
        origin=origin,
        encoder=encoder,
        needs=needs,
        released=column_dtype(column, schema.columns),
    )


def _is_filled(name: str, dtype: pl.DataType) -> pl.Expr:
    """Mark cells that are neither null nor blank."""
    cell = pl.col(name)
    if dtype.is_float():
        return cell.is_not_null() & cell.is_not_nan()
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return cell.is_not_null() & (cell.cast(pl.String).str.strip_chars(" \t") != "")
    return cell.is_not_null()


def _braces(name: str) -> str:
    """Double braces, so that a name can stand in a template of a message."""
    return name.replace("{", "{{").replace("}", "}}")
