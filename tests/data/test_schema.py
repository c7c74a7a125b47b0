import pytest

from deniable.data.attributes import Attribute
from deniable.data.schema import Schema
from deniable.errors import OutputError, SchemaError

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


def test_a_schema_says_names_sizes_and_buckets():
    schema = Schema.parse(TEXT)
    assert schema.names == ("age", "education", "sex")
    assert schema.sizes == (80, 6, 2)
    assert schema.rows_max == 2_000_000
    age, education, sex = schema.attributes
    assert (age.buckets, age.outside, age.confirmed) == (8, "clip", False)
    assert education.groups == (0, 0, 1, 2, 2, 3)
    assert (sex.values, sex.is_bucketed, sex.confirmed) == ((1, 2), False, True)
    assert schema.codec.attributes == schema.attributes


def test_a_written_schema_reads_back_equal(tmp_path):
    schema = Schema.parse(TEXT)
    schema.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == schema
    assert Schema.read(str(tmp_path / "schema.toml")) == schema


def test_a_schema_that_cannot_be_written_says_so(tmp_path):
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


def test_a_number_of_rows_that_was_read_off_the_data_is_a_draft_until_confirmed():
    text = "rows_max = 20\nrows_max_confirmed = false\n"
    schema = Schema.parse(schema_with("").replace("format = 1\n", f"format = 1\n{text}"))
    assert schema.drafted == ("rows_max",)
    assert Schema.parse(schema.text()) == schema
    assert Schema.parse(schema.text().replace("= false", "= true")).drafted == ()


def test_rows_max_has_a_default():
    assert Schema.parse(schema_with("")).rows_max == 10_000_000


