"""The grammar of conditions: what each form allows, and where each error points."""

import pytest

from deniable.answers.condition import RecordCondition
from deniable.errors import ConfigError
from deniable.schema.schema import Schema

SCHEMA = Schema.parse("""
format = 1
[[attribute]]
name = "years"
type = "integer"
min = 0
max = 99
bins = { width = 10 }
missing = ["", "?"]
[[attribute]]
name = "monthly pay"
type = "categorical"
values = ["low", "More than 50,000", "it's", "7"]
[[attribute]]
name = "grade"
type = "ordered"
values = ["poor", "fair", "good"]
[[attribute]]
name = "visit"
type = "date"
min = 2024-01-01
max = 2024-12-31
[[attribute]]
name = "weight"
type = "real"
min = 0
max = 10
decimals = 1
[[attribute]]
name = "smoker"
type = "boolean"
values = ["no", "yes"]
[[attribute]]
name = "rooms"
type = "categorical"
values = [1, 2, 40]
[[attribute]]
name = "id"
type = "identifier"
[[attribute]]
name = "double"
type = "computed"
formula = "2 * years"
""")
ATTRIBUTES = {attribute.name: attribute for attribute in SCHEMA.attributes}


def parse(text):
    return RecordCondition.parse(text, SCHEMA)


def codes(text, name):
    return parse(text).allowed_codes(ATTRIBUTES[name]).nonzero()[0].tolist()


def intervals(text, name):
    return parse(text).allowed[name].intervals.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("years >= 65", [[65, 99]]),
        ("years > 64.5", [[65, 99]]),
        ("years<30", [[0, 29]]),
        ("years <= 29 and years > 9", [[10, 29]]),
        ("years = 30", [[30, 30]]),
        ("years == 30", [[30, 30]]),
        ("years!=30", [[0, 29], [31, 99]]),
        ("years != 30", [[0, 29], [31, 99]]),
        ("years in (3, 1, 2, 50)", [[1, 3], [50, 50]]),
        ("YEARS = 1".lower(), [[1, 1]]),
        ("years not in (0, 99)", [[1, 98]]),
        ("years is not missing", [[0, 99]]),
        ("years >= -1e3", [[0, 99]]),
    ],
)
def test_numbers_are_intervals_of_positions(text, expected):
    condition = parse(text)
    assert intervals(text, "years") == expected
    assert condition.columns == ("years",)
    assert not condition.allowed["years"].allows_missing


def test_a_missing_cell_satisfies_is_missing_only():
    assert codes("years is missing", "years") == [10]
    assert codes('years = "?"', "years") == [10]
    assert codes('years in ("", 5)', "years") == [0, 10]
    assert 10 not in codes('years != "?"', "years")


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ('"monthly pay" = "More than 50,000"', "monthly pay", [1]),
        ("'monthly pay' = 'it''s'", "monthly pay", [2]),
        ('"monthly pay" in (7, "low")', "monthly pay", [0, 3]),
        ('grade >= "fair"', "grade", [1, 2]),
        ('grade != "fair"', "grade", [0, 2]),
        ("rooms < 40", "rooms", [0, 1]),
        ("rooms = 40", "rooms", [2]),
        ("smoker = true", "smoker", [1]),
        ('smoker == "no"', "smoker", [0]),
        ('smoker = "no"', "smoker", [0]),
    ],
)
def test_listed_values_are_codes(text, name, expected):
    assert codes(text, name) == expected


def test_dates_and_reals_are_compared_exactly():
    assert intervals("visit < 2024-01-03", "visit") == [[19723, 19724]]
    assert intervals('visit >= "2024-12-30T12:00:00"', "visit") == [[20088, 20088]]
    assert intervals("weight <= 0.3", "weight") == [[0, 3]]
    assert intervals("weight < 0.25", "weight") == [[0, 2]]


def test_columns_that_are_not_named_are_free():
    condition = parse('years >= 65 and grade = "good"')
    assert condition.columns == ("years", "grade")
    assert condition.allowed_codes(ATTRIBUTES["rooms"]).all()
    assert condition.shares(ATTRIBUTES["rooms"]).tolist() == [1, 1, 1]
    assert condition.shares(ATTRIBUTES["years"])[6] == 0.5


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("", 1, "name of a column"),
        ("year >= 65", 1, 'did you mean "years"'),
        ("zzz = 1", 1, "the columns are"),
        ("years >= ", 10, "expected a value"),
        ("years === 5", 9, "a comparison is one of = (or ==), !="),
        ("years =< 5", 8, "a comparison is one of = (or ==), !="),
        ("years <> 5", 8, "a comparison is one of = (or ==), !="),
        ("years = 5 or years = 6", 11, "there is no or"),
        ("years = 5, 6", 10, "expected and"),
        ("years ~ 5", 7, "expected ="),
        ("years = 500", 9, "not a value"),
        ("years = 1.5", 9, "not a value"),
        pytest.param("years = " + "9" * 5_000, 9, "at most 100 characters", id="long number"),
        pytest.param("years < ." + "9" * 5_000, 9, "at most 100 characters", id="long decimals"),
        ("years = 'x'", 9, "without quotes"),
        ("years in 5", 10, "parentheses"),
        ("years in (5", 12, "comma or )"),
        ('"monthly pay" = low', 17, "in quotes"),
        ('"monthly pay" = "lo"', 17, 'did you mean "low"'),
        ('"monthly pay" > "low"', 17, "no order"),
        ("visit = 31.12.2024", 9, "2024-12-31"),
        ('grade = "good', 9, "not closed"),
        ("years > 50 and years < 20", 16, "no value of column"),
        ("years >= 100", 1, "no value of column"),
        ("rooms is missing", 10, "never missing"),
        ("years is 5", 10, "expected missing"),
        ("years and", 7, "expected ="),
        ("id = 5", 1, "an identifier"),
        ("double = 4", 1, "computed"),
        ("years = __import__('os')", 9, "without quotes"),
    ],
)
def test_errors_point_at_their_place(text, at, words):
    with pytest.raises(ConfigError, match=f"character {at}: .*") as raised:
        parse(text)
    assert words in str(raised.value)


def test_long_conditions_are_refused():
    with pytest.raises(ConfigError, match="at most"):
        parse("years > 5 and " * 1000 + "years > 5")
