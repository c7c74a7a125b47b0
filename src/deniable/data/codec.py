"""Codec: values ↔ codes. Refuses what the schema does not allow, and says all of it at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts
from deniable.data.attributes import Attribute, show_some
from deniable.data.beside import Computed, Constant, Described, Identifier
from deniable.data.bin_heaps import Heaps
from deniable.data.bulk import Spool
from deniable.data.cells import Column, Fault, Origin
from deniable.data.checked import Batch, Owners, find_all_faults, in_turn
from deniable.errors import DataError, InvariantError, SchemaError
from deniable.randomness import Rng

# A message that lists more columns than this is not read to its end.
MOST_COLUMNS = 20

# What polars raises of its own. Its messages quote cells: none of them may be passed on.
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


def _count_from_one(rows: Sequence[int]) -> list[int]:
    return [row + 1 for row in rows]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where cells come from, so that a fault can be found there.

    Attributes:
        place: What to call the table in a message.
        origin: Whether cells are typed, or the text of a CSV file.
        unit: What a record is called there: a row, a line.
        number: The numbers, as its reader counts them, of the records at the given rows.
    """

    place: str
    origin: Origin = "typed"
    unit: str = "row"
    number: Callable[[Sequence[int]], Sequence[int]] = _count_from_one


@dataclass(frozen=True)
class Encoded:
    """The records of a table.

    Attributes:
        codes: A row a record, a column an attribute; columns contiguous while they are in memory.
        units: Whose record each is: equal numbers, one unit. None where the schema has no unit.
    """

    codes: Codes = field(repr=False)
    units: Counts | None = field(repr=False)


@dataclass(frozen=True)
class Codec:
    """The code of every value of every attribute, and back.

    Attributes:
        columns: All columns of the table: those that are learnt, and those beside them.
        unit: The column that says whose record it is; it is an attribute or an identifier.
    """

    columns: tuple[Described, ...]
    unit: str | None = None

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SchemaError(
                "the schema describes no column that is learnt; add an [[attribute]] for each"
            )
        asides = [heaps.attribute.name for heaps in self.heaps.values()]
        names = [column.name for column in self.columns] + asides
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise SchemaError(f"described more than once: {show_some(twice)}; keep one of each")

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """What is learnt, as columns of codes have it; how round numbers are, just before them."""
        learnt: list[Attribute] = []
        for column in self.columns:
            if column.name in self.heaps:
                learnt.append(self.heaps[column.name].attribute)
            if isinstance(column, Attribute):
                learnt.append(column)
        return tuple(learnt)

    @cached_property
    def heaps(self) -> dict[str, Heaps]:
        """How round the numbers are, of the columns where that is learnt."""
        attributes = (column for column in self.columns if isinstance(column, Attribute))
        return {column.name: Heaps(column) for column in attributes if column.heaps}

    @cached_property
    def asides(self) -> frozenset[str]:
        """The attributes that are no columns: how round numbers are."""
        return frozenset(heaps.attribute.name for heaps in self.heaps.values())

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The columns that always hold the same."""
        return tuple(column for column in self.columns if isinstance(column, Constant))

    @property
    def owner(self) -> Identifier | None:
        """The identifier that says whose record it is, where it is not an attribute."""
        named = (column for column in self.columns if column.name == self.unit)
        found = next(named, None)
        return found if isinstance(found, Identifier) else None

    @cached_property
    def draws(self) -> bool:
        """Whether some code stands for several values, so that decoding draws one of them."""
        return any(attribute.is_binned for attribute in self.attributes)

    def encode(self, frame: pl.LazyFrame | pl.DataFrame, *, place: str = "the table") -> Codes:
        """Return the codes of a table: a row a record, a column an attribute, columns contiguous.

        Args:
            frame: The table; its columns in any order.
            place: What to call it in a message.

        Raises:
            DataError: A column is absent, foreign or of the wrong type, or some cells do not fit.
                Every column at fault is named, with its first row and the number of faults.
        """
        return self.encode_frame(frame.lazy(), place=place).codes

    def encode_frame(self, frame: pl.LazyFrame, *, place: str) -> Encoded:
        """Return the records of a table; as ``encode``, with whose they are."""
        try:
            return encode_cells(self, frame, Source(place=place))
        except POLARS_ERRORS as error:
            cause = type(error).__name__
            raise DataError(
                f"{place} could not be computed (polars: {cause}; its message is not shown, as it "
                "may quote cells). Collect the frame by itself to see it."
            ) from None

    def decode(self, codes: Codes, rng: Rng | None = None) -> pl.DataFrame:
        """Return the values that ``codes`` stand for; a missing cell is null.

        Where a code stands for several values, one is drawn uniformly, from ``rng``: same codes,
        same ``rng``, same values.
        """
        return self.values(codes, self.positions(codes, rng))

    def positions(self, codes: Codes, rng: Rng | None = None) -> Counts:
        """Return a position on its attribute's grid for each cell, drawn inside its bin.

        For a missing cell it is the code. Of listed kinds, which have no grid, it says nothing.
        """
        self._require(codes)
        if rng is None and self.draws:
            raise InvariantError("codes stand for several values: give rng, to draw one of them")
        places = np.empty(codes.shape, dtype=np.int64, order="F")
        for j, attribute in enumerate(self.attributes):
            if not attribute.is_numeric:
                continue
            column = codes[:, j].astype(np.intp)
            there = None if attribute.missing_code is None else column < attribute.bins
            bins = column if there is None else np.where(there, column, 0)
            drawn = attribute.first_positions.take(bins)
            if attribute.heaps and rng is not None:
                drawn = self.heaps[attribute.name].draw(bins, codes[:, j - 1], rng)
            elif attribute.is_binned and rng is not None:
                widths = attribute.widths.take(bins)
                steps = (rng.random(len(codes)) * widths).astype(np.int64)
                drawn += np.minimum(steps, widths - 1)
            places[:, j] = drawn if there is None else np.where(there, drawn, column)
        return places

    def values(self, codes: Codes, positions: Counts) -> pl.DataFrame:
        """Return the values of codes, and of positions inside their bins."""
        self._require(codes)
        series, texts = [], []
        for j, attribute in enumerate(self.attributes):
            name = attribute.name
            if name in self.asides:
                continue
            if attribute.is_numeric:
                series.append(_amounts(attribute, codes[:, j], positions[:, j]))
            elif name in self._whole_numbers:
                places = codes[:, j].astype(np.intp)
                series.append(pl.Series(name, self._whole_numbers[name].take(places)))
            else:
                series.append(pl.Series(name, codes[:, j]))
                texts.append(pl.lit(self._lists[name]).gather(pl.col(name)).alias(name))
        # All in one go: each that is asked for alone waits for polars' threads.
        return pl.DataFrame(series).with_columns(texts) if texts else pl.DataFrame(series)

    @cached_property
    def _lists(self) -> dict[str, pl.Series]:
        """The value of each code, null for a missing cell, of the listed kinds."""
        lists = {}
        for attribute in self.attributes:
            if not attribute.is_numeric:
                values = [False, True] if attribute.kind == "boolean" else attribute.values
                missing = [None] if attribute.missing else []
                listed = pl.Series(attribute.name, [*values, *missing], dtype=dtype_of(attribute))
                lists[attribute.name] = listed
        return lists

    @cached_property
    def _whole_numbers(self) -> dict[str, Counts]:
        """The same, where every value is a whole number."""
        return {
            name: listed.to_numpy()
            for name, listed in self._lists.items()
            if listed.dtype == pl.Int64 and not listed.null_count()
        }

    def _require(self, codes: Codes) -> None:
        if codes.ndim != 2 or codes.shape[1] != len(self.attributes):
            raise InvariantError(f"codes of {len(self.attributes)} columns: one each is needed")
        for j, attribute in enumerate(self.attributes):
            if len(codes) and int(codes[:, j].max()) >= attribute.size:
                raise InvariantError(f'attribute "{attribute.name}": a code stands for no value')


def dtype_of(attribute: Attribute) -> pl.DataType:
    """Return the type of an attribute's decoded values."""
    if attribute.unit is not None:
        return attribute.unit.dtype
    if attribute.kind == "boolean":
        return pl.Boolean()
    return pl.Int64() if attribute.is_whole else pl.String()


