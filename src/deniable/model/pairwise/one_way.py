"""Estimate one-way distributions from noisy counts; merge values into bins, and bins into groups.

Values are in order, so neighbours can be averaged or counted together. All of it is post-processing
of noisy counts.
"""

import math
from collections.abc import Sequence

import numpy as np

from deniable.arrays import Counts, Indices, Mask, Reals
from deniable.privacy.noise import norm_sub
from deniable.schema.attribute import Attribute

# Minimum share p of a bin: max(1/160, 0.5 · √(σ / records)). A cell of two independent bins then
# has an expected count of at least σ / 4.
_MIN_BIN_SHARE = 1 / 160
_BIN_SHARE_PER_ROOT_SIGMA = 0.5
# An unordered category has its own bin if its share is at least this fraction of that minimum.
_OWN_BIN_RATIO = 1 / 3
# Counts are smoothed only if no bin is wider than its neighbour by more than this factor.
_MAX_WIDTH_RATIO = 10

# Wavelet coefficients at or below this many standard deviations of their noise become zero. At a
# length whose coefficients noise alone explains, the threshold is that of Donoho and Johnstone:
# √(2 ln n), about the largest of n coefficients of pure noise. Noise explains a sum of squares that
# exceeds its expectation by at most this many standard deviations.
_WAVELET_THRESHOLD_SIGMAS = 2.0
_MAX_NOISE_SIGMAS = 1.0
# The wavelet transform depends on where its intervals start: average over this many shifts.
_MAX_SHIFTS = 16
# Fewer values are not smoothed.
_MIN_VALUES_TO_SMOOTH = 4
# Bounds for the counts in an empty end of a range, in standard deviations of their noise: for
# intervals that start where the end starts, and for any interval inside it.
_MAX_EMPTY_SIGMAS = 0.5
_MIN_OCCUPIED_SIGMAS = 3.5


def estimate_records(tables: Sequence[Counts], sigmas: Sequence[float]) -> float:
    """Estimate the number of records: the inverse-variance-weighted mean of the table totals."""
    variances = [len(t) * sigma * sigma + 1e-9 for t, sigma in zip(tables, sigmas, strict=True)]
    sums = [float(table.sum()) for table in tables]
    weights = 1 / np.array(variances)
    return max(float(np.dot(weights, sums) / weights.sum()), 1.0)


def value_distributions(
    attributes: Sequence[Attribute], tables: Sequence[Counts], sigmas: Sequence[float]
) -> list[Reals]:
    """Estimate the distribution of each attribute's values from noisy one-way tables.

    For numeric attributes, empty ends of the range get probability 0, and counts are smoothed
    unless one bin is far wider than the next (such as next to a bin of a single number).
    """
    total = estimate_records(tables, sigmas)
    shares = []
    for attribute, table, sigma in zip(attributes, tables, sigmas, strict=True):
        counts = table.astype(np.float64)
        possible = np.ones(len(counts), dtype=bool)
        if attribute.is_numeric:
            possible[: attribute.bins] = occupied_values(counts[: attribute.bins], sigma)
            if _have_similar_widths(attribute.widths):
                counts[: attribute.bins] = smooth_counts(counts[: attribute.bins], sigma)
        share = np.zeros(len(counts))
        share[possible] = to_distribution(counts[possible], total)
        shares.append(share)
    return shares


def _have_similar_widths(widths: Counts) -> bool:
    """Check that no bin is far wider than the next; the first and last may be cut off."""
    left, right = widths[1:-2], widths[2:-1]
    return bool((np.maximum(left, right) <= _MAX_WIDTH_RATIO * np.minimum(left, right)).all())


def to_distribution(counts: Counts | Reals, total: float) -> Reals:
    """Project noisy counts onto the nearest probability distribution."""
    shifted = counts + (total - counts.sum()) / len(counts)
    distribution: Reals = norm_sub(shifted[None, :])[0] / total
    return distribution


def choose_bins(
    attributes: Sequence[Attribute], shares: Sequence[Reals], *, records: float, sigma: float
) -> tuple[Indices, ...]:
    """Choose the bins of every attribute, given noisy shares and the σ of two-way counts."""
    min_share = max(_MIN_BIN_SHARE, _BIN_SHARE_PER_ROOT_SIGMA * math.sqrt(sigma / records))
    return tuple(
        _attribute_bins(attribute, share, min_share)
        for attribute, share in zip(attributes, shares, strict=True)
    )


def _attribute_bins(attribute: Attribute, share: Reals, min_share: float) -> Indices:
    """Merge light neighbouring values of an attribute into bins; missing has its own bin."""
    own_share = min_share
    if not has_order(attribute):
        own_share = max(_MIN_BIN_SHARE, _OWN_BIN_RATIO * min_share)
    if attribute.missing_code is None:
        return merge_light_values(share, min_share=min_share, own_share=own_share)
    bins = merge_light_values(share[:-1], min_share=min_share, own_share=own_share)
    return np.append(bins, bins[-1] + 1)


