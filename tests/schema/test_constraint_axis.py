"""Constraint axes: positions of values, scales, and the intervals of conditions."""

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
from deniable.schema.constraints import Condition, Constraint
from deniable.schema.grid import Grid

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


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        (BINNED, 10, "10 is not one of its values"),
        (TENTHS, 0.15, "0.15 is not one of its values"),
        (TOWNS, "Rome", '"Rome" is not one of its values'),
        (BINNED, "3", "write numbers without quotes"),
        (DAYS, "1 May", "write dates as 2024-12-31"),
    ],
)
def test_a_value_outside_the_domain_is_rejected(attribute, value, message):
    with pytest.raises(SchemaError, match=f'constraint forbid on "x": column "x": .*{message}'):
        ConstraintAxis(attribute).locate(value, CONSTRAINT)
