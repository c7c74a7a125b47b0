"""Noisy histograms: the exact distribution of the released counts meets the calibrated (ε, δ)."""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_rate
from deniable.drafting.column_profile import open_table
from deniable.drafting.noisy_histograms import (
    HistogramMeasurer,
    calibrate_noise,
    count_classes,
    count_intervals,
    grid_positions,
    per_row_limit,
)
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.composition import Guarantee, group_privacy
from deniable.privacy.ledger import Spend, compose_spends
from deniable.privacy.noise_laws import Law, discrete_laplace, truncated_geometric
from deniable.randomness import Keyed, SystemRng

pytestmark = pytest.mark.slow


@dataclass(frozen=True, kw_only=True)
class FixedDraws(Law):
    """A law with given draws, to enumerate all outcomes."""

    draws: tuple[int, ...] = ()

    def draw(self, rng, shape):  # noqa: ARG002 - the draws are given
        assert shape == (len(self.draws),)
        return np.array(self.draws, dtype=np.int64)


def released_law(counts: list[int], law: Law) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """The exact law of ``HistogramMeasurer.histogram``: every noise, with its probability."""
    found: dict[tuple[tuple[int, int], ...], Fraction] = defaultdict(Fraction)
    occupied = [i for i, count in enumerate(counts) if count]
    for draws in product(range(-law.r, law.r + 1), repeat=len(occupied)):
        fixed = FixedDraws(
            name=law.name, parameters=law.parameters, r=law.r, make=law.make, tv=law.tv, draws=draws
        )
        released = HistogramMeasurer(fixed, SystemRng(), 1).histogram(
            np.array([counts[i] for i in occupied], dtype=np.int64)
        )
        cells = tuple((i, int(n)) for i, n in zip(occupied, released, strict=True) if n)
        found[cells] += math.prod((law.probability(z) for z in draws), start=Fraction(1))
    return found


def delta_between(one, other, epsilon: float) -> float:
    factor = Fraction(math.exp(epsilon))
    return float(sum(max(Fraction(0), p - factor * other.get(out, 0)) for out, p in one.items()))


LAW = truncated_geometric(0.7, 3)


@pytest.mark.parametrize(
    ("counts", "neighbour"),
    [([2, 3], [2, 4]), ([5, 0], [5, 1]), ([0, 0], [1, 0]), ([1, 4], [1, 5]), ([7, 1], [7, 2])],
)
def test_released_counts_cost_exactly_delta_of_the_law(counts, neighbour):
    """Every outcome of tiny tables: the true δ never exceeds the law's, and once equals it."""
    one, other = released_law(counts, LAW), released_law(neighbour, LAW)
    for epsilon in (0.0, 0.35, 0.7):
        true = max(delta_between(one, other, epsilon), delta_between(other, one, epsilon))
        assert true <= LAW.delta(epsilon) * (1 + 1e-9)
    if min(counts) == 0:  # a category appears: only its edge shows it
        assert delta_between(other, one, 0.7) == pytest.approx(LAW.delta(0.7), rel=1e-6)


def test_a_threshold_of_r_would_be_caught(monkeypatch):
    """The test above can fail: one lower, and a category of one row appears too often."""
    monkeypatch.setattr(HistogramMeasurer, "threshold", property(lambda self: self.law.r))
    one, other = released_law([5, 0], LAW), released_law([5, 1], LAW)
    assert delta_between(other, one, 0.7) > LAW.delta(0.7) * 1.5


def test_a_category_of_one_row_is_released_with_the_probability_of_the_law():
    trials = 40_000
    law = truncated_geometric(1.0, 3)
    noisy = HistogramMeasurer(law, Keyed(7).at("noise"), 1).histogram(
        np.ones(trials, dtype=np.int64)
    )
    assert_rate(int((noisy > 0).sum()), trials, float(law.probability(3)))


