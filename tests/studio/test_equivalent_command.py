"""Commands to paste: a shell reads them as the arguments that the studio runs."""

import shlex
import subprocess
from pathlib import Path

import pytest

from deniable.studio.equivalent_command import (
    as_argument,
    evaluate_command,
    generate_command,
    init_command,
    paste_text,
    plan_command,
    synthesize_command,
    verify_command,
)

ODD = "a b'c\"$(touch x)`;&|*é"


def test_a_shell_reads_back_the_same_arguments(tmp_path):
    folder = tmp_path / ODD
    folder.mkdir()
    command = synthesize_command(f"{ODD}.csv", schema="-s.toml", records="7", out=ODD)
    change, line = paste_text(folder, command).split("\n")
    assert shlex.split(line) == ["deniable", *command]
    shown = f'{change} && deniable() {{ printf "%s\\n" "$PWD" "$@"; }} && {line}'
    printed = subprocess.run(["/bin/sh", "-c", shown], capture_output=True, text=True, check=True)
    assert printed.stdout.split("\n")[:-1] == [str(folder), *command]
    assert list(folder.iterdir()) == []


def test_a_name_that_begins_with_a_dash_is_no_option():
    assert as_argument("-rf.csv") == "./-rf.csv"
    assert as_argument("a/-rf.csv") == "a/-rf.csv"
    for command in (
        init_command("-t.csv", out="-o.toml", unit="-u"),
        plan_command("-s.toml", records="1"),
        synthesize_command("-t.csv", schema="-s.toml", records="1", out="-o"),
        verify_command("-o", against="-t.csv"),
        evaluate_command("-t.csv", "-o", "synthetic.csv"),
        generate_command("-o", records="1", out="-more.csv"),
    ):
        options = [each for each in command if each.startswith("-")]
        assert all(each.startswith("--") for each in options)


@pytest.mark.parametrize(
    ("facts", "more"),
    [
        ({}, ()),
        ({"epsilon": "0.1"}, ("--draft-epsilon", "0.1")),
        ({"header": "yes"}, ("--header",)),
        ({"header": "no"}, ("--no-header",)),
        ({"unit": "id"}, ("--unit=id", "--max-rows-per-unit", "1")),
        ({"unit": "id", "rows_per_unit": "3"}, ("--unit=id", "--max-rows-per-unit", "3")),
    ],
)
def test_the_command_of_a_draft(facts, more):
    assert init_command("t.csv", out="s.toml", **facts) == (
        "init",
        "t.csv",
        "--out",
        "s.toml",
        *more,
    )


def test_every_command_is_one_of_the_command_line(deniable, folder):
    """What is shown can be run: the command line knows all of its flags."""
    deniable.folder = folder
    shown = plan_command("schema.toml", records="100", options=("--epsilon", "0.5"), rows="1000")
    result = deniable(*_at(folder, shown))
    assert result.code == 0, result.err
    assert "ε = 0.5" in result.out


def _at(folder: Path, command: tuple[str, ...]) -> list[str]:
    return [str(folder / each) if each.endswith(".toml") else each for each in command]
