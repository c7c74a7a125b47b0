"""Code blobs: encoded rows as rows of a Spark DataFrame, a megabyte of codes each.

This module runs in tasks. It reads parts with the reader of the local engine, so that quotes, empty
cells and types mean the same, and it hands codes to kernels.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from deniable.arrays import CODE, Codes, Mask, Words
from deniable.counting.spark.spark_errors import TaskFault, describe_fault, unprinted_log
from deniable.data.codec import CellSource, Codec, EncodedTable, encode_cells
from deniable.data.dataframes import UNNAMED_TABLE, import_frame
from deniable.data.spooled_codes import row_batches
from deniable.data.table_io import file_reader, read_parquet
from deniable.errors import DataError
from deniable.schema.schema import Schema

# Bytes of codes in a blob, which bounds the memory of Spark's messages.
_BLOB_BYTES = 2**20
# Rows of a DataFrame that are encoded at once.
_ROWS_PER_ENCODING = 2**17
# Blobs of an item are numbered from item · _BLOBS_PER_ITEM.
_BLOBS_PER_ITEM = 2**32

BLOB_TYPES = pa.schema(
    {
        "blob": pa.int64(),
        "rows": pa.int64(),
        "digest": pa.binary(),
        "codes": pa.binary(),
        "owners": pa.binary(),
        "notes": pa.string(),
        "fault": pa.string(),
    }
)
BLOB_SCHEMA = (
    "blob long, rows long, digest binary, codes binary, owners binary, notes string, fault string"
)
# Bytes of the hash that stands for an owner, and of the digest of a blob's codes or owners.
OWNER_BYTES = 16
# In place of a row of a blob: only marks that a task has seen the blob.
NO_ROW = -1
_DIGEST_BYTES = 16
_OTHER_ROWS = (
    "the table has other rows when it is computed again: its files were changed, or the DataFrame "
    "is not deterministic. Write it to Parquet files and learn from these"
)


class RowSelection(Protocol):
    """Selects some rows of a blob, the same in every task."""

    def streams(self) -> Any:
        """Open what ``mask`` draws from, once a task."""

    def mask(self, streams: Any, blob: int, rows: int) -> Mask:
        """Mask the selected rows of a blob."""


class TaskKernel(Protocol):
    """What a task does with its Arrow batches; ``types`` has a column ``fault``."""

    @property
    def types(self) -> Any:
        """The Arrow schema of what ``run`` yields."""

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Turn the batches of a partition into others."""


