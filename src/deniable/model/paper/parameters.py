"""Conditional tables from noisy counts: Dirichlet posterior (Sec. 3.4), or moments of values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.counting.contingency import CountQueries, Query, QueryAxis
from deniable.errors import ConfigError
from deniable.model.graph import Graph
from deniable.model.paper.moments import Moments, fit_table, learn_moments, make_design
from deniable.privacy.ledger import Spend
from deniable.privacy.moment_budget import moment_noise
from deniable.privacy.noise import add_noise, norm_sub
from deniable.privacy.noise_laws import Law
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

# The table of one attribute is estimated from noisy counts, or from noisy moments of its values.
Statistics = Counts | Moments


@dataclass(frozen=True)
class TableCounts:
    """Noisy counts, or moments, of every attribute: everything that the tables are estimated from.

    Attributes:
        tables: One entry per attribute.
        fitted_with: Description of the computer that fitted stored tables to moments; "" for this
            one.
    """

    tables: tuple[Statistics, ...] = field(repr=False)
    fitted_with: str = ""

    @property
    def moments(self) -> dict[int, Moments]:
        """The noisy moments, by index of their attribute."""
        return {i: noisy for i, noisy in enumerate(self.tables) if isinstance(noisy, Moments)}


def table_query(graph: Graph, i: int) -> Query:
    """Query that counts n_{i,l}^c: configurations of the bucketed parents, by values."""
    return (*(QueryAxis(j, bucketed=True) for j in graph.parents[i]), QueryAxis(i))


def learn_counts(
    rng: Rng, count: CountQueries, attributes: Sequence[Attribute], graph: Graph, law: Law
) -> tuple[list[Statistics], list[Spend]]:
    """Count n_{i,l}^c with noise for every attribute i, configurations c by values l.

    For an attribute with a Normal or regression model, measure noisy moments instead.

    Returns:
        The noisy statistics of each attribute, and their spends.

    Privacy:
        Neighbours: add or remove one record of the part that is counted. It is counted once in
            every table, in one cell: each table has L1 and L2 sensitivity 1. For its effect on
            moments, see ``moments.sum_moments``.
        Covers: all noisy tables and moments, empty cells included, and everything computed from
            them.
        Does not cover: the domains, which must be public.
    """
    tables = count([table_query(graph, i) for i in range(len(attributes))])
    statistics: list[Statistics] = []
    spends: list[Spend] = []
    for i, (table, attribute) in enumerate(zip(tables, attributes, strict=True)):
        exact, name = table.dense().reshape(-1, attribute.size), attribute.name
        if attribute.model == "histogram":
            noisy, spent = add_noise(rng, exact, law, what=f"counts of {name}", part="parameters")
            statistics.append(noisy)
            spends.append(spent)
            continue
        model, noise = attribute.model, moment_noise(law, attribute.model)
        design = make_design(attributes, graph.parents[i], i, model=model, bound=noise.bound)
        moments, moment_spends = learn_moments(rng, exact, design, noise, model=model, name=name)
        statistics.append(moments)
        spends += moment_spends
    return statistics, spends


def estimate_table(
    noisy: Statistics,
    attributes: Sequence[Attribute],
    graph: Graph,
    i: int,
    *,
    estimator: str,
    alpha: float,
) -> Reals:
    """Estimate the conditional table of attribute ``i``; from counts, by the posterior mean."""
    if isinstance(noisy, Moments):
        return fit_table(noisy, attributes, graph.parents[i], i, alpha=alpha)
    return posterior_mean(posterior_weights(noisy, estimator=estimator, alpha=alpha))


def clip(counts: Counts) -> Reals:
    """Clip negative counts at zero, as the paper does (Sec. 3.4.1).

    Adds half a noise scale to every empty cell on average; ``norm_sub`` does not.
    """
    return np.maximum(counts, 0).astype(np.float64)


def uniform_prior(counts: Counts) -> Reals:
    """Uniform prior: weight 1 for every value, so that every cell gets α."""
    return np.ones(counts.shape[1])


def marginal_prior(counts: Counts) -> Reals:
    """Prior proportional to the overall frequency of each value; 1 on average.

    The hyper-parameters are learnt from the (noisy) data, as in Sec. 3.4: a configuration with few
    records is then close to the attribute's own distribution, where a uniform prior would make it
    nearly uniform. Never zero: one record is added to each value.
    """
    frequency = norm_sub(counts.sum(axis=0, keepdims=True))[0] + 1
    prior: Reals = len(frequency) * frequency / frequency.sum()
    return prior


# By name: how noisy counts are made non-negative, and the prior that is added to them.
ESTIMATORS: dict[str, tuple[Callable[[Counts], Reals], Callable[[Counts], Reals]]] = {
    "clip": (clip, uniform_prior),
    "norm-sub": (norm_sub, marginal_prior),
}


def posterior_weights(counts: Counts, *, estimator: str, alpha: float) -> Reals:
    """Compute the parameters α + n of the Dirichlet posterior from noisy counts (Eq. 11).

    ``eq:gm:multinomial_probability``. Post-processing: no cost. Every configuration of an attribute
    has the same prior, with a total weight of α records per value.
    """
    if not 0 < alpha < np.inf:
        raise ConfigError(f"alpha = {alpha}: a Dirichlet prior needs 0 < alpha < inf")
    estimate, prior = ESTIMATORS[estimator]
    weights: Reals = estimate(counts) + alpha * prior(counts)
    return weights


def posterior_mean(weights: Reals) -> Reals:
    """Posterior mean: p_l^c = (α + n_l^c) / Σ_l (α + n_l^c) (Eq. 13, ``eq:gm:mlparameters``)."""
    rows: Reals = weights / weights.sum(axis=1, keepdims=True)
    return rows


def posterior_draw(weights: Reals, rng: Rng) -> Reals:
    """Draw the parameters of each configuration from Dir(α + n) (Eq. 12).

    ``eq:gm:dirichlet``. Records then vary more *between* artefacts, as multiple imputation
    requires. The paper draws parameters anew for every record: such records have exactly the law
    of the posterior mean (guarantee.md, Post-processing), for which see ``posterior_mean``.

    Gamma variates by inversion, in logarithms: a small α would underflow otherwise.
    """
    from scipy.special import gammaincinv, gammaln  # noqa: PLC0415 - slow to import, seldom used

    # Strictly between 0 and 1, so that its logarithm and the inverse below are finite.
    uniform = np.minimum(rng.random(weights.size) + 2.0**-54, 1 - 2.0**-53)
    uniform = uniform.reshape(weights.shape)
    # Near zero gammainc(a, x) = x^a / Γ(a+1): exact where the inverse would underflow.
    tiny = (np.log(uniform) + gammaln(weights + 1)) / weights
    with np.errstate(divide="ignore"):
        log_gamma = np.log(gammaincinv(weights, uniform))
    log_gamma = np.where(tiny < -200, tiny, log_gamma)
    return posterior_mean(np.exp(log_gamma - log_gamma.max(axis=1, keepdims=True)))