def test_an_empty_cell_is_never_released():
    law = truncated_geometric(0.1, 20)
    noisy = HistogramMeasurer(law, Keyed(8).at("noise"), 1).histogram(
        np.zeros(50_000, dtype=np.int64)
    )
    assert not noisy.any()


def test_unbounded_noise_and_too_many_histograms_are_rejected():
    with pytest.raises(InvariantError, match="bounded"):
        HistogramMeasurer(discrete_laplace(1.0), SystemRng(), 1)
    measurer = HistogramMeasurer(LAW, SystemRng(), 1)
    measurer.histogram(np.ones(2, dtype=np.int64))
    with pytest.raises(InvariantError, match="calibrated"):
        measurer.histogram(np.ones(2, dtype=np.int64))


@pytest.mark.parametrize("histograms", [1, 3, 33, 330])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_meets_the_limit_and_wastes_little_of_it(histograms, epsilon):
    limit = Guarantee(epsilon=epsilon, delta=1e-9)
    law = calibrate_noise(limit, histograms=histograms)
    spend = Spend(what="x", part="structure", law=law, moved=histograms)
    cost = compose_spends((spend,), delta=limit.delta)
    assert cost.within(limit)
    assert cost.epsilon > 0.75 * epsilon


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_a_limit_of_zero_or_infinity_is_rejected(epsilon):
    with pytest.raises(BudgetError, match="0 < ε"):
        calibrate_noise(Guarantee(epsilon=epsilon, delta=1e-9), histograms=3)


def test_a_delta_that_no_noise_meets_is_rejected_with_advice():
    with pytest.raises(BudgetError, match="larger δ"):
        calibrate_noise(Guarantee(epsilon=5.0, delta=1e-15), histograms=50)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_unit_of_several_rows_costs_no_more_than_its_limit(rows):
    limit = Guarantee(epsilon=1.0, delta=1e-9)
    one = per_row_limit(limit, rows=rows)
    assert group_privacy(one, rows=rows).within(limit)
    assert one.epsilon == pytest.approx(1.0 / rows)
    if rows > 1:
        assert one.delta < limit.delta / rows


CELLS = st.one_of(
    st.none(),
    st.sampled_from(["", "NA", "yes", "0", "1", "12", "3.5", "2020-01-01", "1/2/2020", "x"]),
    st.integers(-(10**6), 10**6).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.text(max_size=5),
)


def columns_of(cells):
    frame = pl.DataFrame({"cell": pl.Series(cells, dtype=pl.String)})
    return open_table(frame, private=True).read_texts()[0]


@settings(deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=12), CELLS)
def test_one_row_moves_one_count_of_every_histogram_by_one(cells, more):
    """The premise of the whole draft, for classes and for intervals."""
    before, after = columns_of(cells), columns_of([*cells, more])
    assert np.abs(count_classes(after) - count_classes(before)).sum() == 1
    edges = [-100, 0, 1, 10, 1000]
    moved = [count_intervals(*grid_positions(one, 2), edges) for one in (before, after)]
    assert np.abs(moved[1] - moved[0]).sum() <= 1


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=12), st.floats())
def test_one_row_moves_one_count_of_typed_numbers(cells, more):
    def read(values):
        frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
        return open_table(frame, private=True).read_texts()[0]

    before, after = read(cells), read([*cells, more])
    assert np.abs(count_classes(after) - count_classes(before)).sum() == 1


def test_texts_are_released_in_their_own_order_and_after_public_cells():
    column = columns_of(["oak"] * 50 + ["elm"] * 70 + ["yew"] + ["ash"] * 30)
    law = truncated_geometric(2.0, 5)
    measured = HistogramMeasurer(law, Keyed(4).at("noise"), 1).measure(np.array([0, 40]), column)
    assert [*measured.texts] == ["ash", "elm", "oak"]
    assert measured.public[0] == 0
    assert abs(measured.public[1] - 40) <= 5
    assert abs(measured.texts["elm"] - 70) <= 5
