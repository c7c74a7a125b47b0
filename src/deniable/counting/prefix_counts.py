"""Prefix counts: the number of seeds that share the attributes a candidate kept.

The deniability test then is a look-up. Attributes are kept in the order σ, so what a candidate
kept is a prefix of that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Indices
from deniable.data.spooled_codes import SpooledCodes, count_distinct_rows
from deniable.randomness import Rng

# Up to this many possible children, a level of the tree is a dense array.
_MAX_DENSE_CHILDREN = 2**22


@dataclass(frozen=True)
class _TreeStep:
    """Transition from one level of the tree to the next: split groups of seeds by one column.

    Attributes:
        values: The number of values of the column.
        children: The children that have seeds, ascending. A child is numbered
            ``group · values + value``; its index in this array is its group on the next level.
        dense_index: The same as an array indexed by child, -1 without seeds; None if too large.
    """

    values: int
    children: Counts
    dense_index: Counts | None

    def descend(self, groups: Counts, column: Codes) -> Counts:
        """Return the group below each group and value, or -1 if it has no seed."""
        child = groups * self.values + column
        empty = groups < 0
        if self.dense_index is not None:
            below = self.dense_index[np.where(empty, 0, child)]
        else:
            index = np.searchsorted(self.children, child)
            index[index == len(self.children)] = 0
            below = np.where(self.children[index] == child, index, -1)
        return np.where(empty, -1, below)


@dataclass(frozen=True)
class PrefixCounts:
    """Prefix tree (trie) of the seeds in the order σ, with a count at each node.

    Attributes:
        order: σ, up to the longest level.
        levels: The prefix lengths to count, ascending.
        groups: For each level, the group of each seed. A group is the seeds with the same prefix;
            groups are numbered in the ascending order of their prefixes. Empty if the seeds are
            spooled to a file, since it would be as long as they are.
        sizes: For each level, the number of seeds in each group.
    """

    order: tuple[int, ...]
    levels: tuple[int, ...]
    groups: tuple[Counts, ...] = field(repr=False)
    sizes: tuple[Counts, ...] = field(repr=False)
    _steps: tuple[_TreeStep, ...] = field(repr=False)

    @classmethod
    def of(
        cls, seeds: Codes, order: Sequence[int], levels: Sequence[int], sizes: Sequence[int]
    ) -> Self:
        """Count the prefixes of ``seeds``.

        Args:
            seeds: Encoded records.
            order: σ: the columns in the order in which candidates keep them.
            levels: The prefix lengths to count.
            sizes: The number of values of each column.
        """
        if isinstance(seeds, SpooledCodes):
            return cls._of_spooled(seeds, order, levels, sizes)
        groups = np.zeros(len(seeds), dtype=np.int64)
        totals = np.array([len(seeds)], dtype=np.int64)
        steps: list[_TreeStep] = []
        by_level: list[tuple[Counts, Counts]] = []
        levels = sorted(levels)
        for length in range(max(levels) + 1):
            if length > 0:
                column = order[length - 1]
                step, groups = _split_groups(groups, seeds[:, column], len(totals), sizes[column])
                steps.append(step)
                totals = np.bincount(groups, minlength=len(step.children))
            if length in levels:
                by_level.append((groups, totals))
        return cls(
            order=tuple(order[: max(levels)]),
            levels=tuple(levels),
            groups=tuple(groups for groups, _ in by_level),
            sizes=tuple(totals for _, totals in by_level),
            _steps=tuple(steps),
        )

    @classmethod
    def _of_spooled(
        cls, seeds: SpooledCodes, order: Sequence[int], levels: Sequence[int], sizes: Sequence[int]
    ) -> Self:
        """Count seeds in a file, by way of their distinct longest prefixes."""
        columns = list(order[: max(levels)])
        values = [sizes[column] for column in columns]
        prefixes, multiplicity = count_distinct_rows(seeds, columns, values)
        counts = cls.of_weighted(prefixes, multiplicity, range(len(columns)), levels, values)
        return replace(counts, order=tuple(columns), groups=())

    @classmethod
    def of_weighted(
        cls,
        records: Codes,
        multiplicity: Counts,
        order: Sequence[int],
        levels: Sequence[int],
        sizes: Sequence[int],
    ) -> Self:
        """Count the prefixes of seeds given as distinct records with multiplicities."""
        counts = cls.of(records, order, levels, sizes)
        # Floats are exact here: there are fewer than 2^53 seeds.
        by_level = (np.bincount(groups, weights=multiplicity) for groups in counts.groups)
        return replace(counts, sizes=tuple(total.astype(np.int64) for total in by_level))

    @cached_property
    def of_seeds(self) -> tuple[Counts, ...]:
        """For each level, the number of seeds that share each seed's prefix, itself included."""
        return tuple(sizes[groups] for sizes, groups in zip(self.sizes, self.groups, strict=True))

    def look_up(self, records: Codes) -> Counts:
        """Count the seeds that share each record's prefix: N_ℓ, one column per level ℓ."""
        counts = np.zeros((len(records), len(self.levels)), dtype=np.int64)
        groups = np.zeros(len(records), dtype=np.int64)
        for length in range(max(self.levels) + 1):
            if length > 0:
                groups = self._steps[length - 1].descend(groups, records[:, self.order[length - 1]])
            if length in self.levels:
                at = self.levels.index(length)
                # Group -1 has no seeds: it indexes the appended zero.
                counts[:, at] = np.append(self.sizes[at], 0)[groups]
        return counts


