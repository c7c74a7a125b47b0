"""The artefact on disk: what is loaded is what was saved, and nothing else is loaded."""

import json
import os
import pickle
import shutil
import tracemalloc
import zipfile
from dataclasses import replace
from io import BytesIO

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.errors import ArtefactError, InvariantError, OutputError
from deniable.model.bayesian_network import ConditionalTable
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.randomness import Keyed
from deniable.release import artefact as module
from deniable.release import artefact_arrays
from deniable.release.artefact import load
from deniable.release.atomic_files import file_hash, pack_npz
from deniable.release.generation import BLOCK
from deniable.release.manifest import add_checksum

pytestmark = pytest.mark.slow

FILES = ("artefact.json", "schema.toml", "tables.npz")


@pytest.fixture(scope="module")
def artefact(small_table, small_schema):
    """Kept prefixes, tables and log-linear distributions, noise of a fixed key."""
    promise = {"k": 5, "epsilon": 5.0, "delta": 1e-6}
    options = {"omega": "3", "max_cost": 5}
    return deniable.learn(small_table, small_schema, noise=Keyed(3), **options, **promise)


@pytest.fixture(scope="module")
def saved(artefact, tmp_path_factory):
    folder = tmp_path_factory.mktemp("artefact") / "saved"
    artefact.save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    """A copy to break."""
    return shutil.copytree(saved, tmp_path / "copy")


@pytest.fixture(scope="module")
def saved_tables(small_table, small_schema, tmp_path_factory):
    """The same, of a graph and its tables."""
    folder = tmp_path_factory.mktemp("tables") / "saved"
    deniable.learn(
        small_table,
        small_schema,
        mode="seedless",
        epsilon=5.0,
        estimator="norm-sub",
        noise=Keyed(3),
    ).save(folder)
    return folder


@pytest.fixture
def copy_of(saved, saved_tables, tmp_path):
    """A copy, to break, of an artefact that has an array of such a name; and the whole name."""

    def copy(start):
        source = saved_tables if start.startswith("counts") else saved
        arrays = arrays_of(source)
        name = next(n for n in arrays if n.startswith(start) and arrays[n].size)
        return shutil.copytree(source, tmp_path / "copy"), name

    return copy


