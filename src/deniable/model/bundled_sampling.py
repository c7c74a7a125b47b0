"""Draw several attributes with one random word: bundles of attributes as one mixed-radix index.

Every call into NumPy makes threads wait for each other, so speed depends on the number of calls. A
bundle of small attributes needs one word, one look-up for its values, and one look-up for each
earlier bundle that it depends on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import CODE, Codes, Indices, Keys
from deniable.model.alias_sampling import AliasTables
from deniable.model.loglinear_sampler import LogLinearSampler
from deniable.randomness import Rng

# Pairs of an attribute and the offset that each of its codes adds to an index, or to a key.
CodeOffsets = Sequence[tuple[int, Indices]]
KeyOffsets = Sequence[tuple[int, Keys]]
Number = TypeVar("Number", bound=np.integer)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Attributes drawn together, in the order σ, and their sizes.

    A combination of their codes has a mixed-radix index; the last attribute varies fastest.
    """

    attributes: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def codes(self) -> tuple[Codes, ...]:
        """The codes of each attribute, by the index of the combination."""
        rest, codes = np.arange(math.prod(self.sizes)), []
        for size in reversed(self.sizes):
            rest, values = np.divmod(rest, size)
            codes.append(values.astype(CODE))
        return tuple(reversed(codes))

    def code_offsets(self) -> CodeOffsets:
        """Compute the offset that each code adds to the index of a combination."""
        widths = [math.prod(self.sizes[place + 1 :]) for place in range(len(self.sizes))]
        offsets = [np.arange(n) * width for n, width in zip(self.sizes, widths, strict=True)]
        return tuple(zip(self.attributes, offsets, strict=True))

    def indices(self, codes: Codes) -> Indices:
        """Compute the index of each record's combination."""
        indices = codes[:, self.attributes[0]].astype(np.intp)
        for i, size in zip(self.attributes[1:], self.sizes[1:], strict=True):
            indices *= size
            indices += codes[:, i]
        return indices

    def write(self, indices: Indices, codes: Codes) -> None:
        """Write combinations, given by their indices, into records."""
        if len(self.attributes) == 1:
            codes[:, self.attributes[0]] = indices
            return
        for i, values in zip(self.attributes, self.codes, strict=True):
            values.take(indices, out=codes[:, i], mode="clip")

    def combination_offsets(
        self, code_offsets: Sequence[tuple[int, NDArray[Number]]]
    ) -> NDArray[Number] | None:
        """Sum the offsets of each combination; None if they concern other attributes only."""
        values = dict(zip(self.attributes, self.codes, strict=True))
        parts = [offsets[values[i]] for i, offsets in code_offsets if i in values]
        return sum(parts[1:], parts[0]) if parts else None


# Places of bundles, and the offset that each of their combinations adds to an index, or to a key.
_GivenOffsets = tuple[tuple[int, NDArray[Number]], ...]


@dataclass(frozen=True, kw_only=True)
class BundleDraw:
    """One bundle to draw, given earlier bundles.

    Attributes:
        bundle: The bundle to draw.
        given: The place of each bundle it depends on, and the offset of each of that bundle's
            combinations. The offsets sum to the start of the distribution in ``alias``.
        alias: The distributions.
    """

    bundle: Bundle
    given: _GivenOffsets[np.intp] = field(repr=False)
    alias: AliasTables = field(repr=False)

    def places(self) -> set[int]:
        """The places of the bundles it depends on."""
        return {place for place, _ in self.given}

    def draw(self, indices: Mapping[int, Indices], rng: Rng, records: int) -> Indices:
        """Draw combinations, given those of earlier bundles by their indices."""
        starts = _sum_offsets(self.given, indices) if self.given else np.zeros(records, np.intp)
        return self.alias.draw(starts, rng.half_words(records))


