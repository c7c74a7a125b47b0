"""Records filled bundle by bundle: attributes held as one number and drawn by one random word.

Every call into NumPy costs the threads a hand-over, so what counts is to make few: one word and
one look-up for several attributes of few values, and one look-up for all they depend on in an
earlier bundle.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.arrays import CODE, Codes, Indices
from deniable.model.draws import AliasTables
from deniable.randomness import Rng

# What each code of an attribute adds to a number, by attribute.
Steps = Sequence[tuple[int, Indices]]


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Some attributes, in the order σ, and how many values each has; the last varies fastest."""

    attributes: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def codes(self) -> tuple[Codes, ...]:
        """By attribute, its code in each combination."""
        left, codes = np.arange(math.prod(self.sizes)), []
        for size in reversed(self.sizes):
            left, own = np.divmod(left, size)
            codes.append(own.astype(CODE))
        return tuple(reversed(codes))

    def steps(self) -> Steps:
        """Return what each code adds to the number of a combination."""
        widths = [math.prod(self.sizes[at + 1 :]) for at in range(len(self.sizes))]
        added = [np.arange(n) * width for n, width in zip(self.sizes, widths, strict=True)]
        return tuple(zip(self.attributes, added, strict=True))

    def read(self, codes: Codes) -> Indices:
        """Return the number of each record's combination."""
        numbers = codes[:, self.attributes[0]].astype(np.intp)
        for i, size in zip(self.attributes[1:], self.sizes[1:], strict=True):
            numbers *= size
            numbers += codes[:, i]
        return numbers

    def write(self, numbers: Indices, codes: Codes) -> None:
        """Write combinations, given by their numbers, into records."""
        if len(self.attributes) == 1:
            codes[:, self.attributes[0]] = numbers
            return
        for i, own in zip(self.attributes, self.codes, strict=True):
            own.take(numbers, out=codes[:, i], mode="clip")

    def added(self, steps: Steps) -> Indices | None:
        """Return what each combination adds to a number; None if it adds to none."""
        own = dict(zip(self.attributes, self.codes, strict=True))
        parts = [step[own[i]] for i, step in steps if i in own]
        return sum(parts[1:], parts[0]) if parts else None


@dataclass(frozen=True, kw_only=True)
class Draw:
    """How one bundle is drawn, given those before it.

    Attributes:
        bundle: What is drawn.
        given: The place of each bundle it depends on, and where in ``alias`` the
            distribution begins: the sum of what the number of each adds.
        alias: The distributions.
    """

    bundle: Bundle
    given: tuple[tuple[int, Indices], ...] = field(repr=False)
    alias: AliasTables = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Filling:
    """Which bundles are read off what records keep, and which are then drawn, one by one."""

    kept: tuple[Bundle, ...]
    drawn: tuple[Draw, ...]

    @cached_property
    def _last(self) -> dict[int, int]:
        """For each bundle that another depends on, the place of the last that does."""
        first = len(self.kept)
        return {at: first + d for d, draw in enumerate(self.drawn) for at, _ in draw.given}

    def fill(self, codes: Codes, rng: Rng) -> None:
        """Draw, in place, what is to be drawn."""
        numbers = {at: b.read(codes) for at, b in enumerate(self.kept) if at in self._last}
        for place, draw in enumerate(self.drawn, start=len(self.kept)):
            begins = _sum(numbers, draw, len(codes))
            found = draw.alias.draw(begins, rng.half_words(len(codes)))
            draw.bundle.write(found, codes)
            numbers[place] = found
            for at in [at for at in numbers if self._last.get(at, 0) <= place]:
                del numbers[at]


def _sum(numbers: dict[int, Indices], draw: Draw, records: int) -> Indices:
    if not draw.given:
        return np.zeros(records, dtype=np.intp)
    (first, added), *others = draw.given
    begins = added.take(numbers[first], mode="clip")
    for at, more in others:
        begins += more.take(numbers[at], mode="clip")
    return begins


def make_filling(
    kept: Sequence[Bundle], drawn: Sequence[tuple[Bundle, Steps, AliasTables]]
) -> Filling:
    """Return how to fill records: bundles that are kept, and those to draw after them.

    Args:
        kept: They are read off the records.
        drawn: Each with what the attributes before it add to the row of its distribution.
    """
    before = list(kept)
    draws = []
    for bundle, steps, alias in drawn:
        added = [(at, other.added(steps)) for at, other in enumerate(before)]
        given = tuple((at, rows * alias.values) for at, rows in added if rows is not None)
        draws.append(Draw(bundle=bundle, given=given, alias=alias))
        before.append(bundle)
    return Filling(kept=tuple(kept), drawn=tuple(draws))
