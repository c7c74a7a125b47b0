"""First facts about a table: its columns, its size, its first rows. Confidential."""

import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeVar

import polars as pl

from deniable.data.declared_columns import require_columns
from deniable.data.polars_errors import polars_errors_as
from deniable.data.table_io import infer_format
from deniable.drafting.column_profile import OpenedTable, open_table
from deniable.drafting.text_columns import MIN_FREQUENT_ROWS
from deniable.errors import DataError
from deniable.schema.schema import Schema
from deniable.studio.root_folder import RootFolder
from deniable.studio.run_process import hash_table

_SHOWN_ROWS = 5
# Characters of a cell that are shown; columns whose first cells are shown.
_SHOWN_CHARACTERS = 40
_SHOWN_COLUMNS = 60
# Facts of files that are remembered.
_MAX_KEPT = 256

Fact = TypeVar("Fact")
_FIX = "Its message is not shown, as it may quote cells. Check the file."


@dataclass(frozen=True, kw_only=True)
class TableHead:
    """Columns, first rows and size of a table.

    Attributes:
        columns: Names of its columns.
        first_rows: Its first rows, as texts, cut to a readable length.
        size: Its bytes.
        may_lack_header: Whether the first line of a CSV file may be a record; it is shown as one.
    """

    columns: tuple[str, ...]
    first_rows: tuple[tuple[str, ...], ...]
    size: int
    may_lack_header: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether not all columns are shown."""
        return len(self.columns) > _SHOWN_COLUMNS

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns whose first cells are shown."""
        return self.columns[:_SHOWN_COLUMNS]


class Remembered:
    """Facts of files, remembered until the file changes: by its path, size and time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], object] = OrderedDict()
        self._lock = Lock()

    def get(self, path: Path, make: Callable[[Path], Fact]) -> Fact:
        """The fact, made once for each state of the file.

        Raises:
            DataError: The file is a link, or was replaced while it was read.
        """
        found = _require_no_link(path)
        key = (make, path, found.st_ino, found.st_size, found.st_mtime_ns)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]  # type: ignore[return-value]
        made = make(path)
        after = _require_no_link(path)
        if (after.st_dev, after.st_ino) != (found.st_dev, found.st_ino):
            raise DataError("this file was replaced while it was read; open the page again")
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return made


def _require_no_link(path: Path) -> os.stat_result:
    """The state of a file, which may have become a link since its path was checked."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise DataError("this file is a link; links are not followed here")
    return found


_REMEMBERED = Remembered()


def table_facts(path: Path, header: str = "") -> TableHead:
    """Look at the head of a table.

    Args:
        path: The table.
        header: Whether the first line of a CSV file is a header: "yes", "no", "" if not known.

    Raises:
        DataError: It cannot be read.
    """
    return _REMEMBERED.get(path, _READ_HEAD.get(header, _read_head))


def describe_misfit(root: RootFolder, table: str, schema: Schema) -> str:
    """Explain why a schema does not fit a table, by their columns; "" if it may, or is not known.

    No row is read. A table that cannot be opened is complained of where it is needed.
    """
    if not schema.header:
        return ""
    try:
        path = root.locate(table)
        names = _REMEMBERED.get(path, _read_names)
    except (DataError, OSError):
        return ""
    try:
        require_columns(schema.columns, names, table_name=path.name)
    except DataError as fault:
        return str(fault)
    return ""


def count_rows(path: Path, header: str = "") -> int:
    """Count the rows of a table. Confidential. ``header`` as for ``table_facts``."""
    return _REMEMBERED.get(path, _COUNT_ROWS.get(header, _count_rows))


def table_hash(path: Path) -> str:
    """SHA-256 of a table. Confidential."""
    return _REMEMBERED.get(path, hash_table)


def frequent_texts(path: Path, column: str, schema: Schema | None = None) -> frozenset[str]:
    """The texts of a column that a draft does not call rare. Confidential.

    Raises:
        DataError: The table cannot be read, or has no such column.
    """
    opened = open_table(path, header=None if schema is None or schema.header else False)
    if schema is not None and not schema.header:
        names = dict(zip((each.name for each in schema.columns), opened.names, strict=False))
        column = names.get(column, "")
    if column not in opened.names:
        raise DataError(f"{opened.label} has no column of this name; draft its schema again")
    with polars_errors_as(DataError, f"{opened.label} cannot be read", fix=_FIX):
        counted = (
            opened.frame.select(pl.col(column).cast(pl.String).alias("text"))
            .group_by("text")
            .len("rows")
            .filter(pl.col("rows") >= MIN_FREQUENT_ROWS)
            .collect()
        )
    return frozenset(each for each in counted["text"].to_list() if each is not None)


def _open_head(path: Path, *, header: bool | None = None) -> tuple[OpenedTable, bool]:
    """Open a table; also return whether its header line may be missing. Then it has none."""
    try:
        opened = open_table(path, header=header)
        if header is None and opened.is_csv:
            opened.require_header()
    except DataError:
        if header is not None or infer_format(path, DataError) == ".parquet":
            raise
        return open_table(path, header=False), True
    return opened, False


def _read_names(path: Path) -> tuple[str, ...]:
    return open_table(path).names


def _read_head(path: Path, *, header: bool | None = None) -> TableHead:
    opened, may_lack_header = _open_head(path, header=header)
    shown = opened.names[:_SHOWN_COLUMNS]
    with polars_errors_as(DataError, f"{opened.label} cannot be read", fix=_FIX):
        head = opened.frame.select(shown).head(_SHOWN_ROWS).collect()
    rows = tuple(tuple(map(_cell_text, row)) for row in head.iter_rows())
    return TableHead(
        columns=opened.names,
        first_rows=rows,
        size=path.stat().st_size,
        may_lack_header=may_lack_header,
    )


def _count_rows(path: Path, *, header: bool | None = None) -> int:
    opened, _ = _open_head(path, header=header)
    with polars_errors_as(DataError, f"{opened.label} cannot be read", fix=_FIX):
        return int(opened.frame.select(pl.len()).collect().item())


# By what was said of the first line; kept, as facts are remembered by their function.
_READ_HEAD = {"yes": partial(_read_head, header=True), "no": partial(_read_head, header=False)}
_COUNT_ROWS = {"yes": partial(_count_rows, header=True), "no": partial(_count_rows, header=False)}


def _cell_text(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def size_text(size: int) -> str:
    """A number of bytes in words.

    >>> size_text(1_500_000)
    '1.5 MB'
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
