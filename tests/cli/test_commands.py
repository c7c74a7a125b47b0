"""The commands: what they print, the files they write, and their exit codes."""

import json
from pathlib import Path

import polars as pl
import pytest

from command_line import CELLS, FAST, Result, here
from conftest import HOMES, PETS, TRADES
from deniable.data.codec import Codec
from deniable.pipeline import seed_modes
from deniable.release.atomic_files import file_hash
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


def read_csv(path):
    return pl.read_csv(path, null_values={"trade": "?"})


# The contract: commands and options


@pytest.mark.parametrize(
    "args",
    [
        ["synthesise"],
        ["synthesize"],
        ["synthesize", "table.csv", "--records", "many"],
        ["generate"],
        ["plan", "--schema", "s", "--frobnicate"],
        ["learn", "table.csv", "--epsilon", "one"],
    ],
)
def test_wrong_usage_ends_with_2(deniable, args):
    assert deniable(*args).complains(2)


# synthesize


MODES = {
    "one-shot": (300, ["--k", 20]),
    "seedless": (300, []),
    "tested": (300, ["--k", 20, "--omega", 3]),
    "randomized": (3, ["--k", 400, "--omega", 3, "--delta", 1e-6]),
}


@pytest.mark.parametrize("mode", MODES)
def test_synthesize_writes_a_release(deniable, given, small_schema, mode):
    records, more = MODES[mode]
    result = deniable(
        "synthesize", *given, "--records", records, "--out", "o", "--mode", mode, *more
    )
    assert (result.code, result.err) == (0, "")
    assert f"{records} records in o" in result.out
    assert "o.internal" in result.out
    artefact = ["artefact.json", "manifest.json", "schema.toml", "tables.npz"]
    with_artefact = mode in ("one-shot", "seedless")
    assert here() == sorted(
        ["o", "o.internal", "o.internal/run.json"]
        + ["o/manifest.json", "o/schema.toml", "o/synthetic.csv"]
        + (["o/artefact", *[f"o/artefact/{name}" for name in artefact]] if with_artefact else [])
    )
    assert Path("o.internal").stat().st_mode & 0o777 == 0o700
    frame = read_csv("o/synthetic.csv")
    assert frame.height == records
    assert len(Codec(small_schema).encode(frame)) == records
    manifest = json.loads(Path("o/manifest.json").read_text())
    assert manifest["mode"] == mode
    assert manifest["files"]["synthetic.csv"] == file_hash(Path("o/synthetic.csv"))
    sentence = manifest["guarantee"]["sentence"]
    assert "".join(sentence.split()) in "".join(result.out.split())


def test_what_synthesize_says_with_json(deniable, given):
    result = deniable("synthesize", *given, "--records", 30, "--out", "o", "--json")
    assert (result.code, result.err) == (0, "")
    answer = result.json
    claim = json.loads(Path("o/manifest.json").read_text())["guarantee"]
    assert (answer["records"], answer["folder"], answer["mode"]) == (30, "o", "one-shot")
    assert (answer["epsilon"], answer["delta"]) == (claim["epsilon"], claim["delta"])
    assert answer["guarantee"] == claim["sentence"]


def test_quiet_prints_nothing_but_errors(deniable, given, artefact, small_files):
    runs = [
        ("synthesize", *given, "--records", 5, "--out", "o", *FAST),
        ("learn", *given, "--out", "a", *FAST),
        ("generate", artefact, "--records", 5, "--out", "r.csv"),
        ("plan", "--schema", small_files / "schema.toml"),
    ]
    for args in runs:
        assert deniable(*args, "--quiet") == Result(0, "", "")
    assert deniable(*runs[0], "--quiet").complains(2, "exists and is not empty")


def test_json_and_quiet_together_are_one_object(deniable, given):
    result = deniable(
        "synthesize", *given, "--records", 5, "--out", "o", *FAST, "--json", "--quiet"
    )
    assert result.json["records"] == 5


def test_the_format_is_csv_unless_parquet_is_asked_for(deniable, given):
    args = ("synthesize", *given, "--records", 50, *FAST)
    assert deniable(*args, "--out", "o", "--format", "parquet").code == 0
    assert pl.read_parquet("o/synthetic.parquet").height == 50
    assert not Path("o/synthetic.csv").exists()
    assert deniable(*args, "--out", "p", "--format", "xml").complains(2, "xml", "'csv', 'parquet'")