def text_of(attribute: Attribute) -> pl.Expr:
    """Return decoded values as a CSV file has them; a missing cell stays null."""
    cell = pl.col(attribute.name)
    if attribute.unit is not None:
        return attribute.unit.texts(cell).alias(attribute.name)
    if attribute.kind == "boolean":
        no, yes = (pl.lit(str(text)) for text in attribute.values)
        return pl.when(cell).then(yes).when(~cell).then(no).alias(attribute.name)
    return cell.cast(pl.String)


def encode_cells(codec: Codec, frame: pl.LazyFrame, source: Source) -> Encoded:
    """Return the records of ``frame``, without those that a column asks to drop.

    Raises:
        DataError: As ``Codec.encode``.
        PolarsError: The frame cannot be computed. Its message may quote a cell: do not pass it on.
    """
    schema = frame.collect_schema()
    require_columns(codec.columns, schema.names(), place=source.place)
    columns = _columns(codec, schema, source)
    asked = [column.code() for column in columns]
    if codec.owner is not None:
        asked.append(_owner(codec.owner, schema, source))
    spool, owners = Spool(len(codec.attributes)), Owners(_place_of_unit(codec))
    for coded in in_turn(frame, asked):
        batch = Batch.of(coded, columns, codec.owner)
        if batch.is_faulty:
            raise _error(find_all_faults(frame, columns, asked, codec.owner), source)
        spool.add(batch.records(len(codec.attributes)))
        owners.add(batch)
    if owners.first is not None:
        raise _nobodys(codec, owners.first, owners.unknown, source)
    return Encoded(spool.codes(), None if codec.unit is None else owners.labels())


