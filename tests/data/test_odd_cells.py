"""One odd cell changes the type of a column; it must not change what the other cells mean.

Every kind of attribute, with every treatment of invalid cells and several lists of missing texts,
encodes columns of every type; then the same cells with one more cell, of another type, in a column
of objects, and in what pandas makes of both."""

import itertools
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.data.column_encoder import ColumnEncoder
from deniable.data.dataframes import import_frame
from deniable.data.object_columns import has_uniform_objects, objects_to_texts
from deniable.data.table_io import read_codes
from deniable.data.unit_column import owner_expression, require_exact_owners
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

pytestmark = pytest.mark.slow

TOKYO = timezone(timedelta(hours=9))
INF = float("inf")
# Cells of one type each; those of a column.
INTEGERS = [0, 1, 2, 3, 7, 9, 10, -8, 55, 100, 2**53 + 1, 2**53, 2**62, 2**62 + 5]
FLOATS = [0.0, -0.0, 1.0, 2.0, 2.5, 0.5, 9.0, 9.5, -8.0, 55.0, 1e-7, 1e16, INF, -INF, np.nan]
TIMES = [
    "2020-05-01 00:00",
    "2020-05-01 03:59:59.5",
    "2020-05-02 23:00",
    "1900-01-01",
    "2021-01-01",
]
STAMPS = [pd.Timestamp(text) for text in TIMES]
DAYS = [stamp.date() for stamp in STAMPS]
TEXTS = ["0", "1", "a", "b", "9", "9.0", "9.5", " 7", "inf", "nan", "NA", "", "yes", "NO", "True"]
TEXTS += ["2020-05-01", "2020-05-01T03:00:00", "1e3"]
DECIMALS = [Decimal(text) for text in ("0", "1.0", "2.50", "2.5", "9", "9.50", "-8", "0.1")]
COLUMNS: dict[str, Any] = {
    "int64": pd.Series(INTEGERS),
    "int8": pd.Series([0, 1, 2, 9, -8], dtype="int8"),
    "uint64": pd.Series([0, 1, 2, 9, 2**62, 2**63, 2**63 + 1, 2**64 - 1], dtype="uint64"),
    "Int64": pd.Series([*INTEGERS, None], dtype="Int64"),
    "float64": pd.Series([value for value in FLOATS if value != 1e16]),
    "Float64": pd.Series([*FLOATS, None], dtype="Float64"),
    "float32": pd.Series([0, 1, 2.5, 9.5, 0.1, np.inf, 9, np.nan], dtype="float32"),
    "bool": pd.Series([True, False]),
    "boolean": pd.Series([True, False, None], dtype="boolean"),
    "str": pd.Series([*TEXTS, None], dtype="str"),
    "category": pd.Series([*TEXTS, None], dtype="category"),
    "datetime64": pd.Series([*STAMPS, None]),
    "datetime64 of a zone": pd.Series([*STAMPS, None]).dt.tz_localize(TOKYO),
    "objects: int": pd.Series([*INTEGERS, 2**70, -(2**70), None], dtype=object),
    "objects: float": pd.Series([*FLOATS, None], dtype=object),
    "objects: text": pd.Series([*TEXTS, None], dtype=object),
    "objects: bool": pd.Series([True, False, None], dtype=object),
    "objects: date": pd.Series([*DAYS, None], dtype=object),
    "objects: time": pd.Series(
        [*STAMPS, datetime(2020, 5, 1), pd.Timestamp("2020-05-01 00:00:00.000000001")], dtype=object
    ),
    "objects: times of zones": pd.Series(
        [datetime(2020, 5, 1, 3, tzinfo=UTC), datetime(2020, 5, 1, 12, tzinfo=TOKYO)], dtype=object
    ),
    "objects: Decimal": pd.Series([*DECIMALS, Decimal("Infinity"), None], dtype=object),
    "objects: numpy": pd.Series([np.int8(1), np.int64(9), np.uint64(2)], dtype=object),
    "objects: all": pd.Series(
        [*INTEGERS, *FLOATS, *TEXTS, *DAYS, *STAMPS, *DECIMALS, True, False, None], dtype=object
    ),
    "polars int": pl.Series([*INTEGERS, None]),
    "polars float": pl.Series([*FLOATS, None]),
    "polars bool": pl.Series([True, None, False]),
    "polars text": pl.Series([*TEXTS, None]),
    "polars date": pl.Series([*DAYS, None]),
    "polars time": pl.Series(STAMPS, dtype=pl.Datetime("us")),
    "polars decimal": pl.Series([*DECIMALS, Decimal(2**53 + 1), None], dtype=pl.Decimal(30, 3)),
    "Arrow int": pa.array([0, 1, 9, None], pa.int16()),
    "Arrow float": pa.array([0.5, 9.0, 9.5, INF, None], pa.float64()),
    "Arrow date": pa.array([*DAYS, None], pa.date32()),
    "Arrow decimal": pa.array([*DECIMALS, None], pa.decimal128(20, 2)),
    "Arrow dictionary": pa.array(["a", "9", "b", None]).dictionary_encode(),
}
ODD: list[Any] = [
    *("x", "9", "", 1, 2**70, 2.5, INF, np.nan, None, True, Decimal("9.123"), Decimal("NaN")),
    *(date(2020, 5, 1), datetime(2020, 5, 1, 1), pd.Timestamp("2020-05-01", tz=TOKYO)),
]
MISSING = ["", 'missing = ["", "9", "9.5", "inf", "NA"]']
MISSING += [f'missing = ["-8", "{2**62}", "{2**70}", "-inf", "1e-07", "2020-05-01"]']
NUMBERS = {
    "integer": 'type = "integer"\nmin = 10\nmax = 60',
    "bins": 'type = "integer"\nmin = 10\nmax = 109\nbins = { width = 20 }\nheaps = [5, 10]',
    "large": f'type = "integer"\nmin = {2**53}\nmax = {2**60}\nbins = {{ width = {2**57} }}',
    "real": 'type = "real"\nmin = 2\nmax = 8.5\ndecimals = 1',
    "date": 'type = "date"\nmin = 2020-05-02\nmax = 2020-12-31',
    "date of a format": 'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nformat = "%d/%m/%Y"',
    "datetime": 'type = "datetime"\nmin = 2020-05-01T01:00:00\nmax = 2021-01-01\nstep_seconds = 60',
}
LISTS = {
    "categorical": 'type = "categorical"\nvalues = ["0", "1", "a", "True"]',
    "listed integers": 'type = "categorical"\nvalues = [0, 1, 55]',
    "ordered": 'type = "ordered"\nvalues = ["b", "2.5", "a"]',
    "boolean": 'type = "boolean"\nvalues = ["no", "yes"]',
    "boolean 1 2": 'type = "boolean"\nvalues = ["1", "2"]',
    "boolean by its texts": 'type = "boolean"\nvalues = ["0.5", "55"]',
    "text": 'type = "text"\nvalues = ["a", "True"]\nother = "other"',
}
UNITS = ["", 'missing = ["9", "2.5", "inf", "a"]', 'missing = ["0", "True", "2020-05-01"]']
UNITS += [f'missing = ["2020-05-02T23:00:00", "0.5", "{2**62}"]']


