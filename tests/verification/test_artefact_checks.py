"""Checks of an artefact with a pairwise model: every change of its release is detected."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from deniable.answers.verify_records import verify as verify_with_artefact
from deniable.data.codec import Codec
from deniable.drafting.draft import draft_schema
from deniable.errors import VerificationError
from deniable.model.bayesian_network import ConditionalTable
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise import loglinear
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.pipeline.api import generate, learn, synthesize
from deniable.randomness import Keyed
from deniable.release.artefact import load
from deniable.release.artefact_arrays import describe_computer
from deniable.release.atomic_files import encode_json, pack_npz
from deniable.schema.schema import Schema
from deniable.verification import artefact_checks
from deniable.verification.claims import PAIR_SPENDS, ManifestClaims
from deniable.verification.manifest_checks import compose_sentence
from deniable.verification.refit import compare_fit
from deniable.verification.verify import VerificationReport, verify
from tampering import Release, changes, undetected

pytestmark = pytest.mark.slow

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
max = 15

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
    """Years and home follow trade. Nobody has more than 11 years: such values share a bin."""
    rng = np.random.default_rng(5)
    trade = rng.choice(6, rows, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    years = np.clip(rng.binomial(11, 0.1 + 0.14 * trade), 0, 11)
    home = np.where(rng.random(rows) < 0.7, trade % 6, rng.integers(0, 6, rows))
    boats = rng.integers(0, 6, rows)
    columns = np.stack([trade, years, home, boats], axis=1)
    return Codec(SCHEMA).decode(np.asfortranarray(columns.astype(np.uint16)))


TABLE = table()
# So many configurations that a table has two parents, and that a distribution has no table.
# Prefixes have three attributes: of two, the model knows all that their counts could change.
# ε is large enough for three-way interactions.
USUAL = {"epsilon": 24.0, "delta": 1e-6, "k": 50, "omega": "1", "max_cost": 40}


def make(folder: Path, *, records: int = 300, file_format: str = "csv", **options: Any) -> Path:
    release = synthesize(TABLE, SCHEMA, records=records, key=7, **{**USUAL, **options})
    release.write(folder / "out", file_format=file_format)
    return folder / "out"


def failing(report: VerificationReport) -> list[str]:
    return [check.name for check in report.failed]


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Release:
    """Enough records that one seed more or less changes them."""
    return Release(make(tmp_path_factory.mktemp("pairs"), records=20_000))


@pytest.fixture(scope="module")
def release_of_pairs(tmp_path_factory) -> Release:
    """A smaller ε: no three-way interactions, so a table may have two parents."""
    return Release(make(tmp_path_factory.mktemp("of_pairs"), epsilon=4.0))


def arrays_in(release: Release) -> dict[str, np.ndarray]:
    with np.load(release.folder / "artefact" / "tables.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def test_the_unchanged_release_passes_and_has_every_kind_of_array(release):
    verify(release.folder, against=TABLE).require()
    kinds = {name.partition("_")[0] for name in arrays_in(release)}
    assert kinds == set(KINDS)
    kept = load(release.folder / "artefact")
    assert {type(each) for each in kept.network.tables} == {ConditionalTable, LogLinearConditional}
    assert not release.is_detected({})


# Arrays

KINDS = [
    *("values", "bins", "grouping", "groups", "interactions", "tables", "sigmas"),
    *("probabilities", "base", "effects", "within", "prefixes", "seeds"),
    *("triples", "triplesigmas", "triplegrouping", "jointparents", "jointgroups", "jointeffects"),
]


def other_elements(array: np.ndarray) -> list[np.ndarray]:
    """Copies of the array with its first, and its last, element changed by one."""
    changed = []
    for place in (0, -1):
        other = array.copy()
        flat = other.reshape(-1)
        step = 1e-9 * flat[place] if array.dtype == np.float64 else 1
        flat[place] = flat[place].item() + (-step if flat[place] > 0 else step)
        changed.append(other)
    return changed


def exchanged(array: np.ndarray) -> list[np.ndarray]:
    """A copy with two unequal probabilities of a row swapped: still a distribution."""
    other = array.copy()
    row = other[-1]
    low, high = int(row.argmin()), int(row.argmax())
    row[[low, high]] = row[[high, low]]
    return [other] if low != high else []


@pytest.mark.untraced
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_element_is_detected_in_every_kind_of_array(release, kind):
    """Changed by one, or two swapped; in two arrays of each kind, with corrected hashes."""
    arrays = arrays_in(release)
    names = [name for name in arrays if name.partition("_")[0] == kind and arrays[name].size]
    tried = 0
    for name in {names[0], names[-1]}:
        array = arrays[name]
        others = exchanged(array) if kind == "probabilities" else other_elements(array)
        for other in others:
            tried += 1
            packed = pack_npz({**arrays, name: other})
            assert release.is_detected({"artefact/tables.npz": packed}), name
    assert tried > 0


def test_an_added_or_moved_array_is_detected(release):
    arrays = arrays_in(release)
    assert release.is_detected({"artefact/tables.npz": pack_npz({**arrays, "more": np.zeros(3)})})
    turned = dict(reversed(arrays.items()))
    assert release.is_detected({"artefact/tables.npz": pack_npz(turned)})


def test_swapped_tables_of_two_attributes_are_detected(release):
    """Noisy counts of the ledger, under another name."""
    arrays = arrays_in(release)
    one, two = (name for name in arrays if name in ("values_0", "values_2"))
    assert arrays[one].shape == arrays[two].shape
    swapped = {**arrays, one: arrays[two], two: arrays[one]}
    assert release.is_detected({"artefact/tables.npz": pack_npz(swapped)})


# Documents

# Nothing depends on it if the refitted tables are equal.
UNKNOWABLE = {".evidence.fitted_with", ".evidence.fitted_with cut"}


@pytest.mark.untraced
def test_a_changed_entry_of_the_artefact_is_detected(release):
    """Every fifth entry, with corrected hashes."""
    places = undetected(release, "artefact/artefact.json", step=5)
    assert set(places) <= UNKNOWABLE


@pytest.mark.untraced
def test_a_changed_entry_of_the_manifest_is_detected(release):
    assert undetected(release, "manifest.json", step=31) == []


def both_manifests(release: Release, change) -> dict[str, bytes]:
    """Apply a change to both manifests, so that they do not contradict each other."""
    changed = {}
    for name in ("manifest.json", "artefact/manifest.json"):
        document = release.document(name)
        change(document)
        changed[name] = encode_json(document)
    return changed


def with_parameters(release: Release, **changed: Any) -> dict[str, bytes]:
    """Set parameters in both manifests; remove those that are None."""

    def change(document):
        parameters = {**document["parameters"], **changed}
        document["parameters"] = {n: v for n, v in parameters.items() if v is not None}

    return both_manifests(release, change)


def spends_called(document: dict[str, Any], what: str) -> list[dict[str, Any]]:
    return [spend for spend in document["spends"] if spend["what"].startswith(what)]


@pytest.mark.parametrize("what", ["values of", *PAIR_SPENDS, "seed prefixes"])
def test_less_noise_than_in_the_ledger_is_detected(release, what):
    """In both manifests and in the artefact: only the second accountant can detect it."""

    def change(document):
        for spend in spends_called(document, what):
            spend["law"] = {
                name: value * 0.5 if isinstance(value, float) else value
                for name, value in spend["law"].items()
            }

    facts, arrays = release.document("artefact/artefact.json"), arrays_in(release)
    evidence = facts["evidence"]
    if what == "values of":
        evidence["sigmas"] = [sigma * 0.5 for sigma in evidence["sigmas"]]
    elif what == PAIR_SPENDS[0]:
        arrays["sigmas"] = arrays["sigmas"] * 0.5
    elif what == PAIR_SPENDS[1]:
        evidence["table_sigma"] *= 0.5
    files = both_manifests(release, change) | {
        "artefact/artefact.json": encode_json(facts),
        "artefact/tables.npz": pack_npz(arrays),
    }
    report = release.report(files)
    assert "total cost" in failing(report)
    assert not report.passed


@pytest.mark.parametrize("what", ["values of trade", *PAIR_SPENDS])
@pytest.mark.parametrize("field", ["moved", "sensitivity", "times"])
def test_a_spend_with_another_sensitivity_is_detected(release, what, field):
    for step in (1, -1):

        def change(document, step=step):
            (spend,) = spends_called(document, what)
            spend[field] += step

        assert release.is_detected(both_manifests(release, change))


def test_a_missing_spend_is_detected(release):
    for at in range(len(release.document("manifest.json")["spends"])):

        def change(document, at=at):
            document["spends"].pop(at)

        assert release.is_detected(both_manifests(release, change))


def test_an_artefact_of_format_1_is_refused_by_its_number(release):
    """It had no interactions; the message says what to do."""
    facts = release.document("artefact/artefact.json")
    report = release.report({"artefact/artefact.json": encode_json({**facts, "format_version": 1})})
    said = {check.name: check.explanation for check in report.failed}
    assert "has format version 1; this program reads 2" in said["artefact"]
    assert "Learn it again, or use the version of deniable that wrote it" in said["artefact"]


# Another computer

ELSEWHERE = "numpy 1.0, scipy 1.0, abacus"


def fitted_elsewhere(release: Release, fitted_with: str = ELSEWHERE) -> dict[str, bytes]:
    facts = release.document("artefact/artefact.json")
    facts["evidence"]["fitted_with"] = fitted_with
    return {"artefact/artefact.json": encode_json(facts)}


def test_a_model_of_another_computer_passes_exactly_if_its_tables_are_equal(release):
    """Its name alone permits nothing."""
    report = release.report(fitted_elsewhere(release))
    report.require()
    assert not report.inexact


@pytest.mark.parametrize("text", ["John Doe, HIV positive", "", ELSEWHERE + "\n", "numpy 1" * 99])
def test_a_platform_can_only_have_the_name_of_one(release, text):
    assert release.is_detected(fitted_elsewhere(release, text))


def test_a_model_that_other_rounding_fitted_is_not_verified_exactly(release, monkeypatch):
    """The optimiser stops elsewhere: accepted on request, if another computer is named."""
    sums = loglinear._row_sums
    monkeypatch.setattr(loglinear, "_row_sums", lambda shares: sums(shares) * np.float32(1 + 1e-6))
    assert "model" in failing(release.report({}, accept_other_platform=True))
    elsewhere = fitted_elsewhere(release)
    report = release.report(elsewhere)
    assert [check.name for check in report.inexact] == ["model"]
    assert not report.failed
    assert not report.passed
    with pytest.raises(VerificationError, match=r"NOT VERIFIED EXACTLY.*\n  model: .*nearly"):
        report.require()
    release.report(elsewhere, accept_other_platform=True).require()


@pytest.mark.parametrize("far", [1e-9, 1e-6, 1e-4, 1e-2])
def test_another_computer_does_not_permit_other_tables(release_of_pairs, far):
    """One cell of a table of two parents is moved: it is no longer of the model's form."""
    release = release_of_pairs
    arrays = arrays_in(release)
    parents = load(release.folder / "artefact").network.graph.parents
    tables = [f"probabilities_{i}" for i, chosen in enumerate(parents) if len(chosen) == 2]
    name = next(name for name in tables if name in arrays)
    tilted = arrays[name].copy()
    tilted[0, 0] += far
    tilted[0, 1] -= far
    changed = {"artefact/tables.npz": pack_npz({**arrays, name: tilted})}
    assert "model" in failing(release.report(changed))
    report = release.report(fitted_elsewhere(release) | changed, accept_other_platform=True)
    assert "model" in (failing(report) if far > 1e-8 else [check.name for check in report.inexact])


