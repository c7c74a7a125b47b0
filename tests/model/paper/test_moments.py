"""Normal and regression models: moments by definition, known models recovered, valid tables.

Whatever the noise, every row of a table is a distribution.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chance import assert_rate
from deniable.arrays import CODE
from deniable.counting.contingency import count_cells
from deniable.counting.prefix_counts import PrefixCounts
from deniable.data.codec import Codec
from deniable.errors import ConfigError, InvariantError
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.paper.moments import Moments, fit_table, make_design, normal_rows, sum_moments
from deniable.model.paper.parameters import estimate_table, learn_counts, table_query
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import learn, synthesize
from deniable.privacy.moment_budget import moment_l0_sensitivities
from deniable.privacy.noise_laws import exact, rounded_gaussian
from deniable.randomness import Keyed
from deniable.release.deniability_test import (
    ScanLimits,
    count_hidden_omega,
    count_own_omega,
    scan_plausible_seeds,
)
from deniable.schema.schema import Schema
from worlds import property_test

pytestmark = pytest.mark.slow

MODELS = ("normal", "regression")
TEXT = """
format = 1
rows_max = 10_000
[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "turner"]
[[attribute]]
name = "years"
type = "integer"
min = 20
max = 69
buckets = { width = 10 }
missing = ["?"]
[[attribute]]
name = "wage"
type = "real"
min = 0
max = 10
decimals = 2
bins = { width = 0.25 }
missing = ["?"]
model = "MODEL"
"""
PARENTS = ((), (), (0, 1))


def schema_of(model):
    return Schema.parse(TEXT.replace("MODEL", model))


def random_codes(schema, rows, key=1):
    rng = np.random.default_rng(key)
    columns = [rng.integers(0, size, rows) for size in schema.sizes]
    return np.asfortranarray(np.stack(columns, axis=1).astype(CODE))


def learnt(schema, codes, law, parents=PARENTS):
    """The noisy sums of the last attribute."""

    def answer(queries):
        return [count_cells(schema.attributes, codes, query) for query in queries]

    found, _ = learn_counts(Keyed(4).at("noise"), answer, schema.attributes, Graph(parents), law)
    return found[-1]


# Moments


def place_of(attribute, codes, bound):
    """The mean position of the values of some codes, from -B to B, in fractions."""
    low, high = attribute.values[0], attribute.values[-1]
    positions = [p for code in codes for p in attribute.positions(code)]
    mean = Fraction(sum(positions), len(positions))
    return bound * (2 * mean - low - high) / Fraction(high - low)


@pytest.mark.parametrize("model", MODELS)
def test_sums_are_those_of_the_records_one_by_one(model):
    """The definition: each record counts by the centre of its bin, a parent by its bucket's."""
    schema = schema_of(model)
    codes = random_codes(schema, 300)
    _, years, wage = schema.attributes
    found = learnt(schema, codes, exact())
    bound = found.bound
    inside = [[c for c in range(years.bins) if years.groups[c] == b] for b in range(years.buckets)]
    groups = 2 if model == "regression" else 2 * years.buckets
    expected: dict[int, tuple[list[int], dict, dict]] = {
        group: ([0, 0], {}, {}) for group in range(groups)
    }
    for t, y, w in codes.tolist():
        bucket = years.groups[y]
        records, sums, squares = expected[
            t if model == "regression" else t * years.buckets + bucket
        ]
        records[w == wage.missing_code] += 1
        if w == wage.missing_code:
            continue
        x = 0 if y == years.missing_code else round(place_of(years, inside[bucket], bound))
        z = [x] * (model == "regression") + [round(place_of(wage, [w], bound))]
        for i, j in itertools.combinations_with_replacement(range(len(z)), 2):
            sums[i] = sums.get(i, 0) + z[i] * (i == j)
            squares[i, j] = squares.get((i, j), 0) + z[i] * z[j]
    assert found.records.tolist() == [expected[g][0] for g in range(groups)]
    for at, held in ((1, found.sums), (2, found.squares)):
        assert held.tolist() == [[v for _, v in sorted(expected[g][at].items())] for g in expected]


