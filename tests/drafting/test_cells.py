"""Each text has one class; the classes are what both drafts decide by."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.drafting.bounds import nice_above, nice_below, nice_near, outward, powers
from deniable.drafting.cells import CLASS, NAMES, classes_of, words_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "missing "),
        ("NA", "missing NA"),
        ("?", "missing ?"),
        ("NONE", "text"),
        ("0", "bit"),
        (" 7 ", "decimals 0"),
        ("-8", "decimals 0"),
        ("15400.0", "point"),
        ("15400.", "point"),
        ("1.50", "decimals 1"),
        ("007", "zeros"),
        ("30.795847750865054", "long"),
        ("1e5", "long"),
        ("inf", "text"),
        ("12345678901234567890", "text"),
        ("yes", "pair no/yes"),
        ("Y", "pair N/Y"),
        ("2020-02-28", "date %Y-%m-%d"),
        ("2020-02-30", "text"),
        ("31/12/2020", "date %d/%m/%Y"),
        ("12/31/2020", "date %m/%d/%Y"),
        ("1/2/2020", "date %d/%m/%Y or %m/%d/%Y"),
        ("2020-01-01 10:00", "datetime %Y-%m-%d %H:%M"),
        ("2020/03/11 01:48:14", "datetime %Y/%m/%d %H:%M:%S"),
        ("31.12.2020 10:00", "datetime %d.%m.%Y %H:%M"),
        ("1/2/2020 10:00", "datetime %d/%m/%Y %H:%M or %m/%d/%Y %H:%M"),
        ("0020-01-01", "text"),
        ("axolotl", "text"),
    ],
)
def test_a_text_has_the_class_that_a_reader_would_give_it(text, name):
    assert NAMES[classes_of(pl.Series([text]))[0]] == name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=8))
def test_every_text_has_one_class_whatever_stands_beside_it(texts):
    together = classes_of(pl.Series(texts, dtype=pl.String))
    alone = [classes_of(pl.Series([text]))[0] for text in texts]
    assert together.tolist() == alone
    assert len(CLASS) == len(NAMES)


def test_a_name_is_taken_apart_at_capitals_and_marks():
    assert words_of("patientId") == {"patient", "id"}
    assert words_of("ZIP-code_2") == {"zip", "code"}
    assert "id" not in words_of("humidity")


@given(st.integers(1, 10**15))
def test_round_numbers_lie_on_their_side_and_no_factor_of_two_and_a_half_away(number):
    assert number / 2.5 <= nice_below(number) <= number <= nice_above(number) <= number * 2.5
    assert nice_near(number) in (nice_below(number), nice_above(number))
    assert str(nice_above(number)).rstrip("0") in ("1", "2", "5")


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9))
def test_bounds_are_rounded_outward_and_never_over_zero(low, span):
    low_end, high_end = outward(low, low + span)
    assert low_end <= low
    assert low + span <= high_end
    assert (high_end - low_end) <= span + 2 * max(1, span / 10)
    assert (low_end >= 0) == (low >= 0)


def test_a_short_range_keeps_its_ends():
    assert outward(1, 12) == (1, 12)
    assert outward(17, 90) == (15, 90)


def test_a_public_ladder_is_of_powers_and_zero():
    assert powers(-10, 20) == [-10, -5, -2, -1, 0, 1, 2, 5, 10, 20]
