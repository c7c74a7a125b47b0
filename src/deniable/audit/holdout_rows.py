"""Control rows of an audit: rows that are not in the table, given or set aside."""

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.errors import DataError
from deniable.randomness import Rng

# Share of the rows that is set aside if there is no holdout.
_ASIDE_SHARE = 0.2
# A holdout overlaps if more of its rows are in the table than of the table's rows are there twice,
# by this many standard errors and this share: the chance of a false alarm is below 10⁻⁶.
_STANDARD_ERRORS, _MIN_EXCESS = 5.0, 0.02
_WORD_BYTES = 8


def set_aside(codes: Codes, rng: Rng) -> tuple[Codes, Codes]:
    """Split rows at random into the audited table and control rows."""
    order = np.argsort(rng.random(len(codes)), kind="stable")
    first = max(1, round(_ASIDE_SHARE * len(codes)))
    kept, aside = np.sort(order[first:]), np.sort(order[:first])
    return np.asfortranarray(codes[kept]), np.asfortranarray(codes[aside])


def require_disjoint(table: Codes, holdout: Codes, rng: Rng) -> None:
    """Refuse a holdout that has rows of the table, beyond those that are equal by chance.

    Equal rows are no proof: many people have the same values. But a row of the table finds as many
    equals among the table's other rows as a row of the population does. A holdout that finds more
    shares rows with the table. Where nearly all rows have equals, a copy of the table is still
    seen, because its counts are more alike than those of two samples ever are; a partial overlap
    is not.

    Raises:
        DataError: The holdout overlaps.
    """
    size = min(len(table), len(holdout))
    numbers = _row_numbers(np.concatenate([table, holdout]))
    own, theirs = numbers[: len(table)], numbers[len(table) :]
    counts = np.bincount(own, minlength=int(numbers.max()) + 1)
    chosen = np.argsort(rng.random(len(table)), kind="stable")[:size]
    expected, found = float((counts[own[chosen]] > 1).mean()), float((counts[theirs] > 0).mean())
    error = np.sqrt(0.25 / size + 0.25 / len(holdout))
    is_found_too_often = found - expected > max(_MIN_EXCESS, _STANDARD_ERRORS * error)
    if is_found_too_often or _is_too_alike(counts, np.bincount(theirs, minlength=len(counts))):
        raise DataError(
            "the holdout has rows of the table: more of its rows occur there than by chance. "
            "Control rows must not be in the table: remove them, or leave --holdout out"
        )


def _is_too_alike(table: Counts, holdout: Counts) -> bool:
    """Whether two samples of counts differ less than chance makes them differ.

    Pearson's X² of homogeneity has the mean K - 1 for K distinct rows, and a variance of about
    2 K, or more if one sample is much larger. For a table and its copy it is 0.
    """
    occurs = table + holdout > 0
    ours, theirs = table[occurs], holdout[occurs]
    ratio = float(theirs.sum() / ours.sum())
    squares = (theirs / np.sqrt(ratio) - ours * np.sqrt(ratio)) ** 2
    statistic = float((squares / (ours + theirs)).sum())
    kinds = len(ours)
    error = np.sqrt(kinds * (2 + max(ratio, 1 / ratio)))
    return bool(statistic < kinds - 1 - _STANDARD_ERRORS * error)


def _row_numbers(codes: Codes) -> Indices:
    """Number distinct rows."""
    return np.unique(packed_rows(codes), return_inverse=True)[1]


def packed_rows(codes: Codes) -> np.ndarray:
    """View each row as one opaque value that can be compared and sorted."""
    width = codes.dtype.itemsize * codes.shape[1]
    if width <= _WORD_BYTES:  # integers are sorted many times faster than bytes
        words = np.zeros((len(codes), _WORD_BYTES // codes.dtype.itemsize), dtype=codes.dtype)
        words[:, : codes.shape[1]] = codes
        return words.view(np.uint64).ravel()
    return np.ascontiguousarray(codes).view(np.dtype((np.void, width))).ravel()
