"""Fuzz schemas and tables: each is accepted, or refused by an error that shows no cell."""

import tempfile
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.data.table_io import read_table, write_table
from deniable.errors import DeniableError
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow

# Long enough not to be in a message by chance.
HIDDEN = "Xyzzyplugh"
NUMBER = "7654321987"
FUZZ = settings(max_examples=300, deadline=None, derandomize=True, database=None)

KINDS = (
    *("categorical", "ordered", "integer", "real", "boolean", "date", "datetime", "text"),
    *("identifier", "constant", "computed"),
)


def sorted_(values):
    return sorted(values, key=repr) if len({type(value) for value in values}) > 1 else values


ODD = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-20, 20),
    st.floats(),
    st.booleans(),
    st.sampled_from(
        ["", "a", "b", "%Y", "%d.%m.%Y", "{}", "n + 1", "fresh", "uuid", "drop", "clip"]
    ),
    st.dates(),
    st.datetimes(),
)
ANYTHING = st.recursive(
    ODD,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["width", "edges", "epsilon", "below"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)
SPECS = st.one_of(
    st.builds(lambda n: {"width": n}, ODD | st.integers(1, 9)),
    st.builds(lambda n: {"edges": n}, st.lists(ODD | st.integers(-4, 50), max_size=4).map(sorted_)),
    st.lists(st.lists(st.sampled_from([1, 5, 3, "a", "b"]), max_size=3), max_size=3),
)
KEYS = (
    *("values", "min", "max", "decimals", "step", "format", "bins", "buckets", "missing"),
    *("outside", "confirmed", "model", "step_seconds", "other", "release", "value", "formula"),
)


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | datetime):
        return value.isoformat()
    return f"'{value}'" if isinstance(value, str) else repr(value)


@FUZZ
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=6)
        ),
        min_size=1,
        max_size=3,
    ),
    st.dictionaries(st.sampled_from(["rows_max", "unit", "max_rows_per_unit", "draft"]), ANYTHING),
)
def test_a_schema_of_anything_is_read_or_refused(tables, top):
    lines = ["format = 1", *(f"{key} = {toml(value)}" for key, value in top.items())]
    for number, (kind, keys) in enumerate(tables):
        lines += ["[[attribute]]", f"name = 'c{number}'", f"type = '{kind}'"]
        lines += [f"{key} = {toml(value)}" for key, value in keys.items()]
    try:
        schema = Schema.parse("\n".join(lines))
    except DeniableError:
        return
    assert Schema.parse(schema.text()) == schema


DESCRIBED = {
    "categorical": "values = ['a', 'b']\nmissing = ['']",
    "ordered": "values = [1, 5, 3]",
    "integer": "min = -5\nmax = 5000\nmissing = ['-8', 'NA']\nbins = { edges = [0, 1, 700] }",
    "real": "min = -1\nmax = 1\ndecimals = 3\nmissing = ['NA', '-9']",
    "boolean": "values = ['no', 'yes']",
    "date": "min = 1990-01-01\nmax = 2030-01-01\nformat = '%d.%m.%Y'\nmissing = ['']",
    "datetime": "min = 1990-01-01\nmax = 2030-01-01\nstep_seconds = 900",
    "text": "values = ['a']\nother = 'o'",
    "constant": "value = 3",
    "identifier": "",
}
CELLS = st.one_of(
    st.sampled_from(["", "a", "b", "1", "5", "3", "NA", "-8", "no", "YES", "31.12.2001", "0.5"]),
    st.sampled_from(
        ["2001-02-03T04:05:06", "nan", "inf", "1e400", " 5", "5.0", "٣", "\x00", "\ufeff"]
    ),
    st.just(HIDDEN),
    st.just(NUMBER),
    st.text('ab0-,;"\n\r\t \\é€', max_size=4).map(lambda text: text + HIDDEN),
)
SERIES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.none() | st.just(int(NUMBER)), min_size=2),
    st.lists(st.floats() | st.none(), min_size=2),
    st.lists(st.booleans() | st.none(), min_size=2),
    st.lists(st.dates() | st.none(), min_size=2),
    st.lists(st.datetimes() | st.none(), min_size=2),
    st.lists(st.just(HIDDEN) | st.sampled_from(["a", "5", ""]) | st.none(), min_size=2),
    st.lists(st.decimals(-(10**9), 10**9, places=2) | st.none(), min_size=2),
    st.lists(st.binary() | st.none(), min_size=2),
    st.lists(st.times() | st.none(), min_size=2),
    st.lists(st.lists(st.integers(0, 3)), min_size=2),
)