@pytest.mark.parametrize(
    "kind", ["values", "interactions", "tables", "sigmas", "bins", "grouping", "groups"]
)
def test_another_computer_does_not_permit_other_bins_groups_or_exact_counts(release, kind):
    """A noisy count moved by one is within the tolerance, but not verified exactly."""
    arrays = arrays_in(release)
    name = next(name for name in arrays if name.partition("_")[0] == kind)
    for other in other_elements(arrays[name]):
        changed = {"artefact/tables.npz": pack_npz({**arrays, name: other})}
        report = release.report(fitted_elsewhere(release) | changed, accept_other_platform=True)
        assert report.failed or report.inexact
        assert kind in ("values", "interactions", "tables") or not report.passed


def log_linear_array(release: Release, kind: str) -> tuple[dict[str, np.ndarray], str]:
    """The arrays of a release, and the name of the largest one of a log-linear distribution."""
    arrays = arrays_in(release)
    names = [name for name in arrays if name.startswith(f"{kind}_")]
    return arrays, max(names, key=lambda name: arrays[name].size)


@pytest.mark.parametrize(
    ("kind", "step", "passes"),
    [("base", 5, True), ("effects", 5, True), ("base", 2**13, False), ("effects", 2**14, False)],
)
def test_another_computer_permits_slightly_other_effects_only(release, kind, step, passes):
    """5 of 4,096 units are 0.0008 in a logarithm; 2^13 of them are a factor of 4."""
    arrays, name = log_linear_array(release, kind)
    moved = arrays[name].copy()
    moved[::2] += step
    changed = {"artefact/tables.npz": pack_npz({**arrays, name: moved})}
    assert "model" in failing(release.report(changed, accept_other_platform=True))
    elsewhere = changed | fitted_elsewhere(release)
    report = release.report(elsewhere)
    assert not report.passed
    assert ("model" in failing(report)) != passes
    assert ("model" in [check.name for check in report.inexact]) == passes
    accepted = release.report(elsewhere, accept_other_platform=True)
    assert ("model" in failing(accepted)) != passes


