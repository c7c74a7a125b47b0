"""Codec: values ↔ codes. Refuses what the schema does not allow, and says all of it at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from deniable.arrays import Codes, Mask
from deniable.data.attributes import Attribute, show_some
from deniable.data.cells import NO_CODE, Column, Fault, Origin, find_faults
from deniable.errors import DataError, InvariantError, SchemaError

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
class Codec:
    """The code of every value of every attribute, and back."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SchemaError("the schema describes no column; add an [[attribute]] for each")
        names = [attribute.name for attribute in self.attributes]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise SchemaError(f"described more than once: {show_some(twice)}; keep one of each")

    def encode(self, frame: pl.LazyFrame | pl.DataFrame, *, place: str = "the table") -> Codes:
        """Return the codes of a table: a row a record, a column an attribute, columns contiguous.

        Args:
            frame: The table; its columns in any order.
            place: What to call it in a message.

        Raises:
            DataError: A column is absent, foreign or of the wrong type, or some cells do not fit.
                Every column at fault is named, with its first row and the number of faults.
        """
        try:
            return encode_cells(self.attributes, frame.lazy(), Source(place=place))
        except POLARS_ERRORS as error:
            cause = type(error).__name__
            raise DataError(
                f"{place} could not be computed (polars: {cause}; its message is not shown, as it "
                "may quote cells). Collect the frame by itself to see it."
            ) from None

    def decode(self, codes: Codes) -> pl.DataFrame:
        """Return the values that ``codes`` stand for; a missing cell is null."""
        if codes.ndim != 2 or codes.shape[1] != len(self.attributes):
            raise InvariantError(f"codes of {len(self.attributes)} columns: one each is needed")
        return pl.DataFrame([_decode(a, codes[:, j]) for j, a in enumerate(self.attributes)])


def encode_cells(attributes: Sequence[Attribute], frame: pl.LazyFrame, source: Source) -> Codes:
    """Return the codes of ``frame``, without the records that an attribute asks to drop.

    Raises:
        DataError: As ``Codec.encode``.
        PolarsError: The frame cannot be computed. Its message may quote a cell: do not pass it on.
    """
    schema = frame.collect_schema()
    require_columns(attributes, schema.names(), place=source.place)
    columns = _columns(attributes, schema, source)
    coded = frame.select(column.code() for column in columns).collect(engine="streaming")
    codes = coded.to_numpy(order="fortran")
    keep = _rows_to_keep(attributes, codes)
    if keep is None:
        faulty = [j for j in range(len(columns)) if (codes[:, j] == NO_CODE).any()]
    else:
        faulty = [j for j in range(len(columns)) if (codes[keep, j] == NO_CODE).any()]
    if faulty:
        raise _error([columns[j] for j in faulty], frame, keep, source)
    return codes if keep is None else np.asfortranarray(codes[keep])


def require_columns(attributes: Sequence[Attribute], names: Sequence[str], *, place: str) -> None:
    """Raise an error unless a table's columns are the attributes, in any order."""
    wanted = [attribute.name for attribute in attributes]
    if not set(wanted) & set(names):
        # The first line of a file without a header is a record: its cells are not quoted.
        raise DataError(
            f"{place} has none of the schema's {len(wanted)} columns. Is its header line missing, "
            "are its cells separated by something else than commas, or is this the schema of "
            "another table?"
        )
    if absent := [name for name in wanted if name not in set(names)]:
        raise DataError(
            f"{place} has no column {show_some(absent, most=MOST_COLUMNS)}. Correct the header, or "
            "remove the attribute from the schema."
        )
    if foreign := [name for name in names if name not in set(wanted)]:
        raise DataError(
            f"the schema does not describe column {show_some(foreign, most=MOST_COLUMNS)} of "
            f"{place}. Add an [[attribute]] for it, or remove the column from the table."
        )


def _columns(attributes: Sequence[Attribute], schema: pl.Schema, source: Source) -> list[Column]:
    """Return the columns to encode; raise one error for all of the wrong type."""
    columns, misfits = [], []
    for attribute in attributes:
        dtype = schema[attribute.name]
        try:
            columns.append(Column(attribute=attribute, dtype=dtype, origin=source.origin))
        except DataError as error:
            misfits.append(str(error))
    if misfits:
        raise DataError(_listed(misfits))
    return columns


def _rows_to_keep(attributes: Sequence[Attribute], codes: Codes) -> Mask | None:
    """Return which rows no attribute asks to drop; None where that is all of them."""
    keep: Mask | None = None
    for j, attribute in enumerate(attributes):
        if attribute.outside == "drop" and (out := codes[:, j] == NO_CODE).any():
            keep = ~out if keep is None else keep & ~out
    return keep


def _error(
    columns: Sequence[Column], frame: pl.LazyFrame, keep: Mask | None, source: Source
) -> DataError:
    """Return the error that lists every fault of ``columns``, in rows that are to be kept."""
    asked = frame.select(column.fault() for column in columns).collect(engine="streaming")
    if keep is not None:
        asked = asked.select(pl.when(pl.Series(keep)).then(pl.all()))
    found: list[Fault] = []
    for column in columns:
        found += find_faults(column.attribute, asked[column.attribute.name])
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


def _decode(attribute: Attribute, codes: Codes) -> pl.Series:
    dtype = pl.Int64 if attribute.is_numeric else pl.String
    missing = [None] if attribute.missing else []
    values = pl.Series(attribute.name, [*attribute.values, *missing], dtype=dtype)
    if len(codes) and int(codes.max()) >= attribute.size:
        raise InvariantError(f'attribute "{attribute.name}": a code stands for no value')
    return values.gather(pl.Series(codes))
