"""Assertions about chance, each with the probability that it fails a correct program."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from deniable.model.alias_sampling import AliasTables
from deniable.privacy.noise_laws import Law

FALSE_ALARM = 1e-6


def assert_rate(
    successes: int, trials: int, expected: float, *, false_alarm: float = FALSE_ALARM
) -> None:
    """Fail unless ``successes`` of ``trials`` is what probability ``expected`` would give.

    Exact two-sided binomial test. A correct program fails it with probability at most
    ``false_alarm`` over the choice of random key; under a fixed key, always or never.
    """
    p_value = stats.binomtest(successes, trials, expected).pvalue
    assert p_value > false_alarm, (
        f"rate {successes / trials:.5f} in {trials:,} trials, expected {expected:.5f}: "
        f"p = {p_value:.1e} is below the false-alarm limit {false_alarm:.0e}"
    )


def assert_distribution(
    counts: Mapping[Any, int],
    expected: Mapping[Any, float | Fraction],
    *,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fail unless every value came up as often as its probability says, and no other value.

    One ``assert_rate`` a value, each with an equal share of ``false_alarm``: by the union bound
    a correct program fails with probability at most ``false_alarm``, with no approximation.

    Args:
        counts: How often each value came up; one that is absent came up never.
        expected: The probability of each value. What they leave to 1 is "any other value".
        false_alarm: The limit for all values together.
    """
    trials = sum(counts.values())
    share = false_alarm / (len(expected) + 1)
    for value, probability in expected.items():
        try:
            assert_rate(counts.get(value, 0), trials, float(probability), false_alarm=share)
        except AssertionError as failure:
            raise AssertionError(f"value {value}: {failure}") from None
    others = trials - sum(counts.get(value, 0) for value in expected)
    left = max(0.0, 1.0 - float(sum(expected.values())))
    assert_rate(others, trials, left if left > 1e-15 else 0.0, false_alarm=share)


def assert_no_shared_noise(
    noise: np.ndarray, laws: Sequence[Law], *, false_alarm: float = FALSE_ALARM
) -> None:
    """Fail if two columns of noise, one row a run, are above zero together too often or too rarely.

    Noise that columns share, or share with the other sign, agrees in every run or in none. One
    ``assert_rate`` for each pair of columns, each with an equal share of ``false_alarm``.

    Args:
        noise: The noise of every cell (column) in every run (row).
        laws: The law of each column.
        false_alarm: The limit for all pairs together.
    """
    above = (noise > 0).astype(np.int64)
    agreed = above.T @ above + (1 - above).T @ (1 - above)
    chances = [(1 - float(law.probability(0))) / 2 for law in laws]
    agree = np.outer(chances, chances) + np.outer(1 - np.array(chances), 1 - np.array(chances))
    pairs = np.triu_indices(len(agreed), 1)
    for together, chance in set(zip(agreed[pairs].tolist(), agree[pairs].tolist(), strict=True)):
        assert_rate(together, len(noise), chance, false_alarm=false_alarm / len(pairs[0]))


def implied(tables: AliasTables) -> np.ndarray:
    """What a draw gives: v uniform, then v with probability acceptance[v], else alias[v]."""
    stay = tables.acceptance.reshape(-1, tables.values).clip(0, 1)
    alias = tables.alias.reshape(-1, tables.values)
    result = stay / tables.values
    for row in range(len(stay)):
        for v in range(tables.values):
            result[row, alias[row, v]] += (1 - stay[row, v]) / tables.values
    return result
