"""verify: every mode passes; whatever is changed is found; nothing confidential is said."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from deniable.data.schema import Schema
from deniable.errors import ConfigError, DataError, VerificationError
from deniable.model.perturbation import PerturbationModel
from deniable.model.synthesis import NetworkModel
from deniable.pipeline import generate, learn, synthesize
from deniable.privacy import audit
from deniable.randomness import Keyed
from deniable.release.manifest import sealed
from deniable.release.questions import check
from deniable.release.records import as_json, file_hash
from deniable.release.statements import Claims, check_claims
from deniable.release.storage import load
from deniable.release.verify import Report, verify
from tampering import Release, changes, unfound

SCHEMA = Schema.parse(
    """
format = 1
rows_max = 5_000

[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "fletcher", "wainwright", "chandler", "thatcher", "turner"]

[[attribute]]
name = "years"
type = "integer"
min = 0
max = 11
buckets = { width = 4 }
outside = "clip"

[[attribute]]
name = "home"
type = "categorical"
values = ["barge, moored", "yurt", "mill", "tower", "cave"]
missing = ["?", ""]

[[attribute]]
name = "boats"
type = "integer"
min = 1
max = 6
outside = "drop"
confirmed = false
"""
)
ROWS = 3_000
# Every attribute has some values so rare that they are never kept.
RARE = 0.02


def table(key: int = 1, rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(key)

    def column(size: int, shift: np.ndarray) -> np.ndarray:
        common = np.full(size, RARE)
        common[:3] += (1 - common.sum()) / 3
        return (rng.choice(size, rows, p=common) + shift) % size

    trade = column(6, np.zeros(rows, int))
    years = column(12, trade)
    home = column(6, trade // 3)
    boats = column(6, np.zeros(rows, int))
    columns = [np.asarray(c, dtype=np.uint16) for c in (trade, years, home, boats)]
    return SCHEMA.codec.decode(np.asfortranarray(np.stack(columns, axis=1)))


TABLE = table()
USUAL = {"epsilon": 2.0, "delta": 1e-6, "k": 100, "accept_drafted_schema": True}


def make(folder: Path, *, records: int = 300, file_format: str = "csv", **options: Any) -> Path:
    release = synthesize(TABLE, SCHEMA, records=records, **{**USUAL, **options})
    release.write(folder / "out", file_format=file_format)
    return folder / "out"


def failing(report: Report) -> list[str]:
    return [check.name for check in report.failed]


# Every mode

FEW = {"mode": "randomized", "records": 2, "k": 300, "delta": 1e-5}
MODES = {
    "one-shot": {},
    "one-shot, several lengths": {"omega": "1-3"},
    "one-shot, all drawn": {"omega": "4"},
    "one-shot, k = 1": {"k": 1},
    "one-shot, split": {"data_use": "split"},
    "one-shot, Parquet": {"file_format": "parquet"},
    "one-shot, graph given": {"graph": {"years": ["trade"]}},
    "one-shot, norm-sub": {"estimator": "norm-sub"},
    "one-shot, drawn": {"estimator": "norm-sub", "parameters": "drawn"},
    "one-shot, clip": {"estimator": "clip", "alpha": 0.5},
    "seedless": {"mode": "seedless"},
    "seedless, split": {"mode": "seedless", "data_use": "split"},
    "seedless, split, norm-sub": {"mode": "seedless", "data_use": "split", "estimator": "norm-sub"},
    "tested": {"mode": "tested"},
    "tested, range": {"mode": "tested", "omega": "2-4"},
    "tested, hidden": {"mode": "tested", "omega": "2-3", "omega_known": False},
    "tested, split": {"mode": "tested", "data_use": "split"},
    "tested, paper": {"mode": "tested", "profile": "paper", "omega": "2-3"},
    "randomized": FEW,
    "randomized, hidden": {**FEW, "omega": "2-3", "omega_known": False, "epsilon": 4.0},
    "randomized, norm-sub": {**FEW, "estimator": "norm-sub"},
    "randomized, split": {**FEW, "data_use": "split"},
    "randomized, paper": {**FEW, "profile": "paper", "omega": "2-3"},
    "without noise": {"epsilon": float("inf")},
}


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_a_release_of_every_mode_passes(tmp_path, options):
    report = verify(make(tmp_path, **options), against=TABLE)
    report.require()
    assert report.passed
    assert len(report.checks) >= 5


def test_an_artefact_and_the_files_generated_from_it_pass(tmp_path):
    artefact = learn(TABLE, SCHEMA, **USUAL)
    artefact.save(tmp_path / "artefact")
    verify(tmp_path / "artefact", against=TABLE).require()
    for name in ("records.csv", "records.csv.gz", "records.parquet"):
        generate(load(tmp_path / "artefact"), 100, key=1).write_file(tmp_path / name)
        verify(tmp_path / name).require()
        verify(tmp_path / f"{name}.manifest.json").require()


def test_records_by_a_model_of_the_users_pass(tmp_path):
    network = learn(TABLE, SCHEMA, **USUAL).network
    own = NetworkModel(network, (2,))
    folder = make(tmp_path, mode="tested", model=own, records=20)
    report = verify(folder, against=TABLE)
    report.require()
    assert "total cost" not in [check.name for check in report.checks]


def test_noise_of_a_test_source_claims_nothing_and_says_so(tmp_path):
    folder = make(tmp_path, noise=Keyed(1))
    report = verify(folder)
    report.require()
    assert "the release is confidential" in report.unknown[0]
    document = json.loads((folder / "manifest.json").read_bytes())
    document["guarantee"]["sentence"] = "All is private."
    (folder / "manifest.json").write_bytes(as_json(sealed(document)))
    assert failing(verify(folder)) == ["sentence"]


def test_files_without_a_claim_are_looked_at_as_files(tmp_path):
    artefact = learn(TABLE, SCHEMA, noise=Keyed(1), **USUAL)
    generate(artefact, 100, key=1).write_file(tmp_path / "records.csv")
    report = verify(tmp_path / "records.csv")
    report.require()
    assert [check.name for check in report.checks] == ["records.csv.manifest.json", "files"]


# One release, changed in every way


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Release:
    """A one-shot release with kept prefixes of two lengths, of a graph and its tables.

    That is the fastest to verify, and it is done some hundred times; ``test_trust.py`` has pairs.
    """
    folder = tmp_path_factory.mktemp("release")
    return Release(make(folder, omega="2-3", key=7, estimator="norm-sub"))


@pytest.fixture(scope="module")
def long_release(tmp_path_factory) -> Release:
    """The same with so many records that one seed more or less shows in them."""
    folder = tmp_path_factory.mktemp("long")
    some = {"omega": "2-3", "key": 7, "records": 20_000, "estimator": "norm-sub"}
    return Release(make(folder, **some, seeds_share=0.1))


def test_the_release_that_is_changed_below_passes_and_has_what_can_be_changed(long_release):
    verify(long_release.folder).require()
    artefact = load(long_release.folder / "artefact")
    assert all(len(level.counts) >= 3 for level in artefact.histogram.levels)
    # So the noisy total has an effect on what is generated.
    assert all(level.records > level.counts.sum() for level in artefact.histogram.levels)
    assert not long_release.is_found({})


def test_every_entry_of_the_manifest_that_is_changed_is_found(release):
    """Every number, text and list entry, one at a time."""
    assert unfound(release, "manifest.json") == []


def test_a_changed_entry_of_the_artefacts_manifest_is_found(release):
    """Every fifth of the same, the hashes put right."""
    assert unfound(release, "artefact/manifest.json", step=5) == []


def test_every_entry_of_an_artefact_that_is_changed_is_found(long_release):
    """The same; the noisy total of seeds is found by what is generated from it."""
    assert unfound(long_release, "artefact/artefact.json") == []


# Rewritten in both manifests, these stay within what a manifest may say: nothing refers to them
# but the other copy. They promise less, or nothing.
UNKNOWABLE = {
    *(".parameters.epsilon up", ".parameters.max_cost + 1", ".parameters.omega_known"),
    *(".parameters.max_cost - 1", ".parameters.rows_max + 1", ".parameters.rows_max - 1"),
}
# A change of one part in ten thousand is less than six digits and a grid can show.
TOO_SMALL = (".epsilon up", ".sigma up")
# Files differ between the two; of the counts of four attributes, one has its turn.
ALIKE = (".files", ".spends[3].", ".spends[4].", ".spends[5].")


def test_what_is_rewritten_in_both_manifests_is_found_by_the_numbers(release):
    """Here the two copies agree, so that only the second accountant and the files can tell."""
    outer, inner = release.document("manifest.json"), release.document("artefact/manifest.json")
    generated = {name: outer["parameters"][name] for name in ("records", "key")}
    passed = set()
    for place, other in changes({**inner, "files": {}}):
        if place.startswith(ALIKE) or (place.endswith(TOO_SMALL) and ".spends" in place):
            continue
        document = deepcopy(other)
        parameters = document.get("parameters")
        if isinstance(parameters, dict):
            document["parameters"] = parameters | generated
        both = {
            "manifest.json": as_json(document | {"files": outer["files"]}),
            "artefact/manifest.json": as_json(other | {"files": inner["files"]}),
        }
        if not release.is_found(both):
            passed.add(place)
    assert passed <= UNKNOWABLE, passed


@pytest.mark.parametrize(
    "name",
    [
        *("manifest.json", "schema.toml", "synthetic.csv", "artefact/manifest.json"),
        *("artefact/artefact.json", "artefact/schema.toml", "artefact/tables.npz"),
    ],
)
def test_a_changed_byte_is_found_in_every_file(long_release, name):
    """Bytes all over the file, the hashes put right.

    One exception: noisy counts of a configuration whose total is not above zero. They have no
    effect on any table or record, so nothing can tell what they were.
    """
    content = long_release.files[name]
    before = load(long_release.folder / "artefact")
    for at in np.linspace(0, len(content) - 1, 40).astype(int).tolist():
        other = bytearray(content)
        other[at] ^= 1
        if long_release.is_found({name: bytes(other)}):
            continue
        assert name == "artefact/tables.npz", f"byte {at}"
        (long_release.folder / name).write_bytes(bytes(other))
        after = load(long_release.folder / "artefact")
        (long_release.folder / name).write_bytes(content)
        assert all(map(np.array_equal, after.histogram.levels, before.histogram.levels))
        pairs = zip(after.network.tables, before.network.tables, strict=True)
        assert all(np.array_equal(a.probabilities, b.probabilities) for a, b in pairs)


@pytest.mark.parametrize("name", ["synthetic.csv", "artefact/tables.npz", "schema.toml"])
def test_a_changed_file_is_found_by_its_hash(release, name):
    (release.folder / name).write_bytes(release.files[name] + b"\n")
    try:
        report = verify(release.folder)
    finally:
        (release.folder / name).write_bytes(release.files[name])
    assert "files" in failing(report)


def test_files_that_are_missing_or_not_listed_are_found(tmp_path):
    folder = make(tmp_path)
    (folder / "notes.txt").write_text("hello")
    assert failing(verify(folder)) == ["files"]
    (folder / "notes.txt").unlink()
    (folder / "link").symlink_to(folder / "schema.toml")
    assert failing(verify(folder)) == ["files"]
    (folder / "link").unlink()
    (folder / "synthetic.csv").unlink()
    assert failing(verify(folder)) == ["files", "records"]
    (folder / "schema.toml").unlink()
    assert failing(verify(folder)) == ["schema.toml"]


def test_cells_of_a_parquet_file_that_are_changed_are_found(tmp_path):
    """A value beyond the range, that reading a table would bring back into it, too."""
    folder = make(tmp_path, file_format="parquet")
    frame = pl.read_parquet(folder / "synthetic.parquet")
    row = frame["years"].arg_max()
    outside = frame.with_columns(
        years=pl.when(pl.int_range(pl.len()) == row).then(99).otherwise(pl.col("years"))
    )
    swapped = frame.select(reversed(frame.columns))
    for changed, check_name in ((outside, "records"), (swapped, "records"), (frame[::-1], "again")):
        other = Release(folder)
        changed.write_parquet(folder / "synthetic.parquet")
        document = other.document("manifest.json")
        document["files"]["synthetic.parquet"] = file_hash(folder / "synthetic.parquet")
        (folder / "manifest.json").write_bytes(as_json(sealed(document)))
        assert [name for name in failing(verify(folder)) if check_name in name]


def test_generated_records_that_are_changed_are_found(tmp_path):
    artefact = learn(TABLE, SCHEMA, **USUAL)
    for name in ("a.csv", "a.parquet"):
        file, beside = tmp_path / name, tmp_path / f"{name}.manifest.json"
        generate(artefact, 100, key=1).write_file(file)
        document = json.loads(beside.read_bytes())
        frame = generate(artefact, 99, key=1).frame()
        frame.write_csv(file) if name.endswith("csv") else frame.write_parquet(file)
        assert failing(verify(file)) == ["files", "records"]
        document["files"][name] = file_hash(file)
        beside.write_bytes(as_json(sealed(document)))
        assert failing(verify(file)) == ["records"]


# The second accountant's no


@pytest.fixture(scope="module")
def randomized(tmp_path_factory) -> dict[str, Any]:
    folder = make(tmp_path_factory.mktemp("randomized"), **FEW)
    return json.loads((folder / "manifest.json").read_bytes())


def refused(document: dict[str, Any]) -> list[str]:
    claims = Claims(document=sealed(document), place="release", schema=SCHEMA)
    return [check.name for check in check_claims(claims) if not check.passed]


def cheaper(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """Claim another ε, consistently: in the claim, the accountant's total and the sentence."""
    text = json.dumps(document, ensure_ascii=False)
    epsilon = document["guarantee"]["epsilon"]
    return json.loads(text.replace(repr(epsilon), repr(round(epsilon * factor, 5))))


