"""Columns of numbers: bounds, grid, bins, buckets, and which numbers mean missing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.data.bins import digit_starts
from deniable.drafting.attributes import READ, ROUNDED, Described, Field, Kind, Plain
from deniable.drafting.bounds import nice_near, outward
from deniable.drafting.cells import CODE_WORDS, words_of

# Surveys write these where there is no answer. Nines may also be "that or more".
_BELOW = (-7, -8, -9, -77, -88, -99, -777, -888, -999, -9999)
_NINES = (99, 999, 9999)
_MORE_NINES = (*_NINES, 99_999, 999_999)

# The last number that a schema can name.
_LAST = 2**62 - 1
# Beyond it a double may not tell a number from the next, once bounds are rounded outward.
LARGEST_REAL = 2.0**52
# Up to here every position of the grid is a value of its own.
MOST_POSITIONS = 1_000
# Fewer values than this far apart are a list, not a range.
_FEW = 50
# A number that so many rows share has a bin of its own, where this share of the rows in wide bins
# have such numbers, and lie in them so unevenly: rates of a month, amounts of a tariff. A number
# that fewer share is never named.
_OFTEN = 20
_CROWDED = 0.5
_UNEVEN = 0.2
_MOST_CODES = 20_000
# Heaps are worth learning where so many rows are in wide bins, in a table of that many rows: below,
# what one more attribute takes from all others is more. A step is, where so many rows stop at it.
_MANY = 0.1
_ENOUGH = 10_000
_SOME = 0.02
# How far beyond chance: of the rows that chance would not put there, so many are.
_BEYOND = 0.2
# Where computed numbers are cut: they have as many decimals as a double.
_MOST_DECIMALS = 6


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Distinct numbers on a grid of 10^-decimals, ascending, and how many rows have each.

    Attributes:
        positions: The numbers, times 10^decimals.
        counts: The rows of each.
        decimals: That.
        cut: Whether they had more decimals.
        whole: Whether they are whole numbers, all of them and exactly.
    """

    positions: Counts
    counts: Counts
    decimals: int
    cut: bool = False
    whole: bool = False

    @classmethod
    def of(cls, values: Reals, counts: Counts, *, decimals: int | None) -> "Numbers":
        """Return numbers from doubles; ``decimals`` is None where they have too many to count."""
        cut = decimals is None or decimals > _MOST_DECIMALS
        kept = decimals_by_spread(values, counts) if decimals is None or cut else decimals
        # As far as a double tells a number from the next.
        while kept and np.abs(values).max() * 10.0**kept >= LARGEST_REAL:
            kept, cut = kept - 1, True
        positions = np.rint(values * 10.0**kept).astype(np.int64)
        whole = bool((values == np.floor(values)).all())
        return replace(cls.merged(positions, counts, kept), cut=cut, whole=whole)

    @classmethod
    def merged(cls, positions: Counts, counts: Counts, decimals: int) -> "Numbers":
        """Return numbers from positions in any order, of which some may be equal."""
        unique, place = np.unique(positions, return_inverse=True)
        rows = np.zeros(len(unique), dtype=np.int64)
        np.add.at(rows, place, counts)
        return cls(positions=unique, counts=rows, decimals=decimals, whole=decimals == 0)

    @property
    def low(self) -> int:
        """The smallest."""
        return int(self.positions[0])

    @property
    def high(self) -> int:
        """The largest."""
        return int(self.positions[-1])

    @property
    def rows(self) -> int:
        """How many rows have a number."""
        return int(self.counts.sum())

    def quantile(self, share: float) -> int:
        """Return the number below which this share of the rows lies, about."""
        at = np.searchsorted(np.cumsum(self.counts), share * self.rows)
        return int(self.positions[min(int(at), len(self.positions) - 1)])

    def within(self, kept: Sequence[bool] | np.ndarray) -> "Numbers":
        """Return some of the numbers."""
        return replace(self, positions=self.positions[kept], counts=self.counts[kept])


def decimals_by_spread(values: Reals, counts: Counts) -> int:
    """Return how many decimals tell a thousand numbers apart in the middle of the rows."""
    order = np.argsort(values)
    ends = np.cumsum(counts[order])
    low, high = (values[order][np.searchsorted(ends, q * ends[-1])] for q in (0.05, 0.95))
    if not high > low:
        return _MOST_DECIMALS
    return max(0, min(_MOST_DECIMALS, math.ceil(3 - math.log10(high - low))))


