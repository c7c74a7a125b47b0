"""Checks of a manifest's ledger: missing spends, too little noise and wrong costs are refused."""

from copy import deepcopy
from itertools import product

import pytest

from deniable.config import Config
from deniable.pipeline.certificate import certify
from deniable.pipeline.run_plan import Run, plan_run
from deniable.randomness import Secret
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from deniable.verification import second_accountant
from deniable.verification.claims import PAIR_SPENDS, THREE_WAY_SPEND, ManifestClaims
from releases import cheaper, plan_manifest, refused
from worlds import plain_attribute

pytestmark = pytest.mark.slow


def test_a_claim_too_low_too_high_or_above_the_budget_is_refused(release):
    document = release.document("manifest.json")
    assert refused(document) == []
    assert refused(cheaper(document, 0.999)) == ["total cost"]
    assert refused(cheaper(document, 1.0004)) == []
    assert refused(cheaper(document, 1.03)) == ["total cost", "requested budget"]


def test_less_noise_than_the_claim_needs_is_refused(release):
    document = release.document("manifest.json")
    for spend in document["spends"]:
        if spend["what"].startswith("counts of"):
            spend["law"] = {
                name: v if name == "name" else v * 0.9 for name, v in spend["law"].items()
            }
    assert refused(document) == ["cost of each spend", "total cost"]


def test_a_missing_duplicated_or_renamed_spend_is_refused(release):
    document = release.document("manifest.json")
    spends = document["spends"]
    for other in (spends[1:], spends[:-1], [*spends, spends[-1]], spends[::-1]):
        assert "ledger" in refused(document | {"spends": other})
    renamed = [spends[0], *spends[1:-1], spends[-1] | {"part": "structure"}]
    assert "ledger" in refused(document | {"spends": renamed})


def test_the_cost_of_tests_may_be_added_to_the_models(randomized):
    """The first accountant adds them where composing very many tests would take too long."""
    document = deepcopy(randomized)
    document["parameters"]["epsilon"] = 4.0
    cost, spends = (
        document["guarantee"],
        ManifestClaims(document=document, subject="release").spends,
    )
    parts = spends[-1:], spends[:-1]
    added = sum(second_accountant.compute_epsilon(part, delta=cost["delta"] / 2) for part in parts)
    factor = added / cost["epsilon"]
    assert factor > 1 + 2 * second_accountant.MAX_EXCESS
    assert refused(cheaper(document, factor)) == []
    assert refused(cheaper(document, factor * (1 + 2 * second_accountant.MAX_EXCESS))) == [
        "total cost"
    ]


@pytest.mark.parametrize(("m", "what"), [*product([2, 11, 40], PAIR_SPENDS), (11, THREE_WAY_SPEND)])
@pytest.mark.parametrize("factor", [0.99, 1.01, 2.0])
def test_another_split_of_the_pairs_budget_is_refused(m, what, factor):
    """More noise in one stage would cost less, and no count reveals that stage's noise."""
    document, schema, _ = plan_manifest(m, 5_000, 0.5)
    assert "noise" not in refused(document, schema)
    (spend,) = (spend for spend in document["spends"] if spend["what"] == what)
    spend["law"] = {**spend["law"], "sigma": factor * spend["law"]["sigma"]}
    assert "noise" in refused(document, schema)


def without_interactions(document):
    """Hide the interactions: their cost is not claimed, and tables seem to have all of it."""
    kept = [spend for spend in document["spends"] if spend["what"] != PAIR_SPENDS[0]]
    return {**document, "spends": kept}


@pytest.mark.parametrize("m", [2, 11, 40])
def test_hidden_interactions_are_refused(m):
    """Also by a manifest of a file, which has no artefact to compare with."""
    document, schema, _ = plan_manifest(m, 5_000, 0.5)
    hidden = without_interactions(document)
    assert "noise" in refused(hidden, schema)
    for spend in hidden["spends"]:
        if spend["what"] == PAIR_SPENDS[1]:
            spend["law"] = {**spend["law"], "sigma": 0.7 * spend["law"]["sigma"]}
    assert "noise" in refused(hidden, schema)


def test_hidden_three_way_interactions_are_refused():
    """Also if two-way tables claim to be all that there could be, and to have all of the budget."""
    document, schema, tables = plan_manifest(11, 5_000, 0.5)
    kept = [spend for spend in document["spends"] if spend["what"] != THREE_WAY_SPEND]
    hidden = {**document, "spends": kept}
    assert "noise" in refused(hidden, schema)
    for spend in hidden["spends"]:
        if spend["what"] == PAIR_SPENDS[1]:
            spend["moved"] = tables
    assert "noise" in refused(hidden, schema)


def test_interactions_that_would_need_too_much_noise_are_omitted():
    """Two-way tables then have the whole budget of pairs."""
    document, schema, _ = plan_manifest(11, 5_000, 1e-4)
    whats = [spend["what"] for spend in document["spends"]]
    assert (PAIR_SPENDS[0] in whats, PAIR_SPENDS[1] in whats) == (False, True)
    failed = refused(document, schema)
    assert "noise" not in failed
    assert "ledger" not in failed


def test_both_accountants_agree_on_long_noise_tables():
    """200 rows per unit need much noise: the seeds' noise table is long, in double precision."""
    attributes = (*(plain_attribute(f"x{i}", 3) for i in range(6)), Identifier(name="who"))
    schema = Schema(attributes, unit="who", max_rows_per_unit=200)
    config = Config.assemble({"epsilon": 0.5, "omega": "3"})
    run = plan_run(schema, config)
    assert run.privacy.seeds.radius > 2**15
    made = certify(
        Run(schema=schema, config=config, plan=run, randomness=Secret()), omegas=(3,), extra={}
    )
    assert "total cost" not in refused(made.document(schema, {}), schema)
