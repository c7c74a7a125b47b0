"""Decode complete records: the learnt columns, and the identifiers, constants and computed columns.

Also the types of these columns, and their text in CSV files.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts
from deniable.data.codec import Codec, format_values, value_dtype
from deniable.errors import InvariantError
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute
from deniable.schema.grid import format_decimals
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import (
    Computed,
    Constant,
    Identifier,
    SchemaColumn,
    has_whole_numbers,
    in_order_of_computation,
)
from deniable.schema.value_map import ValueMap

# Version and variant digits of a UUID (RFC 9562); version 8 is for custom formats.
_UUID_VERSION, _UUID_VARIANTS = "8", "89ab"
# At most this many identifiers are permuted together.
_MAX_PERMUTED = 2**31


def released_columns(columns: Sequence[SchemaColumn]) -> tuple[SchemaColumn, ...]:
    """Return the columns of released records: all but the omitted identifiers."""
    return tuple(
        column
        for column in columns
        if not (isinstance(column, Identifier) and column.release == "omit")
    )


# Bytes of a cell in memory. A text has its first characters, its length and where the rest is.
_TEXT_BYTES, _NUMBER_BYTES = 24, 8


def decode_records(
    codec: Codec,
    codes: Codes,
    rng: Rng | None = None,
    *,
    first_record: int = 1,
    salt: bytes = b"",
) -> pl.DataFrame:
    """Decode complete records: values drawn within bins, constraints kept, all columns present.

    Args:
        codec: The codec of the schema.
        codes: Encoded records; they must satisfy the schema's constraints.
        rng: Draws values within bins; required if a bin holds several values.
        first_record: The number of the first record, from which identifiers are generated.
        salt: Key of the generated UUIDs; at most 64 bytes.
    """
    schema = codec.schema
    positions = codec.draw_positions(codes, rng)
    if schema.constraint_solver and rng is not None:
        positions = schema.constraint_solver.repair(codes, positions, rng)
    frame = codec.values(codes, positions)
    return add_unmodelled_columns(frame, schema, first_record=first_record, salt=salt)


def add_unmodelled_columns(
    frame: pl.DataFrame, schema: Schema, *, first_record: int = 1, salt: bytes = b""
) -> pl.DataFrame:
    """Add identifiers, constants and computed columns, in the order of the schema.

    Args:
        frame: The learnt columns.
        schema: The schema.
        first_record: The number of the first record, from which identifiers are generated.
        salt: Key of the generated UUIDs; at most 64 bytes.
    """
    columns = schema.columns
    names = [column.name for column in released_columns(columns)]
    if frame.columns == names:
        return frame
    running: Counts = np.arange(first_record, first_record + frame.height, dtype=np.int64)
    complete = frame.with_columns(
        _generate_column(column, _own_numbers(column, running, schema), salt)
        for column in columns
        if isinstance(column, Identifier | Constant)
    )
    for computed in in_order_of_computation(columns):
        complete = complete.with_columns(_compute_column(computed, columns))
    return complete.select(names)


def record_dtypes(columns: Sequence[SchemaColumn]) -> dict[str, pl.DataType]:
    """Return the polars type of each column of released records."""
    return {column.name: column_dtype(column, columns) for column in released_columns(columns)}


def record_bytes(columns: Sequence[SchemaColumn]) -> int:
    """Estimate the size of a released record in memory; in a CSV file it is of the same order."""
    dtypes = record_dtypes(columns).values()
    return sum(_TEXT_BYTES if dtype == pl.String else _NUMBER_BYTES for dtype in dtypes)


def column_dtype(column: SchemaColumn, columns: Sequence[SchemaColumn]) -> pl.DataType:
    """Return the polars type of a column of released records."""
    if isinstance(column, Attribute):
        return value_dtype(column)
    if isinstance(column, Constant):
        return value_dtype(column.attribute)
    if isinstance(column, Identifier):
        return pl.Int64() if column.format == "number" else pl.String()
    if isinstance(column.rule, ValueMap):
        return column.rule.dtype
    return pl.Int64() if has_whole_numbers(column, columns) else pl.Float64()


def format_csv_cells(column: SchemaColumn) -> pl.Expr:
    """Format a column for a CSV file; a missing cell is the first text that means missing."""
    cell = pl.col(column.name)
    missing: tuple[str, ...] = ()
    if isinstance(column, Attribute):
        missing = column.missing
        # Integers and texts are left to polars, which is faster.
        is_plain = column.grid is None or column.grid.is_default_format
        is_native = (column.is_whole or value_dtype(column) == pl.String) and not any(missing[:1])
        is_native &= is_plain
        cell = cell if is_native else format_values(column)
    elif isinstance(column, Constant) and not column.is_empty:
        cell = format_values(column.attribute)
    elif isinstance(column, Computed):
        missing = column.missing
        decimals = column.decimals
        cell = format_decimals(cell, decimals) if decimals else cell.cast(pl.String)
    # polars writes null as an empty cell, and the text "" as a quoted one.
    return cell.fill_null(missing[0]) if missing and missing[0] else cell


def _generate_column(column: Identifier | Constant, own: Counts, salt: bytes) -> pl.Series:
    """Generate a column; ``own`` has the number of each record in this column."""
    if isinstance(column, Constant):
        value = None if column.is_empty else column.value
        dtype = value_dtype(column.attribute)
        return pl.Series(column.name, [value], dtype=dtype).new_from_index(0, len(own))
    numbers = pl.Series(column.name, own)
    if column.format == "number":
        return numbers
    if column.format == "uuid":
        return pl.Series(column.name, [_uuid(n, salt) for n in numbers], dtype=pl.String)
    prefix, digits, suffix = column.format_parts
    padded = numbers.cast(pl.String).str.zfill(digits)
    return (
        padded.to_frame()
        .select(pl.lit(prefix) + pl.col(column.name) + pl.lit(suffix))
        .to_series()
        .alias(column.name)
    )


def _own_numbers(column: Identifier | Constant, running: Counts, schema: Schema) -> Counts:
    """Number the records for a column: running numbers, permuted for all but the first identifier.

    If all identifiers of a record were its running number, a customer would be equal to the order,
    and to the branch.
    """
    numbered = [
        each
        for each in released_columns(schema.columns)
        if isinstance(each, Identifier) and each.format != "uuid"
    ]
    if column not in numbered[1:] or not isinstance(column, Identifier):
        return running
    digits = 0 if column.format == "number" else column.format_parts[1]
    size = min(schema.rows_max, 10**digits - 1) if digits else schema.rows_max
    return permute_numbers(running, name=column.name, size=size)


def permute_numbers(numbers: Counts, *, name: str, size: int) -> Counts:
    """Permute the integers 1 to ``size``, the next ``size`` ones, and so on.

    Public: a one-to-one map that depends on the name of the column and on the size alone.

    Args:
        numbers: Positive integers.
        name: The column's name.
        size: How many are permuted together.
    """
    size = min(size, _MAX_PERMUTED)
    bits = max(size - 1, 1).bit_length()
    key = hashlib.blake2b(name.encode(), digest_size=8).digest()
    factors = [int.from_bytes(part, "big") % 2**bits | 1 for part in (key[:4], key[4:])]
    low = _mix((numbers - 1) % size, factors, bits)
    # The map is one-to-one below 2^bits. Repeated until it is below the size, it is there, too.
    while (outside := np.flatnonzero(low >= size)).size:
        low[outside] = _mix(low[outside], factors, bits)
    permuted: Counts = (numbers - 1) // size * size + low + 1
    return permuted


def _mix(numbers: Counts, factors: Sequence[int], bits: int) -> Counts:
    """Map integers below 2^bits one-to-one. Products stay below 2^62."""
    for factor in factors:
        numbers = (numbers * factor + factor // 2) % 2**bits
        numbers = numbers ^ (numbers >> (bits // 2 + 1))
    return numbers


def _uuid(number: int, salt: bytes) -> str:
    """Generate the UUID of a record from its number and the salt, by a keyed hash."""
    digest = hashlib.blake2b(number.to_bytes(8, "big"), digest_size=16, key=salt).hexdigest()
    variant = _UUID_VARIANTS[int(digest[16], 16) % 4]
    return (
        f"{digest[:8]}-{digest[8:12]}-{_UUID_VERSION}{digest[13:16]}-{variant}{digest[17:20]}-"
        f"{digest[20:]}"
    )


def _compute_column(column: Computed, columns: Sequence[SchemaColumn]) -> pl.Expr:
    """Compute a column by its formula or map; null if a cell that it needs is missing."""
    described = {other.name: other for other in columns}
    if isinstance(column.rule, ValueMap):
        source = described[column.rule.source]
        if not isinstance(source, Attribute):
            raise InvariantError(f'"{column.rule.source}" is not a learnt column')
        return column.rule.results(source).alias(column.name)
    value = column.rule.expression(lambda name: _as_number(described[name]))
    value = pl.when(value.is_finite()).then(value)
    if column.decimals is not None:
        value = value.round(column.decimals)
    return value.cast(column_dtype(column, columns), strict=False).alias(column.name)


def _as_number(column: SchemaColumn) -> pl.Expr:
    cell = pl.col(column.name)
    grid = column.grid if isinstance(column, Attribute) else None
    if grid is not None and grid.kind in ("date", "datetime"):
        # In days or seconds, whatever the step of the grid.
        cell = grid.from_typed(cell, grid.dtype) * int(grid.step)
    return cell.cast(pl.Float64)
