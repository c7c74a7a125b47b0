"""Claims of a manifest: the number of measured pairs is recomputed, errors are failed checks."""

import copy

import pytest

from deniable.verification.claims import PAIR_SPENDS, ManifestClaims, run_check
from releases import plan_manifest


@pytest.mark.parametrize("m", [2, 5, 11, 40])
@pytest.mark.parametrize("rows_max", [1_000, 30_000, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_number_of_measured_pairs_follows_from_their_cost(m, rows_max, epsilon):
    document, schema, measured = plan_manifest(m, rows_max, epsilon)
    claims = ManifestClaims(document=document, subject="release", schema=schema)
    assert claims.pair_counts == (m * (m - 1) // 2, measured)
    listed = {spend.what: spend.moved for spend in claims.spends}
    assert listed.get("pairs of attributes") == measured


@pytest.mark.parametrize("share", [-0.5, -0.1, 0.1])
@pytest.mark.parametrize(("m", "rows_max"), [(11, 30_000), (11, 10**6), (40, 300_000)])
def test_a_forged_number_of_pairs_is_not_accepted(m, rows_max, share):
    """Fewer pairs with the same noise would cost less, and nothing else would reveal it."""
    document, schema, measured = plan_manifest(m, rows_max, 0.1)
    step = round(share * measured)
    changed = copy.deepcopy(document)
    for spend in changed["spends"]:
        if spend["what"] in PAIR_SPENDS[1:]:
            spend["moved"] += step * (4 if spend["what"] == PAIR_SPENDS[2] else 1)
    claims = ManifestClaims(document=changed, subject="release", schema=schema)
    assert claims.pair_counts[1] != measured + step


def test_any_exception_is_a_failed_check():
    """A check that crashes has not passed."""

    def crash() -> str:
        raise RuntimeError("anything")

    answer = run_check("something", crash)
    assert not answer.passed
    assert "RuntimeError" in answer.explanation
