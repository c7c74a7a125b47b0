"""Target columns of a schema: read, written, checked."""

import pytest

from deniable.errors import SchemaError
from deniable.schema.schema import Schema, find_target_fault

COLUMNS = """
[[attribute]]
name = "pay"
type = "boolean"

[[attribute]]
name = "home"
type = "boolean"

[[attribute]]
name = "id"
type = "identifier"
"""


def parse(target):
    return Schema.parse(f"format = 1\n{target}\n{COLUMNS}")


def test_targets_are_read_and_written():
    schema = parse('target = ["home", "pay"]')
    assert schema.target == ("home", "pay")
    assert 'target = ["home", "pay"]\n' in schema.text()
    assert Schema.parse(schema.text()) == schema
    assert parse("").target == ()
    assert "target" not in parse("target = []").text()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ('"home"', "target must be a list of names of columns"),
        ("3", "target must be a list of names of columns"),
        ("[3]", "target must be a list of names of columns"),
        ('["home", "home"]', "each once"),
        ('["hom"]', 'target "hom": the schema has no such column; did you mean "home"'),
        ('["id"]', 'target "id": this column is not learnt'),
    ],
)
def test_a_target_that_is_no_learnt_column_is_refused(target, message):
    with pytest.raises(SchemaError, match=message):
        parse(f"target = {target}")


def test_all_names_are_checked():
    columns = parse("").columns
    assert find_target_fault(columns, ["pay", "home"]) == ""
    assert "zzz" in find_target_fault(columns, ["pay", "zzz"])