def arrays_of(folder):
    with np.load(folder / "tables.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def seal(folder):
    """Correct hashes and checksum, so that it is not by them that a change is found."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    document["files"] = {name: file_hash(folder / name) for name in FILES}
    path.write_text(json.dumps(add_checksum(document)))


def change_json(path, change):
    """Change a JSON file of an artefact and seal the artefact again."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    seal(path.parent)


def change_arrays(folder, change):
    """Change the arrays of an artefact and seal it again."""
    arrays = arrays_of(folder)
    change(arrays)
    (folder / "tables.npz").write_bytes(pack_npz(arrays))
    seal(folder)


# Round trip


def test_the_artefact_of_these_tests_keeps_prefixes(artefact):
    """Else the round trip below would be of empty arrays."""
    assert artefact.omega == 3
    assert artefact.histogram.length == 2
    assert len(artefact.histogram.counts) >= 3


def test_the_artefact_of_these_tests_has_both_kinds_of_distributions(artefact, saved):
    """And pairs of attributes of both kinds of evidence."""
    kinds = {type(table) for table in artefact.network.tables}
    assert kinds == {ConditionalTable, LogLinearConditional}
    assert artefact.evidence.interactions
    assert artefact.evidence.tables
    names = json.loads((saved / "artefact.json").read_text())["log_linear"]
    assert 0 < len(names) < len(artefact.schema.names)


def test_an_artefact_says_what_it_guarantees(artefact):
    """As attributes, and in short where an interpreter shows it: no cell, no count of rows."""
    cost = artefact.certificate.cost
    assert (artefact.epsilon, artefact.delta) == (cost.epsilon, cost.delta)
    assert artefact.k == artefact.certificate.parameters["k"]
    assert artefact.guarantee == artefact.certificate.sentence
    columns = len(artefact.schema.columns)
    assert repr(artefact) == f"Artefact({artefact.certificate.summary}, columns={columns})"


@pytest.mark.parametrize("omega", [-1, 0, 6, 99])
def test_an_artefact_draws_between_one_and_all_attributes(artefact, omega):
    with pytest.raises(InvariantError, match="an artefact draws between 1 and"):
        replace(artefact, omega=omega)


def test_its_prefixes_can_be_listed(artefact, monkeypatch):
    """Records draw from a list of all possible prefixes: a longer one would not fit into memory."""
    monkeypatch.setattr(module, "longest_listed", lambda _sizes: 1)
    with pytest.raises(InvariantError, match="prefixes that can be listed"):
        replace(artefact)


def test_an_artefact_whose_seeds_are_too_many_to_be_counts_is_refused(artefact):
    kept = replace(artefact.histogram, records=2**63 - 1)
    with pytest.raises(ArtefactError, match="number of seeds is too large"):
        artefact_arrays.require_fit(artefact.schema, artefact.network.order, kept)


def test_what_is_loaded_is_what_was_saved(artefact, saved):
    loaded = load(saved)
    assert loaded.schema == artefact.schema
    assert loaded.network.graph == artefact.network.graph
    assert loaded.network.order == artefact.network.order
    assert loaded.omega == artefact.omega
    assert loaded.guarantee == artefact.guarantee
    assert loaded.files() == artefact.files()
    document = artefact.certificate.document(artefact.schema, {})
    assert loaded.certificate.document(loaded.schema, {}) == document


def test_what_is_loaded_generates_the_same_records(artefact, saved):
    here, there = artefact.generate(3_000, key=7), load(saved).generate(3_000, key=7)
    assert isinstance(there, pl.DataFrame)
    assert here.equals(there)


def test_another_key_gives_other_records(artefact):
    assert not artefact.generate(500, key=7).equals(artefact.generate(500, key=8))
    assert not artefact.generate(500).equals(artefact.generate(500))


def test_the_number_of_workers_changes_nothing(artefact):
    records = 2 * BLOCK + 5
    one = artefact.generate(records, key=7, workers=1)
    assert one.height == records
    assert artefact.generate(records, key=7, workers=3).equals(one)


def test_as_many_records_come_as_were_asked_for(artefact):
    for number in (1, 100, BLOCK - 1, BLOCK, BLOCK + 100):
        assert artefact.generate(number, key=7).height == number


def test_the_same_content_is_the_same_bytes(artefact, saved, tmp_path):
    artefact.save(tmp_path / "again")
    names = sorted(path.name for path in saved.iterdir())
    assert names == ["artefact.json", "manifest.json", "schema.toml", "tables.npz"]
    for name in names:
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_saved_again_after_loading_it_is_the_same_bytes(saved, tmp_path):
    load(saved).save(tmp_path / "again")
    for path in saved.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_a_folder_that_holds_something_is_not_overwritten(artefact, saved):
    before = (saved / "manifest.json").read_bytes()
    with pytest.raises(OutputError, match="not empty"):
        artefact.save(saved)
    assert (saved / "manifest.json").read_bytes() == before


def test_an_artefact_without_a_claim_is_marked_confidential(saved, small_table, small_schema):
    """Noise of a test key claims nothing; the system's does."""
    assert json.loads((saved / "artefact.json").read_text())["confidential"] is True
    claimed = deniable.learn(small_table, small_schema, mode="seedless")
    assert json.loads(claimed.files()["artefact.json"])["confidential"] is False
    exact = deniable.learn(small_table, small_schema, mode="seedless", epsilon=float("inf"))
    assert json.loads(exact.files()["artefact.json"])["confidential"] is True


def test_an_artefact_that_could_not_be_loaded_is_not_written(artefact, tmp_path, monkeypatch):
    monkeypatch.setitem(module._FILES, "tables.npz", 1_000)
    with pytest.raises(OutputError, match="no reader accepts more than 1,000"):
        artefact.save(tmp_path / "large")
    assert list(tmp_path.iterdir()) == []


# What is refused

MISSING = object()


def test_a_folder_that_is_no_artefact(tmp_path):
    with pytest.raises(ArtefactError, match=r"is not an artefact: it has no artefact\.json"):
        load(tmp_path)
    with pytest.raises(ArtefactError, match="is not an artefact"):
        load(tmp_path / "absent")


def test_a_file_in_place_of_a_folder(copy):
    with pytest.raises(ArtefactError, match="is not an artefact"):
        load(copy / "tables.npz")


@pytest.mark.parametrize("facts", [{}, {"format": "sdv"}, [], "deniable artefact", 5])
def test_a_foreign_artefact(copy, facts):
    (copy / "artefact.json").write_text(json.dumps(facts))
    with pytest.raises(ArtefactError, match="was not written by deniable"):
        load(copy)


@pytest.mark.parametrize("version", [0, 1, 3, "2", 2.0, True, None])
def test_an_artefact_of_another_version(copy, version):
    """Format 1 too, which had no interactions: the message says what to do."""
    change_json(copy / "artefact.json", lambda facts: facts.update(format_version=version))
    said = f"format version {version}; this program reads 2. Learn it again, or use the version of"
    with pytest.raises(ArtefactError, match=said):
        load(copy)


def test_an_artefact_that_another_version_learnt_is_refused_and_the_version_is_named(copy):
    change_json(copy / "manifest.json", lambda manifest: manifest.update(version="0.3.0"))
    with pytest.raises(ArtefactError, match=r"learnt by deniable 0\.3\.0.* Learn it again"):
        load(copy)
    change_json(copy / "manifest.json", lambda manifest: manifest.update(version=None))
    with pytest.raises(ArtefactError, match="states no version"):
        load(copy)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"{'format': 1}"])
