"""manifest.json: all documented fields, costs rounded up, nothing from the data without noise."""

import json
import math
import re
from decimal import Decimal
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable
from deniable.config import Config
from deniable.errors import InvariantError
from deniable.pipeline.certificate import claimed_cost
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend, compose_spends
from deniable.privacy.noise_laws import discrete_laplace, exact
from deniable.randomness import Keyed
from deniable.release.manifest import Certificate, json_number, ledger_entry, round_up
from perturbation_model import PerturbationModel
from worlds import property_test

pytestmark = pytest.mark.slow

# The documented fields of the manifest.
FIELDS = {
    *("format", "version", "mode", "profile", "data_use", "parameters", "guarantee", "spends"),
    *("accountants", "not_covered", "files", "schema", "checksum"),
}
OF_GUARANTEE = {"sentence", "epsilon", "delta", "unit", "neighbours", "assumptions"}
OF_SPEND = {"what", "part", "law", "sensitivity", "epsilon", "delta"}
MODES = [
    {"mode": "one-shot", "omega": "2"},
    {"mode": "seedless"},
    {"mode": "tested", "omega": "3", "k": 20},
    {"mode": "tested", "omega": "2-3", "omega_known": False, "k": 20},
    {"mode": "randomized", "omega": "3", "k": 400, "delta": 1e-6},
]
NOISE = Keyed(9)


def manifest_of(release):
    return json.loads(json.dumps(release.certificate.document(release.schema, {}), allow_nan=False))


def synthesize(table, schema, options, **more):
    options = {"data_use": "whole", "epsilon": 1.0, **options, **more}
    return deniable.synthesize(table, schema, records=5, **options)


@pytest.mark.parametrize("data_use", ["whole", "split"])
@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(map(str, options.values())))
def test_a_manifest_has_every_documented_field(small_table, small_schema, options, data_use):
    more = {"estimator": "norm-sub"} if data_use == "split" else {}
    release = synthesize(small_table, small_schema, options, data_use=data_use, **more)
    document = manifest_of(release)
    assert set(document) == FIELDS
    assert set(document["guarantee"]) == OF_GUARANTEE
    assert document["spends"]
    assert all(set(spend) >= OF_SPEND for spend in document["spends"])
    assert all(set(each) == {"name", "epsilon", "delta"} for each in document["accountants"])
    assert set(document["schema"]) == {"sha256", "drafted"}
    assert (document["mode"], document["data_use"]) == (options["mode"], data_use)
    assert (document["profile"], document["version"]) == ("default", version("deniable"))
    assert document["guarantee"]["neighbours"] == "adding or removing one input row"
    assert document["not_covered"]
    assert document["guarantee"]["assumptions"]


@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(map(str, options.values())))
def test_the_claim_never_exceeds_the_requested_budget(small_table, small_schema, options):
    document = manifest_of(synthesize(small_table, small_schema, options))
    claim = document["guarantee"]
    assert 0 < claim["epsilon"] <= 1.0
    assert claim["delta"] <= options.get("delta", 1e-9)
    assert f"ε = {claim['epsilon']!r}, δ = {claim['delta']!r}" in claim["sentence"]
    for total in document["accountants"]:
        assert (total["epsilon"], total["delta"]) == (claim["epsilon"], claim["delta"])
    assert all(spend["epsilon"] <= claim["epsilon"] for spend in document["spends"])


@pytest.mark.untraced
@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(map(str, options.values())))
def test_nothing_in_it_depends_on_the_rows(small_table, small_schema, options):
    """Same noise, another table, one row or 200 fewer: the same manifest to the last letter.

    The graph is given, as a learnt one follows from noisy values, and σ may show in the manifest.
    So does whether a prefix was kept, by its noisy count: one is, in each of these tables.
    """
    tables = [small_table, small_table.tail(1_999), small_table.head(1_800)]
    more = {"noise": NOISE, "graph": {"pet": ["home"]}}
    documents = [manifest_of(synthesize(t, small_schema, options, **more)) for t in tables]
    for document in documents:
        document["parameters"].pop("key", None)  # fresh each time, and public
        document.pop("checksum")  # of the key too
    assert documents[0] == documents[1] == documents[2]


