"""Claims of a manifest: the stages of pairs are recomputed, errors are failed checks."""

import copy

import pytest

from deniable.verification.claims import (
    PAIR_SPENDS,
    THREE_WAY_SPEND,
    ManifestClaims,
    run_check,
)
from deniable.verification.manifest_checks import run_manifest_checks
from releases import plan_manifest


@pytest.mark.parametrize("m", [1, 2, 5, 11, 40, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_stages_of_pairs_follow_from_the_number_of_attributes(m, epsilon):
    document, schema, measured = plan_manifest(m, 30_000, epsilon)
    claims = ManifestClaims(document=document, subject="release", schema=schema)
    every = m * (m - 1) // 2
    stages = claims.pair_stages
    # Of 5 and 11 attributes, 15 in 100 tables can be given up for 10 and 165 triples.
    reserved = {5: 6, 11: 33}.get(m, 0)
    whats = (PAIR_SPENDS[0], THREE_WAY_SPEND, PAIR_SPENDS[1]) if reserved else PAIR_SPENDS
    assert tuple(stages) == (whats if every else ())
    assert list(stages.values())[-1:] == ([measured - reserved] if every else [])
    assert claims.reserved_tables == reserved
    listed = {spend.what: spend.moved for spend in claims.spends if spend.what in whats}
    assert listed == stages


@pytest.mark.parametrize("share", [-0.5, -0.1, 0.1])
@pytest.mark.parametrize("m", [11, 30])
@pytest.mark.parametrize("what", [*PAIR_SPENDS, THREE_WAY_SPEND])
def test_a_forged_number_of_pairs_is_not_accepted(m, what, share):
    """Fewer numbers with the same noise would cost less, and nothing else would reveal it."""
    document, schema, _ = plan_manifest(m, 30_000, 0.1)
    changed = copy.deepcopy(document)
    for spend in changed["spends"]:
        if spend["what"] == what:
            spend["moved"] += round(share * spend["moved"])
    claims = ManifestClaims(document=changed, subject="release", schema=schema)
    before = ManifestClaims(document=document, subject="release", schema=schema)
    assert claims.pair_stages == before.pair_stages
    assert "ledger" in [check.name for check in run_manifest_checks(claims) if not check.passed]


def test_any_exception_is_a_failed_check():
    """A check that crashes has not passed."""

    def crash() -> str:
        raise RuntimeError("anything")

    answer = run_check("something", crash)
    assert not answer.passed
    assert "RuntimeError" in answer.explanation
