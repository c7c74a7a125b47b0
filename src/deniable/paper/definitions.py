"""Definitions and theorems of the paper that no run calls: docs/paper-map.md leads to them.

``is_deniable`` is Definition 1, which the deniability tests imply. The others are forms of Theorem
1 that are not claimed.
"""

import math

import numpy as np

from deniable.arrays import Reals
from deniable.errors import BudgetError, ConfigError, InvariantError
from deniable.privacy.composition import Guarantee, upper_bound
from deniable.privacy.theorems import LaplaceNoise, require_test, threshold_tail


def is_deniable(log_probabilities: Reals, own: int, *, k: int, gamma: float) -> bool:
    """Test (k, γ)-plausible deniability of one record (Definition 1, ``def:pdcriterion``).

    There must be k records, its own seed among them, any two of which produce it with
    probabilities within a factor γ of each other. Equivalently, some window [w, γ·w] contains the
    own seed's probability and the probabilities of at least k records, that seed included.

    Args:
        log_probabilities: ln Pr{y = M(d)} of every record d of the data set.
        own: Index of the seed that produced y.
        k: Number of records, at least 1.
        gamma: Largest ratio of probabilities, at least 1.
    """
    mine = log_probabilities[own]
    if not (k >= 1 and 1 <= gamma < np.inf):
        raise ConfigError(f"Definition 1 needs k ≥ 1 and 1 ≤ γ < ∞; got k = {k}, γ = {gamma}")
    if mine == -np.inf:
        raise InvariantError("a record has probability 0 under its own seed")
    # Logarithms are rounded, but a ratio of exactly γ must count as within γ. So ln γ is enlarged
    # by a relative 2^-40, as for ranges. For γ = 1 nothing is added: probabilities must be equal.
    width = np.log(gamma) * (1 + 2.0**-40)
    near = np.sort(log_probabilities[np.abs(log_probabilities - mine) <= width])
    # A window may start at any probability up to the own seed's.
    starts = near[near <= mine]
    ends = np.searchsorted(near, starts + width, side="right")
    return bool((ends - np.searchsorted(near, starts, side="left")).max() >= k)


def released_record_cost_tight(
    *,
    k: int,
    epsilon0: float,
    t: int,
    gamma: float = 1.0,
    n_min: int | None = None,
    noise: LaplaceNoise = "discrete",
) -> Guarantee:
    """Cost of one released record, a tighter Theorem 1 (guarantee.md, Theorem 1′).

        ε = max{ ε0 + ln(1 + γ / t), ln(1 + 1 / n) }
        δ = Pr{L ≥ k - t} · min{ 1, (1 + (t - 1) γ) / (n + 1) }

    The prefix model has γ = 1, whatever γ is configured (Theorem 6). It is what
    Lemmas 4 and 5 of the paper prove.

    Args:
        k: As in ``released_record_cost``.
        epsilon0: As in ``released_record_cost``.
        t: As in ``released_record_cost``.
        gamma: Largest ratio of two probabilities in one range, γ ≥ 1.
        n_min: Public lower bound on the number of records; without it the min is 1.
        noise: Law of the threshold noise L; ours is discrete, the paper's is continuous.

    Privacy:
        Neighbours: add or remove one record of D_S; both tables have at least ``n_min``, or
            without it ``k``, records.
        Covers: the released record, Y ⊆ U.
        Does not cover: the empty outcome, and therefore the pass rate; a second record;
            D_T and D_P, which the model uses.
    """
    n = k if n_min is None else n_min
    require_test(k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    if n < 1:
        raise BudgetError(f"Theorem 1′ needs a table with a record; got n ≥ {n_min}")
    share = 1.0 if n_min is None else min(1.0, (1 + (t - 1) * gamma) / (n + 1))
    epsilon = max(epsilon0 + math.log1p(gamma / t), math.log1p(1 / n))
    delta = threshold_tail(epsilon0=epsilon0, distance=k - t, noise=noise) * share
    return Guarantee(epsilon=upper_bound(epsilon), delta=upper_bound(delta))


def smallest_k(*, t: int, epsilon0: float, n: int, c: float) -> int:
    """Find the smallest k with δ ≤ n^-c in Theorem 1: k ≥ t + (c / ε0) ln n."""
    if not (t >= 1 and 0 < epsilon0 < math.inf and n >= 2 and 1 < c < math.inf):
        raise BudgetError(
            f"need t ≥ 1, ε0 > 0, n ≥ 2, c > 1; got t = {t}, ε0 = {epsilon0}, n = {n}, c = {c}"
        )
    return t + math.ceil(upper_bound(c / epsilon0 * math.log(n)))
