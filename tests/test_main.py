"""The program itself: exit codes, bugs without cells, interruptions, a closed output."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import FAST, here, names_below, start
from deniable import __main__ as program
from deniable.cli import commands
from deniable.errors import InvariantError
from deniable.evaluation import evaluate
from deniable.files import OutputTracker
from deniable.pipeline import api

pytestmark = pytest.mark.slow

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


def test_a_bug_is_shown_in_full_only_on_request(deniable, given, monkeypatch, capsys):
    """The traceback may quote a cell, so it takes a variable of the environment."""

    def fail(*_args, **_more):
        raise RuntimeError("what went wrong")

    monkeypatch.setattr(api, "learn_model", fail)
    args = ("synthesize", *given, "--records", 5, "--out", "o", *FAST)
    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    short = deniable(*args)
    assert "test_main.py:" in short.err
    assert "what went wrong" not in short.err
    monkeypatch.setenv("DENIABLE_DEBUG", "1")
    monkeypatch.setattr(api, "learn_model", fail)
    monkeypatch.setattr(sys, "argv", ["deniable", *map(str, args)])
    assert program.run() == 4
    assert "\nRuntimeError: what went wrong\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "returned"), [(0, 0), (None, 0), (1, 2), (2, 2), (3, 3), ("text", 0)]
)
def test_code_1_is_reserved_for_a_failed_verification(code, returned):
    """The command line library ends with 1 where a dialogue is aborted."""
    failure = program._ending(SystemExit(code), OutputTracker())
    assert (failure.exit_code if failure else 0) == returned


def test_sigterm_is_an_interrupt(monkeypatch):
    """As from a scheduler: Python would end at once, and leave files half written."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        monkeypatch.setattr(sys, "argv", ["deniable", "--version"])
        assert program.run() == 0
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_main_exits_with_the_code_of_the_run(monkeypatch):
    monkeypatch.setattr(program, "run", lambda: 3)
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == 3


class Panic(BaseException):
    """As polars raises it: no Exception."""


def test_a_panic_is_a_bug_without_its_message(deniable, given, monkeypatch):
    def fail(*_args, **_more):
        raise Panic("kelpfarmer")

    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    monkeypatch.setattr(api, "learn_model", fail)
    result = deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST)
    assert result.complains(4, "bug: Panic")
    assert here() == []


# After everything is in place


AFTERWARDS = [RuntimeError("kelpfarmer"), KeyboardInterrupt(), OSError(5, "Input/output error")]


@pytest.mark.parametrize("fault", AFTERWARDS, ids=lambda fault: type(fault).__name__)
def test_a_fault_after_the_release_is_in_place_does_not_turn_the_code(
    deniable, given, monkeypatch, fault
):
    """The cost is spent and the release stands, so neither message nor code say otherwise."""

    def fail(*_args, **_more):
        raise fault

    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    monkeypatch.setattr(commands, "show_release", fail)
    result = deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST)
    assert result.code == 0
    assert "Everything is in place, and its cost is spent" in result.err
    assert "othing was" not in result.err
    assert Path("o/synthetic.csv").is_file()


def test_what_a_demo_wrote_before_a_fault_is_named(deniable, monkeypatch):
    """Its report is missing: it has not done its work."""

    def fail(*_args, **_more):
        raise RuntimeError("axolotl")

    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    monkeypatch.setattr(evaluate, "evaluate", fail)
    result = deniable("demo", "--out", "d", "--quiet")
    assert result.code == 4
    assert "Not everything was written, but this is in place" in result.err
    assert "othing was released" not in result.err
    assert Path("d/synthetic.csv").is_file()


# In a process of its own


@pytest.mark.parametrize(("name", "more"), [("ascii", []), ("latin-1", []), ("ascii", ["--json"])])
def test_a_terminal_without_greek_letters_is_no_error(given, tmp_path, name, more):
    """Otherwise ε would be spent and the exit code that of a bug."""
    args = ("synthesize", *given, "--records", 5, "--out", "o", "--mode", "seedless", *more)
    process = start(*args, cwd=tmp_path, text=False, env={**os.environ, "PYTHONIOENCODING": name})
    out, err = (part.decode(name) for part in process.communicate(timeout=60))
    assert (process.returncode, err) == (0, "")
    claim = json.loads((tmp_path / "o" / "manifest.json").read_text())["guarantee"]
    if more:
        assert json.loads(out)["guarantee"] == claim["sentence"]
    else:
        assert f"? = {claim['epsilon']}" in " ".join(out.split())