@dataclass(frozen=True, kw_only=True)
class LogLinearDraw:
    """One attribute to draw from a log-linear distribution, given earlier bundles.

    Attributes:
        bundle: The attribute.
        given: For each key of the sampler, what the combinations of earlier bundles add to it.
        sampler: The distribution.
    """

    bundle: Bundle
    given: tuple[tuple[tuple[int, Keys], ...], ...] = field(repr=False)
    sampler: LogLinearSampler = field(repr=False)

    def places(self) -> set[int]:
        """The places of the bundles it depends on."""
        return {place for given in self.given for place, _ in given}

    def draw(self, indices: Mapping[int, Indices], rng: Rng, records: int) -> Indices:
        """Draw values, given the combinations of earlier bundles by their indices."""
        keys = [_sum_offsets(given, indices) for given in self.given]
        return self.sampler.draw(keys, rng.half_words(2 * records).reshape(records, 2))


@dataclass(frozen=True, kw_only=True)
class SamplingPlan:
    """Bundles that records keep, and those drawn after them, one by one."""

    kept: tuple[Bundle, ...]
    drawn: tuple[BundleDraw | LogLinearDraw, ...]

    @cached_property
    def _last_use(self) -> dict[int, int]:
        """For each bundle that others depend on, the place of the last of these."""
        first = len(self.kept)
        return {place: first + d for d, draw in enumerate(self.drawn) for place in draw.places()}

    def fill(self, codes: Codes, rng: Rng) -> None:
        """Draw all bundles of the plan into the records ``codes``."""
        kept = {place: b for place, b in enumerate(self.kept) if place in self._last_use}
        indices = {place: bundle.indices(codes) for place, bundle in kept.items()}
        for position, draw in enumerate(self.drawn, start=len(self.kept)):
            drawn = draw.draw(indices, rng, len(codes))
            draw.bundle.write(drawn, codes)
            indices[position] = drawn
            for place in [place for place in indices if self._last_use.get(place, 0) <= position]:
                del indices[place]


def _sum_offsets(given: _GivenOffsets[Number], indices: Mapping[int, Indices]) -> NDArray[Number]:
    """Sum the offsets of each record's combinations of bundles, of which there are some."""
    (first, offsets), *others = given
    total = offsets.take(indices[first], mode="clip")
    for place, further in others:
        total += further.take(indices[place], mode="clip")
    return total


class TableDraw(NamedTuple):
    """A bundle to draw from tables, and what codes of earlier attributes add to the row of one."""

    bundle: Bundle
    alias: AliasTables
    offsets: CodeOffsets


class KeyedDraw(NamedTuple):
    """A log-linear attribute to draw, and what codes of earlier attributes add to each key."""

    bundle: Bundle
    sampler: LogLinearSampler
    offsets: Sequence[KeyOffsets]


def make_sampling_plan(
    kept: Sequence[Bundle], drawn: Sequence[TableDraw | KeyedDraw]
) -> SamplingPlan:
    """Plan how to draw bundles after those that are kept."""
    earlier = list(kept)
    draws: list[BundleDraw | LogLinearDraw] = []
    for each in drawn:
        if isinstance(each, KeyedDraw):
            given = tuple(_given_offsets(earlier, own) for own in each.offsets)
            draws.append(LogLinearDraw(bundle=each.bundle, given=given, sampler=each.sampler))
        else:
            rows = _given_offsets(earlier, each.offsets)
            starts = tuple((place, row * each.alias.values) for place, row in rows)
            draws.append(BundleDraw(bundle=each.bundle, given=starts, alias=each.alias))
        earlier.append(each.bundle)
    return SamplingPlan(kept=tuple(kept), drawn=tuple(draws))


def _given_offsets(
    earlier: Sequence[Bundle], offsets: Sequence[tuple[int, NDArray[Number]]]
) -> _GivenOffsets[Number]:
    """Sum the offsets of codes by combination of each bundle that they concern."""
    rows = [(place, other.combination_offsets(offsets)) for place, other in enumerate(earlier)]
    return tuple((place, row) for place, row in rows if row is not None)
