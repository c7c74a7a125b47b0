"""One odd cell changes the type of a column; it must not change what the other cells mean.

Every kind of attribute, with every treatment of invalid cells and several lists of missing texts,
encodes columns of every type; then the same cells with one more cell, of another type, in a column
of objects, and in what pandas makes of both.
"""

import itertools
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.column_encoder import ColumnEncoder
from deniable.data.dataframes import import_frame
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
