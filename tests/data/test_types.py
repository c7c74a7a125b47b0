"""Every type of column: into codes and back, from CSV text and from typed columns."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from deniable.data.bins import digit_starts
from deniable.data.schema import Schema
from deniable.data.tables import read_codes, read_table, write_table
from deniable.errors import DataError, InvariantError, SchemaError
from deniable.randomness import Keyed

TEXT = """
format = 1

[[attribute]]
name = "id"
type = "identifier"
format = "P{:04d}"

[[attribute]]
name = "level"
type = "ordered"
values = ["low", "middle", "high", "top"]
buckets = { width = 2 }

[[attribute]]
name = "height"
type = "real"
min = 1.0
max = 2.5
decimals = 2
missing = ["NA", "-9"]

[[attribute]]
name = "pay"
type = "real"
min = -1000
max = 100_000
step = 0.25
bins = { edges = [0, 100.5, 5000] }
outside = "clip"

[[attribute]]
name = "smokes"
type = "boolean"
values = ["no", "yes"]
missing = ["?"]

[[attribute]]
name = "born"
type = "date"
min = 1900-01-01
max = 2020-12-31
format = "%d/%m/%Y"
bins = { width = 365 }
missing = [""]

[[attribute]]
name = "seen"
type = "datetime"
min = "2020-01-01"
max = 2020-01-31T23:00:00
step_seconds = 3600
outside = "drop"

[[attribute]]
name = "note"
type = "text"
values = ["fine", "ill"]
other = "something else"

[[attribute]]
name = "country"
type = "constant"
value = "PL"

[[attribute]]
name = "visits"
type = "integer"
min = 0
max = 99_999

