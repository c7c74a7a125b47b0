import os
from dataclasses import replace

import pytest

from deniable.errors import ConfigError, OutputError, SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.constraints import parse_constraint
from deniable.schema.draft_cost import DraftCost
from deniable.schema.schema import Schema

TEXT = """
format = 1
rows_max = 2_000_000

[[attribute]]
name = "age"
type = "integer"
min = 17
max = 96
buckets = { width = 10 }
outside = "clip"
confirmed = false

[[attribute]]
name = "education"
type = "categorical"
values = ["No schooling", "Primary", "High school", "Bachelor", "Doctorate"]
buckets = [["No schooling", "Primary"], ["High school"], ["Bachelor", "Doctorate"]]
missing = ["", "?"]
confirmed = true

[[attribute]]
name = "sex"
type = "categorical"
values = [1, 2]
"""


REAL = 'type = "real"\nmin = 0\nmax = 1.0'
DATE = 'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31'
TIME = 'type = "datetime"\nmin = 2020-01-01T00:00:00\nmax = 2020-12-31T00:00:00'


def schema_with(line, *, of='type = "categorical"\nvalues = ["a", "b"]'):
    return f'format = 1\n[[attribute]]\nname = "x"\n{of}\n{line}\n'


def test_names_sizes_and_buckets_are_parsed():
    schema = Schema.parse(TEXT)
    assert schema.names == ("age", "education", "sex")
    assert schema.sizes == (80, 6, 2)
    assert schema.rows_max == 2_000_000
    age, education, sex = schema.attributes
    assert (age.buckets, age.outside, age.confirmed) == (8, "clip", False)
    assert education.groups == (0, 0, 1, 2, 2, 3)
    assert (sex.values, sex.is_bucketed, sex.confirmed) == ((1, 2), False, True)


def test_a_written_schema_reads_back_equal(tmp_path):
    schema = Schema.parse(TEXT)
    schema.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == schema
    assert Schema.read(str(tmp_path / "schema.toml")) == schema


def test_a_plain_draft_is_written_for_its_owner_only(tmp_path):
    """It is as confidential as the table until somebody has confirmed it."""
    draft = Schema.parse(TEXT)
    assert draft.drafted
    confirmed = Schema.parse(TEXT.replace("confirmed = false\n", ""))
    assert not confirmed.drafted
    before = os.umask(0o022)
    try:
        draft.write(tmp_path / "draft.toml")
        confirmed.write(tmp_path / "schema.toml")
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("draft.toml", "schema.toml")]
    assert modes == [0o600, 0o644]


