"""Number the units of a column, for the limit of a private draft on the rows of each unit."""

from collections.abc import Callable

import polars as pl

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import MISSING_TEXTS, UNSUPPORTED_CELL, strip_blanks
from deniable.drafting.object_texts import (
    ATTOSECONDS,
    text_of_clock,
    text_of_date,
    text_of_duration,
    text_of_time,
    texts_of_objects,
)

# Texts of cells that name no unit.
_NO_UNIT = (*MISSING_TEXTS, "inf", "-inf", UNSUPPORTED_CELL)
# Whole floats of a smaller absolute value are 64-bit integers.
_MAX_EXACT = 2.0**62


def number_units(cells: pl.Series) -> Counts:
    """Number the units of a column, one number for each row; -1 if the cell names no unit.

    Privacy:
        Neighbours: add or remove all rows of one unit, whatever type that gives the column. The
            other rows keep their units: two rows have the same number if and only if they had it
            before, and a row without a unit stays without one.
        Assumes: the other cells keep their values. pandas does not keep integers beyond 2^53 that
            it turns into floats.
    """
    return unit_texts(cells).rank("dense").cast(pl.Int64).fill_null(-1).to_numpy()


def unit_texts(cells: pl.Series) -> pl.Series:
    """Write the unit that each cell names; null if it names none.

    The text is lossless, and the same for every type that can hold the cell: a typed column and
    Python objects give the same. A missing or infinite cell names no unit, and neither does a
    list, a struct or another object that has no text.
    """
    texts = _lossless_texts(cells)
    return texts.set(strip_blanks(texts).is_in(_NO_UNIT), None) if len(texts) else texts


def _lossless_texts(cells: pl.Series) -> pl.Series:
    """Write the cells of a typed column as ``texts_of_objects`` writes Python objects."""
    dtype = cells.dtype
    if dtype in (pl.Object, pl.Binary):
        return texts_of_objects(cells.name, cells.to_list())
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
        return cells.cast(pl.String)
    if dtype.is_numeric():
        return _texts_of_numbers(cells)
    if dtype == pl.Boolean:
        return _replace(cells, pl.Series([False, True]), texts_of_objects("", [False, True]))
    if (write := _writer_of(dtype)) is not None:
        # polars panics on dates that no calendar has, so only the stored numbers are touched.
        stored = cells.to_physical().cast(pl.Int64)
        distinct = stored.unique().drop_nulls()
        texts = pl.Series([write(number) for number in distinct.to_list()], dtype=pl.String)
        return _replace(stored, distinct, texts)
    return pl.Series(cells.name, [None] * len(cells), dtype=pl.String)


def _texts_of_numbers(numbers: pl.Series) -> pl.Series:
    if numbers.dtype.is_float():
        return _texts_of_floats(numbers.cast(pl.Float64).fill_nan(None))
    texts = numbers.cast(pl.String)
    if numbers.dtype.is_integer():
        return texts
    return texts.str.replace(r"\.0*$", "").str.replace(r"(\.\d*[1-9])0+$", "$1")


def _texts_of_floats(numbers: pl.Series) -> pl.Series:
    # Identifiers with a missing one among them are whole floats in pandas: these are written fast.
    is_whole = (numbers.abs() < _MAX_EXACT) & (numbers == numbers.floor())
    whole = numbers.set(~is_whole, None).cast(pl.Int64).cast(pl.String)
    others = numbers.set(is_whole, None)
    distinct = others.unique().drop_nulls()
    texts = texts_of_objects("", distinct.to_list())
    return whole.zip_with(is_whole.fill_null(value=False), _replace(others, distinct, texts))


def _replace(cells: pl.Series, distinct: pl.Series, texts: pl.Series) -> pl.Series:
    if not len(distinct):
        return pl.Series(cells.name, [None] * len(cells), dtype=pl.String)
    return cells.replace_strict(distinct, texts, default=None, return_dtype=pl.String)


def _writer_of(dtype: pl.DataType) -> Callable[[int], str] | None:
    """Return the function that writes the stored numbers of a type; None if it has none."""
    if isinstance(dtype, pl.Date):
        return text_of_date
    if isinstance(dtype, pl.Datetime):
        tick = ATTOSECONDS[dtype.time_unit]
        return lambda number: text_of_time(number * tick)
    if isinstance(dtype, pl.Duration):
        tick = ATTOSECONDS[dtype.time_unit]
        return lambda number: text_of_duration(number * tick)
    if isinstance(dtype, pl.Time):
        return lambda number: text_of_clock(number * ATTOSECONDS["ns"])
    return None
