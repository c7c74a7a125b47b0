"""Noisy counts of a number's values, made smooth where only noise makes them differ."""

import numpy as np

from deniable.arrays import Counts, Reals

# A difference between neighbouring stretches of values is believed from so many deviations on.
_BELIEVED = 2.0
# Where stretches begin is arbitrary: the mean over so many beginnings is taken.
_SHIFTS = 16
# Fewer values have no neighbours to learn from.
_FEWEST = 4


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