@pytest.mark.parametrize("step", [1, 2**12, 2**28])
def test_another_computer_does_not_permit_other_shares_within_a_bin(release, step):
    """They follow by a closed formula: only what rounding may do is permitted."""
    arrays = arrays_in(release)
    for name, bins in ((f"within_{i}", arrays[f"bins_{i}"]) for i in range(4)):
        shared = np.flatnonzero(np.diff(bins) == 0)
        if name in arrays and len(shared):
            break
    moved = arrays[name].copy()
    moved[shared[0] : shared[0] + 2] += (
        [step, -step] if moved[shared[0] + 1] > step else [-step, step]
    )
    changed = {"artefact/tables.npz": pack_npz({**arrays, name: moved})}
    report = release.report(changed | fitted_elsewhere(release), accept_other_platform=True)
    assert ("model" in failing(report)) == (step > 1)
    assert "model" in failing(release.report(changed, accept_other_platform=True))


def test_another_computer_does_not_permit_another_kind_of_distribution(release):
    """A log-linear distribution of one parent, written as a table, and named as one."""
    kept = load(release.folder / "artefact")
    network = kept.network
    i = next(i for i, t in enumerate(network.tables) if isinstance(t, LogLinearConditional))
    own = network.tables[i]
    assert isinstance(own, LogLinearConditional)
    sizes = [len(effect) for effect in own.effects]
    grid = [axis.ravel() for axis in np.indices(sizes)]
    table = ConditionalTable(np.exp(own.log_distribution(grid, len(grid[0]))))
    tables = (*network.tables[:i], table, *network.tables[i + 1 :])
    measured = kept.evidence
    assert isinstance(measured, PairwiseMeasurements)
    elsewhere = replace(
        kept,
        network=replace(network, tables=tables),
        evidence=replace(measured, fitted_with=ELSEWHERE),
    ).files()
    changed = {f"artefact/{name}": content for name, content in elsewhere.items()}
    report = release.report(changed, accept_other_platform=True)
    assert "model" in failing(report)


