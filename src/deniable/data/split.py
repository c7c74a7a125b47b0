"""D_T, D_P, D_S: each record, by its own secret draw, in at most one part."""

from collections.abc import Mapping

import numpy as np

from deniable.arrays import Codes
from deniable.data.bulk import Spool, stretches
from deniable.errors import ConfigError
from deniable.randomness import Rng


def split_records(codes: Codes, fractions: Mapping[str, float], rng: Rng) -> dict[str, Codes]:
    """Deal each record, independently of all others, to one of the named parts or to none.

    Privacy:
        Neighbours: add or remove one record of the whole.
        Covers: what guarantee.md, Theorem 10 says of parts drawn so: record by record, with
            public probabilities that do not depend on the number of records.
        Assumes: nobody learns who went where, nor how many; ``rng`` is secret.
    """
    bounds = np.cumsum(list(fractions.values()))
    if min(fractions.values()) <= 0 or bounds[-1] > 1 + 1e-12:
        raise ConfigError("the parts' probabilities must be above 0 and sum to at most 1")
    spools = [Spool(codes.shape[1]) for _ in fractions]
    for some in stretches(codes):
        drawn = np.searchsorted(bounds, rng.random(len(some)), side="right")
        for number, spool in enumerate(spools):
            spool.add(some[drawn == number])
    return {part: spool.codes() for part, spool in zip(fractions, spools, strict=True)}
