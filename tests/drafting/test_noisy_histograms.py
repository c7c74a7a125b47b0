"""Noisy histograms: the exact distribution of the released counts meets the calibrated (ε, δ)."""

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_rate
from deniable.drafting import noisy_histograms
from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.column_profile import open_table
from deniable.drafting.noisy_histograms import (
    DraftNoise,
    HistogramMeasurer,
    calibrate_noise,
    per_row_limit,
    text_threshold,
)
from deniable.drafting.type_histogram import count_types
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.composition import Guarantee, gaussian_delta, group_privacy
from deniable.privacy.ledger import Spend, compose_spends
from deniable.privacy.noise_laws import rounded_gaussian
from deniable.randomness import Keyed, SystemRng

pytestmark = pytest.mark.slow

SIGMA = 0.8
LOOSE = Guarantee(epsilon=1.0, delta=1e-3)
# Loose enough for noise of small radius, so that all outcomes can be enumerated.
NOISE = DraftNoise(mu=1 / SIGMA, epsilon=1.0, text_delta=0.02, max_histograms=1, max_lists=1)


def texts_of(counts: dict[str, int]) -> CountedTexts:
    rows = {text: count for text, count in counts.items() if count}
    return CountedTexts(
        name="x",
        texts=pl.Series([*rows], dtype=pl.String),
        classes=np.zeros(len(rows), dtype=np.int64),
        counts=np.array([*rows.values()], dtype=np.int64),
        nulls=0,
    )


def released_law(public: int, texts: dict[str, int]) -> dict[tuple, float]:
    """The exact law of ``HistogramMeasurer.measure``: every noise, with its probability."""
    found: dict[tuple, float] = defaultdict(float)
    listed = texts_of(texts)
    for draws in product(CHANCES, repeat=1 + len(listed.counts)):

        def fixed(_rng, counts, law, draws=draws, **_):
            return counts + np.array(draws), Spend(what="x", part="structure", law=law)

        with patch.object(noisy_histograms, "add_noise", fixed):
            answer = HistogramMeasurer(NOISE, SystemRng()).measure(
                np.array([public]), listed, share=1.0
            )
        outcome = (int(answer.public[0]), *answer.texts.items())
        found[outcome] += math.prod(CHANCES[z] for z in draws)
    return found


def chances(sigma: float) -> dict[int, float]:
    """Probability of each value of the noise, without those that never occur."""
    law = rounded_gaussian(sigma)
    upper = law.table.probabilities()
    return {z: float(upper[abs(z)]) for z in range(-law.radius, law.radius + 1) if upper[abs(z)]}


CHANCES = {z: chance for z, chance in chances(SIGMA).items() if chance > 1e-16}


def delta_between(one, other, epsilon: float) -> float:
    factor = math.exp(epsilon)
    return sum(max(0.0, p - factor * other.get(out, 0.0)) for out, p in one.items())


NEIGHBOURS = [
    ((2, {"oak": 4}), (3, {"oak": 4})),
    ((2, {"oak": 4}), (2, {"oak": 5})),
    ((2, {"oak": 1}), (2, {"oak": 2})),
    ((2, {"oak": 0}), (2, {"oak": 1})),
    ((0, {}), (0, {"oak": 1})),
]


@pytest.mark.parametrize(("before", "after"), NEIGHBOURS)
def test_released_counts_cost_at_most_what_theorem_7b_gives(before, after):
    """Every outcome of tiny tables, both ways; a text that appears costs nothing but δ."""
    one, other = released_law(*before), released_law(*after)
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        true = max(delta_between(one, other, epsilon), delta_between(other, one, epsilon))
        ideal = max(0.0, epsilon + math.log1p(-NOISE.text_delta))
        assert true <= gaussian_delta(epsilon=ideal, mu=NOISE.mu) + NOISE.text_delta + 1e-12
        if before[1].get("oak", 0) == 0:
            assert true <= NOISE.text_delta + 1e-12


def test_a_threshold_that_is_one_lower_would_be_caught(monkeypatch):
    """The test above can fail: a text of one row appears too often."""
    real = text_threshold
    monkeypatch.setattr(
        noisy_histograms, "text_threshold", lambda sigma, delta: real(sigma, delta) - 1
    )
    one, other = released_law(0, {}), released_law(0, {"oak": 1})
    assert delta_between(other, one, 0.0) > 1.5 * NOISE.text_delta


# Texts that are listed twice

# More noise than above, as thresholds are integers: else a text would be far from its threshold.
TWICE = DraftNoise(mu=1 / 3, epsilon=1.0, text_delta=0.02, max_histograms=2, max_lists=2)
FIRST_SHARE = 0.3


