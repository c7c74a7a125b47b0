"""Import data frames, and return records as the same kind of frame: pandas, polars or Arrow.

The types of a returned frame follow from the schema and the types of the input columns, never from
the data. A categorical column would reveal the values that occur, so its categories come from the
schema. A pandas column of floats may be a column of integers with a missing cell; so if the schema
declares missing, a column of integers is returned as floats too.

pandas and pyarrow are imported only for frames of theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import polars as pl

from deniable.data.codec import POLARS_ERRORS, require_columns
from deniable.data.dataframe_types import (
    OutputColumn,
    has_listed_values,
    is_text_dtype,
    output_columns,
    value_range,
)
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.grid import FLOAT_INTEGER_LIMIT
from deniable.schema.unmodelled_columns import SchemaColumn

# A frame, column or type of pandas or pyarrow, which need not be installed.
Foreign: TypeAlias = Any

# Name of a data frame in error messages.
UNNAMED_TABLE = "the table"


class FrameKind(Protocol):
    """Kind of a data frame: converts decoded records to it."""

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Convert decoded records to this kind of frame."""


@dataclass(frozen=True)
class PolarsKind:
    """Polars frame with these columns. Also the kind of a table read from a file."""

    outputs: tuple[OutputColumn, ...]
    is_lazy: bool = False

    @classmethod
    def of_schema(cls, columns: Sequence[SchemaColumn]) -> "PolarsKind":
        """Return the kind of a frame with the types of decoded records."""
        return cls(output_columns(columns, {}))

    def restore(self, frame: pl.DataFrame) -> pl.DataFrame | pl.LazyFrame:
        """Convert decoded records to the column order and types of the input."""
        converted = frame.select(output.expression() for output in self.outputs)
        return converted.lazy() if self.is_lazy else converted