def test_a_folder_that_holds_something_is_refused_before_the_table_is_read(deniable, given):
    Path("o").mkdir()
    Path("o/old").write_text("x")
    args = ("absent.csv", *given[1:], "--out", "o")
    for command in (("synthesize", *args, "--records", 5), ("learn", *args)):
        assert deniable(*command).complains(2, "o exists and is not empty", "choose another")
    assert here() == ["o", "o/old"]


def test_the_second_run_into_a_folder_is_refused_and_the_first_stays(deniable, given):
    args = ("synthesize", *given, "--records", 5, "--out", "o", *FAST)
    assert deniable(*args).code == 0
    before = {name: file_hash(Path(name)) for name in here() if Path(name).is_file()}
    assert deniable(*args).complains(2, "not empty")
    assert {name: file_hash(Path(name)) for name in here() if Path(name).is_file()} == before


def test_an_internal_folder_of_another_run_is_refused_before_the_table_is_read(deniable, given):
    """Noise would be spent for nothing."""
    Path("o.internal").mkdir()
    Path("o.internal/run.json").write_text("{}")
    result = deniable("synthesize", "absent.csv", *given[1:], "--records", 5, "--out", "o", *FAST)
    assert result.complains(2, "o.internal exists and is not empty")


def test_an_empty_folder_will_do(deniable, given):
    Path("o").mkdir()
    assert deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST).code == 0
    assert "o/synthetic.csv" in here()


@pytest.mark.parametrize("out", [".", "./", "deep/er/out", "out/"])
def test_any_name_of_a_folder_is_taken_or_refused_in_words(deniable, given, out):
    result = deniable("synthesize", *given, "--records", 5, "--out", out, *FAST)
    assert result.code in (0, 2)
    assert "bug" not in result.err


@pytest.mark.parametrize("command", ["synthesize", "learn", "generate"])
def test_below_a_file_nothing_can_be_written(deniable, given, artefact, command):
    """Tests run as root, who may write anywhere; not below a file, though."""
    Path("file").write_text("x")
    args = {
        "synthesize": ("synthesize", *given, "--records", 5, "--out", "file/o", *FAST),
        "learn": ("learn", *given, "--out", "file/o", *FAST),
        "generate": ("generate", artefact, "--records", 5, "--out", "file/r.csv"),
    }[command]
    assert deniable(*args).complains(2, "cannot be written")
    assert here() == ["file"]


def test_a_full_disk_is_an_error_of_the_environment(deniable, given, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    result = deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST)
    assert result.complains(2, "No space left on device", "free some space")
    assert here() == []


# learn and generate


def test_learn_then_generate(deniable, given):
    result = deniable("learn", *given, "--out", "a", "--k", 20)
    assert (result.code, result.err) == (0, "")
    assert "differentially private" in result.out
    assert "deniable generate a" in result.out
    assert here() == [
        *("a", "a/artefact.json", "a/manifest.json", "a/schema.toml", "a/tables.npz"),
    ]
    result = deniable("generate", "a", "--records", 1_000, "--out", "r.csv")
    assert (result.code, result.err) == (0, "")
    assert "1,000 records in r.csv" in result.out
    assert read_csv("r.csv").height == 1_000
    manifest = json.loads(Path("r.csv.manifest.json").read_text())
    assert manifest["files"] == {"r.csv": file_hash(Path("r.csv"))}
    learnt = json.loads(Path("a/manifest.json").read_text())
    assert manifest["guarantee"] == learnt["guarantee"]
    assert manifest["spends"] == learnt["spends"]


def test_what_learn_and_generate_say_with_json(deniable, given):
    answer = deniable("learn", *given, "--out", "a", "--mode", "seedless", "--json").json
    assert (answer["artefact"], answer["mode"]) == ("a", "seedless")
    claim = {"epsilon", "delta", "guarantee"}
    assert claim <= set(answer)
    made = deniable("generate", "a", "--records", 5, "--out", "r.parquet", "--json").json
    assert (made["records"], made["file"]) == (5, "r.parquet")
    assert {name: made[name] for name in claim} == {name: answer[name] for name in claim}


def test_the_same_key_gives_the_same_records_whatever_the_number_of_workers(deniable, artefact):
    for name, more in {
        "a.csv": ["--key", 7, "--workers", 1],
        "b.csv": ["--key", 7, "--workers", 3],
        "c.csv": ["--key", 8],
        "d.csv": [],
    }.items():
        args = ("generate", artefact, "--records", 70_000, "--out", name)
        assert deniable(*args, *more).code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert len({file_hash(Path(name)) for name in ("a.csv", "c.csv", "d.csv")}) == 3
    key = json.loads(Path("a.csv.manifest.json").read_text())["parameters"]["key"]
    assert key == 7


