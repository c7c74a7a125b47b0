"""Fewer tables to count by: small tables that share attributes are margins of one larger table.

A table of four attributes has six pairs in it, and costs little more to count by than one pair.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from deniable.model.cells import Axis, Query, Tally


def join(queries: Sequence[Query], sizes: Mapping[Axis, int], *, most: int) -> list[Query]:
    """Return queries of at most ``most`` cells that contain all the given ones, of one axis or two.

    Greedy: the axis with most pairs left takes in whoever has most pairs with those already there.
    A pair that is too large for anybody else stays as it is.
    """
    left: dict[Axis, set[Axis]] = {axis: set() for query in queries for axis in query}
    for first, *others in queries:
        for second in others:
            left[first].add(second)
            left[second].add(first)
    joined: list[list[Axis]] = []
    while waiting := [axis for axis, partners in left.items() if partners]:
        start = max(waiting, key=lambda axis: len(left[axis]))
        together = _gather(start, left, sizes, most)
        joined.append(together)
        for axis in together:
            left[axis] -= set(together)
    alone = left.keys() - {axis for together in joined for axis in together}
    joined += _pack(sorted(alone, key=lambda axis: (axis.attribute, axis.bucketed)), sizes, most)
    return [tuple(together) for together in joined]


def _gather(
    start: Axis, left: Mapping[Axis, set[Axis]], sizes: Mapping[Axis, int], most: int
) -> list[Axis]:
    """Return axes that have many pairs among them left, as many as fit."""
    together, cells = [start], sizes[start]
    near = set(left[start])
    while near:
        gain = {axis: len(left[axis].intersection(together)) for axis in near}
        # Ties go to small ones, which leave room for others, then to the first.
        best = min(near, key=lambda a: (-gain[a], sizes[a], a.attribute, a.bucketed))
        near.remove(best)
        if cells * sizes[best] > most and len(together) > 1:
            continue
        together.append(best)
        cells *= sizes[best]
        near |= left[best] - set(together)
    return together


def _pack(axes: Sequence[Axis], sizes: Mapping[Axis, int], most: int) -> list[list[Axis]]:
    """Return axes in groups of at most ``most`` cells each."""
    packed: list[list[Axis]] = []
    for axis in axes:
        for group in packed:
            if int(np.prod([sizes[other] for other in group], dtype=object)) * sizes[axis] <= most:
                group.append(axis)
                break
        else:
            packed.append([axis])
    return packed


def take_out(table: Tally, query: Query, wanted: Query) -> Tally:
    """Return the table of ``wanted`` from that of ``query``, which has all its axes."""
    other = tuple(at for at, axis in enumerate(query) if axis not in wanted)
    dense = table.dense().sum(axis=other)
    places = [axis for axis in query if axis in wanted]
    dense = dense.transpose([places.index(axis) for axis in wanted])
    cells = np.flatnonzero(dense)
    return Tally(dense.shape, cells, dense.ravel()[cells])