@dataclass(frozen=True)
class PandasKind:
    """Pandas frame with these columns.

    Attributes:
        outputs: The columns.
        labels: The label and pandas dtype of each column; dtype None for the default of its values.
    """

    outputs: tuple[OutputColumn, ...]
    labels: tuple[tuple[Foreign, Foreign], ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Convert decoded records to the column order and types of the input."""
        pd = import_module("pandas")
        converted = frame.select(output.expression() for output in self.outputs)
        dtypes = [dtype for _, dtype in self.labels]
        parts = [_to_pandas(*pair) for pair in zip(converted, dtypes, strict=True)]
        restored = pd.concat(parts, axis=1)
        restored.columns = pd.Index([label for label, _ in self.labels])
        return restored


@dataclass(frozen=True)
class ArrowKind:
    """Arrow table with these columns. Metadata are dropped: pandas stores the row count there."""

    outputs: tuple[OutputColumn, ...]
    fields: tuple[Foreign, ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Convert decoded records to the column order and types of the input."""
        pa = import_module("pyarrow")
        converted = frame.select(output.expression() for output in self.outputs)
        columns = [
            _to_arrow(series, output.attribute, wanted.type)
            for series, output, wanted in zip(converted, self.outputs, self.fields, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


def import_frame(source: object, columns: Sequence[SchemaColumn]) -> tuple[pl.LazyFrame, FrameKind]:
    """Convert a data frame to polars; also return its kind.

    Raises:
        DataError: The object is no supported frame, or its columns are not those of the schema.
    """
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return _import_polars(source, columns)
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "pandas" in libraries and hasattr(source, "columns"):
        return _import_pandas(source, columns)
    if "pyarrow" in libraries and hasattr(source, "column_names"):
        return _import_arrow(source, columns)
    raise DataError(
        f"an object of type {type(source).__name__} is not a table. Pass a path, a pandas or "
        "polars DataFrame, or an Arrow Table."
    )


def _import_polars(
    source: pl.DataFrame | pl.LazyFrame, columns: Sequence[SchemaColumn]
) -> tuple[pl.LazyFrame, FrameKind]:
    try:
        schema = source.lazy().collect_schema()
    except POLARS_ERRORS as error:
        raise DataError(
            f"{UNNAMED_TABLE} could not be computed (polars: {type(error).__name__}). Collect the "
            "lazy frame yourself to see why."
        ) from None
    require_columns(columns, schema.names(), table_name=UNNAMED_TABLE)
    kind = PolarsKind(output_columns(columns, schema), is_lazy=isinstance(source, pl.LazyFrame))
    return source.lazy(), kind


def _import_pandas(
    source: Foreign, columns: Sequence[SchemaColumn]
) -> tuple[pl.LazyFrame, FrameKind]:
    names = [str(label) for label in source.columns]
    _require_distinct(names)
    require_columns(columns, names, table_name=UNNAMED_TABLE)
    described = {column.name: column for column in columns}
    frame = pl.DataFrame(
        [_from_pandas(source.iloc[:, i], described[name]) for i, name in enumerate(names)]
    )
    outputs = output_columns(columns, frame.schema)
    labels: list[tuple[Foreign, Foreign]] = []
    for output in outputs:
        if output.name in names:
            i = names.index(output.name)
            dtype = _pandas_dtype(output, source.iloc[:, i].dtype)
            labels.append((source.columns[i], dtype))
        else:
            labels.append((output.name, None))
    return frame.lazy(), PandasKind(outputs, tuple(labels))


def _import_arrow(
    source: Foreign, columns: Sequence[SchemaColumn]
) -> tuple[pl.LazyFrame, FrameKind]:
    _require_distinct(source.column_names)
    require_columns(columns, source.column_names, table_name=UNNAMED_TABLE)
    try:
        frame = cast("pl.DataFrame", pl.from_arrow(source))
    except (*POLARS_ERRORS, TypeError, ValueError):
        raise DataError(
            f"{UNNAMED_TABLE} has a column of an Arrow type that polars does not support; convert "
            "it to int64 or string"
        ) from None
    outputs = output_columns(columns, frame.schema)
    fields = tuple(_arrow_field(output, source.schema, frame.schema) for output in outputs)
    return frame.lazy(), ArrowKind(outputs, fields)


def _require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"two columns of {UNNAMED_TABLE} have the same name; rename or remove one")


# pandas


def _from_pandas(column: Foreign, described: SchemaColumn) -> pl.Series:
    name = described.name
    try:
        return cast("pl.Series", pl.from_pandas(column, nan_to_null=True)).alias(name)
    except ImportError:
        raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError):
        raise DataError(
            f'column "{name}" of {UNNAMED_TABLE} holds values of several types; convert it to one, '
            'for example with frame[name].astype("str")'
        ) from None


def _pandas_dtype(output: OutputColumn, input_dtype: Foreign) -> Foreign:
    """Return the dtype of a returned pandas column; None for the default of its values."""
    pd = import_module("pandas")
    attribute = output.attribute
    if attribute is None:
        is_text = is_text_dtype(output.dtype) and pd.api.types.is_string_dtype(input_dtype)
        return input_dtype if is_text else None
    if isinstance(input_dtype, pd.CategoricalDtype):
        return _categorical_dtype(output, attribute, ordered=input_dtype.ordered)
    nullable = pd.api.types.is_extension_array_dtype(input_dtype)
    if attribute.outside == "drop" and not nullable and not is_text_dtype(output.dtype):
        # The column may hold floats or objects only because of a row that is dropped.
        return _declared_pandas_dtype(attribute)
    if str(input_dtype) == "object" or is_text_dtype(output.dtype) or output.dtype == pl.Boolean:
        # pandas itself uses objects for a column of booleans with missing cells.
        has_gaps = output.dtype == pl.Boolean and attribute.missing and not nullable
        return object if has_gaps else input_dtype
    if output.dtype.is_numeric() and (attribute.kind != "real" or output.dtype.is_integer()):
        return _pandas_integer_dtype(output, attribute, input_dtype, nullable=nullable)
    is_kept = output.dtype.is_float() == pd.api.types.is_float_dtype(input_dtype)
    return input_dtype if is_kept else None


def _categorical_dtype(output: OutputColumn, attribute: Attribute, *, ordered: bool) -> Foreign:
    """Return the categorical dtype with the values of the schema; None if they are not listed."""
    if not has_listed_values(attribute):
        return None
    values = map(str, attribute.values) if is_text_dtype(output.dtype) else attribute.values
    return import_module("pandas").CategoricalDtype(list(values), ordered=ordered)


def _declared_pandas_dtype(attribute: Attribute) -> str | None:
    """Return the pandas dtype of a column by its schema alone."""
    if attribute.kind == "boolean":
        return "object" if attribute.missing else "bool"
    if attribute.kind == "real" or (attribute.is_whole and attribute.missing):
        return "float64"
    return "int64" if attribute.is_whole else None


def _pandas_integer_dtype(
    output: OutputColumn, attribute: Attribute, input_dtype: Foreign, *, nullable: bool
) -> Foreign:
    """Return the dtype for whole numbers; it must not reveal whether a cell was missing."""
    pd = import_module("pandas")
    if nullable:
        is_kept = pd.api.types.is_numeric_dtype(input_dtype) and output.dtype != pl.Int64
        return input_dtype if is_kept or _is_int64(input_dtype) else pd.Int64Dtype()
    if attribute.missing:
        largest = max(map(abs, value_range(attribute)))
        return "float64" if largest <= FLOAT_INTEGER_LIMIT else "Int64"
    is_kept = pd.api.types.is_float_dtype(input_dtype) or output.dtype != pl.Int64
    return input_dtype if is_kept or _is_int64(input_dtype) else "int64"


def _is_int64(dtype: Foreign) -> bool:
    """Whether a pandas dtype holds signed 64-bit integers."""
    pd = import_module("pandas")
    return bool(pd.api.types.is_signed_integer_dtype(dtype)) and dtype.itemsize == 8


def _to_pandas(series: pl.Series, dtype: Foreign) -> Foreign:
    pd = import_module("pandas")
    if dtype is None:
        return series.to_pandas()
    if str(dtype) == "object" or dtype is object:
        return pd.Series(series.to_list(), dtype=object)
    if series.dtype.is_integer():
        # Through the nullable type, since floats would round large integers.
        values, mask = series.fill_null(0).to_numpy().copy(), series.is_null().to_numpy().copy()
        return pd.Series(pd.arrays.IntegerArray(values, mask)).astype(dtype)
    return series.to_pandas().astype(dtype)


# Arrow


def _arrow_field(output: OutputColumn, arrow: Foreign, frame: pl.Schema) -> Foreign:
    pa = import_module("pyarrow")
    attribute, default = output.attribute, _default_arrow_type(output.dtype)
    if output.name not in frame:
        return pa.field(output.name, default)
    input_field = arrow.field(output.name)
    if attribute is None:
        wanted = input_field.type if frame[output.name] == output.dtype else default
        return pa.field(output.name, wanted)
    wanted = _restored_arrow_type(attribute, input_field.type, output, frame[output.name])
    nullable = input_field.nullable or bool(attribute.missing)
    return pa.field(output.name, wanted, nullable=nullable)


def _restored_arrow_type(
    attribute: Attribute, input_type: Foreign, output: OutputColumn, imported: pl.DataType
) -> Foreign:
    pa = import_module("pyarrow")
    if pa.types.is_dictionary(input_type):
        is_text = attribute.grid is None and not attribute.is_whole
        value = input_type.value_type if is_text else _default_arrow_type(output.dtype)
        if not has_listed_values(attribute):
            return value
        index = pa.int32()  # the input's index type may reveal how many categories occurred
        return pa.dictionary(index, value, ordered=input_type.ordered)
    is_kept = imported == output.dtype and not pa.types.is_null(input_type)
    return input_type if is_kept else _default_arrow_type(output.dtype)


def _default_arrow_type(dtype: pl.DataType) -> Foreign:
    pa = import_module("pyarrow")
    if is_text_dtype(dtype):
        return pa.string()
    return pl.Series([], dtype=dtype).to_arrow().type


def _to_arrow(series: pl.Series, attribute: Attribute | None, dtype: Foreign) -> Foreign:
    pa = import_module("pyarrow")
    plain = series.cast(pl.String) if is_text_dtype(series.dtype) else series
    if attribute is None or not pa.types.is_dictionary(dtype):
        return plain.to_arrow().cast(dtype)
    values = pl.Series(attribute.values, dtype=plain.dtype)
    codes = plain.replace_strict(values, range(len(values)), default=None, return_dtype=pl.Int64)
    return pa.DictionaryArray.from_arrays(
        codes.to_arrow().cast(dtype.index_type),
        pa.array(attribute.values, dtype.value_type),
        ordered=dtype.ordered,
    )
