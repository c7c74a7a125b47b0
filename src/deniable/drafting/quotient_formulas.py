"""Columns that are a quotient of two others: rates, amounts for each person, the body mass index.

A quotient by a column, or by its square, is tested on sampled rows. A coincidence would need the
same factor in eight different numbers of each column and more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.drafting.formula_sample import FormulaSample

# Different numbers that each column needs in the sample.
_MIN_DISTINCT = 8
# Significant digits of a factor: 100 for percentages, 10000 for a height in centimetres.
_FACTOR_DIGITS = 3
# Factors beyond this, and their reciprocals, are no change of units.
_LARGEST_FACTOR = 10**9
# A column whose numbers differ by less than this many rounding errors shows nothing.
_MIN_SPREAD = 40


@dataclass(frozen=True, kw_only=True)
class Quotient:
    """A column that is ``factor`` times the quotient of two others, in a sample.

    Attributes:
        target: The index of the column.
        numerator: The index of the column that is divided.
        divisor: The index of the column by which it is divided.
        is_squared: Whether it is divided twice by it.
        factor: The factor.
    """

    target: int
    numerator: int
    divisor: int
    is_squared: bool
    factor: Decimal

    @property
    def terms(self) -> tuple[int, ...]:
        """The indices of numerator and divisor."""
        return self.numerator, self.divisor

    def of(self, *terms: Reals) -> Reals:
        """Compute the target; NaN where the divisor is zero."""
        numerator, divisor = terms
        power = divisor**2 if self.is_squared else divisor
        return float(self.factor) * _divide(numerator, power)

    def evidence(self, *terms: Reals) -> Mask:
        """Mark the rows with a numerator: zero is zero, whatever the divisor."""
        found: Mask = terms[0] != 0
        return found

    def text(self, *terms: str) -> str:
        """Write the formula; names are quoted if they have to be."""
        numerator, divisor = terms
        scaled = numerator if self.factor == 1 else f"{self.factor:f} * {numerator}"
        return f"{scaled} / ({divisor} * {divisor})" if self.is_squared else f"{scaled} / {divisor}"


def find_quotients(sample: FormulaSample) -> Iterator[Quotient]:
    """Yield the columns with decimals that are a quotient of two others in the sample."""
    numbers, tolerances = sample.numbers, sample.tolerances
    varied = [j for j in sample.columns if _count_distinct(numbers[:, j]) >= _MIN_DISTINCT]
    targets = [
        j
        for j in varied
        if sample.decimals[j] and _spread(numbers[:, j]) >= _MIN_SPREAD * tolerances[j]
    ]
    if not targets:
        return
    results, errors = numbers[:, targets], tolerances[targets]
    for divisor in varied:
        for is_squared in (False, True):
            power = numbers[:, divisor] ** (2 if is_squared else 1)
            for numerator in varied:
                if numerator == divisor:
                    continue
                ratios = _divide(numbers[:, numerator], power)
                low, high = _factor_bounds(ratios, results, errors)
                for at in np.flatnonzero(low <= high).tolist():
                    factor = _roundest(float(low[at]), float(high[at]))
                    if factor is not None and targets[at] not in (numerator, divisor):
                        yield Quotient(
                            target=targets[at],
                            numerator=numerator,
                            divisor=divisor,
                            is_squared=is_squared,
                            factor=factor,
                        )


def _factor_bounds(ratios: Reals, results: Reals, errors: Reals) -> tuple[Reals, Reals]:
    """Bound the factor by which each result exceeds the ratios, up to rounding errors.

    The lower bound is above the upper one where no factor fits all rows, or other rows are missing.
    """
    there = np.isfinite(ratios)
    same = (np.isfinite(results) == there[:, None]).all(axis=0)
    used = there & (ratios != 0)
    if used.sum() < _MIN_DISTINCT:
        return np.ones(len(same)), np.zeros(len(same))
    size, sign = np.abs(ratios[used])[:, None], np.sign(ratios[used])[:, None]
    with np.errstate(invalid="ignore"):
        low = ((sign * results[used] - errors) / size).max(axis=0)
        high = ((sign * results[used] + errors) / size).min(axis=0)
        zero = (np.abs(results[there & (ratios == 0)]) <= errors).all(axis=0)
    return np.where(same & zero, low, 1.0), np.where(same & zero, high, 0.0)


def _roundest(low: float, high: float) -> Decimal | None:
    """Find the number of fewest digits between two bounds.

    None if it needs too many, or is 0 or extreme.
    """
    if not 1 / _LARGEST_FACTOR <= abs(low + high) / 2 <= _LARGEST_FACTOR:
        return None
    for digits in range(1, _FACTOR_DIGITS + 1):
        found = Decimal(f"{(low + high) / 2:.{digits - 1}e}")
        if low <= found <= high:
            whole = found == found.to_integral_value()
            return found.quantize(Decimal(1)) if whole else found.normalize()
    return None


def _divide(numerator: Reals, divisor: Reals) -> Reals:
    return numerator / np.where(divisor == 0, np.nan, divisor)


def _count_distinct(numbers: Reals) -> int:
    return len(np.unique(numbers[np.isfinite(numbers)]))


def _spread(numbers: Reals) -> float:
    return float(np.nanmax(numbers) - np.nanmin(numbers))
