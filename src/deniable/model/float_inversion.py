"""Find the bins that records draw from log-linear distributions, in 32-bit floats.

Weights are products of one factor from each table, and their sums decide the bin: a third of the
time of the exact integers. Each result comes with whether it is certain: a record that is closer to
the bound of a bin than rounding could move it must be drawn with integers. So floats change no
record, on any computer (docs/adr/0031-float-inversion.md).

Bins are arranged in lanes of consecutive bins. A lane is found first, by its total; then the bin,
by the sums within this lane only. Pairs of parents add the same logarithm to all bins of a lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import HalfWords, Indices, Mask
from deniable.model.effect_tables import Logarithms

Floats = NDArray[np.float32]

# Lanes of a block: NumPy copies rows of 32 bytes fastest.
_LOG2_LANES = 3
_LANES = 1 << _LOG2_LANES
# Time for the lanes of a block, in that of one bin of each.
_LANE_COST = 4
# Smaller factors are 0; where the total of all bins is not far larger, no record is certain.
_MIN_FACTOR = 2.0**-80
_MIN_TOTAL = np.float32(2.0**-40)
_WORD_UNIT = np.float32(2.0**-32)


@dataclass(frozen=True)
class LaneLayout:
    """Bins arranged in blocks of eight lanes.

    Attributes:
        first: The first bin of each lane that has any.
        bins: The bin at each place, blocks by slots by lanes; one past the last if there is none.
        groups: The group of bins that each lane belongs to: blocks by lanes.
    """

    first: Indices
    bins: Indices
    groups: Indices

    @classmethod
    def of(cls, bin_groups: Indices) -> "LaneLayout":
        """Arrange bins so that those of a lane are consecutive and of the same group."""
        starts = np.flatnonzero(np.diff(bin_groups, prepend=-1))
        ends = np.append(starts[1:], len(bin_groups))
        slots = min(range(1, len(bin_groups) + 1), key=lambda s: _cost(ends - starts, s))
        pieces = [
            (first, min(first + slots, end))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            for first in range(start, end, slots)
        ]
        blocks = -(-len(pieces) // _LANES)
        bins = np.full((blocks * _LANES, slots), len(bin_groups))
        for lane, (first, end) in enumerate(pieces):
            bins[lane, : end - first] = np.arange(first, end)
        first_bins = np.array([first for first, _ in pieces])
        groups = np.zeros(blocks * _LANES, dtype=np.intp)
        groups[: len(pieces)] = bin_groups[first_bins]
        return cls(
            first_bins,
            bins.reshape(blocks, _LANES, slots).transpose(0, 2, 1),
            groups.reshape(blocks, _LANES),
        )


def _cost(lengths: Indices, slots: int) -> int:
    """Estimate the time of lanes with ``slots`` slots, given the lengths of runs of bins."""
    blocks = -(-int(np.sum(-(-lengths // slots))) // _LANES)
    return blocks * (slots + _LANE_COST)


@dataclass(frozen=True)
class FloatInversion:
    """Factors of the weights of bins, and the error that sums of their products can have.

    Attributes:
        layout: The lanes.
        factors: For each table of single parents: blocks by slots by rows by lanes.
        joint: For each table of pairs of parents, factors of a whole lane: blocks by rows by lanes.
        tolerance: The largest error of a cumulative weight, relative to the total.
    """

    layout: LaneLayout = field(repr=False)
    factors: tuple[Floats, ...] = field(repr=False)
    joint: tuple[Floats, ...] = field(repr=False)
    tolerance: np.float32

    @classmethod
    def of(
        cls, single: Sequence[Logarithms], joint: Sequence[Logarithms], bin_groups: Indices
    ) -> "FloatInversion":
        """Prepare tables of logarithms, to base 2, in units of 2^-12.

        Args:
            single: At least one table of rows by bins. A weight is the product of one row of each.
            joint: Tables of rows by groups of bins.
            bin_groups: The group of each bin.
        """
        layout = LaneLayout.of(bin_groups)
        blocks, slots, _ = layout.bins.shape
        # In roundings of 2^-24: two for each factor, one for each addition, a few for thresholds;
        # and the integer weights differ from the powers of two by 2 units of 2^-30. Doubled.
        roundings = 2 * (len(single) + len(joint)) + slots + blocks * _LANES + 16
        roundings += len(bin_groups) // 32
        return cls(
            layout,
            tuple(
                _lane_factors(table, layout.bins).transpose(1, 2, 0, 3).copy() for table in single
            ),
            tuple(_lane_factors(table, layout.groups).transpose(1, 0, 2).copy() for table in joint),
            np.float32(roundings * 2.0**-23),
        )

    def buffers(self, records: int) -> "InversionBuffers":
        """Allocate what ``find`` needs for a number of records."""
        return InversionBuffers(records, self.layout)

    def find(
        self,
        single: Sequence[Indices],
        joint: Sequence[Indices],
        words: HalfWords,
        work: "InversionBuffers",
    ) -> tuple[Indices, Mask]:
        """Find the bin that each record's word draws, and whether it is certain.

        Args:
            single: For each table of single parents, the row of each record.
            joint: The same for tables of pairs.
            words: One uniform 32-bit word per record.
            work: Buffers for this number of records.
        """
        for block in range(len(self.layout.groups)):
            self._add_block(work, block, single, joint)
        return self._invert(work, words)

    def _add_block(
        self,
        work: "InversionBuffers",
        block: int,
        single: Sequence[Indices],
        joint: Sequence[Indices],
    ) -> None:
        """Sum the weights within each lane of a block, and the totals of the lanes."""
        weight, sums, lane_factor = work.weight, work.sums[block], work.lane_factors[block]
        for slot in range(len(sums) - 1):
            work.multiply(weight, [factor[block, slot] for factor in self.factors], single)
            np.add(sums[slot], weight, out=sums[slot + 1])
        if joint:
            work.multiply(lane_factor, [factor[block] for factor in self.joint], joint)
        np.multiply(sums[-1], lane_factor, out=weight)
        for lane in range(_LANES):
            place = block * _LANES + lane
            np.add(work.totals[place], weight[:, lane], out=work.totals[place + 1])

    def _invert(self, work: "InversionBuffers", words: HalfWords) -> tuple[Indices, Mask]:
        """Find the lane, then the slot, that each word falls into."""
        total, records, sums = work.totals[-1], work.records, work.sums
        threshold = words.astype(np.float32)
        threshold *= _WORD_UNIT
        threshold *= total
        lane = _count_reached(work.totals[1 : len(self.layout.first)], threshold).astype(np.intp)
        rest = threshold
        rest -= work.totals.take(lane * records + work.every, mode="clip")
        margin = total * self.tolerance
        # Places in arrays of blocks by records by lanes; a step leads to the next slot.
        step = records * _LANES
        block, place = lane >> _LOG2_LANES, lane & (_LANES - 1)
        place += work.every << _LOG2_LANES
        if self.joint:
            factor = work.lane_factors.take(place + block * step, mode="clip")
            with np.errstate(divide="ignore", invalid="ignore"):
                rest /= factor
                margin /= factor
        place += block * (sums.shape[1] * step)
        slot = _counters(records, sums.shape[1])
        reached, end = place.copy(), np.empty_like(rest)
        for _ in range(sums.shape[1] - 2):
            reached += step
            sums.take(reached, out=end, mode="clip")
            np.add(slot, (end <= rest).view(np.uint8), out=slot)
        first = self.layout.first.take(lane, mode="clip")
        first += slot
        place += slot.astype(np.intp) * step
        # NaN is not certain either.
        is_certain = rest - sums.take(place, mode="clip") > margin
        place += step
        is_certain &= sums.take(place, mode="clip") - rest > margin
        is_certain &= total > _MIN_TOTAL
        return first, is_certain


class InversionBuffers:
    """Arrays for a batch of records, which are used again: to allocate them takes longer.

    Attributes:
        records: The number of records.
        every: Their numbers.
        weight: Weights of one slot: records by lanes.
        sums: Weights of the slots before each slot: blocks by slots and one by records by lanes.
        lane_factors: What pairs of parents multiply a lane by: blocks by records by lanes.
        totals: Weights of the lanes before each lane: lanes and one by records.
    """

    def __init__(self, records: int, layout: LaneLayout) -> None:
        blocks, slots, _ = layout.bins.shape
        self.records, self.every = records, np.arange(records)
        one = (records, _LANES)
        self.weight, self._factor = (np.empty(one, dtype=np.float32) for _ in "12")
        self.sums = np.empty((blocks, slots + 1, *one), dtype=np.float32)
        self.lane_factors = np.empty((blocks, *one), dtype=np.float32)
        self.totals = np.empty((blocks * _LANES + 1, records), dtype=np.float32)
        self.sums[:, 0], self.lane_factors[:], self.totals[0] = 0.0, 1.0, 0.0

    def multiply(self, into: Floats, tables: Sequence[Floats], rows: Sequence[Indices]) -> None:
        """Multiply one row of each table, by record."""
        for place, (table, own) in enumerate(zip(tables, rows, strict=True)):
            table.take(own, axis=0, out=self._factor if place else into, mode="clip")
            if place:
                np.multiply(into, self._factor, out=into)


def _count_reached(ends: Floats, threshold: Floats) -> NDArray[np.unsignedinteger]:
    """Count the ends, one row each, that a threshold reaches."""
    count = _counters(len(threshold), len(ends))
    for end in ends:
        np.add(count, (end <= threshold).view(np.uint8), out=count)
    return count


def _counters(records: int, largest: int) -> NDArray[np.unsignedinteger]:
    """Return a counter from 0 for each record, of as few bytes as hold the largest number."""
    return np.zeros(records, dtype=np.uint8 if largest < 2**8 else np.uint16)


def _lane_factors(logarithms: Logarithms, columns: Indices) -> Floats:
    """Compute powers of two relative to the largest of each row; 0 for a column past the last."""
    largest = logarithms.max(axis=1, keepdims=True)
    powers = np.exp2((logarithms - largest) / 4096)
    powers[powers < _MIN_FACTOR] = 0.0
    padded = np.append(powers, np.zeros((len(powers), 1)), axis=1).astype(np.float32)
    factors: Floats = padded[:, columns]
    return factors