def test_a_key_of_synthesize_gives_what_its_artefact_gives(deniable, given):
    args = ("synthesize", *given, "--records", 500, "--out", "o", "--key", 5, "--k", 20)
    assert deniable(*args).code == 0
    assert (
        deniable("generate", "o/artefact", "--records", 500, "--key", 5, "--out", "r.csv").code == 0
    )
    assert Path("r.csv").read_bytes() == Path("o/synthetic.csv").read_bytes()


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet"])
def test_the_extension_tells_the_format(deniable, artefact, name):
    assert deniable("generate", artefact, "--records", 20, "--out", name).code == 0
    read = pl.read_parquet if name.endswith("parquet") else read_csv
    assert read(name).height == 20
    assert here() == [name, f"{name}.manifest.json"]


@pytest.mark.parametrize("name", ["r.txt", "r", "csv", "parquet"])
def test_an_extension_that_tells_none_is_refused(deniable, artefact, name):
    result = deniable("generate", artefact, "--records", 20, "--out", name)
    assert result.complains(2, ".csv", ".parquet")
    assert here() == []


@pytest.mark.parametrize("records", [0, -1])
def test_no_records_cannot_be_asked_for(deniable, artefact, given, records):
    for mode in ("one-shot", "randomized"):
        run = ("plan", *given[1:], "--records", records, "--mode", mode)
        assert deniable(*run).complains(2, "at least 1")
    run = ("generate", artefact, "--records", records, "--out", "r.csv")
    assert deniable(*run).complains(2, "at least 1")
    run = ("synthesize", *given, "--records", records, "--out", "o")
    assert deniable(*run).complains(2, "at least 1")
    assert here() == []


def test_what_is_no_artefact_is_refused(deniable, small_files):
    for folder in (small_files, "absent"):
        result = deniable("generate", folder, "--records", 5, "--out", "r.csv")
        assert result.complains(2, "is not an artefact", "deniable learn")


@pytest.mark.parametrize("key", [-1, 2**128])
def test_a_key_out_of_bounds_is_refused(deniable, artefact, key):
    result = deniable("generate", artefact, "--records", 5, "--out", "r.csv", "--key", key)
    assert result.complains(2, "key")


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_a_mode_with_real_seeds_has_no_key_and_no_artefact(deniable, given, mode):
    result = deniable(
        "synthesize", *given, "--records", 2, "--out", "o", "--mode", mode, "--key", 5
    )
    assert result.complains(2, "secret and has no key")
    result = deniable("learn", *given, "--out", "a", "--mode", mode)
    assert result.complains(2, "needs the table while it generates", "deniable synthesize")
    assert here() == []


# plan


@pytest.mark.parametrize(
    ("estimator", "stages"),
    [
        ("pairs", ("values of years", "values of pet", "pairs of attributes")),
        ("norm-sub", ("entropies", "tables of counts")),
    ],
)
def test_plan_says_what_a_run_would_cost(deniable, small_files, estimator, stages):
    result = deniable("plan", "--schema", small_files / "schema.toml", "--estimator", estimator)
    assert (result.code, result.err) == (0, "")
    for word in ("one-shot", *stages, "seed prefixes", "--all"):
        assert word in result.out
    assert "randomized" not in result.out
    everything = deniable("plan", "--schema", small_files / "schema.toml", "--all")
    assert "One candidate of the randomized test" in everything.out
    assert here() == []


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--epsilon", "inf"],
        ["--epsilon", "inf", "--delta", "0"],
        ["--mode", "seedless", "--data-use", "split", "--estimator", "clip"],
        ["--mode", "randomized", "--records", 3, "--k", 400, "--delta", 1e-6],
        ["--k", 1],
    ],
)
def test_what_plan_says_with_json(deniable, small_files, more):
    answer = deniable("plan", "--schema", small_files / "schema.toml", "--json", *more).json
    assert {"mode", "cost", "stages", "records", "trade_off", "k"} <= set(answer)


def test_plan_of_the_randomized_mode_shows_what_records_cost(deniable, small_files):
    more = ["--mode", "randomized", "--records", 3, "--k", 400, "--delta", 1e-6]
    result = deniable("plan", "--schema", small_files / "schema.toml", *more)
    assert "One candidate of the randomized test" in result.out
    at = result.out.index("One candidate of the randomized test")
    assert any(line.strip()[:1].isdigit() for line in result.out[at:].splitlines()[1:])