def test_an_artefact_json_that_is_none(copy, text):
    (copy / "artefact.json").write_bytes(text)
    with pytest.raises(ArtefactError, match=r"broken artefact .artefact\.json is not readable"):
        load(copy)


@pytest.mark.parametrize("name", ["manifest.json", "schema.toml", "tables.npz"])
def test_a_file_is_missing(copy, name):
    (copy / name).unlink()
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


@pytest.mark.parametrize("name", ["manifest.json", "schema.toml", "tables.npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_is_cut_off(copy, name, share):
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[: int(share * len(content))])
    if name != "manifest.json":
        seal(copy)
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, MISSING) for name in ("graph", "order", "omegas", "seeds", "evidence")),
        ("graph", {"stranger": []}),
        ("graph", {"pet": ["pet"]}),
        ("graph", {"pet": ["home"], "home": ["pet"]}),
        ("graph", 3),
        ("order", ["pet"]),
        ("order", ["pet"] * 5),
        ("order", ["stranger", "home", "boats", "trade", "years"]),
        ("order", 3),
        ("omegas", []),
        ("omegas", [0]),
        ("omegas", [6]),
        ("omegas", [1]),  # no histogram of that length
        ("omegas", [2, 3]),
        ("omegas", ["two"]),
        ("omegas", None),
        ("seeds", []),  # ω below m, and no histogram
        ("seeds", [{"length": 2}]),
        ("seeds", [{"length": 2, "records": 9}, {"length": 2, "records": 9}]),
        ("seeds", [{"length": 4, "records": 3}]),
        ("seeds", [{"length": 2, "records": "many"}]),
        ("seeds", 3),
        *(("log_linear", names) for names in (["stranger"], ["years", "stranger"], [0])),
        *(("log_linear", names) for names in ([["years"]], 3, None, "years")),
        ("evidence.kind", "guesses"),
        ("evidence.sigmas", [1.0]),
        ("evidence.sigmas", "none"),
        ("evidence.sigmas", ["nan"] * 5),
        ("evidence.sigmas", ["inf"] * 5),
        ("evidence.sigmas", [-1.0] * 5),
        ("evidence.table_sigma", "little"),
        ("evidence.table_sigma", "nan"),
        ("evidence.table_sigma", -1.0),
        ("evidence.table_sigma", None),
        ("evidence.tables", [["years", "stranger", 1]]),
        ("evidence.tables", [["years", "trade"]]),
        ("evidence.tables", []),
        ("evidence.tables", 3),
    ],
)
def test_a_fact_is_wrong(copy, name, value):
    """Those of the noisy counts too; or it is missing."""

    def change(facts):
        *inside, last = name.split(".")
        held = facts[inside[0]] if inside else facts
        held.update({last: value})
        if value is MISSING:
            del held[last]

    change_json(copy / "artefact.json", change)
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


