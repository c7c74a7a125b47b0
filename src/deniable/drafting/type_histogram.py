"""First histogram of a column in a private draft: the types of its cells, and their size.

The cells of the histogram are known in advance: missing; text; unsupported; dates by format; and
numbers in logarithmic intervals, in three styles: whole numbers, whole numbers written with a
decimal point, and fractions. Whole numbers that surveys write for "no answer" have cells of their
own. A cell of the table is in exactly one cell of the histogram.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from deniable.arrays import Counts, Indices, Mask, Reals
from deniable.drafting.cell_patterns import (
    AMBIGUOUS_DATE_FORMATS,
    AMBIGUOUS_DATETIME_FORMATS,
    CLASS_INDEX,
    CLASS_NAMES,
    DATE_FORMATS,
    DATETIME_FORMATS,
    MAX_CLASSIFIED_DECIMALS,
    MISSING_TEXTS,
    strip_blanks,
)
from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.noisy_histograms import NoisyHistogram

NumberStyle = Literal["whole", "point", "fraction"]
NUMBER_STYLES: tuple[NumberStyle, ...] = ("whole", "point", "fraction")
# Fractions are counted in millionths.
MICRO = 10**6

# Lower ends of the intervals of positive numbers: 1, 2, 5, 10, … up to a million, then powers of
# ten. Larger numbers are in the last interval.
_STARTS = [f * 10**p for p in range(6) for f in (1, 2, 5)] + [10**p for p in range(6, 19)]
_LARGEST = 10**18
_POSITIVE = [(a, b - 1) for a, b in zip(_STARTS, [*_STARTS[1:], _LARGEST + 1], strict=True)]
WHOLE_INTERVALS = [*((-b, -a) for a, b in reversed(_POSITIVE)), (0, 0), *_POSITIVE]
# Fractions below one, in millionths.
_SMALL = [(0, 1)] + [(10**p, 10 ** (p + 1)) for p in range(6)]
_ABOVE = _SMALL + [(a * MICRO, (b + 1) * MICRO) for a, b in _POSITIVE]
FRACTION_INTERVALS = [*((-b, -a) for a, b in reversed(_ABOVE)), *_ABOVE]

# Surveys write these numbers where there is no answer.
SENTINELS = (
    *(-9999, -999, -888, -777, -99, -98, -97, -88, -77, -9, -8, -7),
    *(97, 98, 99, 997, 998, 999, 9997, 9998, 9999, 99_999, 999_999),
)

_DATE_CLASSES = [name for name in CLASS_NAMES if name.startswith("date")]
_OTHER_CELLS = ("missing", "text", "unsupported")
_FIRST_NUMBER = len(_OTHER_CELLS) + len(_DATE_CLASSES)
_STYLE_START = {
    "whole": _FIRST_NUMBER,
    "point": _FIRST_NUMBER + len(WHOLE_INTERVALS),
    "fraction": _FIRST_NUMBER + 2 * len(WHOLE_INTERVALS),
}
_FIRST_SENTINEL = _STYLE_START["fraction"] + len(FRACTION_INTERVALS)
_CELLS = _FIRST_SENTINEL + len(SENTINELS)

_FRACTION_CLASSES = [CLASS_INDEX[f"decimals {d}"] for d in range(1, MAX_CLASSIFIED_DECIMALS + 1)]
_STYLE_CLASSES = {
    "whole": [CLASS_INDEX["bit"], CLASS_INDEX["decimals 0"]],
    "point": [CLASS_INDEX["point"]],
    "fraction": [*_FRACTION_CLASSES, CLASS_INDEX["long"]],
}

# Neighbouring intervals that are tested together: near a range, and far from it.
_MAX_WINDOW, _MAX_FAR_WINDOW = 8, 4
# Thresholds of evidence, in standard deviations of the noise. With some 200 cells a column, noise
# alone rarely reaches the last.
_WEAK_SIGMAS, _NEXT_SIGMAS, _SEEN_SIGMAS, _NEAR_SIGMAS, _FAR_SIGMAS = 1.0, 2.0, 3.5, 4.0, 5.0
# Intervals of a range may be apart by at most this many empty ones to count as near.
_MAX_GAP = 2


def is_number(column: CountedTexts) -> Mask:
    """Mask of the texts that are numbers."""
    classes = [index for style in NUMBER_STYLES for index in _STYLE_CLASSES[style]]
    mask: Mask = np.isin(column.classes, classes)
    return mask


def numbers_of(column: CountedTexts) -> Reals:
    """Parse the texts as numbers, clipped to ±10^18; 0 for a text that is none."""
    parsed = strip_blanks(column.texts).cast(pl.Float64, strict=False)
    parsed = parsed.fill_nan(None).fill_null(0.0).clip(-float(_LARGEST), float(_LARGEST))
    numbers: Reals = parsed.to_numpy()
    return numbers


def count_types(column: CountedTexts) -> Counts:
    """Count the cells of a column by type: a row moves one count by one."""
    cell_of_class = np.full(len(CLASS_NAMES), _OTHER_CELLS.index("text"))
    cell_of_class[: len(MISSING_TEXTS)] = _OTHER_CELLS.index("missing")
    cell_of_class[CLASS_INDEX["unsupported"]] = _OTHER_CELLS.index("unsupported")
    for i, name in enumerate(_DATE_CLASSES):
        cell_of_class[CLASS_INDEX[name]] = len(_OTHER_CELLS) + i
    cells = cell_of_class[column.classes]
    numbers = numbers_of(column)
    for style in NUMBER_STYLES:
        members = np.isin(column.classes, _STYLE_CLASSES[style])
        cells[members] = _STYLE_START[style] + _interval_of(numbers[members], style)
    whole = np.isin(column.classes, _STYLE_CLASSES["whole"])
    for i, code in enumerate(SENTINELS):
        cells[whole & (numbers == code)] = _FIRST_SENTINEL + i
    found = np.zeros(_CELLS, dtype=np.int64)
    np.add.at(found, cells, column.counts)
    found[_OTHER_CELLS.index("missing")] += column.nulls
    return found


def _interval_of(numbers: Reals, style: NumberStyle) -> Indices:
    """Index of each number's interval."""
    if style == "fraction":
        starts = np.array([low / MICRO for low, _ in _ABOVE])
        at = np.searchsorted(starts, np.abs(numbers), side="right") - 1
        indices: Indices = np.where(numbers < 0, len(_ABOVE) - 1 - at, len(_ABOVE) + at)
        return indices
    return whole_interval_of(numbers)


