"""Sums of the effects of several parents, so that one look-up replaces many.

The effects of a log-linear distribution are integers: their sum is the same in any order. Effects
are summed beforehand for parents that have few joint configurations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices

# Parents are looked up together while they have at most this many configurations, and the table at
# most this many cells: it has to fit the cache.
_MAX_CONFIGURATIONS = 4096
_MAX_CELLS = 2**17

Logarithms = NDArray[np.int32]


@dataclass(frozen=True)
class JointEffect:
    """Effect of two parents together, in addition to their single effects.

    Attributes:
        first: Position of a parent.
        second: Position of a later parent.
        first_groups: A coarser group of each of the first parent's groups.
        second_groups: A coarser group of each of the second parent's groups.
        effects: What each pair of coarser groups adds, the second varying fastest: pairs by bins.
    """

    first: int
    second: int
    first_groups: Indices
    second_groups: Indices
    effects: Logarithms

    def fits(self, sizes: Sequence[int], bins: int) -> bool:
        """Test whether the shapes match, given the parents' numbers of groups and the bins."""
        maps = (self.first_groups, self.second_groups)
        if not 0 <= self.first < self.second < len(sizes) or any(m.ndim != 1 for m in maps):
            return False
        lengths = [sizes[self.first], sizes[self.second]]
        if [len(own) for own in maps] != lengths or min(int(own.min()) for own in maps) < 0:
            return False
        pairs = math.prod(int(own.max()) + 1 for own in maps)
        return self.effects.shape == (pairs, bins)


@dataclass(frozen=True)
class EffectTable:
    """Sum of the effects of several parents, by joint configuration.

    Attributes:
        parents: Their positions.
        sizes: Their numbers of groups.
        effects: What each joint configuration adds to each bin: configurations by bins, the last
            parent varying fastest. Rows are looked up faster than columns.
    """

    parents: tuple[int, ...]
    sizes: tuple[int, ...]
    effects: Logarithms = field(repr=False)

    @property
    def strides(self) -> tuple[int, ...]:
        """The difference that one group of each parent makes to the index of a configuration."""
        return tuple(math.prod(self.sizes[place + 1 :]) for place in range(len(self.sizes)))

    def groups(self) -> tuple[Indices, ...]:
        """The group of each parent in each configuration."""
        return np.unravel_index(np.arange(len(self.effects)), self.sizes)

    def index(self, groups: Sequence[Indices]) -> Indices:
        """Number the joint configuration of each record, given the groups of all parents."""
        index = groups[self.parents[0]]
        for parent, size in zip(self.parents[1:], self.sizes[1:], strict=True):
            index = index * size + groups[parent]
        return index


def add_look_ups(tables: Sequence[EffectTable], rows: Sequence[Indices]) -> Logarithms:
    """Sum the effects of one row of each table, at least one, by record: bins by records."""
    total = tables[0].effects.take(rows[0], axis=0)
    for table, own in zip(tables[1:], rows[1:], strict=True):
        total += table.effects.take(own, axis=0)
    return np.ascontiguousarray(total.T)


def sum_effects(
    effects: Sequence[Logarithms], parts: Sequence[tuple[int, ...]]
) -> tuple[EffectTable, ...]:
    """Sum the effects of single parents, groups by bins, over the parents of each part."""
    tables = []
    for parents in parts:
        total = effects[parents[0]]
        for parent in parents[1:]:
            both = total[:, None, :] + effects[parent][None, :, :]
            total = both.reshape(-1, total.shape[1])
        tables.append(EffectTable(parents, tuple(len(effects[j]) for j in parents), total))
    return tuple(tables)


