"""The Spark engine: read tables on a cluster, and run a task for each block of records."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from deniable.counting.rows import TableRows
from deniable.counting.spark.blob_kernels import RESULT_SCHEMA, BlockKernel
from deniable.counting.spark.code_blobs import (
    BLOB_SCHEMA,
    BlobReader,
    FileEncoder,
    FrameEncoder,
    PartItem,
    item_of,
    task_of,
)
from deniable.counting.spark.spark_errors import (
    TaskFault,
    describe_fault,
    spark_errors,
    unprinted_log,
)
from deniable.counting.spark.spark_rows import SparkRows, batch_size, collect
from deniable.counting.spark.spark_session import session_of
from deniable.data.batches import AdjustedCounts, require_one_type
from deniable.data.dataframes import FrameKind, PolarsKind, released_names
from deniable.data.part_files import add_adjusted, faulty_parts_error, list_parts
from deniable.data.table_io import file_kind, infer_format
from deniable.errors import DataError, InvariantError
from deniable.files import require_regular_file
from deniable.randomness import Expanded
from deniable.schema.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A Parquet file of more bytes is read by several tasks, some row groups each.
_MAX_BYTES_PER_TASK = 2**26
_STATUS = ("blob", "rows", "digest", "notes", "fault")


@dataclass(frozen=True)
class SparkEngine:
    """Runs a product's kernels on a cluster. See ``BlockEngine``."""

    session: "SparkSession" = field(repr=False)

    def read(self, source: object, schema: Schema) -> TableRows:
        """Read and encode a table where it lies; nothing of the size of its rows comes here.

        Args:
            source: The path of a file or of a folder of parts, the same on all machines; or a
                Spark DataFrame.
            schema: The schema of the table.

        Raises:
            DataError: The table cannot be read, or does not match the schema.
            EngineError: The cluster failed.

        Privacy: as ``data.table_io.read_table``; tasks call the same reader.
        """
        key = Expanded.fresh().token("digest")
        if isinstance(source, str | Path):
            items = list_items(Path(source))
            kind: FrameKind = file_kind(schema)
            with spark_errors("read the table"):
                numbers = self.session.range(0, len(items), 1, len(items))
                encoder = FileEncoder(items, schema, key)
                blobs = numbers.mapInArrow(task_of(encoder), BLOB_SCHEMA)
        else:
            items, frame = (), _spark_frame(source)
            kind = PolarsKind(released_names(schema.columns, frame.columns))
            with spark_errors("read the table"):
                chosen, names = _choose_columns(frame, schema)
                encoder_of_rows = FrameEncoder(schema, key, names)
                blobs = chosen.mapInArrow(task_of(encoder_of_rows), BLOB_SCHEMA)
        return self._cache(blobs, items, schema, key, kind)

    def _cache(
        self,
        blobs: "DataFrame",
        items: Sequence[PartItem],
        schema: Schema,
        key: bytes,
        kind: FrameKind,
    ) -> TableRows:
        """Encode all rows, keep the blobs on the cluster, and raise what does not fit."""
        from pyspark import StorageLevel  # noqa: PLC0415

        with (
            spark_errors("read the table"),
            batch_size(blobs.sparkSession, _ROWS_PER_ARROW_BATCH),
        ):
            blobs = blobs.persist(StorageLevel.MEMORY_AND_DISK)
            status: list[dict[str, Any]] = blobs.select(*_STATUS).toArrow().to_pylist()
        faults = [TaskFault.decode(row["fault"]) for row in status if row["fault"] is not None]
        if faults:
            blobs.unpersist()
            self._raise_faults(faults, items, schema)
        adjusted, unit_types = AdjustedCounts(), set[str]()
        for row in sorted(status, key=lambda row: row["blob"]):
            if row["notes"] is not None:
                notes = json.loads(row["notes"])
                add_adjusted(adjusted, notes["adjusted"])
                unit_types |= {notes["unit_type"]} if row["rows"] else set()
        require_one_type(unit_types)
        digests = {row["blob"]: row["digest"] for row in status}
        reader = BlobReader(len(schema.attributes), digests, key)
        rows = {row["blob"]: row["rows"] for row in status}
        tasks = len({item_of(blob) for blob in digests})
        return TableRows(SparkRows(blobs, reader, rows, tasks, (blobs,)), kind, adjusted, self)

    def _raise_faults(
        self, faults: Sequence[TaskFault], items: Sequence[PartItem], schema: Schema
    ) -> None:
        """Raise the faults of tasks, merged: a bug first, then all faults of the table."""
        other = [fault for fault in faults if fault.origin != "data"]
        if other or not items:
            ordered = sorted(other or faults, key=lambda fault: fault.item)
            if other:
                ordered[0].throw()
            raise faulty_parts_error((f"{fault.item}", fault.message) for fault in ordered)
        messages: dict[str, str] = {}
        for fault in sorted(faults, key=lambda fault: fault.item):
            item = items[fault.item]
            messages.setdefault(item.path, fault.message if item.rows is None else "")
        if unclear := [path for path, message in messages.items() if not message]:
            messages |= self._diagnose(unclear, schema)
        raise faulty_parts_error((Path(path).name, what) for path, what in messages.items())

    def _diagnose(self, paths: Sequence[str], schema: Schema) -> dict[str, str]:
        """Read whole files, each in one task, to describe all of their faults in one message."""
        encoder = FileEncoder(tuple(map(PartItem, paths)), schema, Expanded.fresh().token("digest"))
        with spark_errors("read the table"):
            numbers = self.session.range(0, len(paths), 1, len(paths))
            again = numbers.mapInArrow(task_of(encoder), BLOB_SCHEMA)
            rows = again.select("fault").where("fault is not null").toArrow().to_pylist()
        found = {fault.item: fault for fault in (TaskFault.decode(row["fault"]) for row in rows)}
        if set(found) != set(range(len(paths))):
            raise InvariantError("a file has faults in some of its row groups, but not as a whole")
        return {paths[item]: fault.message for item, fault in found.items()}

    def run_blocks(self, kernel: Callable[[int], bytes], blocks: int) -> Iterator[bytes]:
        """Run a task for each block; yield what the kernel returns."""
        with spark_errors("generate records"):
            numbers = self.session.range(0, blocks, 1, blocks)
            results = numbers.mapInArrow(task_of(BlockKernel(kernel)), RESULT_SCHEMA)
        for row in collect(results, "generate records"):
            yield row["result"]

    def frame(self, kernel: Callable[[int], pl.DataFrame], blocks: int) -> "DataFrame":
        """Return the records of all blocks as a Spark DataFrame, drawn when it is used."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

        like = kernel(0).head(0).to_arrow()
        with spark_errors("generate records"):
            types = from_arrow_schema(like.schema)

            return self.session.range(0, blocks, 1, blocks).mapInArrow(_draw_frames(kernel), types)


def _draw_frames(
    kernel: Callable[[int], pl.DataFrame],
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make the function of a task that draws blocks of records.

    Its rows have no column for a fault, so it raises; but nothing that Spark may print has a cell.
    """

    def draw(batches: Iterator[Any]) -> Iterator[Any]:
        fault = None
        with unprinted_log():
            for block in (block for batch in batches for block in batch.column(0).to_pylist()):
                try:
                    drawn = kernel(block).to_arrow().to_batches()
                except Exception as error:
                    fault = describe_fault(error, block)
                    break
                yield from drawn
        if fault is not None:
            fault.throw()

    return draw


