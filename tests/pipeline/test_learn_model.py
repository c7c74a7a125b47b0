"""The learnt model: the default from pairs of columns, or the paper's."""

import itertools

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.data.codec import Codec
from deniable.errors import InvariantError
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.parameters import TableCounts
from deniable.pipeline import learn_model
from deniable.schema.schema import Schema
from small_runs import INF, NOISE, synthesize

pytestmark = pytest.mark.slow


def two_way_distance(frame, table, schema):
    """The mean total variation distance of all pairs of attributes."""
    ours, theirs = Codec(schema).encode(frame), Codec(schema).encode(table)
    distances = []
    for i, j in itertools.combinations(range(len(schema.names)), 2):
        one, two = (
            np.bincount(
                codes[:, i].astype(int) * schema.sizes[j] + codes[:, j],
                minlength=schema.sizes[i] * schema.sizes[j],
            )
            / len(codes)
            for codes in (ours, theirs)
        )
        distances.append(0.5 * np.abs(one - two).sum())
    return float(np.mean(distances))


@pytest.fixture(scope="module")
def paired(small_schema, small_codes):
    """Four small attributes that hang together: trade, home, boats, pet."""
    schema = Schema(small_schema.attributes[1:], rows_max=10_000)
    return Codec(schema).decode(np.asfortranarray(small_codes[:, 1:])), schema


def test_without_noise_pairs_of_the_records_are_those_of_the_table(paired):
    table, schema = paired
    with_edges = deniable.learn(table, schema, mode="seedless", epsilon=INF)
    alone = deniable.learn(table, schema, mode="seedless", epsilon=INF, graph={})
    near, far = (
        two_way_distance(artefact.generate(30_000, key=1), table, schema)
        for artefact in (with_edges, alone)
    )
    assert near < 0.03
    assert far > 3 * near


def test_with_noise_pairs_are_nearer_than_those_of_attributes_alone(paired):
    table, schema = paired
    big = pl.concat([table] * 5)
    with_edges = deniable.learn(big, schema, mode="seedless", epsilon=2.0, noise=NOISE)
    alone = deniable.learn(big, schema, mode="seedless", epsilon=INF, graph={})
    near, far = (
        two_way_distance(artefact.generate(30_000, key=1), big, schema)
        for artefact in (with_edges, alone)
    )
    assert near < far / 2


@pytest.mark.parametrize(
    ("estimator", "evidence"),
    [("pairs", PairwiseMeasurements), ("norm-sub", TableCounts), ("clip", TableCounts)],
)
def test_the_estimator_chooses_the_model(paired, estimator, evidence):
    table, schema = paired
    artefact = deniable.learn(table, schema, mode="seedless", epsilon=INF, estimator=estimator)
    assert isinstance(artefact.evidence, evidence)


@pytest.mark.parametrize("mode", ["one-shot", "seedless"])
def test_what_is_learnt_does_not_depend_on_the_number_of_workers(paired, mode):
    table, schema = paired
    files = [
        deniable.learn(table, schema, mode=mode, noise=NOISE, workers=workers).files()
        for workers in (1, 2, 5)
    ]
    assert files[0] == files[1] == files[2]


@pytest.mark.parametrize("stage", ["measure_pairwise", "measure_tables"])
def test_a_stage_that_drops_its_last_spend_stops_everything(
    small_table, small_schema, monkeypatch, stage
):
    measure = getattr(learn_model, stage)

    def forget(*args, **keywords):
        measured, spends = measure(*args, **keywords)
        return measured, spends[:-1]

    monkeypatch.setattr(learn_model, stage, forget)
    with pytest.raises(InvariantError, match="ledger does not equal the plan"):
        synthesize(small_table, small_schema, "seedless", 5)


def test_pairs_with_a_target_are_measured_more_precisely(paired):
    table, schema = paired
    options = {"mode": "seedless", "epsilon": 2.0, "noise": NOISE}
    plain, aimed = (
        deniable.learn(table, schema, target=target, **options) for target in (None, ["boats"])
    )
    at = schema.names.index("boats")
    for pair, sigma in aimed.evidence.interaction_sigmas.items():
        assert (sigma < plain.evidence.interaction_sigmas[pair]) == (at in pair)
    # The same entries of the ledger: a target changes what they buy, not what they cost.
    one, two = (artefact.certificate.spends for artefact in (plain, aimed))
    assert one == two


