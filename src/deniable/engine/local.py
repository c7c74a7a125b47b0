"""One machine: the rows are an array in memory, counted by every core."""

from collections.abc import Sequence
from functools import partial

from deniable.arrays import Codes
from deniable.data.attributes import Attribute
from deniable.model.cells import Query, Tally, tally
from deniable.workers import in_order


def count(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query], *, workers: int
) -> list[Tally]:
    """Count the records of ``codes`` for each query."""
    return list(in_order(partial(tally, attributes, codes), queries, workers=workers))
