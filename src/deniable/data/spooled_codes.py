"""Codes of large tables, spooled to an anonymous temporary file beyond 256 MiB.

The file is as confidential as the table. It is created in the folder ``TMPDIR``, by default
/var/tmp, which is on disk where /tmp may be in memory. It has no name, so no other process can open
it, and the system frees it when its last descriptor is closed, however the run ends.
"""

import math
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Indices, Mask
from deniable.errors import InvariantError, OutputError

# Bytes of codes held in memory by one spool.
MAX_BYTES_IN_MEMORY = 2**28

# Rows read into memory at a time.
_ROWS_PER_BATCH = 2**18
# Indexing a file with up to this many row numbers reads each row with a system call of its own.
_MAX_ROWS_READ_SINGLY = 2**16
# Up to this many codes are copied, to free the unused rest of the spool's buffer.
_MAX_CODES_COPIED = 2**22
# Up to this many possible combinations of values are counted in a dense array.
MAX_DENSE_COMBINATIONS = 2**20
_CODE_BYTES = np.dtype(CODE).itemsize


class SpooledCodes(np.ndarray[Any, np.dtype[np.uint16]]):
    """Read-only array of codes in a file, with contiguous rows.

    A slice of rows, or a short array of row numbers, is read from the file into new memory. Any
    other access goes through a memory map, whose pages count as memory of this process until the
    system reclaims them.
    """

    _file: int | None = None

    @classmethod
    def of(cls, file: int, columns: int) -> "SpooledCodes":
        """Map the codes in an open file; close it when the array is garbage-collected."""
        mapped = np.frombuffer(mmap(file, 0, access=ACCESS_READ), dtype=CODE)
        codes = mapped.reshape(-1, columns).view(cls)
        codes._file = file
        weakref.finalize(codes, os.close, file)
        return codes

    def __getitem__(self, index: Any) -> Any:
        rows, column = index if isinstance(index, tuple) and len(index) == 2 else (index, None)
        by_number = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu"
        few = by_number and len(rows) <= _MAX_ROWS_READ_SINGLY
        if self._file is not None and few and isinstance(column, int | np.integer | None):
            codes = self._gather(self._file, rows)
            return codes if column is None else codes[:, column]
        if self._file is not None and isinstance(index, slice) and index.step in (None, 1):
            return self._read(self._file, *index.indices(len(self))[:2])
        return np.asarray(self)[index]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return results of computations as plain arrays."""
        return array[()] if return_scalar else np.asarray(array)

    def _read(self, file: int, start: int, stop: int) -> Codes:
        """Read consecutive rows."""
        rows = np.empty((max(stop - start, 0), self.shape[1]), dtype=CODE)
        offset, unread = start * self.shape[1] * _CODE_BYTES, rows.reshape(-1).view(np.uint8).data
        while unread:
            size = os.preadv(file, [unread], offset)
            offset, unread = offset + size, unread[size:]
        return np.asfortranarray(rows)

    def _gather(self, file: int, rows: Indices) -> Codes:
        """Read rows by their numbers."""
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"row number outside 0..{len(self) - 1}")
        width = self.shape[1] * _CODE_BYTES
        read = b"".join([os.pread(file, width, offset) for offset in (rows * width).tolist()])
        return np.asfortranarray(np.frombuffer(read, dtype=CODE).reshape(-1, self.shape[1]))


class CodeSpool:
    """Append-only buffer of codes: in memory at first, moved to a file when it grows too large."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        # Allocated in full at once, so that appending never copies. The system only commits the
        # pages that are written to.
        capacity = MAX_BYTES_IN_MEMORY // (_CODE_BYTES * max(columns, 1))
        self._held = np.empty((columns, capacity), dtype=CODE)
        self._rows = 0
        self._file: int | None = None
        self._closer: weakref.finalize[[int], CodeSpool] | None = None

    def add(self, codes: Codes) -> None:
        """Append rows.

        Raises:
            OutputError: The rows fit neither in memory nor in the folder for temporary files.
        """
        start, self._rows = self._rows, self._rows + len(codes)
        if self._rows <= self._held.shape[1]:
            self._held[:, start : self._rows] = codes.T
            return
        try:
            if self._file is None:
                self._open()
                for batch in row_batches(self._held[:, :start].T):
                    self._write(batch)
                self._held = self._held[:, :0].copy()
            self._write(codes)
        except OSError as error:
            size = self._rows * self._columns * _CODE_BYTES
            raise OutputError(
                f"cannot write {size / 1e6:,.0f} MB of codes, too many to hold in memory, to a "
                f"temporary file in {_temporary_folder()} ({error.strerror}). Free disk space, or "
                "set TMPDIR to another folder that is as safe as the table's."
            ) from None

    def codes(self) -> Codes:
        """Return all rows in the order they were added; columns contiguous if in memory."""
        if self._file is not None and self._closer is not None:
            self._closer.detach()
            return SpooledCodes.of(self._file, self._columns)
        codes = self._held[:, : self._rows].T
        return np.asfortranarray(codes) if codes.size <= _MAX_CODES_COPIED else codes

    def _open(self) -> None:
        with tempfile.TemporaryFile(dir=_temporary_folder()) as file:
            self._file = os.dup(file.fileno())
        self._closer = weakref.finalize(self, os.close, self._file)

    def _write(self, codes: Codes) -> None:
        """Append rows to the file."""
        if self._file is None:
            raise InvariantError("there is no file to write codes to")
        unwritten = np.ascontiguousarray(codes).reshape(-1).view(np.uint8).data
        while unwritten:
            unwritten = unwritten[os.write(self._file, unwritten) :]


