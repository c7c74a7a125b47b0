"""Rules against brute force: every choice of values inside the bins, tried one by one."""

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
from deniable.data.amounts import Unit
from deniable.data.attributes import Attribute
from deniable.data.constraints import parse_constraint
from deniable.data.rules import Rules
from deniable.data.schema import Schema
from deniable.errors import InvariantError, SchemaError
from deniable.randomness import Keyed

RNG = Keyed(1).at("records")
NONE = None  # a missing cell, as brute force sees it


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
    """All that a code may stand for, in the words of a schema."""
    if code == attribute.missing_code:
        return [NONE]
    return list(attribute.positions(code)) if attribute.is_numeric else [attribute.values[code]]


def keeps(record, table):
    """Whether a record, a value for each name, keeps a constraint; word for word."""
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


# One way round, so that no two run in a circle.
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


def rules_of(attributes, tables):
    names = [attribute.name for attribute in attributes]
    return Rules(attributes, [parse_constraint(table, names) for table in tables])


def all_codes(attributes):
    codes = itertools.product(*(range(attribute.size) for attribute in attributes))
    return np.asfortranarray(np.array(list(codes), dtype=CODE))


def solutions(attributes, tables, codes):
    """All records that a row of codes may stand for and that keep every constraint."""
    names = [attribute.name for attribute in attributes]
    options = [values_of(a, code) for a, code in zip(attributes, codes, strict=True)]
    for values in itertools.product(*options):
        record = dict(zip(names, values, strict=True))
        if all(keeps(record, table) for table in tables):
            yield values


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_possible_is_that_some_choice_of_values_keeps_all_constraints(world):
    attributes, tables = world
    codes = all_codes(attributes)
    expected = [any(True for _ in solutions(attributes, tables, row)) for row in codes]
    assert rules_of(attributes, tables).possible(codes).tolist() == expected


def draw_positions(attributes, codes, rng):
    """Positions inside the bins, without regard to constraints; a listed value is its code."""
    positions = codes.astype(np.int64)
    for j, attribute in enumerate(attributes):
        if attribute.is_numeric:
            for i, code in enumerate(codes[:, j]):
                values = values_of(attribute, code)
                if values != [NONE]:
                    positions[i, j] = values[rng.integers(len(values), 1)[0]]
    return positions


def records_of(attributes, codes, positions):
    """The values that codes and positions stand for."""

    def value(attribute, code, position):
        if code == attribute.missing_code:
            return NONE
        return position if attribute.is_numeric else attribute.values[code]

    return [
        tuple(map(value, attributes, row, places))
        for row, places in zip(codes.tolist(), positions.tolist(), strict=True)
    ]


