"""D_T, D_P, D_S: each record in at most one, with the stated probability, whatever its place."""

from collections import Counter

import numpy as np
import pytest

from chance import assert_distribution, assert_rate
from deniable.arrays import CODE
from deniable.data.split import split_records
from deniable.errors import ConfigError
from deniable.privacy.plan import SPLIT, SPLIT_OF_PAPER, SPLIT_SEEDLESS
from deniable.randomness import Keyed

KEY = 31


def rng(key=KEY):
    return Keyed(key).at("split")


def numbered(n):
    """Return n records that are all different."""
    numbers = np.arange(n)
    return np.asfortranarray(np.stack([numbers // 1_000, numbers % 1_000], axis=1).astype(CODE))


def names_of(codes):
    return (codes[:, 0].astype(int) * 1_000 + codes[:, 1]).tolist()


@pytest.mark.parametrize("fractions", [SPLIT, SPLIT_SEEDLESS, SPLIT_OF_PAPER])
def test_a_record_is_in_at_most_one_part_and_is_not_changed(fractions):
    parts = split_records(numbered(10_000), fractions, rng())
    assert list(parts) == list(fractions)
    dealt = [name for part in parts.values() for name in names_of(part)]
    assert len(dealt) == len(set(dealt))
    assert set(dealt) <= set(range(10_000))
    assert all(part.dtype == CODE and part.flags.f_contiguous for part in parts.values())


def test_parts_that_sum_to_one_take_every_record():
    parts = split_records(numbered(5_000), SPLIT, rng())
    assert sum(map(len, parts.values())) == 5_000


@pytest.mark.parametrize("fractions", [SPLIT, SPLIT_SEEDLESS, SPLIT_OF_PAPER])
def test_a_record_goes_to_each_part_with_the_stated_probability(fractions):
    """Fixed key; false-alarm rate 1e-6."""
    n = 200_000
    parts = split_records(np.zeros((n, 1), dtype=CODE, order="F"), fractions, rng())
    counts = Counter({part: len(codes) for part, codes in parts.items()})
    counts["none"] = n - counts.total()
    assert_distribution(counts, {**fractions, "none": max(0.0, 1 - sum(fractions.values()))})


def test_that_assertion_notices_shares_one_percent_off():
    n = 200_000
    wrong = {"structure": 0.21, "parameters": 0.39, "seeds": 0.4}
    parts = split_records(np.zeros((n, 1), dtype=CODE, order="F"), wrong, rng())
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_rate(len(parts["structure"]), n, SPLIT["structure"])


def test_where_a_record_goes_does_not_depend_on_the_others():
    """Two records that stand side by side are in one part as often as independence says."""
    n = 100_000
    parts = split_records(numbered(2 * n), SPLIT, rng())
    part_of = {name: part for part, codes in parts.items() for name in names_of(codes)}
    together = sum(part_of[2 * i] == part_of[2 * i + 1] for i in range(n))
    assert_rate(together, n, sum(share**2 for share in SPLIT.values()))


def test_where_a_record_goes_depends_on_its_draw_not_on_what_it_holds():
    """Any order of the rows gets the same draws: places are dealt, values are not looked at."""
    codes = numbered(1_000)
    turned = np.asfortranarray(codes[::-1])
    places = {part: set(names_of(of)) for part, of in split_records(codes, SPLIT, rng()).items()}
    for part, of in split_records(turned, SPLIT, rng()).items():
        assert {999 - name for name in names_of(of)} == places[part]


def test_the_law_of_a_part_does_not_depend_on_the_order_of_rows():
    """A marked record is a seed equally often wherever it stands: 2,000 keys, 1e-6 each."""
    trials = 2_000
    for place in (0, 9):
        marked = np.zeros((10, 1), dtype=CODE, order="F")
        marked[place] = 1
        hits = sum(
            int(split_records(marked, SPLIT, rng(key))["seeds"].sum()) for key in range(trials)
        )
        assert_rate(hits, trials, SPLIT["seeds"])


def test_no_records_make_empty_parts():
    parts = split_records(numbered(0), SPLIT, rng())
    assert {part: codes.shape for part, codes in parts.items()} == dict.fromkeys(SPLIT, (0, 2))


@pytest.mark.parametrize(
    "fractions", [{"a": 0.0, "b": 0.5}, {"a": -0.1, "b": 0.5}, {"a": 0.6, "b": 0.5}]
)
def test_probabilities_that_are_none_are_refused(fractions):
    with pytest.raises(ConfigError, match="above 0 and sum to at most 1"):
        split_records(numbered(10), fractions, rng())
