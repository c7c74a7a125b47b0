"""Column types of returned data frames: the schema alone decides them.

The types of the input are not used, declared or not. Libraries infer them from the cells, and one
row may decide: pandas turns integers into floats because of one missing cell, and into texts
because of one word.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import polars as pl

from deniable.data.complete_records import column_dtype
from deniable.schema.attribute import Attribute
from deniable.schema.unmodelled_columns import Computed, Constant, SchemaColumn


def may_be_missing(column: SchemaColumn) -> bool:
    """Whether the schema allows a missing cell in a column of released records."""
    if isinstance(column, Attribute):
        return bool(column.missing)
    # A formula has no result if it divides by zero, or if a cell that it needs is missing.
    return isinstance(column, Computed) or (isinstance(column, Constant) and column.is_empty)


def pandas_dtype(column: SchemaColumn, columns: Sequence[SchemaColumn]) -> Any:
    """Return the pandas dtype of a released column; ``columns`` are all of the schema."""
    pd = import_module("pandas")
    dtype, nullable = column_dtype(column, columns), may_be_missing(column)
    if dtype == pl.Int64:
        return pd.Int64Dtype() if nullable else "int64"
    if dtype == pl.Boolean:
        return pd.BooleanDtype() if nullable else "bool"
    if dtype == pl.Float64:
        return "float64"
    if dtype.is_temporal():
        return "datetime64[us]"
    if isinstance(column, Attribute) and column.kind == "ordered":
        return pd.CategoricalDtype(list(column.values), ordered=True)
    # The default of the installed version: "str" since pandas 3, objects before.
    return pd.Series([""]).dtype


def to_pandas(series: pl.Series, dtype: Any) -> Any:
    """Convert a decoded column to a pandas column of exactly this dtype."""
    pd = import_module("pandas")
    if isinstance(series.dtype, pl.String):
        return series.to_pandas().astype(dtype)
    if series.dtype.is_temporal():
        return pd.Series(series.cast(pl.Datetime("us")).to_numpy().copy(), dtype=dtype)
    if series.dtype.is_float():
        return pd.Series(series.fill_null(float("nan")).to_numpy().copy(), dtype=dtype)
    # Through the nullable types, since floats would round large integers.
    is_boolean = series.dtype == pl.Boolean
    values = series.fill_null(value=False if is_boolean else 0).to_numpy().copy()
    array = pd.arrays.BooleanArray if is_boolean else pd.arrays.IntegerArray
    return pd.Series(array(values, series.is_null().to_numpy().copy())).astype(dtype)


def arrow_type(column: SchemaColumn, columns: Sequence[SchemaColumn]) -> Any:
    """Return the Arrow type of a released column; ``columns`` are all of the schema."""
    return pl.Series([], dtype=column_dtype(column, columns)).to_arrow().type
