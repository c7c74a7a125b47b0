"""Rows in groups: contingency tables, rank correlations and group means of one table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from typing import Self

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.evaluation.column_groups import GroupedColumn, GroupNumbers

# A rank correlation of fewer rows is not computed.
_MIN_CORRELATED_ROWS = 50
# Columns of numbers that are compared: the cost grows with their square.
_MAX_NUMBERS = 40


@dataclass(frozen=True, kw_only=True)
class GroupedRows:
    """Groups and numbers of the rows of one table. Confidential if the table is.

    Attributes:
        columns: The columns and their groups.
        codes: The encoded rows.
        groups: Group of each row, column by column.
    """

    columns: Sequence[GroupedColumn]
    codes: Codes = field(repr=False)
    groups: list[GroupNumbers] = field(repr=False)

    @classmethod
    def of(cls, columns: Sequence[GroupedColumn], codes: Codes) -> Self:
        """Look up the groups of encoded rows."""
        groups = [each.group_of[codes[:, each.column]] for each in columns]
        return cls(columns=columns, codes=codes, groups=groups)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def levels(self) -> dict[int, Indices]:
        """Level of each row, for each column of numbers."""
        numbers = {at: each for at, each in enumerate(self.columns) if each.level_of is not None}
        return {
            at: each.level_of[self.codes[:, each.column]]
            for at, each in islice(numbers.items(), _MAX_NUMBERS)
            if each.level_of is not None
        }

    def cells(self, chosen: Sequence[int]) -> Indices:
        """Compute the cell of each row in the flattened table of the chosen columns."""
        found = self.groups[chosen[0]].astype(np.intp)
        for at in chosen[1:]:
            found *= self.columns[at].groups
            found += self.groups[at]
        return found

    def count(self, chosen: Sequence[int]) -> Counts:
        """Count the rows in each cell of the chosen columns."""
        shape = tuple(self.columns[at].groups for at in chosen)
        return np.bincount(self.cells(chosen), minlength=int(np.prod(shape))).reshape(shape)

    @cached_property
    def rank_correlations(self) -> Reals:
        """Spearman's rank correlation of all pairs of columns of numbers, in their order.

        Rows in which one of the two is missing are left out; NaN if too few are left.
        """
        ranks = {at: self._unit_ranks(at, levels) for at, levels in self.levels.items()}
        found = []
        for a, b in combinations(self.levels, 2):
            one, two = ranks[a], ranks[b]
            if one is None or two is None:
                one, two = self._ranks_of_complete_rows(a, b)
            # Not a dot product: its threads cost more than they save at this size.
            found.append(np.nan if one is None or two is None else float((one * two).sum()))
        return np.array(found)

    def _ranks_of_complete_rows(self, a: int, b: int) -> tuple[Reals | None, Reals | None]:
        one, two = self.levels[a], self.levels[b]
        missing = (len(self.columns[a].numbers) - 1, len(self.columns[b].numbers) - 1)
        complete = (one != missing[0]) & (two != missing[1])
        return self._unit_ranks(a, one[complete]), self._unit_ranks(b, two[complete])

    def _unit_ranks(self, at: int, levels: Indices) -> Reals | None:
        """Rank rows by level, ties by their mean, centred and of length 1.

        All are 0 if all rows are equal. None if a cell is missing or rows are few.
        """
        counts = np.bincount(levels, minlength=len(self.columns[at].numbers))
        if counts[-1] or len(levels) < _MIN_CORRELATED_ROWS:
            return None
        ranks = np.cumsum(counts) - (counts - 1) / 2 - (len(levels) + 1) / 2
        length = np.sqrt((counts * ranks**2).sum())
        return np.asarray((ranks / max(length, 1e-300))[levels])

    @cached_property
    def number_moments(self) -> tuple[Reals, Reals]:
        """The mean and the standard deviation of each column of numbers."""
        means, deviations = [], []
        for at, levels in self.levels.items():
            numbers = self.columns[at].numbers[:-1]
            shares = np.bincount(levels, minlength=len(numbers) + 1)[:-1].astype(np.float64)
            shares /= max(1.0, shares.sum())
            means.append(float((shares * numbers).sum()))
            deviations.append(np.sqrt(float((shares * (numbers - means[-1]) ** 2).sum())))
        return np.array(means), np.array(deviations)

    def group_means(self, by: Sequence[int]) -> dict[int, tuple[Reals, Counts]]:
        """Compute the mean and the number of rows of each number in each group.

        Args:
            by: Columns whose groups are taken.

        Returns:
            For each of them, two arrays of groups by columns of numbers; a mean is NaN if no row
            of the group has the number.
        """
        found = {}
        numbers = [self.columns[at].numbers[levels] for at, levels in self.levels.items()]
        # Where no cell is missing, the groups are counted once.
        present = [None if not (gone := np.isnan(each)).any() else ~gone for each in numbers]
        numbers = [np.nan_to_num(each) for each in numbers]
        for at in by:
            groups, size = self.groups[at].astype(np.intp), self.columns[at].groups
            every = np.bincount(groups, minlength=size)
            # Not a matrix product: its threads cost more than they save at this size.
            sums = [np.bincount(groups, weights=each, minlength=size) for each in numbers]
            counts = [
                every if there is None else np.bincount(groups[there], minlength=size)
                for there in present
            ]
            with np.errstate(invalid="ignore", divide="ignore"):
                found[at] = (np.transpose(sums) / np.transpose(counts), np.transpose(counts))
        return found
