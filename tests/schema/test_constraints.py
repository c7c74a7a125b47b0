import datetime as dt
import tomllib

import pytest

from deniable.errors import SchemaError
from deniable.schema.constraints import Condition, parse_constraint

NAMES = ["years", "trade", "start", "end", "with blank"]


def parse(text):
    [table] = tomllib.loads(f"[[constraint]]\n{text}")["constraint"]
    return parse_constraint(table, NAMES)


def test_a_forbid_has_a_condition_for_each_column():
    constraint = parse(
        'forbid = { years = { below = 25 }, trade = ["tinsmith"], start = { missing = true } }'
    )
    assert constraint.kind == "forbid"
    assert constraint.columns == ("years", "trade", "start")
    assert constraint.conditions == (
        Condition(bounds=(("below", 25),)),
        Condition(values=("tinsmith",)),
        Condition(missing=True),
    )


@pytest.mark.parametrize(
    "text",
    [
        'forbid = { years = { below = 25, at_least = 17.5 }, trade = ["tinsmith", "lacemaker"] }',
        "forbid = { start = { above = 2024-02-29 }, years = { missing = false } }",
        'forbid = { start = { at_most = "2024-02-29" }, end = [2024-02-29T10:00:00] }',
        "forbid = { trade = [true] }",
        'allow = { columns = ["trade", "years"], rows = [["tinsmith", 20], ["lacemaker", 21]] }',
        'less = ["start", "end"]',
        'at_most = ["start", "with blank"]',
    ],
)
def test_a_constraint_survives_a_round_trip(text):
    table = tomllib.loads(text)
    constraint = parse_constraint(table, NAMES)
    assert constraint.to_toml() == table
    assert parse_constraint(constraint.to_toml(), NAMES) == constraint


def test_dates_are_kept_as_dates():
    constraint = parse("forbid = { start = { above = 2024-02-29 } }")
    assert constraint.conditions[0].bounds == (("above", dt.date(2024, 2, 29)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('forbidden = { trade = ["x"] }', 'unknown key "forbidden"; did you mean "forbid"'),
        ('less = ["start", "end"]\nat_most = ["start", "end"]', "exactly one of the keys"),
        ("", "this one has none"),
        ("forbid = {}", "write a condition for each column"),
        ('forbid = ["trade"]', "write a condition for each column"),
        ("forbid = { trade = [] }", 'column "trade": its list is empty'),
        ('forbid = { trade = "tinsmith" }', "a condition must be a list of values"),
        ("forbid = { years = {} }", "a condition must be a list of values"),
        ("forbid = { years = { under = 25 } }", 'unknown key "under"; known keys: below'),
        ("forbid = { years = { belov = 25 } }", 'did you mean "below"'),
        ("forbid = { years = { missing = true, below = 25 } }", "use missing alone"),
        ("forbid = { years = { missing = 1 } }", "use missing alone"),
        ("forbid = { years = { below = [25] } }", "a value must be a text"),
        ("forbid = { years = { below = inf } }", "finite number"),
        ("forbid = { years = [nan] }", "finite number"),
        ("forbid = { start = [10:00:00] }", "a value must be a text"),
        ("forbid = { start = [2024-02-29T10:00:00Z] }", "must not have an offset"),
        ('forbid = { trades = ["x"] }', 'no learnt attribute "trades"; did you mean "trade"'),
        ('forbid = { zzz = ["x"] }', 'no learnt attribute "zzz"; correct the name'),
        ('allow = { columns = ["trade"] }', "constraint allow: write allow"),
        ('allow = { columns = "trade", rows = [["x"]] }', "constraint allow: columns"),
        (
            'allow = { columns = ["trade", "years"], rows = [] }',
            "rows must be a list of at least one list",
        ),
        ('allow = { columns = ["trade", "years"], rows = [["x"]] }', "row 1 has 1 values for 2"),
        ('allow = { columns = ["trade", "trade"], rows = [["x", "x"]] }', "names a column twice"),
        ('less = ["start"]', "name two columns"),
        ('less = ["start", "end", "years"]', "for three, write two"),
        ("less = [1, 2]", "name two columns"),
        ('at_most = ["start", "start"]', "names a column twice"),
    ],
)
def test_an_invalid_constraint_table_is_rejected(text, message):
    with pytest.raises(SchemaError, match="constraint") as refusal:
        parse(text)
    assert message in str(refusal.value)


def test_a_constraint_that_was_read_off_the_data_is_unconfirmed():
    drafted = parse('less = ["start", "end"]\nconfirmed = false')
    assert not drafted.confirmed
    assert parse_constraint(drafted.to_toml(), NAMES) == drafted
    assert parse('less = ["start", "end"]\nconfirmed = true') == parse('less = ["start", "end"]')
    with pytest.raises(SchemaError, match="confirmed must be true or false"):
        parse('less = ["start", "end"]\nconfirmed = "no"')
    with pytest.raises(SchemaError, match="exactly one of the keys"):
        parse("confirmed = false")
