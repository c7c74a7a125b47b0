"""Mode tested: the posterior of seeds by brute force, and the attacker who knows k - 1 of k."""

import math

import numpy as np
import pytest

from audited_tables import audited_table
from deniable.audit.retraining import retrain
from deniable.audit.seed_posterior import (
    SeedPosterior,
    largest_posteriors,
    measure_seed_posterior,
)
from deniable.counting.prefix_counts import PrefixCounts


def made_release(omega, k, **options):
    audited = audited_table(
        [0], mode="tested", omega=omega, k=k, epsilon=math.inf, records=400, **options
    )
    return audited, retrain(audited, audited.codes, audited.run_number(1), key=1)


@pytest.mark.parametrize("omega", ["2", "1-2"])
def test_the_posterior_is_that_of_brute_force(omega):
    """Bayes over all seeds and all ω, each candidate tested under its own ω."""
    audited, made = made_release(omega, 25)
    model, seeds, records = made.model, made.seeds, made.records[:20]
    order, sizes = model.network.order, [a.size for a in model.network.attributes]
    counts = PrefixCounts.of(seeds, order, model.kept, sizes)
    posterior, sharing = largest_posteriors(model, counts, records, audited.run)
    terms = model.network.log_terms(records)
    for y, largest, number, log_terms in zip(records, posterior, sharing, terms, strict=True):
        weight = np.zeros(len(seeds))
        for kept in model.kept:
            same = (seeds[:, list(order[:kept])] == y[list(order[:kept])]).all(axis=1)
            if same.sum() >= 25:
                weight += same * math.exp(log_terms[kept:].sum())
        weight /= weight.sum()
        assert largest == pytest.approx(weight.max())
        assert number == np.isclose(weight, weight.max(), rtol=1e-9).sum()


def test_at_least_k_seeds_are_equally_plausible_and_the_last_of_k_is_seen():
    audited, first = made_release("2", 20)
    column = first.model.network.order[0]
    counted = np.bincount(audited.codes[:, column])
    k = int(counted[counted >= 20].min())
    audited, made = made_release("2", k)
    found = measure_seed_posterior(audited, made, 100)
    assert found.sharing >= k
    assert found.largest[2] <= 1 / k + 1e-12
    assert found.at_limit == pytest.approx(k / len(audited.codes))
    assert found.proven == pytest.approx(found.at_limit)
    assert (found.with_row, found.without_row) == ((3, 3), (0, 3))
    assert SeedPosterior.read(found.document()) == found


def test_nothing_is_proven_where_no_prefix_is_at_the_limit():
    audited, made = made_release("2", 19)
    assert not (np.bincount(audited.codes[:, made.model.network.order[0]]) == 19).any()
    found = measure_seed_posterior(audited, made, 100)
    assert (found.at_limit, found.proven) == (0, 0)
    assert found.with_row is None