def attribute_lines():
    """List the description of every attribute: kinds, missing texts and treatments."""
    for kinds, treatments in ((NUMBERS, ("drop", "clip")), (LISTS, ("drop",))):
        for lines, missing, outside in itertools.product(kinds.values(), MISSING, treatments):
            yield f'{lines}\n{missing}\noutside = "{outside}"'
    for missing in UNITS:
        yield f'type = "identifier"\n{missing}'


LINES = dict(enumerate(attribute_lines()))
SCHEMA = Schema.parse(
    "format = 1\n"
    + "".join(f'[[attribute]]\nname = "{i}"\n{lines}\n' for i, lines in LINES.items())
)
UNIT_NAMES = {column.name for column in SCHEMA.columns if isinstance(column, Identifier)}


def frame_of(column):
    """Build a frame with the same cells in every column of the schema."""
    if isinstance(column, pd.Series):
        return pd.concat({str(i): column for i in LINES}, axis=1)
    if isinstance(column, pl.Series):
        return pl.DataFrame({str(i): column for i in LINES})
    return pa.table({str(i): column for i in LINES})


def meanings(column):
    """Return the codes of each column, or the numbers of its units; an error if it is refused."""
    frame = import_frame(frame_of(column), SCHEMA.columns)[0]
    types = frame.collect_schema()
    expressions: list[pl.Expr] = []
    found: dict[str, Any] = {}
    for described in SCHEMA.columns:
        name = described.name
        try:
            if isinstance(described, Identifier):
                expressions.append(owner_expression(described, types, table_name="the table"))
            elif isinstance(described, Attribute):
                encoder = ColumnEncoder(attribute=described, dtype=types[name])
                expressions.append(encoder.code())
                if described.heaps:
                    heaping = SCHEMA.heaping[name]
                    encoder = ColumnEncoder(attribute=described, dtype=types[name], heaping=heaping)
                    expressions.append(encoder.code())
        except DataError as error:
            found[name] = str(error)
    for series in frame.select(expressions).collect():
        found[series.name] = series.to_list()
        if series.name in UNIT_NAMES:
            try:
                require_exact_owners(series)
            except DataError as error:
                found[series.name] = str(error)
    return found