def test_a_change_is_found_by_the_checksum_where_nothing_else_could(release):
    """Not one that puts it right: that is for the tests above."""
    document = release.document("manifest.json")
    for part in ("parameters", "spends", "files", "schema"):
        for place, other in changes(document[part]):
            if place.endswith((" removed", ".extra")):
                continue
            claims = Claims(document=document | {part: other}, place="release", schema=SCHEMA)
            form = next(check for check in check_claims(claims) if check.name == "manifest")
            assert not form.passed, f"{part}{place}"


def test_a_claim_that_is_too_low_too_high_or_above_the_limit_is_refused(release):
    document = release.document("manifest.json")
    assert refused(document) == []
    assert refused(cheaper(document, 0.999)) == ["total cost"]
    assert refused(cheaper(document, 1.0005)) == []
    assert refused(cheaper(document, 1.03)) == ["total cost", "limit"]


def test_less_noise_than_the_claim_needs_is_refused(release):
    document = release.document("manifest.json")
    for spend in document["spends"]:
        if spend["what"].startswith("counts of"):
            spend["law"] = {
                name: v if name == "name" else v * 0.9 for name, v in spend["law"].items()
            }
    assert refused(document) == ["own costs", "total cost"]


def test_a_spend_that_is_missing_doubled_or_renamed_is_refused(release):
    document = release.document("manifest.json")
    spends = document["spends"]
    for other in (spends[1:], spends[:-1], [*spends, spends[-1]], spends[::-1]):
        assert "ledger" in refused(document | {"spends": other})
    renamed = [spends[0], *spends[1:-1], spends[-1] | {"part": "structure"}]
    assert "ledger" in refused(document | {"spends": renamed})


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
def test_parameters_of_the_randomized_test_are_held_to_its_theorem(randomized, change, found):
    parameters = randomized["parameters"] | change
    assert found in refused(randomized | {"parameters": parameters})


