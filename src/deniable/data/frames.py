"""Data frames in, and records back out as the same kind of frame.

What goes back is decided by the schema and the type of each input column, never by what the
column held: the categories of a categorical column are the values that occur in the data, and a
pandas column of floats may be one of integers in which some cell was missing. Neither leaves.
Pandas and pyarrow are imported only where one of their frames was brought.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import polars as pl

from deniable.data.attributes import Attribute
from deniable.data.codec import POLARS_ERRORS, require_columns
from deniable.errors import DataError

# A frame, a column or a type of a library that need not be installed.
Foreign: TypeAlias = Any

PLACE = "the table"


class Kind(Protocol):
    """A kind of frame."""

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Return decoded records as this kind of frame."""


@dataclass(frozen=True)
class PolarsKind:
    """A polars frame with these columns; a file is given back as one too."""

    dtypes: tuple[tuple[str, pl.DataType], ...]
    is_lazy: bool = False

    @classmethod
    def of_schema(cls, attributes: Sequence[Attribute]) -> "PolarsKind":
        """Return the kind that decoded records have by themselves."""
        return cls(tuple((a.name, _polars_dtype(a, pl.Null())) for a in attributes))

    def restore(self, frame: pl.DataFrame) -> pl.DataFrame | pl.LazyFrame:
        """Return decoded records with the columns in the order and of the types of the input."""
        cast_to = frame.select(pl.col(name).cast(dtype) for name, dtype in self.dtypes)
        return cast_to.lazy() if self.is_lazy else cast_to


