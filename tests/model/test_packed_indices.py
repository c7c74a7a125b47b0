"""Packed indices: sums of packed offsets are the packed sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model.packed_indices import PackedIndices
from worlds import property_test


@property_test
@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=12), st.integers(0, 2**32))
def test_indices_are_those_that_were_packed(sizes, seed):
    """Each index is a sum of two offsets; all tables share keys."""
    layout, rng = PackedIndices.of(sizes), np.random.default_rng(seed)
    indices = [np.append(rng.integers(0, size, 5), size - 1) for size in sizes]
    keys = [np.zeros(6, dtype=layout.dtype) for _ in range(layout.keys)]
    for table, index in enumerate(indices):
        for part in (index // 3, index - index // 3):
            key, offsets = layout.pack(table, part)
            keys[key] += offsets
    found = layout.unpack(keys)
    assert [own.tolist() for own in found] == [own.tolist() for own in indices]
    assert all((key < 2**layout.bits).all() for key in keys)


@pytest.mark.parametrize(
    ("sizes", "keys"), [([], 0), ([1], 1), ([2**31, 2**32], 1), ([2**32] * 2, 2), ([1024] * 7, 2)]
)
def test_as_few_keys_as_hold_the_indices(sizes, keys):
    assert PackedIndices.of(sizes).keys == keys


@pytest.mark.parametrize(
    ("sizes", "bits", "dtype"),
    [
        ([], 0, np.uint32),
        ([1024, 3], 12, np.uint32),
        ([2**32], 32, np.uint32),
        ([2**32, 2], 33, np.uint64),
        ([2**32, 2**40], 40, np.uint64),
    ],
)
def test_keys_are_as_small_as_can_be(sizes, bits, dtype):
    layout = PackedIndices.of(sizes)
    assert (layout.bits, layout.dtype) == (bits, dtype)
