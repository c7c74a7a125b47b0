"""Total variation, against its definition and against the scoring program of the real tables."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.evaluation import distances
from deniable.evaluation.distances import Distances, compare_tables, total_variation
from deniable.schema.attribute import Attribute


def attributes_of(sizes):
    return [
        Attribute(name=f"a{i}", kind="categorical", values=tuple(f"v{j}" for j in range(size)))
        for i, size in enumerate(sizes)
    ]


def distances_of(sizes, first, second, *, width):
    return compare_tables(attributes_of(sizes), {"": (first, second)}, width=width)[""]


def by_definition(first, second, columns):
    """The largest difference of the probabilities of any event: the sum where p is above q."""
    rows = [list(map(tuple, codes[:, columns].tolist())) for codes in (first, second)]
    events = set(rows[0]) | set(rows[1])
    shares = [{e: of.count(e) / len(of) for e in events} for of in rows]
    return sum(max(0.0, shares[0][e] - shares[1][e]) for e in events)


@pytest.mark.parametrize("width", [1, 2])
def test_a_distance_is_the_largest_difference_of_any_event(width, rng):
    sizes = (2, 3, 4)
    first = np.stack([rng.integers(0, s, 40) for s in sizes], axis=1).astype(np.uint16)
    second = np.stack([rng.integers(0, s, 30) for s in sizes], axis=1).astype(np.uint16)

    found = distances_of(sizes, first, second, width=width)

    choices = list(combinations(range(3), width))
    assert found.names == tuple(tuple(f"a{i}" for i in c) for c in choices)
    expected = [by_definition(first, second, list(c)) for c in choices]
    assert found.values == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(expected))


def test_tables_compared_together_have_the_distances_they_have_alone(rng):
    sizes = (2, 3, 4)
    one, two, three = (
        np.stack([rng.integers(0, s, rows) for s in sizes], axis=1).astype(np.uint16)
        for rows in (40, 30, 50)
    )
    reports = []
    together = compare_tables(
        attributes_of(sizes),
        {"x": (one, two), "y": (three, two)},
        width=2,
        progress=lambda done, of: reports.append((done, of)),
    )
    for name, first in (("x", one), ("y", three)):
        alone = distances_of(sizes, first, two, width=2)
        assert together[name].values == pytest.approx(alone.values)
    assert reports == [(0, 3)]


def test_counting_only_cells_that_occur_changes_nothing(monkeypatch, rng):
    sizes = (50, 60)
    first, second = (
        np.stack([rng.integers(0, s, 100) for s in sizes], axis=1).astype(np.uint16)
        for _ in range(2)
    )
    dense = distances_of(sizes, first, second, width=2)
    monkeypatch.setattr(distances, "_MAX_DENSE_CELLS", 0)
    sparse = distances_of(sizes, first, second, width=2)
    assert sparse.values == pytest.approx(dense.values)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_a_distance_is_symmetric_within_0_and_1_and_blind_to_scale(cells):
    one, two = np.array(cells).T + np.array([[1], [0]])
    two[0] += 1
    distance = total_variation(one, two)
    assert 0 <= distance <= 1
    assert total_variation(two, one) == pytest.approx(distance)
    assert total_variation(7 * one, two) == pytest.approx(distance)
    assert total_variation(one, one) == 0


def test_the_worst_come_first():
    found = Distances(names=(("a",), ("b",), ("c",)), values=(0.1, 0.5, 0.2))
    assert found.worst(2) == [(("b",), 0.5), (("c",), 0.2)]
    assert (found.mean, found.max) == (pytest.approx(0.8 / 3), 0.5)
    assert found.document()["worst"] == ["b"]
    assert found.box == pytest.approx((0.1, 0.15, 0.2, 0.35, 0.5))
