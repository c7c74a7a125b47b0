"""What a manifest must say, worked out again from what it says."""

import copy

import pytest

from deniable.certificates import certify
from deniable.config import Config
from deniable.data.beside import Identifier
from deniable.data.schema import Schema
from deniable.release.claims import OF_PAIRS, Claims
from deniable.release.statements import check_claims
from deniable.spending import plan_run
from worlds import plain_attribute


def manifest(m: int, rows_max: int, epsilon: float) -> tuple[dict, Schema, int]:
    """The manifest of a run, and how many pairs its plan counts."""
    attributes = tuple(plain_attribute(f"x{i}", 3) for i in range(m))
    schema = Schema(attributes, rows_max=rows_max)
    config = Config.assemble({"epsilon": epsilon, "omega": "2", "mode": "tested"})
    run = plan_run(schema, config, records=5)
    made = certify(
        run, config, omegas=(2,), is_secret=True, schema=schema, extra={"records": 5, "order": []}
    )
    return made.document(schema, {}), schema, run.noise.pairs.measured


@pytest.mark.parametrize("m", [2, 5, 11, 40])
@pytest.mark.parametrize("rows_max", [1_000, 30_000, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_how_many_pairs_were_counted_follows_from_what_they_cost(m, rows_max, epsilon):
    document, schema, measured = manifest(m, rows_max, epsilon)
    claims = Claims(document=document, place="release", schema=schema)
    assert claims.pairs == (m * (m - 1) // 2, measured)
    listed = {use.what: use.moved for use in claims.uses}
    assert listed.get("pairs of attributes") == measured


@pytest.mark.parametrize("share", [-0.5, -0.1, 0.1])
@pytest.mark.parametrize(("m", "rows_max"), [(11, 30_000), (11, 10**6), (40, 300_000)])
def test_another_number_of_pairs_is_not_believed(m, rows_max, share):
    """Fewer, said with the same noise, would cost less: nothing but this number shows it."""
    document, schema, measured = manifest(m, rows_max, 0.1)
    step = round(share * measured)
    changed = copy.deepcopy(document)
    for spend in changed["spends"]:
        if spend["what"] in OF_PAIRS[1:]:
            spend["moved"] += step * (4 if spend["what"] == OF_PAIRS[2] else 1)
    claims = Claims(document=changed, place="release", schema=schema)
    assert claims.pairs[1] != measured + step


def asked(document, schema) -> list[str]:
    """What of a manifest is refused by the questions about its ledger and its noise."""
    claims = Claims(document=document, place="release", schema=schema)
    return [check.name for check in check_claims(claims) if not check.passed]


@pytest.mark.parametrize("rows_max", [5_000, 10**6])
@pytest.mark.parametrize("what", OF_PAIRS)
def test_pairs_that_share_their_budget_otherwise_are_refused(rows_max, what):
    """With more noise in one stage all would cost less, and no count shows how much that had."""
    document, schema, _ = manifest(11, rows_max, 0.5)
    assert "noise" not in asked(document, schema)
    listed = [spend for spend in document["spends"] if spend["what"] == what]
    for spend in listed:
        spend["law"] = {**spend["law"], "sigma": 1.01 * spend["law"]["sigma"]}
    assert ("noise" in asked(document, schema)) == bool(listed)


def test_noise_of_long_tables_is_accounted_for_alike_by_both():
    """200 rows a unit leave little for each: the seeds' table is long, and computed in doubles."""
    attributes = (*(plain_attribute(f"x{i}", 3) for i in range(6)), Identifier(name="who"))
    schema = Schema(attributes, unit="who", max_rows_per_unit=200)
    config = Config.assemble({"epsilon": 0.5, "omega": "3"})
    run = plan_run(schema, config)
    assert run.noise.seeds.r > 2**15
    made = certify(run, config, omegas=(3,), is_secret=True, schema=schema, extra={})
    assert "total cost" not in asked(made.document(schema, {}), schema)