def test_a_manifest_is_wrong(copy):
    for change in (
        lambda document: document.pop("guarantee"),
        lambda document: document.pop("mode"),
    ):
        change_json(copy / "manifest.json", change)
        with pytest.raises(ArtefactError, match="broken artefact"):
            load(copy)
    for text in ("[]", "null", '{"guarantee": {}}'):
        (copy / "manifest.json").write_text(text)
        with pytest.raises(ArtefactError, match="broken artefact"):
            load(copy)


@pytest.mark.parametrize("epsilon", ["much", -1, None, "nan"])
def test_a_manifest_with_an_impossible_cost(copy, epsilon):
    change_json(copy / "manifest.json", lambda m: m["guarantee"].update(epsilon=epsilon))
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


OF_PAIRS = ["values_0", "bins_1", "grouping_1", "interactions", "tables", "groups"]
OF_LOG_LINEAR = ["base", "effects", "within"]


@pytest.mark.parametrize(
    "name",
    [
        *("counts_0", "probabilities", "prefixes_2", "seeds_2", "sigmas"),
        *(*OF_PAIRS, *OF_LOG_LINEAR),
    ],
)
def test_an_array_is_missing(copy_of, name):
    copy, name = copy_of(name)
    change_arrays(copy, lambda arrays: arrays.pop(name))
    with pytest.raises(ArtefactError, match=r"broken artefact .tables.npz has no array"):
        load(copy)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("counts_0", np.float64),
        ("probabilities", np.float32),
        ("prefixes_2", np.int64),
        ("seeds_2", np.uint64),
        ("sigmas", np.float32),
        *((name, np.int32) for name in OF_PAIRS),
        *((name, np.int16) for name in OF_LOG_LINEAR),
    ],
)
def test_an_array_is_of_another_kind(copy_of, name, dtype):
    copy, name = copy_of(name)
    change_arrays(copy, lambda arrays: arrays.update({name: arrays[name].astype(dtype)}))
    with pytest.raises(ArtefactError, match="arrays of another kind"):
        load(copy)


@pytest.mark.parametrize(
    "name",
    [
        *("counts_1", "probabilities", "prefixes_2", "seeds_2", "sigmas"),
        *(*OF_PAIRS, *OF_LOG_LINEAR),
    ],
)
def test_an_array_is_of_another_shape(copy_of, name):
    copy, name = copy_of(name)
    if name.startswith("prefixes"):
        change_arrays(copy, lambda arrays: arrays.update({name: arrays[name][:, :-1]}))
    else:
        change_arrays(copy, lambda arrays: arrays.update({name: arrays[name][:-1]}))
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


@pytest.mark.parametrize("change", [1, -1])
def test_groups_of_a_parent_are_others_than_its_table_has(copy, change):
    """One more, or one below the first."""

    def move(arrays):
        groups = next(array for name, array in arrays.items() if name.startswith("groups"))
        place = groups.argmax() if change > 0 else groups.argmin()
        groups[place] += change

    change_arrays(copy, move)
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


# Hostile arrays: sealed, well-formed one by one, and impossible together


def first_of(arrays, start):
    """Return the first array of a kind that is not empty."""
    return next(a for name, a in arrays.items() if name.startswith(start) and a.size)


def put(start, at, value):
    """Return a change of one element of the first array of a kind."""

    def change(arrays):
        first_of(arrays, start).reshape(-1)[at] = value

    return change


