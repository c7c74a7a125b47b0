import datetime as dt
import json

import pytest

from deniable.errors import SchemaError
from deniable.interchange.sdv import (
    UUID_REGEX,
    identifier_format,
    merge_sdv,
    read_sdv,
)
from deniable.schema.schema import Schema

EVERY_TYPE = """
format = 1
rows_max = 5_000
unit = "person"
max_rows_per_unit = 3

[[attribute]]
name = "row"
type = "identifier"
format = "P{:08d}"

[[attribute]]
name = "person"
type = "identifier"
format = "uuid"

[[attribute]]
name = "ticket"
type = "identifier"
release = "omit"

[[attribute]]
name = "years"
type = "integer"
min = 17
max = 96
buckets = { width = 10 }
missing = ["", "-8"]
outside = "clip"
confirmed = false

[[attribute]]
name = "wage"
type = "real"
min = 0.0
max = 99.5
step = 0.5

[[attribute]]
name = "trade"
type = "categorical"
values = ["tinsmith", "lacemaker", "wheelwright"]
buckets = [["tinsmith", "wheelwright"], ["lacemaker"]]
missing = ["?"]

[[attribute]]
name = "grade"
type = "ordered"
values = ["poor", "fair", "good"]

[[attribute]]
name = "town"
type = "text"
values = ["Ulm", "Bath"]
other = "elsewhere"

[[attribute]]
name = "alive"
type = "boolean"

[[attribute]]
name = "paid"
type = "boolean"
values = ["no", "yes"]

[[attribute]]
name = "begin"
type = "date"
min = 2020-01-01
max = 2024-12-31
format = "%d.%m.%Y"

[[attribute]]
name = "moment"
type = "datetime"
min = 2020-01-01T00:00:00
max = 2024-12-31T00:00:00
step_seconds = 3600

[[attribute]]
name = "wave"
type = "constant"
value = 7

[[attribute]]
name = "double"
type = "computed"
formula = "wage * 2"
decimals = 1

[[constraint]]
forbid = { years = { below = 20 }, grade = ["good"] }
"""


@pytest.fixture(scope="module")
def schema():
    return Schema.parse(EVERY_TYPE)


def v1(columns, **more):
    return {"METADATA_SPEC_VERSION": "V1", "tables": {"people": {"columns": columns, **more}}}


FREE = '[[attribute]]\nname = "free"\ntype = "categorical"\nvalues = ["a", "b"]\n'


def drafted_as(attribute):
    """Text of a schema with a column x and another column."""
    return f'format = 1\n[[attribute]]\nname = "x"\n{attribute}\n{FREE}'


def merged(said, attribute, **more):
    """That schema, after SDV said something of x."""
    columns = {"x": said, "free": {"sdtype": "categorical"}}
    return merge_sdv(read_sdv(v1(columns, **more)), drafted_as(attribute))


def test_a_schema_merged_with_metadata_that_agree_is_itself(schema):
    metadata = v1(
        {
            "row": {"sdtype": "id", "regex_format": "P[0-9]{8}"},
            "person": {"sdtype": "id", "regex_format": UUID_REGEX},
            "years": {"sdtype": "numerical", "computer_representation": "Int64"},
            "wage": {"sdtype": "numerical", "computer_representation": "Float"},
            "trade": {"sdtype": "categorical"},
            "grade": {"sdtype": "categorical", "order": ["poor", "fair", "good"]},
            "town": {"sdtype": "categorical"},
            "alive": {"sdtype": "boolean"},
            "paid": {"sdtype": "categorical"},
            "begin": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
            "moment": {"sdtype": "datetime", "datetime_format": "%Y-%m-%dT%H:%M:%S"},
            "wave": {"sdtype": "numerical", "computer_representation": "Int64"},
            "double": {"sdtype": "numerical", "computer_representation": "Float"},
        },
        primary_key="row",
    )
    assert merge_sdv(read_sdv(metadata), schema) == schema
    assert merge_sdv(read_sdv(metadata), EVERY_TYPE) == schema


def test_metadata_are_read_from_a_file_of_any_v1_shape(tmp_path):
    columns = {"x": {"sdtype": "id"}, "y": {"sdtype": "numerical"}}
    table = {"columns": columns, "primary_key": "x", "alternate_keys": ["y"]}
    shapes = [
        {"METADATA_SPEC_VERSION": "V1", "tables": {"t": table}, "relationships": []},
        {"METADATA_SPEC_VERSION": "MULTI_TABLE_V1", "tables": {"t": table}},
        {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", **table},
    ]
    for number, shape in enumerate(shapes):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(shape))
        found = read_sdv(path)
        assert (found.columns, found.keys) == (columns, ("x", "y"))
        assert read_sdv(shape) == found


