"""A table as a draft sees it: for each column its distinct values, and which of them a row has.

All rows are read, a few columns at a time, so that a table larger than memory as text still fits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.data.codec import POLARS_ERRORS
from deniable.data.csv_files import CsvFile
from deniable.data.tables import format_of
from deniable.errors import ConfigError, DataError

PLACE = "the table"

# So many cells are in memory at once; a column is never cut.
_MOST_CELLS = 20_000_000

Places = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table. Confidential.

    Attributes:
        name: Its header.
        dtype: What it is held as; that of a CSV file is text.
        values: Its distinct values, ascending, null left out.
        counts: How many rows have each.
        nulls: How many have none.
        places: For each row the place of its value in ``values``; null is one beyond the last.
    """

    name: str
    dtype: pl.DataType
    values: pl.Series = field(repr=False)
    counts: Counts = field(repr=False)
    nulls: int
    places: Places = field(repr=False)

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.places)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A table that can be read: its columns' names and types, and how to ask for some of them.

    Attributes:
        place: What to call it in a message.
        dtypes: The type of each column.
        frame: Its rows.
    """

    place: str
    dtypes: dict[str, pl.DataType]
    frame: pl.LazyFrame = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(self.dtypes)

    def read(self, watch: Callable[[int, int], None] | None = None) -> list[Column]:
        """Return all columns.

        Args:
            watch: Is told how many columns were read, and of how many.

        Raises:
            DataError: The table cannot be read, or has no rows.
        """
        rows = int(self.collect(self.frame.select(pl.len())).item())
        if not rows:
            raise DataError(f"{self.place} has no records: there is nothing to draft from")
        at_once = max(1, _MOST_CELLS // rows)
        columns: list[Column] = []
        for first in range(0, len(self.names), at_once):
            names = self.names[first : first + at_once]
            cells = self.collect(self.frame.select(names))
            columns += [_column(cells[name]) for name in names]
            if watch is not None:
                watch(len(columns), len(self.names))
        return columns

    def first_rows(self, unit: str, most: int) -> "Opened":
        """Return the table with the first ``most`` rows of each unit only; without it, none.

        Rows that do not say whose they are would be one unit together, and one of them could
        displace another.
        """
        said = pl.col(unit).is_not_null() & (pl.col(unit).cast(pl.String) != "")
        number = pl.int_range(pl.len()).over(unit)
        kept = self.frame.filter(said).filter(number < most)
        return Opened(place=self.place, dtypes=self.dtypes, frame=kept)

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Return the result of a query; what polars says may quote a cell, and is not passed on."""
        try:
            return frame.collect(engine="streaming")
        except (*POLARS_ERRORS, OSError) as error:
            raise DataError(
                f"{self.place} cannot be read (polars: {type(error).__name__}; its message is not "
                "shown, as it may quote cells). Check that the file is whole and that you may "
                "read it."
            ) from None


def open_table(source: object) -> Opened:
    """Return a table that can be read.

    Args:
        source: The path of a .csv, .csv.gz or .parquet file; or a pandas DataFrame, a polars
            DataFrame or LazyFrame, an Arrow Table.

    Raises:
        DataError: It is none, or cannot be read.
    """
    opened = _open_file(Path(source)) if isinstance(source, str | Path) else None
    opened = opened or _opened(PLACE, _frame_of(source))
    if "" in opened.names:
        raise DataError(
            f"column {opened.names.index('') + 1} of {opened.place} has no name. Name it, or "
            "remove it: pandas writes such a column unless told index=False."
        )
    return opened


def _open_file(path: Path) -> Opened:
    if format_of(path, DataError) == ".parquet":
        if not path.is_file():
            raise DataError(f"{path}: there is no such file; check the path")
        return _opened(path.name, pl.scan_parquet(path, glob=False))
    file = CsvFile.open(path)
    if not file.has_records:
        raise DataError(f"{path.name} has a header and no records: there is nothing to draft from")
    file.require_even_lines()
    dtypes: dict[str, pl.DataType] = {name: pl.String() for name in file.names}
    return Opened(place=path.name, dtypes=dtypes, frame=file.scan(dtypes))


def require_column(opened: Opened, name: str) -> None:
    """Raise an error unless the table has this column."""
    if name not in opened.names:
        raise ConfigError(f'unit = "{name}": {opened.place} has no such column')


def is_foreign(dtype: pl.DataType) -> bool:
    """Whether a type has no description here."""
    known = isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Date | pl.Datetime)
    return not (known or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null))


def _opened(place: str, frame: pl.LazyFrame) -> Opened:
    try:
        dtypes = dict(frame.collect_schema())
    except (*POLARS_ERRORS, OSError) as error:
        raise DataError(
            f"{place} cannot be read (polars: {type(error).__name__}). Check that it is a whole "
            "Parquet file, or that the lazy frame can be collected."
        ) from None
    if not dtypes:
        raise DataError(f"{place} has no columns: there is nothing to draft from")
    return Opened(place=place, dtypes=dtypes, frame=frame)


def _frame_of(source: Any) -> pl.LazyFrame:
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
        f"a {type(source).__name__} is no table. Give a path, a pandas or polars DataFrame, or an "
        "Arrow Table."
    )


def _pandas_columns(source: Any) -> Iterator[pl.Series]:
    for i, label in enumerate(source.columns):
        try:
            column = pl.from_pandas(source.iloc[:, i], nan_to_null=True)
        except ImportError:
            raise DataError("pandas frames need pyarrow: pip install 'deniable[frames]'") from None
        except (*POLARS_ERRORS, TypeError, ValueError, OverflowError):
            raise DataError(
                f'column "{label}" of {PLACE} holds values of several types; convert it to one, '
                'as with frame[name].astype("str")'
            ) from None
        yield column.alias(str(label))


def _require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"two columns of {PLACE} have the same name; rename or remove one")


def _column(cells: pl.Series) -> Column:
    """Return a column by its distinct values."""
    dtype = cells.dtype
    if is_foreign(dtype):
        # Nothing can be said of such cells, but that they are there.
        whole = cells.is_null().not_()
    elif isinstance(dtype, pl.Categorical | pl.Enum):
        whole = cells.cast(pl.String)
    elif dtype.is_float():
        whole = cells.fill_nan(None)
    else:
        whole = cells
    counted = pl.DataFrame({"value": whole}).group_by("value").len("count").sort("value")
    known = counted.filter(pl.col("value").is_not_null())
    values = known["value"]
    places = (
        whole.replace_strict(
            values, pl.Series(range(len(values)), dtype=pl.UInt32), default=len(values)
        ).cast(pl.UInt32)
        if len(values)
        else pl.zeros(len(cells), dtype=pl.UInt32, eager=True)
    )
    return Column(
        name=cells.name,
        dtype=dtype,
        values=values.alias(cells.name),
        counts=known["count"].cast(pl.Int64).to_numpy(),
        nulls=len(cells) - int(known["count"].sum()),
        places=places.to_numpy(),
    )
