"""Draw several attributes with one random word: bundles of attributes as one mixed-radix index.

Every call into NumPy makes threads wait for each other, so speed depends on the number of calls. A
bundle of small attributes needs one word, one look-up for its values, and one look-up for each
earlier bundle that it depends on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.arrays import CODE, Codes, Indices
from deniable.model.alias_sampling import AliasTables
from deniable.randomness import Rng

# Pairs of an attribute and the offset that each of its codes adds to an index.
CodeOffsets = Sequence[tuple[int, Indices]]


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

    def combination_offsets(self, code_offsets: CodeOffsets) -> Indices | None:
        """Sum the offsets of each combination; None if they concern other attributes only."""
        values = dict(zip(self.attributes, self.codes, strict=True))
        parts = [offsets[values[i]] for i, offsets in code_offsets if i in values]
        return sum(parts[1:], parts[0]) if parts else None


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
    given: tuple[tuple[int, Indices], ...] = field(repr=False)
    alias: AliasTables = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class SamplingPlan:
    """Bundles that records keep, and those drawn after them, one by one."""

    kept: tuple[Bundle, ...]
    drawn: tuple[BundleDraw, ...]

    @cached_property
    def _last_use(self) -> dict[int, int]:
        """For each bundle that others depend on, the place of the last of these."""
        first = len(self.kept)
        return {place: first + d for d, draw in enumerate(self.drawn) for place, _ in draw.given}

    def fill(self, codes: Codes, rng: Rng) -> None:
        """Draw all bundles of the plan into the records ``codes``."""
        kept = {place: b for place, b in enumerate(self.kept) if place in self._last_use}
        indices = {place: bundle.indices(codes) for place, bundle in kept.items()}
        for position, draw in enumerate(self.drawn, start=len(self.kept)):
            starts = _distribution_starts(indices, draw, len(codes))
            drawn = draw.alias.draw(starts, rng.half_words(len(codes)))
            draw.bundle.write(drawn, codes)
            indices[position] = drawn
            for place in [place for place in indices if self._last_use.get(place, 0) <= position]:
                del indices[place]


def _distribution_starts(indices: dict[int, Indices], draw: BundleDraw, records: int) -> Indices:
    if not draw.given:
        return np.zeros(records, dtype=np.intp)
    (first, offsets), *others = draw.given
    starts = offsets.take(indices[first], mode="clip")
    for place, further in others:
        starts += further.take(indices[place], mode="clip")
    return starts


def make_sampling_plan(
    kept: Sequence[Bundle], drawn: Sequence[tuple[Bundle, CodeOffsets, AliasTables]]
) -> SamplingPlan:
    """Plan how to draw bundles after those that are kept.

    Args:
        kept: Bundles that the records already hold.
        drawn: Bundles to draw, each with its distributions and the offsets that codes of earlier
            attributes add to the row of one.
    """
    earlier = list(kept)
    draws = []
    for bundle, offsets, alias in drawn:
        rows = [(place, other.combination_offsets(offsets)) for place, other in enumerate(earlier)]
        given = tuple((place, row * alias.values) for place, row in rows if row is not None)
        draws.append(BundleDraw(bundle=bundle, given=given, alias=alias))
        earlier.append(bundle)
    return SamplingPlan(kept=tuple(kept), drawn=tuple(draws))