def renumbered(cells):
    """Number the units in the order of their first rows; None stays."""
    numbers: dict[Any, int] = {}
    return [None if cell is None else numbers.setdefault(cell, len(numbers)) for cell in cells]


def objects_of(column):
    if isinstance(column, pd.Series):
        return list(column.astype(object))
    return column.to_pylist() if isinstance(column, pa.Array) else column.to_list()


def differences(found, expected):
    """Yield the columns whose other cells changed, or that are now refused."""
    for name, cells in expected.items():
        now = found.get(name, "2^53")
        if isinstance(cells, str) or (isinstance(now, str) and "2^53" in now):
            continue  # refused because of the type of the column
        number = renumbered if name in UNIT_NAMES and not isinstance(now, str) else list
        if number(now[: len(cells)]) != number(cells):
            yield LINES[int(name.partition(" ")[0])], cells, now


@pytest.mark.parametrize("name", COLUMNS)
def test_the_others_keep_their_codes_and_units(name):
    """Otherwise one more row would change many, and the privacy guarantee would not hold."""
    column = COLUMNS[name]
    expected = meanings(column)
    assert any(not isinstance(cells, str) for cells in expected.values())
    start = list(COLUMNS).index(name)
    for odd in ("x", ODD[start % len(ODD)]):
        objects = pd.Series([*objects_of(column), odd], dtype=object)
        assert list(differences(meanings(objects), expected)) == []
    if isinstance(column, pd.Series) and column.dtype != object:
        for odd in (None, 2.5, ODD[(start + 7) % len(ODD)]):
            both = pd.concat([column, pd.Series([odd])], ignore_index=True)
            assert list(differences(meanings(both), expected)) == [], odd


# Objects of several types: each cell is converted by its own value, as a typed cell would be


def one(lines):
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "x"\n{lines}\noutside = "drop"\n')


CELLS: dict[str, list[Any]] = {
    'type = "integer"\nmin = -5\nmax = 9\nmissing = ["", "?"]': [
        *(1, 2.0, np.int8(3), Decimal(4), "5", " 6 ", 2.5, Decimal("2.5"), 10**30, -(10**30)),
        *(True, None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), "?", "abc", float("inf")),
        date(2020, 1, 1),
    ],
    'type = "real"\nmin = 0\nmax = 9\ndecimals = 1\nmissing = [""]': [
        *(1, 2.25, Decimal("3.5"), "4.5", 1e-9, 1e300, 2**70, "abc", None, float("nan")),
    ],
    'type = "boolean"\nvalues = ["no", "yes"]\nmissing = ["?"]': [
        *(True, False, np.True_, 1, 0, 2, 0.5, 1.0, "yes", "NO", "?", "true", None),
    ],
    'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nformat = "%d/%m/%Y"\nmissing = [""]': [
        *(date(2020, 5, 1), datetime(2020, 5, 1, 23), pd.Timestamp("2020-05-02 01:00"), None),
        *("03/05/2020", "2020-05-03", date(2021, 1, 1), date(1, 1, 1), pd.NaT, 7),
        datetime(2020, 5, 2, 3, tzinfo=TOKYO),
    ],
    'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nstep_seconds = 3600\n': [
        *(datetime(2020, 5, 1, 23, 59), date(2020, 5, 1), "2020-05-01T04:00:00", "abc"),
        *(datetime(2020, 5, 1, 3, tzinfo=UTC), datetime(2020, 5, 1, 3, tzinfo=TOKYO)),
    ],
    'type = "categorical"\nvalues = ["1", "a"]\nmissing = ["?"]': ["1", 1, "a", "?", None, 2.5],
}


