"""Rows chosen in tasks, without a cluster: those that one machine chooses; the secret stays."""

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from deniable.counting.spark.code_blobs import NO_ROW, BlobReader, digest
from deniable.counting.spark.row_selection import (
    PartSelection,
    RowStreams,
    UnitKernel,
    row_starts,
)
from deniable.data.partition import (
    ROWS_PER_STREAM,
    draw_row_words,
    keep_lowest_words,
    part_bounds,
)
from deniable.errors import ConfigError, DataError
from deniable.randomness import Expanded, Keyed, Secret, task_randomness


@pytest.mark.parametrize("randomness", [Keyed(3), Expanded(bytes(32))], ids=["keyed", "expanded"])
def test_a_task_draws_the_words_of_its_rows(randomness):
    streams, stop = RowStreams(randomness, "split"), ROWS_PER_STREAM + 700
    whole = draw_row_words(randomness, "split", 0, stop)
    for start, end in ((0, 9), (5, 5), (600, 900), (ROWS_PER_STREAM - 2, stop), (3, 4)):
        assert streams.words(start, end).tolist() == whole[start:end].tolist()


def test_a_run_of_the_product_draws_from_a_fresh_secret():
    """Never from the system in a task; a test's key is left alone."""
    one, two = task_randomness(Secret()), task_randomness(Secret())
    assert isinstance(one, Expanded)
    assert isinstance(two, Expanded)
    assert one.secret != two.secret
    assert len(one.secret) == 32
    assert task_randomness(Keyed(1)) == Keyed(1)


def test_a_secret_is_expanded_by_its_address_and_not_shown():
    secret = bytes(range(32))
    stream = Expanded(secret).at("units", 5)
    address = secret + (11).to_bytes(8, "big") + (5).to_bytes(8, "big") + (1).to_bytes(8, "big")
    expected = np.frombuffer(hashlib.shake_256(address).digest(24), dtype="<u8")
    assert stream.words(3).tolist() == expected.tolist()
    assert stream.words(3).tolist() != expected.tolist()
    assert Expanded(secret).at("split", 5).words(3).tolist() != expected.tolist()
    assert repr(Expanded(secret)) == "Expanded()"
    assert Expanded(secret).token("a") != Expanded(secret).token("b")
    with pytest.raises(ConfigError, match="32 bytes"):
        Expanded(b"short")


def test_parts_of_blobs_are_parts_of_the_table():
    shares = {"seeds": 0.4, "structure": 0.35}
    starts = row_starts({8: 300, 2: 100})
    assert starts == {2: 0, 8: 100}
    words = draw_row_words(Keyed(2), "split", 0, 400)
    uniform = (words >> np.uint64(11)) * 2.0**-53
    selection = PartSelection(part_bounds(shares), 1, starts, Keyed(2))
    found = selection.mask(selection.streams(), 8, 300)
    expected = (uniform[100:] >= 0.4) & (uniform[100:] < 0.75)
    assert found.tolist() == expected.tolist()


def test_the_lowest_words_of_each_unit_are_kept():
    """Two blobs; the union of their candidates has all rows that one machine would keep."""
    units = np.random.default_rng(5).integers(0, 40, 600)
    names = [hashlib.blake2b(bytes([unit]), digest_size=16).digest() for unit in units]
    rows = [
        {"blob": 0, "owners": b"".join(names[:250])},
        {"blob": 1, "owners": b"".join(names[250:])},
    ]
    digests = {row["blob"]: bytes(16) + digest(row["owners"], bytes(32)) for row in rows}
    reader = BlobReader(2, digests, bytes(32))
    kernel = UnitKernel(reader, {0: 0, 1: 250}, Keyed(7), 3)
    batches = kernel.run(iter([pa.RecordBatch.from_pylist(rows)]))
    candidates = [row for batch in batches for row in batch.to_pylist()]
    seen = [row for row in candidates if row["at"] == NO_ROW]
    reader.require_all(row["blob"] for row in seen)
    assert len({row["owner"] for row in candidates}) == 40 + 2
    candidates = [row for row in candidates if row["at"] != NO_ROW]
    assert max(Counter((row["owner"], row["blob"]) for row in candidates).values()) == 3
    by_owner: dict[bytes, list[tuple[int, int]]] = {}
    for row in candidates:
        place = row["at"] + 250 * row["blob"]
        by_owner.setdefault(row["owner"], []).append((row["word"], place))
    found = sorted(at for rows in by_owner.values() for _, at in sorted(rows)[:3])
    kept = keep_lowest_words(units, draw_row_words(Keyed(7), "units", 0, 600), max_rows=3)
    assert found == np.flatnonzero(kept).tolist()


def test_other_owners_are_refused():
    """A blob that is computed again with its rows in another order."""
    reader = BlobReader(2, {0: bytes(32)}, bytes(32))
    batch = pa.RecordBatch.from_pylist([{"blob": 0, "owners": bytes(32)}])
    with pytest.raises(DataError, match="other rows when it is computed again"):
        list(UnitKernel(reader, {0: 0}, Keyed(7), 3).run(iter([batch])))