def put_all(start, change):
    """Return a change of all arrays of a kind."""

    def apply(arrays):
        for name in [name for name in arrays if name.startswith(start)]:
            arrays[name] = np.ascontiguousarray(change(arrays[name]))

    return apply


HOSTILE = {
    "bins with a gap": put("bins", -1, 10**6),
    "bins beyond memory": put("bins", -1, 2**62),
    "bins below 0": put("bins", 0, -1),
    "the least bin": put("bins", 0, -(2**63)),
    "a group with a gap": put("grouping", -1, 10**6),
    "groups beyond memory": put("grouping", -1, 2**63 - 1),
    "groups below 0": put("grouping", 0, -1),
    "all groups beyond memory": put_all("grouping", lambda groups: groups + 2**31),
    "groups of parents beyond memory": put("groups", -1, 2**62),
    "groups of parents with a gap": put("groups", -1, 10**6),
    "groups of parents below 0": put("groups", 0, -(2**63)),
    "groups of parents in two dimensions": put_all("groups", lambda groups: groups[:, None]),
    "bins in two dimensions": put_all("bins", lambda bins: bins[:, None]),
    "bins of no dimension": put_all("bins", lambda bins: bins[0]),
    "no bins": put_all("bins", lambda bins: bins[:0]),
    "no groups": put_all("grouping", lambda groups: groups[:0]),
    "one group of everything": put_all("grouping", np.zeros_like),
    "values in two dimensions": put_all("values", lambda values: values[:, None]),
    "no values": put_all("values", lambda values: values[:0]),
    "interactions in two dimensions": put_all("interactions", lambda flat: flat[:, None]),
    "interactions of no dimension": put_all("interactions", lambda flat: flat[0]),
    "no interactions": put_all("interactions", lambda flat: flat[:0]),
    "tables in two dimensions": put_all("tables", lambda flat: flat[:, None]),
    "one cell too many": put_all("tables", lambda flat: np.append(flat, flat[0])),
    "σ is not a number": put("sigmas", 0, np.nan),
    "σ is infinite": put("sigmas", 0, np.inf),
    "σ is below 0": put("sigmas", 0, -1.0),
    "σ is 0": put("sigmas", -1, 0.0),
    "no σ": put_all("sigmas", lambda sigmas: sigmas[:0]),
    "one σ": put_all("sigmas", lambda sigmas: sigmas[:1]),
    "σ of no dimension": put_all("sigmas", lambda sigmas: sigmas[0]),
    "σ in two dimensions": put_all("sigmas", lambda sigmas: sigmas[:, None]),
    "the least effect": put("effects", 0, -(2**31)),
    "the largest effect": put("effects", -1, 2**31 - 1),
    "the least logarithm": put("base", 0, -(2**31)),
    "one effect too few": put_all("effects", lambda effects: effects[:-1]),
    "no effects": put_all("effects", lambda effects: effects[:0]),
    "no bins with logarithms": put_all("base", lambda base: base[:0]),
    "a logarithm of no dimension": put_all("base", lambda base: base[0]),
    "weights that do not sum": put("within", 0, 1),
    "a weight below 0": put("within", 0, -1),
    "the largest weight": put("within", 0, 2**63 - 1),
    "one weight too few": put_all("within", lambda weights: weights[:-1]),
}


WRONG_ELEMENTS = [
    *((put("probabilities", 0, p), "must be a distribution") for p in (-0.25, np.nan, np.inf, 0.9)),
    (put("prefixes_2", 0, 60_000), "does not fit the schema"),
    (put("seeds_2", 0, 0), "below 1"),
]


@pytest.mark.parametrize(("change", "words"), WRONG_ELEMENTS)
def test_an_impossible_element_is_named(copy, change, words):
    change_arrays(copy, change)
    with pytest.raises(ArtefactError, match=words):
        load(copy)


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_arrays_are_refused_and_need_no_memory(copy, change):
    """Never another exception, and never memory by a number in a file."""
    change_arrays(copy, change)
    tracemalloc.start()
    try:
        with pytest.raises(ArtefactError, match="broken artefact"):
            load(copy)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("order", [2, 3])