@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(map(str, options.values())))
def test_the_number_of_rows_does_not_show(small_table, small_schema, options):
    """1,847 rows, with real noise: the number is nowhere in the manifest, in any notation."""
    release = synthesize(small_table.head(1_847), small_schema, options)
    assert not re.search(r"1[,_ ]?847", json.dumps(manifest_of(release)))


def test_parameters_that_do_not_apply_are_left_out(small_table, small_schema):
    seedless = manifest_of(synthesize(small_table, small_schema, MODES[1]))["parameters"]
    assert not {"k", "gamma", "epsilon0", "t", "threshold"} & set(seedless)
    one_shot = manifest_of(synthesize(small_table, small_schema, MODES[0]))["parameters"]
    assert one_shot["threshold"] > one_shot["k"] == 50
    assert one_shot["omega"] == [2]
    hidden = manifest_of(synthesize(small_table, small_schema, MODES[3]))["parameters"]
    assert (hidden["gamma"], hidden["omega_known"]) == (4.0, False)
    randomized = manifest_of(synthesize(small_table, small_schema, MODES[4]))["parameters"]
    assert {"epsilon0", "t", "dummies", "records", "k"} <= set(randomized)


def test_the_key_is_public_and_absent_where_seeds_are_real(small_table, small_schema):
    parameters = manifest_of(synthesize(small_table, small_schema, MODES[1], key=5))["parameters"]
    assert (parameters["key"], parameters["records"]) == (5, 5)
    parameters = manifest_of(synthesize(small_table, small_schema, MODES[2]))["parameters"]
    assert "key" not in parameters
    assert parameters["records"] == 5


# Infinity


@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(map(str, options.values())))
def test_without_noise_nothing_is_claimed_and_infinity_is_text(small_table, small_schema, options):
    document = manifest_of(synthesize(small_table, small_schema, options, epsilon=math.inf))
    claim = document["guarantee"]
    assert claim["epsilon"] == document["parameters"]["epsilon"] == "inf"
    assert claim["sentence"].startswith("No privacy is claimed: the model was learnt without noise")
    assert claim["assumptions"] == []
    assert [total["epsilon"] for total in document["accountants"]] == ["inf"]
    assert {spend["epsilon"] for spend in document["spends"]} == {"inf"}


@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(map(str, options.values())))
def test_known_noise_claims_nothing(small_table, small_schema, options):
    document = manifest_of(synthesize(small_table, small_schema, options, noise=NOISE))
    claim = document["guarantee"]
    assert claim["epsilon"] == "inf"
    assert claim["sentence"].startswith("No privacy is claimed: the noise came from a test source")
    assert claim["assumptions"] == []
    assert [total["epsilon"] for total in document["accountants"]] == ["inf"]
    assert "differentially private" not in json.dumps(document)
    assert "deniable given" not in json.dumps(document)


def test_a_users_own_model_has_no_cost(small_table, small_schema):
    """Nothing was learnt, so there is nothing to account for."""
    model = PerturbationModel.of(small_schema.attributes, stay=0.5, step=3.0)
    release = deniable.synthesize(
        small_table, small_schema, records=5, model=model, mode="tested", k=5
    )
    document = manifest_of(release)
    assert document["guarantee"]["epsilon"] == "inf"
    assert "(5, 4)-plausibly deniable" in document["guarantee"]["sentence"]
    assert "Nothing is claimed about what the model reveals" in document["guarantee"]["sentence"]
    assert document["spends"] == []
    assert {total["epsilon"] for total in document["accountants"]} <= {"inf"}


# The paper's profile