# The automatic choice of ω


@pytest.fixture(scope="module")
def automatic(tmp_path_factory) -> Release:
    return Release(make(tmp_path_factory.mktemp("auto"), omega="auto"))


def test_an_automatic_omega_is_in_the_manifest_and_chosen_again(automatic):
    report = verify(automatic.folder)
    report.require()
    assert automatic.document("manifest.json")["parameters"]["omega_requested"] == "auto"


@pytest.mark.parametrize("omega", ["1", "2", "3"])
def test_another_omega_than_the_automatic_one_is_detected(automatic, tmp_path, omega):
    """A release with a given ω that claims that it was chosen automatically."""
    other = Release(make(tmp_path, omega=omega))
    given = other.document("manifest.json")["parameters"]
    assert given["omega_requested"] == "given"

    chosen = automatic.document("manifest.json")["parameters"]["omega"]
    changed = with_parameters(other, omega_requested="auto")
    assert other.is_detected(changed) == (given["omega"] != chosen)


# Whether any prefix was copied

# Sentences and fields of copied prefixes.
COPIED = "every record generated from a copied prefix has at least"


def claim_prefixes(document: dict[str, Any], *, copied: bool) -> None:
    """State the opposite of what is kept, with the sentence that belongs to it."""
    document["parameters"]["copies_prefixes"] = copied
    document["guarantee"]["sentence"] = compose_sentence(
        ManifestClaims(document=document, subject="artefact", schema=SCHEMA)
    )


