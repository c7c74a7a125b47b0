"""Columns that are a multiple of another plus a constant: age and year of birth, cents and euros.

A line through two sampled rows is tested on all sampled rows. A coincidence would need the same
line in eight different numbers of the source and more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from deniable.arrays import Mask, Reals

# Different numbers of the source that the sample needs.
_MIN_DISTINCT = 8
# Decimals of a factor and of a constant; the fewest that fit are used.
_MAX_DECIMALS = 6


@dataclass(frozen=True, kw_only=True)
class Line:
    """A column that is ``factor`` times another plus ``constant``, in a sample.

    Attributes:
        target: The index of the column.
        source: The index of the other column.
        factor: The factor.
        constant: The constant.
    """

    target: int
    source: int
    factor: Decimal
    constant: Decimal

    def of(self, numbers: Reals) -> Reals:
        """Compute the target from the source."""
        return float(self.factor) * numbers + float(self.constant)

    def text(self, source: str) -> str:
        """Write the formula; ``source`` is the column's name, quoted if it has to be."""
        product = source if abs(self.factor) == 1 else f"{abs(self.factor):f} * {source}"
        if self.factor < 0:
            return f"{self.constant:f} - {product}"
        if not self.constant:
            return product
        sign = "+" if self.constant > 0 else "-"
        return f"{product} {sign} {abs(self.constant):f}"


def find_lines(
    sample: Reals, decimals: Sequence[int], distinct: Sequence[int], tolerances: Reals
) -> Iterator[Line]:
    """Yield the columns that are a line of another in all sampled rows without a missing cell.

    The source has at least as many different numbers in the table. Integers need an integer factor
    and constant.

    Args:
        sample: Sampled rows by columns; NaN if a cell is missing.
        decimals: Decimals of each column.
        distinct: Different numbers of each column, in the table.
        tolerances: Rounding error of each column.
    """
    for source in range(sample.shape[1]):
        present = np.isfinite(sample[:, source])
        rows = sample[present]
        numbers = rows[:, source]
        if len(np.unique(numbers)) < _MIN_DISTINCT:
            continue
        for target in np.flatnonzero(_is_near_line(numbers, rows, tolerances)).tolist():
            # Of two columns with as many different numbers, the first is the source.
            if (distinct[source], target) > (distinct[target], source) and target != source:
                line = _fit_line(numbers, rows[:, target], float(tolerances[target]))
                if line is not None and (decimals[target] or _is_integer(*line)):
                    yield Line(target=target, source=source, factor=line[0], constant=line[1])


def _is_near_line(numbers: Reals, results: Reals, tolerances: Reals) -> Mask:
    """Mark the columns of results on a line through their ends; none with a missing cell is."""
    low, high = int(numbers.argmin()), int(numbers.argmax())
    slopes = (results[high] - results[low]) / (numbers[high] - numbers[low])
    lines = results[low] + np.outer(numbers - numbers[low], slopes)
    # The results at the ends are rounded, too.
    with np.errstate(invalid="ignore"):
        near: Mask = (np.abs(lines - results) <= 3 * tolerances).all(axis=0)
    return near


def _fit_line(numbers: Reals, results: Reals, tolerance: float) -> tuple[Decimal, Decimal] | None:
    """Fit factor and constant with few decimals; None if there is no such line, or it is flat."""
    low, high = int(numbers.argmin()), int(numbers.argmax())
    slope = (results[high] - results[low]) / (numbers[high] - numbers[low])
    for places in range(_MAX_DECIMALS + 1):
        factor = round(float(slope), places)
        rests = results - factor * numbers
        rest = float(rests.min() + rests.max()) / 2
        for digits in range(places, _MAX_DECIMALS + 1):
            constant = round(rest, digits)
            error = np.abs(factor * numbers + constant - results)
            if factor and (error <= tolerance).all():
                return _decimal(factor), _decimal(constant)
    return None


def _decimal(number: float) -> Decimal:
    """Convert a number without a decimal point if it is an integer."""
    return Decimal(int(number)) if number.is_integer() else Decimal(repr(number))


def _is_integer(factor: Decimal, constant: Decimal) -> bool:
    return factor % 1 == 0 and constant % 1 == 0
