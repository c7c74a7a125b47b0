"""Read a CSV file: commas, a header line, RFC 4180 quoting, UTF-8, optionally gzip.

polars first reads every column with the type of its attribute. If that fails, the file is read
again as text, to find every fault. The slower csv module counts cells and lines where needed.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import polars as pl

from deniable.data.codec import (
    POLARS_ERRORS,
    CellSource,
    Codec,
    EncodedTable,
    encode_cells,
    require_columns,
)
from deniable.errors import DataError
from deniable.schema.attribute import Attribute, summarize_values
from deniable.schema.unmodelled_columns import Constant, SchemaColumn

_GZIP_ERRORS = (gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file that exists and has a header line."""

    path: Path
    names: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> "CsvFile":
        """Open a file and read its header.

        Raises:
            DataError: The file cannot be read, is empty, or has two columns of the same name.
        """
        names = next((tuple(cells) for _, cells in _iter_records(path)), ())
        if names in ((), ("",)):
            raise DataError(f"{path.name} or its first line is empty; a header line is needed")
        if duplicates := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            numbers = [i + 1 for i, name in enumerate(names) if name == duplicates[0]]
            raise DataError(
                f"columns {summarize_values(numbers)} of {path.name} have the same name. Rename or "
                "remove all but one. (If the first line is a record, add a header line above it.)"
            )
        return cls(path, names)

    @property
    def has_records(self) -> bool:
        """Whether a record follows the header."""
        return next(islice(_iter_records(self.path), 1, None), None) is not None

    @cached_property
    def is_plain(self) -> bool:
        """Whether every line is one record with one cell per column, and no cell is quoted."""
        frame = pl.scan_csv(
            self.path,
            schema={"line": pl.String},
            has_header=False,
            separator="\0",
            quote_char=None,
            empty_string_is_null=False,
            glob=False,
        )
        line = pl.col("line")
        full = line.str.count_matches(",", literal=True) == len(self.names) - 1
        quoted = line.str.contains('"', literal=True)
        try:
            return bool(frame.select((full & ~quoted).all()).collect(engine="streaming").item())
        except (*POLARS_ERRORS, OSError):
            return False

    def scan(self, dtypes: dict[str, pl.DataType]) -> pl.LazyFrame:
        """Scan the records with polars, each column as the given type.

        The header is skipped: polars and the csv module disagree about quotes in names.
        """
        return pl.scan_csv(
            self.path,
            has_header=False,
            skip_rows=1,
            schema={name: dtypes[name] for name in self.names},
            empty_string_is_null=False,
            glob=False,
        )

    def require_full_records(self) -> None:
        """Raise an error unless every record has as many cells as the header.

        polars pads short records with empty cells, so it does not report them.
        """
        if self.is_plain:
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
        fault = f"has {cells} where the header has {width}" if count else "is blank"
        affected = f"{len(mismatched):,} records do" if len(mismatched) > 1 else "1 record does"
        raise DataError(
            f"line {line:,} of {self.path.name} {fault}. {affected} not match the header. Quote "
            "cells that contain a comma or a line break, and remove blank or broken lines."
        )

    def line_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the line numbers on which the records at ``rows`` begin."""
        if self.is_plain:
            return [row + 2 for row in rows]
        wanted = set(rows)
        records = enumerate(islice(_iter_records(self.path), 1, max(rows) + 2))
        line_of = {row: line for row, (line, _) in records if row in wanted}
        return [line_of[row] for row in rows]


def read_csv(path: Path, codec: Codec) -> EncodedTable:
    """Read and encode the records of a CSV file.

    Raises:
        DataError: The file cannot be read, is not CSV, or does not match the schema.
    """
    file = CsvFile.open(path)
    require_columns(codec.columns, file.names, table_name=path.name)
    source = CellSource(
        table_name=path.name, origin="csv", record_noun="line", record_numbers=file.line_numbers
    )
    records = _encode_typed(file, codec, source)
    last = next(column for column in codec.columns if column.name == file.names[-1])
    any_drops = any(_drops_invalid(column) for column in codec.columns)
    if records is None or any_drops or _may_be_empty(last):
        file.require_full_records()
    return _encode_text(file, codec, source) if records is None else records


def _encode_typed(file: CsvFile, codec: Codec, source: CellSource) -> EncodedTable | None:
    """Encode a file with typed columns; return None if it cannot be read or has any fault."""
    types = {column.name: _csv_dtype(column) for column in codec.columns}
    try:
        return encode_cells(codec, file.scan(types), source)
    except (*POLARS_ERRORS, OSError, DataError):
        return None


def _encode_text(file: CsvFile, codec: Codec, source: CellSource) -> EncodedTable:
    """Encode a file whose columns were all read as text; raise an error that lists its faults."""
    frame = file.scan({name: pl.String() for name in file.names})
    try:
        return encode_cells(codec, frame, source)
    except (*POLARS_ERRORS, OSError):
        raise DataError(
            f"{file.path.name} cannot be read as CSV. Quote cells that contain a quotation mark, "
            "and double the mark inside (RFC 4180)."
        ) from None


def _csv_dtype(column: SchemaColumn) -> pl.DataType:
    """Return the type to read a column as: a number, unless a word such as "NA" means missing.

    All other columns are text in both passes, so that a cell means the same in either.
    """
    if not (isinstance(column, Attribute) and (column.is_whole or column.kind == "real")):
        return pl.String()
    texts = [text for text in column.missing if text]
    if len(texts) > len(column.missing_numbers):
        return pl.String()
    return pl.Int64() if column.is_whole else pl.Float64()


def _may_be_empty(column: SchemaColumn) -> bool:
    """Whether an empty cell is accepted, so that a truncated record would be accepted too."""
    if isinstance(column, Constant):
        return column.is_empty or _drops_invalid(column)
    if not isinstance(column, Attribute):
        return True
    listed = () if column.is_numeric else column.values
    return "" in (*column.missing, *listed) or _drops_invalid(column)


def _drops_invalid(column: SchemaColumn) -> bool:
    return getattr(column, "outside", "error") == "drop"


def _open_bytes(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


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
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; check the path") from None
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