@pytest.fixture(scope="module")
def uncopied(tmp_path_factory) -> Release:
    """No combination of values reaches k + r rows, so that no record copies one."""
    folder = tmp_path_factory.mktemp("uncopied")
    return Release(make(folder, omega="2", estimator="norm-sub", k=TABLE.height))


def test_where_nothing_was_copied_nothing_is_said_of_copied_prefixes(uncopied, tmp_path):
    for name in ("manifest.json", "artefact/manifest.json"):
        document = uncopied.document(name)
        assert document["parameters"]["copies_prefixes"] is False
        assert COPIED not in document["guarantee"]["sentence"]
        assert "Schema and k were fixed in advance" in document["guarantee"]["sentence"]
    for report in (verify(uncopied.folder), verify(uncopied.folder, against=TABLE)):
        report.require()
        assert not any("share the kept attribute values" in text for text in report.unknown)
    generate(uncopied.folder / "artefact", 5, key=1).write_file(tmp_path / "more.csv")
    assert COPIED not in (tmp_path / "more.csv.manifest.json").read_text()
    verify_with_artefact(tmp_path / "more.csv", artefact=uncopied.folder / "artefact").require()


def test_what_is_said_of_copied_prefixes_must_be_true(uncopied, tmp_path):
    """With the right sentence for the wrong fact: only the kept prefixes tell."""
    release = Release(make(tmp_path, omega="3", estimator="norm-sub", epsilon=8.0))
    assert COPIED in release.document("manifest.json")["guarantee"]["sentence"]
    for made, is_copied in ((release, True), (uncopied, False)):
        said = both_manifests(made, partial(claim_prefixes, copied=is_copied))
        assert not made.is_detected(said)
        said = both_manifests(made, partial(claim_prefixes, copied=not is_copied))
        assert failing(made.report(said)) == ["kept prefixes"]