def test_the_number_of_pairs_is_compared_before_they_are_listed(order):
    """3,000 attributes have 4.5 million pairs; a file with one σ must not make a list of them."""
    groups = [np.arange(2)] * 3_000
    tracemalloc.start()
    try:
        with pytest.raises(ArtefactError, match="another number of pairs"):
            artefact_arrays._list_divided(groups, order, 1)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [b"(-5,)", b"(999999999999999999,)", b"(4294967296, 4294967296)"])
@pytest.mark.parametrize("name", ["interactions", "tables", "sigmas", "grouping_0", "within"])
def test_a_negative_or_huge_shape_is_refused(copy, name, shape):
    """A header of a few bytes declares more than there is."""
    arrays = arrays_of(copy)
    member = next(each for each in arrays if each.startswith(name))
    with zipfile.ZipFile(copy / "tables.npz") as archive:
        contents = {each: archive.read(f"{each}.npy") for each in arrays}
    old = f"({len(arrays[member])},)".encode()
    raw = contents[member]
    assert raw.count(b"'shape': " + old) == 1
    start = raw.replace(b"'shape': " + old, b"'shape': " + shape)
    # The header keeps its length: what the shape takes, the padding loses.
    more = len(shape) - len(old)
    contents[member] = start.replace(b" " * max(more, 0) + b"\n", b" " * max(-more, 0) + b"\n", 1)
    with zipfile.ZipFile(copy / "tables.npz", "w") as archive:
        for each, content in contents.items():
            archive.writestr(f"{each}.npy", content)
    seal(copy)
    with pytest.raises(ArtefactError, match=r"another size than declared|did not write"):
        load(copy)


def test_a_model_of_tables_has_no_log_linear_distribution(saved_tables, tmp_path):
    copy = shutil.copytree(saved_tables, tmp_path / "copy")
    change_json(copy / "artefact.json", lambda facts: facts.update(log_linear=["years"]))
    with pytest.raises(ArtefactError, match="a log-linear distribution that cannot exist"):
        load(copy)


@pytest.mark.parametrize("listed", ["all", "none"])
def test_another_list_of_log_linear_columns_is_refused(copy, artefact, listed):
    names = list(artefact.schema.names) if listed == "all" else []
    change_json(copy / "artefact.json", lambda facts: facts.update(log_linear=names))
    with pytest.raises(ArtefactError, match=r"tables\.npz has no array"):
        load(copy)


@pytest.mark.parametrize("times", [0, -1, "many", None, 10**38, True])
def test_a_number_of_tables_that_was_not_measured_is_not_rewritten_equal(copy, times):
    """Refused, or (a huge number, which only ``verify`` can know) loaded without harm."""

    def change(facts):
        facts["evidence"]["tables"][0][2] = times

    change_json(copy / "artefact.json", change)
    if times in (10**38, True):
        load(copy).generate(10, key=1)
        return
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


def test_a_pair_in_reverse_is_refused(copy):
    def change(facts):
        one, two, times = facts["evidence"]["tables"][0]
        facts["evidence"]["tables"][0] = [two, one, times]

    change_json(copy / "artefact.json", change)
    with pytest.raises(ArtefactError, match="a pair of attributes that was not measured"):
        load(copy)


# The seal


def test_an_artefact_that_is_sealed_again_is_loaded(copy):
    """Else no test above would reach what it tests."""

    def change(arrays):
        arrays["seeds_2"][0] += 1

    change_arrays(copy, change)
    load(copy)


@pytest.mark.parametrize("name", FILES)
def test_a_file_was_changed_after_it_was_saved(copy, name):
    """The manifest has its hash; nothing of the file but its format is read."""
    raw = (copy / name).read_bytes()
    (copy / name).write_bytes(raw + (b"\n" if name != "tables.npz" else b"\0"))
    with pytest.raises(ArtefactError, match=f"{name} is not the file that manifest.json lists"):
        load(copy)