def test_the_papers_profile_records_its_formula_and_the_claim(small_table, small_schema):
    """The manifest calls it ``paper_formula``; only the true total is claimed."""
    release = deniable.synthesize(
        small_table, small_schema, records=1, profile="paper", omega="3", delta=1e-6
    )
    assert "paper_formula" in json.dumps(manifest_of(release))


# Reading it back


def test_a_certificate_round_trips(small_table, small_schema, tmp_path):
    release = synthesize(small_table, small_schema, MODES[0])
    document = release.certificate.document(small_schema, {"a": "0"})
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(document))
    document = json.loads(path.read_text())
    assert Certificate.of_document(document).document(small_schema, {"a": "0"}) == document


def test_infinity_is_read_back(small_table, small_schema, tmp_path):
    release = synthesize(small_table, small_schema, MODES[1], epsilon=math.inf)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(release.certificate.document(small_schema, {})))
    read = Certificate.of_document(json.loads(path.read_text()))
    assert read.cost == Guarantee(epsilon=math.inf, delta=0.0)
    assert not read.claims_privacy


# Rounding


@property_test
@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_number_is_rounded_up_to_six_digits_and_no_further(value):
    rounded = round_up(value)
    assert rounded >= value
    assert rounded <= value * (1 + 1.0001e-5)
    assert len(Decimal(repr(rounded)).normalize().as_tuple().digits) <= 6
    assert round_up(rounded) == rounded


@pytest.mark.parametrize("value", [0.0, math.inf, 0.5, 1e-9, 123456.0])
def test_a_number_of_six_digits_is_not_rounded(value):
    assert round_up(value) == value


def test_a_claim_is_rounded_up_but_not_above_the_requested_budget():
    """A cost just below the budget, rounded up to six digits, would exceed it."""
    cost = Guarantee(epsilon=0.12345671, delta=1.2345671e-7)
    asked = Config.assemble({"epsilon": 0.12345675, "delta": 1.2345675e-7})
    assert claimed_cost(cost, asked) == Guarantee(epsilon=0.12345675, delta=1.2345675e-7)
    assert claimed_cost(cost, Config(delta=1e-6)).epsilon == 0.123457
    with pytest.raises(InvariantError, match="more than was requested"):
        claimed_cost(cost, Config())
    assert claimed_cost(Guarantee(epsilon=math.inf, delta=0.0), asked).epsilon == math.inf


def test_only_infinity_becomes_text():
    assert [json_number(x) for x in (math.inf, 1.5, 3, "a", None)] == ["inf", 1.5, 3, "a", None]


def test_each_entry_is_a_spend_with_its_cost_alone_rounded_up():
    law = discrete_laplace(0.3)
    spend = Spend(what="counts of x", part="parameters", law=law)
    alone = compose_spends((spend,), delta=1e-9)
    entry = ledger_entry(spend, alone)
    assert entry["law"] == {"name": "discrete_laplace", "epsilon": 0.3}
    assert (entry["what"], entry["part"], entry["sensitivity"]) == ("counts of x", "parameters", 1)
    assert alone.epsilon <= entry["epsilon"] <= alone.epsilon * (1 + 1e-5)
    assert entry["delta"] == 1e-9


def test_entries_of_equal_noise_cost_the_same_and_each_keeps_its_name():
    spends = [
        Spend(what="a", part="seeds", law=exact()),
        Spend(what="b", part="seeds", law=discrete_laplace(0.3)),
        Spend(what="c", part="seeds", law=discrete_laplace(0.3), l0_sensitivity=2),
    ]
    costs = [compose_spends(spend.alone, delta=1e-9) for spend in spends]
    one, two, three = map(ledger_entry, spends, costs)
    assert [entry["what"] for entry in (one, two, three)] == ["a", "b", "c"]
    assert one["epsilon"] == "inf"
    assert 0.29 < two["epsilon"] < 0.31
    assert 0.58 < three["epsilon"] < 0.62
