"""Tables counted together: the same counts, in fewer walks."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deniable.data.attributes import Attribute
from deniable.model.cells import Axis, tally
from deniable.model.joint import join, take_out
from worlds import property_test


@st.composite
def questions(draw):
    """Some axes with their sizes, and queries of one or two of them."""
    sizes = {
        Axis(i, bucketed=draw(st.booleans())): draw(st.integers(1, 9))
        for i in range(draw(st.integers(1, 8)))
    }
    pairs = [(a,) for a in sizes] + list(combinations(sizes, 2))
    asked = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    return sizes, [q[::-1] if draw(st.booleans()) else q for q in asked]


@property_test
@given(questions(), st.integers(1, 600))
def test_every_query_is_inside_one_that_is_counted(asked, most):
    sizes, queries = asked
    joined = join(queries, sizes, most=most)
    for query in queries:
        assert any(set(query) <= set(whole) for whole in joined)
    for whole in joined:
        assert len(set(whole)) == len(whole)
        # A pair that is too large by itself is counted by itself.
        assert len(whole) <= 2 or np.prod([sizes[axis] for axis in whole]) <= most


def test_all_pairs_of_eleven_take_a_quarter_of_the_walks():
    axes = [Axis(i, bucketed=True) for i in range(11)]
    pairs = list(combinations(axes, 2))
    joined = join(pairs, dict.fromkeys(axes, 10), most=10_000)
    assert len(joined) <= len(pairs) / 4
    assert join(pairs, dict.fromkeys(axes, 10), most=10_000) == joined


def test_pairs_that_are_too_large_stay_pairs():
    axes = [Axis(i) for i in range(4)]
    pairs = list(combinations(axes, 2))
    joined = join(pairs, dict.fromkeys(axes, 100), most=10_000)
    assert sorted(map(sorted_axes, joined)) == sorted(map(sorted_axes, pairs))


def sorted_axes(query):
    return sorted(axis.attribute for axis in query)


@property_test
@given(st.data())
def test_a_margin_has_the_counts_of_its_own_query(data):
    values = [data.draw(st.integers(1, 5)) for _ in range(4)]
    attributes = [
        Attribute(name=f"a{i}", kind="integer", values=range(n)).with_bucket_width(2)
        for i, n in enumerate(values)
    ]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    codes = np.stack([rng.integers(0, n, 30) for n in values], axis=1).astype(np.uint16)
    whole = tuple(Axis(i, bucketed=i % 2 == 1) for i in data.draw(st.permutations(range(4))))
    wanted = tuple(data.draw(st.lists(st.sampled_from(whole), min_size=1, unique=True)))
    found = take_out(tally(attributes, codes, whole), whole, wanted)
    alone = tally(attributes, codes, wanted)
    assert found.shape == alone.shape
    assert found.cells.tolist() == alone.cells.tolist()
    assert found.counts.tolist() == alone.counts.tolist()
