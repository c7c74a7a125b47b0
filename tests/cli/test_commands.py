"""The command line: what it prints, what it leaves, and the number it ends with."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.core import TyperGroup

from conftest import HOMES, PETS, TRADES
from deniable import __main__ as program
from deniable.cli.commands import app
from deniable.cli.output import program_name
from deniable.data.codec import Codec
from deniable.errors import InvariantError
from deniable.pipeline import api, seed_modes
from deniable.release.atomic_files import file_hash
from deniable.schema.schema import Schema

CELLS = (*TRADES, *HOMES, *PETS)
FAST = ("--epsilon", "inf", "--omega", "3", "--k", "20")


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout, strict, on a line of its own."""
        assert self.out.count("\n") == 1
        assert self.out.endswith("\n")

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        answer = json.loads(self.out, parse_constant=refuse)
        assert isinstance(answer, dict)
        return answer

    def complains(self, code, *words):
        """Whether it failed with this code, in words, and printed nothing else."""
        assert self.code == code, self.err
        assert self.out == ""
        for word in words:
            assert word in self.err
        return True


@pytest.fixture
def deniable(monkeypatch, capsys, tmp_path):
    """Run the program in this process, in an empty folder."""
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    monkeypatch.chdir(cwd)

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["deniable", *map(str, args)])
        capsys.readouterr()
        code = program.run()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        for cell in CELLS:
            assert cell not in printed.out + printed.err
        return Result(code, printed.out, printed.err)

    return run


@pytest.fixture
def table(small_files):
    return small_files / "table.csv"


@pytest.fixture
def given(small_files):
    """The table and its schema, as arguments."""
    return (small_files / "table.csv", "--schema", small_files / "schema.toml")


@pytest.fixture(scope="module")
def artefact(tmp_path_factory, small_table, small_schema):
    folder = tmp_path_factory.mktemp("learnt") / "artefact"
    api.learn(small_table, small_schema, k=20, omega="3").save(folder)
    return folder


def names_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*"))


def here():
    return names_below(Path.cwd())


def read_csv(path):
    return pl.read_csv(path, null_values={"trade": "?"})


# The contract: commands and options

COMMANDS = ["demo", "plan", "learn", "generate", "synthesize", "verify"]
OPTIONS = [
    *("epsilon", "delta", "k", "omega", "gamma", "epsilon0", "t", "mode", "profile", "data-use"),
    *("max-cost", "estimator", "alpha", "omega-known", "rows-max", "config"),
    *("workers", "accept-drafted-schema", "quiet", "json"),
]


def options_of(command):
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    known = group.commands
    return {text for param in known[command].params for text in param.opts}


@pytest.mark.parametrize("command", COMMANDS)
def test_there_is_a_command(deniable, command):
    result = deniable(command, "--help")
    assert result.code == 0
    assert command in result.out


@pytest.mark.parametrize("command", ["plan", "learn", "synthesize"])
@pytest.mark.parametrize("option", OPTIONS)
def test_the_options_are_the_same_everywhere(command, option):
    assert f"--{option}" in options_of(command)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("demo", {"--out"}),
        ("learn", {"--schema", "--out"}),
        ("generate", {"--records", "--out", "--key"}),
        ("synthesize", {"--schema", "--records", "--out", "--format", "--key"}),
        ("plan", {"--schema", "--records"}),
    ],
)
def test_a_command_has_options_of_its_own(command, options):
    assert options <= options_of(command)


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


def test_infinity_is_a_text_in_json(deniable, given):
    answer = deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST, "--json").json
    assert answer["epsilon"] == "inf"
    assert answer["guarantee"].startswith("No privacy is claimed")


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
        ["--mode", "seedless", "--data-use", "split"],
        ["--mode", "randomized", "--records", 3, "--k", 400, "--delta", 1e-6],
        ["--k", 1],
    ],
)
def test_what_plan_says_with_json(deniable, small_files, more):
    answer = deniable("plan", "--schema", small_files / "schema.toml", "--json", *more).json
    assert {"mode", "cost", "stages", "records", "trade_off", "k"} <= set(answer)


def test_plan_agrees_with_the_run(deniable, given):
    planned = deniable("plan", *given[1:], "--k", 20, "--omega", 3, "--json").json
    deniable("synthesize", *given, "--records", 5, "--out", "o", "--k", 20, "--omega", 3)
    claim = json.loads(Path("o/manifest.json").read_text())
    assert planned["cost"]["epsilon"] == claim["guarantee"]["epsilon"]
    assert planned["threshold"] == claim["parameters"]["threshold"]


# Options, their order, and their faults