def whole_interval_of(numbers: Reals | Counts) -> Indices:
    """Index of each number's interval of whole numbers."""
    lows = np.array([float(low) for low, _ in WHOLE_INTERVALS])
    indices: Indices = np.searchsorted(lows, np.rint(numbers), side="right") - 1
    return np.maximum(indices, 0)


@dataclass(frozen=True)
class ColumnTypes:
    """Noisy types of a column's cells.

    Attributes:
        counts: Noisy counts.
        sigma: Standard deviation of their noise.
    """

    counts: Counts = field(repr=False)
    sigma: float

    @classmethod
    def of(cls, answer: NoisyHistogram) -> "ColumnTypes":
        """Take the noisy answer to ``count_types``."""
        return cls(answer.public, answer.sigma)

    def count(self, cell: Literal["missing", "text", "unsupported"]) -> int:
        """Noisy number of missing cells, texts or unsupported cells."""
        return int(self.counts[_OTHER_CELLS.index(cell)])

    def is_seen(self, cell: Literal["missing", "text"], sigmas: float = _SEEN_SIGMAS) -> bool:
        """Whether there are more such cells than noise explains, by that many deviations."""
        return self.count(cell) > sigmas * self.sigma

    def style(self, style: NumberStyle) -> Counts:
        """Noisy counts of the intervals of one style of numbers."""
        size = len(FRACTION_INTERVALS if style == "fraction" else WHOLE_INTERVALS)
        return self.counts[_STYLE_START[style] :][:size]

    def score(self, style: NumberStyle) -> float:
        """Evidence for numbers of a style, in standard deviations of the noise."""
        return best_window(self.style(style))[0] / self.sigma

    def best_numbers(self) -> tuple[float, float]:
        """Evidence for numbers, in standard deviations of the noise, and how many there are."""
        found = []
        for style in NUMBER_STYLES:
            counts = self.style(style)
            first, last = occupied_range(counts, self.sigma)
            found.append((self.score(style), float(counts[first : last + 1].sum())))
        sentinel = float(self.counts[_FIRST_SENTINEL:].max())
        return max(*found, (sentinel / self.sigma, sentinel))

    def seen_sentinels(self) -> dict[int, int]:
        """Numbers for "no answer" that were seen, with their noisy counts."""
        counts = zip(SENTINELS, self.counts[_FIRST_SENTINEL:].tolist(), strict=True)
        return {code: rows for code, rows in counts if rows > _FAR_SIGMAS * self.sigma}

    def best_date_format(self) -> tuple[float, str, Literal["date", "datetime"]]:
        """Evidence for dates or times, the most likely format, and the type."""
        found: list[tuple[float, str, Literal["date", "datetime"]]] = []
        for kind, formats, pairs in (
            ("date", DATE_FORMATS, AMBIGUOUS_DATE_FORMATS),
            ("datetime", DATETIME_FORMATS, AMBIGUOUS_DATETIME_FORMATS),
        ):
            for each in formats:
                shared = [f"{kind} {a} or {b}" for a, b in pairs if each in (a, b)]
                rows = [self._date_count(f"{kind} {each}"), *map(self._date_count, shared)]
                whole = sum(rows) / len(rows) ** 0.5
                score = max(rows[0], whole) / self.sigma
                found.append((score, each, "date" if kind == "date" else "datetime"))
        return max(found, key=lambda each: each[0])

    def _date_count(self, name: str) -> int:
        return int(self.counts[len(_OTHER_CELLS) + _DATE_CLASSES.index(name)])