@dataclass(frozen=True)
class PandasKind:
    """A pandas frame: for each column its name in the schema, its label, and its dtype."""

    columns: tuple[tuple[str, Foreign, Foreign], ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Return decoded records with the columns in the order and of the types of the input."""
        pd = import_module("pandas")
        parts = [_to_pandas(frame[name], dtype) for name, _, dtype in self.columns]
        restored = pd.concat(parts, axis=1)
        restored.columns = pd.Index([label for _, label, _ in self.columns])
        return restored


@dataclass(frozen=True)
class ArrowKind:
    """An Arrow table. Its metadata stay behind: pandas puts the number of rows there."""

    fields: tuple[Foreign, ...] = field(repr=False)
    attributes: tuple[Attribute, ...]

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Return decoded records with the columns in the order and of the types of the input."""
        pa = import_module("pyarrow")
        columns = [
            _to_arrow(frame[attribute.name], attribute, target.type)
            for attribute, target in zip(self.attributes, self.fields, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


def take_in(source: object, attributes: Sequence[Attribute]) -> tuple[pl.LazyFrame, Kind]:
    """Return a frame as polars holds it, and the kind of frame it was.

    Raises:
        DataError: It is no frame we know, or its columns are not the attributes.
    """
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return _take_polars(source, attributes)
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "pandas" in libraries and hasattr(source, "columns"):
        return _take_pandas(source, attributes)
    if "pyarrow" in libraries and hasattr(source, "column_names"):
        return _take_arrow(source, attributes)
    raise DataError(
        f"a {type(source).__name__} is no table. Give a path, a pandas or polars DataFrame, or an "
        "Arrow Table."
    )


def _take_polars(
    source: pl.DataFrame | pl.LazyFrame, attributes: Sequence[Attribute]
) -> tuple[pl.LazyFrame, Kind]:
    try:
        schema = source.lazy().collect_schema()
    except POLARS_ERRORS as error:
        raise DataError(
            f"{PLACE} could not be computed (polars: {type(error).__name__}). Collect the lazy "
            "frame by itself to see why."
        ) from None
    require_columns(attributes, schema.names(), place=PLACE)
    attribute_of = {attribute.name: attribute for attribute in attributes}
    dtypes = [(name, _polars_dtype(attribute_of[name], dtype)) for name, dtype in schema.items()]
    return source.lazy(), PolarsKind(tuple(dtypes), is_lazy=isinstance(source, pl.LazyFrame))


def _take_pandas(source: Foreign, attributes: Sequence[Attribute]) -> tuple[pl.LazyFrame, Kind]:
    names = [str(label) for label in source.columns]
    _require_distinct(names)
    require_columns(attributes, names, place=PLACE)
    attribute_of = {attribute.name: attribute for attribute in attributes}
    series, columns = [], []
    for i, name in enumerate(names):
        column = source.iloc[:, i]
        series.append(_from_pandas(column, name))
        dtype = _pandas_dtype(attribute_of[name], column.dtype)
        columns.append((name, source.columns[i], dtype))
    return pl.LazyFrame(series), PandasKind(tuple(columns))


def _take_arrow(source: Foreign, attributes: Sequence[Attribute]) -> tuple[pl.LazyFrame, Kind]:
    _require_distinct(source.column_names)
    require_columns(attributes, source.column_names, place=PLACE)
    try:
        frame = cast("pl.DataFrame", pl.from_arrow(source))
    except (*POLARS_ERRORS, TypeError, ValueError):
        raise DataError(
            f"{PLACE} has a column of an Arrow type that polars does not know; convert it to "
            "int64 or string"
        ) from None
    attribute_of = {attribute.name: attribute for attribute in attributes}
    in_order = tuple(attribute_of[name] for name in source.column_names)
    fields = tuple(map(_arrow_field, in_order, source.schema))
    return frame.lazy(), ArrowKind(fields=fields, attributes=in_order)


def _require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"two columns of {PLACE} have the same name; rename or remove one")


def _fits(attribute: Attribute, bits: int, *, signed: bool) -> bool:
    """Whether integers of this width hold every value of the attribute."""
    numbers = cast("Sequence[int]", attribute.values)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    return low <= min(numbers) and max(numbers) < high


def _polars_dtype(attribute: Attribute, dtype: pl.DataType) -> pl.DataType:
    if attribute.is_numeric:
        signed = dtype.is_signed_integer()
        bits = int(str(dtype).lstrip("UInt")) if dtype.is_integer() else 0
        return dtype if bits and _fits(attribute, bits, signed=signed) else pl.Int64()
    if isinstance(dtype, pl.Enum):
        return pl.Enum([str(value) for value in attribute.values])
    return pl.Categorical() if isinstance(dtype, pl.Categorical) else pl.String()


def _pandas_dtype(attribute: Attribute, dtype: Foreign) -> Foreign:
    pd = import_module("pandas")
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.CategoricalDtype(list(attribute.values), ordered=dtype.ordered)
    if not attribute.is_numeric:
        return dtype
    nullable = pd.api.types.is_extension_array_dtype(dtype)
    if pd.api.types.is_integer_dtype(dtype) and (nullable or not attribute.missing):
        signed = not pd.api.types.is_unsigned_integer_dtype(dtype)
        if _fits(attribute, 8 * dtype.itemsize, signed=signed):
            return dtype
    return pd.Int64Dtype() if nullable or attribute.missing else "int64"


def _from_pandas(column: Foreign, name: str) -> pl.Series:
    try:
        return cast("pl.Series", pl.from_pandas(column, nan_to_null=True)).alias(name)
    except ImportError:
        raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError):
        raise DataError(
            f'column "{name}" of {PLACE} holds values of several types; convert it to one, '
            'as with frame[name].astype("str")'
        ) from None


def _to_pandas(series: pl.Series, dtype: Foreign) -> Foreign:
    pd = import_module("pandas")
    if str(dtype) == "object":
        return pd.Series(series.to_list(), dtype=object)
    if series.dtype == pl.String:
        return series.to_pandas().astype(dtype)
    # By way of the nullable type: a detour over floats would round large integers.
    whole = series.fill_null(0).to_numpy().copy()
    numbers = pd.Series(pd.arrays.IntegerArray(whole, series.is_null().to_numpy().copy()))
    return numbers.astype(dtype)


def _arrow_field(attribute: Attribute, found: Foreign) -> Foreign:
    pa = import_module("pyarrow")
    nullable = found.nullable or bool(attribute.missing)
    return pa.field(attribute.name, _arrow_type(attribute, found.type), nullable=nullable)


def _arrow_type(attribute: Attribute, found: Foreign) -> Foreign:
    pa = import_module("pyarrow")
    if pa.types.is_dictionary(found):
        index = pa.int32()  # whatever the input's: that may tell how many categories occurred
        value = _arrow_type(attribute, found.value_type)
        return pa.dictionary(index, value, ordered=found.ordered)
    if not attribute.is_numeric:
        return pa.string() if pa.types.is_null(found) else found
    signed = pa.types.is_signed_integer(found)
    fits = pa.types.is_integer(found) and _fits(attribute, found.bit_width, signed=signed)
    return found if fits else pa.int64()


def _to_arrow(series: pl.Series, attribute: Attribute, target: Foreign) -> Foreign:
    pa = import_module("pyarrow")
    if not pa.types.is_dictionary(target):
        return series.to_arrow().cast(target)
    values = pl.Series(attribute.values, dtype=series.dtype)
    codes = series.replace_strict(values, range(len(values)), default=None, return_dtype=pl.Int64)
    return pa.DictionaryArray.from_arrays(
        codes.to_arrow().cast(target.index_type),
        pa.array(attribute.values, target.value_type),
        ordered=target.ordered,
    )