def test_a_flag_beats_the_config_file_beats_the_profile(deniable, given):
    Path("c.toml").write_text('epsilon = inf\nk = 33\nmode = "seedless"\nomega = "3"\n')
    args = ("synthesize", *given, "--records", 5, "--config", "c.toml", "--profile", "paper")
    assert deniable(*args, "--out", "o", "--mode", "tested", "--k", 20).code == 0
    manifest = json.loads(Path("o/manifest.json").read_text())
    assert manifest["mode"] == "tested"
    assert manifest["parameters"]["k"] == 20  # flag over file over profile
    assert manifest["parameters"]["epsilon"] == "inf"  # file over default
    assert manifest["parameters"]["omega"] == [3]  # file over profile
    assert manifest["data_use"] == "split"  # profile over default
    assert manifest["parameters"]["estimator"] == "clip"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--mode", "magic"], ["mode", "magic", "'one-shot', 'seedless', 'tested', 'randomized'"]),
        (["--omega", "6"], ["omega", "only 5 attributes"]),
        (["--omega", "3-9"], ["omega", "only 5 attributes"]),
        (["--omega", "0"], ["omega"]),
        (["--omega", "some"], ["omega"]),
        (["--omega-known", "maybe"], ["omega-known", "'yes', 'no'"]),
        (["--epsilon", "0"], ["epsilon"]),
        (["--epsilon", "-1"], ["epsilon"]),
        (["--epsilon", "nan"], ["epsilon"]),
        (["--delta", "2"], ["delta"]),
        (["--k", "0"], ["k = 0"]),
        (["--profile", "magic"], ["profile"]),
        (["--data-use", "some"], ["data-use"]),
        (["--estimator", "magic"], ["estimator"]),
        (["--workers", "0"], ["workers"]),
        (["--config", "absent.toml"], ["absent.toml", "cannot be read"]),
    ],
)
def test_an_option_that_makes_no_sense_ends_with_2(deniable, given, more, words):
    for command in (["synthesize", "--records", 5], ["learn"]):
        assert deniable(*command, *given, "--out", "o", *more).complains(2, *words)
    assert deniable("plan", *given[1:], *more).complains(2, *words)
    assert here() == []


@pytest.mark.parametrize(
    "name", ["kk", "records", "key", "noise", "progress", "model", "source", "schema", "out"]
)
def test_an_unknown_option_in_the_config_file_ends_with_2(deniable, given, name):
    """Some are arguments of the Python functions; a file must not reach those."""
    Path("c.toml").write_text(f"{name} = 5\n")
    run = ("synthesize", *given, "--records", 5, "--out", "o", "--config", "c.toml", *FAST)
    assert deniable(*run).complains(2, f'no option "{name}"')
    run = ("learn", *given, "--out", "a", "--config", "c.toml", *FAST)
    assert deniable(*run).complains(2, f'no option "{name}"')


@pytest.mark.parametrize(
    "text",
    [
        "max_cost = inf",
        "max_cost = nan",
        "order = 5",
        'profile = ["paper"]',
        "graph = 3",
        "k =",
        "epsilon0 = 0",
    ],
)
def test_a_fault_in_the_config_file_ends_with_2(deniable, given, text):
    Path("c.toml").write_text(text + "\n")
    run = ("synthesize", *given, "--records", 1, "--out", "o", "--config", "c.toml")
    result = deniable(*run, "--mode", "randomized", "--k", 400, "--delta", 1e-6)
    assert result.complains(2, text.partition(" ")[0] if text != "k =" else "c.toml")


@pytest.mark.parametrize(
    "more",
    [
        ["--delta", "0"],
        ["--delta", "1e-300"],
        ["--mode", "randomized"],
        ["--mode", "randomized", "--delta", "0"],
        ["--mode", "randomized", "--t", "500"],
    ],
)
def test_a_guarantee_that_cannot_be_met_ends_with_3(deniable, given, more):
    run = ("synthesize", *given, "--records", 1_000, "--out", "o", *more)
    assert deniable(*run).complains(3, "BudgetError")
    assert deniable("plan", *given[1:], "--records", 1_000, *more).complains(3, "BudgetError")
    assert here() == []


def test_a_hopeless_run_ends_with_3_and_leaves_nothing(deniable, given, monkeypatch):
    monkeypatch.setattr(seed_modes, "_MIN_ATTEMPTS", 2**15)
    Path("c.toml").write_text("max_attempts = 1\n")
    run = ("synthesize", *given, "--records", 5, "--out", "o", "--mode", "tested", "--k", 1_999)
    result = deniable(*run, "--omega", 1, "--epsilon", "inf", "--config", "c.toml")
    assert result.complains(3, "too few", "smaller k")
    assert here() == ["c.toml"]


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
    Path("header.csv").write_text("years,trade,home,boats,pet\n")
    Path("broken.parquet").write_bytes(b"PAR1 Zq7Secret")
    for name in ("absent.csv", "empty.csv", "header.csv", "broken.parquet", "table.xls"):
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