def test_one_of_several_tables_is_chosen_by_name():
    tables = {
        name: {"columns": {name: {"sdtype": "categorical"}}, "column_relationships": []}
        for name in ("hotels", "guests")
    }
    metadata = {"METADATA_SPEC_VERSION": "V1", "tables": tables}
    assert list(read_sdv(metadata, table="guests").columns) == ["guests"]
    with pytest.raises(SchemaError, match='the tables "hotels", "guests"; choose one'):
        read_sdv(metadata)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ("[]", "a JSON object"),
        ("{}", "not V1"),
        ('{"METADATA_SPEC_VERSION": "V2", "tables": {}}', "'V2', not V1"),
        ('{"METADATA_SPEC_VERSION": "V1", "tables": []}', "no tables by name"),
        ('{"METADATA_SPEC_VERSION": "V1", "tables": {"t": {}}}', "has no columns"),
        ('{"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1"}', "has no columns"),
        (
            '{"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": {"x": {}}}',
            'column "x": it has no sdtype',
        ),
    ],
)
def test_invalid_metadata_is_refused(tmp_path, text, message):
    path = tmp_path / "metadata.json"
    path.write_text(text)
    with pytest.raises(SchemaError) as refusal:
        read_sdv(path)
    assert message in str(refusal.value)


def test_missing_metadata_is_refused(tmp_path):
    with pytest.raises(SchemaError, match="cannot be read"):
        read_sdv(tmp_path / "nowhere.json")


NUMBERS = 'type = "integer"\nmin = 1\nmax = 4\nbuckets = { width = 2 }\noutside = "clip"'
REALS = 'type = "real"\nmin = 0.5\nmax = 4.5\nstep = 0.5'
CODES = 'type = "categorical"\nvalues = [4, 1, 2]\nmissing = ["-8"]'
TEXTS = 'type = "categorical"\nvalues = ["no", "yes"]\nbuckets = [["no", "yes"]]\nconfirmed = false'
DAYS = 'type = "date"\nmin = 2020-02-01\nmax = 2020-02-29'
HOURS = 'type = "datetime"\nmin = 2020-02-01T06:00:00\nmax = 2020-02-29T12:00:00'