def law_of_two_lists(texts: dict[str, int]) -> dict[tuple, float]:
    """The exact law of two histograms of the same texts; the second releases means of both."""
    found: dict[tuple, float] = defaultdict(float)
    listed = texts_of(texts)
    shares = (FIRST_SHARE, 1 - FIRST_SHARE)
    laws = [chances(1 / (TWICE.mu * share**0.5)) for share in shares]
    likely = [[z for z, chance in law.items() if chance > 1e-8] for law in laws]
    size = len(listed.counts)
    for draws in product(*(product(each, repeat=size) for each in likely)):
        left = list(draws)

        def fixed(_rng, counts, law, left=left, **_):
            return counts + np.array(left.pop(0)), Spend(what="x", part="structure", law=law)

        with patch.object(noisy_histograms, "add_noise", fixed):
            measurer = HistogramMeasurer(TWICE, SystemRng())
            answers = [
                measurer.measure(np.zeros(0, dtype=np.int64), listed, share=share)
                for share in shares
            ]
        outcome = tuple(tuple(answer.texts.items()) for answer in answers)
        found[outcome] += math.prod(laws[i][z] for i, each in enumerate(draws) for z in each)
    return found


@pytest.mark.parametrize(
    ("before", "after"), [({}, {"oak": 1}), ({"oak": 1}, {"oak": 2}), ({"oak": 4}, {"oak": 5})]
)
def test_texts_that_are_listed_twice_cost_what_theorem_7b_gives(before, after):
    one, other = law_of_two_lists(before), law_of_two_lists(after)
    lists = 2 * TWICE.text_delta
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        true = max(delta_between(one, other, epsilon), delta_between(other, one, epsilon))
        ideal = max(0.0, epsilon + math.log1p(-lists))
        assert true <= gaussian_delta(epsilon=ideal, mu=TWICE.mu) + lists + 1e-6


def test_the_mean_of_two_lists_shows_a_text_of_one_row_as_rarely_as_one_list():
    shown = sum(p for (_, second), p in law_of_two_lists({"oak": 1}).items() if second)
    assert 0.5 * TWICE.text_delta < shown <= TWICE.text_delta


def test_a_mean_that_forgets_the_first_list_would_be_caught(monkeypatch):
    """The second list alone has more noise than the mean, and names a text too often."""

    def second_alone(self, earlier):
        found = real(self, earlier)
        return found if earlier is None else replace(found, counts=self.counts)

    real = noisy_histograms._HiddenCounts.with_earlier
    monkeypatch.setattr(noisy_histograms._HiddenCounts, "with_earlier", second_alone)
    shown = sum(p for (_, second), p in law_of_two_lists({"oak": 1}).items() if second)
    assert shown > TWICE.text_delta


def test_a_text_of_one_row_is_released_with_the_probability_of_the_law():
    trials = 40_000
    listed = texts_of({str(i): 1 for i in range(trials)})
    measurer = HistogramMeasurer(NOISE, Keyed(7).at("noise"))
    seen = measurer.measure(np.zeros(0, dtype=np.int64), listed, share=1.0).texts
    threshold = text_threshold(SIGMA, NOISE.text_delta)
    expected = sum(chance for z, chance in CHANCES.items() if z >= threshold - 1)
    assert_rate(len(seen), trials, expected)


@pytest.mark.parametrize("sigma", [0.5, 3.0, 170.0, 5_000.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-11, 1e-20])
def test_the_threshold_is_the_smallest_that_meets_delta(sigma, delta):
    threshold, law = text_threshold(sigma, delta), chances(sigma)

    def tail(least: int) -> float:
        return math.fsum(chance for z, chance in law.items() if z >= least - 1)

    assert tail(threshold) <= delta * (1 + 1e-9)
    assert threshold == 2 or tail(threshold - 1) > delta * (1 - 1e-9)


def test_more_than_was_calibrated_for_is_rejected():
    counts = np.ones(2, dtype=np.int64)
    for shares in ([1.0, 1e-3], [0.7, 0.4]):
        measurer = HistogramMeasurer(NOISE, SystemRng())
        measurer.measure(counts, share=shares[0])
        with pytest.raises(InvariantError, match="calibrated"):
            measurer.measure(counts, share=shares[1])
    texts = texts_of({"oak": 9})
    measurer = HistogramMeasurer(calibrate_noise(LOOSE, histograms=9, lists=1), SystemRng())
    measurer.measure(counts, texts, share=0.1)
    with pytest.raises(InvariantError, match="calibrated"):
        measurer.measure(counts, texts, share=0.1)
    several = DraftNoise(mu=1.0, epsilon=1.0, text_delta=0.03, max_histograms=9, max_lists=1)
    measurer = HistogramMeasurer(several, SystemRng())
    for _ in range(2):
        measurer.measure(counts, share=0.4)
    with pytest.raises(InvariantError, match="calibrated"):
        measurer.measure(counts, share=0.4)


