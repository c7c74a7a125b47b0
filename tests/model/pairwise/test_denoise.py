"""Denoised tables: consistent margins, interactions and two-way tables combined by their noise."""

import math
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from deniable.counting.local import count
from deniable.model.pairwise.coarse_residual import coarse_residuals
from deniable.model.pairwise.denoise import candidate_parents, denoise_tables, table_weights
from deniable.model.pairwise.measure import measure_pairwise, measure_tables, with_bins
from deniable.model.pairwise.one_way import sum_blocks
from deniable.model.pairwise.shrinkage import double_centre
from deniable.privacy.pairwise_budget import TARGET_WEIGHT, pair_noise
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from worlds import codes_of, plain_attribute, records_of

pytestmark = pytest.mark.slow


def attributes_of(sizes):
    return [plain_attribute(f"x{i}", size) for i, size in enumerate(sizes)]


def measure(codes, sizes, *, mu=math.inf, key=1, weights=None, targets=(), attributes=None):
    """Measure all stages; ``weights`` of the two-way tables replace those that follow."""
    attributes, rng = attributes or attributes_of(sizes), Keyed(key).at("noise")
    laws = pair_noise(sizes, mu_values=mu, mu_pairs=mu)
    measured, _ = measure_pairwise(
        rng,
        partial(count, attributes, codes, workers=1),
        lambda binned: partial(count, binned, codes, workers=1),
        attributes,
        laws,
        targets=targets,
    )
    if weights is None:
        weights = table_weights(measured, attributes, laws, targets=targets)
    counter = partial(count, with_bins(attributes, measured.bins), codes, workers=1)
    return measure_tables(rng, counter, measured, weights, laws)[0]


def table_of(rows=6_000, key=3):
    """x1 depends on x0; x2 is independent; x3 depends weakly on x1."""
    rng = np.random.default_rng(key)
    first = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    second = np.where(rng.random(rows) < 0.7, first, rng.integers(0, 4, rows))
    third = rng.integers(0, 3, rows)
    fourth = np.where(rng.random(rows) < 0.3, second % 2, rng.integers(0, 2, rows))
    columns = [first, second, third, fourth]
    return codes_of(records_of(np.stack(columns, axis=1)), 4), (4, 4, 3, 2)


def test_a_bin_counted_below_zero_keeps_a_quarter_of_its_sigma():
    """Such as rare missing cells: every table counts zero or fewer."""
    codes, sizes = table_of()
    every = dict.fromkeys(combinations(range(4), 2), 1.0)
    seen = measure(codes, sizes, mu=0.5, weights=every)
    assert [int(groups.max()) + 1 for groups in seen.bins] == list(sizes)
    values = [table.copy() for table in seen.values]
    tables = {pair: table.copy() for pair, table in seen.tables.items()}
    # Its records are in the next bin, plus 40 in each cell: totals stay.
    for table in (values[2], tables[0, 2].T, tables[1, 2].T, tables[2, 3]):
        table[1] += table[0] + 400
        table[0] = -400
    hidden = replace(seen, values=tuple(values), tables=tables)
    sigma = seen.table((0, 1))[1]
    others = sum(1 / (sigma**2 * sizes[j]) for j in (0, 1, 3))
    sure = 1 / seen.value_sigmas[2] ** 2 + others
    found = denoise_tables(hidden, attributes_of(sizes))
    assert found.bins[2][0] * found.records == pytest.approx(0.25 / math.sqrt(sure), rel=0.01)


def test_without_noise_values_and_excess_are_those_of_the_table():
    codes, sizes = table_of()
    found = denoise_tables(measure(codes, sizes), attributes_of(sizes))
    assert found.records == pytest.approx(len(codes))
    for i, size in enumerate(sizes):
        share = np.bincount(codes[:, i], minlength=size) / len(codes)
        np.testing.assert_allclose(found.values[i], share, atol=1e-6)
    table = np.zeros((4, 4))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    expected = len(codes) * np.outer(found.bins[0], found.bins[1])
    np.testing.assert_allclose(found.excess[0, 1], table - expected, atol=0.5)


@pytest.mark.parametrize("mu", [math.inf, 1.0, 0.1])
def test_every_attribute_has_a_distribution_and_excess_sums_to_zero(mu):
    codes, sizes = table_of()
    found = denoise_tables(measure(codes, sizes, mu=mu), attributes_of(sizes))
    for values, bins in zip(found.values, found.bins, strict=True):
        assert (values > 0).all()
        assert values.sum() == pytest.approx(1)
        assert bins.sum() == pytest.approx(1)
    for (i, j), excess in found.excess.items():
        np.testing.assert_allclose(excess.sum(axis=0), 0, atol=1e-6 * len(codes))
        np.testing.assert_allclose(excess.sum(axis=1), 0, atol=1e-2 * len(codes))
        # Excess and expected make counts: none is below zero.
        expected = found.records * np.outer(found.bins[i], found.bins[j])
        assert (excess + expected >= -1e-6).all()
    for pair, effect in found.effect_variance.items():
        assert effect >= 0
        assert found.sigma_of(*pair) == found.sigma_of(*pair[::-1])
        np.testing.assert_array_equal(found.excess_of(*pair).T, found.excess_of(*pair[::-1]))