def run_in_shell(text, *args, cwd):
    """Run the program as ``"$@"`` in a command line; return its own exit code, and all output."""
    command = [sys.executable, "-m", "deniable", *map(str, args)]
    done = subprocess.run(
        ["/bin/bash", "-c", f"{text}; exit ${{PIPESTATUS[0]}}", "bash", *command],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


SHELLS = [
    '"$@" >&-',
    '"$@" 2>&-',
    '"$@" >&- 2>&-',
    '"$@" <&- >&- 2>&-',
    '"$@" | true',
    '"$@" | (exec <&-; sleep 0.1)',
    '"$@" >/dev/full',
    '"$@" 2>/dev/full',
    '"$@" >/dev/full 2>&1',
]


@pytest.mark.parametrize("shell", SHELLS)
def test_once_the_records_are_in_place_no_closed_output_turns_the_code(artefact, tmp_path, shell):
    code, _, err = run_in_shell(
        shell, "generate", artefact, "--records", 2_000, "--key", 1, "--out", "r.csv", cwd=tmp_path
    )
    assert (code, err) == (0, "")
    assert names_below(tmp_path) == ["r.csv", "r.csv.manifest.json"]
    assert (tmp_path / "r.csv").read_text().count("\n") == 2_001


@pytest.mark.parametrize("shell", SHELLS[2:6])
def test_a_reader_that_went_away_is_no_error(small_files, tmp_path, shell):
    args = ("plan", "--schema", small_files / "schema.toml", "--all")
    assert run_in_shell(shell, *args, cwd=tmp_path)[::2] == (0, "")


@pytest.mark.parametrize("shell", SHELLS[3:9:2])
def test_a_failed_verification_ends_with_1_whoever_listens(artefact, tmp_path, shell):
    folder = shutil.copytree(artefact, tmp_path / "a")
    (folder / "manifest.json").write_text("{}")
    assert run_in_shell(shell, "verify", folder, cwd=tmp_path)[0] == 1


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["plan", "--help"]])
def test_help_that_cannot_be_written_ends_with_2(tmp_path, args):
    assert run_in_shell('"$@" >/dev/full', *args, cwd=tmp_path)[0] == 2
    assert run_in_shell('"$@" | true', *args, cwd=tmp_path)[::2] == (0, "")


@pytest.mark.parametrize("umask", ["000", "022", "377"])
def test_a_plain_draft_is_its_owner_s_alone_whatever_the_umask(small_files, tmp_path, umask):
    shell = f'umask {umask}; "$@"'
    table = small_files / "table.csv"
    assert run_in_shell(shell, "init", table, "--out", "s.toml", cwd=tmp_path)[0] == 0
    assert (tmp_path / "s.toml").stat().st_mode & 0o777 == 0o600


def test_a_private_draft_has_the_mode_that_the_umask_leaves(small_files, tmp_path):
    args = ("init", small_files / "table.csv", "--draft-epsilon", 5, "--out", "s.toml")
    assert run_in_shell('umask 022; "$@"', *args, cwd=tmp_path)[0] == 0
    assert (tmp_path / "s.toml").stat().st_mode & 0o777 == 0o644


# With --json


FAILING: dict[str, tuple[int, list[object], str]] = {
    "UsageError": (2, ["synthesize", "t.csv"], "Missing option"),
    "ConfigError": (2, ["plan", "--schema", "s.toml", "--delta", 0.5], "--accept-large-delta"),
    "SchemaError": (2, ["plan", "--schema", "absent.toml"], "absent.toml"),
    "ArtefactError": (2, ["generate", "absent", "--records", 5, "--out", "r.csv"], "absent"),
}


@pytest.mark.parametrize("code", FAILING)
def test_with_json_an_error_is_one_object(deniable, code):
    """It was text on standard error only: a program had nothing to parse."""
    ends_with, args, said = FAILING[code]
    result = deniable(*args, "--json")
    assert result.code == ends_with
    error = result.json["error"]
    assert list(error) == ["code", "message", "what_to_do"]
    assert error["code"] == code
    assert said in error["message"]
    assert error["what_to_do"]
    assert said in result.err  # as without it
    assert result.json["written"] == []
    assert deniable(*args).out == ""


def test_with_json_a_bug_shows_no_traceback(deniable, given, monkeypatch):
    def fail(*_args, **_more):
        raise RuntimeError("kelpfarmer")

    monkeypatch.setenv("DENIABLE_DEBUG", "")
    monkeypatch.setattr(api, "learn_model", fail)
    result = deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST, "--json")
    assert (result.code, result.json["error"]["code"]) == (4, "InvariantError")
    assert "kelpfarmer" not in result.out + result.err


