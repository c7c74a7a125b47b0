"""A guided search finds what a binary search finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model import guided_search as module
from deniable.model.guided_search import GuidedSearch
from worlds import property_test


@property_test
@given(
    st.lists(st.integers(0, 2**40), min_size=1, max_size=40),
    st.sampled_from([1, 2, 3, 64, 4096]),
    st.integers(0, 2**32),
)
def test_the_guide_changes_no_result(weights, intervals, key):
    """Also at every end, and one below it."""
    ends = np.cumsum([*weights, 1])
    numbers = np.random.default_rng(key).integers(0, ends[-1], 200)
    numbers = np.clip(np.concatenate([numbers, ends - 1, ends]), 0, ends[-1] - 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_INTERVALS", intervals)
        search = GuidedSearch.of(ends)
    assert len(search.guide) <= intervals
    expected = np.searchsorted(ends, numbers, side="right")
    assert search.find(numbers).tolist() == expected.tolist()


def test_most_numbers_need_no_search():
    search = GuidedSearch.of(np.cumsum(np.full(99, 2**32)))
    assert (search.guide >= 0).mean() > 0.95


@pytest.mark.parametrize("total", [1, 2, 4095, 4096, 4097, 2**46])
def test_the_guide_covers_all_numbers(total):
    search = GuidedSearch.of(np.array([total]))
    assert len(search.guide) == (total - 1 >> search.shift) + 1 <= 4096
    assert search.find(np.array([0, total - 1])).tolist() == [0, 0]
    assert search.find(np.empty(0, dtype=np.int64)).tolist() == []
