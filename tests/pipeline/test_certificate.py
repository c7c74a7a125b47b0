"""The certificate of a run: what is claimed, and which parameters it lists."""

import math
from dataclasses import asdict, replace

import pytest

import deniable
from deniable.config import Config
from deniable.errors import InvariantError
from deniable.pipeline.certificate import NO_GUARANTEE, certify, claimed_cost
from deniable.pipeline.run_plan import Run, plan_run
from deniable.privacy.composition import Guarantee
from deniable.privacy.draft_mechanism import DraftMechanism
from deniable.randomness import Secret
from deniable.schema.draft_cost import DraftCost, StatedDraftNoise
from small_runs import INF, MODES, NOISE, synthesize


def certificate(schema, *, noise=None, records=None, own_model=False, omegas=(3,), **options):
    """The certificate of a run that was planned and not carried out."""
    config = Config.assemble(options)
    planned = plan_run(schema, config, records=records)
    run = Run(schema=schema, config=config, plan=planned, randomness=noise or Secret())
    return certify(run, omegas=omegas, extra={"records": records}, own_model=own_model)


# The claim


def test_a_claim_is_rounded_up_and_within_the_request():
    config = Config(epsilon=1.0, delta=1e-6)
    cost = Guarantee(epsilon=0.9876543217, delta=9.87654321e-7)
    found = claimed_cost(cost, config)
    assert cost.epsilon <= found.epsilon <= cost.epsilon * 1.0001
    assert cost.delta <= found.delta <= cost.delta * 1.0001
    assert found != cost
    exactly = Guarantee(epsilon=1.0, delta=1e-6)
    assert claimed_cost(Guarantee(epsilon=0.99999999999, delta=0.99999999999e-6), config) == exactly


@pytest.mark.parametrize(
    "cost", [Guarantee(epsilon=1.01, delta=1e-7), Guarantee(epsilon=0.5, delta=2e-6)]
)
def test_a_run_that_cost_more_than_requested_is_not_certified(cost):
    with pytest.raises(InvariantError, match="cost more than was requested"):
        claimed_cost(cost, Config(epsilon=1.0, delta=1e-6))


def test_the_paper_s_profile_claims_the_true_cost_however_large():
    config = Config.assemble({"profile": "paper", "epsilon": 1.0})
    assert claimed_cost(Guarantee(epsilon=7.0, delta=1e-3), config) == Guarantee(
        epsilon=7.0, delta=1e-3
    )


@pytest.mark.parametrize("rows_max", [100_000, 9_999_999, 10_000_000, 10_000_001])
def test_a_delta_means_nothing_for_a_number_of_rows_that_is_also_the_default(
    small_schema, rows_max
):
    schema = replace(small_schema, rows_max=rows_max)
    found = certificate(schema, delta=1e-5)
    assert found.sentence.startswith("No meaningful guarantee")
    assert found.caution.startswith("No meaningful guarantee")


def test_an_infinite_cost_is_no_guarantee():
    assert claimed_cost(Guarantee(epsilon=INF, delta=1e-9), Config(epsilon=INF)) == NO_GUARANTEE


@pytest.mark.parametrize("mode", MODES)
def test_noise_that_can_be_repeated_claims_nothing(small_schema, mode):
    """Only the system's randomness is secret; a keyed run must not look like a private one."""
    options = {**MODES[mode], "mode": mode, "records": 3}
    if mode == "seedless":
        options["omegas"] = (5,)
    private = certificate(small_schema, **options)
    keyed = certificate(small_schema, noise=NOISE, **options)
    assert private.claims_privacy
    assert private.assumptions
    assert not keyed.claims_privacy
    assert keyed.cost == NO_GUARANTEE
    assert keyed.assumptions == ()
    assert keyed.sentence.startswith("No privacy is claimed")


def test_a_model_of_the_user_s_own_has_no_epsilon_and_no_spends(small_schema):
    options = {"mode": "tested", "k": 20, "omega": "3"}
    own = certificate(small_schema, own_model=True, **options)
    assert own.spends == []
    assert own.cost == NO_GUARANTEE
    assert own.parameters["gamma"] == 4.0
    built_in = certificate(small_schema, **options)
    assert built_in.spends
    assert math.isfinite(built_in.cost.epsilon)
    assert "gamma" not in built_in.parameters


# Parameters


@pytest.mark.parametrize(
    ("options", "there", "absent"),
    [
        ({}, {"k", "threshold", "omega_known"}, {"alpha", "fractions", "gamma", "unit", "t"}),
        ({"mode": "seedless"}, {"omega"}, {"k", "omega_known", "threshold"}),
        ({"estimator": "norm-sub"}, {"alpha", "parameters"}, {"fractions"}),
        ({"data_use": "split", "estimator": "norm-sub"}, {"fractions", "alpha"}, {"target"}),
        ({"mode": "tested", "omega": "2-3", "omega_known": False}, {"gamma"}, {"threshold"}),
        (
            {"mode": "randomized", "records": 3, "k": 400, "delta": 1e-6},
            {"epsilon0", "t", "dummies", "gamma"},
            {"threshold"},
        ),
    ],
)
def test_parameters_are_those_that_apply(small_schema, options, there, absent):
    omegas = (5,) if options.get("mode") == "seedless" else (3,)
    found = certificate(small_schema, omegas=omegas, **options).parameters
    assert there <= set(found)
    assert not absent & set(found)
    assert found["omega"] == list(omegas)


def test_the_paper_s_formula_is_listed_and_not_claimed(small_schema):
    options = {"profile": "paper", "omega": "3", "delta": 1e-6}
    made = certificate(small_schema, records=2, **options)
    formula = made.parameters["paper_formula"]
    assert set(formula) == {"model", "records"}
    true = plan_run(small_schema, Config.assemble(options), records=2).cost
    assert made.cost.epsilon == pytest.approx(true.epsilon, rel=1e-4)
    assert "paper_formula" not in certificate(small_schema).parameters


# A private draft


def test_a_draft_is_composed_with_the_built_in_model_only(small_schema):
    """The cost of a model of the user's own is unknown: the draft has its own ε and δ, no total."""
    limit = Guarantee(epsilon=0.25, delta=1e-10)
    noise = StatedDraftNoise(**asdict(DraftMechanism.of(limit, columns=3)))
    schema = replace(small_schema, draft=DraftCost(epsilon=0.25, delta=1e-10, noise=noise))
    options = {"mode": "tested", "k": 20, "omega": "3"}
    own = certificate(schema, own_model=True, **options)
    assert own.parameters["draft"] == {"epsilon": 0.25, "delta": 1e-10}
    assert "the total covers" not in own.sentence
    built_in = certificate(schema, **options)
    assert built_in.parameters["draft"]["mu"] == noise.mu
    assert "the total covers" in built_in.sentence


def test_what_a_draft_cost_is_told_and_part_of_the_total(small_table, small_schema):
    schema = replace(small_schema, draft=DraftCost(epsilon=0.25, delta=1e-10))
    release = synthesize(small_table, schema, "seedless", 5, epsilon=1.0)
    assert release.certificate.parameters["draft"] == {"epsilon": 0.25, "delta": 1e-10}
    assert "drafted from this table" in release.guarantee
    assert 0.9 < release.certificate.cost.epsilon <= 1.0
    run = deniable.plan(schema, mode="seedless")
    assert run.privacy.cost.epsilon <= 0.75
