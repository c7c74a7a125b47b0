"""Columns that are a function of another: logarithms and square roots of amounts.

A function is tested on sampled rows. A coincidence would need eight different numbers and more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.drafting.formula_sample import FormulaSample
from deniable.schema.formula import natural_log, square_root

# Different numbers of the source that the sample needs.
_MIN_DISTINCT = 8
# A column whose numbers differ by less than this many rounding errors shows nothing.
_MIN_SPREAD = 40


# How each function is written, and how it is computed.
_FUNCTIONS: tuple[tuple[str, Callable[[Reals], Reals]], ...] = (
    ("log({})", natural_log),
    ("log({} + 1)", lambda numbers: natural_log(numbers + 1)),
    ("sqrt({})", square_root),
)


@dataclass(frozen=True, kw_only=True)
class FunctionOfColumn:
    """A column that is a function of another, in a sample.

    Attributes:
        target: The index of the column.
        source: The index of the other column.
        function: The number of the function.
    """

    target: int
    source: int
    function: int

    @property
    def terms(self) -> tuple[int, ...]:
        """The index of the source."""
        return (self.source,)

    def of(self, *terms: Reals) -> Reals:
        """Compute the target; NaN where the function has no value."""
        return _FUNCTIONS[self.function][1](terms[0])

    def text(self, *terms: str) -> str:
        """Write the formula; the name of the source is quoted if it has to be."""
        return _FUNCTIONS[self.function][0].format(terms[0])

    def evidence(self, *terms: Reals) -> Mask:
        """Every number of the source is evidence: the sample has eight and more."""
        return np.isfinite(terms[0])


def find_functions(sample: FormulaSample) -> Iterator[FunctionOfColumn]:
    """Yield the columns that are a function of another in all sampled rows with both numbers."""
    numbers, tolerances = sample.numbers, sample.tolerances
    spread = np.nan_to_num(np.nanmax(numbers, axis=0) - np.nanmin(numbers, axis=0))
    fractional = np.array([decimals > 0 for decimals in sample.decimals], dtype=bool)
    possible = fractional & (spread >= _MIN_SPREAD * tolerances)
    for source in sample.columns:
        own = numbers[:, source]
        if len(np.unique(own[np.isfinite(own)])) < _MIN_DISTINCT:
            continue
        for function, (_, compute) in enumerate(_FUNCTIONS):
            error = np.abs(compute(own)[:, None] - numbers)
            present = np.isfinite(error)
            enough = present.sum(axis=0) >= _MIN_DISTINCT
            with np.errstate(invalid="ignore"):
                near = ((error <= tolerances) | ~present).all(axis=0)
            for target in np.flatnonzero(near & enough & possible).tolist():
                if target != source:
                    yield FunctionOfColumn(target=target, source=source, function=function)
