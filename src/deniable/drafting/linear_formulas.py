"""Columns that are a multiple of another plus a constant: age and year of birth, cents and euros.

A line through two sampled rows is tested on all sampled rows. A coincidence would need the same
line in eight different numbers of the source and more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.drafting.formula_sample import FormulaSample

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

    @property
    def terms(self) -> tuple[int, ...]:
        """The index of the source."""
        return (self.source,)

    def of(self, *terms: Reals) -> Reals:
        """Compute the target from the source."""
        [numbers] = terms
        return float(self.factor) * numbers + float(self.constant)

    def evidence(self, *terms: Reals) -> Mask:
        """Every number of the source is evidence: the sample has eight and more."""
        return np.isfinite(terms[0])

    def text(self, *terms: str) -> str:
        """Write the formula; the name of the source is quoted if it has to be."""
        [source] = terms
        product = source if abs(self.factor) == 1 else f"{abs(self.factor):f} * {source}"
        if self.factor < 0:
            return f"{self.constant:f} - {product}"
        if not self.constant:
            return product
        sign = "+" if self.constant > 0 else "-"
        return f"{product} {sign} {abs(self.constant):f}"


def find_lines(sample: FormulaSample) -> Iterator[Line]:
    """Yield the columns that are a line of another in all sampled rows without a missing cell.

    The source has at least as many different numbers in the table. Integers need an integer factor
    and constant.
    """
    numbers_of, distinct, tolerances = sample.numbers, sample.distinct, sample.tolerances
    for source in sample.columns:
        present = np.isfinite(numbers_of[:, source])
        rows = numbers_of[present]
        numbers = rows[:, source]
        if len(np.unique(numbers)) < _MIN_DISTINCT:
            continue
        for target in np.flatnonzero(_is_near_line(numbers, rows, tolerances)).tolist():
            # Of two columns with as many different numbers, the first is the source.
            if (distinct[source], target) > (distinct[target], source) and target != source:
                line = _fit_line(numbers, rows[:, target], float(tolerances[target]))
                if line is not None and (sample.decimals[target] or _is_integer(*line)):
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