def decimals_each(values: Reals, *, most: int) -> Counts:
    """Return the fewest decimals that each double needs; ``most`` + 1 where it needs more."""
    found: Counts = np.full(len(values), most + 1, dtype=np.int64)
    finite = np.isfinite(values)
    # Larger doubles are whole; their powers of ten might be none.
    numbers = np.clip(np.where(finite, values, 0.0), -1e18, 1e18)
    for decimals in range(most, -1, -1):
        grid = numbers * 10.0**decimals
        exact = np.abs(grid - np.rint(grid)) <= 1e-9 * np.maximum(1.0, np.abs(grid))
        found[exact & finite] = decimals
    return found


def decimals_of(values: Reals) -> int | None:
    """Return the fewest decimals with which doubles are what they are; None: more than a few."""
    most = int(decimals_each(values, most=_MOST_DECIMALS).max(initial=0))
    return most if most <= _MOST_DECIMALS else None


def set_missing_apart(numbers: Numbers) -> tuple[Numbers, list[int], list[str]]:
    """Return the numbers without those that mean missing, these, and what is left to decide."""
    unit = 10**numbers.decimals
    codes: list[int] = []
    found = {int(p) // unit for p in numbers.positions if int(p) % unit == 0}
    for code in (*_BELOW, *sorted(_NINES, reverse=True)):
        if code in found and _lies_apart(numbers, code * unit):
            codes.append(code)
            numbers = numbers.within(numbers.positions != code * unit)
    notes = []
    if numbers.low == -unit and len(numbers.positions) > 2 and numbers.positions[1] >= 0:
        notes.append('the only negative number is -1: if it means missing, say missing = ["-1"]')
    doubtful = [nine for nine in _MORE_NINES if nine * unit == numbers.high]
    if doubtful and numbers.counts[-1] > 2 * np.median(numbers.counts):
        notes.append(
            f"many rows have {doubtful[0]}: does it mean missing (then say so under missing, and "
            "lower max), or that or more"
        )
    return numbers, codes, notes


def _lies_apart(numbers: Numbers, code: int) -> bool:
    """Whether a code is the lowest, below zero where no other is; or far above all others."""
    others = numbers.positions[numbers.positions != code]
    if len(others) < 2:
        return False
    if code < 0:
        # Several such codes may stand together: what matters is that they are the negative ones.
        return bool(np.isin(others[others < 0], [c * 10**numbers.decimals for c in _BELOW]).all())
    return bool(code > others[-1] and code - others[-1] > others[-1] - others[0])


def describe_numbers(
    name: str, numbers: Numbers, missing: Sequence[str], *, texts: Sequence[str] = ()
) -> tuple[Described, list[int]]:
    """Return what a draft says of a column of numbers, and which numbers mean missing.

    Args:
        name: Its header.
        numbers: What it holds. Confidential.
        missing: The texts that mean missing there.
        texts: The numbers as they are written, where the column is one of text.
    """
    numbers, codes, notes = set_missing_apart(numbers)
    missing = [*missing, *map(str, codes)]
    last = [Field("missing", [*missing], READ)] if missing else []
    if codes:
        notes.append(
            f"{' and '.join(map(str, codes))} is taken to mean missing: check, and remember that "
            "all that means missing is written back as the first of its texts"
        )
    if listed := _list_of(name, numbers, texts):
        kind, fields, more = listed
    else:
        kind, fields, more = _range_of(numbers, codes)
        if kind == "integer" and texts and all(text.endswith(".0") for text in texts):
            # As a table that once was of floats writes whole numbers.
            step = Field("step", Decimal("1.0"), "whole numbers, written with a point")
            kind, fields = "real", [*fields[:2], step, *fields[2:]]
    if numbers.cut:
        notes.append(
            f"its numbers have many decimals, and are rounded to {numbers.decimals}: decide on "
            "decimals"
        )
    remarks = _clip_remark(numbers) if kind in ("real", "integer") else ()
    described = Described(
        name=name,
        kind=kind,
        fields=(*fields, *last),
        remarks=remarks,
        notes=(*more, *notes),
    )
    return described, codes


def _list_of(
    name: str, numbers: Numbers, texts: Sequence[str]
) -> tuple[Kind, list[Field], list[str]] | None:
    """Return the numbers as a list of values, where that is what they are."""
    many, span = len(numbers.positions), numbers.high - numbers.low
    if numbers.rows < 10 * many or span < 10 * many or span < MOST_POSITIONS:
        if not (words_of(name) & CODE_WORDS and numbers.whole and many <= _MOST_CODES):
            return None
    elif many > _FEW and (not numbers.whole or _is_skewed(numbers) or many > _MOST_CODES):
        return None
    if not numbers.whole and len(texts) != many:
        return None
    values: list[Plain] = [int(p) for p in numbers.positions] if numbers.whole else [*texts]
    fields = [Field("values", values, READ)]
    if many <= _FEW:
        why = "only these numbers occur: if others may, make it a range (min, max)"
        if many > 20:
            fields.append(Field("buckets", {"width": nice_near(many / 10)}, _ABOUT_TEN))
        return "ordered", fields, [why]
    why = (
        "its numbers look like codes, so each is a value by itself: if they are amounts, make it "
        "an integer (min, max); if they are codes, take them from their list"
    )
    return "categorical", fields, [why]


_ABOUT_TEN = "about ten; used where the column predicts another"


def _range_of(numbers: Numbers, codes: Sequence[int]) -> tuple[Kind, list[Field], list[str]]:
    """Return the numbers as a range: bounds, bins if it is wide, buckets."""
    low, high = _bounds(numbers, codes)
    why = (READ if low == numbers.low else ROUNDED, READ if high == numbers.high else ROUNDED)
    fields = range_fields(
        low,
        high,
        decimals=None if numbers.whole else numbers.decimals,
        skewed=_is_skewed(numbers),
        why=why,
    )
    scale = None if numbers.whole else numbers.decimals
    has_bins = "bins" in (field.key for field in fields)
    if has_bins and (steps := find_heaps(numbers)):
        heaps: list[Plain] = [shown(step, scale) for step in steps]
        fields.append(Field("heaps", heaps, "numbers crowd at multiples of these"))
    elif has_bins and (edges := _set_shared_apart(numbers, low, high)):
        bins = Field(
            "bins",
            {"edges": [shown(edge, scale) for edge in edges]},
            f"numbers that {_OFTEN} rows or more share have a bin of their own",
        )
        fields = [bins if field.key == "bins" else field for field in fields]
    notes = []
    if 20 < high - low <= 30 and numbers.whole:
        notes.append("if its numbers are codes without an order, make it categorical")
    return "integer" if numbers.whole else "real", fields, notes


def range_fields(
    low: int,
    high: int,
    *,
    decimals: int | None,
    skewed: bool,
    why: tuple[str, str],
) -> list[Field]:
    """Return bounds, and bins and buckets where the range is wide.

    Args:
        low: The lower bound, on a grid of 10^-decimals.
        high: The upper bound.
        decimals: That; None for whole numbers.
        skewed: Whether the larger a number is, the fewer rows have it.
        why: Where the bounds come from.
    """
    fields = [
        Field("min", shown(low, decimals), why[0]),
        Field("max", shown(high, decimals), why[1]),
    ]
    if decimals is not None:
        fields.append(Field("decimals", decimals, READ if READ in why[0] else why[0]))
    span = high - low + 1
    if span > MOST_POSITIONS and skewed:
        fields.append(Field("bins", {"digits": 2}, "numbers that begin with the same two digits"))
    elif span > MOST_POSITIONS:
        width = nice_near(span / 1_000)
        fields.append(Field("bins", {"width": shown(width, decimals)}, "within a bin, all alike"))
        fields.append(Field("buckets", {"width": shown(100 * width, decimals)}, _ABOUT_TEN))
    elif span > 20:
        width = nice_near(span / 10)
        fields.append(Field("buckets", {"width": shown(width, decimals)}, _ABOUT_TEN))
    return fields


def find_heaps(numbers: Numbers) -> list[int]:
    """Return steps of 5, 10, 50, 100, … positions at whose multiples numbers crowd, if they do.

    Asked of rows whose bin is as wide as the step, where they are enough; by chance, one in so many
    multiples of a step is one of the next. A step that few rows stop at is left out.
    """
    places, counts = numbers.positions, numbers.counts
    if numbers.rows < _ENOUGH:
        return []
    widths = _widths(numbers)
    found: list[int] = []
    last = 1
    for step in (factor * 10**power for power in range(18) for factor in (5, 10)):
        wide = widths >= step
        if counts[wide].sum() < _MANY * numbers.rows:
            break
        before, after = (counts[wide & (places % each == 0)].sum() for each in (last, step))
        by_chance = before * last / step
        far = max(_BEYOND * (before - by_chance), 4 * math.sqrt(by_chance))
        if after > by_chance + far:
            found, last = [*found, step], step
    level = sum((places % step == 0).astype(np.int64) for step in found)
    stops = np.bincount(np.where(widths > 1, level, 0), counts, minlength=len(found) + 1)
    return [
        step for step, rows in zip(found, stops[1:], strict=True) if rows > _SOME * numbers.rows
    ]


def _set_shared_apart(numbers: Numbers, low: int, high: int) -> list[int]:
    """Return the lower edges of bins, where numbers that many rows share stand alone; else none."""
    places, counts, widths = numbers.positions, numbers.counts, _widths(numbers)
    wide = widths > 1
    shared, rows = wide & (counts >= _OFTEN), int(counts[wide].sum())
    if not 0 < shared.sum() <= MOST_POSITIONS or counts[shared].sum() < _CROWDED * rows:
        return []
    # What a number has beyond its part of its bin, of all that is in wide bins.
    _, of_bin = np.unique(np.stack([widths, places // widths]), axis=1, return_inverse=True)
    evenly = np.bincount(of_bin, counts)[of_bin] / widths
    if np.maximum(counts - evenly, 0.0)[wide].sum() < _UNEVEN * rows:
        return []
    alone = places[shared].tolist()
    if _is_skewed(numbers):
        between = [*digit_starts(range(low, high + 1), 1)]
    else:
        between = [*range(low, high + 1, nice_near((high - low + 1) / 100))]
    edges = {*between, *alone, *(number + 1 for number in alone)}
    return sorted(edge for edge in edges if low < edge <= high)


def _widths(numbers: Numbers) -> Counts:
    """Return the width of each number's bin, as ``range_fields`` would draft it."""
    places = numbers.positions
    if not _is_skewed(numbers):
        return np.full(len(places), nice_near((numbers.high - numbers.low + 1) / 1_000))
    digits = np.char.str_len(np.abs(places).astype(np.str_))
    widths: Counts = 10 ** np.maximum(digits - 2, 0)
    return widths


def shown(position: int, decimals: int | None) -> int | Decimal:
    """Return a position on a grid of 10^-decimals as the number it stands for."""
    return position if decimals is None else Decimal(position).scaleb(-decimals)


def _bounds(numbers: Numbers, codes: Sequence[int]) -> tuple[int, int]:
    """Return round bounds that leave out the numbers that mean missing."""
    low, high = (max(-_LAST, min(end, _LAST)) for end in outward(numbers.low, numbers.high))
    for code in (code * 10**numbers.decimals for code in codes):
        if code < numbers.low:
            low = max(low, code + 1)
        else:
            high = min(high, code - 1)
    return low, high


def _is_skewed(numbers: Numbers) -> bool:
    """Whether most rows crowd at one end: amounts of money do, codes and dates do not."""
    low, high, middle = numbers.low, numbers.high, numbers.quantile(0.5)
    zero = numbers.counts[numbers.positions == 0].sum() > 0.2 * numbers.rows
    tail = 4 * (numbers.quantile(0.99) - numbers.quantile(0.01)) < high - low
    long = high - middle >= 10 * (middle - numbers.quantile(0.01))
    return bool(zero or tail or long)


def _clip_remark(numbers: Numbers) -> tuple[str, ...]:
    if numbers.high - numbers.low < MOST_POSITIONS or not _is_skewed(numbers):
        return ()
    return (
        "A few rows lie far out. With a lower max that is known from elsewhere, and",
        'outside = "clip", larger numbers would be brought back to it.',
    )