def test_with_all_columns_drawn_nothing_is_said_of_k_rows_of_units(tmp_path):
    described = {"who": "identifier", "a": "boolean", "b": "boolean"}
    lines = "".join(f'[[attribute]]\nname = "{n}"\ntype = "{t}"\n' for n, t in described.items())
    schema = Schema.parse(f'format = 1\nunit = "who"\nmax_rows_per_unit = 3\n{lines}')
    frame = pl.DataFrame({"who": range(6_000), "a": [True, False] * 3_000, "b": [True] * 6_000})
    for omega, said in (("2", False), ("1", True)):
        made = synthesize(frame, schema, records=20, omega=omega, k=20, epsilon=4.0)
        assert ("The 20 rows may be of as few as" in made.guarantee) == said
        assert (COPIED in made.guarantee) == said
        made.write(tmp_path / omega)
        verify(tmp_path / omega).require()


# A run composed with a private draft


@pytest.fixture(scope="module")
def after_draft(tmp_path_factory) -> Release:
    """A release whose total composes the noise of a private draft and of the run."""
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({name: rng.choice(["oak", "elm"], 2_000) for name in ("a", "b", "c")})
    draft = draft_schema(frame, draft_epsilon=2.0)
    folder = tmp_path_factory.mktemp("after-draft") / "out"
    made = synthesize(frame, Schema.parse(draft.text), records=300, epsilon=4.0, key=3)
    made.write(folder)
    verify(folder, against=frame).require()
    return Release(folder)


def test_a_run_after_a_private_draft_has_the_drafts_entry_and_the_requested_total(after_draft):
    document = after_draft.document("manifest.json")
    assert document["spends"][0]["what"] == "schema draft"
    assert {"mu", "columns", "text_delta"} <= set(document["parameters"]["draft"])
    assert document["guarantee"]["epsilon"] == 4.0
    assert "the total covers the draft and this run together" in document["guarantee"]["sentence"]


def test_forged_noise_of_a_draft_is_detected(after_draft):
    def mu(document):
        document["parameters"]["draft"]["mu"] *= 0.5

    def texts(document):
        document["parameters"]["draft"]["text_delta"] = 0.0

    def entry(document):
        document["spends"][0]["law"]["sigma"] *= 1.5

    def dropped(document):
        del document["spends"][0]

    def added_instead(document):
        for key in ("mu", "columns", "text_delta"):
            del document["parameters"]["draft"][key]

    def lower_total(document):
        document["guarantee"]["epsilon"] = 3.999
        document["accountants"][0]["epsilon"] = 3.999
        sentence = document["guarantee"]["sentence"].replace("ε = 4.0", "ε = 3.999")
        document["guarantee"]["sentence"] = sentence

    def smaller_draft(document):
        document["parameters"]["draft"] |= {"mu": 1e-6, "columns": 0, "text_delta": 0.0}
        document["spends"][0]["law"]["sigma"] = 1e6

    for change in (mu, texts, entry, dropped, added_instead, lower_total, smaller_draft):
        assert after_draft.is_detected(both_manifests(after_draft, change)), change.__name__


@pytest.mark.untraced
def test_a_changed_entry_of_a_manifest_with_a_draft_is_detected(after_draft):
    assert undetected(after_draft, "manifest.json", step=43) == []


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
    """A release with several rows per person, a draft, constraints and bins."""
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


def test_a_release_with_units_a_draft_and_constraints_passes(rich):
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
    """Forge ε everywhere in both manifests, the sentence included; and the cost of the draft."""
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
        changed[name] = encode_json(document)
    return changed


def test_a_draft_cost_below_the_schemas_is_detected(rich):
    """Total and sentence are lowered as well: only the schema reveals it."""
    assert rich.is_detected(forged(rich, epsilon=-0.3, draft=0.2))


@pytest.mark.untraced
def test_a_changed_entry_of_a_manifest_with_units_is_detected(rich):
    assert undetected(rich, "manifest.json", step=41) == []


