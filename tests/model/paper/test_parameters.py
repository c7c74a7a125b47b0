"""Conditional tables: the Dirichlet posterior's mean by counting, its draws by their marginals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import definitions
from chance import FALSE_ALARM, assert_rate
from deniable.counting.contingency import count_cells
from deniable.errors import ConfigError
from deniable.model.graph import Graph
from deniable.model.paper.parameters import (
    clip,
    learn_counts,
    marginal_prior,
    posterior_draw,
    posterior_mean,
    posterior_weights,
)
from deniable.privacy.noise import norm_sub
from deniable.privacy.noise_laws import Law, discrete_laplace, exact
from deniable.randomness import Keyed
from worlds import codes_of, graphs, property_test, schemas, tables

pytestmark = pytest.mark.slow


@st.composite
def cases(draw):
    schema = draw(schemas())
    parents, _ = draw(graphs(len(schema)))
    return schema, draw(tables(schema)), parents


def learn(case, law: Law, alpha: Fraction):
    schema, table, parents = case
    codes = codes_of(table, len(schema))
    counts, spends = learn_counts(
        Keyed(3).at("noise"),
        lambda queries: [count_cells(schema, codes, query) for query in queries],
        schema,
        Graph(parents),
        law,
    )
    weights = [posterior_weights(n, estimator="clip", alpha=float(alpha)) for n in counts]
    return counts, spends, [posterior_mean(table) for table in weights]


def by_definition(case, i, alpha, noise=lambda _c, _l: 0):
    schema, table, parents = case
    conditional = definitions.conditional(
        table,
        i,
        parents[i],
        [a.size for a in schema],
        [a.groups for a in schema],
        alpha=alpha,
        noise=noise,
    )
    rows = product(*[range(schema[j].buckets) for j in parents[i]])
    return [[float(p) for p in conditional[c]] for c in rows]


@property_test
@given(cases(), st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(7, 2)]))
def test_tables_without_noise_are_those_of_the_paper(case, alpha):
    _, spends, learnt = learn(case, exact(), alpha)
    assert len(spends) == len(case[0])
    for i, probabilities in enumerate(learnt):
        np.testing.assert_allclose(probabilities, by_definition(case, i, alpha), rtol=1e-12)


@property_test
@given(cases())
def test_noisy_tables_are_clipped_at_zero(case):
    """``sec:gm:parameters_dp``: the noise that was added, put into the definition."""
    schema, table, parents = case
    noisy, _, learnt = learn(case, discrete_laplace(0.3), Fraction(1))
    for i, probabilities in enumerate(learnt):
        rows = {
            c: row for row, c in enumerate(product(*[range(schema[j].buckets) for j in parents[i]]))
        }

        def noise(c, value, i=i, rows=rows):
            n = 0
            for x in table:
                parents_of_x = tuple(schema[j].groups[x[j]] for j in parents[i])
                n += x[i] == value and parents_of_x == c
            return int(noisy[i][rows[c], value]) - n

        expected = by_definition(case, i, Fraction(1), noise)
        np.testing.assert_allclose(probabilities, expected, rtol=1e-12)


def test_some_of_that_noise_is_below_zero():
    """The test above would be empty if no count were clipped."""
    noise = discrete_laplace(0.3).table.draw(Keyed(3).at("noise"), 100)
    assert (noise < 0).sum() > 20


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_an_invalid_prior_is_refused(alpha):
    for estimator in ("clip", "norm-sub"):
        with pytest.raises(ConfigError, match="alpha"):
            posterior_weights(np.ones((1, 2), dtype=np.int64), estimator=estimator, alpha=alpha)


@property_test
@given(st.lists(st.lists(st.integers(-20, 90), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_prior_has_the_shape_of_the_marginal_and_weighs_alpha_a_value(rows):
    """α·K in all, proportional to the projected column sums plus one: by hand, in fractions."""
    counts = np.array(rows, dtype=np.int64)
    columns = [sum(column) for column in zip(*rows, strict=True)]
    occurs = [x + 1 for x in definitions.norm_sub(columns)]
    expected = [float(3 * x / sum(occurs)) for x in occurs]
    np.testing.assert_allclose(marginal_prior(counts), expected, rtol=1e-9)
    weights = posterior_weights(counts, estimator="norm-sub", alpha=2.0)
    added = weights - norm_sub(counts)
    np.testing.assert_allclose(added, [[2 * x for x in expected]] * len(rows), rtol=1e-9)


def test_a_configuration_without_records_has_the_attribute_s_own_distribution():
    counts = np.array([[60, 30, 8], [0, 0, 0]], dtype=np.int64)
    table = posterior_mean(posterior_weights(counts, estimator="norm-sub", alpha=1.0))
    np.testing.assert_allclose(table[1], np.array([61, 31, 9]) / 101, rtol=1e-12)


@property_test
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_counts_without_noise_are_not_clipped(row):
    assert clip(np.array([row])).tolist() == [row]


COUNTS = np.array([7, 0, 2, -4, 30])
ALPHA = 0.5
DRAWS = 20_000


def drawn(counts: np.ndarray, alpha: float, draws: int = DRAWS) -> np.ndarray:
    table = np.tile(counts, (draws, 1)).astype(np.int64)
    weights = posterior_weights(table, estimator="clip", alpha=alpha)
    return posterior_draw(weights, Keyed(8).at("parameters"))


@pytest.mark.parametrize("values", [[0], [1], [2], [3], [4], [0, 2], [1, 3], [0, 1, 2, 3]])
def test_drawn_parameters_have_beta_marginals(values):
    """Sums of coordinates of Dir(a) are Beta(Σ_in a, Σ_out a) (``eq:gm:dirichlet``).

    Kolmogorov-Smirnov test of 20,000 draws; each of the 8 false with probability 1e-6 / 8.
    """
    weights = np.maximum(COUNTS, 0) + ALPHA
    inside = weights[values].sum()
    law = stats.beta(inside, weights.sum() - inside)
    p_value = stats.kstest(drawn(COUNTS, ALPHA)[:, values].sum(axis=1), law.cdf).pvalue
    assert p_value > FALSE_ALARM / 8


def test_that_test_notices_another_prior():
    """A prior of α = 0.6 in place of 0.5 is noticed in the empty value."""
    weights = np.maximum(COUNTS, 0) + ALPHA
    law = stats.beta(weights[1], weights.sum() - weights[1])
    assert stats.kstest(drawn(COUNTS, 0.6)[:, 1], law.cdf).pvalue < FALSE_ALARM / 8


@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
@pytest.mark.parametrize("below", [1e-200, 1e-30, 1e-3, 0.5])
def test_a_small_prior_has_its_law_far_below_one(alpha, below):
    """Beta(α, α) has most of its mass at the ends, where plain gamma variates underflow."""
    least = drawn(np.zeros(2), alpha)[:, 0]
    expected = stats.beta(alpha, alpha).cdf(below)
    assert_rate(int((least <= below).sum()), DRAWS, float(expected))


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e-8, 1e-4, 1.0, 1e8])
@pytest.mark.parametrize("count", [0, 1, 10**9, 2**62])
def test_drawn_parameters_are_distributions(alpha, count):
    counts = np.tile(np.array([0, count, 0, -count], dtype=np.int64), (500, 1))
    weights = posterior_weights(counts, estimator="clip", alpha=alpha)
    probabilities = posterior_draw(weights, Keyed(2).at("parameters"))
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)


class Constant:
    """A generator that repeats one number."""

    def __init__(self, number: float) -> None:
        self._number = number

    def random(self, size: int) -> np.ndarray:
        return np.full(size, self._number)


@pytest.mark.parametrize("number", [0.0, 2.0**-53, 0.5, 1 - 2.0**-53])
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_no_uniform_number_breaks_a_draw(number, alpha):
    """The first and the last number that ``random`` can give are as likely as any other."""
    probabilities = posterior_draw(np.array([[alpha, 3.0 + alpha]]), Constant(number))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
