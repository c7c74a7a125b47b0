"""The only place that adds privacy noise: whole numbers, an exact law, and the bill with it."""

import numpy as np

from deniable.arrays import Counts
from deniable.errors import InvariantError
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Part, Spend
from deniable.randomness import Rng

# Counts are brought into ±2^62 before noise, which is below 2^26: the sum stays in 64 bits.
_FAR = 2**62


def add_noise(
    rng: Rng,
    counts: Counts,
    law: Law,
    *,
    what: str,
    part: Part,
    sensitivity: int = 1,
    moved: int = 1,
) -> tuple[Counts, Spend]:
    """Return ``counts`` with independent noise on every one of them, and what that costs.

    Numbers beyond ±2^62 are brought back to it first. No table gets there; but an error would
    tell that one did, and clipping moves no two tables apart.

    Args:
        rng: Where the noise comes from. Secret, or nothing may be claimed.
        counts: Exact whole numbers, of any shape. Confidential.
        law: The noise; ``laws.exact()`` for none.
        what: What the numbers are, for the ledger.
        part: Which part of the data they were counted in.
        sensitivity: The most that one record moves any one of them.
        moved: The most of them that one record can move.

    Returns:
        The noisy numbers, of the same shape, and the entry for the ledger.

    Privacy:
        Neighbours: add or remove one record of ``part``, which moves at most ``moved`` of
            ``counts``, each by at most ``sensitivity``.
        Covers: the noisy numbers and all that is made of them, at the cost of the entry.
        Does not cover: which numbers there are: their places must be public, or kept by a
            threshold that a theorem pays for.
        Assumes: ``rng`` is secret and used once; nobody else sees ``counts``.
    """
    if counts.dtype != np.int64:
        raise InvariantError(f"{what}: noise is added to 64-bit whole numbers, not {counts.dtype}")
    spend = Spend(what=what, part=part, law=law, sensitivity=sensitivity, moved=moved)
    noisy: Counts = np.clip(counts, -_FAR, _FAR) + law.draw(rng, counts.shape)
    return noisy, spend
