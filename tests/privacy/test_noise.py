"""Added noise, its ledger entry, and the projection of noisy counts."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from chance import assert_distribution, assert_no_shared_noise
from deniable.errors import BudgetError, InvariantError
from deniable.model.pairwise.measure import FURTHER_TABLES
from deniable.privacy import noise_laws
from deniable.privacy.noise import Spend, add_noise, norm_sub
from deniable.privacy.pairwise_budget import PAIRS_SPEND
from deniable.randomness import Keyed
from worlds import property_test

LAW = noise_laws.truncated_geometric(1.0, 21)


def noised(counts, law=LAW, **more):
    counts = np.asarray(counts, dtype=np.int64)
    return add_noise(Keyed(3).at("noise"), counts, law, what="cells", part="parameters", **more)


def test_noise_is_returned_together_with_what_it_costs():
    noisy, spend = noised([[5, 6], [7, 8]], sensitivity=2, l0_sensitivity=3)
    assert noisy.shape == (2, 2)
    assert spend == Spend(what="cells", part="parameters", law=LAW, sensitivity=2, l0_sensitivity=3)


def test_without_noise_the_same_path_returns_the_counts():
    noisy, spend = noised([5, 0, 7], noise_laws.exact())
    assert noisy.tolist() == [5, 0, 7]
    assert spend.law == noise_laws.exact()


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_no_count_however_large_overflows(counts):
    """An overflow would wrap around: noisy and exact would differ by about 2^64."""
    noisy, _ = noised(counts)
    for before, after in zip(counts, noisy.tolist(), strict=True):
        assert abs(max(-(2**62), min(2**62, before)) - after) <= LAW.radius


def test_the_counts_themselves_are_left_as_they_were():
    counts = np.arange(10)
    noised(counts)
    assert counts.tolist() == list(range(10))


def test_every_cell_has_noise_of_its_own():
    """2,000 equal cells: with one draw for all, one value would come up 2,000 times."""
    noisy, _ = noised(np.full(200_000, 40))
    expected = {40 + z: LAW.probability(z) for z in range(-LAW.radius, LAW.radius + 1)}
    assert_distribution(Counter(noisy.tolist()), expected)


def test_that_assertion_notices_one_draw_shared_by_all_cells():
    noisy = np.full(200_000, 40) + LAW.table.draw(Keyed(3).at("noise"), 1)
    expected = {40 + z: LAW.probability(z) for z in range(-LAW.radius, LAW.radius + 1)}
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(Counter(noisy.tolist()), expected)


# Everything that is measured with noise, by the names that ``add_noise`` is given.
STAGES = (
    "seed prefixes", "values of x", "interactions", "triples", PAIRS_SPEND, FURTHER_TABLES,
    "entropies", "number of records", "counts of x",
)  # fmt: skip


@pytest.mark.parametrize("law", [LAW, noise_laws.rounded_gaussian(5.0)], ids=lambda law: law.name)
def test_no_two_cells_share_their_noise(law):
    """Of one call or of two, of one shape and name or not: 80 runs, false-alarm rate 1e-6, fixed
    keys. Tables of one law are measured in one call, so that a pattern in it is shared noise."""
    shapes = ((2, 2, 2), (2, 2, 2), (12,), (24,))
    runs = []
    for key in range(80):
        rng, noise = Keyed(key).at("noise"), []
        for what, shape in product(STAGES, shapes):
            zeros = np.zeros(shape, dtype=np.int64)
            noise.append(add_noise(rng, zeros, law, what=what, part="parameters")[0].ravel())
        runs.append(np.concatenate(noise))
    assert_no_shared_noise(np.array(runs), [law] * len(runs[0]))


@pytest.mark.parametrize("count", [0, 1, -1, 10**9])
def test_noise_does_not_depend_on_the_count(count):
    """An empty cell has noise like any other: else it would show which values nobody has."""
    others, _ = noised(np.full(1_000, 40))
    noisy, _ = noised(np.full(1_000, count))
    assert np.array_equal(noisy - count, others - 40)
    assert len(set(noisy.tolist())) > 3


def test_counts_that_are_not_whole_64_bit_numbers_are_a_bug():
    with pytest.raises(InvariantError, match="64-bit"):
        add_noise(Keyed(3).at("noise"), np.zeros(3), LAW, what="cells", part="seeds")


@pytest.mark.parametrize("more", [{"sensitivity": 0}, {"l0_sensitivity": 0}])
def test_a_bill_for_nothing_is_refused(more):
    with pytest.raises(BudgetError, match="at least one"):
        noised([1], **more)


noisy_rows = st.lists(st.integers(-50, 50), min_size=1, max_size=6)


@property_test
@given(noisy_rows)
def test_norm_sub_lowers_all_by_one_number_and_keeps_the_sum(row):
    """λ with Σ_l max(X_l - λ, 0) = max(0, Σ_l X_l), in fractions (the review, section 7)."""
    expected = definitions.norm_sub(row)
    found = norm_sub(np.array([row, row]))
    np.testing.assert_allclose(found, [[float(x) for x in expected]] * 2, atol=1e-12)


@property_test
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_norm_sub_keeps_counts_without_noise(row):
    assert norm_sub(np.array([row])).tolist() == [row]
