"""Fixtures of the command line tests: the program, its arguments, an artefact."""

import pytest

from command_line import runner
from deniable.pipeline import api


@pytest.fixture
def deniable(monkeypatch, capsys, tmp_path):
    """Run the program in this process, in an empty folder."""
    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def given(small_files):
    """The table and its schema, as arguments."""
    return (small_files / "table.csv", "--schema", small_files / "schema.toml")


@pytest.fixture(scope="module")
def artefact(tmp_path_factory, small_table, small_schema):
    folder = tmp_path_factory.mktemp("learnt") / "artefact"
    api.learn(small_table, small_schema, k=20, omega="3").save(folder)
    return folder
