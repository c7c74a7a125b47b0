"""Checks of a manifest's form, sentence and parameters: forged manifests are refused."""

import copy
import json
import math
from typing import Any

import pytest

from deniable.errors import ArtefactError, VerificationError
from deniable.privacy.plan import SPLIT
from deniable.release.manifest import Certificate
from deniable.verification.claims import PAIR_SPENDS, THREE_WAY_SPEND, ManifestClaims, run_check
from deniable.verification.manifest_checks import run_manifest_checks
from deniable.verification.manifest_spend import ManifestSpend
from deniable.verification.verify import verify
from perturbation_model import PerturbationModel
from releases import SCHEMA, failed_checks, failing, forged, make, plan_manifest, refused
from tampering import changes


@pytest.mark.untraced
def test_every_change_breaks_the_checksum(release):
    """Changes with a corrected checksum are tested in ``test_verify.py``."""
    document = release.document("manifest.json")
    for part in ("parameters", "spends", "files", "schema"):
        for place, other in changes(document[part]):
            if place.endswith((" removed", ".extra")):
                continue
            claims = ManifestClaims(
                document=document | {part: other}, subject="release", schema=SCHEMA
            )
            form = next(check for check in run_manifest_checks(claims) if check.name == "manifest")
            assert not form.passed, f"{part}{place}"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"t": 1}, "ledger"),
        ({"dummies": 1}, "ledger"),
        ({"k": 299}, "ledger"),
        ({"epsilon0": 0.5}, "ledger"),
        ({"gamma": 4.0}, "parameters"),
        ({"records": 3}, "ledger"),
        ({"order": ["trade", "years", "home", "home"]}, "parameters"),
        ({"order": ["trade", "years", "home", "boat"]}, "parameters"),
        ({"omega": [2, 4]}, "parameters"),
        ({"omega": [5]}, "parameters"),
        ({"omega": []}, "parameters"),
    ],
)
def test_parameters_of_the_randomized_test_must_meet_its_theorem(randomized, change, found):
    parameters = randomized["parameters"] | change
    assert found in refused(randomized | {"parameters": parameters})


def test_a_range_of_omega_in_one_shot_is_refused(release):
    document = release.document("manifest.json")
    parameters = document["parameters"] | {"omega": [2, 3]}
    assert "parameters" in refused(document | {"parameters": parameters})


def test_a_file_manifest_of_a_mode_without_artefact_is_refused(randomized):
    claims = ManifestClaims(document=randomized, subject="file", schema=None)
    assert "manifest" in failed_checks(claims)


def test_a_claimed_cost_of_a_users_own_model_is_refused(tmp_path):
    model = PerturbationModel.of(SCHEMA.attributes, stay=0.5, step=2.0)
    folder = make(tmp_path, mode="tested", model=model, k=5)

    def claim(document):
        for place in (document["guarantee"], document["accountants"][0]):
            place["epsilon"], place["delta"] = 0.01, 1e-9

    assert verify(folder).passed
    assert "manifest" in failing(verify(forged(folder, claim)))


def test_a_data_split_of_the_default_estimator_is_refused(tmp_path):
    folder = make(tmp_path, mode="tested")

    def split(document):
        document["data_use"] = "split"
        document["parameters"]["fractions"] = dict(SPLIT)

    [found] = [
        check for check in verify(forged(folder, split)).failed if check.name == "parameters"
    ]
    assert "one of the paper's estimators" in found.explanation


PAPER = {"profile": "paper", "omega": "2-3", "records": 20}
CLIP = {"data_use": "split", "estimator": "clip"}
# Options of a release in mode tested, one of its parameters, and what a forger writes there.
FORGED_PARAMETERS: list[tuple[dict[str, Any], str, Any]] = [
    # Smaller fractions would make the same noise look cheaper.
    (CLIP, "fractions", {part: share / 10 for part, share in SPLIT.items()}),
    *(
        (PAPER, "paper_formula", costs)
        for costs in (
            {"model": {"epsilon": 2.0, "delta": 1e-6, "note": "Doe, 40, 50"}},
            {"model": {"epsilon": 2.0}},
            {"model": {"epsilon": 2.0, "delta": "Doe, 40, 50"}},
            {"model": {"epsilon": 2.0, "delta": 1e-6}, "records": {"epsilon": 2.0, "delta": 1e-6}},
            {},
        )
    ),
    *(
        ({"file_format": "parquet"}, "writer", writer)
        for writer in ("polars", "polars 1", f"polars {'9.' * 40}9", "Doe, 40, 50")
    ),
]


@pytest.mark.parametrize(("options", "name", "value"), FORGED_PARAMETERS)
def test_a_forged_parameter_is_refused(tmp_path, options, name, value):
    folder = make(tmp_path, mode="tested", **options)

    def change(document):
        assert document["parameters"][name] != value
        document["parameters"][name] = value

    assert verify(folder).passed
    assert "parameters" in failing(verify(forged(folder, change)))


