"""The form of a column: what a page shows and sends back is the same column."""

import datetime
from dataclasses import replace

import pytest

from deniable.errors import SchemaError
from deniable.files import parse_toml
from deniable.schema.schema import Schema
from deniable.studio.column_form import ColumnForm, convert, summarize
from deniable.studio.schema_text import SchemaText

COLUMNS = [
    {"type": "categorical", "values": ["a", " b", "<i>"], "missing": ["", "?"]},
    {"type": "categorical", "values": [1, 2, 3]},
    {"type": "ordered", "values": ["low", "high"], "outside": "drop"},
    {"type": "boolean"},
    {"type": "text", "values": ["x"], "other": "rest"},
    {"type": "integer", "min": -3, "max": 1_000, "outside": "clip"},
    {"type": "real", "min": 0.0, "max": 9.5, "decimals": 1},
    {"type": "date", "min": datetime.date(2000, 1, 1), "max": datetime.date(2020, 1, 1)},
    {
        "type": "datetime",
        "min": datetime.datetime(2000, 1, 1),
        "max": datetime.datetime(2020, 1, 1, 12, 30),
    },
    {"type": "identifier", "release": "omit"},
    {"type": "constant", "value": 7},
]


def send(form: ColumnForm) -> dict[str, str]:
    """What a browser sends of a form: line ends become CRLF."""
    sent = {"type": form.kind, **form.fields, "missing": form.missing, "outside": form.outside}
    sent |= {"empty_is_missing": "on"} if form.empty_is_missing else {}
    sent |= {"confirmed": "on"} if form.confirmed else {}
    return {key: value.replace("\n", "\r\n") for key, value in sent.items()}


@pytest.mark.parametrize("confirmed", [True, False, "draft"])
def test_a_draft_confirms_a_column_until_a_person_does(confirmed):
    column = {"name": "x", "type": "boolean", "confirmed": confirmed}
    form = ColumnForm.of(column)
    assert ColumnForm.sent(send(form)).values(column)["confirmed"] == confirmed
    assert ColumnForm.sent(send(replace(form, confirmed=True))).values(column)["confirmed"] is True


@pytest.mark.parametrize("column", COLUMNS, ids=lambda each: each["type"])
def test_a_form_that_is_sent_unchanged_changes_nothing(column):
    column = {"name": "x", **column, "confirmed": True}
    back = ColumnForm.sent(send(ColumnForm.of(column))).values(column)
    assert {key: value for key, value in back.items() if value is not None} == {
        key: value for key, value in column.items() if key != "name"
    }
    for key, value in back.items():
        assert value is None or type(value) is type(column[key])


@pytest.mark.parametrize(
    ("kind", "key", "text"),
    [
        ("integer", "min", "three"),
        ("real", "max", "1,5"),
        ("real", "max", "NaN"),
        ("date", "min", "1.1.2000"),
        ("datetime", "max", "noon"),
        ("real", "decimals", "x"),
    ],
)
def test_a_text_that_is_no_value_is_refused_by_its_key(kind, key, text):
    sent = {"type": kind, "min": "0", "max": "1", key: text}
    if kind.startswith("date"):
        sent["min" if key == "max" else "max"] = "2000-01-01"
    with pytest.raises(SchemaError, match=key):
        ColumnForm.sent(sent).values({"name": "x", "type": kind})


def test_an_unknown_type_is_refused():
    with pytest.raises(SchemaError, match="types"):
        ColumnForm.sent({"type": "<script>"}).values({"name": "x"})


def test_a_new_type_drops_the_keys_of_the_old_one(small_files):
    text = (small_files / "schema.toml").read_text()
    columns = parse_toml(text)["attribute"]
    at = [each["name"] for each in columns].index("boats")
    sent = {"type": "categorical", **convert(columns[at], "categorical"), "confirmed": "on"}
    values = ColumnForm.sent(sent).values(columns[at])
    column = Schema.parse(SchemaText.parse(text).with_attribute(at, **values).text).columns[at]
    assert column.kind == "categorical"
    assert column.values == tuple("012345")


def test_conversions_fill_what_is_known():
    listed = {"type": "categorical", "values": ["3", "10", "x"]}
    assert convert(listed, "integer") == {"min": "3", "max": "10"}
    assert convert(listed, "text") == {"values": "3\n10\nx", "other": "other"}
    assert convert({"type": "integer", "min": 0, "max": 10**9}, "categorical") == {}
    assert convert(listed, "identifier") == {"release": "fresh"}
    assert convert({"type": "integer", "min": 1, "max": 2}, "real") == {
        "min": "1",
        "max": "2",
        "decimals": "2",
    }


def test_a_value_with_a_line_break_is_not_edited_by_lines():
    assert ColumnForm.of({"type": "categorical", "values": ["a\nb"]}).has_odd_values
    assert not ColumnForm.of({"type": "categorical", "values": ["a b"]}).has_odd_values


def test_summaries():
    assert summarize({"type": "integer", "min": 1, "max": 9}) == "1 to 9"
    assert (
        summarize({"type": "categorical", "values": list("abcdefgh")})
        == "a, b, c, d, e, f and 2 more"
    )
    assert summarize({"type": "text", "values": [], "other": "x"}).endswith("all become “x”")
    assert summarize({"type": "boolean"}) == "false, true"
    assert summarize({"type": "identifier", "release": "omit"}) == "left out"
    assert summarize({"type": "constant", "value": 3}) == "3"
    assert summarize({"type": "computed", "from": "a"}) == "from a"
    pairs = [[str(at), at] for at in range(5)]
    assert summarize({"type": "computed", "from": "a", "map": pairs}).endswith("2 → 2 and 2 more")
    odd_maps: tuple[object, ...] = (3, {}, [3], [[]], "text")
    for odd in odd_maps:
        assert summarize({"type": "computed", "from": "a", "map": odd}) == "from a"
    assert summarize({"type": "computed", "formula": "a + b"}) == "a + b"