def edit_manifest(folder, change):
    """Change the manifest and nothing else."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_an_edited_manifest_is_refused(copy):
    edit_manifest(copy, lambda document: document["parameters"].update(k=500))
    with pytest.raises(ArtefactError, match=r"manifest\.json was changed: its checksum"):
        load(copy)


@pytest.mark.parametrize(
    ("change", "otherwise"),
    [
        (lambda document: document["guarantee"].update(epsilon=0.1), "total cost"),
        (lambda document: document["guarantee"].update(sentence="All is well."), "sentence"),
        (lambda document: document.update(mode="seedless"), "mode"),
        (lambda document: document["parameters"].update(omega=[1]), "ω"),
        (lambda document: document["schema"].update(sha256="0" * 64), "hash of another schema"),
        (lambda document: document.update(format="deniable manifest 2"), "not written by deniable"),
    ],
)
def test_a_manifest_that_contradicts_the_artefact_is_refused(copy, change, otherwise):
    edit_manifest(copy, change)
    seal(copy)
    with pytest.raises(ArtefactError, match=otherwise):
        load(copy)


def test_a_claim_of_privacy_for_a_confidential_artefact_is_refused(copy):
    """The artefact of these tests has noise of a known key, and claims nothing."""

    def claim(document):
        document["guarantee"] |= {"epsilon": 1.0, "sentence": "ε = 1.0, δ = 0.0"}
        document["accountants"][0]["epsilon"] = 1.0

    edit_manifest(copy, claim)
    seal(copy)
    with pytest.raises(ArtefactError, match="whether it is confidential"):
        load(copy)


def test_a_file_that_no_artefact_has_is_refused(copy):
    def change(document):
        document["files"]["more.txt"] = "0" * 64
        document.update(add_checksum(document))

    edit_manifest(copy, change)
    with pytest.raises(ArtefactError, match="lists other files"):
        load(copy)


# Modes of files


def modes_below(folder):
    return {path.name: path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}


def test_an_artefact_without_a_claim_is_its_owner_s_alone(saved, small_table, small_schema, copy):
    assert modes_below(saved) == {"saved": 0o700, **dict.fromkeys((*FILES, "manifest.json"), 0o600)}
    claimed = deniable.learn(small_table, small_schema, mode="seedless")
    claimed.save(copy.parent / "claimed")
    umask = os.umask(0)
    os.umask(umask)
    folder_mode, *modes = modes_below(copy.parent / "claimed").values()
    assert (folder_mode, set(modes)) == (0o777 & ~umask, {0o666 & ~umask})


class Trap:
    """What a pickle runs when it is read."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


def test_a_pickle_inside_is_refused_and_not_read(copy):
    """An array of objects is stored as a pickle; reading it would run anything."""
    arrays = arrays_of(copy)
    member = BytesIO()
    np.lib.format.write_array(member, np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(copy / "tables.npz", "w") as archive:
        for name, array in arrays.items():
            plain = BytesIO()
            np.lib.format.write_array(plain, array, allow_pickle=False)
            content = member if name == "values_0" else plain
            archive.writestr(f"{name}.npy", content.getvalue())
    seal(copy)
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


def one_array(_content):
    single = BytesIO()
    np.save(single, np.zeros(3))
    return single.getvalue()


def damaged(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.parametrize("change", [lambda _: pickle.dumps(Trap()), one_array, damaged])
def test_what_stands_in_place_of_the_arrays_is_refused_and_not_read(copy, change):
    path = copy / "tables.npz"
    path.write_bytes(change(path.read_bytes()))
    seal(copy)
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)


def test_the_schema_is_of_another_table(copy):
    text = (copy / "schema.toml").read_text().replace("windmill", "lighthouse")
    (copy / "schema.toml").write_text(text)
    seal(copy)
    with pytest.raises(ArtefactError, match="broken artefact"):
        load(copy)
