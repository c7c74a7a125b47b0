"""Sources of random numbers: keyed streams, and the operating system's CSPRNG.

Generation from a published artefact is *keyed*: each stage and block has its own stream, so the
records do not depend on the number of workers. Privacy noise is *secret*: read from the operating
system, never seeded, logged or stored.
"""

import hashlib
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
_STAGE_NUMBERS: dict[Stage, int] = {
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


# The length of a secret that is expanded.
_SECRET_BYTES = 32

# Largest range of integers drawn from 32-bit words: at most one word in sixteen is rejected.
_MAX_HALF_WORD_RANGE = 2**28


class Rng(Protocol):
    """A stream of random numbers: the methods that models, mechanisms and noise laws may use."""

    def words(self, size: int) -> Words:
        """Draw ``size`` uniform 64-bit words."""

    def half_words(self, size: int) -> HalfWords:
        """Draw ``size`` uniform 32-bit words."""

    def random(self, size: int) -> Reals:
        """Draw ``size`` uniform numbers in [0, 1), multiples of 2^-53."""

    def integers(self, high: int, size: int) -> Counts:
        """Draw ``size`` uniform integers in [0, high), each with exactly the same probability."""


class SystemRng:
    """The operating system's CSPRNG. Stateless here, so a fork cannot repeat it."""

    def _read(self, size: int) -> bytes:
        return os.urandom(size)

    def words(self, size: int) -> Words:
        """Draw ``size`` uniform 64-bit words."""
        return np.frombuffer(self._read(8 * size), dtype="<u8")

    def half_words(self, size: int) -> HalfWords:
        """Draw ``size`` uniform 32-bit words."""
        return np.frombuffer(self._read(4 * size), dtype="<u4")

    def random(self, size: int) -> Reals:
        """Draw ``size`` uniform numbers in [0, 1), multiples of 2^-53."""
        reals: Reals = (self.words(size) >> np.uint64(11)).astype(np.float64)
        return reals * 2.0**-53

    def integers(self, high: int, size: int) -> Counts:
        """Draw ``size`` uniform integers in [0, high), each with exactly the same probability.

        Rejection sampling: a word at or above the largest multiple of ``high`` is redrawn.
        Otherwise the first 2^64 mod high integers would be more likely. Small ranges use 32-bit
        words, because reading the system's randomness takes most of the time.
        """
        draw, bits = (self.half_words, 32) if high <= _MAX_HALF_WORD_RANGE else (self.words, 64)
        words = draw(size).copy()
        # The last accepted word: unlike the multiple of ``high`` above it, it fits in a word.
        last = words.dtype.type(2**bits - 2**bits % high - 1)
        while (rejected := np.flatnonzero(words > last)).size:
            words[rejected] = draw(rejected.size)
        return (words % words.dtype.type(high)).astype(np.int64)


class ExpandedRng(SystemRng):
    """A stream expanded from a secret by SHAKE-256: one output for each call, numbered."""

    def __init__(self, address: bytes) -> None:
        self._address = address
        self._calls = 0

    def _read(self, size: int) -> bytes:
        self._calls += 1
        return hashlib.shake_256(self._address + self._calls.to_bytes(8, "big")).digest(size)


class KeyedRng:
    """One keyed stream, from a NumPy generator."""

    # In quotes, since evaluating it would import numpy.random, which a plan does not need.
    def __init__(self, generator: "np.random.Generator") -> None:
        self._generator = generator

    def words(self, size: int) -> Words:
        """Draw ``size`` uniform 64-bit words."""
        return self._generator.integers(0, 2**64, size, dtype=np.uint64)

    def half_words(self, size: int) -> HalfWords:
        """Draw ``size`` uniform 32-bit words, two from each 64-bit word of the generator."""
        whole = self._generator.bit_generator.random_raw((size + 1) // 2)
        return whole.astype("<u8", copy=False).view("<u4")[:size]

    def random(self, size: int) -> Reals:
        """Draw ``size`` uniform numbers in [0, 1), multiples of 2^-53."""
        return self._generator.random(size)

    def integers(self, high: int, size: int) -> Counts:
        """Draw ``size`` uniform integers in [0, high), each with exactly the same probability."""
        return self._generator.integers(0, high, size, dtype=np.int64)


class Randomness(Protocol):
    """The randomness of a run: one stream for each stage and block."""

    @property
    def is_secret(self) -> bool:
        """Whether it comes from the operating system; otherwise no privacy is claimed."""

    def at(self, stage: Stage, block: int = 0) -> Rng:
        """Open the stream of one block of one stage."""


@dataclass(frozen=True)
class Secret:
    """Randomness from the operating system, which cannot be reproduced."""

    is_secret: ClassVar[bool] = True

    def at(self, stage: Stage, block: int = 0) -> Rng:  # noqa: ARG002 - one stream serves all
        """Open the system's stream, the same for all stages and blocks."""
        return SystemRng()


@dataclass(frozen=True)
class Expanded:
    """Secret randomness that several processes draw alike: a secret, expanded by SHAKE-256.

    For what tasks on a cluster must draw: a task that is run again draws the same. The secret is
    in memory and in the encrypted messages to tasks only; it is never stored, shown or logged.

    Privacy:
        Assumes: SHAKE-256 with a secret prefix of 32 bytes cannot be told from a random function.
            What is drawn is then as good as the operating system's, against any adversary with
            bounded computing power.
    """

    secret: bytes = field(repr=False)
    is_secret: ClassVar[bool] = True

    @classmethod
    def fresh(cls) -> Self:
        """Take a secret from the operating system."""
        return cls(os.urandom(_SECRET_BYTES))

    def __post_init__(self) -> None:
        if len(self.secret) != _SECRET_BYTES:
            raise ConfigError(f"a secret has {_SECRET_BYTES} bytes")

    def at(self, stage: Stage, block: int = 0) -> Rng:
        """Open the stream of one block of one stage."""
        place = _STAGE_NUMBERS[stage].to_bytes(8, "big") + block.to_bytes(8, "big")
        return ExpandedRng(self.secret + place)

    def token(self, purpose: str) -> bytes:
        """Derive 32 bytes for another purpose, such as the key of a hash."""
        return hashlib.shake_256(self.secret + b"token" + purpose.encode()).digest(_SECRET_BYTES)


@dataclass(frozen=True)
class Keyed:
    """Reproducible randomness: the same key gives the same records, for any number of workers.

    For generation from an artefact, and for tests. SFC64 is NumPy's fastest generator; each
    block's state is a hash of (key, stage, block), so blocks do not overlap.
    """

    key: int = field(repr=False)
    is_secret: ClassVar[bool] = False

    @classmethod
    def fresh(cls) -> Self:
        """Draw a random key, short enough to write down."""
        return cls(int.from_bytes(os.urandom(6), "big"))

    @classmethod
    def derived(cls, rng: Rng) -> Self:
        """Make a key of 128 bits from a stream, for draws that must be repeatable later."""
        return cls(int.from_bytes(rng.words(2).tobytes(), "little"))

    def __post_init__(self) -> None:
        if type(self.key) is not int or not 0 <= self.key < 2**128:
            raise ConfigError("key must be an integer with 0 ≤ key < 2^128")

    def at(self, stage: Stage, block: int = 0) -> Rng:
        """Open the stream of one block of one stage."""
        address = np.random.SeedSequence(self.key, spawn_key=(_STAGE_NUMBERS[stage], block))
        return KeyedRng(np.random.Generator(np.random.SFC64(address)))


def task_randomness(randomness: Randomness) -> Randomness:
    """Return randomness that every task can draw alike: a secret of 32 bytes in place of the OS.

    Privacy:
        Covers: the split of rows, and the rows of a unit that are used, as the randomness of the
            operating system would, against adversaries with bounded computing power.
        Does not cover: noise, which the driver draws from the operating system.
        Assumes: tasks, and the messages to them, are as confidential as the table.
    """
    return Expanded.fresh() if isinstance(randomness, Secret) else randomness