def test_parents_are_ranked_by_dependence():
    codes, sizes = table_of()
    found = denoise_tables(measure(codes, sizes), attributes_of(sizes))
    assert candidate_parents(found, 1, [3, 0, 2])[0] == 0
    assert candidate_parents(found, 3, [0, 1, 2])[:2] == [1, 0]
    assert candidate_parents(found, 0, []) == []


def test_margins_of_all_tables_are_more_accurate_than_one_way_tables():
    """Mean distance of shares from the truth over 30 keys: two-way tables contain margins too."""
    codes, sizes = table_of()
    truth = np.bincount(codes[:, 0], minlength=4) / len(codes)
    alone, agreed = 0.0, 0.0
    for key in range(30):
        measured = measure(codes, sizes, mu=0.3, key=key)
        own = measured.values[0] / measured.records
        alone += np.abs(own - truth).sum()
        found = denoise_tables(measured, attributes_of(sizes))
        agreed += np.abs(found.values[0] - truth).sum()
    assert agreed < alone


# Interactions


def test_dependent_pairs_have_larger_weights():
    """Every measured pair has some weight; a dependent one far more than an independent one."""
    codes, sizes = table_of()
    noise = pair_noise(sizes, mu_values=1.0, mu_pairs=1.0)
    measured = measure(codes, sizes, mu=1.0)
    found = table_weights(measured, attributes_of(sizes), noise, targets=())
    assert set(found) == set(combinations(range(4), 2))
    assert min(found.values()) > 0
    assert found[0, 1] == max(found.values())
    assert found[0, 1] > 20 * found[0, 2]
    aimed = table_weights(measured, attributes_of(sizes), noise, targets=(2,))
    least = min(found.values())
    for pair, weight in found.items():
        factor = TARGET_WEIGHT if 2 in pair else 1
        assert aimed[pair] - 1e-4 == pytest.approx(factor * (weight - 1e-4), abs=1e-12)
    assert least >= 1e-4


def test_without_noise_all_pairs_have_the_same_weight():
    codes, sizes = table_of()
    noise = pair_noise(sizes, mu_values=math.inf, mu_pairs=math.inf)
    measured = measure(codes, sizes)
    found = table_weights(measured, attributes_of(sizes), noise, targets=(1,))
    assert found == dict.fromkeys(combinations(range(4), 2), 1.0)


def test_no_pair_is_chosen_over_a_stronger_one_because_it_has_fewer_cells():
    """Unrelated columns of two and three values, and a strong pair of sixty, little budget."""
    rng = np.random.default_rng(2)
    rows = 20_000
    strong = rng.integers(0, 60, rows)
    related = np.clip(strong + rng.integers(-9, 10, rows), 0, 59)
    others = [rng.integers(0, 2 + i % 2, rows) for i in range(6)]
    sizes = (*[2 + i % 2 for i in range(6)], 60, 60)
    codes = codes_of(np.stack([*others, strong, related], axis=1).tolist(), 8)
    noise = pair_noise(sizes, mu_values=0.02, mu_pairs=0.02)
    for key in range(3):
        measured = measure(codes, sizes, mu=0.02, key=key)
        weights = table_weights(measured, attributes_of(sizes), noise, targets=())
        assert max(weights, key=weights.__getitem__) == (6, 7)
        assert len(weights) < 28, "so that some pairs are not measured"


def test_pairs_without_a_table_are_known_between_groups():
    """Only (2, 3) has a two-way table; the dependence of (0, 1) is that of its interactions."""
    codes, sizes = table_of()
    measured = measure(codes, sizes, mu=1.0, weights={(2, 3): 1.0})
    found = denoise_tables(measured, attributes_of(sizes))
    assert set(found.excess) == {(2, 3)}
    assert set(found.coarse) >= set(combinations(range(4), 2)) - {(2, 3)}
    table = np.zeros((4, 4))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    expected = len(codes) * np.outer(found.bins[0], found.bins[1])
    error = np.abs(found.excess_of(0, 1) - (table - expected)).sum()
    assert error < 0.1 * np.abs(table - expected).sum()
    assert found.effect_variance_of(1, 0) > 0
    assert candidate_parents(found, 1, [0, 2, 3])[0] == 0