def test_a_schema_that_cannot_be_written_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written \(No such file"):
        Schema.parse(TEXT).write(tmp_path / "absent" / "schema.toml")


def test_a_width_is_written_as_a_width_and_groups_as_groups():
    text = Schema.parse(TEXT).text()
    assert "buckets = { width = 10 }" in text
    assert 'buckets = [["No schooling", "Primary"], ["High school"], ["Bachelor", ' in text
    odd = Attribute(name="n", kind="integer", values=range(4), groups=(0, 0, 1, 0))
    assert "buckets = [[0, 1, 3], [2]]" in Schema((odd,)).text()


def test_long_lists_are_wrapped():
    values = tuple(f"value number {i}" for i in range(300))
    wide = Attribute(name="v", kind="categorical", values=values)
    schema = Schema((wide.with_bucket_groups([values[:150], values[150:]]),))
    text = schema.text()
    assert max(map(len, text.splitlines())) <= 100
    assert Schema.parse(text) == schema


def test_rows_max_is_drafted_until_confirmed():
    text = "rows_max = 20\nrows_max_confirmed = false\n"
    schema = Schema.parse(schema_with("").replace("format = 1\n", f"format = 1\n{text}"))
    assert schema.drafted == ("rows_max",)
    assert Schema.parse(schema.text()) == schema
    assert Schema.parse(schema.text().replace("= false", "= true")).drafted == ()


@pytest.mark.parametrize(
    "described",
    [
        'type = "integer"\nmin = 0\nmax = 9',
        'type = "identifier"\nrelease = "omit"',
        'type = "constant"\nvalue = 1',
    ],
)
def test_what_a_private_draft_found_is_read_off_the_data_without_its_cost(described):
    head = 'format = 1\nrows_max = 20\nrows_max_confirmed = "draft"\n'
    cost = "\n[draft]\nepsilon = 0.5\ndelta = 1e-9\n"
    columns = (
        f'\n[[attribute]]\nname = "x"\n{described}\nconfirmed = "draft"\n'
        '\n[[attribute]]\nname = "y"\ntype = "boolean"\nconfirmed = true\n'
    )
    stated, lost = Schema.parse(head + cost + columns), Schema.parse(head + columns)
    assert (stated.drafted, stated.drafted_privately) == ((), ("rows_max", "x"))
    assert (lost.drafted, lost.drafted_privately) == (("rows_max", "x"), ("rows_max", "x"))
    for schema in (stated, lost):
        assert Schema.parse(schema.text()) == schema
    replaced = Schema.parse((head + columns).replace('confirmed = "draft"', "confirmed = true"))
    assert replaced.drafted == ()


def test_rows_max_has_a_default():
    assert Schema.parse(schema_with("")).rows_max == 10_000_000


def test_a_byte_order_mark_is_ignored(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert Schema.read(path) == Schema.parse(TEXT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must be: format = 1"),
        ("format = 2", "first line must be: format = 1"),
        ("format = 1", "describes no column"),
        ("format = 1\nname = \n", r"invalid TOML: .*line 2"),
        ("format = 1\nrow_max = 3", 'unknown key "row_max"; did you mean "rows_max"'),
        ("format = 1\nzzz = 3", 'unknown key "zzz"; known keys: format, header, rows_max, '),
        ("unit = 'id'\n" + schema_with(""), 'unit = "id": unit must name a column of the schema'),
        ("unit = 3\n" + schema_with(""), "unit = 3: unit must name a column of the schema"),
        ("unit = 'x'\n" + schema_with("missing = ['']"), "could not be assigned to a person"),
        ("max_rows_per_unit = 1\n" + schema_with(""), "max_rows_per_unit needs unit"),
        (
            "unit = 'x'\nmax_rows_per_unit = 0\n" + schema_with(""),
            "max_rows_per_unit must be a whole",
        ),
        ("draft = 3\n" + schema_with(""), r"\[draft\] must have epsilon and delta"),
        (schema_with("") + "[draft]\nepsilon = 1", r"\[draft\] must have epsilon and delta"),
        (
            schema_with("") + "[draft]\nepsilon = 0\ndelta = 0",
            "draft needs a finite epsilon above 0",
        ),
        (
            schema_with("") + "[draft]\nepsilon = inf\ndelta = 0",
            "draft needs a finite epsilon above 0",
        ),
        (
            schema_with("") + "[draft]\nepsilon = 1\ndelta = true",
            "draft needs a finite epsilon above 0",
        ),
        (schema_with("") + "[constraint]\nforbid = {}", r"begin each with \[\[constraint\]\]"),
        (schema_with("") + "[[constraint]]\nforbid = { y = ['a'] }", 'no learnt attribute "y"'),
        (
            schema_with("") + "[[constraint]]\nforbid = { x = ['z'] }",
            '"z" is not one of its values',
        ),
        ("format = 1\n[attribute]\nname = 'x'", r"begin each with \[\[attribute\]\]"),
        ("format = 1\n[[attribute]]\ntype = 'integer'", "attribute number 1 has no name"),
        (schema_with("") + "[[attribute]]\nname = ''", "attribute number 2 has no name"),
        (
            schema_with("", of=""),
            'attribute "x": set type to one of: "categorical", "ordered", "integer"',
        ),
        (schema_with("", of='type = "number"'), "set type to one of"),
        (schema_with("", of="type = []"), "set type to one of"),
        (schema_with("", of=REAL), "needs either decimals or a step"),
        (schema_with("decimals = 2\nstep = 0.1", of=REAL), "needs either decimals or a step"),
        (schema_with("decimals = 10", of=REAL), "decimals must be a whole number from 0 to 9"),
        (schema_with("decimals = true", of=REAL), "decimals must be a whole number from 0 to 9"),
        (schema_with("step = 0", of=REAL), "step must be a number above 0"),
        (schema_with("step = nan", of=REAL), "step must be a number above 0"),
        (schema_with("step = 1e-10", of=REAL), "of at most 9 decimals"),
        (schema_with("step = 0.3", of=REAL), "multiples of 0.3; correct max"),
        (
            schema_with("decimals = 9\nmodel = 'cubic'", of=REAL),
            'model must be "histogram", "normal"',
        ),
        (
            schema_with("decimals = 9", of='type = "real"\nmin = 0\nmax = 1e9'),
            "use fewer decimals",
        ),
        (
            schema_with("decimals = 9", of='type = "real"\nmin = -1e16\nmax = 1'),
            "min is too large for the grid",
        ),
        (schema_with("decimals = 1\nbins = 3", of=REAL), "bins must be { width"),
        (schema_with("decimals = 1\nbins = { width = 0.15 }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbins = { width = nan }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbins = { count = 5 }", of=REAL), "bins must be { width"),
        (schema_with("decimals = 1\nbins = { edges = 3 }", of=REAL), "edges must be a list"),
        (schema_with("decimals = 1\nbins = { edges = [0.5, 0.2] }", of=REAL), "edges must ascend"),
        (schema_with("decimals = 1\nbins = { edges = [0.0] }", of=REAL), "lie above min"),
        (schema_with("decimals = 1\nbins = { edges = [0.55] }", of=REAL), "be possible values"),
        (schema_with("decimals = 1\nbuckets = { count = 5 }", of=REAL), "one key: { width"),
        (schema_with("decimals = 1\nbuckets = { edges = [0.5] }", of=REAL), "one key: { width"),
        (schema_with("decimals = 1\nbuckets = { width = 0.25 }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = { width = nan }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = { width = inf }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = { width = 'a' }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbins = { width = true }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = [[0.1]]", of=REAL), "only for integers without bins"),
        (schema_with("", of='type = "date"'), "min and max must be dates"),
        (schema_with("", of='type = "date"\nmin = 1\nmax = 2'), "min and max must be dates"),
        (schema_with("format = '%Y-%m'", of=DATE), "omits part of a date"),
        (schema_with("format = '%Q'", of=DATE), "not a valid strftime format"),
        (schema_with("format = ''", of=DATE), "format must be a text"),
        (schema_with("step_seconds = 0", of=TIME), "step_seconds must be a whole number"),
        (schema_with("step_seconds = 7", of=TIME), "multiples of step_seconds counted from 1970"),
        (schema_with("format = '%d/%m/%Y'", of=TIME), "omits part of a datetime"),
        (schema_with("", of='type = "boolean"\nvalues = ["a"]'), "two texts, for false and true"),
        (schema_with("", of='type = "boolean"\nvalues = ["a", "A"]'), "two texts, for false"),
        (schema_with("missing = ['No']", of='type = "boolean"\nvalues = ["no", "y"]'), "both as a"),
        (schema_with("", of='type = "text"\nvalues = ["a"]'), 'set other = "other"'),
        (schema_with("", of='type = "text"\nvalues = [1]\nother = "o"'), "all text"),
        (schema_with("", of='type = "identifier"\nrelease = "all"'), '"fresh" or "omit"'),
        (schema_with("", of='type = "identifier"\nformat = "{}{}"'), "a text with one {}"),
        (schema_with("", of='type = "identifier"\nformat = 3'), '"number", "uuid" or a text'),
        (schema_with("", of='type = "identifier"\noutside = "clip"'), '"error" or "drop"'),
        (schema_with("", of='type = "constant"'), "a constant needs a value"),
        (schema_with("", of='type = "constant"\nvalue = [1]'), "a text, a number, true or false"),
        (schema_with("", of='type = "constant"\nvalue = nan'), "a finite number"),
        (schema_with("missing = ['']", of='type = "constant"\nvalue = 3'), "is never missing"),
        (schema_with("", of='type = "computed"'), "a formula must be a text"),
        (
            schema_with("", of='type = "computed"\nformula = "x + 1"'),
            "describes no column to learn",
        ),
        (schema_with("decimals = 2"), 'unknown key "decimals"'),
        (schema_with("value = ['c']"), '"x": unknown key "value"; did you mean "values"'),
        (schema_with("min = 3"), 'unknown key "min"'),
        (schema_with("", of='type = "categorical"'), "it has no values"),
        (schema_with("", of='type = "categorical"\nvalues = "ab"'), r"write it in \[brackets\]"),
        (schema_with("", of='type = "categorical"\nvalues = [["a"]]'), "remove the inner brackets"),
        (schema_with("", of='type = "categorical"\nvalues = ["a", "a"]'), "more than once"),
        (schema_with("", of='type = "categorical"\nvalues = [1.5]'), "all whole numbers"),
        (schema_with("", of='type = "integer"\nmin = 3'), "needs min and max"),
        (schema_with("", of='type = "integer"\nmin = 3\nmax = "9"'), "needs min and max"),
        (schema_with("", of='type = "integer"\nmin = 3\nmax = 2'), "min is above max"),
        (
            schema_with("bins = { width = 1 }", of='type = "integer"\nmin = 0\nmax = 99999999'),
            "more than 65,535 values .*; set bins",
        ),
        (schema_with("", of=f'type = "integer"\nmin = 0\nmax = {10**30}'), "below 2^62"),
        (schema_with("buckets = 3"), "or a list of lists of values"),
        (schema_with("buckets = ['a']"), "or a list of lists of values"),
        (schema_with("buckets = [[['a']]]"), "remove the inner brackets"),
        (schema_with("buckets = { wide = 3 }"), "must have one key"),
        (schema_with("buckets = { width = 3 }"), "only for integers; list groups"),
        (schema_with("buckets = [['a'], ['a', 'b']]"), '"a" is in two buckets'),
        (schema_with("buckets = [['a']]"), 'no bucket contains "b"'),
        (schema_with("missing = '?'"), r"missing must be a list"),
        (schema_with("missing = [-8]"), "quote numbers"),
        (schema_with("outside = 'ignore'"), 'outside must be "error", "drop" or'),
        (schema_with("outside = 'clip'"), "only for integers"),
        (schema_with("confirmed = 'yes'"), "true or false"),
        (schema_with("") + schema_with("")[11:], 'described more than once: "x"'),
        ("rows_max = 0\n" + schema_with(""), "at least 1"),
        ("rows_max = 'many'\n" + schema_with(""), "rows_max must be a whole number"),
        ("rows_max_confirmed = 1\n" + schema_with(""), "rows_max_confirmed must be true or false"),
    ],
)
def test_an_invalid_schema_is_rejected(text, message):
    with pytest.raises(SchemaError, match=message.replace("^", r"\^")):
        Schema.parse(text)


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 900 + "]" * 900, "9" * 5_000])
def test_a_bomb_of_brackets_or_digits_is_refused(value):
    with pytest.raises(SchemaError, match="nested too deeply, or a number has too many digits"):
        Schema.parse(f"format = 1\nrows_max = {value}\n")


