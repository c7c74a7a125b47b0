"""What commands print: paragraphs, tables, JSON, progress bars."""

import json
import math
import sys
from pathlib import Path

import pytest

from command_line import start
from deniable.cli.output import (
    count_records,
    print_json,
    print_text,
    program_name,
    show_plan,
    show_progress,
    show_release,
    show_verification,
    summarize_claim,
)
from deniable.cli.terminal import escape
from deniable.config import Config
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.progress import no_progress
from deniable.schema.schema import Schema
from deniable.verification.claims import Check
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


@pytest.mark.parametrize(
    ("number", "words"), [(1, "1 record"), (2, "2 records"), (10_000, "10,000 records")]
)
def test_records_are_counted_in_words(number, words):
    assert count_records(number) == words


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
    """A plan died of ``wage [/h]`` and showed ``speed [m/s]`` as ``speed``."""
    shown = escape(name)
    schema = Schema((plain_attribute(name, 3), plain_attribute("y", 3)), rows_max=1_000)
    config = Config.assemble({})
    show_plan(report_plan(plan_run(schema, config), config), show_all=True)
    assert f"values of {shown} " in capsys.readouterr().out
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


def test_a_long_name_is_neither_cut_nor_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    schema = Schema((plain_attribute("n" * 150, 3), plain_attribute("y", 3)), rows_max=1_000)
    config = Config.assemble({})
    show_plan(report_plan(plan_run(schema, config), config), show_all=False)
    assert capsys.readouterr().out.count("n") >= 150
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


# Plans and releases


def plan_of(m, **options):
    schema = Schema(tuple(plain_attribute(f"x{i}", 3) for i in range(m)), rows_max=1_000)
    config = Config.assemble(options)
    return report_plan(plan_run(schema, config), config)


def test_one_way_tables_of_many_attributes_are_one_row(capsys):
    show_plan(plan_of(20), show_all=False)
    listed = capsys.readouterr().out
    assert "values of x19" in listed
    assert "tables of values" not in listed
    show_plan(plan_of(21), show_all=False)
    combined = capsys.readouterr().out
    assert "21 tables of values" in combined
    assert "values of x" not in combined


def test_the_modes_are_compared_only_on_request(capsys):
    show_plan(plan_of(3), show_all=False)
    assert "Add --all to compare the modes." in capsys.readouterr().out
    show_plan(plan_of(3, k=2), show_all=True)
    printed = capsys.readouterr().out
    assert "seeds not covered" in printed
    assert "impossible" in printed
    assert "--all" not in printed


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
