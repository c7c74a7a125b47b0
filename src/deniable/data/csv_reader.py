"""Read a CSV file: commas, a header line or none, RFC 4180 quoting, UTF-8, optionally gzip.

polars first reads every column with the type of its attribute. If that fails, the file is read
again as text, to find every fault. The slower csv module counts cells and lines where needed.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Indices
from deniable.data.cell_faults import count_affected
from deniable.data.codec import (
    CellSource,
    Codec,
    EncodedTable,
    encode_cells,
)
from deniable.data.complete_records import released_columns
from deniable.data.declared_columns import require_columns
from deniable.data.polars_errors import POLARS_ERRORS, polars_errors_as
from deniable.errors import DataError
from deniable.files import require_regular_file
from deniable.schema.attribute import Attribute, summarize_values
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import SchemaColumn

_FIRST_RECORD = (
    "(If the first line is a record, the header line is missing: draft a schema with init "
    "--no-header.)"
)
_GZIP_ERRORS = (gzip.BadGzipFile, zlib.error, EOFError)

# Bytes that are checked together.
_CHUNK_BYTES = 2**22
_COMMA, _LINE_FEED, _QUOTE = b',\n"'
# What may precede a mark that opens a quoted cell, and follow one that closes it. A doubled mark
# inside a cell closes it and opens it again.
_BEFORE_OPENING = np.frombuffer(b',\n"', dtype=np.uint8)
_AFTER_CLOSING = np.frombuffer(b',\r\n"', dtype=np.uint8)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file that exists, and the names of its columns.

    Attributes:
        path: The file.
        names: The names of its columns: its first line, if it has a header line.
        has_header: Whether it has one.
    """

    path: Path
    names: tuple[str, ...]
    has_header: bool = True

    @classmethod
    def open(cls, path: Path) -> "CsvFile":
        """Open a file and read its header.

        Raises:
            DataError: The file cannot be read, is empty, or has two columns of the same name.
        """
        require_regular_file(path, DataError)
        names = next((tuple(cells) for _, cells in _iter_records(path)), ())
        if names in ((), ("",)):
            raise DataError(f"{path.name} or its first line is empty; a header line is needed")
        if "" in names:
            raise DataError(
                f"column {names.index('') + 1} of {path.name} has no name. Name it, or remove it: "
                "the header may end in a comma, or pandas may have written its index. "
                f"{_FIRST_RECORD}"
            )
        if duplicates := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            numbers = [i + 1 for i, name in enumerate(names) if name == duplicates[0]]
            raise DataError(
                f"columns {summarize_values(numbers)} of {path.name} have the same name. Rename or "
                f"remove all but one. {_FIRST_RECORD}"
            )
        return cls(path, names)

    @classmethod
    def open_without_header(cls, path: Path) -> "CsvFile":
        """Open a file without a header line; its columns become column_1 and so on.

        Raises:
            DataError: The file cannot be read.
        """
        require_regular_file(path, DataError)
        first = next((cells for _, cells in _iter_records(path)), [])
        return cls(path, tuple(f"column_{i + 1}" for i in range(len(first))), has_header=False)

    @classmethod
    def open_described(cls, path: Path, schema: Schema) -> "CsvFile":
        """Open a file of a table that a schema describes, or of records of one.

        Without a header line the columns are those of the schema, in their order; records do not
        have all of them.

        Raises:
            DataError: See ``open``.
        """
        if schema.header:
            return cls.open(path)
        every, released = (
            tuple(column.name for column in columns)
            for columns in (schema.columns, released_columns(schema.columns))
        )
        width = len(cls.open_without_header(path).names)
        return cls(path, released if width == len(released) else every, has_header=False)

    @property
    def has_records(self) -> bool:
        """Whether the file has a record."""
        records = islice(_iter_records(self.path), int(self.has_header), None)
        return next(records, None) is not None

    @cached_property
    def has_full_lines(self) -> bool:
        """Whether every line is one record with one cell per column; a header included.

        False where bytes alone cannot tell, as with a line break in a quoted cell.
        """
        try:
            with _open_bytes(self.path) as file:
                return all(_is_full(lines, len(self.names)) for lines in _iter_lines(file))
        except (*_GZIP_ERRORS, OSError):
            return False

    def scan(self, dtypes: dict[str, pl.DataType]) -> pl.LazyFrame:
        """Scan the records with polars, each column as the given type, or as text.

        The header is skipped: polars and the csv module disagree about quotes in names.
        """
        types = {name: dtypes.get(name, pl.String()) for name in self.names}
        if not self.has_header and not self.has_records:
            return pl.LazyFrame(schema=types)  # polars takes an empty file for a broken one
        return pl.scan_csv(
            self.path,
            has_header=False,
            skip_rows=int(self.has_header),
            schema=types,
            empty_string_is_null=False,
            glob=False,
        )

    def require_full_records(self) -> None:
        """Raise an error unless every record has as many cells as there are columns.

        polars does not report them all: it pads short records with empty cells, and ignores the
        surplus cells of a long one if a column, such as an identifier, is not read.
        """
        if self.has_full_lines:
            return
        width = len(self.names)
        mismatched = [
            (line, len(cells))
            for line, cells in _iter_records(self.path)
            if len(cells) != width and not (width == 1 and not cells)
        ]
        if not mismatched:
            return
        line, count = mismatched[0]
        cells = "1 cell" if count == 1 else f"{count} cells"
        expected = "the header has" if self.has_header else "the table has"
        fault = f"has {cells} where {expected} {width}" if count else "is blank"
        affected = count_affected(len(mismatched), "record", one="does", several="do")
        raise DataError(
            f"line {line:,} of {self.path.name} {fault}. {affected} not match "
            f"{'the header' if self.has_header else 'its columns'}. Quote "
            "cells that contain a comma or a line break, and remove blank or broken lines, and "
            "commas at the end of lines."
        )

    def line_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the line numbers on which the records at ``rows`` begin."""
        if self.has_full_lines:
            return [row + 1 + self.has_header for row in rows]
        wanted = set(rows)
        first = int(self.has_header)
        records = enumerate(islice(_iter_records(self.path), first, first + max(rows) + 1))
        line_of = {row: line for row, (line, _) in records if row in wanted}
        return [line_of[row] for row in rows]


def read_csv(path: Path, codec: Codec) -> EncodedTable:
    """Read and encode the records of a CSV file.

    Raises:
        DataError: The file cannot be read, is not CSV, or does not match the schema.
    """
    file = CsvFile.open_described(path, codec.schema)
    require_columns(codec.columns, file.names, table_name=path.name)
    source = CellSource(
        table_name=path.name, origin="csv", record_noun="line", record_numbers=file.line_numbers
    )
    file.require_full_records()
    types = {column.name: csv_dtype(column) for column in codec.columns}
    with suppress(*POLARS_ERRORS, OSError, DataError):
        return encode_cells(codec, file.scan(types), source)
    return _encode_text(file, codec, source)


def _encode_text(file: CsvFile, codec: Codec, source: CellSource) -> EncodedTable:
    """Encode a file whose columns were all read as text; raise an error that lists its faults."""
    frame = file.scan({name: pl.String() for name in file.names})
    with polars_errors_as(
        DataError,
        f"{file.path.name} cannot be read as CSV",
        OSError,
        fix="Quote cells that contain a quotation mark, and double the mark inside (RFC 4180).",
    ):
        return encode_cells(codec, frame, source)


def csv_dtype(column: SchemaColumn) -> pl.DataType:
    """Return the type to read a column as: a number, unless a word such as "NA" means missing.

    All other columns are text in both passes, so that a cell means the same in either.
    """
    if not (isinstance(column, Attribute) and (column.is_whole or column.kind == "real")):
        return pl.String()
    texts = [text for text in column.missing if text]
    if len(texts) > len(column.missing_numbers):
        return pl.String()
    return pl.Int64() if column.is_whole else pl.Float64()


def _open_bytes(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _iter_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file in chunks of complete lines, each with its line break."""
    rest = b""
    while chunk := file.read(_CHUNK_BYTES):
        lines, found, tail = chunk.rpartition(b"\n")
        if found:
            yield rest + lines + found
            rest = tail
        else:
            rest += chunk
    if rest:
        yield rest + b"\n"