def test_an_error_names_the_file(tmp_path):
    with pytest.raises(SchemaError, match=r"none.toml: no such file; check the path"):
        Schema.read(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match="is a folder, not a regular file"):
        Schema.read(tmp_path)
    (tmp_path / "latin.toml").write_bytes('format = 1 # é"'.encode("latin-1"))
    with pytest.raises(SchemaError, match=r"latin.toml: byte 13 is not UTF-8"):
        Schema.read(tmp_path / "latin.toml")
    (tmp_path / "bad.toml").write_text("format = 7")
    with pytest.raises(SchemaError, match=r"bad.toml: the first line"):
        Schema.read(tmp_path / "bad.toml")


# Units


def schema_with_unit(*columns, top='unit = "id"\nmax_rows_per_unit = 3'):
    tables = ['name = "n"\ntype = "integer"\nmin = 0\nmax = 9', *columns]
    return Schema.parse(f"format = 1\n{top}\n" + "\n".join(f"[[attribute]]\n{t}" for t in tables))


IDENTIFIER = 'name = "id"\ntype = "identifier"'


@pytest.mark.parametrize(
    "column",
    [
        'type = "integer"\nmin = 0\nmax = 99999',
        'type = "integer"\nmin = 0\nmax = 99\noutside = "clip"',
        'type = "integer"\nmin = 0\nmax = 99\nbins = { width = 10 }',
        'type = "text"\nvalues = ["a"]\nother = "b"',
    ],
)
def test_a_unit_column_has_a_code_for_each_person(column):
    """Rows per person are bounded by code. If two people shared one, removing one of them would
    admit rows of the other."""
    with pytest.raises(SchemaError, match="two people could have the same code"):
        schema_with_unit(f'name = "house"\n{column}', top='unit = "house"')


