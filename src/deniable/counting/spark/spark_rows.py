"""Rows on a cluster: code blobs in a cached DataFrame, counted by tasks. See ``Rows``."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.arrays import Counts
from deniable.counting.contingency import ContingencyTable, Query
from deniable.counting.prefix_counts import FrequentPrefixes
from deniable.counting.spark.blob_kernels import (
    PREFIX_SCHEMA,
    SEEN,
    TALLY_SCHEMA,
    PrefixKernel,
    RowCountKernel,
    SumKernel,
    TallyKernel,
    add_tally,
    unpack_prefixes,
)
from deniable.counting.spark.code_blobs import BlobReader, TaskKernel, task_of
from deniable.counting.spark.row_selection import (
    UNIT_SCHEMA,
    PartSelection,
    UnitKernel,
    row_starts,
)
from deniable.counting.spark.spark_errors import TaskFault, spark_errors
from deniable.counting.tallies import TallyPlan
from deniable.data.partition import part_bounds
from deniable.randomness import Randomness, task_randomness
from deniable.schema.attribute import Attribute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_CELLS: tuple[Counts, Counts] = (np.empty(0, np.int64), np.empty(0, np.int64))
# Up to this many tasks, the driver adds up their tallies itself.
_MAX_TALLIES_ON_DRIVER = 8
# The rank of a row among those of its unit, by its word; two equal words by their rows.
_PLACE_IN_UNIT = "row_number() over (partition by owner order by word, blob, at) as place"
_KEPT_COLUMNS = {"collect_list(at)": "kept", "max(fault)": "fault"}
# Blobs in an Arrow batch that Spark hands to a task.
BLOBS_PER_BATCH = 16


@dataclass(frozen=True)
class SparkRows:
    """Rows on a cluster.

    Attributes:
        blobs: The DataFrame of blobs.
        reader: Reads codes from blobs.
        rows: The number of rows of each blob, before a split.
        tasks: The number of partitions of ``blobs``.
        cached: All frames that the cluster keeps for these rows.
    """

    blobs: "DataFrame" = field(repr=False)
    reader: BlobReader = field(repr=False)
    rows: Mapping[int, int] = field(repr=False)
    tasks: int = field(repr=False)
    cached: tuple["DataFrame", ...] = field(repr=False, default=())

    @cached_property
    def number(self) -> int:
        """The number of rows."""
        if self.reader.selection is None:
            return sum(self.rows.values())
        _, counts = self.totals(RowCountKernel(self.reader)).get(0, _NO_CELLS)
        return int(counts.sum())

    def count(
        self, attributes: Sequence[Attribute], queries: Sequence[Query]
    ) -> list[ContingencyTable]:
        """Count the rows for each query, all in one pass: sums of the tallies of tasks."""
        plan = TallyPlan.of(attributes, queries)
        return plan.resolve(self.totals(TallyKernel(self.reader, plan)))

    def totals(self, kernel: TaskKernel) -> dict[int, tuple[Counts, Counts]]:
        """Run a kernel whose tasks yield tallies; add them up, table by table."""
        tallies = self.run(kernel, TALLY_SCHEMA)
        if self.tasks > _MAX_TALLIES_ON_DRIVER:
            spread = tallies.repartition(math.isqrt(self.tasks), "number", "chunk")
            tallies = spread.mapInArrow(task_of(SumKernel()), TALLY_SCHEMA)
        totals: dict[int, tuple[Counts, Counts]] = {}
        by_chunk = self._add_up(tallies)
        for number in sorted({number for number, _ in by_chunk}):
            chunks = [by_chunk[key] for key in sorted(by_chunk) if key[0] == number]
            totals[number] = (
                np.concatenate([cells for cells, _ in chunks]),
                np.concatenate([counts for _, counts in chunks]),
            )
        return totals

    def _add_up(self, tallies: "DataFrame") -> dict[tuple[int, int], tuple[Counts, Counts]]:
        """Add up the tallies of tasks, by table and chunk; require that they saw all blobs."""
        totals: dict[tuple[int, int], tuple[Counts, Counts]] = {}
        for row in self.collect(tallies, "count the rows"):
            add_tally(totals, (row["number"], row["chunk"]), row["cells"], row["counts"])
        blobs, times = totals.pop((SEEN, 0), _NO_CELLS)
        self.reader.require_all(np.repeat(blobs, times).tolist())
        return totals

    def frequent_prefixes(
        self, order: Sequence[int], lengths: Sequence[int], sizes: Sequence[int], *, floor: int
    ) -> list[FrequentPrefixes]:
        """Find the prefixes that at least ``floor`` rows share; others stay on the executors."""
        kernel = PrefixKernel(self.reader, tuple(order), tuple(lengths), tuple(sizes))
        counted = self.run(kernel, PREFIX_SCHEMA).groupBy("length", "prefix", "fault")
        summed = counted.sum("shared").withColumnRenamed("sum(shared)", "shared")
        kept = f"fault is not null or length = {SEEN} or shared >= {int(floor)}"
        found: dict[int, list[tuple[bytes, int]]] = {length: [] for length in (SEEN, *lengths)}
        for row in self.collect(summed.where(kept), "count prefixes"):
            found[row["length"]].append((bytes(row["prefix"]), row["shared"]))
        seen = found.pop(SEEN)
        self.reader.require_all(int.from_bytes(b) for b, times in seen for _ in range(times))
        return [_in_order(found[length], length) for length in sorted(lengths)]

    def split(
        self, fractions: Mapping[str, float], randomness: Randomness
    ) -> dict[str, "SparkRows"]:
        """Assign each row independently to one of the named parts, or to none."""
        bounds, drawn = part_bounds(fractions), task_randomness(randomness)
        starts = row_starts(self.rows)
        return {
            part: replace(self, reader=replace(self.reader, selection=selection))
            for part, selection in (
                (name, PartSelection(bounds, at, starts, drawn))
                for at, name in enumerate(fractions)
            )
        }

    def limit_per_unit(self, randomness: Randomness, *, max_rows: int) -> "SparkRows":
        """Keep at most ``max_rows`` rows of each unit, at random."""
        starts, drawn = row_starts(self.rows), task_randomness(randomness)
        kernel = UnitKernel(self.reader, starts, drawn, max_rows)
        with spark_errors("choose the rows of each unit"), self._batches():
            owned = self.blobs.select("blob", "owners").mapInArrow(task_of(kernel), UNIT_SCHEMA)
            ranked = owned.selectExpr("*", _PLACE_IN_UNIT).where(f"place <= {int(max_rows)}")
            kept = ranked.groupBy("blob").agg({"at": "collect_list", "fault": "max"})
            kept = kept.toDF("blob", *(_KEPT_COLUMNS[name] for name in kept.columns[1:]))
            # Chosen once: all later jobs read the same rows, whatever is computed again.
            kept = _persist(kept)
        # One of them is no row, but marks that the blob was seen.
        counted = kept.selectExpr("blob", "size(kept) - 1 as rows", "fault")
        rows = {row["blob"]: row["rows"] for row in self.collect(counted, "choose rows")}
        self.reader.require_all(rows)
        with spark_errors("choose the rows of each unit"):
            blobs = self.blobs.join(kept.select("blob", "kept"), "blob", "left")
            blobs = _persist(blobs)
        return replace(self, blobs=blobs, rows=rows, cached=(*self.cached, kept, blobs))

    def close(self) -> None:
        """Free the memory and disk that the cluster uses for the rows."""
        with spark_errors("free the rows"):
            for frame in reversed(self.cached):
                frame.unpersist()

    def empty(self) -> "SparkRows":
        """Return a table with the same columns and no rows."""
        reader = replace(self.reader, digests={})
        return replace(self, blobs=self.blobs.limit(0), reader=reader, rows={}, tasks=1)

    def run(self, kernel: TaskKernel, schema: str) -> "DataFrame":
        """Run a kernel on all blobs."""
        with spark_errors("count the rows"):
            columns = [name for name in ("blob", "codes", "kept") if name in self.blobs.columns]
            return self.blobs.select(*columns).mapInArrow(task_of(kernel), schema)

    def _batches(self) -> AbstractContextManager[None]:
        return batch_size(self.blobs.sparkSession, BLOBS_PER_BATCH)

    def collect(self, frame: "DataFrame", action: str) -> list[dict[str, Any]]:
        """Collect a small result, in batches of a few blobs."""
        with spark_errors(action), self._batches():
            return collect(frame, action)


def _persist(frame: "DataFrame") -> "DataFrame":
    """Keep a frame on the cluster: in memory, and encrypted on disk where memory is short."""
    from pyspark import StorageLevel  # noqa: PLC0415

    return frame.persist(StorageLevel.MEMORY_AND_DISK)


@contextmanager
def batch_size(session: "SparkSession", records: int) -> Iterator[None]:
    """Set the number of records of Arrow batches in the block, where jobs are planned and run.

    The session may be the user's: the setting is put back.
    """
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = str(session.conf.get(name))
    session.conf.set(name, str(records))
    try:
        yield
    finally:
        with suppress(Exception):  # of a session that is lost: the first error says so
            session.conf.set(name, before)


def _in_order(found: list[tuple[bytes, int]], length: int) -> FrequentPrefixes:
    """Sort packed prefixes; their bytes sort as their codes do."""
    found.sort()
    packed = b"".join(prefix for prefix, _ in found)
    counts = np.array([shared for _, shared in found], dtype=np.int64)
    return FrequentPrefixes(unpack_prefixes(packed, length), counts)


def collect(frame: "DataFrame", action: str) -> list[dict[str, Any]]:
    """Collect the rows of a small result; raise the first fault of a task, if there is one."""
    with spark_errors(action):
        rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    raise_faults(rows)
    return rows


def raise_faults(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise the first of the faults that tasks returned."""
    faults = [TaskFault.decode(row["fault"]) for row in rows if row["fault"] is not None]
    if faults:
        min(faults, key=lambda fault: fault.item).throw()