@pytest.mark.parametrize(
    ("said", "drafted", "expected"),
    [
        ({"sdtype": "numerical"}, NUMBERS, NUMBERS),
        ({"sdtype": "numerical"}, REALS, REALS),
        (
            {"sdtype": "numerical"},
            CODES,
            'type = "integer"\nmin = 1\nmax = 4\nmissing = ["-8"]',
        ),
        (
            {"sdtype": "numerical", "computer_representation": "UInt8"},
            REALS,
            'type = "integer"\nmin = 0\nmax = 5',
        ),
        (
            {"sdtype": "numerical", "computer_representation": "Float"},
            NUMBERS,
            'type = "real"\nmin = 1\nmax = 4\ndecimals = 0\noutside = "clip"',
        ),
        (
            {"sdtype": "numerical", "computer_representation": "Int64"},
            'type = "boolean"\nvalues = ["0", "1"]',
            'type = "integer"\nmin = 0\nmax = 1',
        ),
        ({"sdtype": "categorical"}, NUMBERS, 'type = "categorical"\nvalues = [1, 2, 3, 4]'),
        ({"sdtype": "categorical"}, TEXTS, TEXTS),
        (
            {"sdtype": "categorical", "order_by": "numerical_value"},
            CODES,
            'type = "ordered"\nvalues = [1, 2, 4]\nmissing = ["-8"]',
        ),
        (
            {"sdtype": "categorical", "order_by": "alphabetical"},
            NUMBERS,
            'type = "ordered"\nvalues = [1, 2, 3, 4]',
        ),
        (
            {"sdtype": "categorical", "order": ["yes", "no"]},
            TEXTS,
            TEXTS.replace("categorical", "ordered").replace('["no", "yes"]\nb', '["yes", "no"]\nb'),
        ),
        (
            {"sdtype": "categorical", "order": [4, 3, 2, 1]},
            NUMBERS,
            'type = "ordered"\nvalues = [4, 3, 2, 1]',
        ),
        (
            {"sdtype": "categorical", "order": ["Bath", "Ulm", "else"]},
            'type = "text"\nvalues = ["Ulm", "Bath"]\nother = "else"',
            'type = "ordered"\nvalues = ["Bath", "Ulm", "else"]',
        ),
        (
            {"sdtype": "categorical", "order_by": "alphabetical"},
            'type = "ordered"\nvalues = ["b", "a", "d", "c"]\nbuckets = { width = 2 }',
            'type = "ordered"\nvalues = ["a", "b", "c", "d"]',
        ),
        (
            {"sdtype": "boolean"},
            TEXTS,
            'type = "boolean"\nvalues = ["no", "yes"]\nconfirmed = false',
        ),
        (
            {"sdtype": "boolean"},
            'type = "integer"\nmin = 0\nmax = 1',
            'type = "boolean"\nvalues = ["0", "1"]',
        ),
        ({"sdtype": "datetime"}, DAYS, DAYS),
        (
            {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
            DAYS,
            f'{DAYS}\nformat = "%d %b %Y"',
        ),
        (
            {"sdtype": "datetime", "datetime_format": "%Y/%m/%d"},
            HOURS,
            f'{DAYS}\nformat = "%Y/%m/%d"',
        ),
        (
            {"sdtype": "datetime", "datetime_format": "%Y/%m/%d %H:%M:%S"},
            DAYS,
            'type = "datetime"\nmin = 2020-02-01T00:00:00\nmax = 2020-02-29T23:59:59\n'
            'format = "%Y/%m/%d %H:%M:%S"',
        ),
        ({"sdtype": "id"}, NUMBERS, 'type = "identifier"'),
        (
            {"sdtype": "id", "regex_format": r"U_\d{3}"},
            CODES,
            'type = "identifier"\nformat = "U_{:03d}"\nmissing = ["-8"]',
        ),
        ({"sdtype": "email"}, TEXTS, 'type = "identifier"\nconfirmed = false'),
        ({"sdtype": "unknown", "pii": True}, NUMBERS, 'type = "identifier"'),
        ({"sdtype": "city", "pii": False}, TEXTS, TEXTS),
        (
            {"sdtype": "numerical"},
            'type = "constant"\nvalue = "always"',
            'type = "constant"\nvalue = "always"',
        ),
    ],
)
def test_types_come_from_sdv_and_domains_from_the_draft(said, drafted, expected):
    assert merged(said, drafted) == Schema.parse(drafted_as(expected))


def test_a_key_is_an_identifier_whatever_it_holds():
    found = merged({"sdtype": "numerical"}, NUMBERS, primary_key="x")
    assert found.names == ("free",)


@pytest.mark.parametrize(
    ("said", "drafted", "message"),
    [
        ("numerical", TEXTS, "which does not give its min and max"),
        (
            "numerical",
            'type = "identifier"',
            "is numerical in the SDV metadata and identifier in the schema",
        ),
        ("categorical", 'type = "integer"\nmin = 0\nmax = 1_000', "does not give its values"),
        ("categorical", REALS, "does not give its values"),
        ("boolean", CODES, "the texts for false and true"),
        ("boolean", DAYS, "does not give its values"),
        ("datetime", TEXTS, "does not give its min and max"),
    ],
)
def test_a_missing_domain_is_an_error(said, drafted, message):
    with pytest.raises(SchemaError) as refusal:
        merged({"sdtype": said}, drafted)
    assert message in str(refusal.value)
    assert 'column "x"' in str(refusal.value)


def test_other_columns_are_refused(schema):
    with pytest.raises(
        SchemaError, match='column "y" is in the SDV metadata but not in the schema'
    ):
        merge_sdv(
            read_sdv(v1({"free": {"sdtype": "id"}, "y": {"sdtype": "id"}})), f"format = 1\n{FREE}"
        )
    with pytest.raises(
        SchemaError, match='column "row" is in the schema but not in the SDV metadata'
    ):
        merge_sdv(read_sdv(v1({"person": {"sdtype": "id"}})), schema)


@pytest.mark.parametrize(
    ("regex", "shape"),
    [
        (UUID_REGEX, "uuid"),
        ("[0-9]+", "{}"),
        ("P[0-9]{8}", "P{:08d}"),
        (r"a\.b\-[0-9]{3}/x", "a.b-{:03d}/x"),
        (r"\{[0-9]+\}", "{{{}}}"),
    ],
)
def test_a_regular_expression_of_one_number_is_a_format(regex, shape):
    assert identifier_format(regex) == shape


@pytest.mark.parametrize(
    "regex", ["", "[A-Z]{3}", "(a|b)[0-9]{2}", "[0-9]{2}-[0-9]{2}", "a+[0-9]{2}"]
)
def test_a_general_regular_expression_has_no_format(regex):
    assert identifier_format(regex) is None


def test_dates_and_odd_texts_survive_the_merge():
    draft = (
        'format = 1\n[[attribute]]\nname = "x \\"y\\""\ntype = "categorical"\n'
        f'values = ["\\u007F", "é\\\\n", "#"]\n[[attribute]]\nname = "d"\n{DAYS}\n'
        "[[constraint]]\nforbid = { d = { above = 2020-02-10 } }\n"
    )
    columns = {'x "y"': {"sdtype": "categorical"}, "d": {"sdtype": "datetime"}}
    found = merge_sdv(read_sdv(v1(columns)), draft)
    assert found == Schema.parse(draft)
    assert found.constraints[0].conditions[0].bounds == (("above", dt.date(2020, 2, 10)),)
