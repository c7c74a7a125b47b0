"""The tutorial on Spark: its blocks run as they stand on the page, and print what it shows.

The other tutorials are executed when the site is built, which must work without Java.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deniable import __main__ as program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),
]

PAGE = Path(__file__).parents[3] / "docs" / "tutorials" / "spark.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_shell(block, capsys, monkeypatch):
    """Run lines of shell; ``deniable`` in this process, where it finds the cluster's session."""
    printed = ""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        if words[0] == "deniable":
            monkeypatch.setattr(sys, "argv", words)
            code = program.run()
            assert code == 0, capsys.readouterr().err
            printed += capsys.readouterr().out
        else:
            printed += subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return printed


def run_page(text, capsys, monkeypatch):
    """Run all blocks in order; what one prints is compared with the text block after it."""
    names: dict[str, Any] = {}
    printed, compared = "", 0
    for kind, block in FENCE.findall(text):
        if kind == "python":
            exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - the page's own code
            printed = capsys.readouterr().out
        elif kind == "bash":
            printed = run_shell(block, capsys, monkeypatch)
        else:
            assert kind == "text"
            assert printed == block
            compared += 1
    return names, compared


def test_the_blocks_of_the_tutorial_run(engine, tmp_path, monkeypatch, capsys):
    """On the cluster of these tests, whatever --master the page names; it is not stopped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(engine.session), "stop", lambda _session: None)
    names, compared = run_page(PAGE.read_text(encoding="utf-8"), capsys, monkeypatch)
    assert compared == 2
    assert names["spark"].sparkContext is engine.session.sparkContext
    assert names["release"].artefact is not None


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```bash\nls no-such-file\n```\n",
        "```bash\ndeniable lern table\n```\n",
        "```toml\nformat = 1\n```\n",
    ],
)
def test_a_broken_block_is_found(page, capsys, monkeypatch):
    with pytest.raises((AssertionError, subprocess.CalledProcessError)):
        run_page(page, capsys, monkeypatch)
