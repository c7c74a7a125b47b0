"""Columns of pandas frames and Arrow tables as polars columns, for drafts.

pandas and pyarrow are imported only for frames of theirs.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

import polars as pl

from deniable.data.arrow_types import arrow_column_of, contains_type, require_importable, to_object
from deniable.data.dataframes import UNNAMED_TABLE, require_distinct
from deniable.data.polars_errors import IMPORT_ERRORS
from deniable.drafting.object_texts import texts_of_objects
from deniable.errors import DataError

# A frame, column or type of pandas or pyarrow, which need not be installed.
Foreign: TypeAlias = Any


def pandas_columns(source: Foreign, *, private: bool) -> Iterator[pl.Series]:
    """Convert the columns of a pandas frame; categories with an order become a polars Enum.

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
        if getattr(column.dtype, "ordered", False) and _are_texts(column.cat.categories):
            order = pl.Enum(column.cat.categories.to_list())
            yield pl.Series(name, column.astype(object).where(column.notna(), None).tolist(), order)
            continue
        try:
            _require_importable(_arrow_type_of(column), arrow_column_of(column), private=private)
            yield cast("pl.Series", pl.from_pandas(column, nan_to_null=True)).alias(name)
        except ImportError:
            raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
        except IMPORT_ERRORS:
            if not private:
                raise _mixed_types_error(name) from None
            arrow_column = arrow_column_of(column)
            cells = column.tolist() if arrow_column is None else map(to_object, arrow_column)
            yield texts_of_objects(name, cells)


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
            _require_importable(column.type, column, private=private)
            cells = cast("pl.Series", pl.from_arrow(column)).alias(name)
            if pa.types.is_dictionary(column.type) and column.type.ordered and not private:
                order = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
                cells = cells.cast(pl.Enum(order)) if _are_texts(order) else cells
            yield cells
        except IMPORT_ERRORS:
            if not private:
                raise _mixed_types_error(name) from None
            yield texts_of_objects(name, map(to_object, column))


def _are_texts(values: Sequence[object]) -> bool:
    return len(values) > 0 and all(isinstance(value, str) for value in values)


def _arrow_type_of(column: Foreign) -> Foreign | None:
    """Return the Arrow type in which a pandas column is handed to polars, where cells decide it."""
    if hasattr(column.dtype, "pyarrow_dtype"):
        return column.dtype.pyarrow_dtype
    if str(column.dtype) != "object":
        return None
    try:
        return import_module("pyarrow").infer_type(column.to_numpy(), from_pandas=True)
    except IMPORT_ERRORS:  # polars decides
        return None


def _require_importable(
    arrow_type: Foreign | None, column: Foreign | None, *, private: bool
) -> None:
    """Raise an exception if a column may not be given to polars.

    polars makes times of dates that Arrow stores in milliseconds. As objects they are dates, and a
    row of another type makes objects of them, so a private draft does not import them.

    Args:
        arrow_type: The type in which the column is handed to polars, if Arrow is involved.
        column: The Arrow column, if there is one already.
        private: Whether the draft is private.
    """
    if arrow_type is None:
        return
    types = import_module("pyarrow").types
    if contains_type(arrow_type, types.is_decimal256):
        raise NotImplementedError
    if private and contains_type(arrow_type, types.is_date64):
        raise NotImplementedError
    if column is not None:
        require_importable(column)


def _mixed_types_error(name: str) -> DataError:
    return DataError(
        f'column "{name}" of {UNNAMED_TABLE} holds values of several types, or of a type that '
        'polars does not support; convert it to one, as with frame[name].astype("str")'
    )
