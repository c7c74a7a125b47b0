"""The share of candidates that pass the deniability test, by k and ω (Sec. 6.5, Figure 6).

Confidential: pass rates depend on the data without noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.evaluation.baselines import sample
from deniable.evaluation.confidence import Interval, wilson
from deniable.model.synthesis import NetworkModel
from deniable.randomness import Keyed
from deniable.release.counts import PrefixCounts
from deniable.release.deniability import count_hidden_omega


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many of the candidates have k plausible seeds or more."""

    k: int
    passed: float
    interval: Interval


def pass_shares(
    model: NetworkModel,
    seeds: Codes,
    *,
    ks: Sequence[int],
    candidates: int,
    gamma: float | None,
    checked: int | None = None,
    key: int = 0,
) -> tuple[Share, ...]:
    """Return the share of candidates that pass Privacy Test 1, for every k.

    Args:
        model: What makes the candidates.
        seeds: D_S.
        ks: The thresholds.
        candidates: How many are made.
        gamma: Width of the ranges where ω is hidden, as in the paper; None: each is tested under
            its own ω, where γ does not matter.
        checked: How many seeds are looked at, drawn at random (``max_check_plausible``): those
            beyond are not counted. None: all of them.
        key: Addresses seeds and candidates.
    """
    plausible = _plausible(model, seeds, candidates, gamma=gamma, checked=checked, key=key)
    shares = [float(np.mean(plausible >= k)) for k in ks]
    return tuple(
        Share(k=k, passed=share, interval=wilson(share, candidates))
        for k, share in zip(ks, shares, strict=True)
    )


def _plausible(
    model: NetworkModel,
    seeds: Codes,
    candidates: int,
    *,
    gamma: float | None,
    checked: int | None,
    key: int,
) -> Counts:
    """Return k' of so many candidates."""
    randomness = Keyed(key)
    rng = randomness.at("seeds")
    own = seeds[rng.integers(len(seeds), candidates)]
    omegas = model.choose_omegas(candidates, rng)
    made = model.propose_from(own, np.arange(len(own)), omegas, randomness.at("candidates"))
    looked_at = seeds if checked is None else sample(seeds, checked, randomness.at("scan"))
    network = model.network
    sizes = [attribute.size for attribute in network.attributes]
    counts = PrefixCounts.of(looked_at, network.order, model.kept, sizes)
    if gamma is not None:
        return count_hidden_omega(model, counts, made, own, gamma=gamma)
    level = np.searchsorted(model.kept, len(network.order) - omegas)
    plausible: Counts = counts.look_up(made)[np.arange(candidates), level]
    return plausible
