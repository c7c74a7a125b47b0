"""Objects of several types: each cell is converted by its own value, as a typed cell would be."""

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

from deniable.data.object_columns import has_uniform_objects, objects_to_texts
from deniable.data.table_io import read_codes
from deniable.errors import DataError
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow

TOKYO = timezone(timedelta(hours=9))


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


FALLBACKS: dict[str, list[Any]] = {
    'type = "integer"\nmin = 0\nmax = 9\nmissing = ["", "-7"]\nfallback = 3': [0, 1, 5, -7, 12],
    'type = "real"\nmin = 0\nmax = 9\ndecimals = 1\nmissing = [""]\nfallback = 3': [
        *(0.0, 2.5, 5.0, -1.0, 1e20, float("nan"), float("inf")),
    ],
    'type = "categorical"\nvalues = ["1", "2.5"]\nfallback = "1"': [1.0, 2.5, 3.0],
    'type = "boolean"\nvalues = ["no", "yes"]\nfallback = "no"': [0, 1, 2],
}


@pytest.mark.parametrize("lines", FALLBACKS)
@pytest.mark.parametrize("odd", [1 + 2j, np.complex64(2j), np.longdouble(2), np.clongdouble(2j)])
def test_numbers_mean_the_same_in_a_column_of_wider_numbers(lines, odd):
    """One complex number makes all cells complex, and all became the fallback."""
    schema, cells = with_fallback(lines), FALLBACKS[lines]
    typed = read_codes(pd.DataFrame({"x": cells}), schema)[0][:, 0].tolist()
    assert len(set(typed)) > 1
    for column in (pd.Series([*cells, odd]), pd.Series(np.array([*cells, odd]))):
        read = read_codes(pd.DataFrame({"x": column}), schema)[0][:, 0].tolist()
        assert read[:-1] == typed


def with_fallback(lines):
    clip = "" if "values" in lines else 'outside = "clip"\n'
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "x"\n{lines}\n{clip}')


TEXTS = {
    'type = "categorical"\nvalues = ["a", "b"]\nmissing = ["?", ""]\nfallback = "b"',
    'type = "text"\nvalues = ["a", "b"]\nother = "other"\nmissing = ["?"]\nfallback = "other"',
    'type = "integer"\nmin = 0\nmax = 9\nmissing = ["?"]\nfallback = 3',
    'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nfallback = 2020-05-05',
}


@pytest.mark.parametrize("lines", sorted(TEXTS))
@pytest.mark.parametrize("odd", [b"x", b"\xffSECRET"])
def test_texts_mean_the_same_next_to_bytes(lines, odd, tmp_path):
    """Bytes make a column of bytes, which became the fallback; or the text was not UTF-8."""
    schema, cells = with_fallback(lines), [b"a", b"b", b"?", b"", b"7", b"12", b"2020-02-03"]
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


BOOLEANS: dict[str, list[Any]] = {
    'values = ["0", "1"]\nmissing = ["9"]': [0, 1, 9],
    'values = ["1", "2"]\nmissing = ["0", "NA"]': [0, 1, 2, 7],
    'values = ["no", "yes"]\nmissing = ["0", "9"]': [0, 1, 9],
    'values = ["5", "y"]\nmissing = ["0.5"]': [0, 1, 5, 0.5, 9],
    'values = ["0", "1"]\nmissing = ["inf"]': [0, 1, float("inf")],
}


@pytest.mark.parametrize("lines", BOOLEANS)
@pytest.mark.parametrize("odd", ["x", "3", 2**70])
def test_numbers_of_a_boolean_mean_the_same_next_to_another_cell(lines, odd):
    """A number that means missing was dropped from a typed column, and kept next to a text."""
    schema, cells = one(f'type = "boolean"\n{lines}'), BOOLEANS[lines]
    typed = read_codes(pd.DataFrame({"x": cells}), schema)[0][:, 0].tolist()
    assert codes_of([*cells, odd], schema) == typed
    if "9" in schema.attributes[0].missing:
        assert typed == [0, 1, 2]


@pytest.mark.parametrize("kind", ['"integer"', '"real"\ndecimals = 1'])
def test_numbers_that_mean_missing_as_texts_do_so_in_a_typed_column(kind):
    schema = one(f'type = {kind}\nmin = 0\nmax = 5\nmissing = ["", "inf", "9.5"]')
    cells = [1.0, float("inf"), -float("inf"), 9.5, float("nan"), 8.0]
    typed = read_codes(pd.DataFrame({"x": cells}), schema)[0][:, 0].tolist()
    assert codes_of([*cells, "x"], schema) == typed
    assert len(typed) == 4


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
