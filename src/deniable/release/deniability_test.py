"""Plausible deniability: count plausible seeds and run Privacy Tests 1 and 2 (Def. 1, Sec. 2).

The tests compare one number per candidate with a threshold: k', the number of plausible seeds.
A seed is plausible if it produces the candidate with a probability close to that of the
candidate's own seed. For the built-in model k' is a look-up (guarantee.md, Theorem 6). For any
other model the seeds are scanned. Both ways are here, and must agree.
"""

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask, Reals
from deniable.counting.prefix_counts import PrefixCounts
from deniable.errors import ConfigError, InvariantError
from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
from deniable.privacy.noise_laws import Law
from deniable.randomness import Rng

# Range index of probability 0: the seed cannot have produced the candidate.
_NO_RANGE = np.iinfo(np.int64).min

# Candidates, and probabilities, per call of the model in a scan: few enough to stay in the cache,
# many enough to amortise the cost of a call.
_CANDIDATES_PER_CALL = 32
_PROBABILITIES_PER_CALL = 2**17

_IMPOSSIBLE = "the model gives probability 0 to a candidate that it drew"


def range_index(log_probability: Reals, *, gamma: float) -> Counts:
    """Compute the range index i: γ^-(i+1) < p ≤ γ^-i (Privacy Test 1, ``def:privacytest``).

    It is the partition number I_d(y) of the appendix. p = 0 has no range and gets a reserved
    index; a density above 1 has a negative index. Equal floats have equal indices. Two indices are
    equal only if the ratio of the probabilities is at most γ, up to a relative 2^-40.
    """
    numbers = _range_numbers(log_probability, gamma=gamma)
    possible = log_probability > -np.inf
    index = np.full(log_probability.shape, _NO_RANGE, dtype=np.int64)
    index[possible] = numbers[possible].astype(np.int64)
    return index


def _range_numbers(log_probability: Reals, *, gamma: float) -> Reals:
    """Compute range indices as floats, which is faster in a scan; p = 0 has index infinity."""
    if not 1 < gamma < np.inf:
        raise ConfigError(f"gamma = {gamma}: ranges of probabilities need 1 < gamma < inf")
    numbers: Reals = np.floor(log_probability / -np.log(gamma))
    return numbers


@dataclass(frozen=True, kw_only=True)
class ScanLimits:
    """Early stopping of a scan (Sec. 5, ``sec:tool``). None: no limit.

    Attributes:
        max_plausible: Stop after this number of plausible seeds; it is then the count.
        max_check_plausible: Number of seeds to scan, the same random sample for a whole block.
    """

    max_plausible: int | None = None
    max_check_plausible: int | None = None

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if limit is not None and limit < 1:
                raise ConfigError(f"{name} = {limit}: must be at least 1")


def scan_plausible_seeds(
    model: GenerativeModel,
    seeds: Codes,
    candidates: Codes,
    own: Codes,
    rng: Rng,
    *,
    gamma: float,
    limits: ScanLimits,
) -> Counts:
    """Count the plausible seeds of each candidate by evaluating the model on every seed.

    Steps 1 and 2 of Privacy Tests 1 and 2, for any model.

    Args:
        model: The model that drew the candidates; only its ``log_probability`` is called.
        seeds: The records of D_S.
        candidates: One row per candidate.
        own: The own seed of each candidate, row by row.
        rng: Samples seeds if ``limits`` restrict their number.
        gamma: Width of the ranges, γ > 1.
        limits: Early stopping. It can only lower the counts.

    Returns:
        k' of each candidate. Confidential.
    """
    own_range = _range_numbers(_own_log_probability(model, candidates, own), gamma=gamma)
    if not np.isfinite(own_range).all():
        raise InvariantError(_IMPOSSIBLE)
    if limits.max_check_plausible is not None and limits.max_check_plausible < len(seeds):
        seeds = seeds[_sample_seeds(len(seeds), limits.max_check_plausible, rng)]
    limit = limits.max_plausible or len(seeds)
    plausible = np.zeros(len(candidates), dtype=np.int64)
    for group in _candidate_groups(len(candidates)):
        plausible[group] = _count_in_range(
            model, seeds, candidates[group], own_range[group], gamma=gamma, limit=limit
        )
    return plausible


def _candidate_groups(candidates: int) -> list[slice]:
    """Split the candidates into groups of one model call each."""
    return [
        slice(at, at + _CANDIDATES_PER_CALL) for at in range(0, candidates, _CANDIDATES_PER_CALL)
    ]


def _own_log_probability(model: GenerativeModel, candidates: Codes, own: Codes) -> Reals:
    """Compute ln Pr{y = M(d)} of each candidate and its own seed.

    The model returns matrices of candidates and seeds; small square blocks waste little.
    """
    own_logs = np.empty(len(candidates))
    for group in _candidate_groups(len(candidates)):
        own_logs[group] = model.log_probability(candidates[group], own[group]).diagonal()
    return own_logs