def test_plan_agrees_with_the_run(deniable, given):
    planned = deniable("plan", *given[1:], "--k", 20, "--omega", 3, "--json").json
    deniable("synthesize", *given, "--records", 5, "--out", "o", "--k", 20, "--omega", 3)
    claim = json.loads(Path("o/manifest.json").read_text())
    assert planned["cost"]["epsilon"] == claim["guarantee"]["epsilon"]
    assert planned["threshold"] == claim["parameters"]["threshold"]


# A guarantee that cannot be met


@pytest.mark.parametrize(
    "more",
    [
        ["--delta", "0"],
        ["--delta", "1e-300"],
        ["--mode", "randomized"],
        ["--mode", "randomized", "--delta", "0"],
        ["--mode", "randomized", "--config", "t.toml"],
    ],
)
def test_a_guarantee_that_cannot_be_met_ends_with_3(deniable, given, more):
    Path("t.toml").write_text("t = 500\n")
    run = ("synthesize", *given, "--records", 1_000, "--out", "o", *more)
    assert deniable(*run).complains(3, "BudgetError")
    assert deniable("plan", *given[1:], "--records", 1_000, *more).complains(3, "BudgetError")
    assert here() == ["t.toml"]


def test_a_hopeless_run_ends_with_3_and_leaves_nothing(deniable, given, monkeypatch):
    monkeypatch.setattr(seed_modes, "_MIN_ATTEMPTS", 2**15)
    run = ("synthesize", *given, "--records", 5, "--out", "o", "--mode", "tested", "--k", 1_999)
    result = deniable(*run, "--omega", 1, "--epsilon", "inf")
    assert result.complains(3, "too few", "smaller k")
    assert here() == []


# Schema


def test_a_schema_that_is_none_ends_with_2(deniable, given):
    Path("bad.toml").write_text("format = 1\n[[attribute]]\n")
    for schema in ("absent.toml", "bad.toml"):
        run = ("synthesize", given[0], "--schema", schema, "--records", 5, "--out", "o")
        assert deniable(*run).complains(2, schema)


def test_a_private_draft_is_part_of_the_total(deniable, given, small_files):
    """What is left must be something: else exit 3, and the message says what to ask for."""
    head, attributes = (small_files / "schema.toml").read_text().split("\n[[attribute]]", 1)
    for epsilon, code in ((0.3, 0), (1.0, 3), (2.5, 3)):
        bought = f"[draft]\nepsilon = {epsilon}\ndelta = 1e-10\n"
        Path("bought.toml").write_text(f"{head}\n{bought}\n[[attribute]]{attributes}")
        out = f"o{epsilon}"
        run = ("synthesize", given[0], "--schema", "bought.toml", "--records", 5, "--out", out)
        result = deniable(*run, "--mode", "seedless", "--epsilon", 1.0)
        if code:
            assert result.complains(3, "the private draft of the schema costs", "a larger ε")
        else:
            assert result.code == 0
            assert "drafted from this table" in " ".join(result.out.split())
            assert deniable("verify", out).code == 0
        assert deniable("plan", "--schema", "bought.toml", "--epsilon", 1.0).code == code
    folders = {name.partition("/")[0] for name in here()}
    assert folders == {"bought.toml", "o0.3", "o0.3.internal"}


def test_a_drafted_schema_is_refused_unless_it_is_accepted(deniable, given, small_files):
    text = (small_files / "schema.toml").read_text()
    drafted = text.replace('name = "pet"\n', 'name = "pet"\nconfirmed = false\n')
    Path("draft.toml").write_text(drafted)
    assert [a.name for a in Schema.read("draft.toml").attributes if not a.confirmed] == ["pet"]
    run = ("synthesize", given[0], "--schema", "draft.toml", "--records", 5, "--out", "o", *FAST)
    assert deniable(*run).complains(2, '"pet"', "confirmed = true", "--accept-drafted-schema")
    assert here() == ["draft.toml"]
    assert deniable(*run, "--accept-drafted-schema").code == 0
    manifest = json.loads(Path("o/manifest.json").read_text())
    assert manifest["schema"]["drafted"] == ["pet"]


# Nothing of the table


FAULTY = {
    "a value outside": "Zq7,{t},{h},1,{p}\n",
    "a number outside": "9999777,{t},{h},1,{p}\n",
    "a text outside": "30,Zq7Secret,{h},1,{p}\n",
    "too many cells": "30,{t},{h},1,{p},Zq7Secret\n",
    "too few cells": "30,Zq7Secret\n",
    "an open quote": '30,"Zq7Secret,{h},1,{p}\n',
    "not UTF-8": "30,Zq7Secret\udcff,{h},1,{p}\n",
}