@pytest.mark.parametrize("rounds", [0, 20])
@settings(max_examples=75, deadline=None)
@given(world=worlds(), key=st.integers(0, 2**32))
def test_settled_values_keep_all_constraints_in_the_same_bins(rounds, world, key):
    """By construction alone (no rounds), and as it is used."""
    attributes, tables = world
    rules, rng = rules_of(attributes, tables), Keyed(key).at("records")
    codes = all_codes(attributes)
    codes = codes[rules.possible(codes)]
    drawn = draw_positions(attributes, codes, rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deniable.data.rules._ROUNDS", rounds)
        settled = rules.settle(codes, drawn, rng)

    for row, record in zip(codes, records_of(attributes, codes, settled), strict=True):
        assert record in set(solutions(attributes, tables, row))


@settings(max_examples=75, deadline=None)
@given(world=worlds(), key=st.integers(0, 2**32))
def test_values_that_keep_the_constraints_stay(world, key):
    attributes, tables = world
    rules, rng = rules_of(attributes, tables), Keyed(key).at("records")
    codes = all_codes(attributes)
    codes = codes[rules.possible(codes)]
    drawn = draw_positions(attributes, codes, rng)
    names = [attribute.name for attribute in attributes]
    kept = [
        all(keeps(dict(zip(names, record, strict=True)), table) for table in tables)
        for record in records_of(attributes, codes, drawn)
    ]

    assert rules.holds(codes, drawn).tolist() == kept
    settled = rules.settle(codes, drawn, rng)
    assert (settled[kept] == drawn[kept]).all()
    for j in (0, 1, 2):
        missing = codes[:, j] == attributes[j].missing_code
        assert (settled[missing, j] == drawn[missing, j]).all()


def test_settled_values_are_uniform_among_those_allowed():
    """a < b in one bin of 0..3: six pairs, equally likely, though a starts anywhere."""
    attributes = (binned("a", 3, [0]), binned("b", 3, [0]))
    rules, rng = rules_of(attributes, [{"less": ["a", "b"]}]), Keyed(3).at("records")
    codes = np.zeros((60_000, 2), dtype=CODE)
    positions = np.stack([rng.integers(4, len(codes)), rng.integers(4, len(codes))], axis=1)
    settled = rules.settle(codes, positions, rng)
    pairs = Counter(map(tuple, settled.tolist()))
    assert_distribution(pairs, dict.fromkeys(itertools.combinations(range(4), 2), 1 / 6))


def test_that_distribution_notices_values_that_were_constructed():
    attributes = (binned("a", 3, [0]), binned("b", 3, [0]))
    rules, rng = rules_of(attributes, [{"less": ["a", "b"]}]), Keyed(3).at("records")
    codes = np.zeros((60_000, 2), dtype=CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deniable.data.rules._ROUNDS", 0)
        settled = rules.settle(codes, codes.astype(np.int64), rng)
    pairs = Counter(map(tuple, settled.tolist()))
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(pairs, dict.fromkeys(itertools.combinations(range(4), 2), 1 / 6))


def test_a_record_does_not_depend_on_the_others():
    """Left out or not, it is for itself alone: the deniability test rests on it."""
    attributes = (binned("a", 5, [0, 2, 4]), binned("b", 5, [0, 3]))
    rules = rules_of(
        attributes,
        [{"less": ["a", "b"]}, {"forbid": {"a": {"above": 2}, "b": {"below": 5}}}],
    )
    codes = all_codes(attributes)
    alone = [rules.possible(row[np.newaxis])[0] for row in codes]
    assert rules.possible(codes).tolist() == alone
    assert {True, False} <= set(alone)


def test_a_chain_of_any_length_is_followed_to_its_end():
    """Ten columns of one bin 0..9, each below the next: one record is left."""
    names = "abcdefghij"
    tables = [{"less": [one, two]} for one, two in itertools.pairwise(names)]
    codes = np.zeros((1, 10), dtype=CODE)
    fits = tuple(binned(name, 9, [0]) for name in names)
    settled = rules_of(fits, tables).settle(codes, np.zeros((1, 10), dtype=np.int64), RNG)
    assert settled.tolist() == [list(range(10))]
    short = tuple(binned(name, 8, [0]) for name in names)
    assert not rules_of(short, tables).possible(codes).any()


def test_a_record_that_would_need_too_many_boxes_is_left_out():
    """Forbids with two ways out each: with nine, 512 boxes, and the last forbid ends the first."""

    def is_possible(pairs):
        names = [f"{letter}{i}" for i in range(pairs) for letter in "pq"]
        attributes = (*(binned(name, 1, [0]) for name in names), binned("r", 0, [0]))
        tables = [{"forbid": {f"p{i}": [0], f"q{i}": [0]}} for i in range(pairs)]
        tables.append({"forbid": {f"p{pairs - 1}": [1], "r": [0]}})
        codes = np.zeros((1, len(attributes)), dtype=CODE)
        return rules_of(attributes, tables).possible(codes).all()

    assert is_possible(8)
    assert not is_possible(9)


def test_settling_what_is_not_possible_is_a_bug():
    attributes = (binned("a", 5, [0]), binned("b", 5, [0]))
    rules = rules_of(attributes, [{"forbid": {"a": {"at_least": 0}}}])
    with pytest.raises(InvariantError, match="no values make possible"):
        rules.settle(np.zeros((1, 2), dtype=CODE), np.zeros((1, 2), dtype=np.int64), RNG)


def test_without_constraints_everything_is_possible_and_stays():
    attributes = (binned("a", 5, [0, 3]),)
    rules = Rules(attributes, [])
    codes = all_codes(attributes)
    positions = np.array([[1], [4]])
    assert not rules
    assert rules.possible(codes).all()
    assert (rules.settle(codes, positions, RNG) == positions).all()


# Every type, and what cannot be asked of it

QUARTER, TENTH = (Unit(kind="real", step=Decimal(step)) for step in ("0.25", "0.1"))
HOUR = Unit(kind="datetime", step=Decimal(3600))
DAYS = range(19_723, 20_089)  # 2024

EVERY_TYPE = tuple(
    Attribute(name=name, kind=kind, **fields)
    for name, kind, fields in [
        ("boats", "integer", {"values": range(10)}),
        ("price", "real", {"values": range(-4, 37), "unit": QUARTER}),
        ("wage", "real", {"values": range(91), "unit": TENTH}),
        ("begin", "date", {"values": DAYS}),
        ("moment", "datetime", {"values": range(DAYS[0] * 24, DAYS[-1] * 24 + 1), "unit": HOUR}),
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


def holds(table, **cells):
    """Whether one record, free but for the given cells, is possible and keeps a constraint."""
    rules = rules_of(EVERY_TYPE, [table])
    record = FREE | cells
    codes, positions = [], []
    for attribute in EVERY_TYPE:
        value = record[attribute.name]
        if value is NONE:
            code = position = attribute.missing_code
        elif attribute.is_numeric:
            position = int(attribute.unit.place_of(value))
            code = next(c for c in range(attribute.bins) if position in attribute.positions(c))
        else:
            code = position = (
                int(value) if isinstance(value, bool) else attribute.values.index(value)
            )
        codes.append(code)
        positions.append(position)
    row = np.array([codes], dtype=CODE)
    return rules.possible(row)[0] and rules.holds(row, np.array([positions]))[0]


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
def test_every_type_is_compared_by_what_its_values_mean(table, kept, broken):
    assert holds(table, **kept)
    assert not holds(table, **broken)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{"less": ["boats", "begin"]}], "cannot be compared"),
        ([{"less": ["trade", "town"]}], "cannot be compared"),
        ([{"less": ["grade", "rank"]}], "cannot be compared"),
        ([{"forbid": {"trade": {"below": "tinsmith"}}}], "have no order"),
        ([{"forbid": {"trade": ["blacksmith"]}}], 'it never holds "blacksmith"'),
        ([{"forbid": {"code": [20]}}], "it never holds 20"),
        ([{"forbid": {"code": ["10"]}}], 'it never holds "10"'),
        ([{"forbid": {"boats": [10]}}], "it never holds 10"),
        ([{"forbid": {"wage": [0.15]}}], "it never holds 0.15"),
        ([{"forbid": {"boats": {"below": "4"}}}], '"4" is no number; write one without quotes'),
        ([{"forbid": {"boats": {"below": True}}}], "is no number"),
        ([{"forbid": {"begin": {"below": "1 May"}}}], "write its dates as 2024-12-31"),
        ([{"forbid": {"begin": {"below": 2024}}}], "write its dates as 2024-12-31"),
        ([{"forbid": {"grade": {"below": "best"}}}], 'it never holds "best"'),
        ([{"forbid": {"boats": {"below": 3, "above": 3}}}], "no value keeps all its bounds"),
        (
            [{"less": ["boats", "price"]}, {"at_most": ["price", "boats"]}],
            'run in a circle: "',
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_cure(tables, message):
    with pytest.raises(SchemaError) as refusal:
        rules_of(EVERY_TYPE, tables)
    assert message in str(refusal.value)


def test_numbers_too_large_to_be_compared_are_refused():
    huge = Attribute(name="a", kind="integer", values=range(2**61, 2**61 + 3))
    with pytest.raises(SchemaError, match="too large to be compared"):
        rules_of((huge, binned("b", 3, [0])), [{"less": ["a", "b"]}])


def test_the_records_of_a_schema_keep_its_constraints():
    """Thirty days are one bin: where both lie in one, half of the draws must be settled."""
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
    codes = np.asfortranarray(codes[schema.rules.possible(codes)])
    records = schema.records(codes, Keyed(2).at("records"))
    begin, end = records["begin"], records["end"]
    assert (begin.cast(pl.Datetime("us")) < end).drop_nulls().all()
    assert begin.filter(end.is_null()).max() <= dt.date(2024, 6, 15)
    assert (schema.codec.encode(records) == codes).all()
    assert 0 < end.null_count() < len(records)
