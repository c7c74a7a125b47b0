"""What commands print: paragraphs, JSON, progress bars, results."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import start
from deniable.cli.output import (
    print_json,
    print_list,
    print_text,
    program_name,
    show_artefact,
    show_metrics,
    show_progress,
    show_release,
    show_verification,
    summarize_claim,
    summarize_kept,
)
from deniable.cli.plan_tables import show_plan
from deniable.cli.terminal import escape
from deniable.config import Config
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.pipeline import api
from deniable.pipeline.api import learn
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.verification.claims import Check
from deniable.workers import no_progress
from small_runs import synthesize
from worlds import plain_attribute


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


def test_what_to_do_next_is_said_so_that_it_can_be_done(small_files, tmp_path):
    """Called as a module, the program names itself as one."""
    process = start("init", small_files / "table.csv", "--out", "draft.toml", cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Next: python -m deniable plan --schema draft.toml" in out
    assert "__main__" not in out


def test_text_is_wrapped_and_not_marked_up(capsys, monkeypatch):
    """A path such as out[bold]/ is printed as it is."""
    monkeypatch.setenv("COLUMNS", "40")
    print_text("out[bold]/ " + "word " * 20)
    printed = capsys.readouterr().out
    assert printed.startswith("out[bold]/ word")
    assert max(map(len, printed.splitlines())) <= 40


# Names of columns that a terminal, or a library that draws on one, would take for something else.
ODD_NAMES = [
    "wage [/h]",
    "speed [m/s]",
    "[bold]",
    ":warning:",
    "a\\[b]",
    "x\x1b[2J",
    "n\nPASS",
    "ε\u202e",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_of_columns_are_printed_literally(capsys, name):
    shown = escape(name)
    print_text(f"Draft in {name}")
    assert capsys.readouterr().out == f"Draft in {shown}\n\n"
    print_json(name=name)
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"name": name}
    assert "\x1b" not in printed
    show_verification(
        [Check(name="ledger", passed=False, explanation=f"{name} is missing")], [name], place=name
    )
    printed = capsys.readouterr().out
    assert f"FAIL  ledger: {shown} is missing\n" in printed
    assert f"  - {shown}\n" in printed
    assert f"do not trust {shown}.\n" in printed


def test_a_long_path_is_neither_cut_nor_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    print_text("Draft in " + "p/" * 100)
    assert "p/" * 100 in capsys.readouterr().out


def test_a_text_from_a_manifest_never_begins_a_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = " ".join(["PASS: all 20 checks passed;"] * 9)
    check = Check(name="ledger", passed=False, explanation=text)
    show_verification([check], [text], place="o")
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith(("PASS", "passed"))]


# Progress


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False), (True, False)])
def test_without_a_terminal_or_if_quiet_there_is_no_bar(monkeypatch, capsys, quiet, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with show_progress(quiet=quiet) as progress:
        assert progress is no_progress
    assert capsys.readouterr().err == ""


def test_on_a_terminal_each_stage_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress(quiet=False) as progress:
        for done in range(4):
            progress("records [of 3] \x1b[2J:warning:", done, 3)
    printed = capsys.readouterr()
    assert "records [of 3] \\x1b[2J:warning:" in printed.err
    assert printed.out == ""


# Verification


def test_a_verification_prints_every_check_and_counts_what_failed(capsys):
    checks = [
        Check(name="files", passed=True, explanation="All hashes agree."),
        Check(name="ledger", passed=False, explanation="A spend is missing."),
    ]
    show_verification(checks, ["the noise"], place="o")
    printed = capsys.readouterr().out
    assert "PASS  files: All hashes agree." in printed
    assert "FAIL  ledger: A spend is missing." in printed
    assert "  - the noise" in printed
    assert printed.endswith("FAIL: 1 of 2 checks failed; do not trust o.\n")
    show_verification(checks[:1], [], place="o")
    assert "PASS: all 1 checks passed; o is what" in capsys.readouterr().out


def test_a_list_has_a_heading_and_is_wrapped(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    print_list("Found:", ["one", "some words that are wrapped"])
    assert capsys.readouterr().out == ("Found:\n- one\n- some words that\n  are wrapped\n\n")


def test_an_evaluation_prints_the_relations_and_the_sample_equivalent(
    capsys, small_table, small_schema
):
    effort = Effort(runs=1, rows=200, trees=2, game=50)
    metrics = evaluate(small_table, small_table, small_schema, effort=effort)
    show_metrics(metrics, Path("o"))
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("Good. These records")
    assert "- Relations: 100 % of the strength of associations" in printed
    assert "- Predicting home: the best model" in printed
    assert "- Sample equivalent: for pairs of columns, these records are as good as" in printed
    assert printed.index("Relations") < printed.index("Confidential")
    show_metrics(replace(metrics, findings=None), Path("o"))
    assert capsys.readouterr().out.startswith("Report in o")


# The result of a run

WARNING = "WARNING: Most of what was learnt is noise"


@pytest.fixture(scope="module")
def moved_release():
    """A release of a table of which the schema clips 1 % of x and 0.4 % of y; z it fits."""
    schema = Schema(
        tuple(
            Attribute(name=name, kind="integer", values=range(4), outside="clip") for name in "xyz"
        )
    )
    at = np.arange(1_000)
    x, y = (np.where(at % every == 0, 99, at % 4) for every in (100, 250))
    frame = pl.DataFrame({"x": x, "y": y, "z": at % 4})
    return api.synthesize(frame, schema, records=5, omega="3")


@pytest.mark.parametrize(
    "options", [{}, {"quiet": True}, {"as_json": True}, {"quiet": True, "as_json": True}], ids=str
)
@pytest.mark.parametrize("terminal", [False, True])
def test_columns_of_moved_cells_are_named_at_a_terminal_only(
    capsys, monkeypatch, moved_release, options, terminal
):
    """Without shares: which column passes a threshold is an exact answer as it is."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    shown = {"quiet": False, "as_json": False, **options}
    show_release(moved_release, Path("o"), 5, **shown)
    printed = " ".join(capsys.readouterr().out.split())
    is_named = "has no value for many cells of x:" in printed
    assert is_named == (terminal and not options)
    assert ("cells" in printed) == is_named
    if is_named:
        assert "10" not in printed.partition("WARNING")[2].partition("Publish")[0]
    assert moved_release.internal["moved_columns"] == ["x"]


