"""Codes in bulk: in memory while they are few; when they are many, in a file without a name.

What is in the file is as confidential as the table. It lies in the folder that TMPDIR names, else
in /var/tmp, which is on a disk where /tmp may be memory. As it has no name nobody can open it, and
the system frees it when the last who holds it lets go, however a run ends.
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

# So many bytes of codes are held in memory.
MOST_IN_MEMORY = 2**28

# Rows that are read, looked at and let go together.
_STRETCH = 2**18
# Rows that are read one by one when they are asked for by their numbers.
_FEW_ROWS = 2**16
# So many codes are rather copied than that they hold on to memory asked for and not used.
_FEW_CODES = 2**22
# Combinations are counted by array while there may be no more of them than this.
SMALL_TABLE = 2**20
_CODE_BYTES = np.dtype(CODE).itemsize


class Spooled(np.ndarray[Any, np.dtype[np.uint16]]):
    """Codes in a file: an array like any other, rows contiguous, that nobody can write to.

    Rows asked for by a slice, or by an array of a few numbers, are read from the file into memory
    of their own. For all else the file is mapped, and pages that were looked at count as memory of
    this process until the system wants them back.
    """

    _file: int | None = None

    @classmethod
    def of(cls, file: int, columns: int) -> "Spooled":
        """Return the codes in an open file, which is closed when nobody has them any more."""
        mapped = np.frombuffer(mmap(file, 0, access=ACCESS_READ), dtype=CODE)
        codes = mapped.reshape(-1, columns).view(cls)
        codes._file = file
        weakref.finalize(codes, os.close, file)
        return codes

    def __getitem__(self, index: Any) -> Any:
        rows, column = index if isinstance(index, tuple) and len(index) == 2 else (index, None)
        numbered = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu"
        few = numbered and len(rows) <= _FEW_ROWS
        if self._file is not None and few and isinstance(column, int | np.integer | None):
            found = self._gather(self._file, rows)
            return found if column is None else found[:, column]
        if self._file is not None and isinstance(index, slice) and index.step in (None, 1):
            return self._read(self._file, *index.indices(len(self))[:2])
        return np.asarray(self)[index]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return what was computed of codes: an array like any other."""
        return array[()] if return_scalar else np.asarray(array)

    def _read(self, file: int, start: int, stop: int) -> Codes:
        """Return a run of rows."""
        rows = np.empty((max(stop - start, 0), self.shape[1]), dtype=CODE)
        at, left = start * self.shape[1] * _CODE_BYTES, rows.reshape(-1).view(np.uint8).data
        while left:
            found = os.preadv(file, [left], at)
            at, left = at + found, left[found:]
        return np.asfortranarray(rows)

    def _gather(self, file: int, rows: Indices) -> Codes:
        """Return rows by their numbers."""
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError("a row that is not there")
        width = self.shape[1] * _CODE_BYTES
        found = b"".join([os.pread(file, width, at) for at in (rows * width).tolist()])
        return np.asfortranarray(np.frombuffer(found, dtype=CODE).reshape(-1, self.shape[1]))