def row_batches(codes: Codes, rows: int = _ROWS_PER_BATCH) -> Iterator[Codes]:
    """Yield all rows in order, in batches that are in memory."""
    for start in range(0, len(codes), rows):
        yield codes[start : start + rows]


def select_rows(codes: Codes, mask: Mask) -> Codes:
    """Return the rows where ``mask`` is true; in memory if they fit."""
    if not isinstance(codes, SpooledCodes):
        return np.asfortranarray(codes[mask])
    spool, start = CodeSpool(codes.shape[1]), 0
    for batch in row_batches(codes):
        spool.add(batch[mask[start : start + len(batch)]])
        start += len(batch)
    return spool.codes()


def count_distinct_rows(
    codes: Codes, columns: Sequence[int], sizes: Sequence[int]
) -> tuple[Codes, Counts]:
    """Count the distinct combinations of values in some columns.

    Args:
        codes: Encoded records.
        columns: The columns to combine, most significant first.
        sizes: The number of values of each of these columns.

    Returns:
        The combinations that occur, in lexicographic order, and their counts.
    """
    if math.prod(sizes) <= MAX_DENSE_COMBINATIONS:
        return _count_distinct_dense(codes, columns, sizes)
    merged: list[tuple[Codes, Counts]] = []
    for batch in row_batches(codes):
        merged.append(_sum_equal_rows(batch[:, columns], np.ones(len(batch), dtype=np.int64)))
        # Merge only runs of similar length, as merge sort does: each row is merged O(log n) times.
        while len(merged) > 1 and 2 * len(merged[-1][1]) >= len(merged[-2][1]):
            merged[-2:] = [_merge_counts(*merged[-2:])]
    while len(merged) > 1:
        merged[-2:] = [_merge_counts(*merged[-2:])]
    return merged[0] if merged else _sum_equal_rows(codes[:0, columns], np.empty(0, np.int64))


def _count_distinct_dense(
    codes: Codes, columns: Sequence[int], sizes: Sequence[int]
) -> tuple[Codes, Counts]:
    """Count combinations in a dense array of all possible ones."""
    table = np.zeros(math.prod(sizes), dtype=np.int64)
    for batch in row_batches(codes):
        cells = np.zeros(len(batch), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            cells = cells * size + batch[:, column]
        table += np.bincount(cells, minlength=len(table))
    rest = occupied = np.flatnonzero(table)
    rows = np.empty((len(occupied), len(columns)), dtype=CODE, order="F")
    for j in reversed(range(len(columns))):
        rest, rows[:, j] = np.divmod(rest, sizes[j])
    return rows, table[occupied]


def _merge_counts(one: tuple[Codes, Counts], other: tuple[Codes, Counts]) -> tuple[Codes, Counts]:
    return _sum_equal_rows(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def _sum_equal_rows(rows: Codes, counts: Counts) -> tuple[Codes, Counts]:
    """Return the distinct rows, ascending, and the sum of each one's counts."""
    order = np.lexsort(rows.T[::-1])
    rows, counts = rows[order], counts[order]
    is_new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]
    starts = np.flatnonzero(is_new)
    return np.asfortranarray(rows[starts]), np.add.reduceat(counts, starts)


def _temporary_folder() -> Path:
    """Return the folder for temporary files of any size."""
    on_disk = Path("/var/tmp")  # noqa: S108 - the file has no name there
    if not os.environ.get("TMPDIR") and os.access(on_disk, os.W_OK):
        return on_disk
    return Path(tempfile.gettempdir())
