"""Open a table and profile its columns: distinct values, their counts, and the value of each row.

All rows are read, but only a few columns at a time, so the table may be larger than memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Counts, Mask
from deniable.data.csv_reader import CsvFile
from deniable.data.dataframes import UNNAMED_TABLE
from deniable.data.declared_columns import PANDAS_INDEX
from deniable.data.partition import choose_rows_per_unit
from deniable.data.polars_errors import polars_errors_as
from deniable.data.table_io import infer_format
from deniable.drafting.cell_patterns import CLASS_NAMES, classify_cells, is_value_class
from deniable.drafting.cell_texts import CountedTexts, count_texts
from deniable.drafting.frame_columns import arrow_columns, pandas_columns
from deniable.drafting.unit_numbers import number_units
from deniable.errors import ConfigError, DataError
from deniable.files import require_regular_file
from deniable.randomness import Rng
from deniable.workers import Progress, no_progress

# Name of the row number column; no column of a table has it.
_ROW_INDEX = "\0row"

# A longer name, or so many names that are numbers or values of their columns, may be cells.
_MAX_NAME_LENGTH = 100
_MIN_NAMES_LIKE_CELLS = 2

# Columns are read in groups of at most this many cells; a column is never split.
_MAX_CELLS_IN_MEMORY = 20_000_000

# Signs that separate cells in files of other programs.
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}

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
        is_file: Whether it is read from a file.
        is_csv: Whether that is a CSV file.
        has_header: Whether that file has a header line.
        kept: Mask of the rows to read; None for all rows.
    """

    label: str
    dtypes: dict[str, pl.DataType]
    frame: pl.LazyFrame = field(repr=False)
    is_file: bool = False
    is_csv: bool = False
    has_header: bool = True
    kept: Mask | None = field(default=None, repr=False)

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
        columns = [_profile_column(cells) for cells in self._read_columns(progress)]
        if not columns[0].rows:
            raise DataError(f"{self.label} has no records: nothing to draft from")
        return columns

    def require_header(self, columns: Sequence[ColumnProfile] = ()) -> None:
        """Ask whether the header line is missing, if the names of a CSV file look like a record.

        Args:
            columns: The profiles of the columns, to look for the names among the values. What
                occurs is an exact answer: without them the line alone is judged, more strictly.

        Raises:
            DataError: The names are like cells. The message shows none, as they may be cells.
        """
        classes = classify_cells(pl.Series(self.names, dtype=pl.String))
        values = sum(is_value_class(CLASS_NAMES[each]) for each in classes.tolist())
        among = [column for column in columns if column.name in column.values]
        long = [at for at, name in enumerate(self.names) if len(name) > _MAX_NAME_LENGTH]
        if 2 * values > len(self.names):
            reason = "most of its names are numbers or dates"
        elif not columns and values >= _MIN_NAMES_LIKE_CELLS:
            reason = "two or more of its names are numbers or dates"
        elif len(among) >= _MIN_NAMES_LIKE_CELLS:
            reason = "two or more of its names are values of their columns, too"
        elif long:
            reason = f"the name of column {long[0] + 1} has more than {_MAX_NAME_LENGTH} characters"
        else:
            return
        raise DataError(
            f"{self.label}: is the header line missing? In the first line, {reason}. If it is a "
            "record, use --no-header; if it holds the names of the columns, use --header (in "
            "Python, header=False or header=True), or write better names into the file."
        )

    def read_texts(self, progress: Progress = no_progress) -> list[CountedTexts]:
        """Read all columns and count their cells as texts; a table without rows is accepted.

        Args:
            progress: Called with a stage, the columns read and the total.

        Raises:
            DataError: The table cannot be read.

        Privacy:
            Neighbours: add or remove one row, which moves one count of each column by one (see
                ``cell_texts.count_texts``).
            Does not cover: that the table can be read.
        """
        return [count_texts(cells, is_csv=self.is_csv) for cells in self._read_columns(progress)]

    def limit_rows_per_unit(self, unit: str, max_rows: int, rng: Rng) -> "OpenedTable":
        """Keep at most ``max_rows`` rows of each unit, at random; drop rows without a unit.

        Rows without a unit would form one unit together, and one of them could displace another.

        Privacy:
            Neighbours: add or remove all rows of one unit. The rows kept then differ by at most
                ``max_rows`` rows (``partition.choose_rows_per_unit``).
            Assumes: ``rng`` is secret. The rows keep their numbers when they are read again; a
                lazy frame may not, so it is computed once.
        """
        once = self if self.is_file else replace(self, frame=self.collect(self.frame).lazy())
        [cells] = once._read_columns(no_progress, (unit,))
        numbers = number_units(cells)
        kept = choose_rows_per_unit(numbers, rng, max_rows=max_rows) & (numbers >= 0)
        return replace(once, kept=kept)

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Run a query. Messages of polars may quote cells, so they are not passed on."""
        fix = (
            "Its message is not shown, as it may quote cells. Check that the file is complete and "
            "that you have permission to read it."
        )
        with polars_errors_as(DataError, f"{self.label} cannot be read", OSError, fix=fix):
            return frame.collect(engine="streaming")

    def _read_columns(
        self, progress: Progress, names: Sequence[str] | None = None
    ) -> Iterator[pl.Series]:
        """Read the kept rows of columns, a few columns at a time, in row order."""
        wanted = self.names if names is None else names
        rows = int(self.collect(self.frame.select(pl.len())).item())
        at_once = max(1, _MAX_CELLS_IN_MEMORY // max(rows, 1))
        numbered = self.frame.with_row_index(_ROW_INDEX)
        progress("read columns", 0, len(wanted))
        for first in range(0, len(wanted), at_once):
            # polars does not always keep the order of the rows, so each carries its number.
            cells = self.collect(numbered.select(_ROW_INDEX, *wanted[first : first + at_once]))
            if not cells[_ROW_INDEX].is_sorted():
                cells = cells.sort(_ROW_INDEX)
            cells = cells.drop(_ROW_INDEX)
            if self.kept is not None:
                cells = cells.filter(pl.Series(self.kept))
            for at, column in enumerate(cells, start=first + 1):
                yield column
                progress("read columns", at, len(wanted))  # the caller has looked at it


def open_table(source: object, *, private: bool = False, header: bool | None = None) -> OpenedTable:
    """Open a table.

    Args:
        source: Path of a .csv, .csv.gz or .parquet file; or a pandas DataFrame, a polars
            DataFrame or LazyFrame, an Arrow Table.
        private: Open it for a private draft: no fact that one row may change, such as a column of
            mixed types or a stored pandas index, is refused or shows.
        header: Whether a CSV file has a header line, if that is known: see ``require_header``.

    Raises:
        DataError: The source is not a table, or cannot be read.
        ConfigError: It is said to have no header line, and is no CSV file.
    """
    if isinstance(source, str | Path):
        opened = _open_file(Path(source), has_header=header is not False)
    else:
        opened = _open_frame(UNNAMED_TABLE, _to_lazy_frame(source, private=private))
    if header is False and not opened.is_csv:
        raise ConfigError("--no-header (header=False) is only for CSV files: others hold names")
    if private and not opened.is_csv:
        dtypes = {n: t for n, t in opened.dtypes.items() if not PANDAS_INDEX.fullmatch(n)}
        opened = replace(opened, dtypes=dtypes)
    if not opened.names:
        raise DataError(f"{opened.label} has no columns: nothing to draft from")
    if "" in opened.names:
        raise DataError(
            f"column {opened.names.index('') + 1} of {opened.label} has no name. Name it, or "
            "remove it. pandas writes such a column unless it is called with index=False."
        )
    return opened


def _open_file(path: Path, *, has_header: bool) -> OpenedTable:
    if infer_format(path, DataError) == ".parquet":
        require_regular_file(path, DataError)
        opened = _open_frame(path.name, pl.scan_parquet(path, glob=False))
        return replace(opened, is_file=True)
    file = CsvFile.open(path) if has_header else CsvFile.open_without_header(path)
    if not file.names:
        raise DataError(
            f"{path.name} is empty. Without a header line the first record shows how many columns "
            "there are: give the file one, or a header line"
        )
    _ask_for_separator(file)
    file.require_full_records()
    dtypes: dict[str, pl.DataType] = {name: pl.String() for name in file.names}
    return OpenedTable(
        label=path.name,
        dtypes=dtypes,
        frame=file.scan(dtypes),
        is_file=True,
        is_csv=True,
        has_header=has_header,
    )


def _ask_for_separator(file: CsvFile) -> None:
    """Refuse a file of one column whose header looks like several, separated by another sign.

    The header is not shown: the first line of a file without one is a record.
    """
    if len(file.names) > 1:
        return
    for sign, name in _OTHER_SEPARATORS.items():
        if sign in file.names[0]:
            written = "\\t" if sign == "\t" else sign
            raise DataError(
                f"{file.path.name} has a single column, and {name} in its header. Are its cells "
                f"separated by {name}? Only commas are read. Convert the file, for example with "
                f'polars.read_csv(path, separator="{written}", infer_schema=False).write_csv(…)'
            )


def require_column(opened: OpenedTable, name: str) -> None:
    """Raise a ConfigError unless the table has the unit column ``name``."""
    if name not in opened.names:
        raise ConfigError(f'unit = "{name}": {opened.label} has no such column')


def is_unsupported(dtype: pl.DataType) -> bool:
    """Whether a schema cannot describe columns of a type."""
    known = isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Date | pl.Datetime)
    return not (known or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null))


def _open_frame(label: str, frame: pl.LazyFrame) -> OpenedTable:
    fix = "Check that it is a complete Parquet file, or a lazy frame that can be collected."
    with polars_errors_as(DataError, f"{label} cannot be read", OSError, fix=fix):
        dtypes = dict(frame.collect_schema())
    return OpenedTable(label=label, dtypes=dtypes, frame=frame)


def _to_lazy_frame(source: Any, *, private: bool) -> pl.LazyFrame:
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return source.lazy()
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "pandas" in libraries and hasattr(source, "columns"):
        return pl.LazyFrame(list(pandas_columns(source, private=private)))
    if "pyarrow" in libraries and hasattr(source, "column_names"):
        return pl.LazyFrame(list(arrow_columns(source, private=private)))
    raise DataError(
        f"a {type(source).__name__} is not a table. Give a path, a pandas or polars DataFrame, or "
        "an Arrow Table."
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
