"""The commands init, evaluate and reproduce."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from deniable import __main__ as program
from deniable.errors import ConfigError
from deniable.evaluation import evaluate as evaluate_module
from deniable.evaluation.effort import Effort
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the program in this process, in an empty folder; return code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        monkeypatch.setattr("sys.argv", ["deniable", *map(str, args)])
        code = program.run()
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def table(small_files, tmp_path):
    path = tmp_path / "table.csv"
    shutil.copy(small_files / "table.csv", path)
    return path


# init


def test_init_drafts_a_schema_that_reads_the_table_and_is_refused_until_confirmed(run, table):
    code, said, _ = run("init", table)
    assert code == 0
    assert "set confirmed = true" in " ".join(said.split())
    schema = Schema.read("schema.toml")
    assert set(schema.drafted) >= {"rows_max", *(column.name for column in schema.columns)}
    assert not any(constraint.confirmed for constraint in schema.constraints)
    asked = ("synthesize", table, "--schema", "schema.toml", "--records", 50)
    code, _, error = run(*asked, "--out", "o")
    assert (code, "confirmed" in error) == (2, True)
    assert run(*asked, "--out", "o", "--accept-drafted-schema", "--quiet")[0] == 0
    assert (
        "read off this table"
        in json.loads(Path("o/manifest.json").read_text())["guarantee"]["sentence"]
    )


def test_a_table_without_a_header_line_comes_back_without_one(run, table):
    """It is drafted, learnt, verified and compared; its columns have the schema's names."""
    header, rows = table.read_text().split("\n", maxsplit=1)
    Path("rows.csv").write_text(rows)
    code, _, error = run("init", "rows.csv")
    assert (code, "is the header line missing?" in error) == (2, True)
    assert not any(cell in error for cell in rows.split("\n")[0].split(",") if len(cell) > 2)
    assert run("init", "rows.csv", "--no-header", "--quiet")[0] == 0
    text = Path("schema.toml").read_text().replace("column_1", "age")
    Path("schema.toml").write_text(text)
    options = ("--schema", "schema.toml", "--records", 60, "--accept-drafted-schema", "--quiet")
    assert run("synthesize", "rows.csv", *options, "--out", "o", "--epsilon", 5)[0] == 0
    lines = Path("o/synthetic.csv").read_text().splitlines()
    assert len(lines) == 60
    assert lines[0].count(",") == header.count(",")
    assert run("verify", "o", "--against", "rows.csv")[0] == 0
    generate = ("generate", "o/artefact", "--records", 70, "--out", "more.csv", "--quiet")
    assert run(*generate)[0] == 0
    for artefact in ((), ("--artefact", "o/artefact")):
        assert run("verify", "more.csv", *artefact)[0] == 0
    Path("more.csv").write_text("\n".join(Path("more.csv").read_text().split("\n")[1:]))
    assert run("verify", "more.csv")[0] == 1
    compare = ("evaluate", "rows.csv", "o/synthetic.csv", "--schema", "schema.toml")
    assert run(*compare, "--out", "report", "--quiet")[0] == 0
    assert run("init", table, "--header", "--out", "named.toml", "--quiet")[0] == 0
    assert "header" not in Schema.read("named.toml").text()


def test_init_prints_ten_notes_and_all_of_them_on_request(run, tmp_path):
    """Each column has its own number of rare values, and so its own note."""
    columns = {f"c{j}": [f"w{min(r, 20 + j)}" for r in range(120)] for j in range(12)}
    pl.DataFrame(columns).write_csv(tmp_path / "many.csv")
    code, said, _ = run("init", "many.csv", "--out", "some.toml")
    assert (code, said.count("\n- ")) == (0, 10)
    assert "--all" in said
    code, said, _ = run("init", "many.csv", "--out", "all.toml", "--all")
    assert code == 0
    assert said.count("\n- ") > 10
    assert Path("some.toml").read_text() == Path("all.toml").read_text(), "the file lists them all"


def test_init_overwrites_nothing(run, table, tmp_path):
    (tmp_path / "schema.toml").write_text("mine")
    code, _, error = run("init", table)
    assert (code, "exists" in error) == (2, True)
    assert (tmp_path / "schema.toml").read_text() == "mine"


