"""Whole runs on a small table: every mode, every kind of data frame, and what must not happen."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import definitions
import deniable
from chance import assert_distribution
from deniable.arrays import CODE
from deniable.counting.local import LocalRows
from deniable.data.codec import Codec
from deniable.data.table_io import read_codes
from deniable.errors import BudgetError, ConfigError, DataError, InvariantError, SchemaError
from deniable.model.paper.parameters import TableCounts
from deniable.pipeline import api, learn_model, learn_paper_model
from deniable.privacy.noise_laws import discrete_laplace, rounded_gaussian
from deniable.randomness import Keyed
from deniable.release.atomic_files import encode_json
from deniable.release.manifest import not_covered
from deniable.schema.attribute import Attribute
from deniable.schema.draft_cost import DraftCost
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from deniable.verification.claims import ManifestClaims
from deniable.verification.manifest_checks import run_manifest_checks
from small_runs import INF, MODES, MOST, NOISE, assert_fits, row_counts, synthesize
from worlds import plain_attribute

pytestmark = pytest.mark.slow

# A split needs one of the paper's estimators.
DATA_USE: dict[str, dict[str, str]] = {
    "whole": {},
    "split": {"data_use": "split", "estimator": "norm-sub"},
}

# Every mode


@pytest.mark.parametrize("data_use", ["whole", "split"])
@pytest.mark.parametrize("epsilon", [1.0, INF])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_releases_exactly_n_records_that_fit(
    small_table, small_schema, mode, epsilon, data_use
):
    records = MOST.get(mode, 777)
    release = synthesize(
        small_table, small_schema, mode, records, epsilon=epsilon, **DATA_USE[data_use]
    )
    assert_fits(release.frame(), small_schema, records)
    claims = release.certificate.claims_privacy
    assert claims == (epsilon < INF)
    assert release.guarantee == release.certificate.sentence


@pytest.mark.parametrize("records", [1, 2**15 - 1, 2**15, 2**15 + 1])
def test_the_number_of_records_is_exact_at_the_edges_of_blocks(small_table, small_schema, records):
    for mode in ("one-shot", "tested"):
        frame = synthesize(small_table, small_schema, mode, records, epsilon=INF).frame()
        assert frame.height == records


@pytest.mark.parametrize("records", [0, -3])
@pytest.mark.parametrize("mode", MODES)
def test_no_records_cannot_be_asked_for(small_table, small_schema, mode, records):
    with pytest.raises(ConfigError, match=f"records = {records}: ask for at least 1"):
        synthesize(small_table, small_schema, mode, records)


def test_without_noise_or_prior_records_have_the_law_of_the_table(
    small_table, small_schema, small_codes
):
    """Both ends of the story meet: 50,000 records of two attributes and an edge, 1e-6."""
    options = {"graph": {"pet": ["home"]}, "alpha": 2.0**-40, "epsilon": INF, "key": 3}
    frame = synthesize(small_table, small_schema, "seedless", 50_000, **options).frame()
    theirs = row_counts(small_codes, [2, 4])
    ours = row_counts(Codec(small_schema).encode(frame), [2, 4])
    assert_distribution(ours, {cell: count / 2_000 for cell, count in theirs.items()})


@pytest.mark.parametrize("mode", MODES)
def test_the_same_noise_gives_the_same_release(small_table, small_schema, mode):
    more = {"noise": NOISE} | ({"key": 5} if mode in ("one-shot", "seedless") else {})
    one = synthesize(small_table, small_schema, mode, **more)
    two = synthesize(small_table, small_schema, mode, **more, workers=1)
    other = synthesize(small_table, small_schema, mode, **more | {"noise": Keyed(18)})
    assert one.certificate == two.certificate
    first = one.frame()
    assert first.equals(two.frame())
    assert not first.equals(other.frame())


@pytest.mark.parametrize("mode", MODES)
def test_two_runs_with_the_system_s_noise_differ(small_table, small_schema, mode):
    more = {"key": 5} if mode in ("one-shot", "seedless") else {}
    one = synthesize(small_table, small_schema, mode, 20, **more).frame()
    assert not one.equals(synthesize(small_table, small_schema, mode, 20, **more).frame())


@pytest.mark.parametrize("mode", ["one-shot", "seedless"])
def test_the_order_of_rows_changes_nothing_that_is_learnt(small_table, small_schema, mode):
    turned = small_table.sample(fraction=1.0, shuffle=True, seed=1)
    artefacts = [
        deniable.learn(table, small_schema, mode=mode, **MODES[mode], noise=NOISE)
        for table in (small_table, turned)
    ]
    assert artefacts[0].files() == artefacts[1].files()


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_a_mode_that_draws_real_seeds_has_no_key(small_table, small_schema, mode):
    with pytest.raises(ConfigError, match=f"{mode} draws real records as seeds.* has no key"):
        synthesize(small_table, small_schema, mode, key=5)


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_a_mode_that_needs_the_table_has_no_artefact(small_table, small_schema, mode):
    """The contract: elsewhere than in ``synthesize``, an error that says why."""
    with pytest.raises(ConfigError, match=r"needs the table while it generates.*synthesize"):
        deniable.learn(small_table, small_schema, mode=mode, **MODES[mode])


# The price


def test_any_number_of_records_costs_the_same_in_one_shot(small_table, small_schema):
    few = synthesize(small_table, small_schema, "one-shot", 10)
    many = synthesize(small_table, small_schema, "one-shot", 100_000)
    assert few.certificate.cost == many.certificate.cost
    assert few.guarantee == many.guarantee
    assert many.frame().height == 100_000


def test_more_records_leave_less_to_the_model_in_randomized(small_schema):
    one = deniable.plan(small_schema, records=1, mode="randomized", **MODES["randomized"])
    seven = deniable.plan(small_schema, records=7, mode="randomized", **MODES["randomized"])
    assert seven.test.cost.epsilon > one.test.cost.epsilon
    assert seven.privacy.pairs.tables.variance > one.privacy.pairs.tables.variance


def test_a_plan_needs_no_table_and_is_what_a_run_costs(small_table, small_schema):
    run = deniable.plan(small_schema, **MODES["one-shot"])
    artefact = deniable.learn(small_table, small_schema, **MODES["one-shot"])
    listed = [spend["what"] for spend in artefact.certificate.spends]
    assert listed == [spend.what for spend in run.privacy.spends]
    assert artefact.certificate.cost.epsilon <= 1.0
    assert artefact.certificate.cost.epsilon >= run.privacy.cost.epsilon


# Frames


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
def test_a_pandas_frame_gives_a_pandas_frame(small_table, small_schema, mode):
    pd = pytest.importorskip("pandas")
    table = small_table.to_pandas()
    table["boats"] = table["boats"].astype("int8")
    table["pet"] = table["pet"].astype("category")
    table = table[["pet", "years", "trade", "home", "boats"]]
    frame = synthesize(table, small_schema, mode, 300).frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.dtypes.to_dict() == small_table.to_pandas().dtypes.to_dict()
    assert list(frame.columns) == list(table.columns)
    assert list(frame.index) == list(range(300))
    back = pl.from_pandas(frame)
    assert_fits(back.select(small_schema.names), small_schema, 300)


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
def test_a_polars_frame_gives_a_polars_frame(small_table, small_schema, mode):
    table = small_table.with_columns(
        pl.col("years").cast(pl.UInt8), pl.col("pet").cast(pl.Categorical)
    )
    frame = synthesize(table, small_schema, mode, 300).frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.schema == small_table.schema
    lazy = synthesize(table.lazy(), small_schema, mode, 300).frame()
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().height == 300


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
def test_an_arrow_table_gives_an_arrow_table(small_table, small_schema, mode):
    pa = pytest.importorskip("pyarrow")
    table = small_table.to_arrow()
    frame = synthesize(table, small_schema, mode, 300).frame()
    assert isinstance(frame, pa.Table)
    assert frame.schema.remove_metadata() == table.schema.remove_metadata()
    assert frame.num_rows == 300


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_file_gives_a_polars_frame(small_table, small_schema, tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    texts = small_table.with_columns(pl.col("trade").fill_null("?"))
    if kind == "parquet":
        small_table.write_parquet(path)
    elif kind == "csv":
        texts.write_csv(path)
    else:
        texts.write_csv(path, compression="gzip")
    records = synthesize(path, small_schema, "one-shot", noise=NOISE, key=1).frame()
    expected = synthesize(small_table, small_schema, "one-shot", noise=NOISE, key=1).frame()
    assert records.equals(expected)


@pytest.mark.parametrize("source", [None, 5, [1, 2], {"pet": [1]}, np.zeros((3, 5))])
def test_what_is_no_table_is_refused(small_schema, source):
    with pytest.raises(DataError, match="is not a table"):
        deniable.learn(source, small_schema)


# Few rows, few columns


@pytest.mark.parametrize("data_use", ["whole", "split"])
@pytest.mark.parametrize("rows", [1, 2, 19])
@pytest.mark.parametrize("mode", ["one-shot", "seedless", "randomized"])
def test_no_mode_that_claims_privacy_fails_because_rows_are_few(
    small_table, small_schema, mode, rows, data_use
):
    """Fewer rows than k: an error, or a missing record, would tell that they are few."""
    table = small_table.head(rows)
    for epsilon in (1.0, INF):
        release = synthesize(table, small_schema, mode, epsilon=epsilon, **DATA_USE[data_use])
        assert_fits(release.frame(), small_schema, MOST.get(mode, 40))


@pytest.mark.parametrize("epsilon", [1.0, INF])
@pytest.mark.parametrize("mode", ["one-shot", "seedless", "randomized"])
def test_a_part_that_nobody_was_dealt_to_is_no_fault(small_table, small_schema, mode, epsilon):
    """One row, ten keys: each of the three parts is empty under most of them."""
    for key in range(10):
        release = synthesize(
            small_table.head(1), small_schema, mode, 5,
            epsilon=epsilon, noise=Keyed(key), **DATA_USE["split"],
        )  # fmt: skip
        assert release.frame().height == 5


def test_where_nobody_has_k_like_them_one_shot_releases_seedless_records(small_table, small_schema):
    artefact = deniable.learn(
        small_table.head(19), small_schema, k=20, omega="3", epsilon=INF, noise=NOISE
    )
    assert len(artefact.histogram.counts) == 0
    assert artefact.generate(500, key=1).height == 500


ESTIMATORS = ["pairs", "norm-sub", "clip"]


@pytest.mark.parametrize(
    ("estimator", "data_use"),
    [*((name, "whole") for name in ESTIMATORS), ("norm-sub", "split"), ("clip", "split")],
)
@pytest.mark.parametrize("mode", ["one-shot", "seedless", "randomized"])
def test_a_table_without_rows_is_learnt_like_any_other(
    small_table, small_schema, mode, estimator, data_use
):
    """A refusal would reveal the only row of another table. The ledger equals the plan, too."""
    options = {"estimator": estimator, "data_use": data_use}
    empty = small_table.head(0)
    for source, epsilon, omega in [(empty, 1.0, "auto"), (empty.to_pandas(), INF, "3")]:
        more = {} if mode == "seedless" else {"omega": omega}
        release = synthesize(source, small_schema, mode, epsilon=epsilon, **more, **options)
        assert_fits(pl.DataFrame(release.frame()), small_schema, MOST.get(mode, 40))


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "randomized"])
def test_a_table_without_units_is_learnt_like_any_other(small_table, small_schema, mode):
    schema = Schema((*small_schema.columns, Identifier(name="id")), rows_max=1_000, unit="id")
    table = small_table.head(0).with_columns(id=pl.lit("a"))
    assert len(synthesize(table, schema, mode, epsilon=1.0).frame()) == MOST.get(mode, 40)


def test_only_mode_tested_refuses_a_table_without_rows(small_table, small_schema):
    with pytest.raises(BudgetError, match="no record went to the seeds"):
        synthesize(small_table.head(0), small_schema, "tested")
    exclusions = not_covered(None, "tested")
    assert "the table gave no seeds" in exclusions[-1]
    assert exclusions[:-1] == not_covered(None, "one-shot")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("epsilon", [1.0, INF])
def test_a_schema_of_a_single_column_will_do(small_table, small_schema, mode, epsilon):
    schema = Schema((small_schema.attributes[3],))
    options = {**MODES[mode], "omega": "auto", "epsilon": epsilon}
    release = synthesize(small_table.select("boats"), schema, mode, **options)
    assert_fits(release.frame(), schema, MOST.get(mode, 40))


@pytest.mark.parametrize("mode", MODES)
def test_a_constant_column_will_do(small_table, small_schema, mode):
    constant = Attribute(name="planet", kind="categorical", values=("earth",))
    schema = Schema((constant, *small_schema.attributes), rows_max=10_000)
    table = small_table.with_columns(pl.lit("earth").alias("planet"))
    frame = synthesize(table, schema, mode).frame()
    assert_fits(frame.select(schema.names), schema, MOST.get(mode, 40))
    assert set(frame["planet"]) == {"earth"}


# Estimators


@pytest.mark.parametrize("estimator", ["pairs", "norm-sub", "clip"])
@pytest.mark.parametrize("parameters", ["mean", "drawn"])
def test_every_way_to_estimate_gives_records(small_table, small_schema, estimator, parameters):
    options = {"estimator": estimator, "parameters": parameters}
    release = synthesize(small_table, small_schema, "one-shot", 50, **options)
    assert_fits(release.frame(), small_schema, 50)


# Omega


@pytest.mark.parametrize("mode", ["one-shot", "tested", "randomized"])
def test_omega_beyond_the_attributes_is_refused(small_table, small_schema, mode):
    with pytest.raises(ConfigError, match="only 5 attributes"):
        synthesize(small_table, small_schema, mode, omega="4-6")


def test_seedless_draws_all_attributes(small_table, small_schema):
    with pytest.raises(ConfigError, match="draws all attributes: leave --omega out, or use 5"):
        synthesize(small_table, small_schema, "seedless", omega="4")
    assert synthesize(small_table, small_schema, "seedless", omega="5").frame().height == 40


def test_a_prefix_of_length_0_needs_no_histogram(small_schema):
    """ω = m is paid for like seedless."""
    assert deniable.plan(small_schema, omega="5").privacy.seeds is None
    assert deniable.plan(small_schema, omega="4").privacy.seeds is not None


def test_one_shot_takes_one_omega(small_table, small_schema):
    """Not a range: it would pay for a histogram of each length."""
    with pytest.raises(ConfigError, match=r"a range is for --mode tested and randomized"):
        deniable.plan(small_schema, omega="2-3")
    with pytest.raises(ConfigError, match=r"--omega 2-3: .*one-shot takes one number or auto"):
        deniable.learn(small_table, small_schema, omega="2-3")


WIDE = Schema(
    (plain_attribute("wide", 40_000), plain_attribute("x", 2), plain_attribute("y", 3)),
    rows_max=1_000,
)


def coins(m, **more):
    attributes = tuple(plain_attribute(f"x{i}", 2) for i in range(m))
    return Schema(attributes, rows_max=1_000, **more)


def test_an_omega_whose_prefixes_cannot_be_listed_is_refused_before_a_row_is_read():
    """2^17 prefixes, in any order; 2^16 can be listed."""
    why = r"--omega 3: the 17 attributes .* 131,072 combinations.*--omega auto, or 4 or more"
    with pytest.raises(ConfigError, match=why):
        deniable.learn("a table that is not there.csv", coins(20), omega="3")
    assert deniable.plan(coins(20), omega="4").omegas == (4,)
    assert deniable.plan(coins(20), omega="3", mode="tested").omegas == (3,)


@pytest.mark.parametrize(
    "options", [{"order": ["wide", "x", "y"]}, {"graph": {"x": ["wide"], "y": ["wide"]}}]
)
def test_a_given_order_is_known_before_a_row_is_read(options):
    with pytest.raises(ConfigError, match=r"--omega 1: the 2 attributes .* 80,000 combinations"):
        deniable.plan(WIDE, omega="1", estimator="norm-sub", **options)
    assert deniable.plan(WIDE, omega="1", estimator="norm-sub").omegas == (1,)


@pytest.mark.parametrize("omega", ["1", "auto"])
def test_an_omega_that_the_learnt_order_makes_too_small_is_raised(omega):
    """The wide column has one value in the table: no entropy, so it is drawn first.

    A run that has spent its budget is not refused. What no order allows, a plan refuses.
    """
    rows = 400
    table = pl.DataFrame(
        {
            "wide": ["wide0"] * rows,
            "x": ["x0", "x1"] * (rows // 2),
            "y": ["y0", "y1", "y2", "y1"] * (rows // 4),
        }
    )
    options = {"estimator": "norm-sub", "epsilon": INF, "k": 2}
    artefact = deniable.learn(table, WIDE, omega=omega, **options)
    assert artefact.network.order[0] == 0
    assert artefact.omega == 2
    assert list(artefact.certificate.parameters["omega"]) == [2]
    assert artefact.generate(20, key=1).height == 20


@pytest.mark.parametrize("omega", ["1", "auto"])
def test_every_omega_will_do(small_table, small_schema, omega):
    release = synthesize(small_table, small_schema, "one-shot", 300, omega=omega, epsilon=INF)
    assert_fits(release.frame(), small_schema, 300)


# What a record kept


def test_what_a_one_shot_record_may_keep_is_shared_by_k_rows(
    small_table, small_schema, small_codes
):
    """Every kept prefix of the artefact, counted in the table; and they are what records hold."""
    order = ["home", "pet", "boats", "trade", "years"]
    graph = {"pet": ["home"]}
    artefact = deniable.learn(
        small_table, small_schema, k=20, omega="2", order=order, graph=graph, rows_max=2_000
    )
    kept = artefact.histogram
    shared = row_counts(small_codes, artefact.network.order[:3])
    assert all(shared[tuple(prefix)] >= 20 for prefix in kept.prefixes.tolist())
    assert len(kept.counts) > 0


# Ledger and plan


def many_attributes(m):
    """A table of binary columns, neighbours alike; and its schema."""
    rng = np.random.default_rng(m)
    columns = np.zeros((200, m), dtype=CODE)
    for i in range(m):
        before = columns[:, i - 1] if i else 0
        columns[:, i] = np.where(rng.random(200) < 0.7, before, rng.integers(0, 2, 200))
    schema = Schema(
        tuple(Attribute(name=f"x{i}", kind="categorical", values=("n", "y")) for i in range(m)),
        rows_max=1_000,
    )
    return Codec(schema).decode(np.asfortranarray(columns)), schema


@pytest.mark.parametrize("epsilon", [1.0, INF])
@pytest.mark.parametrize("m", [1, 2, 11, 61])
def test_the_ledger_is_the_plan_for_any_number_of_attributes(m, epsilon):
    """A run refuses otherwise; what is listed is what a second accountant expects of it.

    From 61 attributes on, a model is fitted with fewer records and steps.
    """
    table, schema = many_attributes(m)
    options = {"mode": "seedless", "epsilon": epsilon, "max_cost": 8, "delta": 1e-6}
    artefact = deniable.learn(table, schema, **options)
    planned = deniable.plan(schema, **options).privacy.spends
    listed = artefact.certificate.spends
    assert [spend["what"] for spend in listed] == [spend.what for spend in planned]
    if epsilon < INF:
        document = artefact.certificate.document(schema, {})
        claims = ManifestClaims(
            document=json.loads(encode_json(document)), subject="artefact", schema=schema
        )
        assert [check for check in run_manifest_checks(claims) if not check.passed] == []


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("mode", ["one-shot", "seedless"])
def test_a_table_that_says_nothing_gives_records_all_the_same(small_schema, mode, rows):
    """Ten runs of real noise on a few rows: no pair depends, some counts are below zero."""
    codes = np.zeros((rows, 5), dtype=CODE, order="F")
    table = Codec(small_schema).decode(codes)
    for _ in range(10):
        frame = deniable.synthesize(table, small_schema, records=5, mode=mode, epsilon=0.2).frame()
        assert_fits(frame, small_schema, 5)


# Several rows of one person


def with_persons(table, persons):
    """The table, its rows dealt to so many persons, in turn."""
    numbers = pl.Series("person", [row % persons for row in range(table.height)])
    return table.with_columns(numbers)


def schema_of_persons(small_schema, rows, **more):
    return Schema(
        (Identifier(name="person"), *small_schema.attributes),
        rows_max=10_000,
        unit="person",
        max_rows_per_unit=rows,
        **more,
    )


@pytest.mark.parametrize("mode", MODES)
def test_of_every_person_so_many_rows_count(small_table, small_schema, mode):
    """2,000 rows of 100 persons, three of each: 300 are used, by every mode and stage."""
    table = with_persons(small_table, 100)
    schema = schema_of_persons(small_schema, 3)
    release = synthesize(table, schema, mode, 5, epsilon=INF, k=2)
    assert release.frame().height == 5
    assert release.internal["rows"] == 300
    if release.artefact is not None:
        assert [int(counts.sum()) for counts in release.artefact.evidence.values] == [300] * 5


def test_one_person_with_many_rows_is_no_more_than_one_with_few(small_table, small_schema):
    """A person with 1,000 rows beside 1,000 with one each: at most two are counted."""
    numbers = [0] * 1_000 + list(range(1, 1_001))
    table = small_table.with_columns(person=pl.Series(numbers))
    artefact = deniable.learn(
        table, schema_of_persons(small_schema, 2), mode="seedless", epsilon=INF
    )
    assert int(artefact.evidence.values[0].sum()) == 1_002


def test_what_is_promised_is_promised_to_the_person(small_table, small_schema):
    schema = schema_of_persons(small_schema, 3)
    release = synthesize(with_persons(small_table, 100), schema, "seedless", 5, epsilon=1.0)
    assert "person" in release.guarantee
    assert "3" in release.guarantee
    document = release.certificate.document(schema, {})
    assert "person" in document["guarantee"]["unit"]
    assert release.certificate.cost.epsilon <= 1.0
    alone = sum(spend["epsilon"] for spend in release.certificate.spends)
    plain = synthesize(small_table, small_schema, "seedless", 5, epsilon=1.0)
    assert alone < 0.5 * sum(spend["epsilon"] for spend in plain.certificate.spends)


def test_rows_that_are_all_dropped_are_no_fault_where_there_are_persons(small_table, small_schema):
    first, *rest = small_schema.attributes
    dropping = replace(first, outside="drop")
    schema = Schema(
        (Identifier(name="person"), dropping, *rest),
        rows_max=10_000, unit="person", max_rows_per_unit=2,
    )  # fmt: skip
    table = with_persons(small_table.with_columns(years=pl.lit(7, dtype=pl.Int64)), 10)
    frame = synthesize(table, schema, "seedless", 5, epsilon=1.0).frame()
    assert frame.height == 5


# A draft that was bought


@pytest.mark.parametrize("mode", MODES)
def test_a_draft_that_leaves_nothing_is_refused_before_a_row_is_read(small_schema, mode):
    schema = replace(small_schema, draft=DraftCost(epsilon=1.0, delta=1e-10))
    with pytest.raises(BudgetError, match="nothing is left for the run"):
        synthesize("absent.csv", schema, mode, 5, epsilon=1.0)


# Constraints


FORBIDDEN = '[[constraint]]\nforbid = { "pet" = ["axolotl"], "home" = ["windmill"] }\n'
ORDERED = '[[constraint]]\nforbid = { "boats" = { above = 3 }, "years" = { below = 40 } }\n'


@pytest.fixture(scope="module")
def strict_schema(small_schema):
    return Schema.parse(small_schema.text() + "\n" + FORBIDDEN + "\n" + ORDERED)


def breaking(frame):
    """The records that no record may be like."""
    one = (pl.col("pet") == "axolotl") & (pl.col("home") == "windmill")
    two = (pl.col("boats") > 3) & (pl.col("years") < 40)
    return frame.filter(one | two)


@pytest.mark.parametrize("estimator", ["pairs", "norm-sub"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_releases_exactly_n_records_that_keep_the_constraints(
    small_table, strict_schema, mode, estimator
):
    """The table itself breaks them: its rows are never asked."""
    assert breaking(small_table).height > 20
    records = MOST.get(mode, 3_000)
    for epsilon in (1.0, INF):
        release = synthesize(
            small_table, strict_schema, mode, records, epsilon=epsilon, estimator=estimator
        )
        frame = release.frame()
        assert_fits(frame, strict_schema, records)
        assert breaking(frame).height == 0


@pytest.mark.parametrize("mode", MODES)
def test_constraints_cost_nothing(small_table, small_schema, strict_schema, mode):
    free, bound = (
        synthesize(small_table, schema, mode, 5) for schema in (small_schema, strict_schema)
    )
    assert free.certificate.spends == bound.certificate.spends
    assert free.certificate.cost == bound.certificate.cost
    assert free.guarantee == bound.guarantee


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "randomized"])
def test_constraints_that_nothing_keeps_end_with_advice(small_table, small_schema, mode):
    one = '[[constraint]]\nforbid = { "home" = ["houseboat"] }\n'
    two = '[[constraint]]\nforbid = { "home" = ["windmill"] }\n'
    schema = Schema.parse(small_schema.text() + "\n" + one + "\n" + two)
    with pytest.raises(SchemaError, match="check that they do not contradict each other"):
        synthesize(small_table, schema, mode, 5, epsilon=INF).frame()


# What must not happen


@pytest.mark.parametrize(
    ("mode", "estimator"), list(itertools.product(MODES, ["pairs", "norm-sub"]))
)
def test_a_stage_that_spends_otherwise_than_planned_stops_everything(
    small_table, small_schema, tmp_path, monkeypatch, mode, *, estimator
):
    """Less noise than planned for the counts: the ledger is not the plan, and nothing comes out."""
    learn_counts = learn_paper_model.learn_counts
    measure_pairwise = learn_model.measure_pairwise

    def cheat(rng, count_p, attributes, graph, _law):
        return learn_counts(rng, count_p, attributes, graph, discrete_laplace(2.0))

    def cheat_with_pairs(*args, **more):
        *before, laws = args
        args = (*before, replace(laws, interactions=rounded_gaussian(50.0)))
        return measure_pairwise(*args, **more)

    monkeypatch.setattr(learn_paper_model, "learn_counts", cheat)
    monkeypatch.setattr(learn_model, "measure_pairwise", cheat_with_pairs)
    with pytest.raises(
        InvariantError, match="ledger does not equal the plan, so nothing is released"
    ):
        synthesize(small_table, small_schema, mode, 5, estimator=estimator).write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_stage_that_spends_twice_stops_everything(small_table, small_schema, monkeypatch):
    learn_histogram = api.learn_histogram

    def twice(*args, **more):
        learn_histogram(*args, **more)
        histogram, spent = learn_histogram(*args, **more)
        return histogram, spent.__class__(**{**vars(spent), "l0_sensitivity": 2})

    monkeypatch.setattr(api, "learn_histogram", twice)
    with pytest.raises(InvariantError, match="ledger does not equal the plan"):
        synthesize(small_table, small_schema, "one-shot", 5)


def test_the_plan_is_refused_before_a_row_is_read(small_schema, monkeypatch):
    def read(*_):
        raise AssertionError("the table was read")

    monkeypatch.setattr(api, "read_table", read)
    for mode in ("one-shot", "tested"):
        with pytest.raises(BudgetError):
            synthesize("absent.csv", small_schema, mode, delta=0.0)
    with pytest.raises(BudgetError):
        deniable.synthesize("absent.csv", small_schema, records=10_000, mode="randomized")


def test_a_drafted_schema_is_refused_unless_it_is_accepted(small_table, small_schema):
    first, *rest = small_schema.attributes
    drafted = Schema((replace(first, confirmed=False), *rest), rows_max=10_000)
    for mode in MODES:
        with pytest.raises(SchemaError, match=r'for example "years"\. Check each'):
            synthesize(small_table, drafted, mode)
    release = synthesize(small_table, drafted, "seedless", accept_drafted_schema=True)
    document = release.certificate.document(drafted, {})
    assert document["schema"]["drafted"] == ["years"]


# What a run shows of itself


def test_what_is_printed_of_an_artefact_holds_no_counts(small_table, small_schema):
    artefact = deniable.learn(small_table, small_schema, epsilon=INF, **MODES["one-shot"])
    assert "array(" not in repr(artefact)
    assert not re.search(r"\b2000(\.0)?\b", repr(artefact))


def test_missing_cells_come_back_as_missing(small_table, small_schema):
    frame = synthesize(small_table, small_schema, "one-shot", 2_000, epsilon=INF).frame()
    assert 0 < frame["trade"].null_count() < 1_000
    assert small_table["trade"].null_count() > 0


def test_the_paper_s_profile_runs(small_table, small_schema):
    release = deniable.synthesize(
        small_table, small_schema, records=2, profile="paper", omega="2-4", delta=1e-6
    )
    assert release.certificate.mode == "randomized"
    assert release.certificate.profile == "paper"
    assert release.certificate.data_use == "split"
    assert_fits(release.frame(), small_schema, 2)


def test_definition_of_the_small_table(small_codes):
    """What the tests above rely on: attributes that hang together, and rare combinations."""
    pets, homes = small_codes[:, 4].tolist(), small_codes[:, 2].tolist()
    assert definitions.correlation(pets, homes) > 0.1
    assert min(row_counts(small_codes, range(5)).values()) == 1
    assert (small_codes.shape, small_codes.dtype) == ((2_000, 5), CODE)


def test_options_of_a_cluster_need_its_engine(small_schema):
    """Before the table is read."""
    for options in ({"master": "spark://h:7077"}, {"accept_open_cluster": True}):
        with pytest.raises(ConfigError, match="need --engine spark"):
            api.learn("/absent", small_schema, **options)


# Which rows are seeds: without noise, counts show it. A replay cannot, as it feeds answers back.

KEYS = 200
COPIED = ("key", "twin")


def schema_of_keys(**more):
    """A key, its twin, and a column to be drawn; every row, or every person, has its own key."""
    names = tuple(f"v{number}" for number in range(KEYS))
    columns = [Attribute(name=name, kind="categorical", values=names) for name in COPIED]
    columns.append(Attribute(name="drawn", kind="categorical", values=("a", "b")))
    person = (Identifier(name="person"),) if "unit" in more else ()
    return Schema((*person, *columns), rows_max=1_000, **more)


def table_of_keys(times=1):
    keys = [f"v{number}" for number in range(KEYS) for _ in range(times)]
    return pl.DataFrame({"person": keys, "key": keys, "twin": keys, "drawn": ["a"] * len(keys)})


# The model knows single columns only: a record has equal keys if a seed was copied.
OF_KEYS = {
    "epsilon": INF,
    "omega": 1,
    "estimator": "norm-sub",
    "graph": {"key": [], "twin": [], "drawn": []},
    "order": ["key", "twin", "drawn"],
}


def copied_keys(frame):
    return {key for key, twin in frame.select(COPIED).rows() if key == twin}


def parts_of_keys(noise):
    """The keys of D_P and of D_S, by the draws of the split and not by the path of a run."""
    run = deniable.plan(schema_of_keys(), mode="one-shot", data_use="split", **OF_KEYS)
    table, _ = read_codes(table_of_keys().drop("person"), schema_of_keys())
    parts = LocalRows(table).split({str(part): x for part, x in run.fractions.items()}, noise)
    return [set(parts[part].codes[:, 0].tolist()) for part in ("parameters", "seeds")]


@pytest.mark.parametrize("path", ["learn", "synthesize"])
def test_one_shot_counts_the_seeds_of_their_part_alone(path):
    noise = Keyed(5)
    counted, seeds = parts_of_keys(noise)
    options = {"mode": "one-shot", "data_use": "split", "k": 1, "noise": noise, **OF_KEYS}
    table, schema = table_of_keys().drop("person"), schema_of_keys()
    if path == "learn":
        artefact = deniable.learn(table, schema, **options)
    else:
        release = deniable.synthesize(table, schema, records=5, **options)
        assert release.artefact is not None
        artefact = release.artefact
    kept = artefact.histogram
    assert {(key, key) for key in seeds} == set(map(tuple, kept.prefixes.tolist()))
    assert set(kept.counts.tolist()) == {1}
    assert isinstance(artefact.evidence, TableCounts)
    counts = artefact.evidence.tables[0]
    assert isinstance(counts, np.ndarray)
    assert counted == set(np.flatnonzero(counts[0]).tolist())
    assert not counted & seeds
    assert len(counted) > 50 < len(seeds)


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_candidates_are_made_of_the_seeds_of_their_part_alone(mode):
    noise = Keyed(5)
    _, seeds = parts_of_keys(noise)
    options = {"mode": mode, "data_use": "split", "k": 1, "noise": noise, **OF_KEYS}
    table = table_of_keys().drop("person")
    frame = deniable.synthesize(table, schema_of_keys(), records=4_000, **options).frame()
    assert copied_keys(frame) == {f"v{key}" for key in seeds}


@pytest.mark.parametrize("mode", ["one-shot", "tested", "randomized"])
@pytest.mark.parametrize("used", [2, 3])
def test_seeds_are_counted_after_the_rows_of_a_person_are_bounded(mode, used):
    """Each person has five equal rows: the prefix is shared by as many as are used, not by five."""
    schema = schema_of_keys(unit="person", max_rows_per_unit=used)
    options = {"mode": mode, **OF_KEYS}
    if mode == "one-shot":
        kept = deniable.learn(table_of_keys(5), schema, k=1, **options).histogram
        assert set(kept.counts.tolist()) == {used}
        assert len(kept.counts) == KEYS
    elif mode == "tested":
        deniable.synthesize(table_of_keys(5), schema, records=5, k=used, **options)
        with pytest.raises(BudgetError, match="too few"):
            deniable.synthesize(table_of_keys(5), schema, records=5, k=used + 1, **options)
    else:
        by_k = {
            k: deniable.synthesize(table_of_keys(5), schema, records=500, k=k, **options).frame()
            for k in (used, used + 1)
        }
        equal = {
            k: frame.filter(pl.col("key") == pl.col("twin")).height for k, frame in by_k.items()
        }
        assert equal[used] == 500
        assert equal[used + 1] < 50
