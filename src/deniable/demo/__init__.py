"""The embedded table: people who do not exist, made by this package (README.md beside it)."""

from importlib.resources import as_file, files
from pathlib import Path

from deniable.data.schema import Schema


def demo_table() -> Path:
    """Return where the embedded table is."""
    with as_file(files(__package__) / "census.csv.gz") as path:
        return path


def demo_schema() -> Schema:
    """Return the schema of the embedded table."""
    with as_file(files(__package__) / "schema.toml") as path:
        return Schema.read(path)