@pytest.mark.parametrize("options", [(), ("--draft-epsilon", 1)])
def test_a_draft_that_does_not_parse_is_a_bug_and_is_not_written(run, table, monkeypatch, options):
    monkeypatch.setattr("deniable.drafting.draft.write_attribute", lambda _: "[[attribute]]\n")
    code, _, error = run("init", table, *options)
    assert (code, "bug of deniable" in " ".join(error.split())) == (4, True)
    assert not Path("schema.toml").exists()


def test_a_bought_draft_is_part_of_the_total(run, table):
    code, said, _ = run("init", table, "--draft-epsilon", 0.5, "--json")
    assert code == 0
    cost = json.loads(said)["cost"]
    assert 0 < cost["epsilon"] <= 0.5
    code, _, error = run("plan", "--schema", "schema.toml", "--epsilon", 0.4)
    assert code == 3
    assert "draft" in error
    args = ("--schema", "schema.toml", "--records", 50, "--out", "o", "--quiet")
    assert run("synthesize", table, *args, "--epsilon", 2)[0] == 0
    claimed = json.loads(Path("o/manifest.json").read_text())
    assert claimed["parameters"]["draft"]["epsilon"] == cost["epsilon"]
    assert cost["epsilon"] < claimed["guarantee"]["epsilon"] <= 2
    assert run("verify", "o", "--quiet")[0] == 0


@pytest.mark.parametrize("with_comments", [True, False])
def test_a_bought_draft_without_its_cost_is_refused(run, table, with_comments):
    """Deleting a section leaves a trace: its ε would be in no total, not even in that of a plan."""
    assert run("init", table, "--draft-epsilon", 0.5, "--quiet")[0] == 0
    text = Path("schema.toml").read_text()
    assert "No entry of the schema" not in run("plan", "--schema", "schema.toml")[1]
    cost = text[text.index("\n[draft]\n") : text.index("\n[[attribute]]")]
    lost = text.replace(cost, "")
    if not with_comments:
        lost = "\n".join(re.sub(r"^#.*| +# .*", "", line) for line in lost.split("\n"))
    Path("lost.toml").write_text(lost)
    given = ("--schema", "lost.toml", "--records", 50)
    synthesize = ("synthesize", table, *given, "--out", "o", "--quiet")
    for command in (("plan", *given), synthesize, ("learn", table, *given[:2], "--out", "o")):
        code, said, error = run(*command)
        assert (code, said) == (2, "")
        assert "the section [draft]" in error
        assert "--accept-drafted-schema" in error
    assert not Path("o").exists()
    assert run("plan", *given, "--accept-drafted-schema", "--quiet")[0] == 0
    assert run(*synthesize, "--accept-drafted-schema")[0] == 0
    names = [column.name for column in Schema.read("lost.toml").columns]
    claimed = json.loads(Path("o/manifest.json").read_text())
    assert sorted(claimed["schema"]["drafted"]) == sorted(["rows_max", *names])
    assert run("verify", "o", "--quiet")[0] == 0


def test_a_bought_draft_of_an_earlier_version_is_charged_and_told_what_to_write(run, table):
    assert run("init", table, "--draft-epsilon", 0.5, "--quiet")[0] == 0
    text = Path("schema.toml").read_text()
    Path("schema.toml").write_text(text.replace('confirmed = "draft"', "confirmed = true"))
    code, said, _ = run("plan", "--schema", "schema.toml")
    words = " ".join(said.split())
    assert code == 0
    assert "covers the private draft of the schema, which alone costs ε = 0.5" in words
    assert 'Write confirmed = "draft"' in words


def test_init_drafts_buckets_for_the_paper_s_profile_only(run, table):
    for out, profile in (("ours.toml", []), ("paper.toml", ["--profile", "paper"])):
        assert run("init", table, "--out", out, *profile, "--quiet")[0] == 0
    assert "buckets" not in Path("ours.toml").read_text()
    assert "buckets = { width = " in Path("paper.toml").read_text()


def test_init_takes_types_from_sdv_metadata(run, table, tmp_path):
    names = pl.read_csv(table, n_rows=1).columns
    columns = {name: {"sdtype": "categorical"} for name in names}
    columns[names[0]] = {"sdtype": "numerical"}
    metadata = {"METADATA_SPEC_VERSION": "V1", "tables": {"t": {"columns": columns}}}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    assert run("init", table, "--sdv", "metadata.json", "--quiet")[0] == 0
    kinds = {c.name: getattr(c, "kind", None) for c in Schema.read("schema.toml").columns}
    assert kinds[names[0]] == "integer"
    assert kinds[names[3]] == "categorical"


