"""Constraint solver, compared with brute force over all values inside the bins."""

import datetime as dt
import itertools
from collections import Counter
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_distribution
from deniable.arrays import CODE
from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.errors import InvariantError, SchemaError
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.constraint_solver import ConstraintSolver
from deniable.schema.constraints import parse_constraint
from deniable.schema.grid import Grid
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow

RNG = Keyed(1).at("records")
NONE = None  # a missing cell in brute force


def binned(name, high, starts, *, missing=False):
    """0..high, in bins that begin at ``starts``."""
    return Attribute(
        name=name,
        kind="integer",
        values=range(high + 1),
        starts=tuple(sorted(starts)),
        missing=("",) * missing,
    )


def values_of(attribute, code):
    """All values of a code."""
    if code == attribute.missing_code:
        return [NONE]
    return list(attribute.positions(code)) if attribute.is_numeric else [attribute.values[code]]


def keeps(record, table):
    """Whether a record, a value for each name, satisfies a constraint, by definition."""
    [(kind, content)] = table.items()
    if kind == "forbid":
        return not all(meets(record[name], condition) for name, condition in content.items())
    if kind == "allow":
        shown = ["" if record[name] is NONE else record[name] for name in content["columns"]]
        return shown in content["rows"]
    one, two = (record[name] for name in content)
    return one is NONE or two is NONE or (one < two if kind == "less" else one <= two)


def meets(value, condition):
    if isinstance(condition, list):
        return ("" if value is NONE else value) in condition
    if "missing" in condition:
        return (value is NONE) == condition["missing"]
    compare = {
        "below": lambda bound: value < bound,
        "at_most": lambda bound: value <= bound,
        "above": lambda bound: value > bound,
        "at_least": lambda bound: value >= bound,
    }
    return value is not NONE and all(compare[key](bound) for key, bound in condition.items())


@st.composite
def columns(draw):
    """Three binned columns and a listed one; some may be missing."""
    found = [
        binned(
            name,
            5,
            {0} | draw(st.sets(st.integers(1, 5), max_size=3)),
            missing=draw(st.booleans()),
        )
        for name in "abc"
    ]
    return (*found, Attribute(name="d", kind="categorical", values=("x", "y", "z"), missing=("",)))


def of_column(attribute):
    """Values that a schema may write for a column; for a missing cell, its text."""
    known = list(attribute.values) + [""] * bool(attribute.missing)
    return st.sampled_from(known)


def condition_of(attribute):
    listed = st.lists(of_column(attribute), min_size=1, max_size=4)
    missing = st.booleans().map(lambda value: {"missing": value})
    if not attribute.is_numeric:
        return listed | missing
    numbers = st.integers(-1, 6) | st.sampled_from([0.5, 2.5, 4.5])
    keys = st.sampled_from(["below", "at_most", "above", "at_least"])
    return listed | missing | st.builds(lambda key, number: {key: number}, keys, numbers)


@st.composite
def choice_of(draw, attributes):
    """A forbid or an allow."""
    some = draw(st.lists(st.sampled_from(attributes), min_size=1, max_size=4, unique=True))
    if draw(st.booleans()):
        return {"forbid": {a.name: draw(condition_of(a)) for a in some}}
    row = st.tuples(*map(of_column, some)).map(list)
    rows = draw(st.lists(row, min_size=1, max_size=8))
    return {"allow": {"columns": [a.name for a in some], "rows": rows}}


# In one direction only, so that there is no cycle.
inequality = st.builds(
    lambda kind, pair: {kind: list(pair)},
    st.sampled_from(["less", "at_most"]),
    st.sampled_from(["ab", "bc", "ac"]),
)


@st.composite
def worlds(draw):
    attributes = draw(columns())
    any_kind = choice_of(attributes) | inequality
    return attributes, draw(st.lists(any_kind, min_size=1, max_size=4))


def solver_for(attributes, tables):
    names = [attribute.name for attribute in attributes]
    return ConstraintSolver(attributes, [parse_constraint(table, names) for table in tables])


def all_codes(attributes):
    codes = itertools.product(*(range(attribute.size) for attribute in attributes))
    return np.asfortranarray(np.array(list(codes), dtype=CODE))