def divide_parents(sizes: Sequence[int], bins: int) -> list[tuple[int, ...]]:
    """Divide parents into few parts, each with a table that is small enough if it can be.

    The largest parent first, each into the part that has fewest configurations so far.
    """
    limit = min(_MAX_CONFIGURATIONS, _MAX_CELLS // bins)
    for number in range(1, len(sizes) + 1):
        parts: list[list[int]] = [[] for _ in range(number)]
        configurations = [1] * number
        for parent in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
            smallest = configurations.index(min(configurations))
            parts[smallest].append(parent)
            configurations[smallest] *= sizes[parent]
        if max(configurations) <= limit:
            break
    else:
        parts = [[parent] for parent in range(len(sizes))]
    return sorted(tuple(sorted(part)) for part in parts if part)


@dataclass(frozen=True)
class JointEffectTables:
    """The effects of all pairs of parents, summed over several pairs.

    Attributes:
        coarsenings: A parent, and the coarser group of each of its groups. Pairs of parents use
            the same few of these; the ``tables`` number them as their parents.
        tables: What coarser groups add to each group of bins.
        bin_groups: The group of each bin. The effects are equal within a group.
    """

    coarsenings: tuple[tuple[int, Indices], ...]
    tables: tuple[EffectTable, ...]
    bin_groups: Indices

    @classmethod
    def of(cls, effects: Sequence[JointEffect]) -> "JointEffectTables":
        """Sum at least one effect."""
        stacked = np.concatenate([each.effects for each in effects])
        distinct, bin_groups = np.unique(stacked, axis=1, return_inverse=True)
        ends = np.cumsum([len(each.effects) for each in effects])[:-1]
        places: dict[tuple[int, bytes], int] = {}
        coarsenings: list[tuple[int, Indices]] = []
        pairs = []
        for each in effects:
            pair = []
            sides = ((each.first, each.first_groups), (each.second, each.second_groups))
            for parent, groups in sides:
                key = (parent, groups.tobytes())
                if key not in places:
                    places[key] = len(coarsenings)
                    coarsenings.append((parent, groups))
                pair.append(places[key])
            pairs.append((pair[0], pair[1]))
        sizes = [int(groups.max()) + 1 for _, groups in coarsenings]
        of_pairs = np.split(distinct, ends)
        tables = tuple(
            _sum_pairs([pairs[at] for at in part], [of_pairs[at] for at in part], sizes)
            for part in gather_pairs(pairs, sizes)
        )
        return cls(tuple(coarsenings), tables, bin_groups.ravel())

    def index(self, groups: Sequence[Indices]) -> list[Indices]:
        """Find the row of each table, by record, given the groups of all parents."""
        coarser = [own.take(groups[parent]) for parent, own in self.coarsenings]
        return [table.index(coarser) for table in self.tables]

    def add_to(self, logarithms: Logarithms, rows: Sequence[Indices]) -> None:
        """Add the effects of one row of each table to logarithms: bins by records."""
        added = add_look_ups(self.tables, rows)
        for place, group in enumerate(self.bin_groups):
            logarithms[place] += added[group]


def gather_pairs(pairs: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[list[int]]:
    """Divide pairs so that the members of each part have few joint configurations.

    Args:
        pairs: The members of each pair.
        sizes: The number of groups of every member.

    Returns:
        The places of the pairs in each part.
    """
    parts: list[tuple[set[int], list[int]]] = []
    for place, pair in enumerate(pairs):
        for members, own in parts:
            if math.prod(sizes[j] for j in members.union(pair)) <= _MAX_CONFIGURATIONS:
                members.update(pair)
                own.append(place)
                break
        else:
            parts.append((set(pair), [place]))
    return [own for _, own in parts]


def _sum_pairs(
    pairs: Sequence[tuple[int, int]], effects: Sequence[Logarithms], sizes: Sequence[int]
) -> EffectTable:
    """Sum the effects of pairs over the joint configurations of all their members."""
    members = sorted({j for pair in pairs for j in pair})
    shape = tuple(sizes[j] for j in members)
    configuration = np.unravel_index(np.arange(math.prod(shape)), shape)
    total = np.zeros((math.prod(shape), effects[0].shape[1]), dtype=np.int32)
    for (first, second), effect in zip(pairs, effects, strict=True):
        one, two = (configuration[members.index(j)] for j in (first, second))
        total += effect[one * sizes[second] + two]
    return EffectTable(tuple(members), shape, total)
