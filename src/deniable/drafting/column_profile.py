"""Open a table and profile its columns: distinct values, their counts, and the value of each row.

All rows are read, but only a few columns at a time, so the table may be larger than memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.data.codec import POLARS_ERRORS
from deniable.data.csv_reader import CsvFile
from deniable.data.table_io import infer_format
from deniable.errors import ConfigError, DataError
from deniable.progress import Progress, no_progress

_DATAFRAME_LABEL = "the table"

# Columns are read in groups of at most this many cells; a column is never split.
_MAX_CELLS_IN_MEMORY = 20_000_000

ValueIndices = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """One column of a table. Confidential.

    Attributes:
        name: The column's header.
        dtype: Its polars type; columns of a CSV file are text.
        values: Its distinct values without null, ascending.
        counts: Number of rows with each value.
        nulls: Number of rows without a value.
        value_indices: Index into ``values`` for each row; null is ``len(values)``.
    """

    name: str
    dtype: pl.DataType
    values: pl.Series = field(repr=False)
    counts: Counts = field(repr=False)
    nulls: int
    value_indices: ValueIndices = field(repr=False)

    @property
    def rows(self) -> int:
        """Number of rows of the table."""
        return len(self.value_indices)


@dataclass(frozen=True, kw_only=True)
class OpenedTable:
    """A table that is opened but not yet read.

    Attributes:
        label: Name of the table in messages.
        dtypes: Type of each column.
        frame: The rows.
    """

    label: str
    dtypes: dict[str, pl.DataType]
    frame: pl.LazyFrame = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.dtypes)

    def read(self, progress: Progress = no_progress) -> list[ColumnProfile]:
        """Read and profile all columns.

        Args:
            progress: Called with a stage, the columns read and the total.

        Raises:
            DataError: The table cannot be read, or has no rows.
        """
        rows = int(self.collect(self.frame.select(pl.len())).item())
        if not rows:
            raise DataError(f"{self.label} has no records: nothing to draft from")
        at_once = max(1, _MAX_CELLS_IN_MEMORY // rows)
        columns: list[ColumnProfile] = []
        for first in range(0, len(self.names), at_once):
            names = self.names[first : first + at_once]
            cells = self.collect(self.frame.select(names))
            columns += [_profile_column(cells[name]) for name in names]
            progress("read columns", len(columns), len(self.names))
        return columns

    def limit_rows_per_unit(self, unit: str, max_rows: int) -> "OpenedTable":
        """Keep the first ``max_rows`` rows of each unit; drop rows without a unit.

        Rows without a unit would form one unit together, and one of them could displace another.
        """
        has_unit = pl.col(unit).is_not_null() & (pl.col(unit).cast(pl.String) != "")
        number = pl.int_range(pl.len()).over(unit)
        kept = self.frame.filter(has_unit).filter(number < max_rows)
        return OpenedTable(label=self.label, dtypes=self.dtypes, frame=kept)

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Run a query. Messages of polars may quote cells, so they are not passed on."""
        try:
            return frame.collect(engine="streaming")
        except (*POLARS_ERRORS, OSError) as error:
            raise DataError(
                f"{self.label} cannot be read (polars: {type(error).__name__}; its message is not "
                "shown, as it may quote cells). Check that the file is complete and that you have "
                "permission to read it."
            ) from None


def open_table(source: object) -> OpenedTable:
    """Open a table.

    Args:
        source: Path of a .csv, .csv.gz or .parquet file; or a pandas DataFrame, a polars
            DataFrame or LazyFrame, an Arrow Table.

    Raises:
        DataError: The source is not a table, or cannot be read.
    """
    opened = _open_file(Path(source)) if isinstance(source, str | Path) else None
    opened = opened or _open_frame(_DATAFRAME_LABEL, _to_lazy_frame(source))
    if "" in opened.names:
        raise DataError(
            f"column {opened.names.index('') + 1} of {opened.label} has no name. Name it, or "
            "remove it. pandas writes such a column unless it is called with index=False."
        )
    return opened


