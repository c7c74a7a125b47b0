"""Data frames in, and records back out as the same kind of frame.

What goes back is decided by the schema and the type of each input column, never by what the
column held: the categories of a categorical column are the values that occur in the data, and a
pandas column of floats may be one of integers in which some cell was missing. Neither leaves:
categories are those of the schema, and where missing is declared, a pandas column of integers
comes back as floats too. Pandas and pyarrow are imported only where one of their frames was
brought.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import polars as pl

from deniable.arrays import MOST_VALUES
from deniable.data.amounts import LARGEST_IN_FLOAT
from deniable.data.attributes import Attribute
from deniable.data.beside import Described
from deniable.data.codec import POLARS_ERRORS, require_columns
from deniable.data.frame_types import Target, ends_of, is_listed, is_text, targets_of
from deniable.errors import DataError

# A frame, a column or a type of a library that need not be installed.
Foreign: TypeAlias = Any

PLACE = "the table"


class Kind(Protocol):
    """A kind of frame."""

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Return finished records as this kind of frame."""


@dataclass(frozen=True)
class PolarsKind:
    """A polars frame with these columns; a file is given back as one too."""

    targets: tuple[Target, ...]
    is_lazy: bool = False

    @classmethod
    def of_schema(cls, columns: Sequence[Described]) -> "PolarsKind":
        """Return the kind that finished records have by themselves."""
        return cls(targets_of(columns, {}))

    def restore(self, frame: pl.DataFrame) -> pl.DataFrame | pl.LazyFrame:
        """Return finished records with the columns in the order and of the types of the input."""
        cast_to = frame.select(target.expression() for target in self.targets)
        return cast_to.lazy() if self.is_lazy else cast_to


