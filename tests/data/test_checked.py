"""Batches of a table: in the order of its rows, whatever order they come in."""

import polars as pl
import pytest

from deniable.data.checked import in_turn
from deniable.errors import InvariantError

TABLE = pl.DataFrame({"a": range(10)})


def batches(monkeypatch, *rows):
    """What ``in_turn`` yields when polars gives these rows, batch by batch."""
    monkeypatch.setattr(
        pl.LazyFrame,
        "collect_batches",
        lambda self, **_: (self.collect()[list(some)] for some in rows),
    )
    return list(in_turn(TABLE.lazy(), [pl.col("a"), (pl.col("a") * 2).alias("b")]))


def test_batches_that_come_too_early_wait_for_their_turn(monkeypatch):
    found = batches(monkeypatch, range(6, 10), range(2, 6), (), range(2))
    assert [batch["a"].to_list() for batch in found] == [[0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    assert pl.concat(found)["b"].to_list() == list(range(0, 20, 2))


@pytest.mark.parametrize("rows", [[range(2), range(4, 10)], [[0, 2, 4]], [range(1, 10)]])
def test_rows_that_are_left_out_are_noticed(monkeypatch, rows):
    with pytest.raises(InvariantError, match="polars"):
        batches(monkeypatch, *rows)


def test_polars_own_batches_come_in_order():
    whole = pl.concat(in_turn(TABLE.lazy(), [pl.col("a")]))
    assert whole.equals(TABLE)
    assert list(in_turn(TABLE.head(0).lazy(), [pl.col("a")])) == []
