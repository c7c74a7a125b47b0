"""Noisy histograms: what is shown has the law that is paid for, exactly."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_rate
from deniable.drafting.columns import open_table
from deniable.drafting.measures import (
    Measurer,
    class_counts,
    interval_counts,
    law_for,
    per_row,
    positions_in,
)
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.composition import Guarantee, of_a_group
from deniable.privacy.laws import Law, discrete_laplace, truncated_geometric
from deniable.privacy.ledger import Spend, cost_of
from deniable.randomness import Keyed, SystemRng


@dataclass(frozen=True, kw_only=True)
class Said(Law):
    """A law whose next draws are told beforehand: for enumeration."""

    draws: tuple[int, ...] = ()

    def draw(self, rng, shape):  # noqa: ARG002 - the draws are told
        assert shape == (len(self.draws),)
        return np.array(self.draws, dtype=np.int64)


def shown_law(counts: list[int], law: Law) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """The exact law of what ``Measurer.histogram`` shows: every noise, with its probability."""
    found: Counter = Counter()
    there = [i for i, count in enumerate(counts) if count]
    for draws in product(range(-law.r, law.r + 1), repeat=len(there)):
        said = Said(
            name=law.name, parameters=law.parameters, r=law.r, make=law.make, tv=law.tv, draws=draws
        )
        shown = Measurer(said, SystemRng(), 1).histogram(
            np.array([counts[i] for i in there], dtype=np.int64)
        )
        cells = tuple((i, int(n)) for i, n in zip(there, shown, strict=True) if n)
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
def test_what_is_kept_costs_exactly_what_the_law_says(counts, neighbour):
    """Tiny tables, every outcome: the true δ is never above δ of the law, and meets it once."""
    one, other = shown_law(counts, LAW), shown_law(neighbour, LAW)
    for epsilon in (0.0, 0.35, 0.7):
        true = max(delta_between(one, other, epsilon), delta_between(other, one, epsilon))
        assert true <= LAW.delta(epsilon) * (1 + 1e-9)
    if min(counts) == 0:  # a category appears: only its edge shows it
        assert delta_between(other, one, 0.7) == pytest.approx(LAW.delta(0.7), rel=1e-6)


def test_a_threshold_of_r_would_have_been_caught(monkeypatch):
    """The test above can fail: one lower, and a category of one row shows too often."""
    monkeypatch.setattr(Measurer, "threshold", property(lambda self: self.law.r))
    one, other = shown_law([5, 0], LAW), shown_law([5, 1], LAW)
    assert delta_between(other, one, 0.7) > LAW.delta(0.7) * 1.5


def test_a_category_of_one_row_is_kept_as_rarely_as_the_law_says():
    trials = 40_000
    law = truncated_geometric(1.0, 3)
    noisy = Measurer(law, Keyed(7).at("noise"), 1).histogram(np.ones(trials, dtype=np.int64))
    assert_rate(int((noisy > 0).sum()), trials, float(law.probability(3)))


def test_an_empty_cell_is_never_shown():
    law = truncated_geometric(0.1, 20)
    noisy = Measurer(law, Keyed(8).at("noise"), 1).histogram(np.zeros(50_000, dtype=np.int64))
    assert not noisy.any()


def test_unbounded_noise_and_unpaid_histograms_are_refused():
    with pytest.raises(InvariantError, match="bounded"):
        Measurer(discrete_laplace(1.0), SystemRng(), 1)
    measurer = Measurer(LAW, SystemRng(), 1)
    measurer.histogram(np.ones(2, dtype=np.int64))
    with pytest.raises(InvariantError, match="paid"):
        measurer.histogram(np.ones(2, dtype=np.int64))


@pytest.mark.parametrize("histograms", [1, 3, 33, 330])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_fits_the_limit_and_wastes_little_of_it(histograms, epsilon):
    limit = Guarantee(epsilon=epsilon, delta=1e-9)
    law = law_for(limit, histograms=histograms)
    spend = Spend(what="x", part="structure", law=law, moved=histograms)
    cost = cost_of((spend,), delta=limit.delta)
    assert cost.within(limit)
    assert cost.epsilon > 0.75 * epsilon


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_a_limit_without_noise_or_without_budget_is_refused(epsilon):
    with pytest.raises(BudgetError, match="0 < ε"):
        law_for(Guarantee(epsilon=epsilon, delta=1e-9), histograms=3)


def test_a_delta_that_nothing_certifies_is_refused_with_advice():
    with pytest.raises(BudgetError, match="larger δ"):
        law_for(Guarantee(epsilon=5.0, delta=1e-15), histograms=50)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_unit_of_several_rows_costs_no_more_than_its_limit(rows):
    limit = Guarantee(epsilon=1.0, delta=1e-9)
    one = per_row(limit, rows=rows)
    assert of_a_group(one, rows=rows).within(limit)
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
    return open_table(frame).read()[0]


@settings(deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=12), CELLS)
def test_one_row_moves_one_count_of_every_histogram_by_one(cells, more):
    """The premise of the whole draft, for classes and for a ladder."""
    before, after = columns_of(cells), columns_of([*cells, more])
    assert np.abs(class_counts(after) - class_counts(before)).sum() == 1
    edges = [-100, 0, 1, 10, 1000]
    rungs = [interval_counts(*positions_in(one, 2), edges) for one in (before, after)]
    assert np.abs(rungs[1] - rungs[0]).sum() <= 1


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=12), st.floats())
def test_the_same_of_typed_numbers(cells, more):
    def read(values):
        return open_table(pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})).read()[0]

    before, after = read(cells), read([*cells, more])
    assert np.abs(class_counts(after) - class_counts(before)).sum() == 1
