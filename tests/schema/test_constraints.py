""""""

import datetime as dt
import tomllib
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.constraint_axis import (
    MAX_POSITION,
    MIN_POSITION,
    MISSING_POSITION,
    ConstraintAxis,
)
from deniable.schema.constraints import Condition, Constraint, parse_constraint
from deniable.schema.grid import Grid

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
    with pytest.raises(SchemaError, match="confirmed must be true or false"):
        parse('less = ["start", "end"]\nconfirmed = "draft"')  # private drafts have none
    with pytest.raises(SchemaError, match="exactly one of the keys"):
        parse("confirmed = false")


# Constraint axes: positions of values, scales, and the intervals of conditions

CONSTRAINT = Constraint(kind="forbid", columns=("x",))
BINNED = Attribute(name="x", kind="integer", values=range(10), starts=(0, 4), missing=("",))
TENTHS = Attribute(
    name="x", kind="real", values=range(100), grid=Grid(kind="real", step=Decimal("0.1"))
)
DAYS = Attribute(name="x", kind="date", values=range(100))
LISTED = Attribute(name="x", kind="categorical", values=(40, 10))
GRADES = Attribute(name="x", kind="ordered", values=("poor", "fair", "good"))
SHUFFLED = Attribute(name="x", kind="ordered", values=(3, 1, 2))
TOWNS = Attribute(name="x", kind="categorical", values=("Ulm", "Bonn"))


def intervals(attribute, **condition):
    return ConstraintAxis(attribute).intervals(Condition(**condition), CONSTRAINT).tolist()


def test_each_code_has_a_first_and_a_last_position():
    axis = ConstraintAxis(BINNED)
    assert axis.low.tolist() == [0, 4, MISSING_POSITION]
    assert axis.high.tolist() == [3, 9, MISSING_POSITION]
    assert ConstraintAxis(LISTED).low.tolist() == [40, 10]
    assert ConstraintAxis(SHUFFLED).low.tolist() == [0, 1, 2]
    assert (axis.max_magnitude, ConstraintAxis(LISTED).max_magnitude) == (9, 40)


@pytest.mark.parametrize(
    ("attribute", "scale", "step"),
    [
        (BINNED, "number", 1),
        (TENTHS, "number", Fraction(1, 10)),
        (DAYS, "time", 86_400),
        (LISTED, "number", 1),
        (GRADES, ("poor", "fair", "good"), 1),
        (SHUFFLED, (3, 1, 2), 1),
        (TOWNS, None, 1),
    ],
)
def test_columns_are_compared_on_their_scale(attribute, scale, step):
    axis = ConstraintAxis(attribute)
    assert (axis.scale, axis.step) == (scale, step)


def test_the_intervals_of_a_condition():
    assert intervals(BINNED, values=(3, 4, 7, "")) == [
        [MISSING_POSITION, MISSING_POSITION],
        [3, 4],
        [7, 7],
    ]
    assert intervals(BINNED, missing=True) == [[MISSING_POSITION, MISSING_POSITION]]
    assert intervals(BINNED, missing=False) == [[MIN_POSITION, MAX_POSITION]]
    assert intervals(BINNED, bounds=(("above", 2), ("at_most", 5.5))) == [[3, 5]]
    assert intervals(TENTHS, bounds=(("below", 0.3),)) == [[MIN_POSITION, 2]]
    assert intervals(TENTHS, bounds=(("at_least", 0.25),)) == [[3, MAX_POSITION]]
    assert intervals(DAYS, bounds=(("at_most", date(1970, 1, 3)),)) == [[MIN_POSITION, 2]]
    assert intervals(GRADES, bounds=(("above", "poor"),)) == [[1, MAX_POSITION]]


def test_a_bound_far_outside_keeps_missing_cells_out():
    assert intervals(BINNED, bounds=(("above", -1e300),)) == [[MIN_POSITION + 2, MAX_POSITION]]
    assert intervals(BINNED, bounds=(("below", 1e300),)) == [[MIN_POSITION, MAX_POSITION - 2]]
