"""Who else could have made this record? Definition 1, Privacy Tests 1 and 2 (Sec. 2).

The tests need one number, k': how many seeds could have produced the candidate with about the
probability of its own. For the built-in model it is a look-up (guarantee.md, Theorem 6); for
any model it can be counted by scanning the seeds. Both are here, and must agree.
"""

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask, Reals
from deniable.errors import ConfigError, InvariantError
from deniable.model.generative import GenerativeModel
from deniable.model.synthesis import NetworkModel
from deniable.privacy.laws import Law
from deniable.randomness import Rng
from deniable.release.counts import PrefixCounts

# No range: the seed cannot have produced the candidate.
_NO_RANGE = np.iinfo(np.int64).min

# A scan asks the model about so many candidates at a time, and so many probabilities: few enough
# to stay in the cache, many enough to hide Python and what the model prepares for a candidate.
_GROUP = 32
_AT_ONCE = 2**17


def range_index(log_probability: Reals, *, gamma: float) -> Counts:
    """Return i with γ^-(i+1) < p ≤ γ^-i (step 1 of Privacy Test 1, ``def:privacytest``).

    The partition number I_d(y) of the appendix. p = 0 has none and gets a number that no other
    has; a density above 1 has a negative one. Equal floats get equal numbers, and two numbers are
    equal only where the ratio of the probabilities is at most γ, up to 2^-40 of it.
    """
    places = _places(log_probability, gamma=gamma)
    possible = log_probability > -np.inf
    index = np.full(log_probability.shape, _NO_RANGE, dtype=np.int64)
    index[possible] = places[possible].astype(np.int64)
    return index


def _places(log_probability: Reals, *, gamma: float) -> Reals:
    """Return the numbers of the ranges as floats, which costs a scan less: infinity where p = 0."""
    if not 1 < gamma < np.inf:
        raise ConfigError(f"gamma = {gamma}: ranges of probabilities need 1 < gamma < inf")
    places: Reals = np.floor(log_probability / -np.log(gamma))
    return places


def is_deniable(log_probabilities: Reals, own: int, *, k: int, gamma: float) -> bool:
    """Return whether a record is (k, γ)-plausibly deniable (Definition 1, ``def:pdcriterion``).

    There must be k records, its own seed among them, any two of which produce it with
    probabilities within a factor γ of each other: a window [w, γ·w] that holds the own seed's
    probability and at least k others or itself.

    Args:
        log_probabilities: ln Pr{y = M(d)} of every record d of the data set.
        own: Which of them is the seed that y was made from.
        k: How many records, at least 1.
        gamma: How far apart, at least 1.
    """
    mine = log_probabilities[own]
    if not (k >= 1 and 1 <= gamma < np.inf):
        raise ConfigError(f"Definition 1 needs k ≥ 1 and 1 ≤ γ < ∞; got k = {k}, γ = {gamma}")
    if mine == -np.inf:
        raise InvariantError("a record's own seed cannot have produced it")
    # Logarithms round: a ratio of exactly γ is within γ, so γ is taken up to 2^-40 of its
    # logarithm larger, as ranges are. Nothing is taken for γ = 1: equal means equal.
    width = np.log(gamma) * (1 + 2.0**-40)
    near = np.sort(log_probabilities[np.abs(log_probabilities - mine) <= width])
    # Windows may start at any probability not above the own one.
    starts = near[near <= mine]
    ends = np.searchsorted(near, starts + width, side="right")
    return bool((ends - np.searchsorted(near, starts, side="left")).max() >= k)