def solutions(attributes, tables, codes):
    """All records with the given codes that satisfy every constraint."""
    names = [attribute.name for attribute in attributes]
    options = [values_of(a, code) for a, code in zip(attributes, codes, strict=True)]
    for values in itertools.product(*options):
        record = dict(zip(names, values, strict=True))
        if all(keeps(record, table) for table in tables):
            yield values


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(worlds())
def test_a_record_is_feasible_if_some_values_satisfy_all_constraints(world):
    attributes, tables = world
    codes = all_codes(attributes)
    expected = [any(True for _ in solutions(attributes, tables, row)) for row in codes]
    assert solver_for(attributes, tables).feasible(codes).tolist() == expected


def draw_positions(attributes, codes, rng):
    """Draw positions inside the bins, ignoring constraints; for a listed value, its code."""
    positions = codes.astype(np.int64)
    for j, attribute in enumerate(attributes):
        if attribute.is_numeric:
            for i, code in enumerate(codes[:, j]):
                values = values_of(attribute, code)
                if values != [NONE]:
                    positions[i, j] = values[rng.integers(len(values), 1)[0]]
    return positions


def records_of(attributes, codes, positions):
    """The values of codes and positions."""

    def value(attribute, code, position):
        if code == attribute.missing_code:
            return NONE
        return position if attribute.is_numeric else attribute.values[code]

    return [
        tuple(map(value, attributes, row, places))
        for row, places in zip(codes.tolist(), positions.tolist(), strict=True)
    ]


