"""Import data frames, and return records as the same kind of frame: pandas, polars or Arrow.

Of the input, only the library, laziness and the names and order of the columns carry over. Types,
categories, nullability, index and metadata of a returned frame follow from the schema: see
``dataframe_types``.

pandas and pyarrow are imported only for frames of theirs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import polars as pl

from deniable.data.arrow_types import arrow_column_of, require_importable, to_object
from deniable.data.complete_records import released_columns
from deniable.data.dataframe_types import arrow_type, pandas_dtype, to_pandas
from deniable.data.declared_columns import require_columns
from deniable.data.object_columns import has_uniform_objects, objects_to_texts
from deniable.data.polars_errors import IMPORT_ERRORS, polars_errors_as
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.unmodelled_columns import Constant, Identifier, SchemaColumn

# A frame, column or type of pandas or pyarrow, which need not be installed.
Foreign: TypeAlias = Any

# Name of a data frame in error messages.
UNNAMED_TABLE = "the table"


class FrameKind(Protocol):
    """Kind of a data frame: converts decoded records and other tables to it."""

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Convert decoded records to this kind of frame."""

    def convert(self, frame: pl.DataFrame) -> Foreign:
        """Convert a table of texts and floats, such as an answer, to the library of the frame."""


@dataclass(frozen=True)
class PolarsKind:
    """Polars frame with these columns. Also the kind of a table read from a file."""

    names: tuple[str, ...]
    is_lazy: bool = False

    def restore(self, frame: pl.DataFrame) -> pl.DataFrame | pl.LazyFrame:
        """Put the columns of decoded records into the order of the input."""
        ordered = frame.select(self.names)
        return ordered.lazy() if self.is_lazy else ordered

    def convert(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the table itself, never lazy."""
        return frame


@dataclass(frozen=True)
class PandasKind:
    """Pandas frame with these columns, and an index of row numbers.

    Attributes:
        labels: The label of each column, by its name.
        dtypes: The pandas dtype of each column.
    """

    labels: Mapping[str, Foreign] = field(repr=False)
    dtypes: tuple[Foreign, ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Convert decoded records to pandas columns in the order of the input."""
        pd = import_module("pandas")
        ordered = frame.select(list(self.labels))
        parts = [to_pandas(*pair) for pair in zip(ordered, self.dtypes, strict=True)]
        restored = pd.concat(parts, axis=1)
        restored.columns = pd.Index(list(self.labels.values()))
        return restored

    def convert(self, frame: pl.DataFrame) -> Foreign:
        """Convert a table of texts and floats to pandas."""
        pd = import_module("pandas")
        text = pd.Series([""]).dtype
        parts = [to_pandas(each, "float64" if each.dtype.is_float() else text) for each in frame]
        converted = pd.concat(parts, axis=1)
        converted.columns = pd.Index(frame.columns)
        return converted


@dataclass(frozen=True)
class ArrowKind:
    """Arrow table with these columns, all nullable, and without metadata."""

    names: tuple[str, ...]
    types: tuple[Foreign, ...] = field(repr=False)

    def restore(self, frame: pl.DataFrame) -> Foreign:
        """Convert decoded records to Arrow columns in the order of the input."""
        pa = import_module("pyarrow")
        schema = pa.schema(list(zip(self.names, self.types, strict=True)))
        arrays = [series.to_arrow() for series in frame.select(self.names)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def convert(self, frame: pl.DataFrame) -> Foreign:
        """Convert a table to Arrow."""
        return frame.to_arrow()


def import_frame(source: object, columns: Sequence[SchemaColumn]) -> tuple[pl.LazyFrame, FrameKind]:
    """Convert a data frame to polars; also return its kind.

    Raises:
        DataError: The object is not a supported frame, or its columns are not those of the schema.

    Privacy:
        Neighbours: add or remove one row of the frame, whatever type that gives to its columns.
        Covers: the kind is the same for both.
        Assumes: the names and the order of the columns, and the library of the frame, are public.
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
    with polars_errors_as(
        DataError,
        f"{UNNAMED_TABLE} could not be computed",
        fix="Collect the lazy frame yourself to see why.",
    ):
        names = source.lazy().collect_schema().names()
    require_columns(columns, names, table_name=UNNAMED_TABLE)
    kind = PolarsKind(released_names(columns, names), is_lazy=isinstance(source, pl.LazyFrame))
    return _objects_as_texts(source.lazy(), columns), kind


def _objects_as_texts(frame: pl.LazyFrame, columns: Sequence[SchemaColumn]) -> pl.LazyFrame:
    """Convert columns of Python objects to text where the schema has a fallback for their cells."""
    dtypes, texts = frame.collect_schema(), []
    for column in columns:
        if dtypes.get(column.name) == pl.Object and _has_fallback(column):
            convert = partial(_texts_of_column, column)
            texts.append(pl.col(column.name).map_batches(convert, return_dtype=pl.String))
    return frame.with_columns(texts) if texts else frame


def _texts_of_column(column: SchemaColumn, cells: pl.Series) -> pl.Series:
    return objects_to_texts(column.name, cells.to_list(), _attribute_of(column))


def _has_fallback(column: SchemaColumn) -> bool:
    return isinstance(column, Attribute) and column.fallback is not None


def _import_pandas(
    source: Foreign, columns: Sequence[SchemaColumn]
) -> tuple[pl.LazyFrame, FrameKind]:
    names = [str(label) for label in source.columns]
    require_distinct(names)
    require_columns(columns, names, table_name=UNNAMED_TABLE)
    described = {column.name: column for column in columns}
    frame = pl.DataFrame(
        [
            _from_pandas(source.iloc[:, i], described[name])
            for i, name in enumerate(names)
            if name in described
        ]
    )
    label_of = dict(zip(names, source.columns, strict=True))
    labels = {name: label_of.get(name, name) for name in released_names(columns, names)}
    dtypes = tuple(pandas_dtype(described[name], columns) for name in labels)
    return frame.lazy(), PandasKind(labels, dtypes)


def _import_arrow(
    source: Foreign, columns: Sequence[SchemaColumn]
) -> tuple[pl.LazyFrame, FrameKind]:
    require_distinct(source.column_names)
    require_columns(columns, source.column_names, table_name=UNNAMED_TABLE)
    described = {column.name: column for column in columns}
    declared = [name for name in source.column_names if name in described]
    frame = pl.DataFrame([_from_arrow(source.column(name), described[name]) for name in declared])
    names = released_names(columns, source.column_names)
    types = tuple(arrow_type(described[name], columns) for name in names)
    return frame.lazy(), ArrowKind(names, types)


def released_names(columns: Sequence[SchemaColumn], names: Sequence[str]) -> tuple[str, ...]:
    """Order the released columns: those of the input first, in its order."""
    released = [column.name for column in released_columns(columns)]
    return tuple(dict.fromkeys([*(name for name in names if name in set(released)), *released]))


def require_distinct(names: Sequence[str]) -> None:
    """Raise a DataError if two columns have the same name."""
    if len(set(names)) < len(names):
        raise DataError(f"two columns of {UNNAMED_TABLE} have the same name; rename or remove one")


def _from_arrow(column: Foreign, described: SchemaColumn) -> pl.Series:
    name = described.name
    try:
        require_importable(column)
        return cast("pl.Series", pl.from_arrow(column)).alias(name)
    except IMPORT_ERRORS:
        if _has_fallback(described) or _is_omitted(described):
            cells = map(to_object, column)
            return objects_to_texts(name, cells, _attribute_of(described), lenient=True)
        raise DataError(
            f'column "{name}" of {UNNAMED_TABLE} is of an Arrow type that polars does not support, '
            "or holds text that is not UTF-8; convert it to int64, float64 or string"
        ) from None


def _from_pandas(column: Foreign, described: SchemaColumn) -> pl.Series:
    name = described.name
    try:
        attribute = _attribute_of(described)
        imported = _from_typed_pandas(column, attribute)
        if imported is None:
            imported = objects_to_texts(name, _objects_of(column), attribute)
    except ImportError:
        raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
    except IMPORT_ERRORS:
        if _is_omitted(described):
            return _omitted_column(name, column)
        raise DataError(
            f'column "{name}" of {UNNAMED_TABLE} holds values that are not text, numbers, booleans '
            'or dates; convert them, for example with frame[name].astype("str")'
        ) from None
    return imported.alias(name)


def _from_typed_pandas(column: Foreign, attribute: Attribute | None) -> pl.Series | None:
    """Convert a pandas column; None if its cells are objects, or become such."""
    if str(column.dtype) == "object" and not has_uniform_objects(column, attribute):
        return None
    if (arrow_column := arrow_column_of(column)) is not None:
        try:
            require_importable(arrow_column)
        except IMPORT_ERRORS:
            return None
    try:
        return cast("pl.Series", pl.from_pandas(column, nan_to_null=True))
    except IMPORT_ERRORS:  # such as a category of several types, or an integer of over 64 bits
        return None


def _is_omitted(column: SchemaColumn) -> bool:
    return isinstance(column, Identifier) and column.release == "omit"


def _omitted_column(name: str, column: Foreign) -> pl.Series:
    """Convert a pandas column that is not released, but may be the unit; odd cells become null."""
    if getattr(column.dtype, "kind", "") == "c":
        # Floats, not texts: ``require_exact_owners`` refuses those that may have been rounded.
        cells = column.to_numpy()
        reals = np.where(cells.imag == 0, cells.real, np.nan)
        return pl.Series(name, reals.astype(np.float64))
    return objects_to_texts(name, _objects_of(column), None, lenient=True)


def _objects_of(column: Foreign) -> Iterable[object]:
    """Return the cells of a pandas column as Python objects, also texts that are not UTF-8."""
    arrow_column = arrow_column_of(column)
    return column.astype(object) if arrow_column is None else map(to_object, arrow_column)


def _attribute_of(column: SchemaColumn) -> Attribute | None:
    if isinstance(column, Constant):
        return column.attribute
    return column if isinstance(column, Attribute) else None