@dataclass(frozen=True)
class PandasKind:
    """A pandas frame: for each column its label and its dtype; None where the input had none."""

    targets: tuple[Target, ...]
    labels: tuple[tuple[Foreign, Foreign], ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Return finished records with the columns in the order and of the types of the input."""
        pd = import_module("pandas")
        cast_to = frame.select(target.expression() for target in self.targets)
        dtypes = [dtype for _, dtype in self.labels]
        parts = [_to_pandas(*pair) for pair in zip(cast_to, dtypes, strict=True)]
        restored = pd.concat(parts, axis=1)
        restored.columns = pd.Index([label for label, _ in self.labels])
        return restored


@dataclass(frozen=True)
class ArrowKind:
    """An Arrow table. Its metadata stay behind: pandas puts the number of rows there."""

    targets: tuple[Target, ...]
    fields: tuple[Foreign, ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Return finished records with the columns in the order and of the types of the input."""
        pa = import_module("pyarrow")
        cast_to = frame.select(target.expression() for target in self.targets)
        columns = [
            _to_arrow(series, target.attribute, wanted.type)
            for series, target, wanted in zip(cast_to, self.targets, self.fields, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


def take_in(source: object, columns: Sequence[Described]) -> tuple[pl.LazyFrame, Kind]:
    """Return a frame as polars holds it, and the kind of frame it was.

    Raises:
        DataError: It is no frame we know, or its columns are not those of the schema.
    """
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return _take_polars(source, columns)
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "pandas" in libraries and hasattr(source, "columns"):
        return _take_pandas(source, columns)
    if "pyarrow" in libraries and hasattr(source, "column_names"):
        return _take_arrow(source, columns)
    raise DataError(
        f"a {type(source).__name__} is no table. Give a path, a pandas or polars DataFrame, or an "
        "Arrow Table."
    )


def _take_polars(
    source: pl.DataFrame | pl.LazyFrame, columns: Sequence[Described]
) -> tuple[pl.LazyFrame, Kind]:
    try:
        schema = source.lazy().collect_schema()
    except POLARS_ERRORS as error:
        raise DataError(
            f"{PLACE} could not be computed (polars: {type(error).__name__}). Collect the lazy "
            "frame by itself to see why."
        ) from None
    require_columns(columns, schema.names(), place=PLACE)
    kind = PolarsKind(targets_of(columns, schema), is_lazy=isinstance(source, pl.LazyFrame))
    return source.lazy(), kind


def _take_pandas(source: Foreign, columns: Sequence[Described]) -> tuple[pl.LazyFrame, Kind]:
    names = [str(label) for label in source.columns]
    _require_distinct(names)
    require_columns(columns, names, place=PLACE)
    described = {column.name: column for column in columns}
    frame = pl.DataFrame(
        [_from_pandas(source.iloc[:, i], described[name]) for i, name in enumerate(names)]
    )
    targets = targets_of(columns, frame.schema)
    labels: list[tuple[Foreign, Foreign]] = []
    for target in targets:
        at = names.index(target.name) if target.name in names else None
        if at is None:
            labels.append((target.name, None))
        else:
            found = source.iloc[:, at].dtype
            labels.append((source.columns[at], _pandas_dtype(target, found)))
    return frame.lazy(), PandasKind(targets, tuple(labels))


def _take_arrow(source: Foreign, columns: Sequence[Described]) -> tuple[pl.LazyFrame, Kind]:
    _require_distinct(source.column_names)
    require_columns(columns, source.column_names, place=PLACE)
    try:
        frame = cast("pl.DataFrame", pl.from_arrow(source))
    except (*POLARS_ERRORS, TypeError, ValueError):
        raise DataError(
            f"{PLACE} has a column of an Arrow type that polars does not know; convert it to "
            "int64 or string"
        ) from None
    targets = targets_of(columns, frame.schema)
    fields = tuple(_arrow_field(target, source.schema, frame.schema) for target in targets)
    return frame.lazy(), ArrowKind(targets, fields)


def _require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"two columns of {PLACE} have the same name; rename or remove one")


# Pandas


def _from_pandas(column: Foreign, described: Described) -> pl.Series:
    name = described.name
    try:
        return cast("pl.Series", pl.from_pandas(column, nan_to_null=True)).alias(name)
    except ImportError:
        raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError):
        raise DataError(
            f'column "{name}" of {PLACE} holds values of several types; convert it to one, '
            'as with frame[name].astype("str")'
        ) from None


def _pandas_dtype(target: Target, found: Foreign) -> Foreign:
    """Return the type of a pandas column; None: the one that its values have by themselves."""
    pd = import_module("pandas")
    attribute = target.attribute
    if attribute is None:
        texts = is_text(target.dtype) and pd.api.types.is_string_dtype(found)
        return found if texts else None
    if isinstance(found, pd.CategoricalDtype):
        values = [str(v) if is_text(target.dtype) else v for v in attribute.values[:MOST_VALUES]]
        categories = pd.CategoricalDtype(values, ordered=found.ordered)
        return categories if is_listed(attribute) else None
    nullable = pd.api.types.is_extension_array_dtype(found)
    if attribute.outside == "drop" and not nullable and not is_text(target.dtype):
        # A row that is dropped may be why the column is one of floats, or of objects.
        return _own_dtype(attribute)
    if str(found) == "object" or is_text(target.dtype) or target.dtype == pl.Boolean:
        # An object is what pandas itself makes of a column of true and false with a gap.
        gaps = target.dtype == pl.Boolean and attribute.missing and not nullable
        return object if gaps else found
    if target.dtype.is_numeric() and (attribute.kind != "real" or target.dtype.is_integer()):
        return _pandas_number(target, attribute, found, nullable=nullable)
    return found if target.dtype.is_float() == pd.api.types.is_float_dtype(found) else None


def _own_dtype(attribute: Attribute) -> str | None:
    """Return the pandas type that a column has by its description alone."""
    if attribute.kind == "boolean":
        return "object" if attribute.missing else "bool"
    if attribute.kind == "real" or (attribute.is_whole and attribute.missing):
        return "float64"
    return "int64" if attribute.is_whole else None


def _pandas_number(
    target: Target, attribute: Attribute, found: Foreign, *, nullable: bool
) -> Foreign:
    """Return the type for whole numbers: whether one was missing must not show in it."""
    pd = import_module("pandas")
    if nullable:
        own = pd.api.types.is_numeric_dtype(found) and target.dtype != pl.Int64
        return found if own or _is_own(found, 64) else pd.Int64Dtype()
    if attribute.missing:
        return "float64" if max(map(abs, ends_of(attribute))) <= LARGEST_IN_FLOAT else "Int64"
    is_float = pd.api.types.is_float_dtype(found)
    return found if is_float or target.dtype != pl.Int64 or _is_own(found, 64) else "int64"


def _is_own(found: Foreign, bits: int) -> bool:
    """Whether a pandas type is that of signed integers of so many bits."""
    pd = import_module("pandas")
    return bool(pd.api.types.is_signed_integer_dtype(found)) and 8 * found.itemsize == bits


def _to_pandas(series: pl.Series, dtype: Foreign) -> Foreign:
    pd = import_module("pandas")
    if dtype is None:
        return series.to_pandas()
    if str(dtype) == "object" or dtype is object:
        return pd.Series(series.to_list(), dtype=object)
    if series.dtype.is_integer():
        # By way of the nullable type: a detour over floats would round large integers.
        whole = series.fill_null(0).to_numpy().copy()
        numbers = pd.Series(pd.arrays.IntegerArray(whole, series.is_null().to_numpy().copy()))
        return numbers.astype(dtype)
    return series.to_pandas().astype(dtype)


# Arrow


def _arrow_field(target: Target, arrow: Foreign, frame: pl.Schema) -> Foreign:
    pa = import_module("pyarrow")
    attribute, natural = target.attribute, _arrow_dtype(target.dtype)
    if target.name not in frame:
        return pa.field(target.name, natural)
    found = arrow.field(target.name)
    if attribute is None:
        wanted = found.type if frame[target.name] == target.dtype else natural
        return pa.field(target.name, wanted)
    wanted = _arrow_type(attribute, found.type, target, frame[target.name])
    nullable = found.nullable or bool(attribute.missing)
    return pa.field(target.name, wanted, nullable=nullable)


def _arrow_type(
    attribute: Attribute, found: Foreign, target: Target, taken: pl.DataType
) -> Foreign:
    pa = import_module("pyarrow")
    if pa.types.is_dictionary(found):
        text = attribute.unit is None and not attribute.is_whole
        value = found.value_type if text else _arrow_dtype(target.dtype)
        if not is_listed(attribute):
            return value
        index = pa.int32()  # whatever the input's: that may tell how many categories occurred
        return pa.dictionary(index, value, ordered=found.ordered)
    is_own = taken == target.dtype and not pa.types.is_null(found)
    return found if is_own else _arrow_dtype(target.dtype)


def _arrow_dtype(dtype: pl.DataType) -> Foreign:
    pa = import_module("pyarrow")
    if is_text(dtype):
        return pa.string()
    return pl.Series([], dtype=dtype).to_arrow().type


def _to_arrow(series: pl.Series, attribute: Attribute | None, target: Foreign) -> Foreign:
    pa = import_module("pyarrow")
    if attribute is None or not pa.types.is_dictionary(target):
        plain = series.cast(pl.String) if is_text(series.dtype) else series
        return plain.to_arrow().cast(target)
    plain = series.cast(pl.String) if is_text(series.dtype) else series
    values = pl.Series(attribute.values, dtype=plain.dtype)
    codes = plain.replace_strict(values, range(len(values)), default=None, return_dtype=pl.Int64)
    return pa.DictionaryArray.from_arrays(
        codes.to_arrow().cast(target.index_type),
        pa.array(attribute.values, target.value_type),
        ordered=target.ordered,
    )
