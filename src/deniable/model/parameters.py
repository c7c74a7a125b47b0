"""From counts to conditional tables: the Dirichlet posterior of Sec. 3.4."""

from collections.abc import Callable, Sequence

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.data.attributes import Attribute
from deniable.errors import ConfigError
from deniable.model.cells import Count
from deniable.model.graph import Graph
from deniable.model.network import ConditionalTable, table_query
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng

# What turns the (noisy) counts of one table into probabilities; rows are configurations.
Estimator = Callable[[Counts], Reals]


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


def posterior_weights(counts: Counts, *, alpha: float) -> Reals:
    """Return the parameters α + n of the Dirichlet posterior (Eq. 8).

    ``eq:gm:multinomial_probability``, with the same α for every value of every configuration.
    Noisy counts below zero count as zero, as in Sec. 3.4.1.
    """
    if not 0 < alpha < np.inf:
        raise ConfigError(f"alpha = {alpha}: a Dirichlet prior needs 0 < alpha < inf")
    weights: Reals = np.maximum(counts, 0) + alpha
    return weights


def posterior_mean(counts: Counts, *, alpha: float) -> Reals:
    """Return p_l^c = (α + n_l^c) / Σ_l (α + n_l^c) (Eq. 10, ``eq:gm:mlparameters``)."""
    return _normalise(posterior_weights(counts, alpha=alpha))


def posterior_draw(counts: Counts, rng: Rng, *, alpha: float) -> Reals:
    """Return one draw of the parameters from Dir(α + n), once a configuration (Eq. 9).

    ``eq:gm:dirichlet``. Records are then more varied *between* artefacts, as multiple imputation
    wants it. Drawn anew for every record, as the paper does, the records would have the law of
    the posterior mean, exactly (PRIVACY.md, section 7): that is ``posterior_mean``.

    Gamma variates by inversion, in logarithms: a small α would underflow otherwise.
    """
    from scipy.special import gammaincinv, gammaln  # noqa: PLC0415 - slow to import, seldom used

    weights = posterior_weights(counts, alpha=alpha)
    uniform = rng.random(weights.size).reshape(weights.shape) + 2.0**-54
    # Near zero gammainc(a, x) = x^a / Γ(a+1): exact where the inverse would underflow.
    tiny = (np.log(uniform) + gammaln(weights + 1)) / weights
    with np.errstate(divide="ignore"):
        logarithm = np.log(gammaincinv(weights, uniform))
    logarithm = np.where(tiny < -200, tiny, logarithm)
    return _normalise(np.exp(logarithm - logarithm.max(axis=1, keepdims=True)))


def conditional_tables(
    counts: Sequence[Counts], estimate: Estimator
) -> tuple[ConditionalTable, ...]:
    """Return the conditional table of each attribute from its (noisy) counts."""
    return tuple(ConditionalTable(estimate(table)) for table in counts)


def _normalise(weights: Reals) -> Reals:
    """Return each row divided by its sum."""
    rows: Reals = weights / weights.sum(axis=1, keepdims=True)
    return rows