@pytest.mark.parametrize("epsilon", [1e-4, 1.0])
def test_a_single_column_and_a_tiny_epsilon_are_learnt(paired, epsilon):
    """One column has no pairs; at ε = 0.0001 there are no interactions either."""
    table, schema = paired
    for part in (schema, Schema(schema.attributes[:1], rows_max=10_000)):
        columns = table.select(part.names)
        artefact = deniable.learn(columns, part, mode="seedless", epsilon=epsilon, noise=NOISE)
        assert artefact.generate(20, key=1).shape == (20, len(part.names))
        measured = artefact.evidence.interactions != {}
        assert measured == (epsilon == 1.0 and len(part.names) > 1)


CLAIMS = """format = 1
[[attribute]]
name = "claims"
type = "integer"
min = 1
max = 60
"""
PARTS = ("doctors", "clinics", "visits", "days")


@pytest.fixture(scope="module")
def claims():
    """Numbers that never exceed that of claims, but depend on it no further; and their schema."""
    rng = np.random.default_rng(4)
    number = np.minimum(1 + rng.exponential(9, 12_000).astype(int), 60)
    columns = {"claims": number}
    for name in PARTS:
        columns[name] = np.minimum(number, rng.geometric(0.1 + 0.1 * rng.random(), 12_000))
    part = "[[attribute]]\nname = {!r}\ntype = 'integer'\nmin = 0\nmax = 60\n"
    text = CLAIMS + "".join(map(part.format, PARTS))
    orders = "".join(f"[[constraint]]\nat_most = [{name!r}, 'claims']\n" for name in PARTS)
    return pl.DataFrame(columns), Schema.parse(text + orders)


def mean_shifts(frame, table):
    """The differences of means, in standard deviations of the table."""
    shifts = [
        (frame[name].mean() - table[name].mean()) / table[name].std() for name in table.columns
    ]
    return np.abs(shifts)


@pytest.mark.parametrize("options", [{"mode": "seedless"}, {"mode": "one-shot", "k": 20}])
def test_constraints_do_not_shift_single_columns(claims, options):
    """And the release passes verification: its model is fitted again with the constraints."""
    table, schema = claims
    release = deniable.synthesize(
        table, schema, records=30_000, epsilon=3.0, noise=NOISE, key=1, **options
    )
    frame = release.frame()
    for name in PARTS:
        assert (frame[name] <= frame["claims"]).all()
    assert mean_shifts(frame, table).max() < 0.1


def test_a_model_that_does_not_know_the_constraints_shifts_columns(claims, monkeypatch):
    """The test above is worth something only if a model fitted without them fails it."""
    table, schema = claims
    fit = learn_model.fit_network
    monkeypatch.setattr(
        learn_model, "fit_network", lambda *args, **more: fit(*args, **{**more, "pair_masks": {}})
    )
    artefact = deniable.learn(table, schema, mode="seedless", epsilon=3.0, noise=NOISE)
    assert mean_shifts(artefact.generate(30_000, key=1), table).max() > 0.2


def test_a_release_with_orders_is_verified_and_one_that_was_fitted_without_them_is_not(
    claims, monkeypatch, tmp_path
):
    table, schema = claims
    rows = table.head(3_000)
    options = {"records": 200, "epsilon": 3.0, "k": 20, "key": 1}
    deniable.synthesize(rows, schema, **options).write(tmp_path / "good")
    assert deniable.verify(tmp_path / "good").passed
    fit = learn_model.fit_network
    monkeypatch.setattr(
        learn_model, "fit_network", lambda *args, **more: fit(*args, **{**more, "pair_masks": {}})
    )
    deniable.synthesize(rows, schema, **options).write(tmp_path / "bad")
    report = deniable.verify(tmp_path / "bad")
    assert [check.name for check in report.checks if check.passed is False] == ["model"]
