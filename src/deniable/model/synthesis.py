"""M of the paper: keep the first attributes of a seed, draw the others (Sec. 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.errors import ConfigError
from deniable.model.network import Manner, Network, empty_codes
from deniable.randomness import Rng


@dataclass(frozen=True)
class NetworkModel:
    """Seed-based synthesis with a Bayesian network.

    Attributes:
        network: What the drawn attributes are drawn from.
        omegas: The numbers ω of attributes to draw, one chosen uniformly for each record;
            ascending. The first m - ω attributes of σ are kept.
    """

    network: Network
    omegas: tuple[int, ...]

    def __post_init__(self) -> None:
        m = len(self.network.order)
        ascending = list(self.omegas) == sorted(set(self.omegas))
        if not (self.omegas and ascending and self.omegas[0] > 0 and self.omegas[-1] <= m):
            raise ConfigError(f"omega must lie in 1..{m}, the number of attributes")

    @property
    def kept(self) -> tuple[int, ...]:
        """The numbers m - ω of kept attributes, ascending: the levels of the seeds' prefixes."""
        return tuple(len(self.network.order) - omega for omega in reversed(self.omegas))

    def at(self, omega: int) -> "NetworkModel":
        """Return the model that always draws ``omega`` attributes."""
        return NetworkModel(self.network, (omega,))

    def choose_omegas(self, records: int, rng: Rng) -> Counts:
        """Return ω of each record: uniform over ``omegas``."""
        if len(self.omegas) == 1:
            return np.full(records, self.omegas[0], dtype=np.int64)
        return np.asarray(self.omegas)[rng.integers(len(self.omegas), records)]

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Return a candidate for each seed (Eq. 3, ``eq:gm:seedbased_synthesis``)."""
        everyone = np.arange(len(seeds))
        return self.propose_from(seeds, everyone, self.choose_omegas(len(seeds), rng), rng)

    def propose_from(self, seeds: Codes, chosen: Indices, omegas: Counts, rng: Rng) -> Codes:
        """Return a candidate for each of the seeds ``chosen``, drawing ``omegas`` attributes anew.

        Of a seed nothing is read but what is kept.
        """
        order = self.network.order
        candidates = empty_codes(len(chosen), self.network.attributes)
        # With one ω a candidate's law is that of all who share what it kept, however fine. With
        # several, a test compares probabilities, and they must be those of the draws.
        manner: Manner = "apart" if len(self.omegas) == 1 else "finely"
        for omega in self.omegas:
            which = np.flatnonzero(omegas == omega)
            whole = len(which) == len(chosen)
            part = candidates if whole else empty_codes(len(which), self.network.attributes)
            for column in order[: len(order) - omega]:
                part[:, column] = seeds[chosen[which], column]
            self.network.draw(part, rng, kept=len(order) - omega, manner=manner)
            if not whole:
                candidates[which] = part
        return candidates

    def log_levels(self, candidates: Codes) -> Reals:
        """Return ln P_ℓ(y), one column for each level ℓ of ``kept`` (guarantee.md, Theorem 6).

            P_ℓ(y) = Σ_{j ∈ kept, j ≤ ℓ} w_j · T_j(y)          T_j(y) = Π_{i > j} θ_σ(i)(y)

        P_ℓ is what a seed that shares exactly its first ℓ attributes (in σ order) with y gives y.
        A running sum of non-negative terms, so that columns never decrease, also in floats.
        """
        terms = self.network.log_terms(candidates)
        # Suffix sums: column j is ln T_j, the attributes σ(j+1) … σ(m) drawn.
        drawn = np.zeros((len(terms), terms.shape[1] + 1))
        drawn[:, :-1] = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]
        weighted = drawn[:, list(self.kept)] - np.log(len(self.omegas))
        # Equal weights may sum to a hair above one: no probability is.
        return np.minimum(np.logaddexp.accumulate(weighted, axis=1), 0.0)

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Return ln Pr{y = M(d)}, ω hidden: one row a candidate y, one column a seed d.

        A seed matches as many levels as kept prefixes it shares with y; none: it cannot be.
        """
        matched = matched_levels(candidates, seeds, self.network.order, self.kept)
        impossible = np.full((len(candidates), 1), -np.inf)
        levels = np.hstack([impossible, self.log_levels(candidates)])
        return np.take_along_axis(levels, matched, axis=1)


def matched_levels(
    candidates: Codes, seeds: Codes, order: Sequence[int], kept: Sequence[int]
) -> Counts:
    """Return how many of the prefix lengths ``kept`` (ascending) each pair agrees on."""
    agree = np.ones((len(candidates), len(seeds)), dtype=bool)
    matched = np.zeros(agree.shape, dtype=np.int64)
    for place in range(max(kept) + 1):
        if place > 0:
            column = order[place - 1]
            agree &= candidates[:, column, None] == seeds[None, :, column]
        if place in kept:
            matched += agree
    return matched