def best_window(counts: Counts) -> tuple[float, int, int]:
    """Find the neighbouring cells with the most evidence: sum over root of length; both ends."""
    sums = np.concatenate([[0], np.cumsum(counts)])
    best = (-np.inf, 0, 0)
    for length in range(1, min(_MAX_WINDOW, len(counts)) + 1):
        scores = (sums[length:] - sums[:-length]) / np.sqrt(length)
        first = int(np.argmax(scores))
        best = max(best, (float(scores[first]), first, first + length - 1))
    return best


def occupied_range(counts: Counts, sigma: float) -> tuple[int, int]:
    """First and last cell of the range in which noisy counts show rows.

    It grows from the neighbouring cells with the most evidence. A cell near the range needs less
    evidence than one far away, which noise alone would often provide somewhere.
    """
    _, first, last = best_window(counts)
    while last > first and counts[first] < _WEAK_SIGMAS * sigma:
        first += 1
    while last > first and counts[last] < _WEAK_SIGMAS * sigma:
        last -= 1
    last = _grow_right(counts, last, sigma)
    mirrored = _grow_right(counts[::-1], len(counts) - 1 - first, sigma)
    return len(counts) - 1 - mirrored, last


def _grow_right(counts: Counts, last: int, sigma: float) -> int:
    """Last cell with rows, at or after ``last``."""
    at = last + 1
    if at < len(counts) and counts[at] > _NEXT_SIGMAS * sigma:
        last, at = at, at + 1
    while at < len(counts):
        is_near = at - last <= _MAX_GAP + 1
        longest = _MAX_WINDOW if is_near else _MAX_FAR_WINDOW
        lengths = range(1, min(longest, len(counts) - at) + 1)
        limit = _NEAR_SIGMAS if is_near else _FAR_SIGMAS
        ends = [
            at + length - 1
            for length in lengths
            if counts[at : at + length].sum() > limit * sigma * length**0.5
            and counts[at + length - 1] > _WEAK_SIGMAS * sigma
        ]
        last = min(ends, default=last)
        at = max(at, last) + 1
    return last
