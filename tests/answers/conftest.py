"""A learnt artefact whose schema has every type of column, and constraints."""

import pytest

from deniable import Schema
from deniable.pipeline import api
from deniable.release.artefact import load
from rich_tables import RICH_SCHEMA, rich_table


@pytest.fixture(scope="session")
def rich_folder(tmp_path_factory):
    """The folder of an artefact of the rich table, with kept prefixes."""
    folder = tmp_path_factory.mktemp("rich") / "artefact"
    schema = Schema.parse(RICH_SCHEMA)
    api.learn(rich_table(), schema, epsilon=8.0, k=10, omega="7").save(folder)
    return folder


@pytest.fixture(scope="session")
def rich(rich_folder):
    return load(rich_folder)
