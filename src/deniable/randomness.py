"""Where every random number comes from: a key that addresses it, or the operating system.

Generation from a published artefact is *addressed*: any stage and block of it can be asked for,
in any order, anywhere, so the records do not depend on how many workers drew them. What privacy
rests on is *secret*: read from the operating system, never seeded, logged or stored.
"""

import os
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, Self

import numpy as np

from deniable.arrays import Counts, HalfWords, Reals, Words
from deniable.errors import ConfigError

Stage = Literal[
    "seeds",
    "candidates",
    "records",
    "parameters",
    "scan",
    "noise",
    "threshold",
    "split",
    "values",
    "identifiers",
    "units",
]
_NUMBER: dict[Stage, int] = {
    "seeds": 1,
    "candidates": 2,
    "records": 3,
    "parameters": 4,
    "scan": 5,
    "noise": 6,
    "threshold": 7,
    "split": 8,
    "values": 9,
    "identifiers": 10,
    "units": 11,
}


# Below this, less than one word of 32 bits in sixteen is drawn again.
_FEW = 2**28


class Rng(Protocol):
    """A stream of random numbers: all that a model, a mechanism or a noise law may ask for."""

    def words(self, size: int) -> Words:
        """Return ``size`` uniform 64-bit words."""

    def half_words(self, size: int) -> HalfWords:
        """Return ``size`` uniform 32-bit words."""

    def random(self, size: int) -> Reals:
        """Return ``size`` uniform numbers in [0, 1), multiples of 2^-53."""

    def integers(self, high: int, size: int) -> Counts:
        """Return ``size`` uniform integers in [0, high), each exactly equally likely."""


class SystemRng:
    """The operating system's CSPRNG. It has no state here, so a fork cannot repeat it."""

    def words(self, size: int) -> Words:
        """Return ``size`` uniform 64-bit words."""
        return np.frombuffer(os.urandom(8 * size), dtype="<u8")

    def half_words(self, size: int) -> HalfWords:
        """Return ``size`` uniform 32-bit words."""
        return np.frombuffer(os.urandom(4 * size), dtype="<u4")

    def random(self, size: int) -> Reals:
        """Return ``size`` uniform numbers in [0, 1), multiples of 2^-53."""
        reals: Reals = (self.words(size) >> np.uint64(11)).astype(np.float64)
        return reals * 2.0**-53

    def integers(self, high: int, size: int) -> Counts:
        """Return ``size`` uniform integers in [0, high), each exactly equally likely.

        A word at or above the largest multiple of ``high`` is drawn again: without that, the
        first 2^64 mod high integers would be more likely than the rest. Words of 32 bits do where
        few of them must be drawn again: the system's randomness is what takes time.
        """
        draw, bits = (self.half_words, 32) if high <= _FEW else (self.words, 64)
        words = draw(size).copy()
        # 2^64 mod high words too many; as 2^64 does not fit a word, its last admitted word does.
        last = words.dtype.type(2**bits - 2**bits % high - 1)
        while (again := np.flatnonzero(words > last)).size:
            words[again] = draw(again.size)
        return (words % words.dtype.type(high)).astype(np.int64)


class KeyedRng:
    """One addressed stream, by NumPy's generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, size: int) -> Words:
        """Return ``size`` uniform 64-bit words."""
        return self._generator.integers(0, 2**64, size, dtype=np.uint64)

    def half_words(self, size: int) -> HalfWords:
        """Return ``size`` uniform 32-bit words, two of each 64-bit word of the generator."""
        whole = self._generator.bit_generator.random_raw((size + 1) // 2)
        return whole.astype("<u8", copy=False).view("<u4")[:size]

    def random(self, size: int) -> Reals:
        """Return ``size`` uniform numbers in [0, 1), multiples of 2^-53."""
        return self._generator.random(size)

    def integers(self, high: int, size: int) -> Counts:
        """Return ``size`` uniform integers in [0, high), each exactly equally likely."""
        return self._generator.integers(0, high, size, dtype=np.int64)


class Randomness(Protocol):
    """A run's randomness: any stage and block of it can be asked for."""

    @property
    def is_secret(self) -> bool:
        """Whether it comes from the operating system: privacy is claimed of no other."""

    def at(self, stage: Stage, block: int = 0) -> Rng:
        """Return the stream of one block of one stage."""


@dataclass(frozen=True)
class Secret:
    """Randomness from the operating system. Nobody can ask for it twice."""

    is_secret: ClassVar[bool] = True

    def at(self, stage: Stage, block: int = 0) -> Rng:  # noqa: ARG002 - one stream serves all
        """Return the system's stream, whatever the address."""
        return SystemRng()


@dataclass(frozen=True)
class Keyed:
    """Randomness addressed by a key: same key, same records, whatever the number of workers.

    For generation from an artefact, and for tests. SFC64 is NumPy's fastest generator; each
    block's state is a hash of (key, stage, block), so blocks do not overlap.
    """

    key: int = field(repr=False)
    is_secret: ClassVar[bool] = False

    @classmethod
    def fresh(cls) -> Self:
        """Return a key that nobody chose; small enough to be written down."""
        return cls(int.from_bytes(os.urandom(6), "big"))

    def __post_init__(self) -> None:
        if type(self.key) is not int or not 0 <= self.key < 2**128:
            raise ConfigError("a key is a whole number, 0 ≤ key < 2^128")

    def at(self, stage: Stage, block: int = 0) -> Rng:
        """Return the stream of one block of one stage."""
        address = np.random.SeedSequence(self.key, spawn_key=(_NUMBER[stage], block))
        return KeyedRng(np.random.Generator(np.random.SFC64(address)))