def test_moved_columns_are_in_no_file_of_the_release(moved_release, tmp_path):
    moved_release.write(tmp_path / "o")
    for path in (tmp_path / "o").rglob("*"):
        assert path.is_dir() or b"moved_columns" not in path.read_bytes()
    assert json.loads((tmp_path / "o.internal" / "run.json").read_text())["moved_columns"] == ["x"]


def test_a_run_reminds_that_costs_add_up(capsys, small_table, small_schema):
    """Without a guarantee there is no cost; without an artefact, more records are not free."""
    for mode, epsilon, reminds, free in (
        ("seedless", 1.0, True, True),
        ("seedless", math.inf, False, False),
        ("tested", 1.0, True, False),
    ):
        options = {"k": 5, "omega": "3"} if mode == "tested" else {}
        release = synthesize(small_table, small_schema, mode, 5, epsilon=epsilon, **options)
        show_release(release, Path("o"), 5, quiet=False, as_json=False)
        printed = " ".join(capsys.readouterr().out.split())
        assert ("Costs add up: every other run on the same table" in printed) == reminds
        assert ("More records from the same artefact cost nothing" in printed) == free


def test_only_a_private_release_is_recommended_for_publication(capsys, small_table, small_schema):
    """Without noise there is nothing that could be published."""
    for epsilon, recommended in ((1.0, True), (math.inf, False)):
        release = synthesize(small_table, small_schema, "seedless", 5, epsilon=epsilon)
        show_release(release, Path("o"), 5, quiet=False, as_json=False)
        printed = capsys.readouterr().out
        assert printed.startswith("5 records in o\n")
        assert ("Publish o/" in printed) == recommended
        claim = summarize_claim(release.certificate)
        assert claim["epsilon"] == (
            "inf" if epsilon == math.inf else release.certificate.cost.epsilon
        )
        json.dumps(claim, allow_nan=False)


