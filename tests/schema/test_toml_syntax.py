"""TOML that anyone may have written: long keys are refused before they are parsed."""

import re

import pytest

from deniable.config import read_options
from deniable.errors import ConfigError, SchemaError
from deniable.schema.schema import Schema
from deniable.schema.toml_syntax import MAX_KEY_PARTS, parse_toml

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
