"""Noisy counts of a number's values: smooth where only noise makes them differ, and their ends."""

import numpy as np

from deniable.arrays import Counts, Mask, Reals

# A difference between neighbouring stretches of values is believed from so many deviations on.
_BELIEVED = 2.0
# Where stretches begin is arbitrary: the mean over so many beginnings is taken.
_SHIFTS = 16
# Fewer values have no neighbours to learn from.
_FEWEST = 4
# An empty end has at most half a deviation of its noise where it begins, and as a whole; and no
# stretch of it has so many that something is surely there.
_NOTHING = 0.5
_SURELY = 3.5


def smooth(counts: Counts | Reals, sigma: float) -> Reals:
    """Return the counts without the differences that noise alone could have made.

    Stretches of 1, 2, 4, … values are compared with the next one of the same length, each by one
    difference, whose noise has the same deviation at any length (Haar's wavelets). Differences
    below two deviations become nothing, so a heap stays, and what is level becomes level.

    Args:
        counts: The noisy count of each value, in the order of the values.
        sigma: The deviation of the noise; 0: none, nothing is changed.
    """
    whole = np.asarray(counts, dtype=np.float64)
    if len(whole) < _FEWEST or not sigma > 0:
        return whole
    # Mirrored at both ends, so that stretches that begin elsewhere are whole too.
    size = 2 ** (len(whole) - 1).bit_length()
    ring = np.pad(whole, (0, 2 * size - len(whole)), mode="symmetric")
    shifts = range(min(_SHIFTS, size))
    level = np.stack([np.roll(ring, -shift) for shift in shifts])
    differences = []
    while level.shape[1] > 1:
        even, odd = level[:, ::2], level[:, 1::2]
        step, level = (even - odd) / np.sqrt(2), (even + odd) / np.sqrt(2)
        differences.append(np.where(np.abs(step) > _BELIEVED * sigma, step, 0.0))
    for step in reversed(differences):
        level = np.stack([level + step, level - step], axis=2).reshape(len(step), -1) / np.sqrt(2)
    turned = [np.roll(row, shift)[: len(whole)] for row, shift in zip(level, shifts, strict=True)]
    smoothed: Reals = np.mean(turned, axis=0)
    return smoothed


def occupied(counts: Counts | Reals, sigma: float) -> Mask:
    """Return which values may occur: all but the two ends that noise alone speaks for.

    The longest end is empty of which every first stretch of 1, 2, 4, … values, and the whole, has
    no more than noise would have, and in which no stretch surely has something. Value by value,
    noise would leave some records far out, where a range is wide and hardly used; few as they are,
    they would make a column's deviation several times what it is.

    Args:
        counts: The noisy count of each value, in the order of the values.
        sigma: The deviation of the noise; 0: none, nothing is left out.
    """
    whole = np.asarray(counts, dtype=np.float64)
    there = np.ones(len(whole), dtype=bool)
    if not sigma > 0:
        return there
    high, low = _empty_end(whole / sigma), _empty_end(whole[::-1] / sigma)
    if low + high < len(whole):
        there[:low] = False
        there[len(whole) - high :] = False
    return there


def _empty_end(counts: Reals) -> int:
    """Return how many of the last values are taken to be empty; the noise has deviation 1."""
    number = len(counts)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    begins = (sums[-1] - sums[:-1]) / np.sqrt(np.arange(number, 0, -1)) <= _NOTHING
    surely = np.zeros(number, dtype=bool)
    for length in 2 ** np.arange(number.bit_length()):
        held = (sums[length:] - sums[:-length]) / np.sqrt(length)
        begins[: len(held)] &= held <= _NOTHING
        surely[: len(held)] |= held > _SURELY
    after = np.flatnonzero(surely)[-1] + 1 if surely.any() else 0
    begins[:after] = False
    return number - int(np.argmax(begins)) if begins.any() else 0
