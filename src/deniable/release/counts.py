"""How many seeds share the attributes a candidate kept: the deniability test as a look-up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, cast

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Indices
from deniable.data.bulk import SMALL_TABLE, Spooled, distinct_rows

# A level of the tree is a plain array of children while it has no more cells than this.
_SMALL_LEVEL = 2**22


@dataclass(frozen=True)
class _Level:
    """One step down the tree: from a group of seeds and their next value to a smaller group.

    A child has the number ``group · values + value``. ``children`` lists those that exist,
    ascending: the place in that list is the group's number one level down. ``place`` is the same
    as an array, where that is small enough.
    """

    values: int
    children: Counts
    place: Counts | None

    def down(self, groups: Counts, column: Codes) -> Counts:
        """Return the group that each (group, value) leads to; -1 if no seed is there."""
        child = groups * self.values + column
        lost = groups < 0
        if self.place is not None:
            below = self.place[np.where(lost, 0, child)]
        else:
            found = np.searchsorted(self.children, child)
            found[found == len(self.children)] = 0
            below = np.where(self.children[found] == child, found, -1)
        return np.where(lost, -1, below)


@dataclass(frozen=True)
class PrefixCounts:
    """The seeds by their first attributes in the order σ, as a tree with a count at each node.

    Attributes:
        order: σ, as far as any level goes.
        levels: The prefix lengths that are asked for, ascending.
        groups: By level, the group of each seed: those who share its prefix. Groups are numbered
            in the ascending order of their prefixes.
        sizes: By level, how many seeds each group has.
        file: The seeds, where they are in a file: groups are then none, as they are as many as
            seeds, and a seed is looked up whenever it is asked for.
    """

    order: tuple[int, ...]
    levels: tuple[int, ...]
    groups: tuple[Counts, ...] = field(repr=False)
    sizes: tuple[Counts, ...] = field(repr=False)
    _steps: tuple[_Level, ...] = field(repr=False)
    file: Spooled | None = field(repr=False, default=None)

    @classmethod
    def of(
        cls, seeds: Codes, order: Sequence[int], levels: Sequence[int], sizes: Sequence[int]
    ) -> Self:
        """Return the counts of ``seeds``; ``sizes`` says how many values each column has."""
        if isinstance(seeds, Spooled):
            return cls._of_file(seeds, order, levels, sizes)
        groups = np.zeros(len(seeds), dtype=np.int64)
        totals = np.array([len(seeds)], dtype=np.int64)
        steps: list[_Level] = []
        by_level: list[tuple[Counts, Counts]] = []
        levels = sorted(levels)
        for length in range(max(levels) + 1):
            if length > 0:
                column = order[length - 1]
                step, groups = _split(groups, seeds[:, column], len(totals), sizes[column])
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
    def _of_file(
        cls, seeds: Spooled, order: Sequence[int], levels: Sequence[int], sizes: Sequence[int]
    ) -> Self:
        """Count seeds in a file: one stands for all who share the longest prefix."""
        shared = SharedSeeds.of(seeds, order, levels, sizes)
        return cls(
            order=shared.counts.order,
            levels=shared.counts.levels,
            groups=(),
            sizes=shared.counts.sizes,
            _steps=shared.counts._steps,
            file=seeds,
        )

    @classmethod
    def of_several(
        cls,
        records: Codes,
        times: Counts,
        order: Sequence[int],
        levels: Sequence[int],
        sizes: Sequence[int],
    ) -> Self:
        """Return the counts of seeds of which each record stands for so many."""
        counts = cls.of(records, order, levels, sizes)
        # Floats are exact here: there are fewer than 2^53 seeds.
        by_level = (np.bincount(groups, weights=times) for groups in counts.groups)
        return replace(counts, sizes=tuple(total.astype(np.int64) for total in by_level))

    @cached_property
    def of_seeds(self) -> tuple[Counts, ...]:
        """By level, how many seeds share each seed's prefix (itself included)."""
        if self.file is not None:
            # Nobody asks more of them than who they are counted with.
            looked_up = (_LookedUp(self, self.file, at) for at in range(len(self.levels)))
            return cast("tuple[Counts, ...]", tuple(looked_up))
        return tuple(sizes[groups] for sizes, groups in zip(self.sizes, self.groups, strict=True))

    def look_up(self, records: Codes) -> Counts:
        """Return N_ℓ of each record, one column a level: the seeds that share its prefix."""
        counts = np.zeros((len(records), len(self.levels)), dtype=np.int64)
        groups = np.zeros(len(records), dtype=np.int64)
        for length in range(max(self.levels) + 1):
            if length > 0:
                groups = self._steps[length - 1].down(groups, records[:, self.order[length - 1]])
            if length in self.levels:
                at = self.levels.index(length)
                # Group -1, nobody's, finds the zero at the end.
                counts[:, at] = np.append(self.sizes[at], 0)[groups]
        return counts


@dataclass(frozen=True, kw_only=True)
class SharedSeeds:
    """Seeds as far as they are kept: where few prefixes occur, one row stands for all who share it.

    Candidates that keep the same prefix have the same law, whichever seed it came from.

    Attributes:
        rows: Records of which nothing but the longest prefix is read.
        ends: How many seeds the rows stand for, up to and with each; None: each for itself.
        counts: How many seeds share the prefix of each row.
    """

    rows: Codes = field(repr=False)
    ends: Counts | None = field(repr=False)
    counts: PrefixCounts

    @classmethod
    def of(
        cls, seeds: Codes, order: Sequence[int], levels: Sequence[int], sizes: Sequence[int]
    ) -> Self:
        """Return the seeds by their longest prefix in ``levels``."""
        columns = list(order[: max(levels)])
        values = [sizes[column] for column in columns]
        if math.prod(values) > SMALL_TABLE and not isinstance(seeds, Spooled):
            return cls(rows=seeds, ends=None, counts=PrefixCounts.of(seeds, order, levels, sizes))
        prefixes, shared = distinct_rows(seeds, columns, values)
        rows = np.zeros((len(prefixes), seeds.shape[1]), dtype=CODE, order="F")
        rows[:, columns] = prefixes
        counts = PrefixCounts.of_several(rows, shared, order, levels, sizes)
        return cls(rows=rows, ends=np.cumsum(shared), counts=counts)

    def row_of(self, seeds: Indices) -> Indices:
        """Return which row stands for each seed, counted in the ascending order of prefixes."""
        return seeds if self.ends is None else np.searchsorted(self.ends, seeds, side="right")


@dataclass(frozen=True)
class _LookedUp:
    """How many seeds share each seed's prefix, for those that somebody asks about."""

    counts: PrefixCounts
    seeds: Spooled
    level: int

    def __getitem__(self, rows: Indices) -> Counts:
        found: Counts = self.counts.look_up(self.seeds[rows])[:, self.level]
        return found


def _split(groups: Counts, column: Codes, number: int, values: int) -> tuple[_Level, Counts]:
    """Return the step that splits ``number`` groups by a column, and each seed's new group."""
    child = groups * values + column
    if number * values > max(_SMALL_LEVEL, 2 * len(groups)):
        children, below = np.unique(child, return_inverse=True)
        return _Level(values, children, None), below.astype(np.int64)
    exists = np.zeros(number * values, dtype=bool)
    exists[child] = True
    place = np.where(exists, np.cumsum(exists) - 1, -1)
    return _Level(values, np.flatnonzero(exists), place), place[child]