class Spool:
    """Takes in codes, as many as come: in memory at first, all of them in a file if need be."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        # Asked for at once, and had as it is written to: nothing is moved when more comes.
        most = MOST_IN_MEMORY // (_CODE_BYTES * max(columns, 1))
        self._held = np.empty((columns, most), dtype=CODE)
        self._rows = 0
        self._file: int | None = None
        self._closer: weakref.finalize[[int], Spool] | None = None

    def add(self, codes: Codes) -> None:
        """Take in some rows.

        Raises:
            OutputError: They do not fit in memory, nor in the folder for temporary files.
        """
        at, self._rows = self._rows, self._rows + len(codes)
        if self._rows <= self._held.shape[1]:
            self._held[:, at : self._rows] = codes.T
            return
        try:
            if self._file is None:
                self._open()
                for some in stretches(self._held[:, :at].T):
                    self._write(some)
                self._held = self._held[:, :0].copy()
            self._write(codes)
        except OSError as error:
            size = self._rows * self._columns * _CODE_BYTES
            raise OutputError(
                f"{size / 1e6:,.0f} MB of codes, more than are held in memory, could not be put in "
                f"a file in {_folder()} ({error.strerror}). Make room there, or name another "
                "folder in TMPDIR, one that is as safe as the table's."
            ) from None

    def codes(self) -> Codes:
        """Return all rows, in the order they came; columns contiguous if they are in memory."""
        if self._file is not None and self._closer is not None:
            self._closer.detach()
            return Spooled.of(self._file, self._columns)
        codes = self._held[:, : self._rows].T
        return np.asfortranarray(codes) if codes.size <= _FEW_CODES else codes

    def _open(self) -> None:
        with tempfile.TemporaryFile(dir=_folder()) as file:
            self._file = os.dup(file.fileno())
        self._closer = weakref.finalize(self, os.close, self._file)

    def _write(self, codes: Codes) -> None:
        """Append some rows to the file."""
        if self._file is None:
            raise InvariantError("there is no file to write codes to")
        left = np.ascontiguousarray(codes).reshape(-1).view(np.uint8).data
        while left:
            left = left[os.write(self._file, left) :]


def stretches(codes: Codes, rows: int = _STRETCH) -> Iterator[Codes]:
    """Yield all rows in order, so many at a time: in memory, wherever they come from."""
    for at in range(0, len(codes), rows):
        yield codes[at : at + rows]


def select_rows(codes: Codes, wanted: Mask) -> Codes:
    """Return some rows: in memory if they are few."""
    if not isinstance(codes, Spooled):
        return np.asfortranarray(codes[wanted])
    spool, at = Spool(codes.shape[1]), 0
    for some in stretches(codes):
        spool.add(some[wanted[at : at + len(some)]])
        at += len(some)
    return spool.codes()


def distinct_rows(
    codes: Codes, columns: Sequence[int], sizes: Sequence[int]
) -> tuple[Codes, Counts]:
    """Return the combinations that occur in some columns, ascending, and how often each does.

    Args:
        codes: A row a record.
        columns: Which columns, the first weighing most in the order.
        sizes: How many values each of these columns has.
    """
    if math.prod(sizes) <= SMALL_TABLE:
        return _distinct_by_array(codes, columns, sizes)
    merged: list[tuple[Codes, Counts]] = []
    for some in stretches(codes):
        merged.append(_sum_equal(some[:, columns], np.ones(len(some), dtype=np.int64)))
        # Each row is merged with as many at least: seldom, then.
        while len(merged) > 1 and 2 * len(merged[-1][1]) >= len(merged[-2][1]):
            merged[-2:] = [_merge(*merged[-2:])]
    while len(merged) > 1:
        merged[-2:] = [_merge(*merged[-2:])]
    return merged[0] if merged else _sum_equal(codes[:0, columns], np.empty(0, np.int64))


def _distinct_by_array(
    codes: Codes, columns: Sequence[int], sizes: Sequence[int]
) -> tuple[Codes, Counts]:
    """Count combinations by an array of all there may be."""
    table = np.zeros(math.prod(sizes), dtype=np.int64)
    for some in stretches(codes):
        cells = np.zeros(len(some), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            cells = cells * size + some[:, column]
        table += np.bincount(cells, minlength=len(table))
    left = found = np.flatnonzero(table)
    rows = np.empty((len(found), len(columns)), dtype=CODE, order="F")
    for at in reversed(range(len(columns))):
        left, rows[:, at] = np.divmod(left, sizes[at])
    return rows, table[found]


def _merge(one: tuple[Codes, Counts], other: tuple[Codes, Counts]) -> tuple[Codes, Counts]:
    return _sum_equal(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def _sum_equal(rows: Codes, counts: Counts) -> tuple[Codes, Counts]:
    """Return the distinct rows, ascending, and the sum of the counts of each."""
    order = np.lexsort(rows.T[::-1])
    rows, counts = rows[order], counts[order]
    is_new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]
    starts = np.flatnonzero(is_new)
    return np.asfortranarray(rows[starts]), np.add.reduceat(counts, starts)


def _folder() -> Path:
    """Return where temporary files of any size may lie."""
    usual = Path("/var/tmp")  # noqa: S108 - the file has no name there
    if not os.environ.get("TMPDIR") and os.access(usual, os.W_OK):
        return usual
    return Path(tempfile.gettempdir())
