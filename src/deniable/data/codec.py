"""Codec: encode the values of a table as integer codes, and decode codes as values.

Cells that do not match the schema are refused, with one error that lists all of them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts
from deniable.data.batches import (
    AdjustedCells,
    AdjustedCounts,
    EncodedBatch,
    RowOwners,
    find_all_faults,
    iter_batches,
)
from deniable.data.cell_faults import CellFault, count_affected
from deniable.data.column_encoder import CellOrigin, ColumnEncoder
from deniable.data.declared_columns import MAX_ITEMS_IN_MESSAGE, require_columns
from deniable.data.polars_errors import polars_errors_as
from deniable.data.spooled_codes import CodeSpool
from deniable.data.typed_texts import texts_of_bytes
from deniable.data.unit_column import owner_expression, require_exact_owners
from deniable.errors import DataError, InvariantError
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute
from deniable.schema.heaping import Heaping
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Constant, Identifier, SchemaColumn


def _one_based(rows: Sequence[int]) -> list[int]:
    return [row + 1 for row in rows]


@dataclass(frozen=True, kw_only=True)
class CellSource:
    """Where cells come from, for error messages that locate a fault.

    Attributes:
        table_name: The name of the table.
        origin: Whether cells are typed, or text from a CSV file.
        record_noun: The word for a record: "row" or "line".
        record_numbers: Converts row indices to the numbers that a reader of the table would count.
    """

    table_name: str
    origin: CellOrigin = "typed"
    record_noun: str = "row"
    record_numbers: Callable[[Sequence[int]], Sequence[int]] = _one_based


@dataclass(frozen=True)
class EncodedTable:
    """Encoded records of a table.

    Attributes:
        codes: One row per record, one column per attribute; columns contiguous if in memory.
        owners: The unit of each record; None without a unit.
        adjusted: Confidential: how many cells the schema adjusted, by column.
    """

    codes: Codes = field(repr=False)
    owners: RowOwners | None = field(repr=False)
    adjusted: AdjustedCounts = field(repr=False)

    def take_units(self) -> Counts | None:
        """Number the units, and free their names: equal numbers mean the same unit."""
        return None if self.owners is None else self.owners.labels()


@dataclass(frozen=True)
class Codec:
    """Encode values as codes and decode codes as values, according to a schema.

    Attributes:
        schema: The schema.
        marks_moved: Whether a cell whose value the schema has not (clipped, replaced, or ``other``)
            has a code of its own, after all codes of its attribute. For evaluation only.
    """

    schema: Schema
    marks_moved: bool = False

    @property
    def columns(self) -> tuple[SchemaColumn, ...]:
        """All columns of the table, modelled or not."""
        return self.schema.columns

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The modelled attributes, one column of codes each."""
        return self.schema.attributes

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The columns with a single fixed value."""
        return tuple(column for column in self.schema.columns if isinstance(column, Constant))

    @property
    def owner(self) -> Identifier | None:
        """The identifier that names the unit of a record; None if the unit is an attribute."""
        named = (column for column in self.columns if column.name == self.schema.unit)
        unit = next(named, None)
        return unit if isinstance(unit, Identifier) else None

    @cached_property
    def needs_rng(self) -> bool:
        """Whether some code is a bin of several values, so that decoding draws one of them."""
        return any(attribute.is_binned for attribute in self.attributes)

    def encode(self, frame: pl.LazyFrame | pl.DataFrame, *, table_name: str = "the table") -> Codes:
        """Encode a table: one row per record, one column per attribute, columns contiguous.

        Args:
            frame: The table; its columns may be in any order.
            table_name: The name of the table in error messages.

        Raises:
            DataError: A column is absent, unknown or of the wrong type, or some cells are invalid.
                Every invalid column is listed, with its first row and the number of faults.
        """
        return self.encode_frame(frame.lazy(), table_name=table_name).codes

    def encode_frame(self, frame: pl.LazyFrame, *, table_name: str) -> EncodedTable:
        """Encode a table, as ``encode`` does, together with the unit of each record."""
        with polars_errors_as(
            DataError,
            f"{table_name} could not be computed",
            fix="The message is not shown, as it may quote cells. Collect the frame to see it.",
        ):
            return encode_cells(self, frame, CellSource(table_name=table_name))

    def decode(self, codes: Codes, rng: Rng | None = None) -> pl.DataFrame:
        """Decode codes as values; a missing cell is null.

        If a code is a bin of several values, one is drawn uniformly from ``rng``. The same codes
        and ``rng`` give the same values.
        """
        return self.values(codes, self.draw_positions(codes, rng))

    def draw_positions(self, codes: Codes, rng: Rng | None = None) -> Counts:
        """Draw the position of each numeric cell on its attribute's grid, within its bin.

        The position of a missing cell is its code. Columns without a grid are left undefined.
        """
        self._require_valid(codes)
        if rng is None and self.needs_rng:
            raise InvariantError("a code is a bin of several values: pass rng to draw one of them")
        positions = np.empty(codes.shape, dtype=np.int64, order="F")
        for j, attribute in enumerate(self.attributes):
            if not attribute.is_numeric:
                continue
            column = codes[:, j].astype(np.intp)
            present = None if attribute.missing_code is None else column < attribute.bins
            bins = column if present is None else np.where(present, column, 0)
            drawn = attribute.first_positions.take(bins)
            if attribute.heaps and rng is not None:
                drawn = self.schema.heaping[attribute.name].draw(bins, codes[:, j - 1], rng)
            elif attribute.is_binned and rng is not None:
                widths = attribute.widths.take(bins)
                steps = (rng.random(len(codes)) * widths).astype(np.int64)
                drawn += np.minimum(steps, widths - 1)
            positions[:, j] = drawn if present is None else np.where(present, drawn, column)
        return positions

    def given_positions(self, codes: Codes, cells: pl.DataFrame, rng: Rng) -> Counts:
        """Return the position of each numeric cell as the table has it, moved into its bin.

        Args:
            codes: The encoded cells.
            cells: The result of ``position`` for each binned attribute, by its name.
            rng: Draws the position where a cell has none.
        """
        positions = self.draw_positions(codes, rng)
        for j, attribute in enumerate(self.attributes):
            if not attribute.is_binned:
                continue
            given = cells.get_column(attribute.name)
            is_given = given.is_not_null().to_numpy() & (codes[:, j] < attribute.bins)
            bins = np.minimum(codes[:, j], attribute.bins - 1).astype(np.intp)
            low = attribute.first_positions.take(bins)
            high = low + attribute.widths.take(bins) - 1
            inside = np.clip(given.fill_null(0).to_numpy(), low, high)
            positions[:, j] = np.where(is_given, inside, positions[:, j])
        return positions

    def values(self, codes: Codes, positions: Counts) -> pl.DataFrame:
        """Convert codes, and positions within their bins, to values."""
        self._require_valid(codes)
        series, texts = [], []
        for j, attribute in enumerate(self.attributes):
            name = attribute.name
            if name in self.schema.roundness_names:
                continue
            if attribute.is_numeric:
                series.append(_numeric_values(attribute, codes[:, j], positions[:, j]))
            elif isinstance(listed := self._listed_values[name], np.ndarray):
                series.append(pl.Series(name, listed.take(codes[:, j].astype(np.intp))))
            else:
                series.append(pl.Series(name, codes[:, j]))
                texts.append(pl.lit(listed).gather(pl.col(name)).alias(name))
        # All in one call: each call to polars has to wait for its threads.
        return pl.DataFrame(series).with_columns(texts) if texts else pl.DataFrame(series)

    @cached_property
    def _listed_values(self) -> dict[str, pl.Series | Counts]:
        """The value of each code of the attributes without a grid; null for a missing cell.

        An array if all are integers.
        """
        lists: dict[str, pl.Series | Counts] = {}
        for attribute in self.attributes:
            if not attribute.is_numeric:
                values = [False, True] if attribute.kind == "boolean" else attribute.values
                missing = [None] if attribute.missing else []
                listed = pl.Series(
                    attribute.name, [*values, *missing], dtype=value_dtype(attribute)
                )
                is_plain = listed.dtype == pl.Int64 and not missing
                lists[attribute.name] = listed.to_numpy() if is_plain else listed
        return lists

    def _require_valid(self, codes: Codes) -> None:
        if codes.ndim != 2 or codes.shape[1] != len(self.attributes):
            raise InvariantError(
                f"codes must have {len(self.attributes)} columns, one per attribute"
            )
        for j, attribute in enumerate(self.attributes):
            if len(codes) and int(codes[:, j].max()) >= attribute.size:
                raise InvariantError(f'attribute "{attribute.name}": a code is out of range')


def position(attribute: Attribute, dtype: pl.DataType) -> pl.Expr:
    """Parse the position of each cell on its attribute's grid; null if it has none."""
    cell, grid = pl.col(attribute.name), attribute.grid
    if grid is None:
        raise InvariantError(f'attribute "{attribute.name}" has bins, but no grid')
    parsed = grid.from_text(cell) if dtype == pl.String else grid.from_typed(cell, dtype)
    return grid.positions(parsed).cast(pl.Int64).alias(attribute.name)