def _open_file(path: Path) -> OpenedTable:
    if infer_format(path, DataError) == ".parquet":
        if not path.is_file():
            raise DataError(f"{path}: no such file; check the path")
        return _open_frame(path.name, pl.scan_parquet(path, glob=False))
    file = CsvFile.open(path)
    if not file.has_records:
        raise DataError(f"{path.name} has a header and no records: nothing to draft from")
    file.require_full_records()
    dtypes: dict[str, pl.DataType] = {name: pl.String() for name in file.names}
    return OpenedTable(label=path.name, dtypes=dtypes, frame=file.scan(dtypes))


def require_column(opened: OpenedTable, name: str) -> None:
    """Raise a ConfigError unless the table has the unit column ``name``."""
    if name not in opened.names:
        raise ConfigError(f'unit = "{name}": {opened.label} has no such column')


def is_unsupported(dtype: pl.DataType) -> bool:
    """Whether a schema cannot describe columns of a type."""
    known = isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Date | pl.Datetime)
    return not (known or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null))


def _open_frame(label: str, frame: pl.LazyFrame) -> OpenedTable:
    try:
        dtypes = dict(frame.collect_schema())
    except (*POLARS_ERRORS, OSError) as error:
        raise DataError(
            f"{label} cannot be read (polars: {type(error).__name__}). Check that it is a complete "
            "Parquet file, or a lazy frame that can be collected."
        ) from None
    if not dtypes:
        raise DataError(f"{label} has no columns: nothing to draft from")
    return OpenedTable(label=label, dtypes=dtypes, frame=frame)


def _to_lazy_frame(source: Any) -> pl.LazyFrame:
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return source.lazy()
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "pandas" in libraries and hasattr(source, "columns"):
        _require_distinct([str(label) for label in source.columns])
        return pl.LazyFrame(list(_pandas_columns(source)))
    if "pyarrow" in libraries and hasattr(source, "column_names"):
        _require_distinct(source.column_names)
        return cast("pl.DataFrame", pl.from_arrow(source)).lazy()
    raise DataError(
        f"a {type(source).__name__} is not a table. Give a path, a pandas or polars DataFrame, or "
        "an Arrow Table."
    )


def _pandas_columns(source: Any) -> Iterator[pl.Series]:
    for i, label in enumerate(source.columns):
        try:
            column = pl.from_pandas(source.iloc[:, i], nan_to_null=True)
        except ImportError:
            raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
        except (*POLARS_ERRORS, TypeError, ValueError, OverflowError):
            raise DataError(
                f'column "{label}" of {_DATAFRAME_LABEL} holds values of several types; convert '
                'it to one, as with frame[name].astype("str")'
            ) from None
        yield column.alias(str(label))


def _require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(
            f"two columns of {_DATAFRAME_LABEL} have the same name; rename or remove one"
        )


def _profile_column(cells: pl.Series) -> ColumnProfile:
    """Count the distinct values of a column."""
    dtype = cells.dtype
    if is_unsupported(dtype):
        # Only whether a cell is null is known.
        known = cells.is_null().not_()
    elif isinstance(dtype, pl.Categorical | pl.Enum):
        known = cells.cast(pl.String)
    elif dtype.is_float():
        known = cells.fill_nan(None)
    else:
        known = cells
    counted = pl.DataFrame({"value": known}).group_by("value").len("count").sort("value")
    counted = counted.filter(pl.col("value").is_not_null())
    values = counted["value"]
    indices = (
        known.replace_strict(
            values, pl.Series(range(len(values)), dtype=pl.UInt32), default=len(values)
        ).cast(pl.UInt32)
        if len(values)
        else pl.zeros(len(cells), dtype=pl.UInt32, eager=True)
    )
    return ColumnProfile(
        name=cells.name,
        dtype=dtype,
        values=values.alias(cells.name),
        counts=counted["count"].cast(pl.Int64).to_numpy(),
        nulls=len(cells) - int(counted["count"].sum()),
        value_indices=indices.to_numpy(),
    )
