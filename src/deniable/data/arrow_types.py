"""Types of Arrow columns: what polars can import, and the values that a column holds.

polars panics on some types and on texts that are not UTF-8, and Rust prints a panic, with whatever
it quotes, to standard error. So such columns are never given to polars.

pyarrow is imported only for columns of its own.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

# A column or type of pandas or pyarrow, which need not be installed.
Foreign: TypeAlias = Any

# Arrow stores some dates in milliseconds.
_DATE64 = "datetime64[ms]"
# A cell that is no object of Python.
_UNSUPPORTED = object()


def contains_type(arrow_type: Foreign, is_sought: Callable[[Foreign], bool]) -> bool:
    """Whether a type, or a part of it, is of a sought kind."""
    if is_sought(arrow_type):
        return True
    parts = [arrow_type.field(i).type for i in range(arrow_type.num_fields)]
    if import_module("pyarrow").types.is_dictionary(arrow_type):
        parts.append(arrow_type.value_type)
    if hasattr(arrow_type, "storage_type"):
        parts.append(arrow_type.storage_type)
    return any(contains_type(part, is_sought) for part in parts)


def require_importable(column: Foreign) -> None:
    """Check that polars can import an Arrow column.

    Raises:
        NotImplementedError: polars does not support its type, which has a decimal of 256 bits.
        ValueError: The column is not valid: a text is not UTF-8, or an offset is out of bounds. The
            message may quote a cell.
    """
    types = import_module("pyarrow").types
    if contains_type(column.type, types.is_decimal256):
        raise NotImplementedError
    # Numbers and times of any value can be imported; an Arrow date is invalid if it has a time.
    if not types.is_primitive(column.type):
        column.validate(full=True)


def to_object(cell: Foreign) -> object:
    """Convert an Arrow cell to a Python object, also one that is no date or text of Python."""
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return cell.as_buffer().to_pybytes() if hasattr(cell, "as_buffer") else _UNSUPPORTED
    except (OverflowError, ValueError):
        is_date = import_module("pyarrow").types.is_date64(cell.type)
        return np.array(cell.value).astype(_DATE64)[()] if is_date else _UNSUPPORTED


def arrow_column_of(column: Foreign) -> Foreign | None:
    """Return the Arrow column behind a pandas column of an Arrow type; None for other types."""
    return column.array.__arrow_array__() if hasattr(column.dtype, "pyarrow_dtype") else None