def test_tests_added_to_the_model_are_not_too_dear(randomized):
    """A great many tests are added to the model's cost where composing them takes too long."""
    document = deepcopy(randomized)
    document["parameters"]["epsilon"] = 4.0
    cost, uses = document["guarantee"], Claims(document=document, place="release").uses
    parts = uses[-1:], uses[:-1]
    added = sum(audit.epsilon_of(part, delta=cost["delta"] / 2) for part in parts)
    factor = added / cost["epsilon"]
    assert factor > 1 + 2 * audit.ABOVE
    assert refused(cheaper(document, factor)) == []
    assert refused(cheaper(document, factor * (1 + 2 * audit.ABOVE))) == ["total cost"]


def test_a_manifest_of_a_mode_without_artefact_beside_a_file_is_refused(randomized):
    claims = Claims(document=randomized, place="file", schema=None)
    names = [check.name for check in check_claims(claims) if not check.passed]
    assert "manifest" in names


# The table


def test_kept_prefixes_that_too_few_rows_share_are_found(tmp_path):
    folder = make(tmp_path)
    report = verify(folder, against=TABLE.head(5))
    assert failing(report) == ["kept prefixes in the table"]
    other = verify(folder, against=pl.concat([TABLE, TABLE]))
    assert failing(other) == ["kept prefixes in the table"]
    assert "further than r" in other.failed[0].explanation
    for value in SCHEMA.attributes[0].values:
        assert str(value) not in report.failed[0].explanation


