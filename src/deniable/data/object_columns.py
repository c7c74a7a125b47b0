"""pandas columns of Python objects: convert each cell by its own value.

Arrow would infer one type for all cells of a column. One row could then change the others: after
one date, times lose their hours; because of one text, a column of numbers is refused. So objects
of several types become texts, as a CSV file would have them.
"""

import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl

from deniable.data.column_encoder import boolean_numbers
from deniable.data.typed_texts import moment_text, number_text, text_of_bytes
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid

# Kinds of objects, as pandas names them, that Arrow converts cell by cell. Not "date": pandas also
# calls a mixture of dates and times so. Not "decimal": one cell sets the digits of all.
_UNIFORM_KINDS = {"string", "integer", "floating", "boolean", "empty"}

_EPOCH = datetime(1970, 1, 1)
# Stands for an object that has no text, such as a list.
_NO_TEXT = "\0unsupported"


def has_uniform_objects(column: Any, attribute: Attribute | None) -> bool:
    """Whether all cells of a pandas column of objects are missing or of one type.

    Times count as such only for an attribute, which uses whole seconds: the first cell sets the
    time resolution of the whole column.
    """
    kind = import_module("pandas").api.types.infer_dtype(column, skipna=True)
    return kind in _UNIFORM_KINDS or (kind == "datetime" and attribute is not None)


def objects_to_texts(
    name: str, cells: Iterable[Any], attribute: Attribute | None, *, lenient: bool = False
) -> pl.Series:
    """Convert Python objects to the texts that a CSV file would have; null if missing.

    Args:
        name: The name of the column.
        cells: Texts, numbers, booleans, dates and times, in any mixture.
        attribute: The attribute that describes the column; None if its cells have no meaning.
        lenient: Convert any object, as for an attribute with a fallback. Without an attribute, one
            that has no text is null.

    Raises:
        TypeError: A cell is of another type, and the attribute has no fallback for it.

    Privacy:
        Neighbours: add or remove one cell. The others keep their texts, and these have the codes
            of typed cells.
    """
    has_fallback = attribute is not None and attribute.fallback is not None
    convert = _to_any_text if lenient or has_fallback else _to_text
    return pl.Series(name, [convert(cell, attribute) for cell in cells], dtype=pl.String)


def _to_any_text(cell: Any, attribute: Attribute | None) -> str | None:
    """Convert any object; one that has no text becomes a text that no schema lists, or null."""
    try:
        if isinstance(cell, bytes):
            return text_of_bytes(cell)
        if attribute is None and _is_other_name(cell):
            return str(cell)
        text = _to_text(to_real_number(cell), attribute)
        return text if text is None or text.encode() else ""
    except (TypeError, ValueError, ArithmeticError, NotImplementedError):
        return None if attribute is None else _NO_TEXT


def _is_other_name(cell: Any) -> bool:
    """Whether an object is of a type that names units, but that no attribute describes."""
    # By name, as nothing but ``randomness`` may import a module that draws.
    is_uuid = f"{type(cell).__module__}.{type(cell).__name__}" == "uuid.UUID"
    return is_uuid or (isinstance(cell, time | timedelta) and not _is_missing(cell))


def to_real_number(cell: Any) -> Any:
    """Convert complex numbers and long doubles that are real numbers to those of Python.

    One such cell decides the type of a whole column; the other cells must keep their meaning.
    """
    if isinstance(cell, complex | np.complexfloating):
        if np.isnan(cell):
            return None
        if cell.imag:
            return cell
        cell = cell.real
    if isinstance(cell, np.longdouble):
        is_whole = bool(np.isfinite(cell)) and cell == np.rint(cell)
        return int(cell) if is_whole else float(cell)
    return cell


def _to_text(cell: Any, attribute: Attribute | None) -> str | None:
    cell = cell.item() if isinstance(cell, np.generic) and cell.dtype.kind in "biufU" else cell
    if _is_missing(cell):
        return None
    if isinstance(cell, str):
        return cell
    if attribute is not None and attribute.kind == "boolean":
        return _boolean_text(cell, attribute)
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float | Decimal | int):
        # An infinite number names no unit, as in a typed column.
        is_unit = attribute is not None or isinstance(cell, int) or math.isfinite(cell)
        return number_text(cell) if is_unit else None
    if isinstance(cell, date):
        grid = attribute.grid if attribute is not None else None
        return _grid_text(cell, grid) if grid is not None else moment_text(cell)
    raise TypeError


def _is_missing(cell: Any) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | Decimal) and math.isnan(cell)


def _boolean_text(cell: Any, attribute: Attribute) -> str:
    """Write true and false, or the numbers for them, as the attribute's texts."""
    if isinstance(cell, bool):
        return str(attribute.values[cell])
    if isinstance(cell, float | Decimal | int):
        numbers = boolean_numbers(attribute)
        text = number_text(cell)
        return str(attribute.values[numbers.index(int(cell))]) if cell in numbers else text
    if isinstance(cell, date):
        return moment_text(cell)
    raise TypeError


def _grid_text(cell: date, grid: Grid) -> str:
    """Write a date or time in the format of the grid, rounded down to its step."""
    if grid.kind not in ("date", "datetime"):
        return moment_text(cell)
    seconds = 86_400 if grid.kind == "date" else int(grid.step)
    if isinstance(cell, datetime):
        since = cell.replace(tzinfo=None) - _EPOCH - (cell.utcoffset() or timedelta(0))
    else:
        since = timedelta(days=(cell - _EPOCH.date()).days)
    position = np.array([since // timedelta(seconds=seconds)], dtype=np.int64)
    moment = grid.values(position).to_frame("moment")
    return str(moment.select(grid.to_text(pl.col("moment"))).item())