def codes_of(cells, schema):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    return read_codes(frame, schema)[0][:, 0].tolist()


@pytest.mark.parametrize("lines", CELLS)
def test_the_code_of_a_cell_does_not_depend_on_its_neighbours(lines):
    """Otherwise one more row would change many, and the privacy guarantee would not hold."""
    schema, cells = one(lines), CELLS[lines]
    alone = []
    for cell in cells:
        try:
            alone.append(codes_of([cell], schema))
        except DataError:  # a column of this type alone is refused
            alone.append(None)
    assert sum(code is not None for code in alone) >= 4
    for (i, one_cell), (j, other) in itertools.permutations(enumerate(cells), 2):
        if alone[i] is not None and alone[j] is not None:
            assert codes_of([one_cell, other], schema) == alone[i] + alone[j]


def test_only_objects_of_one_type_are_uniform():
    def is_uniform(*cells):
        return has_uniform_objects(pd.Series(cells, dtype=object), None)

    assert is_uniform("a", None, np.nan)
    assert is_uniform(1, None)
    assert is_uniform()
    assert not is_uniform(1, "a")
    assert not is_uniform(date(2020, 1, 1), datetime(2020, 1, 1, 5))
    assert not is_uniform(b"a")


def test_cells_of_a_column_without_meaning_are_texts():
    cells = [1, "a", None, date(2020, 1, 1), True]
    assert objects_to_texts("x", cells, None).to_list() == ["1", "a", None, "2020-01-01", "True"]
    same = objects_to_texts("x", [7, 7.0, np.float32(7), Decimal("7.00")], None)
    assert same.to_list() == ["7"] * 4
    with pytest.raises(TypeError):
        objects_to_texts("x", [b"a"], None)


# Numbers of one column, and odd cells next to which they must mean the same. One complex number
# makes all cells complex; next to a text, numbers are objects.
WIDER = [1 + 2j, np.complex64(2j), np.longdouble(2), np.clongdouble(2j)]
OTHERS = ["x", "3", 2**70]
NUMBERS_WITH: list[tuple[str, list[Any], list[Any]]] = [
    (
        'type = "integer"\nmin = 0\nmax = 9\nmissing = ["", "-7"]\nfallback = 3',
        [0, 1, 5, -7, 12],
        WIDER,
    ),
    (
        'type = "real"\nmin = 0\nmax = 9\ndecimals = 1\nmissing = [""]\nfallback = 3',
        [0.0, 2.5, 5.0, -1.0, 1e20, np.nan, INF],
        WIDER,
    ),
    ('type = "categorical"\nvalues = ["1", "2.5"]\nfallback = "1"', [1.0, 2.5, 3.0], WIDER),
    ('type = "boolean"\nvalues = ["no", "yes"]\nfallback = "no"', [0, 1, 2], WIDER),
    ('type = "boolean"\nvalues = ["0", "1"]\nmissing = ["9"]', [0, 1, 9], OTHERS),
    ('type = "boolean"\nvalues = ["1", "2"]\nmissing = ["0", "NA"]', [0, 1, 2, 7], OTHERS),
    ('type = "boolean"\nvalues = ["no", "yes"]\nmissing = ["0", "9"]', [0, 1, 9], OTHERS),
    ('type = "boolean"\nvalues = ["5", "y"]\nmissing = ["0.5"]', [0, 1, 5, 0.5, 9], OTHERS),
    ('type = "boolean"\nvalues = ["0", "1"]\nmissing = ["inf"]', [0, 1, INF], OTHERS),
    *(
        (
            f'type = {kind}\nmin = 0\nmax = 5\nmissing = ["", "inf", "9.5"]',
            [1.0, INF, -INF, 9.5, np.nan, 8.0],
            ["x"],
        )
        for kind in ('"integer"', '"real"\ndecimals = 1')
    ),
]