@pytest.mark.parametrize("rounds", [0, 20])
@settings(max_examples=75, deadline=None, derandomize=True, database=None)
@given(world=worlds(), key=st.integers(0, 2**32))
def test_repaired_values_satisfy_all_constraints_in_the_same_bins(rounds, world, key):
    """By construction alone (no redraws), and with the default number of redraws."""
    attributes, tables = world
    solver, rng = solver_for(attributes, tables), Keyed(key).at("records")
    codes = all_codes(attributes)
    codes = codes[solver.feasible(codes)]
    drawn = draw_positions(attributes, codes, rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deniable.schema.constraint_solver._MAX_REDRAWS", rounds)
        repaired = solver.repair(codes, drawn, rng)

    for row, record in zip(codes, records_of(attributes, codes, repaired), strict=True):
        assert record in set(solutions(attributes, tables, row))


@settings(max_examples=75, deadline=None, derandomize=True, database=None)
@given(world=worlds(), key=st.integers(0, 2**32))
def test_values_that_satisfy_the_constraints_are_unchanged(world, key):
    attributes, tables = world
    solver, rng = solver_for(attributes, tables), Keyed(key).at("records")
    codes = all_codes(attributes)
    codes = codes[solver.feasible(codes)]
    drawn = draw_positions(attributes, codes, rng)
    names = [attribute.name for attribute in attributes]
    kept = [
        all(keeps(dict(zip(names, record, strict=True)), table) for table in tables)
        for record in records_of(attributes, codes, drawn)
    ]

    repaired = solver.repair(codes, drawn, rng)
    assert (repaired[kept] == drawn[kept]).all()
    for j in (0, 1, 2):
        missing = codes[:, j] == attributes[j].missing_code
        assert (repaired[missing, j] == drawn[missing, j]).all()


def test_repaired_values_are_uniform_among_those_allowed():
    """a < b in one bin of 0..3: six pairs, equally likely."""
    attributes = (binned("a", 3, [0]), binned("b", 3, [0]))
    solver, rng = solver_for(attributes, [{"less": ["a", "b"]}]), Keyed(3).at("records")
    codes = np.zeros((60_000, 2), dtype=CODE)
    positions = np.stack([rng.integers(4, len(codes)), rng.integers(4, len(codes))], axis=1)
    repaired = solver.repair(codes, positions, rng)
    pairs = Counter(map(tuple, repaired.tolist()))
    assert_distribution(pairs, dict.fromkeys(itertools.combinations(range(4), 2), 1 / 6))


def test_that_test_detects_constructed_values():
    attributes = (binned("a", 3, [0]), binned("b", 3, [0]))
    solver, rng = solver_for(attributes, [{"less": ["a", "b"]}]), Keyed(3).at("records")
    codes = np.zeros((60_000, 2), dtype=CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deniable.schema.constraint_solver._MAX_REDRAWS", 0)
        repaired = solver.repair(codes, codes.astype(np.int64), rng)
    pairs = Counter(map(tuple, repaired.tolist()))
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(pairs, dict.fromkeys(itertools.combinations(range(4), 2), 1 / 6))


def test_feasibility_does_not_depend_on_other_records():
    """The deniability test relies on this."""
    attributes = (binned("a", 5, [0, 2, 4]), binned("b", 5, [0, 3]))
    solver = solver_for(
        attributes,
        [{"less": ["a", "b"]}, {"forbid": {"a": {"above": 2}, "b": {"below": 5}}}],
    )
    codes = all_codes(attributes)
    alone = [solver.feasible(row[np.newaxis])[0] for row in codes]
    assert solver.feasible(codes).tolist() == alone
    assert {True, False} <= set(alone)


def test_a_chain_of_inequalities_is_solved():
    """Ten columns of one bin 0..9, each below the next: there is one solution."""
    names = "abcdefghij"
    tables = [{"less": [one, two]} for one, two in itertools.pairwise(names)]
    codes = np.zeros((1, 10), dtype=CODE)
    fits = tuple(binned(name, 9, [0]) for name in names)
    repaired = solver_for(fits, tables).repair(codes, np.zeros((1, 10), dtype=np.int64), RNG)
    assert repaired.tolist() == [list(range(10))]
    short = tuple(binned(name, 8, [0]) for name in names)
    assert not solver_for(short, tables).feasible(codes).any()


def test_a_record_that_needs_too_many_boxes_is_rejected():
    """Nine forbids with two alternatives each make 512 boxes; another forbid rules out the
    first 256."""

    def is_possible(pairs):
        names = [f"{letter}{i}" for i in range(pairs) for letter in "pq"]
        attributes = (*(binned(name, 1, [0]) for name in names), binned("r", 0, [0]))
        tables = [{"forbid": {f"p{i}": [0], f"q{i}": [0]}} for i in range(pairs)]
        tables.append({"forbid": {f"p{pairs - 1}": [1], "r": [0]}})
        codes = np.zeros((1, len(attributes)), dtype=CODE)
        return solver_for(attributes, tables).feasible(codes).all()

    assert is_possible(8)
    assert not is_possible(9)


def test_repairing_an_infeasible_record_is_an_invariant_error():
    attributes = (binned("a", 5, [0]), binned("b", 5, [0]))
    solver = solver_for(attributes, [{"forbid": {"a": {"at_least": 0}}}])
    with pytest.raises(InvariantError, match="no values satisfy the constraints"):
        solver.repair(np.zeros((1, 2), dtype=CODE), np.zeros((1, 2), dtype=np.int64), RNG)


def test_without_constraints_everything_is_feasible_and_unchanged():
    attributes = (binned("a", 5, [0, 3]),)
    solver = ConstraintSolver(attributes, [])
    codes = all_codes(attributes)
    positions = np.array([[1], [4]])
    assert not solver
    assert solver.feasible(codes).all()
    assert (solver.repair(codes, positions, RNG) == positions).all()


# Every type, and invalid constraints

QUARTER, TENTH = (Grid(kind="real", step=Decimal(step)) for step in ("0.25", "0.1"))
HOUR = Grid(kind="datetime", step=Decimal(3600))
DAYS = range(19_723, 20_089)  # 2024

EVERY_TYPE = tuple(
    Attribute(name=name, kind=kind, **fields)
    for name, kind, fields in [
        ("boats", "integer", {"values": range(10)}),
        ("price", "real", {"values": range(-4, 37), "grid": QUARTER}),
        ("wage", "real", {"values": range(91), "grid": TENTH}),
        ("begin", "date", {"values": DAYS}),
        ("moment", "datetime", {"values": range(DAYS[0] * 24, DAYS[-1] * 24 + 1), "grid": HOUR}),
        ("grade", "ordered", {"values": ("poor", "fair", "good")}),
        ("mark", "ordered", {"values": ("poor", "fair", "good")}),
        ("rank", "ordered", {"values": (3, 1, 2)}),
        ("code", "categorical", {"values": (40, 10, 30), "missing": ("", "-8")}),
        ("trade", "categorical", {"values": ("tinsmith", "lacemaker")}),
        ("paid", "boolean", {"values": ("no", "yes")}),
        ("town", "text", {"values": ("Ulm",), "other": "elsewhere"}),
    ]
)

FREE = {
    "boats": 0,
    "price": 0.0,
    "wage": 0.0,
    "begin": dt.date(2024, 1, 1),
    "moment": dt.datetime(2024, 1, 1),
    "grade": "poor",
    "mark": "poor",
    "rank": 3,
    "code": 40,
    "trade": "tinsmith",
    "paid": False,
    "town": "Ulm",
}


def satisfies(table, **cells):
    """Whether one record, ``FREE`` except for the given cells, satisfies a constraint.

    Every code is a single value, so a record satisfies the constraint exactly if it is feasible.
    """
    solver = solver_for(EVERY_TYPE, [table])
    record = FREE | cells
    codes = []
    for attribute in EVERY_TYPE:
        value = record[attribute.name]
        if value is NONE:
            codes.append(attribute.missing_code)
        elif attribute.is_numeric:
            codes.append(attribute.values.index(int(attribute.grid.position_of(value))))
        else:
            codes.append(int(value) if isinstance(value, bool) else attribute.values.index(value))
    return solver.feasible(np.array([codes], dtype=CODE))[0]


@pytest.mark.parametrize(
    ("table", "kept", "broken"),
    [
        ({"less": ["boats", "price"]}, {"boats": 2, "price": 2.25}, {"boats": 2, "price": 2.0}),
        ({"at_most": ["boats", "price"]}, {"boats": 2, "price": 2.0}, {"boats": 2, "price": 1.75}),
        ({"less": ["price", "wage"]}, {"price": 0.25, "wage": 0.3}, {"price": 0.25, "wage": 0.2}),
        (
            {"at_most": ["begin", "moment"]},
            {"begin": dt.date(2024, 2, 29), "moment": dt.datetime(2024, 2, 29)},
            {"begin": dt.date(2024, 2, 29), "moment": dt.datetime(2024, 2, 28, 23)},
        ),
        ({"less": ["grade", "mark"]}, {"mark": "fair"}, {"grade": "good", "mark": "fair"}),
        ({"less": ["code", "boats"]}, {"code": NONE}, {"code": 10, "boats": 9}),
        ({"forbid": {"price": {"below": 0.3}}}, {"price": 0.5}, {"price": 0.25}),
        ({"forbid": {"wage": {"at_most": 0.3}}}, {"wage": 0.4}, {"wage": 0.3}),
        ({"forbid": {"wage": [0.1, 0.3]}}, {"wage": 0.2}, {"wage": 0.3}),
        (
            {"forbid": {"begin": {"above": dt.date(2024, 2, 1)}}},
            {"begin": dt.date(2024, 2, 1)},
            {"begin": dt.date(2024, 2, 2)},
        ),
        (
            {"forbid": {"moment": {"at_least": "2024-02-01T01:00:00"}}},
            {"moment": dt.datetime(2024, 2, 1)},
            {"moment": dt.datetime(2024, 2, 1, 1)},
        ),
        ({"forbid": {"begin": ["2024-02-01"]}}, {}, {"begin": dt.date(2024, 2, 1)}),
        ({"forbid": {"grade": {"above": "poor"}}}, {"grade": "poor"}, {"grade": "good"}),
        ({"forbid": {"rank": {"above": 3}}}, {"rank": 3}, {"rank": 1}),
        ({"forbid": {"code": {"above": 20}}}, {"code": 10}, {"code": 30}),
        ({"forbid": {"code": {"below": 20}}}, {"code": NONE}, {"code": 10}),
        ({"forbid": {"code": [-8]}}, {"code": 10}, {"code": NONE}),
        ({"forbid": {"paid": [True], "trade": ["tinsmith"]}}, {}, {"paid": True}),
        ({"forbid": {"paid": ["yes"]}}, {"paid": False}, {"paid": True}),
        ({"forbid": {"town": ["elsewhere"]}}, {"town": "Ulm"}, {"town": "elsewhere"}),
        (
            {"allow": {"columns": ["town", "wage"], "rows": [["Ulm", 0.5], ["elsewhere", 0.7]]}},
            {"wage": 0.5},
            {"wage": 0.7},
        ),
        ({"forbid": {"code": {"below": 1e300}}}, {"code": NONE}, {"code": 40}),
        ({"forbid": {"boats": {"above": -1e300}, "code": [10]}}, {"code": 30}, {"code": 10}),
    ],
)
def test_every_type_is_compared_by_value(table, kept, broken):
    assert satisfies(table, **kept)
    assert not satisfies(table, **broken)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{"less": ["boats", "begin"]}], "cannot be compared"),
        ([{"less": ["trade", "town"]}], "cannot be compared"),
        ([{"less": ["grade", "rank"]}], "cannot be compared"),
        ([{"forbid": {"trade": {"below": "tinsmith"}}}], "have no order"),
        ([{"forbid": {"trade": ["blacksmith"]}}], '"blacksmith" is not one of its values'),
        ([{"forbid": {"code": [20]}}], "20 is not one of its values"),
        ([{"forbid": {"code": ["10"]}}], '"10" is not one of its values'),
        ([{"forbid": {"boats": [10]}}], "10 is not one of its values"),
        ([{"forbid": {"wage": [0.15]}}], "0.15 is not one of its values"),
        (
            [{"forbid": {"boats": {"below": "4"}}}],
            '"4" is not a number; write numbers without quotes',
        ),
        ([{"forbid": {"boats": {"below": True}}}], "is not a number"),
        ([{"forbid": {"begin": {"below": "1 May"}}}], "write dates as 2024-12-31"),
        ([{"forbid": {"begin": {"below": 2024}}}], "write dates as 2024-12-31"),
        ([{"forbid": {"grade": {"below": "best"}}}], '"best" is not one of its values'),
        ([{"forbid": {"boats": {"below": 3, "above": 3}}}], "no value satisfies all its bounds"),
        (
            [{"less": ["boats", "price"]}, {"at_most": ["price", "boats"]}],
            'form a cycle: "',
        ),
    ],
)
def test_an_invalid_constraint_is_rejected(tables, message):
    with pytest.raises(SchemaError) as refusal:
        solver_for(EVERY_TYPE, tables)
    assert message in str(refusal.value)