def value_dtype(attribute: Attribute) -> pl.DataType:
    """Return the polars type of an attribute's decoded values."""
    if attribute.grid is not None:
        return attribute.grid.dtype
    if attribute.kind == "boolean":
        return pl.Boolean()
    return pl.Int64() if attribute.is_whole else pl.String()


def format_values(attribute: Attribute) -> pl.Expr:
    """Format decoded values as in a CSV file; a missing cell stays null."""
    cell = pl.col(attribute.name)
    if attribute.grid is not None:
        return attribute.grid.to_text(cell).alias(attribute.name)
    if attribute.kind == "boolean":
        no, yes = (pl.lit(str(text)) for text in attribute.values)
        return pl.when(cell).then(yes).when(~cell).then(no).alias(attribute.name)
    return cell.cast(pl.String)


def encode_cells(codec: Codec, frame: pl.LazyFrame, source: CellSource) -> EncodedTable:
    """Encode the records of ``frame``, without those that a column drops.

    Raises:
        DataError: See ``Codec.encode``.
        PolarsError: The frame cannot be computed. Its message may quote a cell: do not pass it on.
    """
    names = frame.collect_schema().names()
    require_columns(codec.columns, names, table_name=source.table_name)
    frame = _bytes_as_texts(codec, frame)
    fits = True
    try:
        columns, owner = _plan_columns(codec, frame, source)
    except DataError:
        fits = False
    if not fits:
        # pandas gives a column whose cells are all missing the type float, whatever it describes.
        frame = _empty_columns_as_null(frame)
        columns, owner = _plan_columns(codec, frame, source)
    expressions = [*(column.code() for column in columns), *owner]
    spool, owners = CodeSpool(len(codec.attributes)), RowOwners(_unit_column(codec))
    adjusted = AdjustedCells.of(columns)
    for computed in iter_batches(frame, [*expressions, *adjusted.expressions()]):
        batch = EncodedBatch.of(computed, columns, codec.owner)
        if batch.owners is not None:
            require_exact_owners(batch.owners)
        if batch.has_faults:
            raise _faults_error(find_all_faults(frame, columns, expressions, codec.owner), source)
        if codec.marks_moved:
            batch = replace(batch, codes=adjusted.mark(computed, batch.codes))
        spool.add(batch.records(len(codec.attributes)))
        owners.add(batch)
        adjusted.add(computed, batch.keep)
    if owners.first_unknown is not None:
        raise _missing_owner_error(codec, owners.first_unknown, owners.unknown, source)
    of_units = None if codec.schema.unit is None else owners
    return EncodedTable(spool.codes(), of_units, adjusted.counts)


