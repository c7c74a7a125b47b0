"""A CSV file → codes: comma, header line, RFC 4180 quoting, UTF-8; plain or gzip.

First polars reads every column as the type its attribute needs. If that fails, all is read again
as text, so that each fault can be found. The csv module, slower, counts cells and lines.
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

from deniable.data.attributes import Attribute, show_some
from deniable.data.beside import Constant, Described
from deniable.data.codec import (
    POLARS_ERRORS,
    Codec,
    Encoded,
    Source,
    encode_cells,
    require_columns,
)
from deniable.errors import DataError

_BAD_GZIP = (gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file that exists and has a header line."""

    path: Path
    names: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> "CsvFile":
        """Return the file at ``path``.

        Raises:
            DataError: It cannot be read, is empty, or two of its columns have the same name.
        """
        names = next((tuple(cells) for _, cells in _walk(path)), ())
        if names in ((), ("",)):
            raise DataError(f"{path.name} is empty, or its first line is: it needs a header line")
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            numbers = [i + 1 for i, name in enumerate(names) if name == twice[0]]
            raise DataError(
                f"columns {show_some(numbers)} of {path.name} have the same name. Rename or remove "
                "all but one. (If the first line is a record, add a header line above it.)"
            )
        return cls(path, names)

    @property
    def has_records(self) -> bool:
        """Whether anything follows the header."""
        return next(islice(_walk(self.path), 1, None), None) is not None

    @cached_property
    def is_plain(self) -> bool:
        """Whether every line is one record with a cell for each column, and no cell is quoted."""
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
        even = line.str.count_matches(",", literal=True) == len(self.names) - 1
        quoted = line.str.contains('"', literal=True)
        try:
            return bool(frame.select((even & ~quoted).all()).collect(engine="streaming").item())
        except (*POLARS_ERRORS, OSError):
            return False

    def scan(self, dtypes: dict[str, pl.DataType]) -> pl.LazyFrame:
        """Return the file's records, each column read as the given type.

        The header is passed over: polars and the csv module differ about quotes in names.
        """
        return pl.scan_csv(
            self.path,
            has_header=False,
            skip_rows=1,
            schema={name: dtypes[name] for name in self.names},
            empty_string_is_null=False,
            glob=False,
        )

    def require_even_lines(self) -> None:
        """Raise an error unless every record has as many cells as the header.

        Polars fills short records up with empty cells, so it does not find them.
        """
        if self.is_plain:
            return
        width = len(self.names)
        uneven = [
            (line, len(cells))
            for line, cells in _walk(self.path)
            if len(cells) != width and not (width == 1 and not cells)
        ]
        if not uneven:
            return
        line, count = uneven[0]
        cells = "1 cell" if count == 1 else f"{count} cells"
        what = f"has {cells} where the header has {width}" if count else "is blank"
        often = f"{len(uneven):,} records do" if len(uneven) > 1 else "1 record does"
        raise DataError(
            f"line {line:,} of {self.path.name} {what}. {often} not match the header. Quote cells "
            "that hold a comma or a line end, and remove blank or broken lines."
        )

    def line_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers of the lines on which the records at ``rows`` begin."""
        if self.is_plain:
            return [row + 2 for row in rows]
        wanted = set(rows)
        records = enumerate(islice(_walk(self.path), 1, max(rows) + 2))
        line_of = {row: line for row, (line, _) in records if row in wanted}
        return [line_of[row] for row in rows]


def read_csv(path: Path, codec: Codec) -> Encoded:
    """Return the records of a CSV file.

    Raises:
        DataError: The file cannot be read, is no CSV file, or does not fit the schema.
    """
    file = CsvFile.open(path)
    require_columns(codec.columns, file.names, place=path.name)
    source = Source(place=path.name, origin="csv", unit="line", number=file.line_numbers)
    records = _encode_typed(file, codec, source)
    last = next(column for column in codec.columns if column.name == file.names[-1])
    drops = any(_drops(column) for column in codec.columns)
    if records is None or drops or _may_be_empty(last):
        file.require_even_lines()
    return _encode_text(file, codec, source) if records is None else records


def _encode_typed(file: CsvFile, codec: Codec, source: Source) -> Encoded | None:
    """Return the records of a file without fault; None, quickly, of any other."""
    types = {column.name: _dtype(column) for column in codec.columns}
    try:
        return encode_cells(codec, file.scan(types), source)
    except (*POLARS_ERRORS, OSError, DataError):
        return None


def _encode_text(file: CsvFile, codec: Codec, source: Source) -> Encoded:
    """Return the records of a file that could not be read at once, or say why it cannot."""
    frame = file.scan({name: pl.String() for name in file.names})
    try:
        return encode_cells(codec, frame, source)
    except (*POLARS_ERRORS, OSError):
        raise DataError(
            f"{file.path.name} cannot be read as CSV. Put a cell that holds a quotation mark in "
            "quotation marks, and double the mark inside (RFC 4180)."
        ) from None


def _dtype(column: Described) -> pl.DataType:
    """Return the type to read a column as: numbers, unless some text may mean missing.

    All else is read as text in both passes, so that a cell cannot mean two things.
    """
    if not (isinstance(column, Attribute) and (column.is_whole or column.kind == "real")):
        return pl.String()
    texts = [text for text in column.missing if text]
    if len(texts) > len(column.missing_numbers):
        return pl.String()
    return pl.Int64() if column.is_whole else pl.Float64()


def _may_be_empty(column: Described) -> bool:
    """Whether an empty cell passes, so that a record cut short before it would pass too."""
    if isinstance(column, Constant):
        return column.is_empty or _drops(column)
    if not isinstance(column, Attribute):
        return True
    listed = () if column.is_numeric else column.values
    return "" in (*column.missing, *listed) or _drops(column)


def _drops(column: Described) -> bool:
    return getattr(column, "outside", "error") == "drop"


def _open_bytes(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return cast("TextIO", gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _walk(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record, header included, with the line on which it begins."""
    line = 1
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if file.newlines == "\r":
                    raise DataError(f"{path.name} has CR line ends; save it with LF or CRLF")
                yield line, cells
                line = reader.line_num + 1
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; check the path") from None
    except _BAD_GZIP:
        raise DataError(f"{path.name} is not a whole gzip file; compress it again") from None
    except UnicodeDecodeError:
        raise DataError(_describe_encoding(path)) from None
    except csv.Error:
        raise DataError(
            f"the record that begins on line {line:,} of {path.name} is not CSV: a quotation mark "
            "is not closed, or text follows a closed one. Double marks inside cells (RFC 4180)."
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _describe_encoding(path: Path) -> str:
    with _open_bytes(path) as file:
        number = next(i for i, line in enumerate(file, 1) if not _is_utf8(line))
    return f"line {number:,} of {path.name} is not UTF-8; save the file as UTF-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