def task_of(kernel: TaskKernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make the function of a task, which never raises or prints: a fault is its last batch."""
    expected = version("deniable")

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        with unprinted_log():
            yield from run_guarded(kernel, batches, expected, version("deniable"))

    return task


def run_guarded(
    kernel: TaskKernel, batches: Iterator[Any], expected: str, found: str
) -> Iterator[Any]:
    """Run a kernel; turn whatever it raises into a batch with a fault."""
    fault = None
    try:
        if expected == found:
            yield from kernel.run(batches)
        else:
            message = f"the executors have deniable {found}, and this program is {expected}"
            fault = TaskFault("version", f"{message}: install the same version everywhere", -1)
    except (GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        fault = describe_fault(error, -1)
    if fault is not None:
        yield fault_batch(kernel.types, fault)


def fault_batch(types: Any, fault: TaskFault) -> Any:
    """Make a batch of one row that has only a fault."""
    columns = {name: [None] for name in types.names} | {"fault": [fault.encode()]}
    return pa.RecordBatch.from_pydict(columns, schema=types)


@dataclass(frozen=True)
class PartItem:
    """What one task reads: a file, or some rows of a large Parquet file."""

    path: str
    start: int = 0
    rows: int | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.path).name

    def read(self, schema: Schema) -> EncodedTable:
        """Read and encode the rows."""
        path = Path(self.path)
        if self.rows is None:
            return file_reader(path, schema)(path)
        return read_parquet(path, schema, start=self.start, rows=self.rows)


@dataclass(frozen=True)
class FileEncoder:
    """Kernel that reads parts of a table and encodes them.

    Attributes:
        items: What to read, by the number of the item.
        schema: The schema of the table.
        key: Keys the digests of rows and units, which are then as secret as the key.
    """

    items: tuple[PartItem, ...] = field(repr=False)
    schema: Schema = field(repr=False)
    key: bytes = field(repr=False)
    types: Any = BLOB_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Encode the items whose numbers are in the batches."""
        for batch in batches:
            for item in batch.column(0).to_pylist():
                try:
                    table = self.items[item].read(self.schema)
                except DataError as error:
                    yield fault_batch(self.types, describe_fault(error, item))
                    continue
                yield from iter_blobs(table, item * _BLOBS_PER_ITEM, self.key)


@dataclass(frozen=True)
class FrameEncoder:
    """Kernel that encodes the rows of a DataFrame.

    Attributes:
        schema: The schema of the table.
        key: Keys the digests of rows and units.
        names: The names of the columns, which Spark knows by numbers.
    """

    schema: Schema = field(repr=False)
    key: bytes = field(repr=False)
    names: tuple[str, ...]
    types: Any = BLOB_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Encode all rows of a partition."""
        from pyspark import TaskContext  # noqa: PLC0415 - only a task has one

        context = TaskContext.get()
        item = context.partitionId() if context is not None else 0
        first, start = item * _BLOBS_PER_ITEM, 0
        for table in _join_batches(batches):
            try:
                encoded = self._encode(table, item, start)
            except DataError as error:
                yield fault_batch(self.types, describe_fault(error, item))
                return
            for blob in iter_blobs(encoded, first, self.key):
                first += 1
                yield blob
            start += len(table)

    def _encode(self, table: Any, item: int, start: int) -> EncodedTable:
        named = _in_utc(table.rename_columns(list(self.names)))
        frame, _ = import_frame(named, self.schema.columns)
        source = CellSource(
            table_name=f"partition {item} of {UNNAMED_TABLE}",
            record_numbers=lambda rows: [start + row + 1 for row in rows],
        )
        return encode_cells(Codec(self.schema), frame, source)


def _in_utc(table: Any) -> Any:
    """Convert times to UTC. Spark stores moments; their zone is the session's, not the table's."""
    for i, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            utc = pa.timestamp(column.type.unit, "UTC")
            table = table.set_column(i, column.name, table.column(i).cast(utc))
    return table


def _join_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Join Arrow batches into tables that are worth the cost of a query; at least one."""
    held: list[Any] = []
    rows, seen = 0, False
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        if rows >= _ROWS_PER_ENCODING:
            yield pa.Table.from_batches(held)
            held, rows, seen = [], 0, True
    if held and (rows or not seen):
        yield pa.Table.from_batches(held)


def iter_blobs(table: EncodedTable, first: int, key: bytes) -> Iterator[Any]:
    """Cut encoded rows into blobs, numbered from ``first``; at least one, also without rows."""
    rows = max(_BLOB_BYTES // max(2 * table.codes.shape[1], 1), 1)
    names = None if table.owners is None else _hash_owners(table.owners.keys(), key)
    unit_type = None if table.owners is None else str(table.owners.dtype)
    notes: str | None = json.dumps({"adjusted": table.adjusted, "unit_type": unit_type})
    start = 0
    for batch in row_batches(table.codes, rows) if len(table.codes) else [table.codes]:
        codes = np.ascontiguousarray(batch.T).tobytes()
        owners = b"" if names is None else names[start : start + len(batch)].tobytes()
        columns = {
            "blob": [first],
            "rows": [len(batch)],
            "digest": [digest(codes, key) + digest(owners, key)],
            "codes": [codes],
            "owners": [owners],
            "notes": [notes],
            "fault": [None],
        }
        yield pa.RecordBatch.from_pydict(columns, schema=BLOB_TYPES)
        notes, first, start = None, first + 1, start + len(batch)


def digest(content: bytes | memoryview, key: bytes) -> bytes:
    """Compute a keyed digest of codes or owners."""
    return hashlib.blake2b(content, key=key, digest_size=_DIGEST_BYTES).digest()


def _hash_owners(owners: pl.Series, key: bytes) -> Any:
    """Compute a keyed hash of each row's owner: the names stay in the task."""
    distinct = owners.unique()
    hashed = [
        hashlib.blake2b(name.encode(), key=key, digest_size=OWNER_BYTES).digest()
        for name in distinct.to_list()
    ]
    table = np.frombuffer(b"".join(hashed), dtype=f"V{OWNER_BYTES}")
    place = owners.to_frame("o").join(
        pl.DataFrame({"o": distinct}).with_row_index("at"), on="o", maintain_order="left"
    )
    return table[place["at"].to_numpy()]


def item_of(blob: int) -> int:
    """Return the number of the item that a blob was read from."""
    return blob // _BLOBS_PER_ITEM


@dataclass(frozen=True)
class BlobReader:
    """Reads codes from blobs; refuses a blob that is not the one first read.

    Attributes:
        columns: The number of columns of codes.
        digests: The digest of each blob, when it was first read.
        key: The key of the digests.
        selection: Selects the rows of one part of a split; None for all.
    """

    columns: int
    digests: Mapping[int, bytes] = field(repr=False)
    key: bytes = field(repr=False)
    selection: RowSelection | None = field(repr=False, default=None)

    def iter_codes(self, batches: Iterator[Any], seen: list[int]) -> Iterator[Codes]:
        """Yield the codes of each blob: the rows of ``kept``, where there is this column.

        Args:
            batches: Arrow batches of blobs.
            seen: Gets the number of each blob, for ``require_all``.

        Raises:
            DataError: A lost blob was computed again, and has other rows.
        """
        streams = None if self.selection is None else self.selection.streams()
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for at, blob in enumerate(columns["blob"].to_pylist()):
                codes = self._codes(blob, columns["codes"][at].as_buffer())
                if "kept" in columns:
                    kept = np.array(columns["kept"][at].as_py() or [], dtype=np.intp)
                    codes = codes[np.sort(kept[kept != NO_ROW])]
                if self.selection is not None:
                    codes = codes[self.selection.mask(streams, blob, len(codes))]
                seen.append(blob)
                yield codes

    def _codes(self, blob: int | None, codes: Any) -> Codes:
        self._require_same(codes, self._digest(blob)[:_DIGEST_BYTES])
        return np.frombuffer(codes, dtype=CODE).reshape(self.columns, -1).T

    def iter_owners(self, batches: Iterator[Any]) -> Iterator[tuple[int, Words]]:
        """Yield the number of each blob and the hashed owners of its rows, two words each.

        Raises:
            DataError: A lost blob was computed again, and has other owners.
        """
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for at, blob in enumerate(columns["blob"].to_pylist()):
                owners = columns["owners"][at].as_buffer()
                self._require_same(owners, self._digest(blob)[_DIGEST_BYTES:])
                yield blob, np.frombuffer(owners, dtype="<u8").reshape(-1, OWNER_BYTES // 8)

    def require_all(self, seen: Iterable[int]) -> None:
        """Require that tasks have seen each blob once, as when it was first read.

        Raises:
            DataError: A lost partition was computed again, and has fewer blobs, or more.
        """
        if sorted(seen) != sorted(self.digests):
            raise DataError(_OTHER_ROWS)

    def _digest(self, blob: int | None) -> bytes:
        """Return the digest of a blob; a fault has no blob, as of a file that has vanished."""
        found = None if blob is None else self.digests.get(blob)
        if found is None:
            raise DataError(_OTHER_ROWS)
        return found

    def _require_same(self, content: Any, expected: bytes) -> None:
        if content is None or digest(memoryview(content), self.key) != expected:
            raise DataError(_OTHER_ROWS)
