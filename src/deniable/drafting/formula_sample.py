"""Sample of the numeric columns of a table, in which formulas are sought."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Reals


@dataclass(frozen=True, kw_only=True)
class FormulaSample:
    """Sampled rows of numeric columns.

    Attributes:
        numbers: Rows by columns; NaN if a cell is missing.
        decimals: Decimals of each column.
        distinct: Different numbers of each column, in the table.
    """

    numbers: Reals
    decimals: tuple[int, ...]
    distinct: tuple[int, ...]

    @property
    def tolerances(self) -> Reals:
        """The rounding error of each column."""
        return np.array([rounding_error(each) for each in self.decimals])

    @property
    def columns(self) -> range:
        """The indices of the columns."""
        return range(self.numbers.shape[1])

    def longest(self, columns: Sequence[int], most: int) -> list[int]:
        """Choose the columns with the most different numbers; return them in order."""
        return sorted(sorted(columns, key=lambda j: (-self.distinct[j], j))[:most])

    def select(self, columns: Sequence[int]) -> "FormulaSample":
        """Keep these columns."""
        return FormulaSample(
            numbers=self.numbers[:, columns],
            decimals=tuple(self.decimals[j] for j in columns),
            distinct=tuple(self.distinct[j] for j in columns),
        )


def rounding_error(decimals: int) -> float:
    """Largest error of a number that is rounded to some decimals, and a little more."""
    return 0.51 * 10.0**-decimals