def _is_full(lines: bytes, width: int) -> bool:
    """Whether each line is UTF-8 and one well-quoted record of ``width`` cells."""
    if b"\0" in lines or not _is_utf8(lines):
        return False
    content = np.frombuffer(lines, dtype=np.uint8)
    commas, ends = (np.flatnonzero(content == mark) for mark in (_COMMA, _LINE_FEED))
    if b'"' in lines:
        marks = np.flatnonzero(content == _QUOTE)
        if not _is_well_quoted(content, marks):
            return False
        # A byte after an odd number of marks is inside a quoted cell.
        commas, quoted_ends = (at[np.searchsorted(marks, at) % 2 == 0] for at in (commas, ends))
        if len(quoted_ends) != len(ends):
            return False
    if len(commas) != len(ends) * (width - 1):
        return False
    if width == 1:
        return True
    by_line = commas.reshape(len(ends), width - 1)
    return bool((by_line[:, -1] < ends).all() and (by_line[1:, 0] > ends[:-1]).all())


def _is_well_quoted(content: NDArray[np.uint8], marks: Indices) -> bool:
    """Whether quotation marks only enclose whole cells, or are doubled inside them (RFC 4180)."""
    if len(marks) % 2:
        return False
    opening, closing = marks[::2], marks[1::2]
    before = content[opening[opening > 0] - 1]
    return bool(np.isin(before, _BEFORE_OPENING).all()) and bool(
        np.isin(content[closing + 1], _AFTER_CLOSING).all()
    )


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return cast("TextIO", gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _iter_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each record, header included."""
    line = 1
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if file.newlines == "\r":
                    raise DataError(f"{path.name} has CR line endings; save it with LF or CRLF")
                yield line, cells
                line = reader.line_num + 1
    except _GZIP_ERRORS:
        raise DataError(f"{path.name} is not a complete gzip file; compress it again") from None
    except UnicodeDecodeError:
        raise DataError(_describe_bad_encoding(path)) from None
    except csv.Error:
        raise DataError(
            f"the record that begins on line {line:,} of {path.name} is not CSV: a quotation mark "
            "is not closed, or text follows the closing one. Double marks inside cells (RFC 4180)."
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _describe_bad_encoding(path: Path) -> str:
    with _open_bytes(path) as file:
        number = next(i for i, line in enumerate(file, 1) if not _is_utf8(line))
    return f"line {number:,} of {path.name} is not UTF-8; save the file as UTF-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
