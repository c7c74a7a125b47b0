"""From counts to conditional tables: the Dirichlet posterior of Sec. 3.4."""

from collections.abc import Callable, Sequence

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.data.attributes import Attribute
from deniable.errors import ConfigError
from deniable.model.cells import Count
from deniable.model.graph import Graph
from deniable.model.network import table_query
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng


def learn_counts(
    rng: Rng, count: Count, attributes: Sequence[Attribute], graph: Graph, law: Law
) -> tuple[list[Counts], list[Spend]]:
    """Return noisy n_{i,l}^c of every attribute i, configurations c by values l, and the bill.

    Privacy:
        Neighbours: add or remove one record of the part that is counted. It is counted once in
            every table, in one cell: each table has L1 and L2 sensitivity 1.
        Covers: all noisy tables, empty cells included, and all that is made of them.
        Does not cover: the domains, which must be public.
    """
    tallies = count([table_query(graph, i) for i in range(len(attributes))])
    tables, spends = [], []
    for tally, attribute in zip(tallies, attributes, strict=True):
        exact = tally.dense().reshape(-1, attribute.size)
        noisy, spent = add_noise(
            rng, exact, law, what=f"counts of {attribute.name}", part="parameters"
        )
        tables.append(noisy)
        spends.append(spent)
    return tables, spends


def clip(counts: Counts) -> Reals:
    """Return noisy counts with those below zero at zero, as the paper does (Sec. 3.4.1).

    It adds half a scale of noise to every empty cell: see ``norm_sub``.
    """
    return np.maximum(counts, 0).astype(np.float64)


def norm_sub(counts: Counts) -> Reals:
    """Return, row by row, the counts nearest to the noisy ones that could be counts.

    None below zero, and their sum that of the noisy ones (zero if that is below): each row is
    lowered by one number λ and cut at zero, with Σ_l max(X_l - λ, 0) = N.
    Counts without noise stay as they are.
    """
    noisy = counts.astype(np.float64)
    total = np.maximum(noisy.sum(axis=1), 0.0)
    descending = -np.sort(-noisy, axis=1)
    lowered = (np.cumsum(descending, axis=1) - total[:, None]) / np.arange(1, noisy.shape[1] + 1)
    # λ is that of the last value, in descending order, that stays above zero.
    last = (descending > lowered).sum(axis=1) - 1
    level = np.take_along_axis(lowered, np.maximum(last, 0)[:, None], axis=1)
    return np.where(total[:, None] > 0, np.maximum(noisy - level, 0.0), 0.0)


def uniform_prior(counts: Counts) -> Reals:
    """Return the same default for every value, 1: then α is that of every cell."""
    return np.ones(counts.shape[1])


def marginal_prior(counts: Counts) -> Reals:
    """Return defaults in proportion to how often each value occurs at all, 1 on the average.

    The hyper-parameters are learnt from the (noisy) data, as Sec. 3.4 has it: a configuration with
    few records then leans towards the attribute's own distribution, where equal defaults would
    make it nearly uniform. Never zero: each value has one record more than was counted.
    """
    occurs = norm_sub(counts.sum(axis=0, keepdims=True))[0] + 1
    prior: Reals = len(occurs) * occurs / occurs.sum()
    return prior


# By name, what is done to noisy counts, and the shape of the prior that is added to them.
ESTIMATORS: dict[str, tuple[Callable[[Counts], Reals], Callable[[Counts], Reals]]] = {
    "clip": (clip, uniform_prior),
    "norm-sub": (norm_sub, marginal_prior),
}


def posterior_weights(counts: Counts, *, estimator: str, alpha: float) -> Reals:
    """Return the parameters α + n of the Dirichlet posterior, from noisy counts (Eq. 11).

    ``eq:gm:multinomial_probability``; all of it is post-processing. Every configuration of an
    attribute has the same prior, and it weighs as much as α records of every value.
    """
    if not 0 < alpha < np.inf:
        raise ConfigError(f"alpha = {alpha}: a Dirichlet prior needs 0 < alpha < inf")
    clean, prior = ESTIMATORS[estimator]
    weights: Reals = clean(counts) + alpha * prior(counts)
    return weights


def posterior_mean(weights: Reals) -> Reals:
    """Return p_l^c = (α + n_l^c) / Σ_l (α + n_l^c) (Eq. 13, ``eq:gm:mlparameters``)."""
    rows: Reals = weights / weights.sum(axis=1, keepdims=True)
    return rows


def posterior_draw(weights: Reals, rng: Rng) -> Reals:
    """Return one draw of the parameters from Dir(α + n), once a configuration (Eq. 12).

    ``eq:gm:dirichlet``. Records are then more varied *between* artefacts, as multiple imputation
    wants it. Drawn anew for every record, as the paper does, the records would have the law of
    the posterior mean, exactly (guarantee.md, Post-processing): that is ``posterior_mean``.

    Gamma variates by inversion, in logarithms: a small α would underflow otherwise.
    """
    from scipy.special import gammaincinv, gammaln  # noqa: PLC0415 - slow to import, seldom used

    # Strictly between 0 and 1, so that no logarithm below is infinite at both ends.
    uniform = np.minimum(rng.random(weights.size) + 2.0**-54, 1 - 2.0**-53)
    uniform = uniform.reshape(weights.shape)
    # Near zero gammainc(a, x) = x^a / Γ(a+1): exact where the inverse would underflow.
    tiny = (np.log(uniform) + gammaln(weights + 1)) / weights
    with np.errstate(divide="ignore"):
        logarithm = np.log(gammaincinv(weights, uniform))
    logarithm = np.where(tiny < -200, tiny, logarithm)
    return posterior_mean(np.exp(logarithm - logarithm.max(axis=1, keepdims=True)))
