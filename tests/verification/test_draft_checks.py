"""Manifests whose total composes a private draft with the run: forgeries without a schema."""

import copy
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from deniable.errors import VerificationError
from deniable.pipeline.api import learn
from deniable.privacy.composition import Guarantee
from deniable.privacy.draft_mechanism import DraftMechanism
from deniable.schema.schema import Schema
from deniable.verification.claims import ManifestClaims
from deniable.verification.draft_checks import check_composed_total, require_composed_draft
from deniable.verification.ledger_checks import run_ledger_checks
from deniable.verification.manifest_checks import _PARAMETER_RULES
from deniable.verification.second_accountant import (
    compute_epsilon,
    require_draft_noise,
    subtract_draft_errors,
)


def table(columns: int) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame({f"x{i}": rng.choice(["oak", "elm"], 2_000) for i in range(columns)})


def manifest(columns=3, **options):
    frame = table(columns)
    schema = Schema.parse(draft_schema(frame, draft_epsilon=1.0).text)
    artefact = learn(frame, schema, **({"epsilon": 4.0} | options))
    return artefact.certificate.document(schema, {})


@pytest.fixture(scope="module")
def document():
    return manifest()


def faults(document) -> list[str]:
    claims = ManifestClaims(document=document, subject="file")
    return [check.name for check in run_ledger_checks(claims) if not check.passed]


@pytest.mark.parametrize(
    "options",
    [
        {"columns": 1},
        {"columns": 2},
        {"columns": 8, "omega": "1"},
        {"columns": 8, "omega": "6", "epsilon": 1.5, "delta": 1e-6},
        {"columns": 3, "omega": "3"},
        {"columns": 3, "mode": "seedless", "epsilon": 16.0},
    ],
)
def test_honest_manifests_pass(options):
    document = manifest(**options)
    assert "mu" in document["parameters"]["draft"]
    assert faults(document) == []


def forged(document, **changes):
    made = copy.deepcopy(document)
    for path, value in changes.items():
        *folders, name = path.split("__")
        target = made
        for folder in folders:
            target = target[folder]
        target[name] = value
    return made


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters__unit": "who", "parameters__rows_per_unit": 10},
        {"parameters__estimator": "norm-sub"},
        {"mode": "randomized"},
        {"parameters__epsilon": 17.0},
        {"guarantee__epsilon": 3.999},
        {"parameters__draft__columns": 3_000},
        {"parameters__draft__columns": 0, "parameters__draft__text_delta": 0.0},
        {"parameters__draft__epsilon": 4.0},
        {"parameters__draft__delta": 1e-9},
    ],
)
def test_composition_where_the_rule_forbids_it_is_detected(document, changes):
    assert faults(document) == []
    assert "noise" in faults(forged(document, **changes))


def test_noise_that_is_not_that_of_the_drafts_cost_is_detected():
    limit = Guarantee(epsilon=0.4, delta=1e-10)
    own = DraftMechanism.of(limit, columns=7)

    def facts(noise: DraftMechanism):
        return {"epsilon": 0.4, "delta": 1e-10, **vars(noise)}

    require_draft_noise(facts(own))
    for wrong in (
        {"mu": own.mu * 1.001},
        {"mu": own.mu * 0.999},
        {"text_delta": 0.0},
        {"text_delta": own.text_delta / 14},
    ):
        with pytest.raises(VerificationError):
            require_draft_noise(facts(replace(own, **wrong)))


def test_texts_of_a_single_row_are_part_of_the_total(document):
    draft = document["parameters"]["draft"]
    left = subtract_draft_errors(4.0, 1e-9, draft)
    assert left[1] == pytest.approx(1e-9 - draft["text_delta"], rel=1e-12)
    claims = ManifestClaims(document=document, subject="file")
    assert (claims.cost_per_row.epsilon, claims.cost_per_row.delta) == left


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_what_is_left_is_what_the_plan_calibrates_the_run_for(delta):
    """With a large δ, ε for texts that are not shown is not negligible. The plan rounds δ down."""
    own = DraftMechanism.of(Guarantee(epsilon=0.3, delta=0.9 * delta), columns=4)
    planned = own.limit_without_texts(Guarantee(epsilon=1.0, delta=delta))
    epsilon, left = subtract_draft_errors(1.0, delta, vars(own))
    assert epsilon == pytest.approx(planned.epsilon, rel=1e-12)
    assert planned.delta <= left <= planned.delta * (1 + delta)
    assert epsilon < 1 - 0.2 * delta


def test_a_draft_that_hides_its_texts_is_detected():
    """A forged draft without columns would have no texts, and leave the whole δ to the run."""
    limit = Guarantee(epsilon=0.3, delta=1e-5)
    facts = {"epsilon": 0.3, "delta": 1e-5, **vars(DraftMechanism.of(limit, columns=4))}
    require_draft_noise(facts)
    with pytest.raises(VerificationError, match="at least one column"):
        require_draft_noise(facts | {"columns": 0, "text_delta": 0.0})


def test_less_noise_than_the_total_allows_is_detected(document):
    made = copy.deepcopy(document)
    for spend in made["spends"][1:]:
        if "sigma" in spend["law"]:
            spend["law"]["sigma"] *= 0.99
    claims = ManifestClaims(document=made, subject="file")
    with pytest.raises(VerificationError, match="draft and run cost"):
        check_composed_total(claims)


def test_seeds_that_cost_more_than_is_reserved_are_detected(document):
    made = copy.deepcopy(document)
    seeds = next(spend for spend in made["spends"] if spend["what"] == "seed prefixes")
    seeds["law"]["epsilon"] *= 1.2
    claims = ManifestClaims(document=made, subject="file")
    with pytest.raises(VerificationError, match="more than is reserved"):
        check_composed_total(claims)


def test_what_is_reserved_counts_even_without_seeds():
    """A seedless run has the noise of a run with seeds: options may be chosen after the draft."""
    document = manifest(mode="seedless")
    claims = ManifestClaims(document=document, subject="file")
    require_composed_draft(claims, document["parameters"]["draft"])
    alone = compute_epsilon(claims.spends, delta=claims.cost_per_row.delta)
    assert alone < claims.cost.epsilon
    assert math.isclose(alone, claims.cost.epsilon, rel_tol=0.02)


DRAFT = {"epsilon": 0.4, "delta": 1e-10}
NOISE = {"mu": 0.07, "columns": 3, "text_delta": 2.5e-11}
SELECTED = {"method": "selected states", "total_variation": 0.01}


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("draft", DRAFT, True),
        ("draft", DRAFT | NOISE, True),
        ("draft", DRAFT | {"mu": 0.07}, False),
        ("draft", DRAFT | NOISE | {"columns": 3.0}, False),
        ("draft", DRAFT | NOISE | {"columns": 0}, False),
        ("draft", DRAFT | NOISE | {"mu": -0.07}, False),
        ("draft", {"epsilon": 0.4}, False),
        ("inference", {"method": "exact"}, True),
        ("inference", {"method": "nearly exact"}, False),
        ("inference", {"method": "nearly exact", "cuts_constrained_bins": True}, True),
        ("inference", {"method": "nearly exact", "cuts_constrained_bins": 1}, False),
        ("inference", SELECTED, True),
        ("inference", SELECTED | {"total_variation": 1.5}, False),
        ("inference", SELECTED | {"method": "guessed"}, False),
    ],
)
def test_parameters_have_the_form_that_is_written(name, value, valid):
    assert _PARAMETER_RULES[name](value) is valid
