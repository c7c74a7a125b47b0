"""Tables in and out: CSV and Parquet files, data frames."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import Literal

import polars as pl
from polars.io.plugins import register_io_source

from deniable.arrays import Codes, Counts
from deniable.data.codec import POLARS_ERRORS, Encoded, Source, encode_cells
from deniable.data.columns import csv_text, released
from deniable.data.csv_files import CsvFile, read_csv
from deniable.data.frames import PLACE, Kind, PolarsKind, take_in
from deniable.data.schema import Schema
from deniable.errors import DataError, InputError, OutputError

FileFormat = Literal[".csv", ".csv.gz", ".parquet"]

# Polars lets a number of frames wait for their turn: small ones take less memory.
_SLICE = 2**15

# Records are in no order, so the least and largest value of some of them let no reader skip any:
# they are not looked for, which would be a quarter of the writing.
_STATISTICS = {"null_count": True, "min": False, "max": False, "distinct_count": False}

# How long, in seconds, to wait for a sink before looking up; and for it to end when told to.
_PATIENCE = 0.2
_LAST_BLOCK = 10.0

_FORMATS: tuple[FileFormat, ...] = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class Table:
    """A table that was read.

    Attributes:
        codes: Its records, encoded.
        kind: The kind of frame in which to give records back.
        units: Whose record each is: equal numbers, one unit. None where the schema has no unit.
    """

    codes: Codes = field(repr=False)
    kind: Kind = field(repr=False)
    units: Counts | None = field(repr=False)


def read_table(source: object, schema: Schema) -> Table:
    """Return the records of a table, encoded, without those that the schema asks to drop.

    Args:
        source: The path of a .csv, .csv.gz or .parquet file; or a pandas DataFrame, a polars
            DataFrame or LazyFrame, an Arrow Table.
        schema: What its columns may hold.

    Raises:
        DataError: The table cannot be read, is empty, or does not fit the schema. No cell is
            shown.
    """
    kind: Kind
    if isinstance(source, str | Path):
        path = Path(source)
        place, kind = path.name, PolarsKind.of_schema(schema.columns)
        records = _read_file(path, schema)
    else:
        frame, kind = take_in(source, schema.columns)
        place, records = PLACE, schema.codec.encode_frame(frame, place=PLACE)
    # That all rows were dropped is no reason to stop: whether one is left may depend on one row.
    if not len(records.codes) and not _has_records(source, schema):
        raise DataError(f"{place} has no records. Check that it is the table you mean.")
    return Table(records.codes, kind, records.units)


def read_codes(source: object, schema: Schema) -> tuple[Codes, Kind]:
    """Return the codes of a table, and the kind of its frame; see ``read_table``."""
    table = read_table(source, schema)
    return table.codes, table.kind


def _has_records(source: object, schema: Schema) -> bool:
    """Return whether there was anything to drop."""
    if not isinstance(source, str | Path):
        frame, _ = take_in(source, schema.columns)
    elif format_of(Path(source), DataError) == ".parquet":
        frame = pl.scan_parquet(source)
    else:
        return CsvFile.open(Path(source)).has_records
    return bool(frame.select(pl.len()).collect().item())


def write_table(path: str | Path, frames: Iterable[pl.DataFrame], schema: Schema) -> None:
    """Write whole records to a file, block after block, holding no more than a few blocks.

    A missing cell is written as the first text that means missing; in Parquet, as null. After an
    error, part of a file may be there: write to a temporary name and rename.

    Args:
        path: Where to; .csv, .csv.gz or .parquet.
        frames: The records, as ``Schema.records`` returns them. They are asked for in a thread
            of polars. What they raise is raised here.
        schema: What their columns hold.

    Raises:
        OutputError: The file cannot be written there.
    """
    path = Path(path)
    kind = format_of(path, OutputError)
    blocks = _Blocks(frames)
    records = register_io_source(blocks.read, schema=schema.dtypes)
    if kind == ".parquet":
        sink = partial(records.sink_parquet, path, statistics=_STATISTICS)
    else:
        texts = records.with_columns(map(csv_text, released(schema.columns)))
        compression = "gzip" if kind == ".csv.gz" else "uncompressed"
        sink = partial(texts.sink_csv, path, compression=compression)
    try:
        _run(sink, blocks)
    except (*POLARS_ERRORS, OSError) as error:
        raise OutputError(
            f"{path} cannot be written: {error}. Make room, or choose a folder that exists and "
            "that you may write to."
        ) from None
    if blocks.error is not None:
        raise blocks.error


def _run(sink: Callable[[], object], blocks: "_Blocks") -> None:
    """Run a sink in a thread of its own, so that this one can be interrupted while it waits.

    polars would hold this thread until the next block comes, which may be never.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            sink()
            outcome.set_result(None)
        except BaseException as error:
            outcome.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        while not outcome.done():
            wait([outcome], timeout=_PATIENCE)
    except KeyboardInterrupt:
        blocks.stopped = True
        thread.join(timeout=_LAST_BLOCK)
        raise
    outcome.result()


