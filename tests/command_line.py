"""Running the command line: in this process, or in one of its own."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import HOMES, PETS, TRADES
from deniable import __main__ as program

# Texts of cells that no output may contain.
CELLS = (*TRADES, *HOMES, *PETS)
# Options of a run without noise.
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
        """Whether it failed with this code, in words; with --json, also as an object."""
        assert self.code == code, self.err
        assert self.out == "" or list(self.json) == ["error", "written"]
        for word in words:
            assert word in self.err
        return True


def runner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> Callable[..., Result]:
    """Return a function that runs the program in this process, in a new empty folder."""
    cwd = folder / "cwd"
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


def names_below(folder):
    """List all files and folders, by their relative paths."""
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*"))


def here():
    """List all files and folders below the current one."""
    return names_below(Path.cwd())


def start(*args, cwd, within=(), **more):
    """Start the program in a process of its own."""
    command = [*within, sys.executable, "-m", "deniable", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    return subprocess.Popen(command, cwd=cwd, **pipes)
