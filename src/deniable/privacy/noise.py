"""Add privacy noise to integer counts, with a ledger entry; project noisy counts onto valid ones.

No other module adds noise to counts. The noisy threshold of Privacy Test 2 is drawn in
``release.deniability_test``; a theorem states its cost.
"""

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.errors import InvariantError
from deniable.privacy.ledger import Part, Spend
from deniable.privacy.noise_laws import Law
from deniable.randomness import Rng

# Counts are clipped to ±2^62 before noise below 2^26 is added, so that the sum fits 64 bits.
_MAX_COUNT = 2**62


def add_noise(
    rng: Rng,
    counts: Counts,
    law: Law,
    *,
    what: str,
    part: Part,
    sensitivity: int = 1,
    l0_sensitivity: int = 1,
) -> tuple[Counts, Spend]:
    """Add independent noise to every count.

    Counts beyond ±2^62 are clipped first. No real table has such counts, but an error would
    reveal that one did, and clipping does not increase the distance between two tables.

    Args:
        rng: Source of the noise. It must be secret, or nothing can be claimed.
        counts: Exact integers, of any shape. Confidential.
        law: Law of the noise; ``noise_laws.exact()`` for none.
        what: Name of the counts in the ledger.
        part: Part of the data that was counted.
        sensitivity: Largest change of any one count by one record.
        l0_sensitivity: Largest number of counts that one record can change.

    Returns:
        The noisy counts, of the same shape, and the ledger entry.

    Privacy:
        Neighbours: add or remove one record of ``part``, which changes at most
            ``l0_sensitivity`` of ``counts``, each by at most ``sensitivity``.
        Covers: the noisy counts and everything derived from them, at the cost of the entry.
        Does not cover: which counts there are. Their positions must be public, or selected by a
            threshold whose cost a theorem covers.
        Assumes: ``rng`` is secret and used once; ``counts`` stay confidential.
    """
    if counts.dtype != np.int64:
        raise InvariantError(f"{what}: noise is added to 64-bit integers, not {counts.dtype}")
    spend = Spend(
        what=what, part=part, law=law, sensitivity=sensitivity, l0_sensitivity=l0_sensitivity
    )
    noisy: Counts = np.clip(counts, -_MAX_COUNT, _MAX_COUNT) + law.table.draw(rng, counts.shape)
    return noisy, spend


def norm_sub(counts: Counts | Reals) -> Reals:
    """Project each row of noisy counts onto non-negative counts with the same sum (norm-sub).

    Subtracts one number λ from the row and clips at zero, with Σ_l max(X_l - λ, 0) = N. A row
    with a negative sum becomes zero. Counts without noise stay unchanged. Post-processing: no cost.
    """
    noisy = counts.astype(np.float64)
    total = np.maximum(noisy.sum(axis=1), 0.0)
    descending = -np.sort(-noisy, axis=1)
    levels = (np.cumsum(descending, axis=1) - total[:, None]) / np.arange(1, noisy.shape[1] + 1)
    # λ is that of the last value, in descending order, that stays positive.
    last_positive = (descending > levels).sum(axis=1) - 1
    level = np.take_along_axis(levels, np.maximum(last_positive, 0)[:, None], axis=1)
    return np.where(total[:, None] > 0, np.maximum(noisy - level, 0.0), 0.0)
