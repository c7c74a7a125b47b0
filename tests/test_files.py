"""Only regular files are opened: a pipe would block a run. Outputs in place are tracked."""

import os
import re
import socket
import tempfile
from pathlib import Path

import pytest

from deniable.config import read_options
from deniable.data.table_io import read_table
from deniable.errors import ConfigError, DataError, SchemaError
from deniable.files import (
    MAX_KEY_PARTS,
    OutputTracker,
    as_path,
    current_tracker,
    parse_toml,
    require_regular_file,
    tracked_outputs,
)
from deniable.release.artefact import load
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.verification.verify import verify

SCHEMA = Schema((Attribute(name="n", kind="integer", values=range(3)),))


def make_folder(path):
    path.mkdir()


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


KINDS = {
    "a folder": make_folder,
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": make_socket,
}


@pytest.fixture
def folder():
    """A folder with a short path: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "schema.toml"])
def test_anything_but_a_regular_file_is_refused_at_once(folder, kind, name):
    path = folder / name
    KINDS[kind](path)
    error = SchemaError if name == "schema.toml" else DataError
    expected = f"{name} is {kind}, not a regular file. Save its content"
    if kind == "a folder" and error is DataError:
        expected = "has no parts of a table"  # a folder of parts is a table
    with pytest.raises(error, match=expected):
        Schema.read(path) if error is SchemaError else read_table(path, SCHEMA)


def test_a_link_to_a_regular_file_is_followed(tmp_path):
    (tmp_path / "real.csv").write_text("n\n1\n")
    (tmp_path / "t.csv").symlink_to(tmp_path / "real.csv")
    assert read_table(tmp_path / "t.csv", SCHEMA).codes.tolist() == [[1]]


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"absent: there is no such file; check the path"):
        require_regular_file(tmp_path / "absent", ConfigError)
    with pytest.raises(ConfigError, match="absent: write one"):
        require_regular_file(tmp_path / "absent", ConfigError, absent="write one")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ConfigError, match=r"loop: cannot be read \(Too many levels"):
        require_regular_file(tmp_path / "loop", ConfigError)
    with pytest.raises(ConfigError, match="contains a null byte"):
        require_regular_file(Path("a\0b"), ConfigError)


def test_a_path_is_a_text_or_a_path_object():
    assert as_path("a/b", "the release") == as_path(Path("a/b"), "the release") == Path("a/b")


@pytest.mark.parametrize("value", [5, None, {}, b"x"])
def test_anything_else_is_no_path(value):
    for use in (lambda: as_path(value, "it"), lambda: load(value), lambda: verify(value)):
        with pytest.raises(ConfigError, match=f"is a {type(value).__name__}: give its path"):
            use()


def test_the_tracker_of_a_command_is_found_while_it_runs():
    with tracked_outputs() as tracker:
        assert current_tracker() is tracker
        current_tracker().paths.append(Path("o"))
    assert tracker.paths == [Path("o")]
    assert current_tracker().paths == []


def test_outside_of_a_command_nothing_is_kept():
    current_tracker().paths.append(Path("o"))
    assert current_tracker().paths == []


def test_a_command_is_complete_with_the_last_of_its_outputs():
    tracker = OutputTracker(expected=2)
    for complete in (False, True):
        tracker.paths.append(Path("o"))
        assert tracker.is_complete is complete
    assert not OutputTracker().is_complete


# TOML that anyone may have written


# Parsed as they stand, they would take minutes.
LONG = 50_000
LONG_KEYS = {
    "bare": "a." * LONG + "a = 1",
    "spaced": "a \t. " * LONG + "a = 1",
    "quoted": '"a.\\"b".' * LONG + "a = 1",
    "literal": "'a b'." * LONG + "a = 1",
    "mixed": "a.'b'.\"c\"." * LONG + "a = 1",
    "header": "format = 1\n[" + "a." * LONG + "a]",
    "list of tables": "format = 1\n[[" + "a." * LONG + "a]]",
    "inline": "x = { " + "a." * LONG + "a = 1 }",
    "after a comment": "# it's \"here\n" + "a." * LONG + "a = 1",
}


@pytest.mark.parametrize("case", LONG_KEYS)
def test_a_key_of_many_parts_is_refused_where_it_begins(case):
    line = LONG_KEYS[case].count("\n") + 1
    with pytest.raises(ValueError, match=rf"more than {MAX_KEY_PARTS} parts \(at line {line}\)"):
        parse_toml(LONG_KEYS[case])


def test_schemas_and_options_are_parsed_this_way(tmp_path):
    with pytest.raises(SchemaError, match=f"more than {MAX_KEY_PARTS} parts"):
        Schema.parse(LONG_KEYS["bare"])
    (tmp_path / "options.toml").write_text(LONG_KEYS["bare"], encoding="utf-8")
    with pytest.raises(ConfigError, match=f"more than {MAX_KEY_PARTS} parts"):
        read_options(tmp_path / "options.toml")


def test_the_limit_is_on_parts_of_one_key():
    key = ".".join(["a"] * MAX_KEY_PARTS)
    document = parse_toml(f"x.{key[2:]} = 1\n[{key}]\n")
    assert list(document) == ["x", "a"]
    with pytest.raises(ValueError, match="parts"):
        parse_toml(f"x.{key} = 1")


@pytest.mark.parametrize(
    "text",
    ['x = "{}"', "x = '{}'", 'x = """\n"{}"\\""""', "x = '''\n'{}'''", "x = 1  # {}", 'x = ["{}"]'],
)
def test_dots_in_texts_and_comments_are_no_keys(text):
    assert list(parse_toml(text.format("a." * 1_000))) == ["x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [1", "Unclosed array"),
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "9" * 5_000, "too many digits"),
    ],
)
def test_what_is_no_toml_is_told(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_toml(text)