def has_order(attribute: Attribute) -> bool:
    """Test whether neighbouring values are alike: numbers, dates and ordered categories."""
    return attribute.is_numeric or attribute.kind == "ordered"


def choose_groups(attribute: Attribute, shares: Reals, number: int) -> Indices:
    """Merge the bins of an attribute into at most ``number`` groups of weights as even as possible.

    Numbers, dates and ordered categories merge with their neighbours; other categories in the
    order of their weight, so that frequent ones stay alone. Missing cells are one more group. A
    value that nine rows of ten have is one group; the other groups divide the remaining tenth.

    Args:
        attribute: The attribute.
        shares: The (noisy) share of each bin.
        number: The largest number of groups, without that of missing cells.

    Returns:
        The group of each bin, numbered in the order of their first bins.
    """
    has_missing = attribute.missing_code is not None
    values = shares[:-1] if has_missing else shares
    groups = np.arange(len(values))
    if len(values) > number:
        order = groups if has_order(attribute) else np.argsort(-values, kind="stable")
        label = np.empty(len(values), dtype=np.intp)
        label[order] = _divide_evenly(values[order], number)
        _, first, groups = np.unique(label, return_index=True, return_inverse=True)
        groups = np.argsort(np.argsort(first))[groups]
    return np.append(groups, groups.max() + 1) if has_missing else groups


def _divide_evenly(weights: Reals, number: int) -> Indices:
    """Divide a row of weights into ``number`` runs with the least sum of squares; return the runs.

    A heavy weight is a run of its own, and the others divide what it leaves. By dynamic
    programming over the ends of runs: additions and products only, the same on every computer.

    >>> _divide_evenly(np.array([1.0, 2, 90, 3, 4]), 4).tolist()
    [0, 0, 1, 2, 3]
    """
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    # squares[i, j] is that of the run of weights i … j - 1; no run is empty.
    squares = np.square(sums[None, :] - sums[:, None])
    squares[np.tril_indices(len(sums))] = np.inf
    least, starts = squares[0], []
    for _ in range(number - 1):
        totals = least[:, None] + squares
        starts.append(totals.argmin(axis=0))
        least = totals.min(axis=0)
    is_first = np.zeros(len(weights), dtype=np.intp)
    end = len(weights)
    for start in reversed(starts):
        end = int(start[end])
        is_first[end] = 1
    return np.cumsum(is_first)


def smooth_counts(counts: Counts | Reals, sigma: float) -> Reals:
    """Smooth noisy counts by thresholding Haar wavelet coefficients, averaged over shifts.

    A coefficient is the scaled difference between two neighbouring intervals of 1, 2, 4, … values.
    Its noise has the same standard deviation at every length. Coefficients of at most two standard
    deviations are set to zero, or of more at lengths where nothing stands out: peaks stay, and
    noise on flat stretches is removed.

    Args:
        counts: The noisy count of each value, in the order of the values.
        sigma: Standard deviation of the noise; 0 leaves the counts unchanged.
    """
    signal = np.asarray(counts, dtype=np.float64)
    if len(signal) < _MIN_VALUES_TO_SMOOTH or not sigma > 0:
        return signal
    # Mirrored at the ends, so that shifted intervals are complete.
    size = 2 ** (len(signal) - 1).bit_length()
    extended = np.pad(signal, (0, 2 * size - len(signal)), mode="symmetric")
    shifts = range(min(_MAX_SHIFTS, size))
    averages = np.stack([np.roll(extended, -shift) for shift in shifts])
    details = []
    while averages.shape[1] > 1:
        even, odd = averages[:, ::2], averages[:, 1::2]
        detail, averages = (even - odd) / np.sqrt(2), (even + odd) / np.sqrt(2)
        details.append(_threshold_details(detail, sigma))
    for detail in reversed(details):
        averages = np.stack([averages + detail, averages - detail], axis=2).reshape(
            len(detail), -1
        ) / np.sqrt(2)
    unshifted = [
        np.roll(row, shift)[: len(signal)] for row, shift in zip(averages, shifts, strict=True)
    ]
    smoothed: Reals = np.mean(unshifted, axis=0)
    return smoothed


def _threshold_details(details: Reals, sigma: float) -> Reals:
    """Set the coefficients of one length, shifts by places, to zero where noise explains them."""
    places = details.shape[1]
    sum_of_squares = float(np.square(details).sum()) / len(details) / sigma**2
    threshold = _WAVELET_THRESHOLD_SIGMAS
    if sum_of_squares <= places + _MAX_NOISE_SIGMAS * math.sqrt(2 * places):
        threshold = max(threshold, math.sqrt(2 * math.log(2 * places)))
    return np.where(np.abs(details) > threshold * sigma, details, 0.0)