def _bytes_as_texts(codec: Codec, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Decode columns of bytes where one cell must not change or refuse the others."""
    lenient = {
        attribute.name for attribute in codec.schema.attributes if attribute.fallback is not None
    }
    if codec.owner is not None:
        lenient.add(codec.owner.name)
    held = [name for name, dtype in frame.collect_schema().items() if dtype == pl.Binary]
    return frame.with_columns(texts_of_bytes(name) for name in held if name in lenient)


def _plan_columns(
    codec: Codec, frame: pl.LazyFrame, source: CellSource
) -> tuple[list[ColumnEncoder], list[pl.Expr]]:
    """Build the encoders of the columns, and the expression for the owner, if there is one."""
    schema = frame.collect_schema()
    columns = _column_encoders(codec, schema, source)
    if codec.owner is None:
        return columns, []
    return columns, [owner_expression(codec.owner, schema, table_name=source.table_name)]


def _empty_columns_as_null(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Give the type Null, which fits every attribute, to columns with missing cells only."""
    empty = []
    for name, dtype in frame.collect_schema().items():
        cell = pl.col(name)
        if dtype != pl.Object:
            missing = cell.is_null() | cell.is_nan() if dtype.is_float() else cell.is_null()
            empty.append(missing.all())
    found = frame.select(empty).collect(engine="streaming")
    nulls = [pl.lit(None).alias(name) for name in found.columns if found[name].item()]
    return frame.with_columns(nulls)


def _column_encoders(codec: Codec, schema: pl.Schema, source: CellSource) -> list[ColumnEncoder]:
    """Build the encoders, constants last; raise one error for all columns of the wrong type."""
    roundness = {heaping.attribute.name: heaping for heaping in codec.schema.heaping.values()}
    wanted: list[tuple[Attribute, int | None, Heaping | None]] = [
        (roundness[a.name].column, None, roundness[a.name])
        if a.name in roundness
        else (a, None, None)
        for a in codec.attributes
    ]
    wanted += [(constant.attribute, constant.code, None) for constant in codec.constants]
    encoders, errors = [], []
    for attribute, required_code, heaping in wanted:
        try:
            encoder = ColumnEncoder(
                attribute=attribute,
                dtype=schema[attribute.name],
                origin=source.origin,
                required_code=required_code,
                heaping=heaping,
            )
            encoders.append(encoder)
        except DataError as error:
            errors.append(str(error))
    if errors:
        raise DataError(_join_messages(errors))
    return encoders


def _missing_owner_error(codec: Codec, row: int, rows: int, source: CellSource) -> DataError:
    """Build the error for records without an owner."""
    [number] = source.record_numbers([row])
    noun = source.record_noun
    return DataError(
        f'column "{codec.schema.unit}", {noun} {number:,} of {source.table_name}: the cell is '
        f"missing, so the unit of the record is unknown. {count_affected(rows, noun)} this fault. "
        'Fill it in, or set outside = "drop" for this column.'
    )


def _unit_column(codec: Codec) -> int | None:
    """Return the index of the attribute that is the unit; None if no attribute is."""
    names = [attribute.name for attribute in codec.attributes]
    return names.index(codec.schema.unit) if codec.schema.unit in names else None


def _faults_error(faults: Sequence[CellFault], source: CellSource) -> DataError:
    """Build the error that lists all faults."""
    numbers, noun = source.record_numbers([fault.row for fault in faults]), source.record_noun
    return DataError(
        _join_messages(
            fault.describe(where=f"{noun} {number:,} of {source.table_name}", record_noun=noun)
            for fault, number in zip(faults, numbers, strict=True)
        )
    )


def _join_messages(messages: Iterable[str]) -> str:
    """Join messages into one: the first few, and the number of others."""
    lines = list(messages)
    if (others := len(lines) - MAX_ITEMS_IN_MESSAGE) > 0:
        lines[MAX_ITEMS_IN_MESSAGE:] = [f"and {others:,} more such faults."]
    return "\n  ".join(lines)


def _numeric_values(attribute: Attribute, codes: Codes, positions: Counts) -> pl.Series:
    """Convert the positions of one attribute to values; null for a missing cell."""
    if attribute.grid is None:
        raise InvariantError(f'attribute "{attribute.name}" has no grid')
    if attribute.missing_code is None:
        return attribute.grid.values(positions).alias(attribute.name)
    present = codes < attribute.bins
    values = attribute.grid.values(np.where(present, positions, attribute.values[0]))
    or_null = pl.when(pl.Series(present)).then(pl.col(attribute.name))
    return values.alias(attribute.name).to_frame().select(or_null).to_series()