@pytest.mark.parametrize("columns", [1, 3, 33, 330])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_noise_meets_the_limit_and_wastes_little_of_it(columns, epsilon):
    """However the histograms share μ²: equally, or nearly all of it for one."""
    limit = Guarantee(epsilon=epsilon, delta=1e-9)
    histograms = 5 * columns + 1
    noise = calibrate_noise(limit, histograms=histograms, lists=columns)
    first = 0.99
    rest = (1 - first) / (histograms - 1)
    for shares in ([1 / histograms] * histograms, [first, *[rest] * (histograms - 1)]):
        laws = [rounded_gaussian(1 / (noise.mu * share**0.5)) for share in shares]
        spends = tuple(Spend(what="x", part="structure", law=law) for law in laws)
        assert noise.cost(spends).within(noise.largest_cost)
        assert noise.largest_cost.within(limit)
        # The accountant, another method, rounds up on a grid.
        composed = compose_spends(spends, delta=0.75e-9)
        assert 0.99 * epsilon < composed.epsilon < 1.001 * epsilon


def test_hidden_texts_are_part_of_the_cost():
    """A large text_delta shows the ε of hiding, -ln(1 - lists · text_delta), and the δ of lists."""
    noise = DraftNoise(mu=0.5, epsilon=1.0, text_delta=0.05, max_histograms=4, max_lists=2)
    cost = noise.largest_cost
    assert cost.epsilon == pytest.approx(1 - math.log(0.9), rel=1e-9)
    assert cost.delta == pytest.approx(gaussian_delta(epsilon=1.0, mu=0.5) + 0.1, rel=1e-9)


def test_a_second_list_with_a_new_text_is_refused_without_naming_it():
    measurer = HistogramMeasurer(TWICE, SystemRng())
    none = np.zeros(0, dtype=np.int64)
    measurer.measure(none, texts_of({"oak": 3}), share=0.5)
    with pytest.raises(InvariantError) as fault:
        measurer.measure(none, texts_of({"elm": 3}), share=0.5)
    assert "elm" not in str(fault.value)


def test_a_measurement_has_its_share_of_the_noise_and_a_ledger_entry():
    noise = calibrate_noise(Guarantee(epsilon=1.0, delta=1e-9), histograms=3, lists=1)
    measurer = HistogramMeasurer(noise, Keyed(1).at("noise"))
    for share in (0.2, 0.3, 0.5):
        answer = measurer.measure(np.zeros(20_000, dtype=np.int64), share=share)
        assert answer.sigma == pytest.approx(1 / (noise.mu * share**0.5))
        assert answer.public.std() == pytest.approx(answer.sigma, rel=0.03)
    assert measurer.cost().within(noise.largest_cost)
    assert measurer.cost().delta == pytest.approx(noise.largest_cost.delta, rel=1e-5)


def test_a_draft_that_measures_nothing_costs_nothing():
    assert HistogramMeasurer(NOISE, SystemRng()).cost() == Guarantee(epsilon=0.0, delta=0.0)


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_a_limit_of_zero_or_infinity_is_rejected(epsilon):
    with pytest.raises(BudgetError, match="0 < ε"):
        calibrate_noise(Guarantee(epsilon=epsilon, delta=1e-9), histograms=3, lists=1)


def test_a_delta_that_no_noise_meets_is_rejected_with_advice():
    with pytest.raises(BudgetError, match="larger δ"):
        calibrate_noise(Guarantee(epsilon=5.0, delta=1e-60), histograms=50, lists=10)


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
    """The premise of the whole draft, for types and for the number of distinct values."""
    before, after = columns_of(cells), columns_of([*cells, more])
    assert np.abs(count_types(after) - count_types(before)).sum() == 1
    assert abs(len(after.texts) - len(before.texts)) <= 1


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=12), st.floats())
def test_one_row_moves_one_count_of_typed_numbers(cells, more):
    def read(values):
        frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
        return open_table(frame, private=True).read_texts()[0]

    before, after = read(cells), read([*cells, more])
    assert np.abs(count_types(after) - count_types(before)).sum() == 1


def test_texts_are_released_in_their_own_order_and_after_public_cells():
    column = columns_of(["oak"] * 50 + ["elm"] * 70 + ["yew"] + ["ash"] * 30)
    noise = calibrate_noise(Guarantee(epsilon=9.0, delta=1e-3), histograms=1, lists=1)
    measured = HistogramMeasurer(noise, Keyed(4).at("noise")).measure(
        np.array([0, 40]), column, share=1.0
    )
    assert [*measured.texts] == ["ash", "elm", "oak"]
    assert abs(measured.public[0]) <= 5 * measured.sigma
    assert abs(measured.public[1] - 40) <= 5 * measured.sigma
    assert abs(measured.texts["elm"] - 70) <= 5 * measured.sigma