def test_records_that_violate_a_constraint_are_detected(rich, tmp_path):
    """They fit every column, but the artefact does not generate them."""
    frame = pl.read_parquet(rich.folder / "synthetic.parquet")
    wrong = frame.with_columns(
        trade=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("cooper")).otherwise("trade"),
        boats=pl.when(pl.int_range(pl.len()) == 0)
        .then(3)
        .otherwise("boats")
        .cast(frame["boats"].dtype),
    )
    wrong.write_parquet(tmp_path / "wrong.parquet")
    assert rich.is_detected({"synthetic.parquet": (tmp_path / "wrong.parquet").read_bytes()})


def test_every_tried_change_differs_from_the_original(release):
    """Otherwise the other tests would be meaningless."""
    document = release.document("artefact/artefact.json")
    assert all(other != document for _, other in changes(document))


# Choices that must follow from noisy counts


@pytest.fixture(scope="module")
def learnt(small_table, small_schema):
    """The noisy counts of the small table, its schema, and what its manifest claims."""
    artefact = learn(small_table, small_schema, mode="seedless", noise=Keyed(3))
    document = artefact.certificate.document(small_schema, {})
    claims = ManifestClaims(document=document, subject="artefact", schema=small_schema)
    artefact_checks._require_layout_and_tables(artefact.evidence, small_schema, claims)
    return artefact.evidence, small_schema, claims


def test_bins_that_do_not_follow_from_noisy_counts_are_refused(learnt):
    """They could encode exact counts, and the model fitted to them would be consistent."""
    measured, schema, claims = learnt
    joined = replace(
        measured,
        bins=tuple(np.zeros_like(own) for own in measured.bins),
        groups=tuple(np.zeros(1, dtype=np.intp) for _ in measured.groups),
        interactions={},
        interaction_sigmas={},
        tables={},
        table_counts={},
    )
    with pytest.raises(VerificationError, match="bins or groups"):
        artefact_checks._require_layout_and_tables(joined, schema, claims)


def test_groups_that_do_not_follow_from_noisy_counts_are_refused(learnt):
    measured, schema, claims = learnt
    groups = (measured.groups[0][::-1].copy(), *measured.groups[1:])
    assert not np.array_equal(groups[0], measured.groups[0])
    with pytest.raises(VerificationError, match="bins or groups"):
        artefact_checks._require_layout_and_tables(replace(measured, groups=groups), schema, claims)


def test_other_noise_of_one_pairs_interactions_is_refused(learnt):
    """More noise for one pair, less for another: the ledger's entry would be the same."""
    measured, schema, claims = learnt
    first, second, *_ = measured.interaction_sigmas
    sigmas = dict(measured.interaction_sigmas)
    sigmas[first], sigmas[second] = 2 * sigmas[first], 0.5 * sigmas[second]
    with pytest.raises(VerificationError, match="interactions have other noise"):
        artefact_checks._require_layout_and_tables(
            replace(measured, interaction_sigmas=sigmas), schema, claims
        )


def test_tables_of_pairs_that_do_not_follow_from_the_interactions_are_refused(learnt):
    """All of them for one pair, or one moved from a pair to another."""
    measured, schema, claims = learnt
    counts = measured.table_counts
    first, second, *_ = counts
    moved = {**counts, first: counts[first] + 1, second: counts[second] + 1}
    everything = {**dict.fromkeys(counts, 1), first: sum(counts.values())}
    for other in (moved, everything):
        with pytest.raises(VerificationError, match="do not follow from the interactions"):
            artefact_checks._require_layout_and_tables(
                replace(measured, table_counts=other), schema, claims
            )


# Targets


@pytest.fixture(scope="module")
def targeted(tmp_path_factory) -> Release:
    """Pairs with one column were measured more precisely than others."""
    return Release(make(tmp_path_factory.mktemp("target"), target=["boats"]))


def test_a_release_with_a_target_passes_and_names_it(targeted):
    verify(targeted.folder).require()
    assert targeted.document("manifest.json")["parameters"]["target"] == ["boats"]


