"""Cells of every type are encoded, from typed columns and from text; faults are diagnosed."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.data.table_io import read_codes, write_table
from deniable.drafting.draft import draft_schema
from deniable.errors import DataError, SchemaError
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


def fault(frame_or_text, tmp_path, schema):
    source = frame_or_text
    if isinstance(source, str):
        source = tmp_path / "t.csv"
        source.write_text(frame_or_text)
    with pytest.raises(DataError) as caught:
        read_codes(source, schema)
    return str(caught.value)


def one(lines, name="x"):
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "{name}"\n{lines}\n')


def codes_of(cells, lines, dtype=None):
    return read_codes(pl.DataFrame({"x": pl.Series(cells, dtype=dtype)}), one(lines))[0][
        :, 0
    ].tolist()


# Valid cells


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Decimal(10, 3), pl.String])
def test_reals_are_rounded_to_the_grid(dtype):
    lines = 'type = "real"\nmin = 0\nmax = 2\ndecimals = 1\nmissing = [""]'
    cells = ["0.04", "1.06", None, "2.04", "0.1"]
    series = pl.Series(cells).cast(dtype)
    assert codes_of(series, lines, dtype) == [0, 11, 21, 20, 1]


def test_every_value_of_a_grid_is_itself_whatever_its_step():
    for step, ends in [
        ("0.01", (-30, 30)),
        ("0.1", (0, 1e5)),
        ("0.3", (0, 3e4)),
        ("2.5", (0, 5e5)),
    ]:
        bins = f"bins = {{ width = {(ends[1] - ends[0]) / 10:g} }}"
        schema = one(f'type = "real"\nmin = {ends[0]}\nmax = {ends[1]}\nstep = {step}\n{bins}')
        [attribute] = schema.attributes
        low, high = attribute.values[0], attribute.values[-1]
        positions = np.arange(low, high + 1, max(1, (high - low) // 3000))
        codes = np.searchsorted(attribute.starts, positions, side="right").astype(np.uint16) - 1
        frame = Codec(schema).values(codes[:, None], positions[:, None])
        expected = [float(int(p) * Decimal(step)) for p in positions]
        assert frame["x"].to_list() == expected
        assert Codec(schema).encode(frame)[:, 0].tolist() == codes.tolist()


def test_nan_is_missing_and_infinity_a_fault(tmp_path):
    lines = 'type = "real"\nmin = 0\nmax = 2\ndecimals = 1\n'
    with_missing = lines + 'missing = ["x"]'
    assert codes_of([0.0, float("nan"), None], with_missing) == [0, 21, 21]
    frame = pl.DataFrame({"x": [0.0, float("inf"), float("-inf")]})
    for outside in ("", 'outside = "clip"'):
        message = fault(frame, tmp_path, one(lines + outside))
        assert 'column "x", row 2 of the table: the value is not a number' in message
        assert "2 rows have" in message
    assert "the cell is missing" in fault(pl.DataFrame({"x": [float("nan")]}), tmp_path, one(lines))
    assert "not a number" in fault("x\n1\nNaN\n", tmp_path, one(with_missing))


def test_a_number_that_means_missing_is_compared_before_it_is_rounded():
    lines = 'type = "real"\nmin = 0\nmax = 5\ndecimals = 0\nmissing = ["-1.5"]\noutside = "clip"'
    assert codes_of([-1.5, -1.4, -2.0], lines) == [6, 0, 0]
    with pytest.raises(SchemaError, match=r"both as a value and as missing: 5\.2"):
        one('type = "real"\nmin = 0\nmax = 5\ndecimals = 0\nmissing = ["5.2"]')


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([False, True, None]),
        pl.Series(["no", "Yes", "?"]),
        pl.Series(["NO", "YES", None], dtype=pl.Categorical),
        pl.Series([0, 1, None]),
        pl.Series([0.0, 1.0, float("nan")]),
        pl.Series([0, 1, None], dtype=pl.UInt8),
    ],
)
def test_true_and_false_are_read_from_every_type(cells):
    lines = 'type = "boolean"\nvalues = ["no", "yes"]\nmissing = ["?"]'
    assert codes_of(cells, lines, cells.dtype) == [0, 1, 2]


def test_texts_that_are_numbers_are_the_numbers_of_true_and_false(tmp_path):
    lines = 'type = "boolean"\nvalues = ["1", "2"]'
    assert codes_of([2, 1], lines) == [1, 0]
    assert "none of the 2" in fault(pl.DataFrame({"x": [1, 0]}), tmp_path, one(lines))


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([date(2020, 1, 1), date(2020, 1, 31), None]),
        pl.Series([datetime(2020, 1, 1, 5), datetime(2020, 1, 31, 23, 59, 59), None]),
        pl.Series([datetime(2020, 1, 1), datetime(2020, 1, 31), None], dtype=pl.Datetime("ns")),
        pl.Series([datetime(2020, 1, 1), datetime(2020, 1, 31), None]).dt.replace_time_zone("UTC"),
        pl.Series(["1.1.2020", "31.01.2020", ""]),
        pl.Series(["01.01.2020 ", " 31.01.2020", "31.12.9999"]),
    ],
)
def test_dates_are_read_from_every_type(cells):
    lines = (
        'type = "date"\nmin = 2020-01-01\nmax = "2020-01-31"\nformat = "%d.%m.%Y"\n'
        'missing = ["", "31.12.9999"]'
    )
    assert codes_of(cells, lines, cells.dtype) == [0, 30, 31]


def test_a_date_that_means_missing_does_so_in_a_typed_column():
    lines = 'type = "date"\nmin = 2020-01-01\nmax = 2020-01-31\nmissing = ["9999-12-31"]'
    assert codes_of([date(9999, 12, 31), date(2020, 1, 2)], lines) == [31, 1]


def test_dates_before_1970_are_read_and_written(tmp_path):
    schema = one('type = "datetime"\nmin = 1850-01-01\nmax = 1850-01-02\nstep_seconds = 7200')
    moments = [datetime(1850, 1, 1) + timedelta(hours=h) for h in (0, 1.99, 2, 23.5)]
    codes = Codec(schema).encode(pl.DataFrame({"x": moments}))
    assert codes[:, 0].tolist() == [0, 0, 1, 11]
    write_table(tmp_path / "t.csv", [decode_records(Codec(schema), codes)], schema)
    assert np.array_equal(read_codes(tmp_path / "t.csv", schema)[0], codes)


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_a_column_of_a_time_zone_is_refused_with_the_ways_on(kind, tmp_path):
    lines = f'type = "{kind}"\nmin = 2020-06-01\nmax = 2020-06-30'
    cells = pl.Series("x", [datetime(2020, 6, 1, 2)]).dt.replace_time_zone("Europe/Warsaw")
    frame = cells.to_frame()
    frame.write_parquet(tmp_path / "t.parquet")
    for source in (
        frame,
        frame.lazy(),
        frame.to_pandas(),
        frame.to_arrow(),
        tmp_path / "t.parquet",
    ):
        with pytest.raises(
            DataError, match=r"of the zone Europe/Warsaw.*\.dt\.tz_convert"
        ) as raised:
            read_codes(source, one(lines))
        assert "2020" not in str(raised.value)
        with pytest.raises(DataError, match="of the zone Europe/Warsaw"):
            draft_schema(source)
    # With a fallback no cell of the column is an error.
    assert read_codes(frame, one(f"{lines}\nfallback = 2020-06-30"))[0].tolist() == [[0]]


def test_times_in_utc_and_texts_of_a_zone_are_read_in_utc():
    schema = one('type = "datetime"\nmin = 2020-06-01\nmax = 2020-06-30\nstep_seconds = 3600')
    cells = pl.Series("x", [datetime(2020, 6, 1, 2)]).dt.replace_time_zone("Europe/Warsaw")
    codes, kind = read_codes(cells.dt.convert_time_zone("UTC").to_frame(), schema)
    assert codes.tolist() == [[0]]
    back = kind.restore(decode_records(Codec(schema), codes))
    assert back["x"].to_list() == [datetime(2020, 6, 1)]
    assert read_codes(cells.dt.replace_time_zone(None).to_frame(), schema)[0].tolist() == [[2]]
    zoned = one(
        'type = "datetime"\nmin = 2020-06-01T00:00:00+00:00\nmax = 2020-06-30\n'
        'format = "%Y-%m-%d %H:%M:%S%z"'
    )
    assert Codec(zoned).encode(pl.DataFrame({"x": ["2020-06-01 02:00:07+0200"]})).tolist() == [[0]]


def test_fractions_of_a_second_are_read_with_python_s_own_format(tmp_path):
    schema = one(
        'type = "datetime"\nmin = 2020-06-01\nmax = 2020-06-30\nformat = "%Y-%m-%d %H:%M:%S.%f"'
        "\nbins = { width = 86400 }"
    )
    path = tmp_path / "t.csv"
    path.write_text("x\n2020-06-02 12:00:00.123456\n")
    codes, _ = read_codes(path, schema)
    assert codes.tolist() == [[1]]
    write_table(path, [decode_records(Codec(schema), codes, Keyed(3).at("records"))], schema)
    assert path.read_text().splitlines()[1].endswith(".000000")


def test_text_that_is_not_listed_is_other_and_an_empty_cell_is_missing(tmp_path):
    lines = 'type = "text"\nvalues = ["a", "b"]\nother = "o"\n'
    assert codes_of(["a", "b", "o", "SECRET", " "], lines) == [0, 1, 2, 2, 2]
    assert codes_of(["z", None, ""], lines + 'missing = [""]') == [2, 3, 3]
    assert "the cell is missing" in fault('x\na\n""\n', tmp_path, one(lines))
    assert "the cell is missing" in fault(pl.DataFrame({"x": ["a", None]}), tmp_path, one(lines))
    inside = one('type = "text"\nvalues = ["o", "a"]\nother = "o"')
    assert inside.attributes[0].values == ("o", "a")
    assert Schema.parse(inside.text()) == inside


def test_a_column_of_text_is_read_as_a_csv_file_would_be():
    """pandas reads a column of numbers as text if a cell is "?"."""
    lines = 'type = "integer"\nmin = 0\nmax = 9\nmissing = ["?", "-8"]'
    assert codes_of(["5", " 7", "8.0", "?", None, "-8"], lines) == [5, 7, 8, 10, 10, 10]
    assert codes_of(["5", "7"], 'type = "categorical"\nvalues = [7, 5]', pl.Categorical) == [1, 0]


@pytest.mark.parametrize("count", [7, 1000])
def test_uneven_bins_are_found_in_a_large_table(count):
    """Streaming processes a column in batches; each must be searched in all edges."""
    rng = np.random.default_rng(5)
    edges = np.unique(rng.integers(1, 10**6, count)).tolist()
    lines = (
        f'type = "integer"\nmin = 0\nmax = 1000000\nbins = {{ edges = {edges} }}\nmissing = [""]'
    )
    numbers = rng.integers(0, 10**6, 300_000)
    cells = (
        pl.Series(numbers)
        .to_frame("x")
        .with_columns(pl.when(pl.col("x") % 97 > 0).then(pl.col("x")))
    )
    codes = Codec(one(lines)).encode(cells)[:, 0]
    expected = np.searchsorted([0, *edges], numbers, side="right") - 1
    expected[numbers % 97 == 0] = len(edges) + 1
    assert np.array_equal(codes, expected)


# Invalid cells


@pytest.mark.parametrize(
    ("lines", "cell", "what"),
    [
        ('type = "real"\nmin = 0\nmax = 5\ndecimals = 2', "7.7531", r"outside 0\.00\.\.5\.00"),
        ('type = "real"\nmin = 0\nmax = 5\ndecimals = 2', "SECRET", "not a number"),
        ('type = "real"\nmin = 0\nmax = 5\ndecimals = 2', "-inf", "not a number"),
        ('type = "real"\nmin = 0\nmax = 5\nstep = 0.5', "5.26", r"outside 0\.0\.\.5\.0"),
        (
            'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31',
            "1999-03-07",
            r"outside 2020-01-01\.\.2020-12-31",
        ),
        (
            'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nformat = "%d/%m/%Y"',
            "2020-02-03",
            'not a date of the form "%d/%m/%Y"',
        ),
        ('type = "date"\nmin = 2020-01-01\nmax = 2020-12-31', "2020-02-30", "not a date"),
        (
            'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31',
            "2021-03-07T10:11:12",
            r"outside 2020-01-01T00:00:00\.\.2020",
        ),
        ('type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31', "SECRET", "not a time of the"),
        ('type = "boolean"', "SECRET", "none of the 2"),
        ('type = "ordered"\nvalues = ["a", "b", "c"]', "SECRET", "none of the 3"),
        ('type = "constant"\nvalue = "PL"', "SECRET", 'the value is not "PL"'),
        ('type = "constant"\nvalue = 3', "4711", "the value is not 3"),
        ('type = "constant"\nvalue = 2.5', "47.11", r"outside 2\.5\.\.2\.5"),
        ('type = "constant"\nvalue = true', "false", "none of the 2"),
        ('type = "constant"\nvalue = ""', "SECRET", "empty"),
    ],
)
def test_a_fault_names_column_and_line_and_hides_the_cell(tmp_path, lines, cell, what):
    number = 'format = 1\n[[attribute]]\nname = "n"\ntype = "integer"\nmin = 0\nmax = 9\n'
    schema = Schema.parse(f'{number}[[attribute]]\nname = "x"\n{lines}\n')
    rows = f"n,x\n1,{cell}\n2,{cell}\n"
    message = fault(rows, tmp_path, schema)
    assert 'column "x", line 2 of t.csv: ' in message
    assert "2 lines have this fault" in message
    assert cell not in message
    with pytest.raises(DataError, match=what):
        read_codes(tmp_path / "t.csv", schema)


def test_drop_and_clip_work_for_every_numeric_type(tmp_path):
    for lines, cells in [
        ('type = "real"\nmin = 0\nmax = 1\ndecimals = 1', ["-7", "0.5", "9"]),
        (
            'type = "date"\nmin = 2020-01-01\nmax = 2020-01-11',
            ["1990-01-01", "2020-01-06", "2030-01-01"],
        ),
    ]:
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["x", *cells]) + "\n")
        assert read_codes(path, one(lines + '\noutside = "clip"'))[0].tolist() == [[0], [5], [10]]
        assert read_codes(path, one(lines + '\noutside = "drop"'))[0].tolist() == [[5]]


FAR_DATES = [
    *(pl.Series([days], dtype=pl.Int32).cast(pl.Date) for days in (2**31 - 1, -(2**31), 2_932_897)),
    *(
        pl.Series([ticks], dtype=pl.Int64).cast(pl.Datetime(unit, zone))
        for ticks in (2**63 - 1, -(2**63) + 1, 2**62)
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC")
    ),
]


@pytest.mark.parametrize("kind", ["date", "datetime"])
@pytest.mark.parametrize("far", FAR_DATES, ids=lambda s: f"{s.dtype} {s.to_physical()[0]}")
def test_dates_that_no_calendar_has_are_outside(tmp_path, kind, far):
    """polars panics when it casts or formats them; the reader only compares stored numbers."""
    lines = f'type = "{kind}"\nmin = 2020-01-01\nmax = 2020-01-11\n'
    lines += "step_seconds = 86400\n" if kind == "datetime" else ""
    near = pl.Series([datetime(2020, 1, 6, 5)]).cast(far.dtype)
    frame = pl.DataFrame({"x": pl.concat([near, far])})
    frame.write_parquet(tmp_path / "t.parquet")
    high = far.to_physical()[0] > 0
    for source in (tmp_path / "t.parquet", frame, frame.lazy(), frame.to_arrow()):
        assert read_codes(source, one(lines + 'outside = "drop"'))[0].tolist() == [[5]]
        clipped = read_codes(source, one(lines + 'outside = "clip"'))[0].tolist()
        assert clipped == [[5], [10 * high]]
        with pytest.raises(DataError, match=r'column "x", row 2 of .*outside 2020-01-01'):
            read_codes(source, one(lines))


@pytest.mark.parametrize("text", ["10000-01-01", "99999-12-31", "-0001-01-01", "0000-01-01"])
@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_texts_of_years_without_four_digits_are_faults(tmp_path, text, kind):
    lines = f'type = "{kind}"\nmin = 2020-01-01\nmax = 2020-01-11'
    (tmp_path / "t.csv").write_text(f"x\n{text}\n")
    assert read_codes(tmp_path / "t.csv", one(lines + '\noutside = "drop"'))[0].tolist() == []
    with pytest.raises(DataError, match=r'column "x", line 2 of t.csv'):
        read_codes(tmp_path / "t.csv", one(lines))


# Fallbacks

LENIENT = {
    "integer": 'type = "integer"\nmin = 0\nmax = 9\noutside = "clip"\nfallback = 4',
    "whole category": 'type = "categorical"\nvalues = [0, 1, 4]\nfallback = 4',
    "real": 'type = "real"\nmin = 0\nmax = 9\ndecimals = 1\noutside = "clip"\nfallback = 4',
    "category": 'type = "categorical"\nvalues = ["a", "b"]\nfallback = "b"',
    "boolean": 'type = "boolean"\nfallback = true',
    "text": 'type = "text"\nvalues = ["a"]\nother = "rest"\nfallback = "a"',
    "date": 'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\noutside = "clip"\n'
    "fallback = 2020-02-01",
}


@pytest.mark.parametrize(
    ("kind", "cells", "codes"),
    [
        ("integer", ["7", "", "oak", "2.6", "99", "-1e9", "nan"], [7, 4, 4, 3, 9, 0, 4]),
        ("whole category", ["1", "", "oak", "0.7", "9"], [1, 2, 2, 1, 2]),
        ("real", ["0.5", "", "oak", "99", "inf"], [5, 40, 40, 90, 40]),
        ("category", ["a", "", "c", "NA"], [0, 1, 1, 1]),
        ("boolean", ["false", "", "oak"], [0, 1, 1]),
        ("text", ["a", "", "c"], [0, 0, 1]),
        ("date", ["2020-01-02", "", "02/01/2020", "2021-01-01"], [1, 31, 31, 365]),
    ],
)
def test_every_text_has_a_code_where_there_is_a_fallback(tmp_path, kind, cells, codes):
    assert codes_of(cells, LENIENT[kind]) == codes
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *(f"{cell},1" for cell in cells)]) + "\n")
    described = LENIENT[kind] + '\n[[attribute]]\nname = "y"\ntype = "integer"\nmin = 1\nmax = 1'
    assert read_codes(path, one(described))[0][:, 0].tolist() == codes


@pytest.mark.parametrize("kind", LENIENT)
@pytest.mark.parametrize(
    "cells",
    [
        [1.0, None, 2.5, float("nan"), 2.0**60],
        [True, False, None],
        [date(2020, 1, 2), None],
        [datetime(2020, 1, 2, 12), None],
        [timedelta(days=1), None],
        [[1], None],
        [b"a", None],
        [Decimal("1.5"), None],
    ],
)
def test_every_type_has_codes_where_there_is_a_fallback(kind, cells):
    attribute = one(LENIENT[kind]).attributes[0]
    found = codes_of(cells, LENIENT[kind])
    assert all(code < attribute.size for code in found)
    assert found[1 + (cells[1] is not None)] == attribute.fallback


def test_a_typed_cell_has_the_code_of_its_text_where_the_type_does_not_fit():
    """One text makes texts of a column: the other cells must not change."""
    lines = 'type = "text"\nvalues = ["7", "2.5", "True", "2020-01-02"]\nother = "rest"\n'
    lines += 'fallback = "rest"'
    for cell, code in ((7.0, 0), (2.5, 1), (True, 2), (date(2020, 1, 2), 3), (8, 4)):
        assert codes_of([cell], lines) == [code]
        assert codes_of(["7" if cell == 7 else str(cell)], lines) == [code]