def test_numbers_too_large_to_be_compared_are_rejected():
    huge = Attribute(name="a", kind="integer", values=range(2**61, 2**61 + 3))
    with pytest.raises(SchemaError, match="too large to be compared"):
        solver_for((huge, binned("b", 3, [0])), [{"less": ["a", "b"]}])


def test_decoded_records_satisfy_the_constraints():
    """A bin is thirty days: if both lie in the same bin, half of the draws need a repair."""
    schema = Schema.parse(
        """
format = 1

[[attribute]]
name = "begin"
type = "date"
min = 2024-01-01
max = 2024-12-31
bins = { width = 30 }

[[attribute]]
name = "end"
type = "datetime"
min = 2024-01-01T00:00:00
max = 2024-12-31T23:00:00
step_seconds = 3600
bins = { width = 2_592_000 }
missing = [""]

[[constraint]]
less = ["begin", "end"]

[[constraint]]
forbid = { begin = { above = 2024-06-15 }, end = { missing = true } }
"""
    )
    codes = np.repeat(all_codes(schema.attributes), 50, axis=0)
    codes = np.asfortranarray(codes[schema.constraint_solver.feasible(codes)])
    records = decode_records(Codec(schema), codes, Keyed(2).at("records"))
    begin, end = records["begin"], records["end"]
    assert (begin.cast(pl.Datetime("us")) < end).drop_nulls().all()
    latest = begin.filter(end.is_null()).max()
    assert isinstance(latest, dt.date)
    assert latest <= dt.date(2024, 6, 15)
    assert (Codec(schema).encode(records) == codes).all()
    assert 0 < end.null_count() < len(records)
