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
        ("format = 1\nzzz = 3", 'unknown key "zzz"; it may have: format, rows_max, attribute'),
        ("format = 1\nunit = 'id'", '"unit" is not supported yet'),
        ("format = 1\nmax_rows_per_unit = 1", '"max_rows_per_unit" is not supported yet'),
        ("format = 1\n[[constraint]]\nforbid = {}", '"constraint" is not supported yet'),
        ("format = 1\n[attribute]\nname = 'x'", r"begin each with \[\[attribute\]\]"),
        ("format = 1\n[[attribute]]\ntype = 'integer'", "attribute number 1 has no name"),
        (schema_with("") + "[[attribute]]\nname = ''", "attribute number 2 has no name"),
        (schema_with("", of=""), 'attribute "x": set type to one of: "categorical", "integer"'),
        (schema_with("", of='type = "number"'), "set type to one of"),
        (schema_with("", of="type = []"), "set type to one of"),
        (schema_with("", of='type = "real"'), 'type = "real" is not supported yet'),
        (schema_with("", of='type = "date"'), 'type = "date" is not supported yet'),
        (schema_with("decimals = 2"), '"decimals" is not supported yet'),
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
        (schema_with("", of='type = "integer"\nmin = 0\nmax = 99999999'), "more than 65,535"),
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