def test_a_regression_has_at_most_three_regressors_the_first_of_its_graph():
    number = '[[attribute]]\nname = "x{}"\ntype = "integer"\nmin = 0\nmax = 2\n'
    text = "format = 1\nrows_max = 10\n" + "".join(number.format(i) for i in range(6))
    schema = Schema.parse(f'{text}model = "regression"\n')
    design = make_design(schema.attributes, (4, 0, 2, 1), 5, model="regression", bound=8)
    assert design.regressors.shape == (81, 3)
    # The fourth parent runs fastest, and makes the groups.
    assert design.groups.tolist() == [0, 1, 2] * 27
    assert design.regressors[:, 0].tolist() == [-8] * 27 + [0] * 27 + [8] * 27
    table = np.ones((81, 3), dtype=np.int64)
    shapes = [numbers.shape[1] for numbers in sum_moments(table, design)]
    assert tuple(shapes) == moment_l0_sensitivities("regression")


def test_a_missing_regressor_counts_as_the_middle_of_its_range():
    schema = schema_of("regression")
    design = make_design(schema.attributes, (1,), 2, model="regression", bound=64)
    assert design.regressors[-1].tolist() == [0]
    np.testing.assert_array_equal(design.regressors[:5, 0], [-52, -26, 0, 26, 52])
    assert design.groups.tolist() == [0] * 6


# Known models are recovered