[[attribute]]
name = "cost"
type = "computed"
formula = "visits * 12.5 + pay"
decimals = 2
"""
SCHEMA = Schema.parse(TEXT)
CSV = """id,level,height,pay,smokes,born,seen,note,country,visits,cost
A,low,1.00,-1000,no,01/01/1900,2020-01-01T00:00:00,fine,PL,0,1
B, top,2.5,0.1,YES,31/12/2020,2020-01-31T23:59:59,a private matter,PL,99999,2
C,high, 1.499 ,1e9,?,,2020-01-01T01:00:00,ill,PL,5,3
D,top,NA,99.99,no,02/01/1901,2021-01-01T00:00:00,fine,PL,6,4
E,top,-9.0,100.4,No, 02/01/1901 ,2020-01-02T00:30:00,something else,PL,1000,
""".replace(" top,2.5", "top,2.5")
CODES = [
    [0, 0, 0, 0, 0, 0, 0, 0],
    [3, 150, 1, 1, 121, 743, 2, 999],
    [2, 50, 3, 2, 122, 1, 1, 0],
    [3, 151, 2, 0, 1, 24, 2, 10],
]
NAMES = ["id", *SCHEMA.names[:-1], "country", "visits", "cost"]


def fault(frame_or_text, tmp_path, schema=SCHEMA):
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


# The schema


def test_the_schema_s_text_reads_back_equal():
    assert Schema.parse(SCHEMA.text()) == SCHEMA
    assert SCHEMA.text() == Schema.parse(SCHEMA.text()).text()


def test_learnt_columns_are_attributes_and_all_are_columns():
    assert [column.name for column in SCHEMA.columns] == NAMES
    assert SCHEMA.names == (*NAMES[1:8], "visits")
    assert list(SCHEMA.dtypes) == NAMES
    level, height, pay, smokes, born, seen, note, visits = SCHEMA.attributes
    assert level.groups == (0, 0, 1, 1)
    assert (height.size, height.is_binned, height.buckets) == (152, False, 11)
    assert pay.starts == (-4000, 0, 402, 20_000)
    assert (smokes.size, smokes.missing_code) == (3, 2)
    assert (born.bins, born.starts.step, born.unit.value_at(0)) == (122, 365, date(1970, 1, 1))
    assert (seen.size, seen.is_binned) == (31 * 24, False)
    assert note.values == ("fine", "ill", "something else")
    assert (visits.size, visits.positions(1), visits.centre(0)) == (1000, range(100, 200), 49.5)


def test_positions_of_all_codes_are_all_positions():
    for attribute in SCHEMA.attributes:
        if attribute.is_numeric:
            ranges = [attribute.positions(code) for code in range(attribute.bins)]
            assert ranges[0][0] == attribute.values[0]
            assert ranges[-1][-1] == attribute.values[-1]
            assert all(a[-1] + 1 == b[0] for a, b in pairwise(ranges))
            assert attribute.widths.tolist() == [len(inside) for inside in ranges]


# In from CSV text, out to CSV text


def test_cells_of_a_csv_file_become_codes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    assert read_codes(path, SCHEMA)[0].tolist() == CODES


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_records_that_are_written_read_back_as_the_same_codes(tmp_path, name):
    codes = np.array(CODES * 50, dtype=np.uint16)
    records = SCHEMA.records(codes, Keyed(1).at("records"))
    assert records.schema == SCHEMA.dtypes
    write_table(tmp_path / name, [records[:7], records[7:]], SCHEMA)
    back, kind = read_codes(tmp_path / name, SCHEMA)
    assert np.array_equal(back, codes)
    assert kind.restore(records).equals(records)


def test_csv_has_decimals_formats_and_texts_as_declared(tmp_path):
    codes = np.array([CODES[0], CODES[2]], dtype=np.uint16)
    records = SCHEMA.records(codes, Keyed(1).at("records"))
    write_table(tmp_path / "t.csv", [records], SCHEMA)
    _, first, second = (tmp_path / "t.csv").read_text().splitlines()
    cells = first.split(",")
    assert cells[:3] == ["P0001", "low", "1.00"]
    assert cells[4] == "no"
    assert datetime.strptime(cells[5], "%d/%m/%Y").year == 1900
    assert cells[6:9] == ["2020-01-01T00:00:00", "fine", "PL"]
    assert len(cells[3].partition(".")[2]) == len(cells[10].partition(".")[2]) == 2
    cells = second.split(",")
    assert cells[:3] == ["P0002", "high", "1.50"]
    assert (cells[4], cells[5], cells[7]) == ("?", "", "ill")


def test_parquet_is_typed(tmp_path):
    records = SCHEMA.records(np.array(CODES, dtype=np.uint16), Keyed(1).at("records"))
    write_table(tmp_path / "t.parquet", [records], SCHEMA)
    types = pl.read_parquet(tmp_path / "t.parquet").schema
    assert types == {
        "id": pl.String,
        "level": pl.String,
        "height": pl.Float64,
        "pay": pl.Float64,
        "smokes": pl.Boolean,
        "born": pl.Date,
        "seen": pl.Datetime("us"),
        "note": pl.String,
        "country": pl.String,
        "visits": pl.Int64,
        "cost": pl.Float64,
    }


# Typed cells


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
        bins = "bins = { count = 9 }"
        schema = one(f'type = "real"\nmin = {ends[0]}\nmax = {ends[1]}\nstep = {step}\n{bins}')
        [attribute] = schema.attributes
        low, high = attribute.values[0], attribute.values[-1]
        positions = np.arange(low, high + 1, max(1, (high - low) // 3000))
        codes = np.searchsorted(attribute.starts, positions, side="right").astype(np.uint16) - 1
        frame = schema.codec.values(codes[:, None], positions[:, None])
        expected = [float(int(p) * Decimal(step)) for p in positions]
        assert frame["x"].to_list() == expected
        assert schema.codec.encode(frame)[:, 0].tolist() == codes.tolist()


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
    with pytest.raises(SchemaError, match=r"both a value and missing: 5\.2"):
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
    codes = schema.codec.encode(pl.DataFrame({"x": moments}))
    assert codes[:, 0].tolist() == [0, 0, 1, 11]
    write_table(tmp_path / "t.csv", [schema.records(codes)], schema)
    assert np.array_equal(read_codes(tmp_path / "t.csv", schema)[0], codes)


def test_times_of_a_zone_are_read_in_utc_and_come_back_in_their_zone():
    schema = one('type = "datetime"\nmin = 2020-06-01\nmax = 2020-06-30\nstep_seconds = 3600')
    cells = pl.Series("x", [datetime(2020, 6, 1, 2)]).dt.replace_time_zone("Europe/Warsaw")
    codes, kind = read_codes(cells.to_frame(), schema)
    assert codes.tolist() == [[0]]
    assert kind.restore(schema.records(codes))["x"].equals(cells)
    zoned = one(
        'type = "datetime"\nmin = 2020-06-01T00:00:00+00:00\nmax = 2020-06-30\n'
        'format = "%Y-%m-%d %H:%M:%S%z"'
    )
    assert zoned.codec.encode(pl.DataFrame({"x": ["2020-06-01 02:00:07+0200"]})).tolist() == [[0]]


def test_fractions_of_a_second_are_read_with_python_s_own_format(tmp_path):
    schema = one(
        'type = "datetime"\nmin = 2020-06-01\nmax = 2020-06-30\nformat = "%Y-%m-%d %H:%M:%S.%f"'
        "\nbins = { width = 86400 }"
    )
    path = tmp_path / "t.csv"
    path.write_text("x\n2020-06-02 12:00:00.123456\n")
    codes, _ = read_codes(path, schema)
    assert codes.tolist() == [[1]]
    write_table(path, [schema.records(codes, Keyed(3).at("records"))], schema)
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
    """Pandas makes text of a column of numbers in which some cell is "?"."""
    lines = 'type = "integer"\nmin = 0\nmax = 9\nmissing = ["?", "-8"]'
    assert codes_of(["5", " 7", "8.0", "?", None, "-8"], lines) == [5, 7, 8, 10, 10, 10]
    assert codes_of(["5", "7"], 'type = "categorical"\nvalues = [7, 5]', pl.Categorical) == [1, 0]


@pytest.mark.parametrize("count", [7, 1000])
def test_uneven_bins_are_found_in_a_large_table(count):
    """Streaming hands over parts of a column: each must be looked up in all edges."""
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
    codes = one(lines).codec.encode(cells)[:, 0]
    expected = np.searchsorted([0, *edges], numbers, side="right") - 1
    expected[numbers % 97 == 0] = len(edges) + 1
    assert np.array_equal(codes, expected)


# Faults


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


def test_drop_and_clip_serve_every_numeric_type(tmp_path):
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


# Values inside bins


def test_values_inside_a_bin_are_uniform():
    """Chi-square of 200,000 draws in a bin of 40 positions, at a false-alarm rate of 1e-6."""
    schema = one('type = "real"\nmin = 0\nmax = 9.9\ndecimals = 1\nbins = { edges = [3.0, 7.0] }')
    codes = np.full((200_000, 1), 1, dtype=np.uint16)
    drawn = schema.codec.positions(codes, Keyed(8).at("records"))[:, 0]
    assert (drawn.min(), drawn.max()) == (30, 69)
    assert stats.chisquare(np.bincount(drawn - 30)).pvalue > 1e-6
    one_more_often = np.append(drawn, np.full(500, 30))
    assert stats.chisquare(np.bincount(one_more_often - 30)).pvalue < 1e-6


def test_the_same_rng_gives_the_same_values_and_another_gives_others():
    codes = np.array(CODES * 20, dtype=np.uint16)
    first, again, other = (SCHEMA.records(codes, Keyed(k).at("records")) for k in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.select("level", "height", "smokes", "seen", "note").equals(
        other.select("level", "height", "smokes", "seen", "note")
    )


def test_without_rng_only_codes_of_single_values_are_decoded():
    with pytest.raises(InvariantError, match="give rng"):
        SCHEMA.codec.decode(np.array(CODES, dtype=np.uint16))
    single = one('type = "date"\nmin = 2020-01-01\nmax = 2020-12-31')
    decoded = single.codec.decode(np.array([[59]], dtype=np.uint16))
    assert decoded.rows() == [(date(2020, 2, 29),)]


def test_bins_wider_than_a_float_can_tell_stay_inside():
    schema = one(f'type = "integer"\nmin = 0\nmax = {2**62 - 1}\nbins = {{ count = 1 }}')
    drawn = schema.codec.positions(np.zeros((1000, 1), np.uint16), Keyed(1).at("records"))
    assert 0 <= drawn.min() < drawn.max() < 2**62

    class Last:
        def random(self, size):
            return np.full(size, 1 - 2.0**-53)

    last = schema.codec.positions(np.zeros((1, 1), np.uint16), Last())
    assert last[0, 0] <= 2**62 - 1


# Frames


def typed(convert):
    """The table of above as a frame of typed columns, without the record that is dropped."""
    rows = SCHEMA.records(np.array(CODES, dtype=np.uint16), Keyed(4).at("records"))
    return convert(rows)


@pytest.mark.parametrize(
    "convert", [pl.DataFrame.clone, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow]
)
def test_a_frame_comes_back_with_its_own_types(convert):
    frame = typed(convert)
    table = read_table(frame, SCHEMA)
    assert table.codes.tolist() == CODES
    records = SCHEMA.records(table.codes, Keyed(4).at("records"))
    back = table.kind.restore(records)
    if isinstance(frame, pl.DataFrame):
        assert back.equals(frame)
    elif isinstance(frame, pd.DataFrame):
        pd.testing.assert_frame_equal(back, frame)
    else:
        assert back.schema.types == frame.schema.types
        assert back.to_pylist() == frame.to_pylist()


def test_columns_come_back_in_the_order_of_the_input_and_absent_ones_after_them():
    frame = typed(pl.DataFrame.clone).drop("cost")
    frame = frame.select(reversed(frame.columns))
    _, kind = read_codes(frame, SCHEMA)
    back = kind.restore(typed(pl.DataFrame.clone))
    assert back.columns == [*frame.columns, "cost"]
    assert kind.restore(typed(pl.DataFrame.clone)).drop("cost").equals(frame)
    pandas = frame.to_pandas()
    _, kind = read_codes(pandas, SCHEMA)
    assert list(kind.restore(typed(pl.DataFrame.clone)).columns) == [*frame.columns, "cost"]
    _, kind = read_codes(frame.to_arrow(), SCHEMA)
    assert kind.restore(typed(pl.DataFrame.clone)).column_names == [*frame.columns, "cost"]


NARROW = {
    "real": ('type = "real"\nmin = 0\nmax = 9\ndecimals = 1\nmissing = [""]', 1.5),
    "whole real": ('type = "real"\nmin = 0\nmax = 9\ndecimals = 0\nmissing = [""]', 2.0),
    "boolean": ('type = "boolean"\nmissing = [""]', True),
    "date": ('type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nmissing = [""]', date(2020, 5, 1)),
    "datetime": (
        'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nstep_seconds = 86400\n'
        'missing = [""]',
        datetime(2020, 5, 1),
    ),
    "integer": ('type = "integer"\nmin = 0\nmax = 9\nmissing = [""]', 2),
}


@pytest.mark.parametrize(
    ("kind", "dtype", "back"),
    [
        ("real", pl.Float32, pl.Float32),
        ("real", pl.Decimal(8, 3), pl.Decimal(8, 3)),
        ("real", pl.Decimal(8, 0), pl.Float64),
        ("real", pl.String, pl.String),
        ("whole real", pl.Int16, pl.Int16),
        ("whole real", pl.Float64, pl.Float64),
        ("boolean", pl.String, pl.String),
        ("boolean", pl.UInt8, pl.UInt8),
        ("boolean", pl.Float64, pl.Float64),
        ("boolean", pl.Categorical, pl.Categorical),
        ("date", pl.Datetime("ms"), pl.Datetime("ms")),
        ("date", pl.String, pl.String),
        ("date", pl.Datetime("us", "Asia/Tokyo"), pl.Datetime("us", "Asia/Tokyo")),
        ("datetime", pl.Datetime("ns"), pl.Datetime("ns")),
        ("datetime", pl.Date, pl.Datetime("us")),
        ("integer", pl.Decimal(8, 2), pl.Decimal(8, 2)),
        ("integer", pl.String, pl.String),
        ("integer", pl.Enum(["2", "5"]), pl.String),
    ],
)
def test_a_type_comes_back_if_it_holds_every_value(kind, dtype, back):
    lines, value = NARROW[kind]
    schema = one(lines)
    natural = pl.DataFrame({"x": pl.Series([value, None], dtype=schema.dtypes["x"])})
    texts = {"boolean": "true", "integer": "2", "date": "2020-05-01", "real": "1.5"}
    cells = [texts[kind], None] if dtype in (pl.String, pl.Categorical, pl.Enum) else natural["x"]
    if isinstance(dtype, pl.Decimal) and dtype.scale == 0:
        cells = [Decimal(2), None]
    frame = pl.DataFrame({"x": pl.Series(cells).cast(dtype)})
    codes, frame_kind = read_codes(frame, schema)
    restored = frame_kind.restore(schema.records(codes))
    assert restored.dtypes == [back]
    if dtype == back:
        assert restored.equals(frame)


@pytest.mark.parametrize(
    ("kind", "series", "back"),
    [
        ("real", pd.Series([1.5, None]), "float64"),
        ("real", pd.Series([1.5, None], dtype="Float32"), "Float32"),
        ("real", pd.Series([1.5, None], dtype="double[pyarrow]"), "double[pyarrow]"),
        ("real", pd.Series(["1.5", None], dtype=object), "object"),
        ("whole real", pd.Series([2, 2]), "float64"),
        ("boolean", pd.Series([True, False]), "object"),
        ("boolean", pd.Series([True, None], dtype=object), "object"),
        ("boolean", pd.Series([True, None], dtype="boolean"), "boolean"),
        ("boolean", pd.Series([True, None], dtype="bool[pyarrow]"), "bool[pyarrow]"),
        ("boolean", pd.Series([1, 0]), "float64"),
        ("date", pd.Series([datetime(2020, 5, 1), None], dtype="datetime64[ns]"), "datetime64[ns]"),
        ("date", pd.Series([date(2020, 5, 1), None], dtype=object), "object"),
        ("date", pd.Series(["2020-05-01", None]), "str"),
        ("datetime", pd.Series([datetime(2020, 5, 1), None], dtype="datetime64[s]"), None),
        ("datetime", pd.Series([pd.Timestamp("2020-05-01", tz="UTC"), None]), None),
        ("integer", pd.Series([2, None], dtype="Int8"), "Int8"),
        ("integer", pd.Series([2, None]), "float64"),
        ("integer", pd.Series(["2", "5"]).astype("category"), "category"),
    ],
)
def test_a_pandas_column_comes_back_as_it_came(kind, series, back):
    schema = one(NARROW[kind][0])
    codes, frame_kind = read_codes(pd.DataFrame({"x": series}), schema)
    missing = np.array([[schema.sizes[0] - 1]], dtype=np.uint16)
    codes = np.concatenate([codes, missing])
    restored = frame_kind.restore(schema.records(codes))
    assert str(restored.dtypes["x"]) == (back or str(series.dtype))
    assert restored["x"].isna().tolist()[-1]
    again, _ = read_codes(restored, schema)
    assert np.array_equal(again, codes)


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("real", pa.array([1.5, None], pa.float32())),
        ("real", pa.array([Decimal("1.5"), None], pa.decimal128(10, 2))),
        ("boolean", pa.array([True, None])),
        ("date", pa.array([date(2020, 5, 1), None], pa.date32())),
        ("date", pa.array([date(2020, 5, 1), None], pa.date64())),
        ("datetime", pa.array([datetime(2020, 5, 1), None], pa.timestamp("s"))),
        ("datetime", pa.array([datetime(2020, 5, 1), None], pa.timestamp("us", "Asia/Tokyo"))),
        ("date", pa.array(["2020-05-01", None], pa.large_string())),
        ("integer", pa.array([2, None], pa.int8())),
    ],
)
def test_an_arrow_column_comes_back_as_it_came(kind, array):
    schema = one(NARROW[kind][0])
    table = pa.table({"x": array})
    codes, frame_kind = read_codes(table, schema)
    restored = frame_kind.restore(schema.records(codes))
    assert restored.schema.field("x").type == array.type
    again, _ = read_codes(restored, schema)
    assert np.array_equal(again, codes)


# Bins by digits


@pytest.mark.parametrize(("low", "high"), [(0, 999), (-350, 12_345), (7, 7), (-99, -3), (0, 10**6)])
@pytest.mark.parametrize("digits", [1, 2, 3])
def test_numbers_that_begin_with_the_same_digits_share_a_bin(low, high, digits):
    """Against the definition: the number with all but its first digits made zero."""

    def first_digits(number):
        text = str(abs(number))
        cut = text[:digits] + "0" * (len(text) - digits)
        return (number < 0, int(cut))

    starts = digit_starts(range(low, high + 1), digits)
    assert starts[0] == low
    some = sorted(
        {*range(low, min(high, low + 3_000) + 1), *range(max(low, high - 3_000), high + 1)}
    )
    bins = np.searchsorted(starts, some, side="right")
    for (one, two), (a, b) in zip(pairwise(some), pairwise(bins), strict=True):
        if two == one + 1:
            assert (a == b) == (first_digits(one) == first_digits(two))


def test_bins_by_digits_are_written_as_they_were_said():
    text = 'name = "n"\ntype = "real"\nmin = -5\nmax = 90000\ndecimals = 2\nbins = { digits = 2 }'
    schema = Schema.parse(f"format = 1\n[[attribute]]\n{text}")
    assert "bins = { digits = 2 }" in schema.text()
    assert Schema.parse(schema.text()) == schema
    with pytest.raises(SchemaError, match="digits is 1, 2 or 3"):
        Schema.parse(f"format = 1\n[[attribute]]\n{text.replace('digits = 2', 'digits = 9')}")