def schema_of(kind, outside):
    drop = f"outside = '{outside}'" if kind != "text" or outside == "drop" else ""
    return Schema.parse(
        "format = 1\n[[attribute]]\nname = 'n'\ntype = 'integer'\nmin = 0\nmax = 9\n"
        f"[[attribute]]\nname = 'c'\ntype = '{kind}'\n{DESCRIBED[kind]}\n{drop}\n"
    )


def read_or_refuse(source, schema):
    try:
        return read_table(source, schema)
    except DeniableError as error:
        refusal = error
    assert HIDDEN not in str(refusal)
    assert NUMBER not in str(refusal)
    assert refusal.__suppress_context__ or refusal.__context__ is None
    return None


@pytest.mark.parametrize("kind", DESCRIBED)
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(changed=st.dictionaries(st.sampled_from(KEYS), ANYTHING | SPECS, min_size=1, max_size=2))
def test_a_schema_with_anything_in_it_is_read_or_refused(kind, changed):
    described = dict(line.split(" = ", 1) for line in DESCRIBED[kind].splitlines())
    described |= {key: toml(value) for key, value in changed.items()}
    lines = [f"{key} = {value}" for key, value in described.items()]
    text = "\n".join(
        [
            "format = 1\n[[attribute]]\nname = 'n'\ntype = 'integer'\nmin = 0\nmax = 9",
            f"[[attribute]]\nname = 'c'\ntype = '{kind}'",
            *lines,
        ]
    )
    try:
        schema = Schema.parse(text)
    except DeniableError:
        return
    assert Schema.parse(schema.text()) == schema


@pytest.mark.parametrize("kind", DESCRIBED)
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(data=st.data(), quote=st.booleans(), outside=st.sampled_from(["error", "drop"]))
def test_any_text_is_read_or_refused_without_a_cell(kind, data, quote, outside):
    cells = data.draw(st.lists(CELLS, min_size=1, max_size=6))
    schema = schema_of(kind, outside)
    doubled = [cell.replace('"', '""') if quote else cell for cell in cells]
    rows = [f'{i},"{cell}"' if quote else f"{i},{cell}" for i, cell in enumerate(doubled)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("\n".join(["n,c", *rows]) + "\n", encoding="utf-8", newline="")
        table = read_or_refuse(path, schema)
        if table is not None:
            records = decode_records(Codec(schema), table.codes, Keyed(1).at("records"))
            write_table(path, [records], schema)
            if len(table.codes):
                assert read_table(path, schema).codes.tolist() == table.codes.tolist()


@pytest.mark.parametrize("kind", DESCRIBED)
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(cells=SERIES, outside=st.sampled_from(["error", "drop"]))
def test_a_column_of_any_type_is_read_or_refused_without_a_cell(kind, cells, outside):
    schema = schema_of(kind, outside)
    frame = pl.DataFrame({"n": [1] * len(cells), "c": pl.Series(cells, strict=False)})
    for convert in (pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow):
        try:
            source = convert(frame)
        except (pl.exceptions.PolarsError, OverflowError, ValueError):
            continue  # pandas has no such dates
        table = read_or_refuse(source, schema)
        if table is not None and len(table.codes):
            records = decode_records(Codec(schema), table.codes, Keyed(1).at("records"))
            again = read_or_refuse(table.kind.restore(records), schema)
            assert again is not None
            assert again.codes.tolist() == table.codes.tolist()