def _count_in_range(
    model: GenerativeModel,
    seeds: Codes,
    candidates: Codes,
    own_range: Reals,
    *,
    gamma: float,
    limit: int,
) -> Counts:
    """Count the seeds in the range of each candidate's own seed, up to ``limit``."""
    plausible = np.zeros(len(candidates), dtype=np.int64)
    active, at = np.arange(len(candidates)), 0
    while at < len(seeds) and len(active):
        batch = seeds[at : at + max(1, _PROBABILITIES_PER_CALL // len(active))]
        logs = model.log_probability(candidates[active], batch)
        same = _range_numbers(logs, gamma=gamma) == own_range[active, None]
        plausible[active] += np.count_nonzero(same, axis=1)
        active, at = np.flatnonzero(plausible < limit), at + len(batch)
    return np.minimum(plausible, limit)


def _sample_seeds(seeds: int, number: int, rng: Rng) -> Indices:
    """Sample ``number`` distinct seeds uniformly."""
    # Sorted, for sequential memory access.
    return np.sort(np.argpartition(rng.words(seeds), number)[:number])


def count_own_omega(counts: PrefixCounts, own: Codes, omega_at: Indices) -> Counts:
    """Count the plausible seeds of candidates whose ω is public, by look-up.

    Synthesis copies the kept attributes and draws the others from conditionals that read only
    the candidate itself (Eq. 3, ``eq:gm:seedbased_synthesis``). So Pr{y = M(d)} is the same
    positive number for every seed d that agrees with y on the kept attributes, and zero for every
    other seed. The plausible seeds are those that agree, for any γ (guarantee.md, Theorem 6.1).
    They do not depend on the drawn attributes, so the test can run before the draw.

    Args:
        counts: Prefix counts of the seeds.
        own: The own seed of each candidate, row by row.
        omega_at: Index of the level of ``counts`` that each candidate kept.

    Returns:
        k' of each candidate, at least 1. Confidential.
    """
    plausible: Counts = counts.look_up(own)[np.arange(len(own)), omega_at]
    return plausible


def count_hidden_omega(
    model: NetworkModel, counts: PrefixCounts, candidates: Codes, own: Codes, *, gamma: float
) -> Counts:
    """Count the plausible seeds of candidates whose ω is hidden, by a few look-ups.

    Pr{y = M(d)} depends on d only through the number of kept prefixes that d shares with y, and
    grows with that number. So a range of probabilities is an interval of levels. Its seeds are
    those that reach its first level, minus those that go beyond its last (guarantee.md,
    Theorem 6.2). Each level's range is computed once, not per seed, so rounding cannot put equal
    probabilities in different ranges.

    Args:
        model: The model that drew the candidates, with all its ω.
        counts: Prefix counts of the seeds, at the model's levels.
        candidates: One row per candidate.
        own: The own seed of each candidate, row by row.
        gamma: Width of the ranges, γ > 1.

    Returns:
        k' of each candidate, at least 1. Confidential.
    """
    indices = range_index(model.log_levels(candidates), gamma=gamma)
    level = _own_level(model, candidates, own)
    if (level < 0).any():
        raise InvariantError("a candidate shares no kept prefix with its own seed")
    own_range = np.take_along_axis(indices, level[:, None], axis=1)
    if (own_range == _NO_RANGE).any():
        raise InvariantError(_IMPOSSIBLE)
    same = indices == own_range
    first = same.argmax(axis=1)
    beyond = same.shape[1] - same[:, ::-1].argmax(axis=1)
    none_beyond = np.zeros((len(candidates), 1), dtype=np.int64)
    reach = np.hstack([counts.look_up(candidates), none_beyond])
    row = np.arange(len(candidates))
    plausible: Counts = reach[row, first] - reach[row, beyond]
    return plausible


def _own_level(model: NetworkModel, candidates: Codes, own: Codes) -> Indices:
    """Find the last of the model's levels on which each candidate agrees with its own seed."""
    agree = np.ones(len(candidates), dtype=bool)
    matched = np.zeros(len(candidates), dtype=np.intp)
    for length in range(max(model.kept) + 1):
        if length > 0:
            column = model.network.order[length - 1]
            agree &= candidates[:, column] == own[:, column]
        if length in model.kept:
            matched += agree
    return matched - 1


def pass_deterministic_test(plausible: Counts, *, k: int) -> Mask:
    """Run Privacy Test 1 (``def:privacytest``) on each candidate: pass if k' ≥ k.

    Privacy:
        Covers: each released record is (k, γ)-plausibly deniable (Definition 1); with a known
            ω and the built-in model, (k, 1).
        Does not cover: differential privacy; several records together; the model.
    """
    if k < 1:
        raise ConfigError(f"k = {k}: a deniability test needs k ≥ 1")
    return plausible >= k


def pass_randomized_test(plausible: Counts, rng: Rng, *, k: int, law: Law) -> Mask:
    """Run Privacy Test 2 (``def:randprivacytest``) on each candidate: pass if k' ≥ k + noise.

    Each candidate gets fresh noise. Noise shared by a block would make its results dependent, and
    the theorem is about one candidate at a time.

    Privacy:
        Neighbours: add or remove one seed.
        Covers: one candidate, at the cost of ``theorems.candidate_cost``, if dummy seeds are
            drawn as well; several by composition.
        Does not cover: the counts; the model.
        Deviation: discrete Laplace noise, where the paper's is continuous; δ differs.
    """
    if k < 1:
        raise ConfigError(f"k = {k}: a deniability test needs k ≥ 1")
    return plausible >= k + law.table.draw(rng, len(plausible))