def test_interactions_and_tables_together_have_less_noise_than_either():
    """Mean squared error of a weak pair's excess over 40 keys, at the noise of ε ≈ 2."""
    codes, sizes = table_of()
    every = dict.fromkeys(combinations(range(4), 2), 1.0)
    table = np.zeros((4, 2))
    np.add.at(table, (codes[:, 1], codes[:, 3]), 1)
    truth = table - np.outer(table.sum(axis=1), table.sum(axis=0)) / len(codes)
    errors = np.zeros(3)
    for key in range(40):
        both = measure(codes, sizes, mu=0.3, key=key, weights=every)
        coarse = replace(both, tables={}, table_counts={})
        fine = replace(both, interactions={}, interaction_sigmas={})
        for at, seen in enumerate((both, coarse, fine)):
            excess = denoise_tables(seen, attributes_of(sizes)).excess_of(1, 3)
            errors[at] += np.square(excess - truth).sum()
    assert errors[0] < min(errors[1:])


def test_cells_that_noise_shows_to_be_empty_stay_empty():
    """Children have no income: independence expects 750 records in each of two cells."""
    rng = np.random.default_rng(3)
    age = rng.integers(0, 4, 12_000)
    income = np.where(age == 0, 0, rng.integers(0, 4, 12_000))
    sizes = (4, 4, 2)
    codes = codes_of(np.stack([age, income, rng.integers(0, 2, 12_000)], axis=1).tolist(), 3)
    for weights in (None, {(1, 2): 1.0}):
        measured = measure(codes, sizes, mu=0.3, weights=weights)
        found = denoise_tables(measured, attributes_of(sizes))
        expected = found.records * np.outer(found.bins[0], found.bins[1])
        counts = expected + found.excess_of(0, 1)
        assert (counts[0, 1:] < 0.02 * expected[0, 1:]).all()


def test_trends_of_two_ordered_columns_stand_out_too():
    """The second column rises with the first; both have six bins."""
    rng = np.random.default_rng(8)
    first, more = rng.integers(0, 6, (2, 20_000))
    codes = codes_of(records_of(np.stack([first, (first + more) // 2], axis=1)), 2)
    ordered = [Attribute(name=f"x{i}", kind="ordered", values=tuple("abcdef")) for i in range(2)]
    seen = measure(codes, (6, 6), mu=0.3, attributes=ordered)
    trends = denoise_tables(seen, ordered).trends.directions[0, 1]
    assert trends.rows is not None
    assert trends.columns is not None


def test_a_denoised_table_has_the_trends_that_were_measured():
    """Cells that noise hides are limited to what others leave; that comes before the sums between
    groups are restored. The other way round, trends moved by one standard deviation on average."""
    rng = np.random.default_rng(9)
    first = rng.integers(0, 40, 60_000)
    shares = np.array([0.4, 0.4, 0.1, 0.05, 0.02, 0.01, 0.01, 0.005, 0.005])
    others = rng.choice([1, 2, 4, 5, 6, 7, 8, 9, 10], 60_000, p=shares)
    second = np.where(rng.random(60_000) < np.exp(-first / 5), 3, others)
    codes = codes_of(records_of(np.stack([first, 10 - second], axis=1)), 2)
    sizes = (40, 10)
    ordered = [
        Attribute(name=f"x{i}", kind="integer", values=range(size)) for i, size in enumerate(sizes)
    ]
    distances = []
    for key in range(8):
        seen = measure(codes, sizes, mu=0.15, key=key, attributes=ordered, weights={(0, 1): 1.0})
        found = denoise_tables(seen, ordered)
        margins = [found.records * share for share in found.bins]
        expected = np.outer(margins[0], found.bins[1])
        table, sigma = seen.table((0, 1))
        residuals = {(0, 1): double_centre(table - expected)}
        coarse = coarse_residuals(seen, ordered, margins, residuals, {(0, 1): sigma})[0, 1]
        assert coarse.trends.columns is not None, "there is a trend"
        sums = sum_blocks(coarse.rows, coarse.columns, found.excess_of(0, 1))
        moved = coarse.trends.project(sums - coarse.residual) / coarse.sigma
        distances.append(np.linalg.norm(moved))
    assert np.mean(distances) < 0.5


def test_a_table_adds_no_noise_to_a_pair():
    """The fit shrinks a pair by its noise: not more because a noisy two-way table was added."""
    codes, sizes = table_of()
    both = measure(codes, sizes, mu=0.3, weights=dict.fromkeys(combinations(range(4), 2), 1.0))
    coarse = replace(both, tables={}, table_counts={})
    found, alone = (denoise_tables(seen, attributes_of(sizes)) for seen in (both, coarse))
    assert set(found.excess) == set(combinations(range(4), 2))
    for i, j in found.excess:
        assert found.sigma_of(i, j) < min(alone.sigma_of(i, j), both.table((i, j))[1])


@pytest.mark.parametrize(("mu", "relative"), [(math.inf, 1), (0.5, 1), (0.1, 1), (0.02, 5)])
def test_noise_counts_relative_to_that_of_the_default(mu, relative):
    """μ of the one-way tables is 0.1 at ε = 1; rounding the noise to integers changes little."""
    codes, sizes = table_of()
    tables = denoise_tables(measure(codes, sizes, mu=mu), attributes_of(sizes))
    assert tables.relative_noise == pytest.approx(relative, rel=0.01)