@dataclass(frozen=True, kw_only=True)
class ScanLimits:
    """When a scan may stop early (Sec. 5, ``sec:tool``). None: it reads every seed.

    Attributes:
        max_plausible: Stop at so many plausible seeds; the count is then this number.
        max_check_plausible: Look at so many seeds only, the same random ones for a whole block.
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
    """Count the plausible seeds of each candidate by asking the model about every seed.

    Steps 1 and 2 of Privacy Tests 1 and 2, for any model.

    Args:
        model: The model that made the candidates; only its ``log_probability`` is called.
        seeds: The records of D_S.
        candidates: One row each.
        own: The seed each candidate was made from, row by row.
        rng: Which seeds to look at, where ``limits`` allow but a part.
        gamma: Width of the ranges, γ > 1.
        limits: When to stop early. They make counts smaller, never larger.

    Returns:
        k' of each candidate. Confidential.
    """
    mine = _places(_own_log_probability(model, candidates, own), gamma=gamma)
    if not np.isfinite(mine).all():
        raise InvariantError("the model calls a candidate impossible that it made itself")
    if limits.max_check_plausible is not None and limits.max_check_plausible < len(seeds):
        seeds = seeds[_choose(len(seeds), limits.max_check_plausible, rng)]
    most = limits.max_plausible or len(seeds)
    plausible = np.zeros(len(candidates), dtype=np.int64)
    for group in _groups(len(candidates)):
        plausible[group] = _count_in_range(
            model, seeds, candidates[group], mine[group], gamma=gamma, most=most
        )
    return plausible


def _groups(candidates: int) -> list[slice]:
    """Return the candidates that a model is asked about together."""
    return [slice(at, at + _GROUP) for at in range(0, candidates, _GROUP)]


def _own_log_probability(model: GenerativeModel, candidates: Codes, own: Codes) -> Reals:
    """Return ln Pr{y = M(d)} of each candidate and its own seed.

    The model answers in matrices; small squares along the diagonal waste little.
    """
    own_logs = np.empty(len(candidates))
    for group in _groups(len(candidates)):
        own_logs[group] = model.log_probability(candidates[group], own[group]).diagonal()
    return own_logs


def _count_in_range(
    model: GenerativeModel, seeds: Codes, candidates: Codes, mine: Reals, *, gamma: float, most: int
) -> Counts:
    """Count the seeds in range ``mine`` of each candidate; who has ``most`` is not asked on."""
    plausible = np.zeros(len(candidates), dtype=np.int64)
    going, at = np.arange(len(candidates)), 0
    while at < len(seeds) and len(going):
        some = seeds[at : at + max(1, _AT_ONCE // len(going))]
        logs = model.log_probability(candidates[going], some)
        same = _places(logs, gamma=gamma) == mine[going, None]
        plausible[going] += np.count_nonzero(same, axis=1)
        going, at = np.flatnonzero(plausible < most), at + len(some)
    return np.minimum(plausible, most)


def _choose(seeds: int, number: int, rng: Rng) -> Indices:
    """Return ``number`` different seeds, every such set equally likely."""
    # In the order of the table, so that they are read in one sweep.
    return np.sort(np.argpartition(rng.words(seeds), number)[:number])


def count_own_omega(counts: PrefixCounts, seeds: Indices, omega_at: Indices) -> Counts:
    """Count the plausible seeds of candidates whose ω is known: a look-up.

    Synthesis copies the kept attributes and draws the others from conditionals that read only
    the candidate itself (Eq. 3, ``eq:gm:seedbased_synthesis``). So Pr{y = M(d)} is one and the
    same positive number for every seed d that agrees with y on the kept attributes, and zero
    for every other: the plausible seeds are those that share them, whatever γ is
    (guarantee.md, Theorem 6.1). They do not depend on what is drawn, so the test can come first.

    Args:
        counts: The seeds by their prefixes.
        seeds: The number of each candidate's seed.
        omega_at: Which of the levels of ``counts`` each candidate kept.

    Returns:
        k' of each candidate, at least 1. Confidential.
    """
    if len(counts.levels) == 1:
        return counts.of_seeds[0][seeds]
    plausible = np.empty(len(seeds), dtype=np.int64)
    for at, of_seeds in enumerate(counts.of_seeds):
        which = np.flatnonzero(omega_at == at)
        plausible[which] = of_seeds[seeds[which]]
    return plausible


def count_hidden_omega(
    model: NetworkModel, counts: PrefixCounts, candidates: Codes, own: Codes, *, gamma: float
) -> Counts:
    """Count the plausible seeds of candidates whose ω is hidden: a few look-ups.

    Pr{y = M(d)} depends on d only through how many kept prefixes it shares with y, and grows
    with that number. So a range of probabilities is a run of levels, and its seeds are those who
    reach its first level less those who go beyond its last (guarantee.md, Theorem 6.2). The
    range of a level is computed once, never for each seed: equal probabilities cannot straddle.

    Args:
        model: The model that made the candidates, with all its ω.
        counts: The seeds by their prefixes, at the model's levels.
        candidates: One row each.
        own: The seed each candidate was made from, row by row.
        gamma: Width of the ranges, γ > 1.

    Returns:
        k' of each candidate, at least 1. Confidential.
    """
    indices = range_index(model.log_levels(candidates), gamma=gamma)
    level = _own_level(model, candidates, own)
    if (level < 0).any():
        raise InvariantError("a candidate shares no kept attributes with its own seed")
    mine = np.take_along_axis(indices, level[:, None], axis=1)
    if (mine == _NO_RANGE).any():
        raise InvariantError("the model calls a candidate impossible that it made itself")
    same = indices == mine
    first = same.argmax(axis=1)
    beyond = same.shape[1] - same[:, ::-1].argmax(axis=1)
    none_beyond = np.zeros((len(candidates), 1), dtype=np.int64)
    reach = np.hstack([counts.look_up(candidates), none_beyond])
    row = np.arange(len(candidates))
    plausible: Counts = reach[row, first] - reach[row, beyond]
    return plausible


def _own_level(model: NetworkModel, candidates: Codes, own: Codes) -> Indices:
    """Return the last of the model's levels on which each candidate agrees with its own seed."""
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
    """Return which candidates pass Privacy Test 1 (``def:privacytest``): k' ≥ k.

    Privacy:
        Covers: each released record is (k, γ)-plausibly deniable (Definition 1); with a known
            ω and the built-in model, (k, 1).
        Does not cover: differential privacy; several records together; the model.
    """
    if k < 1:
        raise ConfigError(f"k = {k}: a deniability test needs k ≥ 1")
    return plausible >= k


def pass_randomized_test(plausible: Counts, rng: Rng, *, k: int, law: Law) -> Mask:
    """Return which candidates pass Privacy Test 2 (``def:randprivacytest``): k' ≥ k + noise.

    Fresh noise for each candidate: one draw shared by a block would make its verdicts
    dependent, and the theorem is about one candidate at a time.

    Privacy:
        Neighbours: add or remove one seed.
        Covers: one candidate, as ``guarantee.of_one_candidate`` says, if seeds are drawn with
            dummies beside them; several by composition.
        Does not cover: the counts; the model.
        Deviation: discrete Laplace noise, where the paper's is continuous; δ differs.
    """
    if k < 1:
        raise ConfigError(f"k = {k}: a deniability test needs k ≥ 1")
    return plausible >= k + law.draw(rng, len(plausible))