@pytest.mark.parametrize("text", ["", "a,b\n", 'a,b\n1,"\n'])
def test_init_of_a_broken_table_says_so_and_leaves_nothing(run, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    code, said, error = run("init", "t.csv")
    assert (code, said) == (2, "")
    assert "Traceback" not in error
    assert not (tmp_path / "schema.toml").exists()


# evaluate


@pytest.fixture
def released(run, table, small_files):
    schema = small_files / "schema.toml"
    args = ("--schema", schema, "--records", 1_500, "--out", "o", "--quiet")
    assert run("synthesize", table, *args)[0] == 0
    return schema


def test_evaluate_writes_a_report_and_numbers(run, table, released, tmp_path):
    args = (table, "o/synthetic.csv", "--schema", released, "--out", "report")
    code, said, error = run("evaluate", *args, "--target", "home")
    assert (code, error) == (0, "")
    assert "report.html" in said
    metrics = json.loads((tmp_path / "report/metrics.json").read_text())
    assert (
        0 <= metrics["distances"]["attributes"]["mean"] <= metrics["distances"]["pairs"]["max"] <= 1
    )
    page = (tmp_path / "report/report.html").read_text()
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_first_report_is_the_default_and_a_thorough_one_an_option(
    run, table, small_files, monkeypatch
):
    efforts = []

    def measure(*_arguments, effort, **_options):
        efforts.append(effort)
        raise ConfigError("this is enough")

    monkeypatch.setattr(evaluate_module, "evaluate", measure)
    args = (table, table, "--schema", small_files / "schema.toml", "--out", "report")
    assert [run("evaluate", *args, *more)[0] for more in ((), ("--thorough",))] == [2, 2]
    assert efforts == [Effort.quick(), Effort()]


def test_a_public_report_does_not_open_the_real_table(run, released, tmp_path):
    args = ("absent.csv", "o/synthetic.csv", "--schema", released, "--out", "report")
    assert run("evaluate", *args, "--edition", "public", "--quiet")[0] == 0
    assert (tmp_path / "report/report.html").is_file()
    assert run("evaluate", *args[:-1], "other", "--quiet")[0] == 2


def test_an_edition_that_is_none_is_refused(run, table, released):
    args = (table, "o/synthetic.csv", "--schema", released, "--out", "report")
    code, _, error = run("evaluate", *args, "--edition", "secret")
    assert (code, "'internal', 'public'" in error) == (2, True)


# reproduce


def test_reproduce_needs_a_schema_for_a_table(run, table):
    code, _, error = run("reproduce", "--data", table, "--out", "r")
    assert (code, "--schema" in error) == (2, True)


@pytest.fixture
def reproductions(monkeypatch, tmp_path):
    """Instead of a reproduction, what it was asked for."""
    asked = []

    def reproduce(data, schema, out, **options):
        asked.append({"data": data, "schema": schema, "out": out, **options})
        return tmp_path / "report.html"

    monkeypatch.setattr("deniable.reproduction.reproduce.reproduce", reproduce)
    return asked


def test_reproduce_takes_its_sizes_from_the_command_line(run, table, small_files, reproductions):
    args = ("--data", table, "--schema", small_files / "schema.toml", "--out", "r")
    assert run("reproduce", *args)[0] == 0
    assert run("reproduce", *args, "--runs", 3, "--models", 4, "--records", 99)[0] == 0
    usual, chosen = (asked["setup"] for asked in reproductions)
    assert (usual.runs, usual.models, usual.records) == (5, 20, None)
    assert (chosen.runs, chosen.models, chosen.records) == (3, 4, 99)
    assert {asked["note"] for asked in reproductions} == {""}
    assert run("reproduce", *args, "--runs", 0)[0] == 2


def test_reproduce_says_that_the_embedded_table_is_synthetic(run, reproductions):
    code, said, _ = run("reproduce", "--out", "r")
    assert code == 0
    (asked,) = reproductions
    assert "itself synthetic" in " ".join(said.split())
    assert "itself synthetic" in asked["note"]
    assert asked["setup"].runs < 5