class _Blocks:
    """Frames for polars to ask for, until told to stop; remembers an error that is theirs.

    Polars is never told of that error, only that there are no more frames: it then ends in good
    order. Where a source fails, some of its threads go on, may create the file after it was
    cleaned up, or wait for ever.
    """

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        self._frames = frames
        self.error: Exception | None = None
        self.stopped = False

    def read(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,  # noqa: ARG002 - a sink filters nothing and takes all
        rows: int | None,  # noqa: ARG002
        batch: int | None,  # noqa: ARG002
    ) -> Iterator[pl.DataFrame]:
        """Yield the frames: what polars calls an IO source."""
        try:
            for frame in _evenly(takewhile(lambda _: not self.stopped, self._frames)):
                yield frame if columns is None else frame.select(columns)
        except Exception as error:
            self.error = error


def _evenly(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the same records in frames of one size, but for the last.

    How many records a block released is confidential in mode ``tested``, and a file's row groups
    would tell it. An empty frame comes through as it is: whoever takes them may want to stop.
    """
    waiting: list[pl.DataFrame] = []
    held = 0
    for frame in frames:
        if not len(frame):
            yield frame
            continue
        rest = frame
        if held:
            waiting.append(frame.head(_SLICE - held))
            held += len(waiting[-1])
            rest = frame.slice(len(waiting[-1]))
        if held == _SLICE:
            # What lies in two blocks is copied, and nothing else.
            yield pl.concat(waiting, rechunk=True)
            waiting, held = [], 0
        whole = len(rest) - len(rest) % _SLICE
        yield from (rest.slice(at, _SLICE) for at in range(0, whole, _SLICE))
        if len(rest) > whole:
            waiting.append(rest.slice(whole))
            held += len(waiting[-1])
    if waiting:
        yield pl.concat(waiting, rechunk=True)


def format_of(path: Path, error: type[InputError]) -> FileFormat:
    """Return the format that a file's name tells; raise ``error`` if it tells none."""
    for kind in _FORMATS:
        if path.name.lower().endswith(kind):
            return kind
    raise error(f'{path}: the name of a table ends in ".csv", ".csv.gz" or ".parquet"')


def _read_file(path: Path, schema: Schema) -> Encoded:
    if format_of(path, DataError) != ".parquet":
        return read_csv(path, schema.codec)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; check the path")
    try:
        frame = pl.scan_parquet(path, glob=False)
        return encode_cells(schema.codec, frame, Source(place=path.name))
    except (*POLARS_ERRORS, OSError) as error:
        raise DataError(
            f"{path.name} cannot be read as Parquet (polars: {type(error).__name__}). Check that "
            "it is a whole Parquet file and that you may read it."
        ) from None
