"""Read tables from CSV and Parquet files and data frames; write records to files."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import Literal

import polars as pl
from polars.io.plugins import register_io_source

from deniable.arrays import Codes, Counts
from deniable.data.batches import AdjustedCounts
from deniable.data.codec import CellSource, Codec, EncodedTable, encode_cells
from deniable.data.complete_records import format_csv_cells, record_dtypes, released_columns
from deniable.data.csv_reader import read_csv
from deniable.data.dataframes import UNNAMED_TABLE, FrameKind, PolarsKind, import_frame
from deniable.data.part_files import list_parts, read_parts
from deniable.data.polars_errors import POLARS_ERRORS, polars_errors_as
from deniable.errors import DataError, InputError, OutputError
from deniable.files import require_regular_file
from deniable.schema.schema import Schema

FileFormat = Literal[".csv", ".csv.gz", ".parquet"]

# Rows per frame passed to the sink, and the length of its queue; both bound the memory.
_SLICE_ROWS = 2**15
_QUEUED_FRAMES = 4

# Rows are unordered, so Parquet's min and max statistics would not let a reader skip row groups.
# Leaving them out saves a quarter of the writing time.
_STATISTICS = {"null_count": True, "min": False, "max": False, "distinct_count": False}

# How often, in seconds, a full queue is tried again; and how long an interrupted sink may take.
_POLL_SECONDS = 0.2
_STOP_SECONDS = 10.0

_BYTE_ORDER_MARK = "\ufeff"

_FILE_FORMATS: tuple[FileFormat, ...] = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class InputTable:
    """Encoded input table.

    Attributes:
        codes: The encoded records.
        kind: The kind of data frame in which to return synthetic records.
        units: The unit of each record: equal numbers mean the same unit. None without a unit.
        adjusted: Confidential: how many cells the schema adjusted, by column.
    """

    codes: Codes = field(repr=False)
    kind: FrameKind = field(repr=False)
    units: Counts | None = field(repr=False)
    adjusted: AdjustedCounts = field(repr=False)


def read_table(source: object, schema: Schema, *, marks_moved: bool = False) -> InputTable:
    """Read and encode a table, without the records that the schema drops.

    Args:
        source: The path of a .csv, .csv.gz or .parquet file, or of a folder of such files; a pandas
            DataFrame, a polars DataFrame or LazyFrame, or an Arrow Table.
        schema: The schema of the table.
        marks_moved: See ``Codec``.

    Raises:
        DataError: The table cannot be read, or does not match the schema. The message shows no
            cell.

    Privacy:
        Neighbours: add or remove one row of the table.
        Covers: each row becomes one record, or none, by its own cells and the schema. A table
            without rows is valid. The kind of frame to return follows from the schema, the library
            of the input and its column names.
        Does not cover: an error, which a single cell may cause.
    """
    if not isinstance(source, str | Path):
        frame, kind = import_frame(source, schema.columns)
        records = Codec(schema, marks_moved).encode_frame(frame, table_name=UNNAMED_TABLE)
        return InputTable(records.codes, kind, records.take_units(), records.adjusted)
    path = Path(source)
    if path.is_dir():
        parts = list_parts(path)
        read = file_reader(parts[0], schema, marks_moved=marks_moved)
        records = read_parts(parts, read, columns=len(schema.attributes))
    else:
        records = file_reader(path, schema, marks_moved=marks_moved)(path)
    return InputTable(records.codes, file_kind(schema), records.take_units(), records.adjusted)


def file_kind(schema: Schema) -> PolarsKind:
    """Return the kind of data frame for records of a table that was read from files."""
    return PolarsKind(tuple(record_dtypes(schema.columns)))


def file_reader(
    path: Path, schema: Schema, *, marks_moved: bool = False
) -> Callable[[Path], EncodedTable]:
    """Choose the function that reads and encodes a file, by the format of ``path``."""
    codec = Codec(schema, marks_moved)
    if infer_format(path, DataError) == ".parquet":
        return partial(_read_parquet, codec=codec)
    return partial(read_csv, codec=codec)


def read_codes(source: object, schema: Schema) -> tuple[Codes, FrameKind]:
    """Read and encode a table; return its codes and the kind of its frame. See ``read_table``."""
    table = read_table(source, schema)
    return table.codes, table.kind


def infer_format(path: Path, error: type[InputError]) -> FileFormat:
    """Infer the format of a table from its file name; raise ``error`` if the suffix is unknown."""
    for file_format in _FILE_FORMATS:
        if path.name.lower().endswith(file_format):
            return file_format
    raise error(f'{path}: the name of a table must end in ".csv", ".csv.gz" or ".parquet"')


def read_parquet(
    path: Path, schema: Schema, *, start: int = 0, rows: int | None = None
) -> EncodedTable:
    """Read and encode a Parquet file, or ``rows`` of its rows from ``start``.

    Raises:
        DataError: See ``read_table``. Rows are numbered from ``start``.
    """
    return _read_parquet(path, Codec(schema), start=start, rows=rows)


def _read_parquet(
    path: Path, codec: Codec, *, start: int = 0, rows: int | None = None
) -> EncodedTable:
    require_regular_file(path, DataError)
    with polars_errors_as(
        DataError,
        f"{path.name} cannot be read as Parquet",
        OSError,
        fix="Check that it is a complete Parquet file and that you may read it.",
    ):
        frame = pl.scan_parquet(path, glob=False)
        if rows is not None:
            frame = frame.slice(start, rows)
        return encode_cells(codec, frame, CellSource(table_name=path.name))


def write_table(
    path: str | Path,
    frames: Iterable[pl.DataFrame],
    schema: Schema,
    *,
    file_format: FileFormat | None = None,
) -> None:
    """Write complete records to a file, frame by frame, in bounded memory.

    This thread makes the frames; another runs the polars sink that writes them. A missing cell is
    written as the first text that means missing; in Parquet, as null. After an error, part of a
    file may be left: write to a temporary name and rename.

    Args:
        path: The output file; .csv, .csv.gz or .parquet.
        frames: The records, as ``decode_records`` returns them.
        schema: The schema of the records.
        file_format: The format of the file; None: by its name.

    Raises:
        OutputError: The file cannot be written there.
    """
    path = Path(path)
    file_format = file_format or infer_format(path, OutputError)
    sink = _FrameSink(path)
    records = register_io_source(sink.read, schema=record_dtypes(schema.columns))
    if file_format == ".parquet":
        write = partial(records.sink_parquet, path, statistics=_STATISTICS)
    else:
        texts = records.with_columns(map(format_csv_cells, released_columns(schema.columns)))
        compression = "gzip" if file_format == ".csv.gz" else "uncompressed"
        # Readers drop one byte order mark. If the first name begins with one, another precedes it.
        first = next(iter(record_dtypes(schema.columns)), "") if schema.header else ""
        bom = first.startswith(_BYTE_ORDER_MARK)
        # The format was given: the file name may end differently.
        sink_csv = partial(
            texts.sink_csv, path, check_extension=False, include_header=schema.header
        )
        write = partial(sink_csv, compression=compression, include_bom=bom)
    with sink.running(write):
        for frame in _in_equal_slices(frames):
            sink.put(frame)


class _FrameSink:
    """A polars sink in a thread of its own, fed with frames through a bounded queue.

    If the producer fails, the sink only sees the end of the frames. An exception in its thread
    could make threads of polars continue, hang, or create the file after it was removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frames: Queue[pl.DataFrame | None] = Queue(_QUEUED_FRAMES)
        self._outcome: Future[None] = Future()

    @contextmanager
    def running(self, write: Callable[[], object]) -> Iterator[None]:
        """Run ``write`` in a thread until the block ends; raise what it raised."""
        thread = Thread(target=self._run, args=(write,), daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            self._put(None)
            thread.join(timeout=_STOP_SECONDS)
            raise
        self._put(None)
        self._require_written()

    def put(self, frame: pl.DataFrame) -> None:
        """Queue a frame; raise at once what stopped the sink."""
        if not self._put(frame):
            self._require_written()

    def read(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,  # noqa: ARG002 - a sink filters nothing and takes all
        rows: int | None,  # noqa: ARG002
        batch: int | None,  # noqa: ARG002
    ) -> Iterator[pl.DataFrame]:
        """Yield the queued frames: the IO source that polars reads."""
        while (frame := self._frames.get()) is not None:
            yield frame if columns is None else frame.select(columns)

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
            self._outcome.set_result(None)
        except BaseException as error:
            self._outcome.set_exception(error)

    def _put(self, frame: pl.DataFrame | None) -> bool:
        """Queue a frame, or None for the end; return False if the sink has stopped already."""
        while not self._outcome.done():
            try:
                self._frames.put(frame, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def _require_written(self) -> None:
        try:
            self._outcome.result()
        except (*POLARS_ERRORS, OSError) as error:
            raise OutputError(
                f"{self._path} cannot be written: {_system_error(error)}. Free some space, or "
                "choose an existing folder with write permission."
            ) from None


def _system_error(error: BaseException) -> str:
    """Describe an error of polars by its system error code; its own message may quote cells."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return os.strerror(int(number[1])) if number else f"polars: {type(error).__name__}"


def _in_equal_slices(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the records in frames of equal size; only the last may be smaller.

    The number of candidates of a block that passed is confidential in mode ``tested``; row groups
    of unequal size would reveal it.
    """
    held: list[pl.DataFrame] = []
    missing = _SLICE_ROWS
    for frame in frames:
        rest = frame
        if held and len(rest):
            held.append(rest.head(missing))
            missing -= len(held[-1])
            rest = rest.slice(len(held[-1]))
            if not missing:
                # Only a slice that spans two frames is copied.
                yield pl.concat(held, rechunk=True)
                held, missing = [], _SLICE_ROWS
        whole = len(rest) - len(rest) % _SLICE_ROWS
        yield from (rest.slice(start, _SLICE_ROWS) for start in range(0, whole, _SLICE_ROWS))
        if len(rest) > whole:
            held.append(rest.slice(whole))
            missing -= len(held[-1])
    if held:
        yield pl.concat(held, rechunk=True)
