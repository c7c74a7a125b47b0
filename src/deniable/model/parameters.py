"""From counts to conditional tables: the Dirichlet posterior of Sec. 3.4, or sums of values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.data.attributes import Attribute
from deniable.errors import ConfigError
from deniable.model.cells import Count
from deniable.model.estimates import back_off, norm_sub
from deniable.model.graph import Graph
from deniable.model.moments import Moments, design_of, fit_table, learn_moments
from deniable.model.network import table_query
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend
from deniable.privacy.moments import moment_noise
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng

# What the table of one attribute is estimated from: noisy counts, or noisy sums of its values.
Statistics = Counts | Moments


@dataclass(frozen=True)
class TableCounts:
    """The noisy counts, or sums, of every attribute: what the tables are estimated from.

    Attributes:
        tables: One an attribute.
        fitted_with: The computer that stored tables were fitted to sums on; "": this one.
    """

    tables: tuple[Statistics, ...] = field(repr=False)
    fitted_with: str = ""

    @property
    def moments(self) -> dict[int, Moments]:
        """The noisy sums, by the number of their attribute."""
        return {i: noisy for i, noisy in enumerate(self.tables) if isinstance(noisy, Moments)}


def learn_counts(
    rng: Rng, count: Count, attributes: Sequence[Attribute], graph: Graph, law: Law
) -> tuple[list[Statistics], list[Spend]]:
    """Return noisy n_{i,l}^c of every attribute i, configurations c by values l, and the bill.

    Of an attribute that is learnt as a Normal or by regression, noisy sums in their place.

    Privacy:
        Neighbours: add or remove one record of the part that is counted. It is counted once in
            every table, in one cell: each table has L1 and L2 sensitivity 1. What it does to
            sums is said in ``moments.sum_up``.
        Covers: all noisy tables and sums, empty cells included, and all that is made of them.
        Does not cover: the domains, which must be public.
    """
    tallies = count([table_query(graph, i) for i in range(len(attributes))])
    tables: list[Statistics] = []
    spends: list[Spend] = []
    for i, (tally, attribute) in enumerate(zip(tallies, attributes, strict=True)):
        exact, name = tally.dense().reshape(-1, attribute.size), attribute.name
        if attribute.model == "histogram":
            noisy, spent = add_noise(rng, exact, law, what=f"counts of {name}", part="parameters")
            tables.append(noisy)
            spends.append(spent)
            continue
        model, noise = attribute.model, moment_noise(law, attribute.model)
        design = design_of(attributes, graph.parents[i], i, model=model, bound=noise.bound)
        moments, bill = learn_moments(rng, exact, design, noise, model=model, name=name)
        tables.append(moments)
        spends += bill
    return tables, spends


def estimate_table(
    noisy: Statistics,
    attributes: Sequence[Attribute],
    graph: Graph,
    i: int,
    *,
    estimator: str,
    alpha: float,
    variance: float = 0.0,
) -> Reals:
    """Return the conditional table of attribute ``i``: of its counts, the posterior's mean.

    ``variance`` is that of the noise of one count, for an estimator that weighs it.
    """
    if isinstance(noisy, Moments):
        return fit_table(noisy, attributes, graph.parents[i], i, alpha=alpha)
    if estimator == "back-off":
        shape = [attributes[j].buckets for j in graph.parents[i]]
        # No value is impossible: α records of the attribute's own distribution, among all.
        weights = max(float(noisy.sum()), 1.0) * back_off(noisy, shape, variance)
        return posterior_mean(weights + alpha * marginal_prior(noisy))
    return posterior_mean(posterior_weights(noisy, estimator=estimator, alpha=alpha))


def count_variance(law: str, parameters: Mapping[str, float]) -> float:
    """Return the variance of the noise of a count, by the name of its law."""
    if law == "rounded_gaussian":
        return float(parameters["sigma"]) ** 2
    if law == "discrete_laplace":
        alpha = math.exp(-parameters["epsilon"])
        return 2 * alpha / (1 - alpha) ** 2
    return 0.0


def clip(counts: Counts) -> Reals:
    """Return noisy counts with those below zero at zero, as the paper does (Sec. 3.4.1).

    It adds half a scale of noise to every empty cell: see ``norm_sub``.
    """
    return np.maximum(counts, 0).astype(np.float64)


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