def occupied_values(counts: Counts | Reals, sigma: float) -> Mask:
    """Mark the values that may occur: all except the ends of the range that hold only noise.

    An end is empty if its counts are within the noise: as a whole, in the intervals of 1, 2, 4, …
    values that start where it starts, and in every other interval. The longest such end is cut off.
    Without this, noise would put a few records at the far end of a wide, hardly used range, and
    multiply the standard deviation of the column.

    Args:
        counts: The noisy count of each value, in the order of the values.
        sigma: Standard deviation of the noise; 0 marks all values.
    """
    observed = np.asarray(counts, dtype=np.float64)
    may_occur = np.ones(len(observed), dtype=bool)
    if not sigma > 0:
        return may_occur
    empty_high, empty_low = _empty_end(observed / sigma), _empty_end(observed[::-1] / sigma)
    if empty_low + empty_high < len(observed):
        may_occur[:empty_low] = False
        may_occur[len(observed) - empty_high :] = False
    return may_occur


def _empty_end(counts: Reals) -> int:
    """Count the values in the empty upper end; the noise has standard deviation 1."""
    number = len(counts)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    is_empty_from = (sums[-1] - sums[:-1]) / np.sqrt(np.arange(number, 0, -1)) <= _MAX_EMPTY_SIGMAS
    is_occupied = np.zeros(number, dtype=bool)
    for length in 2 ** np.arange(number.bit_length()):
        totals = (sums[length:] - sums[:-length]) / np.sqrt(length)
        is_empty_from[: len(totals)] &= totals <= _MAX_EMPTY_SIGMAS
        is_occupied[: len(totals)] |= totals > _MIN_OCCUPIED_SIGMAS
    first_possible = np.flatnonzero(is_occupied)[-1] + 1 if is_occupied.any() else 0
    is_empty_from[:first_possible] = False
    return number - int(np.argmax(is_empty_from)) if is_empty_from.any() else 0


def merge_light_values(
    weights: Reals, *, min_share: float, own_share: float | None = None
) -> Indices:
    """Merge neighbouring values into bins of weight about ``min_share``; return each value's bin.

    A value of weight ``own_share`` gets its own bin, even if the bin before it is lighter. A last
    bin of less than half of ``min_share`` joins the bin before, unless either is of one such value.
    By default, two neighbouring bins together weigh at least ``min_share``.

    Args:
        weights: The (noisy) share of each value, at least 0.
        min_share: Target weight of a bin.
        own_share: Weight of a value that stays alone; ``min_share`` by default.
    """
    is_alone = weights >= (min_share if own_share is None else own_share)
    bins = np.zeros(len(weights), dtype=np.intp)
    bin_, bin_weight = 0, 0.0
    for value, weight in enumerate(weights):
        is_full = bin_weight >= min_share or bin_weight + weight > 1.5 * min_share
        if value and (is_alone[value] or is_alone[value - 1] or is_full):
            bin_, bin_weight = bin_ + 1, 0.0
        bins[value] = bin_
        bin_weight += float(weight)
    may_join = own_share is None or own_share >= min_share or not is_alone[bins >= bin_ - 1].any()
    if bin_ and bin_weight < min_share / 2 and may_join:
        bins[bins == bin_] = bin_ - 1
    return bins


def group_bins(weights: Reals, *, max_groups: int, separate_last: bool) -> Indices:
    """Merge neighbouring bins into about ``max_groups`` groups of equal weight.

    Args:
        weights: The share of each bin.
        max_groups: Target number of groups; no more bins than that stay separate.
        separate_last: Whether the last bin, that of missing cells, stays separate.

    Returns:
        The group of each bin.
    """
    if len(weights) <= max_groups:
        return np.arange(len(weights))
    values = weights[:-1] if separate_last else weights
    groups = merge_light_values(values, min_share=float(values.sum()) / max_groups)
    return np.append(groups, groups[-1] + 1) if separate_last else groups


def sum_groups(groups: Indices, weights: Reals) -> Reals:
    """Sum the weights of each group."""
    sums: Reals = np.bincount(groups, weights).astype(np.float64)
    return sums


def sum_row_groups(groups: Indices, table: Reals) -> Reals:
    """Sum the rows of a table by group."""
    sums = np.zeros((int(groups.max()) + 1, table.shape[1]))
    np.add.at(sums, groups, table)
    return sums


def sum_blocks(rows: Indices, columns: Indices, table: Reals) -> Reals:
    """Sum a table by groups of rows and groups of columns."""
    by_row = np.zeros((int(rows.max()) + 1, table.shape[1]))
    np.add.at(by_row, rows, table)
    sums = np.zeros((int(columns.max()) + 1, len(by_row)))
    np.add.at(sums, columns, by_row.T)
    return sums.T