def test_under_a_split_only_the_number_of_rows_is_held_against_the_table(tmp_path):
    folder = make(tmp_path, data_use="split")
    verify(folder, against=pl.concat([TABLE, TABLE])).require()


def test_records_that_would_not_pass_the_test_again_are_found(tmp_path):
    folder = make(tmp_path, mode="tested", omega="2")
    assert failing(verify(folder, against=TABLE.head(5))) == ["tested again"]


def test_a_table_of_another_schema_is_no_fault_of_the_release(tmp_path):
    folder = make(tmp_path)
    with pytest.raises(DataError):
        verify(folder, against=TABLE.drop("home"))


def test_what_cannot_be_looked_at_without_the_table_is_said(tmp_path):
    report = verify(make(tmp_path, mode="tested"))
    assert any("--against" in sentence for sentence in report.unknown)
    assert any("max_cost" in sentence for sentence in report.unknown)
    seedless = verify(make(tmp_path / "seedless", mode="seedless"))
    assert not any("--against" in sentence for sentence in seedless.unknown)


# What is no release


def test_a_place_without_a_release_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="neither"):
        verify(tmp_path / "nowhere")
    (tmp_path / "records.csv").write_text("a\n1\n")
    with pytest.raises(ConfigError, match="no manifest beside it"):
        verify(tmp_path / "records.csv")
    (tmp_path / "records.csv.manifest.json").write_text("[]\n")
    with pytest.raises(ConfigError, match="artefact"):
        verify(tmp_path / "records.csv", against=TABLE)
    with pytest.raises(ConfigError, match="neither a release nor an artefact"):
        verify(tmp_path)
    (tmp_path / "manifest.json").write_text("[]\n")
    assert failing(verify(tmp_path)) == ["manifest.json", "schema.toml"]