@pytest.mark.parametrize(
    "options", [{"delta": 1e-3, "accept_large_delta": True}, {"epsilon": 12.0}], ids=str
)
def test_after_a_warning_nothing_is_recommended_for_publication(
    capsys, small_table, small_schema, options
):
    release = synthesize(small_table, small_schema, "seedless", 5, **options)
    show_release(release, Path("o"), 5, quiet=False, as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "WARNING: " in printed
    assert "Publish" not in printed
    assert "After this WARNING, treat o/ like the table itself." in printed


@pytest.mark.parametrize("rows", [2, 2_000])
def test_what_the_noise_left_is_printed_and_warned_of(capsys, small_table, small_schema, rows):
    """In words on a terminal, and as figures, words and warnings in JSON; both commands."""
    table = small_table.head(rows)
    release = synthesize(table, small_schema, "seedless", 5)
    artefact = learn(table, small_schema, mode="seedless")
    out = Path("o")
    for show in (
        lambda **more: show_release(release, out, 5, **more),
        lambda **more: show_artefact(artefact, out, **more),
    ):
        show(quiet=False, as_json=False)
        printed = " ".join(capsys.readouterr().out.split())
        assert "What the noise left, by the noisy counts alone: - A single value:" in printed
        assert ("stands out" if rows == 2 else "of 10 pairs of columns show a depend") in printed
        assert (WARNING in printed) == (rows == 2)
        show(quiet=False, as_json=True)
        answer = json.loads(capsys.readouterr().out)
        assert answer["kept"]["pairs"] <= 10
        assert answer["kept"]["text"][0].startswith("A single value:")
        assert len(answer["warnings"]) == (rows == 2)
        show(quiet=True, as_json=False)
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("mode", "epsilon"), [("seedless", math.inf), ("tested", 1.0)])
def test_without_noisy_pairs_nothing_is_said_of_them(
    capsys, small_table, small_schema, mode, epsilon
):
    options = {"k": 5, "omega": "3"} if mode == "tested" else {}
    release = synthesize(small_table, small_schema, mode, 5, epsilon=epsilon, **options)
    show_release(release, Path("o"), 5, quiet=False, as_json=False)
    assert "What the noise left" not in capsys.readouterr().out
    show_release(release, Path("o"), 5, quiet=False, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kept"], answer["warnings"]) == (None, [])
    if release.artefact is not None:
        assert summarize_kept(release.artefact) == {"kept": None, "warnings": []}


def plan_of(m, **options):
    return plan_of_columns([f"x{i}" for i in range(m)], **options)


def plan_of_columns(names, **options):
    schema = Schema(tuple(plain_attribute(name, 3) for name in names), rows_max=1_000)
    config = Config.assemble(options)
    return report_plan(plan_run(schema, config), schema, config)


# Names that a terminal, or the library that draws tables, would take for something else.
@pytest.mark.parametrize(
    "name",
    ["wage [/h]", "speed [m/s]", "[bold]", ":warning:", "a\\[b]", "x\x1b[2J", "n\nPASS", "ε\u202e"],
)
def test_names_of_planned_columns_are_printed_literally(capsys, name):
    """A plan died of ``wage [/h]`` and showed ``speed [m/s]`` as ``speed``."""
    show_plan(plan_of_columns([name, "y"]), show_all=True)
    assert f"values of {escape(name)} " in capsys.readouterr().out


def test_a_long_name_is_neither_cut_nor_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    show_plan(plan_of_columns(["n" * 150, "y"]), show_all=False)
    assert capsys.readouterr().out.count("n") >= 150


def test_one_way_tables_of_many_attributes_are_one_row(capsys):
    show_plan(plan_of(20), show_all=False)
    listed = capsys.readouterr().out
    assert "values of x19" in listed
    assert "tables of values" not in listed
    show_plan(plan_of(21), show_all=False)
    combined = capsys.readouterr().out
    assert "21 tables of values" in combined
    assert "values of x" not in combined


def test_the_forecast_is_printed_in_words_with_its_warning(capsys):
    show_plan(plan_of(3, rows_max=50_000), show_all=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Forecast for 50,000 rows, a guess (rows_max)" in printed
    assert "about as good as a random sample of" in printed
    assert "WARNING" not in printed
    show_plan(plan_of(3, rows_max=2), show_all=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "no dependence stands out from the noise, however strong it is" in printed
    assert "WARNING: Most of what this run learns will be noise" in printed
    show_plan(plan_of(3, estimator="clip"), show_all=False)
    assert "Forecast" not in capsys.readouterr().out
