"""A release of values and pairs, changed in every way: verify finds it, and says yes to no more."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from deniable.data.schema import Schema
from deniable.pipeline import generate, learn, synthesize
from deniable.release import trust
from deniable.release.manifest import sealed
from deniable.release.records import as_json, file_hash, pack
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
"""
)


def table(rows: int = 3_000) -> pl.DataFrame:
    """Years and home follow trade."""
    rng = np.random.default_rng(5)
    trade = rng.choice(6, rows, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    years = np.clip(rng.binomial(11, 0.1 + 0.14 * trade), 0, 11)
    home = np.where(rng.random(rows) < 0.7, trade % 6, rng.integers(0, 6, rows))
    boats = rng.integers(0, 6, rows)
    columns = np.stack([trade, years, home, boats], axis=1)
    return SCHEMA.codec.decode(np.asfortranarray(columns.astype(np.uint16)))


TABLE = table()
# Few configurations, so that a fit, which every verification makes, takes little time.
USUAL = {"epsilon": 4.0, "delta": 1e-6, "k": 50, "omega": "2", "max_cost": 12}


def make(folder: Path, *, records: int = 300, file_format: str = "csv", **options: Any) -> Path:
    release = synthesize(TABLE, SCHEMA, records=records, key=7, **{**USUAL, **options})
    release.write(folder / "out", file_format=file_format)
    return folder / "out"


def failing(report: Report) -> list[str]:
    return [check.name for check in report.failed]


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Release:
    """So many records that one seed more or less shows in them."""
    return Release(make(tmp_path_factory.mktemp("pairs"), records=20_000))


@pytest.fixture(scope="module")
def parquet(tmp_path_factory) -> Release:
    return Release(make(tmp_path_factory.mktemp("parquet"), file_format="parquet"))


def arrays_in(release: Release) -> dict[str, np.ndarray]:
    with np.load(release.folder / "artefact" / "tables.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def test_the_release_that_is_changed_below_passes_and_has_what_can_be_changed(release):
    verify(release.folder, against=TABLE).require()
    kinds = {name.partition("_")[0] for name in arrays_in(release)}
    of_pairs = {"values", "bins", "pair", "again", "groups"}
    assert kinds == of_pairs | {"probabilities", "prefixes", "seeds"}
    assert not release.is_found({})


# Arrays


def other_elements(array: np.ndarray) -> list[np.ndarray]:
    """The array with its first element changed by one, and its last."""
    changed = []
    for place in (0, -1):
        other = array.copy()
        flat = other.reshape(-1)
        flat[place] = int(flat[place]) + (-1 if flat[place] > 0 else 1)
        changed.append(other)
    return changed


def exchanged(array: np.ndarray) -> list[np.ndarray]:
    """Two unequal probabilities of one row exchanged: each row is a distribution still."""
    other = array.copy()
    row = other[-1]
    low, high = int(row.argmin()), int(row.argmax())
    row[[low, high]] = row[[high, low]]
    return [other] if low != high else []


@pytest.mark.parametrize(
    "kind", ["values", "bins", "pair", "again", "groups", "probabilities", "prefixes", "seeds"]
)
def test_a_changed_element_is_found_in_every_kind_of_array(release, kind):
    """One more or less, or two exchanged; in two arrays of each kind, hashes put right."""
    arrays = arrays_in(release)
    names = [name for name in arrays if name.startswith(kind)]
    tried = 0
    for name in {names[0], names[-1]}:
        array = arrays[name]
        others = exchanged(array) if kind == "probabilities" else other_elements(array)
        for other in others:
            tried += 1
            packed = pack({**arrays, name: other})
            assert release.is_found({"artefact/tables.npz": packed}), name
    assert tried > 0


def test_an_array_that_is_added_or_moved_is_found(release):
    arrays = arrays_in(release)
    assert release.is_found({"artefact/tables.npz": pack({**arrays, "more": np.zeros(3)})})
    turned = dict(reversed(arrays.items()))
    assert release.is_found({"artefact/tables.npz": pack(turned)})


def test_tables_of_two_attributes_that_were_exchanged_are_found(release):
    """Noisy counts that were paid for, under another name."""
    arrays = arrays_in(release)
    one, two = (name for name in arrays if name in ("values_0", "values_2"))
    assert arrays[one].shape == arrays[two].shape
    swapped = {**arrays, one: arrays[two], two: arrays[one]}
    assert release.is_found({"artefact/tables.npz": pack(swapped)})


# Documents

# Nothing refers to it: where tables are the same to the last digit, it may say anything.
UNKNOWABLE = {".evidence.fitted_with", ".evidence.fitted_with cut"}


def test_every_entry_of_an_artefact_that_is_changed_is_found(release):
    """Every fifth place, hashes put right."""
    places = unfound(release, "artefact/artefact.json", step=5)
    assert set(places) <= UNKNOWABLE


def test_a_changed_entry_of_the_manifest_is_found(release):
    assert unfound(release, "manifest.json", step=31) == []


def both_manifests(release: Release, change) -> dict[str, bytes]:
    """A change made in both manifests, so that they do not contradict each other."""
    changed = {}
    for name in ("manifest.json", "artefact/manifest.json"):
        document = release.document(name)
        change(document)
        changed[name] = as_json(document)
    return changed


def spends_called(document: dict[str, Any], what: str) -> list[dict[str, Any]]:
    return [spend for spend in document["spends"] if spend["what"].startswith(what)]


@pytest.mark.parametrize(
    "what", ["values of", "pairs of attributes", "second look at pairs", "seed prefixes"]
)
def test_less_noise_than_was_paid_for_is_found(release, what):
    """In both manifests and in the artefact: only the second accountant can tell."""

    def change(document):
        for spend in spends_called(document, what):
            spend["law"] = {
                name: value * 0.5 if isinstance(value, float) else value
                for name, value in spend["law"].items()
            }

    facts = release.document("artefact/artefact.json")
    evidence = facts["evidence"]
    if what == "values of":
        evidence["sigmas"] = [sigma * 0.5 for sigma in evidence["sigmas"]]
    elif what != "seed prefixes":
        evidence["sigma" if what.startswith("pairs") else "sigma_again"] *= 0.5
    files = both_manifests(release, change) | {"artefact/artefact.json": as_json(facts)}
    assert release.is_found(files)


@pytest.mark.parametrize("what", ["values of trade", "pairs of attributes", "second look at pairs"])
@pytest.mark.parametrize("field", ["moved", "sensitivity", "times"])
def test_a_use_that_is_said_to_move_less_or_more_is_found(release, what, field):
    for step in (1, -1):

        def change(document, step=step):
            (spend,) = spends_called(document, what)
            spend[field] += step

        assert release.is_found(both_manifests(release, change))


def test_a_use_that_is_left_out_is_found(release):
    for at in range(len(release.document("manifest.json")["spends"])):

        def change(document, at=at):
            document["spends"].pop(at)

        assert release.is_found(both_manifests(release, change))


# Records


def verdict(folder: Path) -> int:
    """The exit code of the command: reading a damaged Parquet file may end a whole process."""
    run = subprocess.run(
        [sys.executable, "-m", "deniable", "verify", folder],
        capture_output=True,
        check=False,
        timeout=240,
    )
    return run.returncode


def changed_bytes(content: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    for at in np.linspace(0, len(content) - 1, number).astype(int).tolist():
        other = bytearray(content)
        other[at] ^= 1
        yield at, bytes(other)


def test_a_changed_byte_of_a_parquet_file_is_found(parquet):
    """Bytes all over the file, its statistics and its footer, the hash put right."""
    assert verdict(parquet.folder) == 0
    path, name = parquet.folder / "synthetic.parquet", "synthetic.parquet"
    document = parquet.document("manifest.json")
    try:
        for at, other in changed_bytes(parquet.files[name], 12):
            path.write_bytes(other)
            document["files"][name] = file_hash(path)
            (parquet.folder / "manifest.json").write_bytes(as_json(sealed(document)))
            assert verdict(parquet.folder) != 0, f"byte {at}"
    finally:
        for file, content in parquet.files.items():
            (parquet.folder / file).write_bytes(content)


def test_a_parquet_file_that_was_damaged_is_found_by_its_hash_and_not_opened(parquet):
    """Whatever byte it is, in this very process."""
    path = parquet.folder / "synthetic.parquet"
    content = parquet.files["synthetic.parquet"]
    try:
        for at, other in changed_bytes(content, 12):
            path.write_bytes(other)
            found = {check.name: check.explanation for check in verify(parquet.folder).failed}
            assert set(found) == {"files", "records"}, f"byte {at}"
            assert "was not read" in found["records"]
    finally:
        path.write_bytes(content)


def test_a_parquet_file_that_somebody_else_wrote_is_found(parquet, tmp_path):
    """The same values, in other bytes: compressed otherwise."""
    frame = pl.read_parquet(parquet.folder / "synthetic.parquet")
    frame.write_parquet(tmp_path / "other.parquet", compression="gzip")
    assert parquet.is_found({"synthetic.parquet": (tmp_path / "other.parquet").read_bytes()})


def test_a_parquet_file_of_another_version_of_the_writer_is_compared_by_its_values(
    parquet, tmp_path
):
    """Then bytes may differ, and values may not."""
    document = parquet.document("manifest.json")
    document["parameters"]["writer"] = "polars 0.20.1"
    frame = pl.read_parquet(parquet.folder / "synthetic.parquet")
    frame.write_parquet(tmp_path / "same.parquet", compression="gzip")
    frame[::-1].write_parquet(tmp_path / "turned.parquet")
    for name, found in (("same", False), ("turned", True)):
        content = (tmp_path / f"{name}.parquet").read_bytes()
        document["files"]["synthetic.parquet"] = file_hash(tmp_path / f"{name}.parquet")
        files = {"synthetic.parquet": content, "manifest.json": as_json(document)}
        assert parquet.is_found(files) == found, name


def test_a_writer_is_told_for_parquet_and_for_nothing_else(release, parquet):
    assert "writer" not in release.document("manifest.json")["parameters"]
    assert "writer" in parquet.document("manifest.json")["parameters"]

    def add(document):
        document["parameters"]["writer"] = "polars 2.1.0"

    document = release.document("manifest.json")
    add(document)
    assert release.is_found({"manifest.json": as_json(document)})


# Another computer


def test_tables_fitted_elsewhere_may_differ_in_their_last_digits_only(release, monkeypatch):
    """Where the fit was made here, not even there."""
    home = release.folder / "artefact"
    facts = release.document("artefact/artefact.json")
    facts["evidence"]["fitted_with"] = "numpy 1.0, scipy 1.0, abacus"
    fit = trust.fit_network

    def refit(far):
        def fitted(*args, **more):
            network = fit(*args, **more)
            tables = list(network.tables)
            tilted = tables[0].probabilities.copy()
            tilted[0, 0] += far
            tilted[0, 1] -= far
            tables[0] = replace(tables[0], probabilities=tilted)
            return replace(network, tables=tuple(tables))

        return fitted

    assert home.is_dir()
    elsewhere = {"artefact/artefact.json": as_json(facts)}
    for far, found_here, found_elsewhere in (
        (0.0, False, False),
        (1e-6, True, False),
        (1e-3, True, True),
    ):
        monkeypatch.setattr(trust, "fit_network", refit(far))
        assert release.is_found({}) == found_here, far
        assert release.is_found(elsewhere) == found_elsewhere, far


# Units, drafts, constraints, bins

RICH = """
format = 1
rows_max = 5_000
unit = "person"
max_rows_per_unit = 3

[draft]
epsilon = 0.5
delta = 1e-07
unit = "person"

[[attribute]]
name = "person"
type = "identifier"

[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "fletcher", "wainwright"]

[[attribute]]
name = "wage"
type = "integer"
min = 0
max = 999
bins = { width = 100 }

[[attribute]]
name = "boats"
type = "integer"
min = 0
max = 3

[[constraint]]
forbid = { trade = ["cooper"], boats = { above = 1 } }
"""


@pytest.fixture(scope="module")
def rich(tmp_path_factory) -> Release:
    """Everything that a schema can say: several rows of a person, a draft, constraints, bins."""
    rng = np.random.default_rng(2)
    rows = 3_000
    frame = pl.DataFrame(
        {
            "person": rng.integers(0, 900, rows),
            "trade": rng.choice(["cooper", "fletcher", "wainwright"], rows),
            "wage": rng.integers(0, 1_000, rows),
            "boats": rng.integers(0, 4, rows),
        }
    )
    folder = tmp_path_factory.mktemp("rich") / "out"
    schema = Schema.parse(RICH)
    options = {"epsilon": 8.0, "delta": 1e-5, "k": 20, "max_cost": 12, "key": 3}
    synthesize(frame, schema, records=500, **options).write(folder, file_format="parquet")
    verify(folder, against=frame).require()
    return Release(folder)


def test_a_release_with_units_a_draft_and_constraints_passes_and_says_so(rich):
    document = rich.document("manifest.json")
    assert document["parameters"]["unit"] == "person"
    assert document["parameters"]["rows_per_unit"] == 3
    assert document["parameters"]["draft"] == {"epsilon": 0.5, "delta": 1e-7}
    assert document["guarantee"]["epsilon"] <= 8.0
    frame = pl.read_parquet(rich.folder / "synthetic.parquet")
    assert frame.filter((pl.col("trade") == "cooper") & (pl.col("boats") > 1)).height == 0
    assert frame["wage"].n_unique() > 50, "values are drawn inside bins"
    assert frame.height == 500


def forged(release: Release, **moved: float) -> dict[str, bytes]:
    """Claim another ε in all places of both manifests, the sentence too; and another parameter."""
    changed = {}
    epsilon = release.document("manifest.json")["guarantee"]["epsilon"]
    for name in ("manifest.json", "artefact/manifest.json"):
        text = json.dumps(release.document(name), ensure_ascii=False)
        said = repr(round(epsilon + moved["epsilon"], 6))
        document = json.loads(text.replace(repr(epsilon), said))
        if "draft" in moved:
            document = json.loads(
                json.dumps(document, ensure_ascii=False).replace(
                    "ε = 0.5, δ = 1e-07", f"ε = {moved['draft']!r}, δ = 1e-07"
                )
            )
            document["parameters"]["draft"]["epsilon"] = moved["draft"]
        changed[name] = as_json(document)
    return changed


def test_a_draft_that_is_said_to_have_cost_less_than_the_schema_says_is_found(rich):
    """The total lowered by as much, and the sentence: nothing but the schema can tell."""
    assert rich.is_found(forged(rich, epsilon=-0.3, draft=0.2))


def test_a_unit_of_other_rows_than_the_schema_says_is_found(rich):
    for rows in (1, 2, 4):

        def change(document, rows=rows):
            document["parameters"]["rows_per_unit"] = rows

        assert rich.is_found(both_manifests(rich, change))


def test_a_unit_or_a_draft_that_is_not_told_is_found(rich):
    for names in (("unit", "rows_per_unit"), ("draft",)):

        def change(document, names=names):
            for name in names:
                document["parameters"].pop(name)

        assert rich.is_found(both_manifests(rich, change))


def test_a_changed_entry_of_such_a_manifest_is_found(rich):
    assert unfound(rich, "manifest.json", step=41) == []


def test_records_that_break_a_constraint_are_found(rich, tmp_path):
    """They would fit every column: but the artefact does not generate them."""
    frame = pl.read_parquet(rich.folder / "synthetic.parquet")
    wrong = frame.with_columns(
        trade=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("cooper")).otherwise("trade"),
        boats=pl.when(pl.int_range(pl.len()) == 0)
        .then(3)
        .otherwise("boats")
        .cast(frame["boats"].dtype),
    )
    wrong.write_parquet(tmp_path / "wrong.parquet")
    assert rich.is_found({"synthetic.parquet": (tmp_path / "wrong.parquet").read_bytes()})


def test_files_generated_from_an_artefact_of_pairs_pass_and_are_found_when_changed(tmp_path):
    artefact = learn(TABLE, SCHEMA, **USUAL)
    artefact.save(tmp_path / "artefact")
    verify(tmp_path / "artefact", against=TABLE).require()
    for name in ("a.csv", "a.parquet"):
        generate(artefact, 100, key=1).write_file(tmp_path / name)
        verify(tmp_path / name).require()
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-1])
        assert "files" in failing(verify(tmp_path / name))


def test_every_change_that_is_tried_differs_from_what_was(release):
    """Or "found" would mean nothing."""
    document = release.document("artefact/artefact.json")
    assert all(other != document for _, other in changes(document))
