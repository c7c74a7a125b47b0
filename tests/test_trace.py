"""The way of a default run is short: few modules, and no deep chain of calls.

The limits are what was reached. A change that needs more gives something a second home, or forwards
where it could call; if neither is so, raise the limit and say why.
"""

import gzip
import json
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import traced_run

pytestmark = pytest.mark.slow

# Twelve of the modules are the reading list of docs/story.md; the others are named there, next to
# the step that enters them. The last to come was schema/unmodelled_columns.py, which says which
# columns a released file has: readers and writers asked each for itself.
MAX_MODULES = 78
MAX_DEPTH = 11

ROWS = 2_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Modules and deepest chain of ``deniable synthesize`` on a small CSV file."""
    folder = tmp_path_factory.mktemp("trace")
    demo = resources.files("deniable.demo")
    lines = gzip.decompress((demo / "census.csv.gz").read_bytes()).splitlines(keepends=True)
    (folder / "table.csv").write_bytes(b"".join(lines[: ROWS + 1]))
    script, result = Path(traced_run.__file__), folder / "trace.json"
    arguments = ["synthesize", folder / "table.csv", "--schema", demo / "schema.toml"]
    options = ["--records", "500", "--out", folder / "out", "--quiet"]
    command = [sys.executable, script, result, *arguments, *options]
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(result.read_text(encoding="utf-8"))


def test_the_trace_sees_the_whole_run(trace):
    """The limits below hold for a trace that sees nothing."""
    stages = {"pipeline/api.py", "data/csv_reader.py", "privacy/noise.py", "release/release.py"}
    assert stages <= set(trace["modules"])
    assert trace["deepest"][:2] == ["__main__.py:run", "cli/commands.py:synthesize"]


def test_a_default_run_enters_few_modules(trace):
    modules = trace["modules"]
    assert len(modules) <= MAX_MODULES, f"{len(modules)} modules:\n" + "\n".join(modules)


def test_the_story_names_every_module_that_a_default_run_enters(trace):
    story = (Path(__file__).parent.parent / "docs" / "story.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", story))
    assert sorted(set(trace["modules"]) - named) == []


def test_a_default_run_has_no_deep_chain_of_calls(trace):
    deepest = trace["deepest"]
    assert len(deepest) <= MAX_DEPTH, f"{len(deepest)} calls deep:\n" + "\n".join(deepest)


def test_a_chain_counts_named_functions_of_the_package_only():
    tracer = traced_run.Tracer(str(Path(__file__).parent))

    def inner():
        return [name for name in "ab"]  # noqa: C416 - a comprehension is part of its function

    def outer():
        return sorted("ab", key=lambda _: inner())

    sys.setprofile(tracer)
    try:
        outer()
    finally:
        sys.setprofile(None)
    ours = [name.rpartition(".")[2] for name in tracer.deepest]
    assert ours[-2:] == ["outer", "inner"]