def require_columns(columns: Sequence[Described], names: Sequence[str], *, place: str) -> None:
    """Raise an error unless a table's columns are the declared ones, in any order.

    What is computed need not be there, nor an identifier that is left out of the release.
    """
    declared = [column.name for column in columns]
    if not set(declared) & set(names):
        # The first line of a file without a header is a record: its cells are not quoted.
        raise DataError(
            f"{place} has none of the schema's {len(declared)} columns. Is its header line "
            "missing, are its cells separated by something else than commas, or is this the "
            "schema of another table?"
        )
    wanted = [column.name for column in columns if not _may_be_absent(column)]
    if absent := [name for name in wanted if name not in set(names)]:
        raise DataError(
            f"{place} has no column {show_some(absent, most=MOST_COLUMNS)}. Correct the header, or "
            "remove the attribute from the schema."
        )
    if foreign := [name for name in names if name not in set(declared)]:
        raise DataError(
            f"the schema does not describe column {show_some(foreign, most=MOST_COLUMNS)} of "
            f"{place}. Add an [[attribute]] for it, or remove the column from the table."
        )


def _may_be_absent(column: Described) -> bool:
    is_omitted = isinstance(column, Identifier) and column.release == "omit"
    return is_omitted or isinstance(column, Computed)


def _columns(codec: Codec, schema: pl.Schema, source: Source) -> list[Column]:
    """Return the columns to encode, constants last; raise one error for all of the wrong type."""
    columns, misfits = [], []
    aside = {heaps.attribute.name: heaps for heaps in codec.heaps.values()}
    asked: list[tuple[Attribute, int | None, Heaps | None]] = [
        (aside[a.name].base, None, aside[a.name]) if a.name in aside else (a, None, None)
        for a in codec.attributes
    ]
    asked += [(constant.attribute, constant.code, None) for constant in codec.constants]
    for attribute, only, heaps in asked:
        dtype, origin = schema[attribute.name], source.origin
        try:
            columns.append(
                Column(attribute=attribute, dtype=dtype, origin=origin, only=only, heaps=heaps)
            )
        except DataError as error:
            misfits.append(str(error))
    if misfits:
        raise DataError(_listed(misfits))
    return columns


def _owner(owner: Identifier, schema: pl.Schema, source: Source) -> pl.Expr:
    """Return whose record each is, as the table says it; null where it does not."""
    if owner.name not in schema:
        raise DataError(
            f'{source.place} has no column "{owner.name}", which says whose record it is. Correct '
            "the header, or the unit in the schema."
        )
    cell, dtype = pl.col(owner.name), schema[owner.name]
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        text = cell.cast(pl.String)
        return pl.when(~text.is_in(["", *owner.missing])).then(text).alias(owner.name)
    if dtype.is_float():
        return pl.when(cell.is_finite()).then(cell).alias(owner.name)
    if dtype.is_nested() or dtype == pl.Object:
        raise DataError(
            f'column "{owner.name}" is of type {dtype}, but says whose record it is. Convert it '
            "to text or whole numbers."
        )
    return cell


def _nobodys(codec: Codec, row: int, rows: int, source: Source) -> DataError:
    """Return the error that nobody knows whose some rows are."""
    [number] = source.number([row])
    often = f"{rows:,} {source.unit}s have" if rows > 1 else f"1 {source.unit} has"
    return DataError(
        f'column "{codec.unit}", {source.unit} {number:,} of {source.place}: the cell is missing, '
        f"so that nobody knows whose record it is. {often} this fault. Fill it in, or set "
        'outside = "drop" for this column.'
    )


def _place_of_unit(codec: Codec) -> int | None:
    """Return which attribute says whose record it is; None where it is an identifier or none."""
    names = [attribute.name for attribute in codec.attributes]
    return names.index(codec.unit) if codec.unit in names else None


def _error(found: Sequence[Fault], source: Source) -> DataError:
    """Return the error that lists every fault."""
    numbers = source.number([fault.row for fault in found])
    return DataError(
        _listed(
            fault.describe(where=f"{source.unit} {number:,} of {source.place}", unit=source.unit)
            for fault, number in zip(found, numbers, strict=True)
        )
    )


def _listed(faults: Iterable[str]) -> str:
    """Return one message of all ``faults``: the first few, and how many more there are."""
    lines = list(faults)
    if len(lines) > MOST_COLUMNS:
        lines[MOST_COLUMNS:] = [f"and {len(lines) - MOST_COLUMNS:,} more such faults."]
    return "\n  ".join(lines)


def _amounts(attribute: Attribute, codes: Codes, positions: Counts) -> pl.Series:
    """Return the values at positions of one attribute; null for a missing cell."""
    if attribute.unit is None:
        raise InvariantError(f'attribute "{attribute.name}" has no grid')
    if attribute.missing_code is None:
        return attribute.unit.values(positions).alias(attribute.name)
    there = codes < attribute.bins
    values = attribute.unit.values(np.where(there, positions, attribute.values[0]))
    kept = pl.when(pl.Series(there)).then(pl.col(attribute.name))
    return values.alias(attribute.name).to_frame().select(kept).to_series()