def people(schema, rows, key=7):
    """Wage is a line in the centre of the years' bucket for each trade; a tenth are missing."""
    rng = np.random.default_rng(key)
    years = schema.attributes[1]
    trade, age = rng.integers(0, 2, rows), rng.integers(0, years.bins, rows)
    centre = 24.5 + 10 * (age // 10)
    wage = np.where(trade == 0, 1 + 0.08 * centre, 7 - 0.04 * centre) + rng.normal(0, 0.8, rows)
    wage = np.clip(wage, 0, 10)
    bins = np.minimum((np.round(wage, 2) / 0.25).astype(int), schema.attributes[2].bins - 1)
    bins = np.where(rng.random(rows) < 0.1, schema.attributes[2].missing_code, bins)
    return np.asfortranarray(np.stack([trade, age, bins], axis=1).astype(CODE))


@pytest.mark.parametrize("model", MODELS)
def test_a_known_model_is_found_again_without_noise(model):
    """Every configuration's row, against the Normal that made the records.

    The error of a mean from n records is 0.8/√n, and that moves a row by 0.4 of it in total
    variation at a deviation of 0.8: with 40,000 records in each configuration, below 0.01.
    """
    schema = schema_of(model)
    codes = people(schema, 400_000)
    wage = schema.attributes[2]
    table = fit_table(learnt(schema, codes, exact()), schema.attributes, (0, 1), 2, alpha=1.0)
    # Positions are hundredths, each rounded to: bins end half a position before the next.
    edges = np.append(np.array(wage.starts), wage.values[-1] + 1) / 100 - 0.005
    for trade, bucket in itertools.product(range(2), range(5)):
        centre = 24.5 + 10 * bucket
        mean = 1 + 0.08 * centre if trade == 0 else 7 - 0.04 * centre
        expected = np.diff(stats.norm.cdf(edges, mean, 0.8))
        row = table[trade * 6 + bucket]
        assert row[-1] == pytest.approx(0.1, abs=0.01)
        assert np.abs(row[:-1] / row[:-1].sum() - expected).sum() / 2 < 0.02


@pytest.mark.untraced
def test_the_error_grows_with_the_noise():
    schema = schema_of("regression")
    codes = people(schema, 8_000)
    best = fit_table(learnt(schema, codes, exact()), schema.attributes, (0, 1), 2, alpha=1.0)
    far = []
    for sigma in (0.1, 4.0, 400.0):
        moments = learnt(schema, codes, rounded_gaussian(sigma))
        table = fit_table(moments, schema.attributes, (0, 1), 2, alpha=1.0)
        far.append(np.abs(table - best).sum(axis=1).mean() / 2)
    assert far[0] < 0.01 < far[1] < 0.25 < far[2]


def test_bins_add_nothing_to_the_variance():
    """Sheppard's correction: wide bins, a narrow Normal, and its own deviation comes back."""
    text = TEXT.replace("MODEL", "normal").replace("width = 0.25", "width = 1.0")
    schema = Schema.parse(text)
    rng = np.random.default_rng(2)
    wage = np.round(rng.normal(5.3, 0.9, 200_000), 2)
    codes = np.zeros((len(wage), 3), dtype=CODE, order="F")
    codes[:, 2] = np.clip(wage, 0, 9.99).astype(int)
    moments = learnt(schema, codes, exact(), ((), (), ()))
    row = fit_table(moments, schema.attributes, (), 2, alpha=1.0)[0]
    edges = np.append(np.array(schema.attributes[2].starts), 1001) / 100 - 0.005
    expected = np.diff(stats.norm.cdf(edges, 5.3, 0.9))
    uncorrected = np.diff(stats.norm.cdf(edges, 5.3, np.sqrt(0.9**2 + 1 / 12)))
    off = np.abs(row[:-1] - expected).sum() / 2
    assert off < 0.01
    assert np.abs(uncorrected - expected).sum() / 2 > 2 * off


# Tables are distributions


@st.composite
def any_sums(draw):
    """Moments that no table of records has: any integers, any noise."""
    model = draw(st.sampled_from(MODELS))
    schema = schema_of(model)
    design = make_design(schema.attributes, (0, 1), 2, model=model, bound=64)
    groups, variables = design.group_count, 1 + design.regressors.shape[1]
    most = draw(st.sampled_from([0, 10, 10**6, 2**62]))

    def numbers(columns):
        size = groups * columns
        held = draw(st.lists(st.integers(-most, most), min_size=size, max_size=size))
        return np.array(held, dtype=np.int64).reshape(groups, columns)

    moments = Moments(
        model=model,
        shape=(12, schema.sizes[2]),
        bound=draw(st.sampled_from([8, 64])),
        deviations=tuple(draw(st.sampled_from([0.0, 1.0, 1e7])) for _ in range(3)),
        records=numbers(2),
        sums=numbers(variables),
        squares=numbers(variables * (variables + 1) // 2),
    )
    return schema, moments


@property_test
@given(any_sums(), st.sampled_from([2.0**-40, 1.0, 2.0**53]))
def test_whatever_the_noise_every_row_is_a_distribution_without_impossible_values(case, alpha):
    schema, moments = case
    table = fit_table(moments, schema.attributes, (0, 1), 2, alpha=alpha)
    assert table.shape == moments.shape
    assert (table > 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
    ConditionalTable(table)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("records", [(0, 2**53 - 1), (2**53 - 1, 0), (-(2**62), 2**62)])
def test_a_share_of_missing_cells_is_not_rounded_to_none_or_all(model, records):
    """1 in 2^53 records is less than the last digit of a number near 1."""
    schema = schema_of(model)
    design = make_design(schema.attributes, (0, 1), 2, model=model, bound=64)
    groups, variables = design.group_count, 1 + design.regressors.shape[1]
    moments = Moments(
        model=model,
        shape=(12, schema.sizes[2]),
        bound=64,
        deviations=(1.0, 1.0, 1.0),
        records=np.tile(np.array(records, dtype=np.int64), (groups, 1)),
        sums=np.zeros((groups, variables), dtype=np.int64),
        squares=np.zeros((groups, variables * (variables + 1) // 2), dtype=np.int64),
    )
    table = fit_table(moments, schema.attributes, (0, 1), 2, alpha=1.0)
    assert (table > 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)


def test_rows_are_the_truncated_normal_and_densities_integrate_to_one():
    """Bins of any width: a density, probability over width, against scipy's truncated law."""
    edges = np.array([-64.0, -60, -20, -19, 0, 1, 30, 64])
    means, variances = np.array([-70.0, 0.0, 64.0]), np.array([4.0, 100.0, 900.0])
    rows = normal_rows(means, variances, edges)
    densities = rows / np.diff(edges)
    np.testing.assert_allclose((densities * np.diff(edges)).sum(axis=1), 1, rtol=1e-12)
    for row, mean, deviation in zip(rows, means, np.sqrt(variances), strict=True):
        law = stats.truncnorm(
            (edges[0] - mean) / deviation, (edges[-1] - mean) / deviation, mean, deviation
        )
        np.testing.assert_allclose(row, np.diff(law.cdf(edges)), atol=2e-9)


def test_far_tails_keep_their_digits():
    """Above the mean as below: the row of a mean mirrored is the row mirrored."""
    edges = np.linspace(-64, 64, 129)
    up, down = normal_rows(np.array([-50.0, 50.0]), np.array([9.0, 9.0]), edges)
    np.testing.assert_allclose(up, down[::-1], rtol=1e-9)


def test_an_attribute_of_one_value_has_it():
    schema = Schema.parse(
        'format = 1\nrows_max = 9\n[[attribute]]\nname = "x"\ntype = "integer"\n'
        'min = 7\nmax = 7\nmodel = "normal"\n'
    )
    codes = np.zeros((5, 1), dtype=CODE, order="F")
    table = fit_table(learnt(schema, codes, exact(), ((),)), schema.attributes, (), 0, alpha=1.0)
    assert table.tolist() == [[1.0]]


def test_sums_of_another_graph_are_refused():
    schema = schema_of("regression")
    moments = learnt(schema, random_codes(schema, 10), exact())
    for parents in ((), (0,), (1,)):
        graph = Graph(((), (), parents))
        with pytest.raises(InvariantError, match="do not have the shape"):
            estimate_table(moments, schema.attributes, graph, 2, estimator="clip", alpha=1.0)
    never_missing = replace(schema.attributes[2], missing=(), groups=())
    with pytest.raises(InvariantError, match="do not have the shape"):
        fit_table(moments, (*schema.attributes[:2], never_missing), (0, 1), 2, alpha=1.0)


# The network

SMALL = """
format = 1
rows_max = 10_000
[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "turner"]
[[attribute]]
name = "years"
type = "integer"
min = 0
max = 5
model = "normal"
[[attribute]]
name = "wage"
type = "integer"
min = 0
max = 7
bins = { width = 2 }
missing = ["?"]
model = "regression"
"""
GRAPH = {"years": ["trade"], "wage": ["years", "trade"]}
OPTIONS = {"epsilon": 4.0, "delta": 1e-5, "graph": GRAPH, "k": 5}


def small_codes(rows=1_000):
    rng = np.random.default_rng(9)
    trade = rng.integers(0, 2, rows)
    years = np.clip(np.rint(rng.normal(2 + trade, 1)), 0, 5).astype(int)
    wage = np.clip(np.rint(rng.normal(1 + years, 1)), 0, 7).astype(int) // 2
    wage = np.where(rng.random(rows) < 0.1, 4, wage)
    return np.asfortranarray(np.stack([trade, years, wage], axis=1).astype(CODE))


@pytest.fixture(scope="module")
def small():
    """A schema, its codes, and a network learnt of them with noise."""
    schema = Schema.parse(SMALL)
    codes = small_codes()
    frame = Codec(schema).decode(codes, Keyed(1).at("values"))
    artefact = learn(frame, schema, mode="seedless", noise=Keyed(3), **OPTIONS)
    return schema, codes, artefact.network


def test_log_probability_is_a_distribution(small):
    schema, _, network = small
    every = np.array(list(itertools.product(*[range(n) for n in schema.sizes])), dtype=CODE)
    total = np.exp(network.log_probability(np.asfortranarray(every))).sum()
    assert total == pytest.approx(1.0, rel=1e-12)


def test_draws_have_the_law_of_the_table(small):
    _, _, network = small
    codes = np.zeros((200_000, 3), dtype=CODE, order="F")
    network.draw(codes, Keyed(6).at("records", 0), kept=0)
    configuration = network.configuration(codes, 2)
    busiest = np.bincount(configuration).argmax()
    wages = codes[configuration == busiest, 2]
    for value, probability in enumerate(network.tables[2].probabilities[busiest]):
        assert_rate(int((wages == value).sum()), len(wages), probability, false_alarm=1e-7)


@pytest.mark.parametrize("omegas", [(1,), (1, 2), (1, 2, 3)])
def test_the_scan_and_the_exact_test_agree(small, omegas):
    """ω known and hidden: the look-up counts what asking the model about every seed counts."""
    schema, codes, network = small
    model = NetworkModel(network, omegas)
    prefixes = PrefixCounts.of(codes, network.order, model.kept, schema.sizes)
    seeds = np.arange(0, 1_000, 5)
    candidates = model.propose(codes[seeds], Keyed(2).at("records", 0))
    limits = ScanLimits()

    def scan(asked):
        rng = Keyed(5).at("scan")
        return scan_plausible_seeds(
            asked, codes, candidates, codes[seeds], rng, gamma=4.0, limits=limits
        )

    hidden = count_hidden_omega(model, prefixes, candidates, codes[seeds], gamma=4.0)
    np.testing.assert_array_equal(hidden, scan(model))
    at = np.zeros(len(seeds), dtype=np.intp)
    last = PrefixCounts.of(codes, network.order, model.kept[-1:], schema.sizes)
    only = NetworkModel(network, omegas[:1])
    candidates = only.propose(codes[seeds], Keyed(2).at("records", 1))
    np.testing.assert_array_equal(count_own_omega(last, codes[seeds], at), scan(only))


@pytest.mark.parametrize("mode", ["seedless", "tested"])
def test_a_run_gives_records_of_the_model(small, mode):
    schema, codes, _ = small
    frame = Codec(schema).decode(codes, Keyed(1).at("values"))
    omega = {"omega": "2"} if mode == "tested" else {}
    options = {**OPTIONS, **omega, "epsilon": 20.0}
    records = synthesize(frame, schema, records=4_000, mode=mode, **options).frame()
    assert isinstance(records, pl.DataFrame)
    assert records["years"].is_between(0, 5).all()
    assert records["wage"].drop_nulls().is_between(0, 7).all()
    means = [
        table.group_by("trade").agg(pl.col("years").mean(), pl.col("wage").mean()).sort("trade")
        for table in (frame, records)
    ]
    # A rough agreement: the deviation of both is about one, of 500 and 2,000 records a trade.
    for name in ("years", "wage"):
        np.testing.assert_allclose(means[0][name], means[1][name], atol=0.4)


def test_the_network_takes_the_tables_as_they_are(small):
    schema, _, network = small
    again = Network(schema.attributes, network.graph, network.order, network.tables)
    assert [t.probabilities.shape for t in again.tables] == [(1, 2), (2, 6), (12, 5)]
    assert table_query(network.graph, 2)[-1].attribute == 2


def test_the_default_estimator_works_with_moments(small):
    schema, codes, _ = small
    frame = Codec(schema).decode(codes, Keyed(1).at("values"))
    artefact = learn(frame, schema, mode="seedless", epsilon=4.0, delta=1e-5)
    parameters = artefact.certificate.parameters
    assert (parameters["estimator"], parameters["max_cost"]) == ("norm-sub", 300)
    assert set(artefact.evidence.moments) == {1, 2}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"estimator": "pairs"}, r'"years" has model = normal.*--estimator norm-sub'),
        ({"graph": GRAPH, "parameters": "drawn"}, r"leave parameters = drawn out"),
    ],
)
def test_options_for_counts_are_refused_with_advice(small, options, advice):
    schema, codes, _ = small
    frame = Codec(schema).decode(codes, Keyed(1).at("values"))
    with pytest.raises(ConfigError, match=advice):
        learn(frame, schema, mode="seedless", **options)
