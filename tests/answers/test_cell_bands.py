"""Bands: every rule, what it refuses, and labels that a reader understands."""

from decimal import Decimal

import numpy as np
import pytest

from deniable.answers.cell_bands import Bands, codes_label, make_bands, parse_band_rules
from deniable.errors import ConfigError
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid

AGE = Attribute(name="age", kind="integer", values=range(18, 48), missing=("?",)).with_bucket_width(
    10
)
STATE = Attribute(name="state", kind="categorical", values=("AK", "HI", "TX", "UT"), missing=("",))
LEVEL = Attribute(name="level", kind="ordered", values=("low", "mid", "high", "top"))
PAY = Attribute(
    name="pay",
    kind="real",
    values=range(100),
    starts=tuple(range(0, 100, 20)),
    grid=Grid(kind="real", step=Decimal("0.5")),
)
DAY = Attribute(name="day", kind="date", values=range(365))


def bands(attribute, rule, **parts):
    found = make_bands(attribute, rule, {name: np.array(own) for name, own in parts.items()})
    assert len(found.band_of) == attribute.size
    assert sorted(set(found.band_of.tolist())) == list(range(len(found)))
    return found


def test_a_width_starts_at_its_multiples():
    assert bands(AGE, 10).labels == ("18 to 19", "20 to 29", "30 to 39", "40 to 47", "missing")
    assert bands(PAY, 20.0).labels == ("0.0 to 19.5", "20.0 to 39.5", "40.0 to 49.5")


def test_edges_are_lower_ends():
    assert bands(AGE, [25, 40]).labels == ("18 to 24", "25 to 39", "40 to 47", "missing")
    found = bands(DAY, ["1970-02-01", "1970-12-01"])
    assert found.labels[1] == "1970-02-01 to 1970-11-30"


def test_values_buckets_bins_and_groups():
    assert len(bands(AGE, "values")) == AGE.size
    assert bands(AGE, "buckets").labels[:2] == ("18 to 27", "28 to 37")
    assert bands(STATE, "bins", bins=[0, 0, 1, 1, 2]).labels == ("AK, HI", "TX, UT", "missing")
    # Groups of categories need not be neighbours; bands are in the order of their first values.
    assert bands(STATE, "groups", groups=[1, 0, 1, 0, 2]).labels == ("AK, TX", "HI, UT", "missing")


def test_listed_groups_leave_the_others_in_one_band():
    found = bands(STATE, {"far": ["AK", "HI"], "big": ["TX"]})
    assert found.labels == ("far", "big", "other values", "missing")
    assert found.band_of.tolist() == [0, 0, 1, 2, 3]
    assert bands(LEVEL, {"all": ["low", "mid", "high", "top"]}).labels == ("all",)
    assert bands(AGE, {"round": [20, 30, 40]}).labels == ("round", "other values", "missing")


@pytest.mark.parametrize(
    ("attribute", "rule", "words"),
    [
        (AGE, "decades", "no rule"),
        (AGE, "groups", "no groups"),
        (AGE, 0, "multiple of 1"),
        (AGE, -5, "multiple of 1"),
        (AGE, 2.5, "multiple of 1"),
        (AGE, True, "a rule is"),
        (AGE, None, "a rule is"),
        (AGE, [40, 25], "ascend"),
        (AGE, [], "ascend"),
        (AGE, ["x"], "ascend"),
        pytest.param(AGE, 10**400, "too many digits", id="a long width"),
        (AGE, [25, 10**400], "too many digits"),
        (AGE, 1e300, "too many digits"),
        (AGE, {"a": [99]}, "they are 18, 19, 20, 21, 22 and 25 more$"),
        (STATE, 10, "no numbers"),
        (STATE, {"far": ["AK", "OH"]}, '"OH" is no value'),
        (STATE, {"far": ["AK"], "cold": ["AK"]}, "two groups"),
        (STATE, {"far": "AK"}, "list of values"),
        (STATE, {"far": []}, "list of values"),
        (PAY, 5.0, "edges of the schema's bins"),
        (PAY, [3.0], "edges of the schema's bins"),
        (PAY, {"a": [1.0]}, "in bins"),
    ],
)
def test_rules_that_do_not_fit_are_refused(attribute, rule, words):
    with pytest.raises(ConfigError, match=words) as error:
        make_bands(attribute, rule, {})
    assert attribute.name in str(error.value)


def test_labels_are_short():
    assert codes_label(AGE, np.array([0])) == "18"
    assert codes_label(AGE, np.array([0, 30])) == "18 or missing"
    assert codes_label(AGE, np.array([0, 2])) == "18, 20"
    assert codes_label(LEVEL, np.array([0, 1, 2])) == "low to high"
    many = Attribute(name="n", kind="categorical", values=[f"value {i}" * 9 for i in range(9)])
    assert len(codes_label(many, np.arange(9))) == 60
    assert Bands.whole(STATE).labels == ("all",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age: 10", {"age": 10}),
        ("age:10", {"age": 10}),
        ("pay: 2.5", {"pay": 2.5}),
        ("age: 18, 30, 65", {"age": [18, 30, 65]}),
        ("age: values", {"age": "values"}),
        ("day: 2024-01-01, 2024-07-01", {"day": ["2024-01-01", "2024-07-01"]}),
        ("a: b: groups", {"a: b": "groups"}),
    ],
)
def test_rules_of_the_command_line(text, expected):
    assert parse_band_rules([text]) == expected


@pytest.mark.parametrize("texts", [["age"], [": 10"], ["age:"], ["age: 1", "age: 2"], [""]])
def test_malformed_rules_are_refused(texts):
    with pytest.raises(ConfigError, match="--by"):
        parse_band_rules(texts)