def test_the_cost_of_a_draft_is_for_the_unit_of_the_schema():
    draft = "\n[draft]\nepsilon = 0.5\ndelta = 1e-9\n"
    top = 'unit = "id"' + draft
    with pytest.raises(SchemaError, match=r"the cost in \[draft\] is per row"):
        schema_with_unit(IDENTIFIER, top=top)
    with pytest.raises(SchemaError, match=r'the cost in \[draft\] is per "household"'):
        schema_with_unit(IDENTIFIER, top=top + 'unit = "household"\n')
    assert schema_with_unit(IDENTIFIER, top=top + 'unit = "id"\n').draft.unit == "id"


def test_a_draft_for_a_unit_does_not_fit_a_schema_without_one():
    """One row more may displace another of its unit, so the cost per row may be twice as much."""
    draft = '[draft]\nepsilon = 0.5\ndelta = 1e-9\nunit = "id"\n'
    with pytest.raises(SchemaError, match=r'has no unit, but the cost in \[draft\] is per "id"'):
        Schema.parse(schema_with("") + draft)


@pytest.mark.parametrize("unit", ["3", "true", '""', '["id"]'])
def test_the_unit_of_a_draft_is_a_name(unit):
    with pytest.raises(SchemaError, match=r"unit of \[draft\] must be the name of a column"):
        Schema.parse(schema_with("") + f"[draft]\nepsilon = 0.5\ndelta = 0.0\nunit = {unit}\n")