def test_a_byte_order_mark_is_no_part_of_the_schema(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert Schema.read(path) == Schema.parse(TEXT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line must be: format = 1"),
        ("format = 2", "first line must be: format = 1"),
        ("format = 1", "describes no column"),
        ("format = 1\nname = \n", r"not TOML: .*line 2"),
        ("format = 1\nrow_max = 3", 'unknown key "row_max"; did you mean "rows_max"'),
        ("format = 1\nzzz = 3", 'unknown key "zzz"; it may have: format, rows_max, rows_max_'),
        ("unit = 'id'\n" + schema_with(""), 'unit = "id": it names a column of the schema'),
        ("unit = 3\n" + schema_with(""), "unit = 3: it names a column of the schema"),
        ("unit = 'x'\n" + schema_with("missing = ['']"), "nobody knows whose record it is"),
        ("max_rows_per_unit = 1\n" + schema_with(""), "max_rows_per_unit needs unit"),
        ("unit = 'x'\nmax_rows_per_unit = 0\n" + schema_with(""), "max_rows_per_unit is a whole"),
        ("draft = 3\n" + schema_with(""), r"\[draft\] has epsilon and delta"),
        (schema_with("") + "[draft]\nepsilon = 1", r"\[draft\] has epsilon and delta"),
        (schema_with("") + "[draft]\nepsilon = 0\ndelta = 0", "epsilon, above 0"),
        (schema_with("") + "[draft]\nepsilon = inf\ndelta = 0", "epsilon, above 0"),
        (schema_with("") + "[draft]\nepsilon = 1\ndelta = true", "epsilon, above 0"),
        (schema_with("") + "[constraint]\nforbid = {}", r"begin each with \[\[constraint\]\]"),
        (schema_with("") + "[[constraint]]\nforbid = { y = ['a'] }", 'no learnt attribute "y"'),
        (schema_with("") + "[[constraint]]\nforbid = { x = ['z'] }", 'it never holds "z"'),
        ("format = 1\n[attribute]\nname = 'x'", r"begin each with \[\[attribute\]\]"),
        ("format = 1\n[[attribute]]\ntype = 'integer'", "attribute number 1 has no name"),
        (schema_with("") + "[[attribute]]\nname = ''", "attribute number 2 has no name"),
        (
            schema_with("", of=""),
            'attribute "x": set type to one of: "categorical", "ordered", "integer"',
        ),
        (schema_with("", of='type = "number"'), "set type to one of"),
        (schema_with("", of="type = []"), "set type to one of"),
        (schema_with("", of=REAL), "a real needs decimals, or a step; one of them"),
        (schema_with("decimals = 2\nstep = 0.1", of=REAL), "one of them"),
        (schema_with("decimals = 10", of=REAL), "decimals is a whole number from 0 to 9"),
        (schema_with("decimals = true", of=REAL), "decimals is a whole number from 0 to 9"),
        (schema_with("step = 0", of=REAL), "step is a number above 0"),
        (schema_with("step = nan", of=REAL), "step is a number above 0"),
        (schema_with("step = 1e-10", of=REAL), "of at most 9 decimals"),
        (schema_with("step = 0.3", of=REAL), "multiples of 0.3; correct its max"),
        (schema_with("decimals = 9\nmodel = 'cubic'", of=REAL), 'model is "histogram", "normal"'),
        (
            schema_with("decimals = 9", of='type = "real"\nmin = 0\nmax = 1e9'),
            "use fewer decimals",
        ),
        (
            schema_with("decimals = 9", of='type = "real"\nmin = -1e16\nmax = 1'),
            "its min is too large for its grid",
        ),
        (schema_with("decimals = 1\nbins = 3", of=REAL), "bins is { width"),
        (schema_with("decimals = 1\nbins = { width = 0.15 }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbins = { width = nan }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbins = { count = 12 }", of=REAL), "from 1 to 11"),
        (schema_with("decimals = 1\nbins = { edges = 3 }", of=REAL), "edges is a list"),
        (schema_with("decimals = 1\nbins = { edges = [0.5, 0.2] }", of=REAL), "edges ascend"),
        (schema_with("decimals = 1\nbins = { edges = [0.0] }", of=REAL), "lie above min"),
        (schema_with("decimals = 1\nbins = { edges = [0.55] }", of=REAL), "that the column can"),
        (schema_with("decimals = 1\nbuckets = { count = 0 }", of=REAL), "from 1 to 11"),
        (schema_with("decimals = 1\nbuckets = { width = 0.25 }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = { width = nan }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = { width = inf }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = { width = 'a' }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbins = { width = true }", of=REAL), "a multiple of 0.1"),
        (schema_with("decimals = 1\nbuckets = [[0.1]]", of=REAL), "for integers without bins"),
        (
            schema_with("decimals = 1\nbins = { count = 2 }\nbuckets = { edges = [0.2] }", of=REAL),
            "the edges of buckets are edges of bins",
        ),
        (schema_with("", of='type = "date"'), "its min and max are dates"),
        (schema_with("", of='type = "date"\nmin = 1\nmax = 2'), "its min and max are dates"),
        (schema_with("format = '%Y-%m'", of=DATE), "loses part of a date"),
        (schema_with("format = '%Q'", of=DATE), "none that strftime knows"),
        (schema_with("format = ''", of=DATE), "format is a text"),
        (schema_with("step_seconds = 0", of=TIME), "step_seconds is a whole number"),
        (schema_with("step_seconds = 7", of=TIME), "multiples of step_seconds, counted from 1970"),
        (schema_with("format = '%d/%m/%Y'", of=TIME), "loses part of a datetime"),
        (schema_with("", of='type = "boolean"\nvalues = ["a"]'), "two texts, for false and true"),
        (schema_with("", of='type = "boolean"\nvalues = ["a", "A"]'), "two texts, for false"),
        (schema_with("missing = ['No']", of='type = "boolean"\nvalues = ["no", "y"]'), "both a"),
        (schema_with("", of='type = "text"\nvalues = ["a"]'), 'set other = "other"'),
        (schema_with("", of='type = "text"\nvalues = [1]\nother = "o"'), "all text"),
        (schema_with("", of='type = "identifier"\nrelease = "all"'), '"fresh" or "omit"'),
        (schema_with("", of='type = "identifier"\nformat = "{}{}"'), "a text with one {}"),
        (schema_with("", of='type = "identifier"\nformat = "{x}"'), "a text with one {}"),
        (schema_with("", of='type = "identifier"\nformat = "{:x}"'), "a text with one {}"),
        (schema_with("", of='type = "identifier"\nformat = "{"'), "a text with one {}"),
        (schema_with("", of='type = "identifier"\nformat = 3'), '"number", "uuid" or a text'),
        (schema_with("", of='type = "identifier"\noutside = "clip"'), '"error" or "drop"'),
        (schema_with("", of='type = "constant"'), "a constant needs its value"),
        (schema_with("", of='type = "constant"\nvalue = [1]'), "a text, a number, true or false"),
        (schema_with("", of='type = "constant"\nvalue = nan'), "a finite number"),
        (schema_with("missing = ['']", of='type = "constant"\nvalue = 3'), "is never missing"),
        (schema_with("", of='type = "computed"'), "a formula is a text"),
        (schema_with("", of='type = "computed"\nformula = "x + 1"'), "describes no column that"),
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
        (schema_with("buckets = { wide = 3 }"), "has one key"),
        (schema_with("buckets = { width = 3 }"), "for integers; list groups"),
        (schema_with("buckets = [['a'], ['a', 'b']]"), '"a" is in two buckets'),
        (schema_with("buckets = [['a']]"), 'no bucket holds "b"'),
        (schema_with("missing = '?'"), r"missing is not a list"),
        (schema_with("missing = [-8]"), "quote its numbers"),
        (schema_with("outside = 'ignore'"), 'outside is "error", "drop" or'),
        (schema_with("outside = 'clip'"), "for integers"),
        (schema_with("confirmed = 'yes'"), "true or false"),
        (schema_with("") + schema_with("")[11:], 'described more than once: "x"'),
        ("rows_max = 0\n" + schema_with(""), "at least 1"),
        ("rows_max = 'many'\n" + schema_with(""), "rows_max is a whole number"),
        ("rows_max_confirmed = 1\n" + schema_with(""), "rows_max_confirmed is true or false"),
    ],
)
def test_a_text_that_is_no_schema_is_refused_with_a_reason(text, message):
    with pytest.raises(SchemaError, match=message.replace("^", r"\^")):
        Schema.parse(text)


def test_a_schema_that_cannot_be_read_says_which(tmp_path):
    with pytest.raises(SchemaError, match=r"none.toml: there is no such file; .*README"):
        Schema.read(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.read(tmp_path)
    (tmp_path / "latin.toml").write_bytes('format = 1 # é"'.encode("latin-1"))
    with pytest.raises(SchemaError, match=r"latin.toml: byte 13 is not UTF-8"):
        Schema.read(tmp_path / "latin.toml")
    (tmp_path / "bad.toml").write_text("format = 7")
    with pytest.raises(SchemaError, match=r"bad.toml: its first line"):
        Schema.read(tmp_path / "bad.toml")
