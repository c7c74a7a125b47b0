"""Noise level: the least visible dependence and the sample equivalent, against simulations."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from deniable.model.pairwise.noise_level import ColumnNoise, NoiseLevel, PairNoises, noise_level
from deniable.schema.attribute import Attribute


def column(groups, *, sigma=1e-6, bins=None, is_ordered=True):
    shares = np.full(groups, 1 / groups)
    return ColumnNoise(
        values=groups, bins=bins or groups, shares=shares, sigma=sigma, is_ordered=is_ordered
    )


def level_of(columns, sigma, *, records, tables=None):
    pairs = PairNoises.of(columns, {(0, 1): sigma}, tables or {})
    return noise_level(columns, pairs, records=records)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (4, 4), (3, 7)])
def test_a_sample_of_the_stated_size_is_as_far_off_as_the_noise(rows, columns):
    """Mean squared distances of 20,000 samples and noisy tables: 6 % is at least 4 s.e."""
    rng = np.random.default_rng(rows)
    n, sigma = 9_408, 150.0
    level = level_of([column(rows), column(columns)], sigma, records=n)
    counts = np.full(rows * columns, n // (rows * columns))
    m = round(level.sample_share * n)
    assert 10 < m < n / 2
    samples = rng.multivariate_hypergeometric(counts, m, size=20_000) / m
    noise = rng.normal(scale=sigma, size=(20_000, rows, columns))
    noise -= noise.mean(axis=1, keepdims=True)
    noisy = (noise - noise.mean(axis=2, keepdims=True)) / n
    sampled = np.square(samples - counts / n).sum(axis=1).mean()
    assert np.square(noisy).sum(axis=(1, 2)).mean() == pytest.approx(sampled, rel=0.06)


def test_the_noise_of_margins_counts_as_well():
    """Margins of independence, r cᵀ: noise in r is spread over the columns, and centred."""
    rng = np.random.default_rng(1)
    n, sigma = 10_000, 50.0
    columns = [column(4, sigma=sigma), column(5)]
    level = level_of(columns, 1e-6, records=n)
    r = rng.normal(scale=sigma, size=(4_000, 4))
    r -= r.mean(axis=1, keepdims=True)
    tables = r[:, :, None] * columns[1].shares / n
    variance = np.square(tables).sum(axis=(1, 2)).mean()
    stated = (1 / level.sample_share - 1) / n * (1 - 1 / 20)
    assert stated == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("groups", [2, 5])
def test_a_dependence_of_the_visible_strength_adds_two_standard_deviations(groups):
    """φ = V √(g - 1) is spread over the diagonal, and compared with noise and sampling alone."""
    rng = np.random.default_rng(groups)
    n, sigma = 5_000, 30.0
    level = level_of([column(groups), column(groups)], sigma, records=n)
    v = level.visible_association
    assert 0.01 < v < 0.2
    # Perfect dependence, weakened to V: cells n (1/g² + V (1{i = j}/g - 1/g²)).
    signal = n * v * (np.eye(groups) / groups - 1 / groups**2)
    counts = rng.multinomial(n, [1 / groups**2] * groups**2, size=20_000)
    noise = counts.reshape(-1, groups, groups) + rng.normal(
        scale=sigma, size=(20_000, groups, groups)
    )
    noise -= noise.mean(axis=1, keepdims=True)
    noise -= noise.mean(axis=2, keepdims=True)
    alone = np.square(noise).sum(axis=(1, 2))
    together = np.square(noise + signal).sum(axis=(1, 2))
    assert together.mean() == pytest.approx(alone.mean() + 2 * alone.std(), rel=0.03)


@pytest.mark.parametrize("groups", [2, 4])
def test_two_numbers_of_the_visible_correlation_have_the_visible_association(groups):
    """A million normal pairs, cut at quantiles: φ² less its sampling bias, 10 % is above 5 s.e."""
    rng = np.random.default_rng(groups)
    level = level_of([column(groups), column(groups)], 30.0, records=2_000)
    rho, count = level.visible_correlation, 1_000_000
    x = rng.standard_normal(count)
    y = rho * x + math.sqrt(1 - rho**2) * rng.standard_normal(count)
    cuts = [NormalDist().inv_cdf(k / groups) for k in range(1, groups)]
    cells = np.searchsorted(cuts, x) * groups + np.searchsorted(cuts, y)
    shares = np.bincount(cells, minlength=groups**2).reshape(groups, groups) / count
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    phi2 = ((shares - expected) ** 2 / expected).sum() - (groups - 1) ** 2 / count
    assert math.sqrt(phi2 / (groups - 1)) == pytest.approx(level.visible_association, rel=0.1)


def test_only_ordered_columns_have_a_correlation():
    level = level_of([column(4), column(4, is_ordered=False)], 1.0, records=1_000)
    assert level.visible_correlation is None
    assert level.visible_association > 0
    assert "correlation" not in " ".join(level.sentences)


def test_two_way_tables_add_precision_by_inverse_variance():
    """A cell between groups sums 3 × 2 cells between bins."""
    columns = [column(4, bins=12), column(5, bins=10)]
    pairs = PairNoises.of(columns, {(0, 1): 10.0}, {(0, 1): 7.0})
    assert pairs.best_sigma[0] == pytest.approx((1 / 100 + 1 / (6 * 49)) ** -0.5)
    assert PairNoises.of(columns, {(0, 1): 10.0}, {}).best_sigma[0] == pytest.approx(10.0)
    with_tables = level_of(columns, 10.0, records=1_000, tables={(0, 1): 7.0})
    without = level_of(columns, 10.0, records=1_000)
    assert with_tables.sample_share > without.sample_share
    assert with_tables.visible_association == without.visible_association


def test_an_attribute_is_described_by_its_groups():
    attribute = Attribute(name="x", kind="ordered", values=("a", "b", "c", "d"))
    bins, groups = np.array([0, 1, 2, 2]), np.array([0, 0, 1])
    found = ColumnNoise.of(attribute, bins, groups, np.array([0.1, 0.2, 0.3, 0.4]), 2.0)
    assert (found.values, found.bins, found.sigma, found.is_ordered) == (4, 3, 2.0, True)
    np.testing.assert_allclose(found.shares, [0.3, 0.7])


def level(**changes):
    facts = {"rows": 1_000.0, "columns": 3, "pairs": 3, "groups": 2.0, "value_error": 0.001}
    figures = {"visible_association": 0.1, "visible_correlation": 0.2, "sample_share": 0.12}
    return NoiseLevel(**{**facts, **figures, **changes})


@pytest.mark.parametrize(
    ("changes", "noisy"),
    [
        ({}, False),
        ({"visible_association": 0.49}, False),
        ({"visible_association": 0.51}, True),
        ({"value_error": 0.11}, True),
        ({"visible_association": None, "sample_share": None}, False),
    ],
)
def test_most_is_noise_if_strong_dependences_or_single_values_are_hidden(changes, noisy):
    assert level(**changes).is_mostly_noise == noisy


def test_the_figures_are_said_in_words():
    assert level().sentences == (
        "A single value: the standard error of its share is about 0.10 percentage points.",
        "Two columns: a dependence stands out from the noise if Cramér's V is above 0.10 "
        "(two numbers: a correlation above 0.20).",
        "All pairs together: about as good as a random sample of 12 % of the rows.",
    )
    hidden = level(visible_association=1.5, value_error=2.0, sample_share=0.0002).sentences
    assert hidden == (
        "A single value: the noise of its share is larger than the table.",
        "Two columns: no dependence stands out from the noise, however strong it is.",
        "All pairs together: about as good as a random sample of less than 0.1 % of the rows.",
    )
    assert len(level(columns=1, pairs=0).sentences) == 1
    none = level(pairs=0, visible_association=None, visible_correlation=None, sample_share=None)
    assert none.sentences[1:] == (hidden[1],)


def test_figures_have_three_digits():
    found = level(rows=48_842.1, value_error=0.00123456).document()
    assert (found["rows"], found["value_error"]) == (48_800, 0.00123)
