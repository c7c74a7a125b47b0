"""Rows by rank, and those that share a prefix, without a cluster: as one machine finds them."""

import numpy as np
import pyarrow as pa
import pytest

from deniable.counting.local import LocalRows
from deniable.counting.spark.blob_kernels import SEEN, add_tally
from deniable.counting.spark.code_blobs import BlobReader, digest
from deniable.counting.spark.rank_kernels import (
    RankKernel,
    SharedKernel,
    prefix_keys,
    unpack_rows,
)

KEY = bytes(32)
ORDER = (2, 0, 4, 1, 3)


@pytest.fixture
def blobs(small_codes):
    """Blobs of the small table in another order than their numbers, as Spark hands them out."""
    packed = [np.ascontiguousarray(part.T).tobytes() for part in np.split(small_codes, 4)]
    rows = [{"blob": at, "codes": packed[at]} for at in (2, 0, 3, 1)]
    batches = [pa.RecordBatch.from_pylist(rows[:2]), pa.RecordBatch.from_pylist(rows[2:])]
    return batches, BlobReader(5, {at: digest(one, KEY) for at, one in enumerate(packed)}, KEY)


def rows_of(kernel, batches):
    return [row for batch in kernel.run(iter(batches)) for row in batch.to_pylist()]


def test_ranks_are_places_in_the_table(blobs, small_codes):
    batches, reader = blobs
    ranks, columns = np.array([0, 499, 500, 777, 1999]), (4, 1)
    kernel = RankKernel(reader, {at: 500 * at for at in range(4)}, ranks, columns)
    found = np.zeros((5, 2), dtype=np.uint16)
    for row in rows_of(kernel, batches):
        if row["first"] == SEEN:
            reader.require_all(np.frombuffer(row["codes"], np.int64).tolist())
            continue
        part = unpack_rows(row["codes"], 2)
        found[row["first"] : row["first"] + len(part)] = part
    assert found.tolist() == small_codes[ranks][:, columns].tolist()


def test_shared_prefixes_are_counted_over_all_blobs(blobs, small_codes, small_schema):
    """Also one that no row has."""
    batches, reader = blobs
    records = small_codes[:50].copy()
    records[7] = [size - 1 for size in small_schema.sizes]
    wanted = {n: np.unique(prefix_keys(records[:, ORDER[:n]])) for n in (1, 3)}
    kernel = SharedKernel(reader, ORDER, tuple(small_schema.sizes), wanted)
    totals: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for row in rows_of(kernel, batches):
        add_tally(totals, row["number"], row["cells"], row["counts"])
    reader.require_all(totals.pop(SEEN)[0].tolist())
    ranked = LocalRows(small_codes).ranked(ORDER, (1, 3), small_schema.sizes)
    expected = ranked.look_up(records)
    for at, length in enumerate((1, 3)):
        counts = dict(zip(*map(np.ndarray.tolist, totals[length]), strict=True))
        keys = prefix_keys(records[:, ORDER[:length]])
        places = np.searchsorted(wanted[length], keys).tolist()
        assert [counts.get(place, 0) for place in places] == expected[:, at].tolist()


def test_keys_sort_as_codes_do():
    codes = np.array([[0, 256], [0, 255], [1, 0], [0, 0]], dtype=np.uint16)
    order = np.argsort(prefix_keys(codes)).tolist()
    assert codes[order].tolist() == sorted(codes.tolist())