@pytest.mark.parametrize("fault", FAULTY)
@pytest.mark.parametrize("command", ["synthesize", "learn"])
def test_a_faulty_table_ends_with_2_and_no_cell_shows(deniable, given, fault, command):
    line = FAULTY[fault].format(t=TRADES[0], h=HOMES[0], p=PETS[0])
    rows = ["years,trade,home,boats,pet\n", f"30,{TRADES[1]},{HOMES[1]},2,{PETS[1]}\n", line]
    Path("t.csv").write_bytes("".join(rows).encode(errors="surrogateescape"))
    more = ["--records", 5] if command == "synthesize" else []
    result = deniable(command, "t.csv", *given[1:], "--out", "o", *more, *FAST)
    assert result.complains(2, "DataError", "t.csv")
    for cell in ("Zq7", "9999777", "7777"):
        assert cell not in result.err
    assert here() == ["t.csv"]


def test_a_table_that_is_not_there_or_empty_ends_with_2(deniable, given):
    Path("empty.csv").write_text("")
    Path("broken.parquet").write_bytes(b"PAR1 Zq7Secret")
    for name in ("absent.csv", "empty.csv", "broken.parquet", "table.xls"):
        run = ("synthesize", name, *given[1:], "--records", 5, "--out", "o", *FAST)
        result = deniable(*run)
        assert result.complains(2, name)
        assert "Zq7" not in result.err


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
def test_neither_manifest_nor_internal_numbers_quote_a_cell(deniable, given, mode):
    """Records, schema and artefact hold values; nothing else that is written may."""
    run = ("synthesize", *given, "--records", 50, "--out", "o", "--mode", mode, *FAST)
    assert deniable(*run).code == 0
    for path in (Path("o/manifest.json"), Path("o.internal/run.json")):
        text = path.read_text()
        for cell in CELLS:
            assert cell not in text

    def leaves(value):
        if isinstance(value, dict):
            return [leaf for each in value.values() for leaf in leaves(each)]
        if isinstance(value, list):
            return [leaf for each in value for leaf in leaves(each)]
        return [value]

    internal = json.loads(Path("o.internal/run.json").read_text())
    assert all(isinstance(leaf, int | float) for leaf in leaves(internal))


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
def test_how_often_a_fallback_was_used_is_in_the_internal_folder_only(deniable, mode):
    """Two tables that differ in such cells only have the same records, terminal and manifest."""
    described = 'type = "integer"\nmin = 0\nmax = 3\noutside = "clip"\nfallback = 1'
    schema = "".join(f'[[attribute]]\nname = "{name}"\n{described}\n' for name in "xy")
    Path("s.toml").write_text(f"format = 1\n{schema}")
    good = [[str(i % 4), str(i % 3)] for i in range(4_000)]
    odd = [
        ["99" if x == "3" and i < 2_000 else x, "?" if y == "1" and i < 600 else y]
        for i, (x, y) in enumerate(good)
    ]
    results = []
    for folder, rows in (("good", good), ("odd", odd)):
        Path(f"{folder}.csv").write_text("\n".join(["x,y", *map(",".join, rows)]) + "\n")
        run = ("synthesize", f"{folder}.csv", "--schema", "s.toml", "--records", 50)
        results.append(deniable(*run, "--mode", mode, "--out", folder, *FAST[:2], "--omega", 1))
        assert results[-1].code == 0
    internal = [json.loads(Path(f"{out}.internal/run.json").read_text()) for out in ("good", "odd")]
    assert internal[0]["adjusted_cells"] == {}
    assert internal[1]["adjusted_cells"] == {"x": {"clipped": 500}, "y": {"replaced": 200}}
    assert [each["moved_columns"] for each in internal] == [[], ["x", "y"]]
    assert results[1].out.replace("odd", "good") == results[0].out
    assert results[1].err.replace("odd", "good") == results[0].err
    names = [{path.name for path in Path(out).rglob("*")} for out in ("good", "odd")]
    assert names[0] == names[1]
    shown = [json.loads(Path(f"{out}/manifest.json").read_text()) for out in ("good", "odd")]
    for manifest in shown:
        del manifest["checksum"], manifest["files"]
        manifest["parameters"].pop("key", None)
    assert shown[0] == shown[1]