# Rows of a DataFrame in an Arrow batch: Spark's default.
_ROWS_PER_ARROW_BATCH = 10_000


def engine_of(source: object, *, accept_open: bool) -> SparkEngine:
    """Open the engine on the session of a DataFrame.

    Raises:
        DataError: The source is no DataFrame of Spark.
        EngineError: Its session is not confidential.
    """
    return SparkEngine(session_of(_spark_frame(source), accept_open=accept_open))


def is_spark_frame(source: object) -> bool:
    """Whether an object is a Spark DataFrame, classic or of Spark Connect."""
    modules = {base.__module__ for base in type(source).__mro__}
    return hasattr(source, "mapInArrow") and any(name.startswith("pyspark.sql") for name in modules)


def _choose_columns(frame: Any, schema: Schema) -> tuple[Any, tuple[str, ...]]:
    """Choose the columns of the schema by their places; return them with their names.

    Spark parses a name: it would take a dot for a field, and cannot have every backtick quoted.
    """
    known = {column.name for column in schema.columns}
    places = [at for at, name in enumerate(frame.columns) if name in known]
    numbered = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    names = tuple(frame.columns[at] for at in places)
    return numbered.select(*(f"c{at}" for at in places)), names


def _spark_frame(source: object) -> Any:
    if is_spark_frame(source):
        return source
    raise DataError(
        f"an object of type {type(source).__name__} is not a table on a cluster. Pass the path of "
        "a file or a folder of parts that all machines see, or a Spark DataFrame."
    )


def list_items(path: Path) -> tuple[PartItem, ...]:
    """List what tasks read: each file, or some row groups of a large Parquet file."""
    path = path.absolute()
    if path.is_dir():
        parts = list_parts(path)
    else:
        infer_format(path, DataError)
        require_regular_file(path, DataError)
        parts = (path,)
    return tuple(item for part in parts for item in _items_of(part))


def _items_of(path: Path) -> Iterator[PartItem]:
    if path.suffix.lower() != ".parquet" or path.stat().st_size <= _MAX_BYTES_PER_TASK:
        yield PartItem(str(path))
        return
    from pyarrow import parquet  # noqa: PLC0415 - large files only

    try:
        footer = parquet.ParquetFile(path).metadata
    except (OSError, ValueError):
        yield PartItem(str(path))  # the reader says what is wrong with it
        return
    start, rows, size = 0, 0, 0
    for at in range(footer.num_row_groups):
        group = footer.row_group(at)
        rows, size = rows + group.num_rows, size + group.total_byte_size
        if size >= _MAX_BYTES_PER_TASK or at == footer.num_row_groups - 1:
            yield PartItem(str(path), start, rows)
            start, rows, size = start + rows, 0, 0