def test_an_artefact_that_cannot_be_read_is_found(tmp_path):
    folder = make(tmp_path)
    (folder / "artefact" / "tables.npz").write_bytes(b"PK")
    report = verify(folder)
    assert {"files", "artefact", "artefact's manifest"} == set(failing(report))


def test_the_error_lists_every_answer_that_is_no(tmp_path):
    folder = make(tmp_path)
    (folder / "notes.txt").write_text("hello")
    with pytest.raises(VerificationError, match=r"not what its manifest says.*\n  files: "):
        verify(folder).require()


def test_whatever_goes_wrong_is_a_no():
    """A verifier that stumbles has not verified."""

    def stumble() -> str:
        raise RuntimeError("anything")

    answer = check("something", stumble)
    assert not answer.passed
    assert "RuntimeError" in answer.explanation


def test_a_schema_that_is_not_as_the_product_writes_it_is_found(tmp_path):
    folder = make(tmp_path, mode="tested")
    path = folder / "schema.toml"
    path.write_text(path.read_text() + "# public\n")
    assert failing(verify(folder)) == ["schema.toml", "files"]
    drafted = replace(SCHEMA.attributes[0], confirmed=False)
    Schema((drafted, *SCHEMA.attributes[1:]), rows_max=SCHEMA.rows_max).write(path)
    assert failing(verify(folder)) == ["files", "schema in manifest"]


def forged(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the manifest, and write it as the product would."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_bytes(as_json(sealed(document)))
    return folder


def test_a_model_of_the_users_that_is_said_to_have_a_cost_is_refused(tmp_path):
    model = PerturbationModel.of(SCHEMA.attributes, stay=0.5, step=2.0)
    folder = make(tmp_path, mode="tested", model=model, k=5)

    def claim(document):
        for place in (document["guarantee"], document["accountants"][0]):
            place["epsilon"], place["delta"] = 0.01, 1e-9

    assert verify(folder).passed
    assert "manifest" in failing(verify(forged(folder, claim)))


def test_other_probabilities_of_the_parts_than_ours_are_refused(tmp_path):
    """Smaller ones would make the same noise look cheaper."""
    folder = make(tmp_path, mode="tested", data_use="split")

    def shrink(document):
        parts = document["parameters"]["fractions"]
        document["parameters"]["fractions"] = {part: p / 10 for part, p in parts.items()}

    assert verify(folder).passed
    assert "parameters" in failing(verify(forged(folder, shrink)))