@dataclass(frozen=True)
class FrequentPrefixes:
    """Prefixes of one length that enough rows share, with their exact counts. Confidential.

    Attributes:
        prefixes: One row per prefix, one column per attribute in the order σ, ascending.
        counts: The number of rows that share each prefix.
    """

    prefixes: Codes = field(repr=False)
    counts: Counts = field(repr=False)

    def at_least(self, floor: int) -> "FrequentPrefixes":
        """Return the prefixes that at least ``floor`` rows share."""
        frequent = self.counts >= floor
        return FrequentPrefixes(self.prefixes[frequent], self.counts[frequent])


@dataclass(frozen=True, kw_only=True)
class SeedGroups:
    """Seeds grouped by the prefix that a candidate keeps, once for each length.

    Candidates that keep the same prefix have the same distribution, whichever seed it came from. So
    a seed stands for its group.

    Attributes:
        rows: One row per group, all lengths one after the other; only the columns of its prefix
            are meaningful.
        lengths: The length of each group's prefix.
        shared: The number of seeds of each group. Confidential.
    """

    rows: Codes = field(repr=False)
    lengths: Counts = field(repr=False)
    shared: Counts = field(repr=False)

    @classmethod
    def of(cls, levels: Sequence[FrequentPrefixes], order: Sequence[int], *, columns: int) -> Self:
        """Group seeds by their frequent prefixes.

        Args:
            levels: The prefixes of each length that enough seeds share.
            order: σ.
            columns: The number of columns of a record.
        """
        sizes = [len(level.counts) for level in levels]
        lengths = [level.prefixes.shape[1] for level in levels]
        rows, start = np.zeros((sum(sizes), columns), dtype=CODE, order="F"), 0
        for level, size, length in zip(levels, sizes, lengths, strict=True):
            rows[start : start + size, list(order[:length])] = level.prefixes
            start += size
        return cls(
            rows=rows,
            lengths=np.repeat(lengths, sizes),
            shared=np.concatenate([level.counts for level in levels]),
        )

    def draw(self, number: int, rng: Rng) -> Indices:
        """Draw groups of all lengths, each in proportion to its number of seeds."""
        if not len(self.shared):
            return np.empty(0, dtype=np.intp)
        return np.searchsorted(self._ends, rng.integers(int(self._ends[-1]), number), side="right")

    @cached_property
    def _ends(self) -> Counts:
        """The number of seeds of all groups up to each."""
        ends: Counts = np.cumsum(self.shared)
        return ends


def _split_groups(
    groups: Counts, column: Codes, number: int, values: int
) -> tuple[_TreeStep, Counts]:
    """Split ``number`` groups by a column; return the tree step and each seed's new group."""
    child = groups * values + column
    if number * values > max(_MAX_DENSE_CHILDREN, 2 * len(groups)):
        children, below = np.unique(child, return_inverse=True)
        return _TreeStep(values, children, None), below.astype(np.int64)
    exists = np.zeros(number * values, dtype=bool)
    exists[child] = True
    index = np.where(exists, np.cumsum(exists) - 1, -1)
    return _TreeStep(values, np.flatnonzero(exists), index), index[child]
