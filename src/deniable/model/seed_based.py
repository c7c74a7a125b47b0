"""Seed-based synthesis, M of the paper: keep the first attributes of a seed, draw the others.

Sec. 3.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.errors import ConfigError
from deniable.model.bayesian_network import DrawMethod, Network, empty_codes
from deniable.randomness import Rng


@dataclass(frozen=True)
class NetworkModel:
    """Seed-based synthesis with a Bayesian network.

    Attributes:
        network: The Bayesian network that attributes are drawn from.
        omegas: The possible numbers ω of attributes to draw, ascending; one is chosen uniformly for
            each record. The first m - ω attributes of σ are kept.
    """

    network: Network
    omegas: tuple[int, ...]

    def __post_init__(self) -> None:
        m = len(self.network.order)
        ascending = list(self.omegas) == sorted(set(self.omegas))
        if not (self.omegas and ascending and self.omegas[0] > 0 and self.omegas[-1] <= m):
            raise ConfigError(f"omega must be in 1..{m}, the number of attributes")

    @property
    def kept(self) -> tuple[int, ...]:
        """The possible numbers m - ω of kept attributes, ascending: lengths of seed prefixes."""
        return tuple(len(self.network.order) - omega for omega in reversed(self.omegas))

    def at(self, omega: int) -> "NetworkModel":
        """Return the model that always draws ``omega`` attributes."""
        return NetworkModel(self.network, (omega,))

    def choose_omegas(self, records: int, rng: Rng) -> Counts:
        """Draw ω of each record, uniformly from ``omegas``."""
        if len(self.omegas) == 1:
            return np.full(records, self.omegas[0], dtype=np.int64)
        return np.asarray(self.omegas)[rng.integers(len(self.omegas), records)]

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Draw a candidate for each seed (Eq. 3, ``eq:gm:seedbased_synthesis``)."""
        all_seeds = np.arange(len(seeds))
        return self.propose_from(seeds, all_seeds, self.choose_omegas(len(seeds), rng), rng)

    def propose_from(self, seeds: Codes, chosen: Indices, omegas: Counts, rng: Rng) -> Codes:
        """Draw a candidate for each of the seeds ``chosen``, with ``omegas`` attributes drawn anew.

        Reads only the kept attributes of a seed.
        """
        order = self.network.order
        candidates = empty_codes(len(chosen), self.network.attributes)
        # With one ω, all seeds that share the kept attributes produce a candidate with the same
        # probability, at any precision. With several, a test compares probabilities, and they must
        # be those of the draws.
        method: DrawMethod = "independent" if len(self.omegas) == 1 else "precise"
        for omega in self.omegas:
            rows = np.flatnonzero(omegas == omega)
            is_all = len(rows) == len(chosen)
            part = candidates if is_all else empty_codes(len(rows), self.network.attributes)
            for column in order[: len(order) - omega]:
                part[:, column] = seeds[chosen[rows], column]
            self.network.draw(part, rng, kept=len(order) - omega, method=method)
            if not is_all:
                candidates[rows] = part
        return candidates

    def log_levels(self, candidates: Codes) -> Reals:
        """Compute ln P_ℓ(y), one column per prefix length ℓ of ``kept`` (guarantee.md, Theorem 6).

            P_ℓ(y) = Σ_{j ∈ kept, j ≤ ℓ} w_j · T_j(y)          T_j(y) = Π_{i > j} θ_σ(i)(y)

        P_ℓ(y) is the probability of y given a seed that shares exactly its first ℓ attributes (in σ
        order) with y. A running sum of non-negative terms: columns never decrease, also in floats.
        """
        terms = self.network.log_terms(candidates)
        # Suffix sums: column j is ln T_j, the attributes σ(j+1) … σ(m) drawn.
        drawn = np.zeros((len(terms), terms.shape[1] + 1))
        drawn[:, :-1] = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]
        weighted = drawn[:, list(self.kept)] - np.log(len(self.omegas))
        # Rounding may make the weights sum to slightly more than one.
        return np.minimum(np.logaddexp.accumulate(weighted, axis=1), 0.0)

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Compute ln Pr{y = M(d)}, ω hidden: one row per candidate y, one column per seed d.

        It depends on the number of kept prefixes that d shares with y; with none, d cannot produce
        y.
        """
        matched = matched_levels(candidates, seeds, self.network.order, self.kept)
        impossible = np.full((len(candidates), 1), -np.inf)
        levels = np.hstack([impossible, self.log_levels(candidates)])
        return np.take_along_axis(levels, matched, axis=1)


def matched_levels(
    candidates: Codes, seeds: Codes, order: Sequence[int], kept: Sequence[int]
) -> Counts:
    """Count, for each candidate and seed, the prefix lengths in ``kept`` on which they agree."""
    agree = np.ones((len(candidates), len(seeds)), dtype=bool)
    matched = np.zeros(agree.shape, dtype=np.int64)
    for place in range(max(kept) + 1):
        if place > 0:
            column = order[place - 1]
            agree &= candidates[:, column, None] == seeds[None, :, column]
        if place in kept:
            matched += agree
    return matched