# Bugs and interruptions


INSIDE = [
    (InvariantError("the ledger does not equal the plan"), 4, "InvariantError: the ledger"),
    (RuntimeError("kelpfarmer"), 4, "bug: RuntimeError"),
    (KeyError("axolotl"), 4, "bug: KeyError"),
    (KeyboardInterrupt(), 130, "interrupted: nothing was written"),
]


@pytest.mark.parametrize("inside", INSIDE, ids=lambda inside: type(inside[0]).__name__)
def test_a_fault_inside_ends_with_its_code_and_without_its_cells(
    deniable, given, monkeypatch, inside
):
    fault, code, said = inside

    def fail(*_args, **_more):
        raise fault

    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    monkeypatch.setattr(api, "learn_model", fail)
    result = deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST)
    assert result.code == code
    assert said in result.err
    assert here() == []


# In a process of its own


def start(*args, cwd, within=(), **more):
    command = [*within, sys.executable, "-m", "deniable", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(command, cwd=cwd, text=True, **pipes)


def interrupt_in_the_middle(process, cwd):
    """Wait for the first file under a temporary name, then press Ctrl-C; return what it said."""
    try:
        for _ in range(600):
            if any(path.name.startswith(".partial") for path in cwd.iterdir()):
                break
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=8)
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_in_the_middle_of_writing_leaves_nothing(artefact, tmp_path):
    process = start("generate", artefact, "--records", 10**9, "--out", "r.csv", cwd=tmp_path)
    out, err = interrupt_in_the_middle(process, tmp_path)
    assert (process.returncode, out) == (130, "")
    assert "nothing was written" in err
    assert "Traceback" not in err
    assert names_below(tmp_path) == []


def test_ctrl_c_in_the_middle_of_a_search_for_records_leaves_nothing(given, tmp_path):
    """A hopeless test, far from giving up."""
    (tmp_path / "c.toml").write_text("max_attempts = 1_000_000_000\n")
    args = ("--mode", "tested", "--k", 1_999, "--omega", 1, "--epsilon", "inf")
    process = start(
        "synthesize", *given, "--records", 5, "--out", "o", *args, "--config", "c.toml",
        cwd=tmp_path,
    )  # fmt: skip
    out, err = interrupt_in_the_middle(process, tmp_path)
    assert (process.returncode, out) == (130, "")
    assert "nothing was written" in err
    assert "Traceback" not in err
    assert names_below(tmp_path) == ["c.toml"]


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_a_file_that_grows_too_large_leaves_nothing(artefact, tmp_path, name):
    """As on a full disk, writing fails half way: here, by a limit on the size of files."""
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "limited"]
    process = start(
        "generate", artefact, "--records", 1_000_000, "--out", name, cwd=tmp_path, within=limited
    )
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, ""), err
    assert "OutputError" in err
    assert name in err
    assert "Traceback" not in err
    assert names_below(tmp_path) == []


def test_a_terminal_that_takes_nothing_is_no_bug(small_files, tmp_path):
    """/dev/full as stdout: the environment's fault, code 2."""
    with Path("/dev/full").open("w") as full:
        schema = small_files / "schema.toml"
        process = start("plan", "--schema", schema, "--json", cwd=tmp_path, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Traceback" not in err


def test_what_to_do_next_is_said_so_that_it_can_be_done(table, tmp_path):
    """Called as a module, the program names itself as one."""
    process = start("init", table, "--out", "draft.toml", cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Next: python -m deniable plan --schema draft.toml" in out
    assert "__main__" not in out


@pytest.mark.parametrize(
    ("called", "on_path", "name"),
    [
        ("/lib/deniable/__main__.py", None, "python -m deniable"),
        ("/lib/deniable/__main__.py", "/bin/deniable", "python -m deniable"),
        ("/env/bin/deniable", "/env/bin/deniable", "deniable"),
        ("/env/bin/deniable", None, "/env/bin/deniable"),
        ("/lib/pytest/__main__.py", None, "deniable"),
    ],
)
def test_the_program_is_called_as_it_was(monkeypatch, called, on_path, name):
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr("shutil.which", lambda _: on_path)
    assert program_name() == name


def test_the_program_is_installed_under_its_name(tmp_path):
    program_file = Path(sys.executable).with_name("deniable")
    done = subprocess.run(
        [program_file, "generate", "absent", "--records", "5", "--out", "r.csv"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ArtefactError: absent is not an artefact")
