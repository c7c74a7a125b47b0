"""Random numbers: keyed streams are reproducible, integers are exactly uniform."""

import itertools
from collections import Counter
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_distribution
from deniable.errors import ConfigError
from deniable.randomness import Keyed, Secret, Stage, SystemRng
from worlds import property_test

STAGES = get_args(Stage)
pytestmark = pytest.mark.system_noise


def numbers(rng) -> tuple:
    return (
        *rng.words(3).tolist(), *rng.half_words(3).tolist(),
        *rng.random(3).tolist(), *rng.integers(10**9, 3).tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_equal_stage_and_block_have_equal_streams(stage):
    """Independent of earlier draws and their order."""
    first = [numbers(Keyed(5).at(stage, block)) for block in range(4)]
    again = Keyed(5)
    assert [numbers(again.at(stage, block)) for block in reversed(range(4))] == first[::-1]


def test_different_stages_and_blocks_have_different_streams():
    """Every stage, some blocks, some keys, those that differ in one far bit included."""
    keys = [0, 1, 2, 2**32, 2**64, 2**127, 2**128 - 1]
    blocks = [0, 1, 2, 2**20, 2**32, 2**40]
    addresses = list(itertools.product(keys, STAGES, blocks))
    words = {tuple(Keyed(k).at(stage, block).words(2).tolist()) for k, stage, block in addresses}
    assert len(words) == len(addresses)


def test_stages_have_numbers_that_never_change():
    """A stored key must give the same records with the next version: golden, by this one."""
    golden = [3394215906371493762, 9595604417338793098]
    assert Keyed(7).at("records", 3).words(2).tolist() == golden
    halves = [half for word in golden for half in (word % 2**32, word // 2**32)]
    assert Keyed(7).at("records", 3).half_words(3).tolist() == halves[:3]


@pytest.mark.parametrize("key", [-1, 2**128, 1.5])
def test_an_invalid_key_is_refused(key):
    with pytest.raises(ConfigError, match="key"):
        Keyed(key)


def test_fresh_keys_differ_and_can_be_written_down():
    """48 bits: two equal among ten with probability 45 / 2^48."""
    keys = {Keyed.fresh().key for _ in range(10)}
    assert len(keys) == 10
    assert all(0 <= key < 2**48 for key in keys)


def test_a_key_is_not_shown():
    assert "123456789" not in repr(Keyed(123456789))
    assert "123456789" not in str(Keyed(123456789))


def test_only_the_operating_system_is_secret():
    assert Secret().is_secret
    assert not Keyed(1).is_secret


@pytest.mark.parametrize("rng", [SystemRng(), Keyed(3).at("noise")], ids=["system", "keyed"])
def test_streams_have_the_documented_types_and_ranges(rng):
    words, reals, integers = rng.words(1000), rng.random(1000), rng.integers(3, 1000)
    assert words.dtype == np.uint64
    assert rng.half_words(999).dtype == np.uint32
    assert len(set(rng.half_words(999).tolist())) > 990
    assert reals.dtype == np.float64
    assert integers.dtype == np.int64
    assert (reals >= 0).all()
    assert (reals < 1).all()
    assert ((reals * 2.0**53) % 1 == 0).all()
    assert set(integers.tolist()) == {0, 1, 2}
    for empty in (rng.words(0), rng.half_words(0), rng.random(0), rng.integers(3, 0)):
        assert empty.shape == (0,)


def test_secret_numbers_do_not_repeat():
    assert Secret().at("noise").words(4).tolist() != Secret().at("noise").words(4).tolist()


def fed(words: list[int]) -> SystemRng:
    """Return the system's stream, fed with these words in place of the system's."""
    left = iter(words)

    class FedRng(SystemRng):
        def words(self, size):
            return np.array([next(left) for _ in range(size)], dtype=np.uint64)

        def half_words(self, size):
            return np.array([next(left) for _ in range(size)], dtype=np.uint32)

    return FedRng()


def words_for(high: int) -> int:
    """Number of possible words of the size used for a small range."""
    return 2**32 if high <= 2**28 else 2**64


@property_test
@given(st.integers(1, 2**63) | st.integers(1, 2**29))
def test_a_word_beyond_the_last_multiple_is_drawn_again(high):
    """Accepted words are 0 … q·high - 1, q = ⌊words / high⌋: each remainder q times, exactly."""
    words = words_for(high)
    last = words // high * high - 1
    assert fed([last]).integers(high, 1).tolist() == [high - 1]
    assert fed([0]).integers(high, 1).tolist() == [0]
    if last + 1 < words:
        assert fed([last + 1, words - 1, 5]).integers(high, 1).tolist() == [5 % high]
    else:
        assert fed([words - 1]).integers(high, 1).tolist() == [high - 1]


@pytest.mark.parametrize("high", [3, 3**20])
def test_only_the_rejected_words_are_drawn_again(high):
    """2^32 mod 3 = 1: one word is rejected."""
    drawn = fed([4, words_for(high) - 1, 5, 7]).integers(high, 3)
    assert drawn.tolist() == [4 % high, 7 % high, 5 % high]


@pytest.mark.parametrize(
    ("word", "expected"), [(0, 0.0), (2**64 - 1, 1 - 2.0**-53), (2**63, 0.5), (2**11 - 1, 0.0)]
)
def test_reals_are_the_upper_53_bits(word, expected):
    assert fed([word]).random(1).tolist() == [expected]


@pytest.mark.parametrize("high", [1, 6, 7])
def test_keyed_integers_are_uniform(high):
    """False-alarm rate 1e-6 each, fixed key."""
    drawn = Keyed(13).at("seeds").integers(high, 60_000)
    assert_distribution(Counter(drawn.tolist()), {v: Fraction(1, high) for v in range(high)})


def test_that_assertion_detects_six_values_instead_of_seven():
    drawn = Keyed(13).at("seeds").integers(6, 60_000)
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(Counter(drawn.tolist()), {v: Fraction(1, 7) for v in range(7)})