# Of which release, and what its parameters are changed to in both manifests; None removes one.
OTHER_TARGETS = [None, [], ["home"], ["boats", "home"], ["boats", "boats"], ["stranger"], "boats"]
FORGED_PARAMETERS = [
    *(("automatic", {"omega_requested": how}) for how in ("by hand", None)),
    *(("rich", {"rows_per_unit": rows}) for rows in (1, 2, 4)),
    ("rich", {"unit": None, "rows_per_unit": None}),
    ("rich", {"draft": None}),
    # The noise of each pair follows from the declared targets.
    *(("targeted", {"target": target}) for target in (*OTHER_TARGETS, [0], [["a list"]])),
    ("release", {"target": ["boats"]}),
]


@pytest.mark.parametrize(("name", "changed"), FORGED_PARAMETERS, ids=str)
def test_forged_parameters_are_detected(request, name, changed):
    forged_release = request.getfixturevalue(name)
    parameters = forged_release.document("manifest.json")["parameters"]
    assert any(parameters.get(key) != value for key, value in changed.items())
    assert forged_release.is_detected(with_parameters(forged_release, **changed))


# One column


def test_a_release_of_one_column_has_no_pairs_and_passes(tmp_path):
    schema = replace(SCHEMA, columns=SCHEMA.columns[:1])
    one = synthesize(TABLE.select("trade"), schema, records=100, mode="seedless", epsilon=1.0)
    one.write(tmp_path / "out")
    verify(tmp_path / "out", against=TABLE.select("trade")).require()


@pytest.fixture(scope="module")
def of_triples(small_table, small_schema):
    """As above, with so large an ε that three-way interactions are measured."""
    artefact = learn(small_table, small_schema, mode="seedless", epsilon=50.0, noise=Keyed(3))
    document = artefact.certificate.document(small_schema, {})
    claims = ManifestClaims(document=document, subject="artefact", schema=small_schema)
    artefact_checks._require_layout_and_tables(artefact.evidence, small_schema, claims)
    assert artefact.evidence.three_way is not None
    return artefact.evidence, small_schema, claims


def test_three_way_interactions_that_do_not_follow_from_noisy_counts_are_refused(of_triples):
    """Left out, between other groups, or with less noise for one triple than for another."""
    measured, schema, claims = of_triples
    found = measured.three_way
    first, second, *_ = found.sigmas
    sigmas = {**found.sigmas, first: 2 * found.sigmas[first], second: found.sigmas[second] / 2}
    groups = tuple(own[::-1].copy() for own in found.groups)
    for three_way, why in (
        (None, "whether there are three-way interactions"),
        (replace(found, groups=groups), "groups of triples"),
        (replace(found, sigmas=sigmas), "three-way interactions have other noise"),
    ):
        with pytest.raises(VerificationError, match=why):
            artefact_checks._require_layout_and_tables(
                replace(measured, three_way=three_way), schema, claims
            )


def test_a_model_with_three_way_interactions_is_fitted_again(of_triples, small_table):
    """A changed effect of two parents is refused; everything else is the same."""
    options = {"mode": "seedless", "epsilon": 50.0, "max_cost": 2}
    artefact = learn(small_table, of_triples[1], **options, noise=Keyed(3))
    tables = list(artefact.network.tables)
    at, table = next((i, t) for i, t in enumerate(tables) if getattr(t, "joint", ()))
    measured = replace(artefact.evidence, fitted_with=describe_computer())
    assert compare_fit(measured, artefact.network, max_cost=2)
    effects = table.joint[0].effects.copy()
    effects[0, 0] += 1
    tables[at] = replace(table, joint=(replace(table.joint[0], effects=effects), *table.joint[1:]))
    forged = replace(artefact.network, tables=tuple(tables))
    with pytest.raises(VerificationError, match="does not follow from its noisy counts"):
        compare_fit(measured, forged, max_cost=2)