def test_draft_constraints_and_unit_survive_a_round_trip():
    text = """
format = 1
unit = "id"

[draft]
epsilon = 0.5
delta = 1e-9
unit = "id"

[[attribute]]
name = "id"
type = "identifier"
confirmed = false

[[attribute]]
name = "a b"
type = "integer"
min = 0
max = 9

[[attribute]]
name = "day"
type = "date"
min = 2020-01-01
max = 2020-12-31

[[attribute]]
name = "t"
type = "categorical"
values = ["x", "y\\"z"]

[[constraint]]
forbid = { "a b" = { below = 3 }, t = ["y\\"z"], day = { at_least = 2020-02-02 } }

[[constraint]]
allow = { columns = ["a b", "t"], rows = [[4, "x"], [5, "y\\"z"]] }
"""
    schema = Schema.parse(text)
    assert schema.draft == DraftCost(epsilon=0.5, delta=1e-9, unit="id")
    assert [constraint.kind for constraint in schema.constraints] == ["forbid", "allow"]
    assert schema.drafted == ("id",)
    assert Schema.parse(schema.text()) == schema


@pytest.mark.parametrize("source", [None, 3, b"schema.toml"])
def test_a_schema_is_read_from_a_path_only(source):
    with pytest.raises(ConfigError, match=r"give a deniable\.Schema, or the path"):
        Schema.read(source)


def test_a_schema_without_constraints_has_no_solver():
    schema = Schema((Attribute(name="a", kind="integer", values=range(3)),))
    assert schema.constraint_solver is None
    forbidden = parse_constraint({"forbid": {"a": [1]}}, ["a"])
    assert replace(schema, constraints=(forbidden,)).constraint_solver is not None
