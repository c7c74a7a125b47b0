"""Whole records: the learnt columns, and those beside them, in the order of the schema."""

import hashlib
from collections.abc import Sequence

import polars as pl

from deniable.data.amounts import fixed
from deniable.data.attributes import Attribute
from deniable.data.beside import Computed, Constant, Described, Identifier, is_whole
from deniable.data.codec import dtype_of, text_of

# Bits of a UUID that say how it was made: version 8, "by the application's own rule".
_VERSION, _VARIANT = "8", "89ab"


def released(columns: Sequence[Described]) -> tuple[Described, ...]:
    """Return the columns that records are written with."""
    return tuple(
        column
        for column in columns
        if not (isinstance(column, Identifier) and column.release == "omit")
    )


def finish(
    frame: pl.DataFrame, columns: Sequence[Described], *, first_record: int = 1, salt: bytes = b""
) -> pl.DataFrame:
    """Return decoded records with the columns that are not learnt, in the order of the schema.

    Args:
        frame: The learnt columns.
        columns: All that the schema declares.
        first_record: The running number of the first record; identifiers follow from it.
        salt: Identifiers in the form of a UUID follow from it too; at most 64 bytes.
    """
    names = [column.name for column in released(columns)]
    if frame.columns == names:
        return frame
    whole = frame.with_columns(
        _column(column, frame.height, first_record, salt)
        for column in columns
        if isinstance(column, Identifier | Constant)
    )
    for column in columns:
        if isinstance(column, Computed):
            whole = whole.with_columns(_computed(column, columns))
    return whole.select(names)


def dtypes_of(columns: Sequence[Described]) -> dict[str, pl.DataType]:
    """Return the types of finished records, column by column."""
    return {column.name: natural_dtype(column, columns) for column in released(columns)}


def natural_dtype(column: Described, columns: Sequence[Described]) -> pl.DataType:
    """Return the type of a column of finished records."""
    if isinstance(column, Attribute):
        return dtype_of(column)
    if isinstance(column, Constant):
        return dtype_of(column.attribute)
    if isinstance(column, Identifier):
        return pl.Int64() if column.format == "number" else pl.String()
    return pl.Int64() if is_whole(column, columns) else pl.Float64()


def csv_text(column: Described) -> pl.Expr:
    """Return finished cells as a CSV file has them; a missing one as its first text."""
    cell = pl.col(column.name)
    missing: tuple[str, ...] = ()
    if isinstance(column, Attribute):
        missing = column.missing
        # What polars writes by itself is left to it, which is faster.
        plain = (column.is_whole or dtype_of(column) == pl.String) and not any(missing[:1])
        cell = cell if plain else text_of(column)
    elif isinstance(column, Constant) and not column.is_empty:
        cell = text_of(column.attribute)
    elif isinstance(column, Computed):
        missing = column.missing
        cell = cell.cast(pl.String) if not column.decimals else fixed(cell, column.decimals)
    # Null is written as an empty cell without quotes, the text "" as one with quotes.
    return cell.fill_null(missing[0]) if missing and missing[0] else cell


def _column(column: Identifier | Constant, rows: int, first: int, salt: bytes) -> pl.Series:
    if isinstance(column, Constant):
        value = None if column.is_empty else column.value
        dtype = dtype_of(column.attribute)
        return pl.Series(column.name, [value], dtype=dtype).new_from_index(0, rows)
    numbers = pl.int_range(first, first + rows, dtype=pl.Int64, eager=True).alias(column.name)
    if column.format == "number":
        return numbers
    if column.format == "uuid":
        return pl.Series(column.name, [_uuid(n, salt) for n in numbers], dtype=pl.String)
    before, digits, after = column.parts
    padded = numbers.cast(pl.String).str.zfill(digits)
    return (
        padded.to_frame()
        .select(pl.lit(before) + pl.col(column.name) + pl.lit(after))
        .to_series()
        .alias(column.name)
    )


def _uuid(number: int, salt: bytes) -> str:
    """Return a text in the form of a UUID that stands for a number, and tells nothing else."""
    digest = hashlib.blake2b(number.to_bytes(8, "big"), digest_size=16, key=salt).hexdigest()
    variant = _VARIANT[int(digest[16], 16) % 4]
    return (
        f"{digest[:8]}-{digest[8:12]}-{_VERSION}{digest[13:16]}-{variant}{digest[17:20]}-"
        f"{digest[20:]}"
    )


def _computed(column: Computed, columns: Sequence[Described]) -> pl.Expr:
    """Return the column from the others. Null where a cell that it needs is missing."""
    described = {other.name: other for other in columns}
    value = column.formula.expression(lambda name: _number(described[name]))
    value = pl.when(value.is_finite()).then(value)
    if column.decimals is not None:
        value = value.round(column.decimals)
    return value.cast(natural_dtype(column, columns), strict=False).alias(column.name)


def _number(column: Described) -> pl.Expr:
    cell = pl.col(column.name)
    unit = column.unit if isinstance(column, Attribute) else None
    if unit is not None and unit.kind in ("date", "datetime"):
        # The day or the second, whatever the grid.
        cell = unit.from_typed(cell, unit.dtype) * int(unit.step)
    return cell.cast(pl.Float64)
