"""Draw many values from a log-linear distribution: from look-up tables, in floats or in integers.

All three ways draw the same value for the same random words. Frequent configurations have look-up
tables; the weights of others are computed in floats; the few records for which floats are not
precise enough are drawn by the definition, in integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.arrays import CODE, Codes, Counts, HalfWords, Indices, Keys
from deniable.model.float_inversion import FloatInversion
from deniable.model.frequent_configurations import FrequentConfigurations
from deniable.model.loglinear_conditional import LogLinearConditional, invert_weights
from deniable.model.packed_indices import PackedIndices

# Records that are looked up at once, and those whose weights are computed at once: what is held for
# them stays in the cache.
_LOOK_UPS_PER_BATCH = 2**17
_RECORDS_PER_BATCH = 2**13
# Bins with a look-up table: numbers that 15 bits can hold.
_MAX_BINS = 2**15


@dataclass(frozen=True)
class LogLinearSampler:
    """Draws values of a log-linear distribution, given keys of the parents' configurations.

    The keys of a record are its rows of the tables of single parents, packed. They determine the
    configuration, and so the rows of the tables of pairs.

    Attributes:
        conditional: The distribution.
        frequent: Look-up tables of the configurations that were frequent so far.
    """

    conditional: LogLinearConditional = field(repr=False)
    frequent: FrequentConfigurations = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequent", FrequentConfigurations(self._weights_of))

    @cached_property
    def _layout(self) -> PackedIndices:
        return PackedIndices.of([len(table.effects) for table in self.conditional.tables])

    @cached_property
    def _joint_layout(self) -> PackedIndices:
        joint = self.conditional.joint_tables
        return PackedIndices.of([len(table.effects) for table in joint.tables] if joint else [])

    @cached_property
    def _joint_offsets(self) -> list[list[tuple[int, Keys]]]:
        """For each key of tables of pairs, tables of single parents and what their rows add."""
        joint, layout = self.conditional.joint_tables, self._joint_layout
        found: list[list[tuple[int, Keys]]] = [[] for _ in range(layout.keys)]
        if joint is None:
            return found
        for place, table in enumerate(self.conditional.tables):
            groups = dict(zip(table.parents, table.groups(), strict=True))
            sums = [np.zeros(len(table.effects), dtype=layout.dtype) for _ in found]
            for number, pairs in enumerate(joint.tables):
                for member, stride in zip(pairs.parents, pairs.strides, strict=True):
                    parent, coarser = joint.coarsenings[member]
                    if parent in groups:
                        key, offsets = layout.pack(number, coarser[groups[parent]] * stride)
                        sums[key] += offsets
            for key, offsets in enumerate(sums):
                found[key].append((place, offsets))
        return found

    @cached_property
    def _floats(self) -> FloatInversion:
        base, joint = self.conditional.base, self.conditional.joint_tables
        single = [table.effects for table in self.conditional.tables] or [np.zeros_like(base[None])]
        single[0] = single[0] + base
        if joint is None:
            return FloatInversion.of(single, [], np.zeros(len(base), dtype=np.intp))
        return FloatInversion.of(single, [t.effects for t in joint.tables], joint.bin_groups)

    def key_offsets(self) -> list[list[tuple[int, Keys]]]:
        """For each key, parents by their position, and what each of their groups adds."""
        found: list[list[tuple[int, Keys]]] = [[] for _ in range(self._layout.keys)]
        for place, table in enumerate(self.conditional.tables):
            for parent, size, stride in zip(table.parents, table.sizes, table.strides, strict=True):
                key, offsets = self._layout.pack(place, np.arange(size) * stride)
                found[key].append((parent, offsets))
        return found

    def draw(self, keys: Sequence[Keys], words: HalfWords) -> Indices:
        """Draw a value for each record: the bin that ``invert_weights`` finds, a value within it.

        Args:
            keys: Those of each record: the sums of its parents' ``key_offsets``.
            words: Two 32-bit words per record: one column for the bin, one for the value.
        """
        bins, unknown = self._look_up(keys, words)
        own_keys = [key.take(unknown, mode="clip") for key in keys]
        own_words = words[:, 0].take(unknown, mode="clip")
        bins[unknown] = self._find_bins(own_keys, own_words)
        return self.conditional.draw_within(bins, words[:, 1])

    def _look_up(self, keys: Sequence[Keys], words: HalfWords) -> tuple[Codes, Indices]:
        """Find bins in the tables of frequent configurations, and the records they do not have."""
        bins, unknown = np.empty(len(words), dtype=CODE), [np.empty(0, dtype=np.intp)]
        is_numbered = len(keys) == 1 and len(self.conditional.base) <= _MAX_BINS
        tables = self.frequent.tables(keys[0]) if is_numbered else None
        if tables is None:
            return bins, np.arange(len(words))
        for start in range(0, len(words), _LOOK_UPS_PER_BATCH):
            batch = slice(start, start + _LOOK_UPS_PER_BATCH)
            bins[batch], left = tables.find(keys[0][batch], words[batch, 0])
            unknown.append(left + start)
        return bins, np.concatenate(unknown)

    def _find_bins(self, keys: Sequence[Keys], words: HalfWords) -> Codes:
        """Find the bins that words draw, in floats, or else in integers."""
        bins, uncertain = np.empty(len(words), dtype=CODE), [np.empty(0, dtype=np.intp)]
        # All batches have the size of the buffers: the last repeats a few of the records.
        batches = max(1, -(-len(words) // _RECORDS_PER_BATCH))
        size = -(-len(words) // batches)
        work = self._floats.buffers(size)
        of_base = [np.zeros(size, dtype=np.intp)]
        for number in range(batches):
            first = min(number * size, len(words) - size)
            batch = slice(first, first + size)
            single = self._layout.unpack([key[batch] for key in keys])
            bins[batch], is_certain = self._floats.find(
                single or of_base, self._joint_rows(single), words[batch], work
            )
            uncertain.append(np.flatnonzero(~is_certain) + first)
        others = np.concatenate(uncertain)
        for start in range(0, len(others), _RECORDS_PER_BATCH):
            own = others[start : start + _RECORDS_PER_BATCH]
            weights = self._weights([key.take(own) for key in keys], len(own))
            bins[own] = invert_weights(weights, words.take(own))
        return bins

    def _joint_rows(self, single: Sequence[Indices]) -> list[Indices]:
        """Find the rows of the tables of pairs, given those of the tables of single parents."""
        keys = []
        for (place, offsets), *others in self._joint_offsets:
            key = offsets.take(single[place], mode="clip")
            for other, further in others:
                key += further.take(single[other], mode="clip")
            keys.append(key)
        return self._joint_layout.unpack(keys)

    def _weights_of(self, key: Keys) -> Counts:
        """Compute the weights of configurations that have a single key."""
        return self._weights([key], len(key))

    def _weights(self, keys: Sequence[Keys], records: int) -> Counts:
        """Compute the integer weights of the bins, given the keys: bins by records."""
        single = self._layout.unpack(keys)
        return self.conditional.weights_at(single, self._joint_rows(single), records)