def test_with_json_a_failed_verification_is_its_own_object(deniable, given):
    """The result was printed already: no second object follows."""
    assert deniable("synthesize", *given, "--records", 5, "--out", "o", *FAST).code == 0
    Path("o/synthetic.csv").write_text("forged")
    result = deniable("verify", "o", "--json")
    assert (result.code, result.json["passed"]) == (1, False)


# Killed runs


def test_clean_removes_what_a_killed_run_left_and_nothing_that_is_held(artefact, tmp_path):
    """A nightly job did not come up again after its machine had lost power."""
    args = ("generate", artefact, "--out", "r.csv")
    killed = start(*args, "--records", 10**9, cwd=tmp_path)
    try:
        wait_for_a_temporary_file(killed, tmp_path)
    finally:
        killed.kill()
        killed.communicate()
    left = names_below(tmp_path)
    (tmp_path / ".partial.1.other.csv").touch()  # of another target
    again: list[object] = ['"$@"', *args, "--clean", "--records"]
    running = start(*args, "--clean", "--records", 10**9, cwd=tmp_path)
    try:
        wait_for_a_temporary_file(running, tmp_path, f".partial.{running.pid}.r.csv")
        assert not set(left) & set(names_below(tmp_path))
        held = names_below(tmp_path)
        code, _, err = run_in_shell(*again, 5, cwd=tmp_path)
        assert code == 2
        assert "another run into r.csv has not ended" in err
        assert names_below(tmp_path) == held
    finally:
        running.kill()
        running.communicate()
    assert run_in_shell(*again, 5, cwd=tmp_path)[0] == 0
    assert names_below(tmp_path) == [".partial.1.other.csv", "r.csv", "r.csv.manifest.json"]
    assert run_in_shell(*again, 5, cwd=tmp_path)[0] == 2  # never a complete release


def test_the_remains_of_a_killed_run_are_named_at_the_next(artefact, tmp_path):
    args = ("generate", artefact, "--out", "r.csv")
    process = start(*args, "--records", 10**9, cwd=tmp_path)
    try:
        wait_for_a_temporary_file(process, tmp_path)
    finally:
        process.kill()
        process.communicate()
    left = names_below(tmp_path)
    assert left
    code, out, err = run_in_shell('"$@"', *args, "--records", 5, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "OutputError: an unfinished run into r.csv left" in err
    assert "Start again with --clean" in err
    assert all(name in err for name in left)
    assert names_below(tmp_path) == left
    assert (
        run_in_shell(f'rm -r {" ".join(left)}; "$@"', *args, "--records", 5, cwd=tmp_path)[0] == 0
    )


def wait_for_a_temporary_file(process, cwd, name=".partial"):
    for _ in range(1_200):
        if any(path.name.startswith(name) for path in cwd.iterdir()):
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    pytest.fail(f"no {name} after a minute")


def interrupt_in_the_middle(process, cwd, name=".partial"):
    """Wait for the first file under a temporary name, then press Ctrl-C; return what it said."""
    try:
        wait_for_a_temporary_file(process, cwd, name)
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


# The program, which tells of its first candidates by a file: a search itself leaves no trace.
SEARCHING = """
import sys
from pathlib import Path
from deniable import __main__ as program
from deniable.release import seed_mechanism
count = seed_mechanism.count_hidden_omega
def counted(*given, **more):
    Path("searching").touch()
    return count(*given, **more)
seed_mechanism.count_hidden_omega = counted
sys.argv[0] = "deniable"
program.main()
"""


def test_ctrl_c_in_the_middle_of_a_search_for_records_leaves_nothing(given, tmp_path):
    """A hopeless test, far from giving up: a thousand candidates are tried for each record."""
    (tmp_path / "c.toml").write_text("omega_known = false\n")
    args = ("--mode", "tested", "--k", 1_999, "--omega", "1-2", "--epsilon", "inf")
    words = ("synthesize", *given, "--records", 10**6, "--out", "o", *args, "--config", "c.toml")
    process = subprocess.Popen(
        [sys.executable, "-c", SEARCHING, *map(str, words)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    out, err = interrupt_in_the_middle(process, tmp_path, "searching")
    assert (process.returncode, out) == (130, "")
    assert "nothing was written" in err
    assert "Traceback" not in err
    assert names_below(tmp_path) == ["c.toml", "searching"]


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


def test_the_program_is_installed_under_its_name(tmp_path):
    program_file = Path(sys.executable).with_name("deniable")
    done = subprocess.run(
        [program_file, "generate", "absent", "--records", "5", "--out", "r.csv"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ArtefactError: absent is not an artefact")
