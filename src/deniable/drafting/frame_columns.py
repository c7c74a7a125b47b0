"""Columns of pandas frames and Arrow tables as polars columns, for drafts.

pandas and pyarrow are imported only for frames of theirs.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

import polars as pl

from deniable.data.polars_errors import POLARS_ERRORS
from deniable.drafting.object_texts import texts_of_objects
from deniable.errors import DataError

# A frame, column or type of pandas or pyarrow, which need not be installed.
Foreign: TypeAlias = Any

DATAFRAME_LABEL = "the table"

# Errors of pandas and pyarrow on columns that polars cannot import. They may quote cells.
_IMPORT_ERRORS = (*POLARS_ERRORS, TypeError, ValueError, OverflowError, NotImplementedError)


def pandas_columns(source: Foreign, *, private: bool) -> Iterator[pl.Series]:
    """Convert the columns of a pandas frame.

    Args:
        source: The frame.
        private: Convert cells that polars does not support to lossless texts, as
            ``object_texts.texts_of_objects`` does.

    Raises:
        DataError: polars does not support a column, and ``private`` is not set.
    """
    require_distinct([str(label) for label in source.columns])
    for i, label in enumerate(source.columns):
        column, name = source.iloc[:, i], str(label)
        # Categories and objects have the type that all their cells have together.
        if private and str(column.dtype) in ("object", "category"):
            yield texts_of_objects(name, column.tolist())
            continue
        try:
            arrow_type = _arrow_type_of(column)
            if arrow_type is not None and not _is_importable(arrow_type, private=private):
                raise NotImplementedError
            yield cast("pl.Series", pl.from_pandas(column, nan_to_null=True)).alias(name)
        except ImportError:
            raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
        except _IMPORT_ERRORS:
            if not private:
                raise _mixed_types_error(name) from None
            yield texts_of_objects(name, column.tolist())


def arrow_columns(source: Foreign, *, private: bool) -> Iterator[pl.Series]:
    """Convert the columns of an Arrow table; see ``pandas_columns``."""
    require_distinct(source.column_names)
    pa = import_module("pyarrow")
    for name in source.column_names:
        column = source.column(name)
        if private and pa.types.is_timestamp(column.type) and column.type.tz is not None:
            # The same moments: polars and Python do not know every time zone that Arrow stores.
            column = column.cast(pa.timestamp(column.type.unit, "UTC"))
        try:
            if not _is_importable(column.type, private=private):
                raise NotImplementedError
            yield cast("pl.Series", pl.from_arrow(column)).alias(name)
        except _IMPORT_ERRORS:
            if not private:
                raise _mixed_types_error(name) from None
            yield texts_of_objects(name, column.to_pylist())


def require_distinct(names: Sequence[str]) -> None:
    """Raise a DataError if two columns have the same name."""
    if len(set(names)) < len(names):
        raise DataError(
            f"two columns of {DATAFRAME_LABEL} have the same name; rename or remove one"
        )


def _arrow_type_of(column: Foreign) -> Foreign | None:
    """Return the Arrow type in which a pandas column is handed to polars, where cells decide it."""
    if hasattr(column.dtype, "pyarrow_dtype"):
        return column.dtype.pyarrow_dtype
    if str(column.dtype) != "object":
        return None
    try:
        return import_module("pyarrow").infer_type(column.to_numpy(), from_pandas=True)
    except _IMPORT_ERRORS:  # polars decides
        return None


def _is_importable(arrow_type: Foreign, *, private: bool) -> bool:
    """Whether a column may be given to polars.

    polars panics on decimals of 256 bits, and Rust prints panics to standard error.

    polars makes times of dates that Arrow stores in milliseconds. As objects they are dates, and a
    row of another type makes objects of them, so a private draft does not import them.
    """
    types = import_module("pyarrow").types
    if types.is_decimal256(arrow_type) or (private and types.is_date64(arrow_type)):
        return False
    parts = [arrow_type.field(i).type for i in range(arrow_type.num_fields)]
    if types.is_dictionary(arrow_type):
        parts.append(arrow_type.value_type)
    if hasattr(arrow_type, "storage_type"):
        parts.append(arrow_type.storage_type)
    return all(_is_importable(part, private=private) for part in parts)


def _mixed_types_error(name: str) -> DataError:
    return DataError(
        f'column "{name}" of {DATAFRAME_LABEL} holds values of several types, or of a type that '
        'polars does not support; convert it to one, as with frame[name].astype("str")'
    )
