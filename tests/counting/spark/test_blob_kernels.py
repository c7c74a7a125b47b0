"""Kernels on blobs, without a cluster: what tasks report adds up to what one machine counts."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from deniable.arrays import Counts
from deniable.counting.contingency import ContingencyTable, QueryAxis
from deniable.counting.local import LocalRows
from deniable.counting.spark import blob_kernels
from deniable.counting.spark.blob_kernels import (
    SEEN,
    BlockKernel,
    PrefixKernel,
    RowCountKernel,
    SumKernel,
    TallyKernel,
    add_tally,
    tally_batches,
    unpack_prefixes,
)
from deniable.counting.spark.code_blobs import BlobReader, digest
from deniable.counting.spark.spark_errors import TaskFault
from deniable.counting.tallies import TallyPlan

KEY = bytes(32)


@pytest.fixture
def blobs(small_codes):
    """Two partitions of two blobs, and what reads them."""
    packed = [np.ascontiguousarray(part.T).tobytes() for part in np.split(small_codes, 4)]
    rows = [{"blob": at, "codes": codes} for at, codes in enumerate(packed)]
    batches = [pa.RecordBatch.from_pylist(rows[:2]), pa.RecordBatch.from_pylist(rows[2:])]
    return batches, BlobReader(5, {at: digest(one, KEY) for at, one in enumerate(packed)}, KEY)


def test_tallies_add_up_to_the_counts(blobs, small_schema, small_codes):
    batches, reader = blobs
    queries = [(QueryAxis(i), QueryAxis(j)) for i in range(5) for j in range(i)]
    plan = TallyPlan.of(small_schema.attributes, queries)
    tallies = [each for batch in batches for each in TallyKernel(reader, plan).run(iter([batch]))]
    totals: dict[int, tuple[Counts, Counts]] = {}
    for row in (row for each in SumKernel().run(iter(tallies)) for row in each.to_pylist()):
        add_tally(totals, row["number"], row["cells"], row["counts"])
    expected = LocalRows(small_codes, 1).count(small_schema.attributes, queries)
    blobs_seen, times = totals.pop(SEEN)
    assert (blobs_seen.tolist(), times.tolist()) == ([0, 1, 2, 3], [1, 1, 1, 1])
    for found, table in zip(plan.resolve(totals), expected, strict=True):
        assert found.dense().tolist() == table.dense().tolist()


def test_a_table_is_cut_at_fixed_cells(monkeypatch):
    monkeypatch.setattr(blob_kernels, "_CELLS_PER_CHUNK", 10)
    table = ContingencyTable((40,), np.array([3, 9, 10, 35]), np.array([1, 2, 3, 4]))
    rows = [row for batch in tally_batches(7, table) for row in batch.to_pylist()]
    assert [(row["number"], row["chunk"]) for row in rows] == [(7, 0), (7, 1), (7, 3)]
    assert np.frombuffer(rows[0]["counts"], np.int64).tolist() == [1, 2]


def test_faults_pass_through_a_sum():
    fault = TaskFault("bug", "odd", 3).encode()
    batch = pa.RecordBatch.from_pylist([{"fault": fault}], schema=blob_kernels.TALLY_TYPES)
    [found] = SumKernel().run(iter([batch]))
    assert found.column(4)[0].as_py() == fault


def test_prefixes_are_counted_and_sort_as_their_codes(blobs, small_codes, small_schema):
    batches, reader = blobs
    kernel = PrefixKernel(reader, (2, 0, 4, 1, 3), (1, 3), tuple(small_schema.sizes))
    shared: Counter[tuple[int, bytes]] = Counter()
    for row in (row for each in kernel.run(iter(batches)) for row in each.to_pylist()):
        shared[row["length"], row["prefix"]] += row["shared"]
    found = sorted((prefix, n) for (length, prefix), n in shared.items() if length == 3)
    [_, expected] = LocalRows(small_codes).frequent_prefixes(
        (2, 0, 4, 1, 3), [1, 3], small_schema.sizes, floor=1
    )
    packed = b"".join(prefix for prefix, _ in found)
    assert unpack_prefixes(packed, 3).tolist() == expected.prefixes.tolist()
    assert [n for _, n in found] == expected.counts.tolist()
    seen = [int.from_bytes(blob) for length, blob in shared if length == SEEN]
    reader.require_all(seen)


def test_rows_and_blocks(blobs):
    batches, reader = blobs
    count, seen = RowCountKernel(reader).run(iter(batches))
    assert seen.column(0)[0].as_py() == SEEN
    assert np.frombuffer(count.column(2)[0].as_py(), np.int64).tolist() == [0, 1, 2, 3]
    assert np.frombuffer(count.column(3)[0].as_py(), np.int64).tolist() == [500] * 4
    numbers = pa.RecordBatch.from_pydict({"id": [3, 5]})
    results = BlockKernel(lambda block: str(block).encode()).run(iter([numbers]))
    assert [batch.column(0)[0].as_py() for batch in results] == [b"3", b"5"]