@pytest.mark.parametrize(
    ("target", "passes"),
    [
        (["x1"], True),
        (["x1", "x0"], True),
        ([], False),
        (["x1", "x1"], False),
        (["John Doe, HIV positive"], False),
        ("x1", False),
        ({"x1": 1}, False),
        ([["x1"]], False),
        ([1], False),
    ],
)
def test_a_target_is_a_list_of_columns(target, passes):
    """By the manifest alone: neither a file of records nor a tested release has an artefact."""
    document, schema, _ = plan_manifest(3, 5_000, 1.0)
    document["parameters"].update(target=target, order=list(schema.names))
    claims = ManifestClaims(document=document, subject="release", schema=schema)
    checks = {check.name: check.passed for check in run_manifest_checks(claims)}
    assert checks["parameters"] == passes


def test_a_release_whose_delta_means_nothing_says_so(tmp_path):
    """A release with δ = 0.5 verified as PASS, and its sentence claimed a guarantee."""
    folder = make(tmp_path, mode="seedless", delta=1e-3, accept_large_delta=True)
    report = verify(folder)
    assert report.passed
    explained = next(check.explanation for check in report.checks if check.name == "sentence")
    assert "No meaningful guarantee" in explained
    document = json.loads((folder / "manifest.json").read_bytes())
    claimed = document["guarantee"]
    assert claimed["sentence"].startswith("No meaningful guarantee: ")
    praise = claimed["sentence"].partition("would satisfy it, too. ")[2]
    assert praise.startswith("The released artefact")
    assert "sentence" in refused(document | {"guarantee": claimed | {"sentence": praise}})


@pytest.mark.parametrize("forged_rows", [1, 5_000, 10_000_000])
def test_another_number_of_rows_does_not_take_the_sentence_away(forged_rows):
    """δ = 10⁻⁹ publishes two of the schema's 2,000,000,000 rows; 10,000,000 passed for unknown."""
    document, schema, _ = plan_manifest(3, 2 * 10**9, 1.0)
    claimed = document["guarantee"]
    warning, end, praise = claimed["sentence"].partition("would satisfy it, too. ")
    assert "of 2,000,000,000 rows" in warning + end
    document["guarantee"] = claimed | {"sentence": praise}
    assert "sentence" in refused(document, schema)
    document["parameters"]["rows_max"] = forged_rows
    assert "sentence" in refused(document, schema)


@pytest.mark.parametrize(("stated", "option"), [(2 * 10**9, 500), (500, 2 * 10**9)])
def test_the_larger_number_of_rows_of_schema_and_option_decides(stated, option):
    document, schema, _ = plan_manifest(3, stated, 1.0, rows_max=option)
    assert document["guarantee"]["sentence"].startswith("No meaningful guarantee")
    assert Certificate.of_document(document).caution.startswith("No meaningful guarantee")
    for claims in (
        ManifestClaims(document=document, subject="release", schema=schema),
        ManifestClaims(document=document, subject="file"),
    ):
        checks = {check.name: check.passed for check in run_manifest_checks(claims)}
        assert checks["sentence"]


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, "many", None, 10**400])
def test_a_manifest_without_a_number_of_rows_is_refused(rows):
    document, schema, _ = plan_manifest(3, 30_000, 1.0)
    document["parameters"]["rows_max"] = rows
    with pytest.raises(ArtefactError, match="rows_max of the manifest is no whole number"):
        Certificate.of_document(document)
    assert "parameters" in refused(document, schema)


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
    assert "ledger" in failed_checks(claims)


def test_any_exception_is_a_failed_check():
    """A check that crashes has not passed."""

    def crash() -> str:
        raise RuntimeError("anything")

    answer = run_check("something", crash)
    assert not answer.passed
    assert "RuntimeError" in answer.explanation


ENTRY = {
    "what": "seed prefixes",
    "part": "seeds",
    "law": {"name": "truncated_geometric", "epsilon": 0.5, "r": 30},
    "sensitivity": 1,
    "moved": 1,
    "times": 1,
    "each": None,
    "epsilon": 0.5,
    "delta": 1e-6,
}


def test_an_entry_is_parsed():
    use = ManifestSpend.parse(ENTRY)
    assert (use.law, use.scale, use.r, use.claimed) == (
        "truncated_geometric",
        (0.5, 30),
        30,
        (0.5, 1e-6),
    )
    assert ManifestSpend.parse({**ENTRY, "epsilon": "inf"}).claimed == (math.inf, 1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"law": {"name": "uniform", "epsilon": 0.5, "r": 30}},
        {"law": {"name": "truncated_geometric", "epsilon": 0.5}},
        {"law": {"name": "truncated_geometric", "epsilon": 0.5, "r": 30.0}},
        {"law": {"name": "truncated_geometric", "epsilon": 1, "r": 30}},
        {"law": {"name": "truncated_geometric", "epsilon": -0.5, "r": 30}},
        {"law": {"name": "truncated_geometric", "epsilon": 0.5, "r": 2**41}},
        {"sensitivity": 0},
        {"moved": True},
        {"times": 1.0},
        {"each": {"epsilon": 1.0}},
        {"epsilon": 1},
        {"epsilon": -1.0},
        {"delta": 2.0},
        {"more": 1},
    ],
)
def test_an_invalid_entry_is_refused(change):
    with pytest.raises(VerificationError):
        ManifestSpend.parse({**ENTRY, **change})
