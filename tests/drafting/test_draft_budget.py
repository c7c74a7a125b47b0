"""Parts of the budget of a private draft: never more than all of it, and only by noisy answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.drafting.draft_budget import (
    DISTINCT_PART,
    FRACTION_WEIGHT,
    NUMBER_WEIGHT,
    ROWS_PART,
    TEXT_WEIGHT,
    divide_details,
    divide_reserve,
    types_part,
)
from deniable.drafting.noisy_histograms import DraftNoise, HistogramMeasurer
from deniable.randomness import Keyed


def measurer(mu=0.036) -> HistogramMeasurer:
    noise = DraftNoise(mu=mu, epsilon=0.2, text_delta=1e-12, max_histograms=99, max_lists=9)
    return HistogramMeasurer(noise, Keyed(1).at("noise"))


WEIGHTS = st.lists(
    st.sampled_from([TEXT_WEIGHT, FRACTION_WEIGHT, NUMBER_WEIGHT]), min_size=1, max_size=40
)


@given(st.integers(1, 10**9), WEIGHTS, st.floats(1e-3, 30.0), st.data())
def test_all_parts_together_are_at_most_one(rows, weights, mu, data):
    """For any number of rows, any types and any claims that noise may give."""
    own = measurer(mu)
    types = types_part(rows, columns=len(weights), share_of=own.share_of)
    left = 1 - ROWS_PART - DISTINCT_PART - types
    assert left > 0.5
    shares = divide_details(weights, left, rows=rows, sigma_of=own.sigma_of)
    assert all(share > 0 for share in shares.first)
    claims = {str(i): data.draw(st.integers(-1_000, 10**9)) for i in range(len(weights))}
    more = divide_reserve(shares.reserve, claims, threshold_of=own.threshold_of)
    assert all(share > 0 for share in more.values())
    parts = [ROWS_PART, DISTINCT_PART, types, *shares.first, *more.values()]
    assert sum(parts) <= 1 + 1e-12


def test_types_take_less_of_a_table_of_many_rows():
    own = measurer()
    parts = [
        types_part(rows, columns=15, share_of=own.share_of) for rows in (900, 20_000, 34_000, 10**7)
    ]
    assert parts[0] == 0.40
    assert parts[0] > parts[1] > parts[2] > parts[3] == 0.04
    sigma = own.sigma_of(parts[1] / 15)
    assert sigma == pytest.approx(0.012 * 20_000)


def test_a_small_table_is_measured_once_with_all_of_the_part():
    own, weights = measurer(), [TEXT_WEIGHT, FRACTION_WEIGHT, NUMBER_WEIGHT]
    small = divide_details(weights, 0.5, rows=900, sigma_of=own.sigma_of)
    large = divide_details(weights, 0.5, rows=50_000, sigma_of=own.sigma_of)
    assert small.reserve == 0
    assert sum(small.first) == pytest.approx(0.5)
    assert small.first[0] > small.first[1] > small.first[2]
    assert large.reserve > 0
    assert sum(large.first) + large.reserve == pytest.approx(0.5)
    assert len(set(large.first)) == 1


def test_whole_numbers_alone_leave_no_reserve():
    shares = divide_details([NUMBER_WEIGHT] * 3, 0.6, rows=10**6, sigma_of=measurer().sigma_of)
    assert shares.first == pytest.approx([0.2] * 3)
    assert shares.reserve == 0


def test_the_reserve_goes_to_the_columns_with_most_undescribed_rows():
    shares = divide_reserve(0.5, {"a": 400.0, "b": 100.0, "c": 0.0}, threshold_of=lambda _: 50)
    assert shares == pytest.approx({"a": 1 / 3, "b": 1 / 6})


def test_a_column_in_which_nothing_could_be_named_gets_nothing():
    own = measurer()
    shares = divide_reserve(0.5, {"a": 5_000.0, "b": 100.0}, threshold_of=own.threshold_of)
    assert shares == {"a": 0.5}
    assert own.threshold_of(0.5) < 5_000
    assert divide_reserve(0.5, {"a": 100.0}, threshold_of=own.threshold_of) == {}
    assert divide_reserve(0.0, {"a": 5_000.0}, threshold_of=own.threshold_of) == {}
