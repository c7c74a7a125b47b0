"""One-shot seed histogram: noisy counts of the seeds that share each prefix; and the choice of ω.

Mechanism B of guarantee.md, Theorem 7. Noise is added once. Generation reads the kept prefixes and
never the seeds, so any number of records costs the same as one. ``choose_omega`` picks the prefix
length from the noisy model before the seeds are counted.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.counting.prefix_counts import FrequentPrefixes, PrefixCounts
from deniable.errors import ConfigError, InvariantError
from deniable.model.bayesian_network import Network, empty_codes
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.randomness import Keyed, Rng

# Prefixes are drawn from a list of all that are possible. Bounds their number, and that times the
# number of all attributes.
_MAX_PREFIXES = 2**16
_MAX_CODES = 2**22
# ω is chosen from records drawn from the model with a public key, so it is a function of the
# artefact.
_SAMPLE_RECORDS = 2**15
_SAMPLE_KEY = 1
# Fraction of the drawn records whose prefix must be frequent enough.
MIN_SHARED_FRACTION = 0.9


@dataclass(frozen=True, kw_only=True)
class KeptPrefixes:
    """Kept prefixes of seeds, with their noisy counts.

    Attributes:
        prefixes: One row per prefix, one column per attribute in the order σ; rows are sorted, so
            their order reveals nothing about the table.
        counts: The noisy count of each prefix.
        records: The noisy number of all seeds.
    """

    prefixes: Codes
    counts: Counts
    records: int

    def __post_init__(self) -> None:
        if self.prefixes.ndim != 2 or self.counts.shape != (len(self.prefixes),):
            raise InvariantError("kept prefixes need one noisy count each")
        if (self.counts < 1).any():
            raise InvariantError("a kept prefix has a noisy count below 1")

    @property
    def length(self) -> int:
        """Number of attributes in a prefix."""
        return int(self.prefixes.shape[1])

    @property
    def is_copied(self) -> bool:
        """Whether there is a prefix that records can copy: any that was kept."""
        return len(self.prefixes) > 0


def longest_listed(sizes: Sequence[int]) -> int:
    """Find the longest prefix whose possible values can be listed: of one attribute at the least.

    Args:
        sizes: The number of values of each attribute, in the order in which they are drawn.
    """
    most = min(_MAX_PREFIXES, _MAX_CODES // len(sizes))
    return max(1, sum(1 for possible in accumulate(sizes, operator.mul) if possible <= most))


def require_listed(length: int, sizes: Sequence[int]) -> None:
    """Refuse a prefix of so many attributes that its possible values cannot be listed.

    Args:
        length: The number of attributes in a prefix.
        sizes: As for ``longest_listed``. Public: a run that has spent its budget is not refused.

    Raises:
        ConfigError: They cannot be listed.
    """
    longest, m = longest_listed(sizes), len(sizes)
    if length > longest:
        raise ConfigError(
            f"--omega {m - length}: the {length} attributes that records copy have "
            f"{math.prod(sizes[:length]):,} combinations, too many to list. Use --omega auto, or "
            f"{m - longest} or more"
        )


def learn_histogram(
    rng: Rng, counted: FrequentPrefixes, *, k: int, law: Law, records: int
) -> tuple[KeptPrefixes, Spend]:
    """Measure the noisy seed histogram, with its privacy spend (guarantee.md, Theorem 7).

    Every prefix shared by at least ``k`` seeds gets independent noise. It is kept if its noisy
    count is at least k + r, where r bounds the noise.

    Args:
        rng: Source of the noise.
        counted: Prefixes of the seeds with exact counts, among them all that at least k seeds
            share. Confidential.
        k: A prefix shared by fewer seeds is never kept.
        law: Bounded noise on -r … r.
        records: The noisy number of seeds, from an earlier spend.

    Privacy:
        Neighbours: add or remove one seed, which moves one cell by one.
        Covers: the kept prefixes, their noisy counts, their number and order, and any number
            of records made from them: as if noise had been added to every cell of the domain,
            since a cell of fewer than k can never reach k + r. With certainty, each kept
            prefix is shared by at least k seeds.
        Does not cover: the model that draws the other attributes; the exact counts.
        Assumes: the length, k and the law were fixed without reading these seeds.
    """
    frequent = counted.at_least(k)
    noisy, spent = add_noise(rng, frequent.counts, law, what="seed prefixes", part="seeds")
    is_kept = noisy >= k + law.radius
    prefixes, counts = frequent.prefixes[is_kept], noisy[is_kept]
    return KeptPrefixes(prefixes=prefixes, counts=counts, records=records), spent


def choose_omega(
    network: Network,
    *,
    records: int,
    threshold: int,
    min_shared: float = MIN_SHARED_FRACTION,
    max_length: int | None = None,
) -> int:
    """Choose ω: keep the longest prefix that most seeds share with enough others.

    Records are drawn from the model. A drawn record's prefix is frequent enough if a table of
    ``records`` rows would be expected to have twice ``threshold`` rows with it. The longest prefix
    for which that holds for 9 records in 10 is kept, and at least one attribute; of at most
    ``max_length`` attributes, if that is given.

    Privacy:
        Covers: reads the noisy model and noisy totals only, so it costs nothing.
    """
    m = len(network.order)
    if m == 1:
        return 1
    drawn = empty_codes(_SAMPLE_RECORDS, network.attributes)
    network.draw(drawn, Keyed(_SAMPLE_KEY).at("candidates"), kept=0)
    lengths = range(1, min(m - 1, max_length or m) + 1)
    sizes = [attribute.size for attribute in network.attributes]
    shared = PrefixCounts.of(drawn, network.order, lengths, sizes)
    expected = [of_seeds * (max(records, 1) / _SAMPLE_RECORDS) for of_seeds in shared.of_seeds]
    fractions = [float(np.mean(rows >= 2 * threshold)) for rows in expected]
    shared_enough = [
        length
        for length, fraction in zip(lengths, fractions, strict=True)
        if fraction >= min_shared
    ]
    return m - max(shared_enough, default=1)