def lenient(lines):
    """A schema whose fallback replaces, or that drops, what is invalid."""
    if "fallback" not in lines:
        return one(lines)
    clip = "" if "values" in lines else 'outside = "clip"\n'
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "x"\n{lines}\n{clip}')


@pytest.mark.parametrize(("lines", "cells", "odds"), NUMBERS_WITH)
def test_numbers_mean_the_same_next_to_an_odd_cell(lines, cells, odds):
    """They became the fallback; or one that means missing was dropped, or kept next to a text."""
    schema = lenient(lines)
    typed = read_codes(pd.DataFrame({"x": cells}), schema)[0][:, 0].tolist()
    assert len(set(typed)) > 1
    if "9" in schema.attributes[0].missing:
        assert typed == [0, 1, 2]
    for odd in odds:
        columns = [pd.Series([*cells, odd]), pd.Series([*cells, odd], dtype=object)]
        columns += [pd.Series(np.array([*cells, odd]))] * (odds is WIDER)
        for column in columns:
            read = read_codes(pd.DataFrame({"x": column}), schema)[0][:, 0].tolist()
            assert read[: len(typed)] == typed, odd
            assert len(read) == len(typed) + ("fallback" in lines)


COLUMNS_OF_TEXTS = {
    'type = "categorical"\nvalues = ["a", "b"]\nmissing = ["?", ""]\nfallback = "b"',
    'type = "text"\nvalues = ["a", "b"]\nother = "other"\nmissing = ["?"]\nfallback = "other"',
    'type = "integer"\nmin = 0\nmax = 9\nmissing = ["?"]\nfallback = 3',
    'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nfallback = 2020-05-05',
}


@pytest.mark.parametrize("lines", sorted(COLUMNS_OF_TEXTS))
@pytest.mark.parametrize("odd", [b"x", b"\xffSECRET"])
def test_texts_mean_the_same_next_to_bytes(lines, odd, tmp_path):
    """Bytes make a column of bytes, which became the fallback; or the text was not UTF-8."""
    schema, cells = lenient(lines), [b"a", b"b", b"?", b"", b"7", b"12", b"2020-02-03"]
    plain = pa.array([*map(bytes.decode, cells), None])
    expected = read_codes(pa.table({"x": plain}), schema)[0][:, 0].tolist()
    assert len(set(expected)) > 1
    held = pa.array([*cells, None, odd], pa.binary())
    pq.write_table(pa.table({"x": held}), tmp_path / "x.parquet")
    texts = pa.Array.from_buffers(pa.string(), len(held), held.buffers())
    mixed = pd.Series([*plain.to_pylist(), odd], dtype=object)
    pandas = [pd.Series(pd.arrays.ArrowExtensionArray(each)) for each in (held, texts)]
    sources: list[Any] = [pa.table({"x": held}), pa.table({"x": texts}), tmp_path / "x.parquet"]
    sources += [pd.DataFrame({"x": column}) for column in (mixed, *pandas)]
    sources += [pl.DataFrame({"x": held})]
    for source in sources:
        assert read_codes(source, schema)[0][:-1, 0].tolist() == expected


@pytest.mark.parametrize(
    "lines",
    [
        f'type = "integer"\nmin = {2**53}\nmax = {2**53 + 9}',
        f'type = "integer"\nmin = 0\nmax = 9\nmissing = ["{2**60 + 1}"]',
        f'type = "boolean"\nvalues = ["0", "1"]\nmissing = ["{2**60 + 1}"]',
    ],
)
def test_floats_are_refused_where_integers_matter_that_are_not_floats(lines):
    """pandas makes integers floats if one cell is missing; the others may then be different."""
    schema = one(lines)
    read_codes(pd.DataFrame({"x": [0, 2**53 + 1]}), schema)
    with pytest.raises(DataError, match="2\\^53"):
        read_codes(pd.DataFrame({"x": [0, 2**53 + 1, None]}), schema)
