"""What a column is taken for, from its cells; each rule with what it must not catch."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from deniable.data.schema import Schema
from deniable.drafting.attributes import Described
from deniable.drafting.columns import open_table
from deniable.drafting.kinds import guess
from deniable.drafting.lines import write_attribute

RNG = np.random.default_rng(4)


def draft(cells, name="column", dtype=None) -> Described:
    frame = pl.DataFrame({name: pl.Series(cells, dtype=dtype)})
    return guess(open_table(frame).read()[0]).described


def fields(described: Described) -> dict:
    return {field.key: field.value for field in described.fields}


def said(described: Described) -> str:
    return " ".join(described.notes)


def many(values, n=200):
    return [str(value) for value in RNG.choice(values, n)]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["yes", "no"] * 50, "boolean"),
        (["0", "1"] * 50, "boolean"),
        (["TRUE", "FALSE", ""] * 50, "boolean"),
        (["yes", "no", "unknown"] * 50, "categorical"),
        (["1", "2"] * 50, "integer"),
        (["5.0", "7.0", "NA"] * 50, "real"),
        (["5.0", "7", "NA"] * 50, "integer"),
        (["1.5", "2", "3.25"] * 50, "real"),
        (["007", "123", "044"] * 50, "categorical"),
        (["oak", "elm", "ash"] * 50, "categorical"),
        (["16-24", "25-34", "65+"] * 50, "ordered"),
        (["A11", "A12", "A13"] * 50, "categorical"),
        (["01-01301", "06-07502", "08-00803"] * 50, "categorical"),
        (["oak"] * 50, "constant"),
        (["oak"] * 5, "categorical"),
        (["2020-01-31", "2021-02-28"] * 50, "date"),
        (["31/12/2020", "01/02/2021"] * 50, "date"),
        (["2020-01-31 10:00", "2021-02-28 11:30"] * 50, "datetime"),
        (["2020-01-31", "soon"] * 50, "categorical"),
    ],
)
def test_text_is_taken_for_what_it_says(cells, kind):
    assert draft(cells).kind == kind


@pytest.mark.parametrize(
    ("dtype", "cells", "kind"),
    [
        (pl.Boolean, [True, False, None] * 20, "boolean"),
        (pl.Int8, [0, 1] * 20, "integer"),
        (pl.Float64, [1.0, 2.0, float("nan")] * 20, "integer"),
        (pl.Float64, [1.5, 2.0, None] * 20, "real"),
        (pl.Decimal(10, 2), ["1.50", "2.25"] * 20, "real"),
        (pl.Date, [dt.date(2020, 1, 1), dt.date(2021, 5, 5)] * 20, "date"),
        (pl.Datetime("ms"), [dt.datetime(2020, 1, 1, 5), None] * 20, "datetime"),
        (pl.Categorical, ["a", "b"] * 20, "categorical"),
        (pl.List(pl.Int64), [[1], [2]] * 20, "identifier"),
        (pl.Null, [None] * 20, "constant"),
    ],
)
def test_a_typed_column_is_taken_for_its_type(dtype, cells, kind):
    assert draft(cells, dtype=dtype).kind == kind


def test_bounds_of_a_wide_range_are_rounded_outward_and_said_to_be():
    found = draft([str(n) for n in range(17, 91)] * 3)
    assert (fields(found)["min"], fields(found)["max"]) == (15, 90)
    whys = {field.key: field.why for field in found.fields}
    assert "rounded outward" in whys["min"]
    assert fields(found)["buckets"] == {"width": 10}


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (["-8", *map(str, range(30))] * 9, ["-8"]),
        (["-8", "-9", "", *map(str, range(30))] * 9, ["", "-8", "-9"]),
        (["999", *map(str, range(30))] * 9, ["999"]),
        (["99", *map(str, range(30))] * 9, ["99"]),
        (["N", *map(str, range(30))] * 9, ["N"]),
        (["99", *map(str, range(90))] * 9, None),
        (["-8", *map(str, range(-20, 30))] * 9, None),
        (["-1", *map(str, range(30))] * 9, None),
    ],
)
def test_a_code_means_missing_where_it_lies_apart(cells, missing):
    found = draft(cells)
    assert found.kind == "integer"
    assert fields(found).get("missing") == missing
    if missing:
        assert "mean missing" in said(found) or missing == [""]


def test_what_may_mean_missing_is_left_to_decide():
    assert "-1" in said(draft(["-1", *map(str, range(30))] * 9))
    assert "99" in said(draft([*map(str, range(90)), *["99"] * 40]))


def test_bounds_never_reach_a_number_that_means_missing():
    found = draft(["99", *map(str, range(48))] * 9)
    assert fields(found)["max"] < 99
    assert fields(draft(["-8", *map(str, range(3, 80))] * 9))["min"] > -8


def test_a_word_for_nothing_is_a_value_where_something_else_means_missing():
    both = draft(["None", "", "cat", "dog"] * 30)
    assert "None" in fields(both)["values"]
    assert fields(both)["missing"] == [""]
    assert fields(draft(["None", "cat", "dog"] * 30))["missing"] == ["None"]


def test_two_formats_that_both_fit_are_left_to_decide():
    found = draft(["01/02/2020", "03/04/2021"] * 30)
    assert fields(found)["format"] == "%d/%m/%Y"
    assert "%m/%d/%Y" in said(found)
    assert "two formats" not in said(draft(["13/02/2020", "03/04/2021"] * 30))


def test_dates_are_rounded_to_years_or_months():
    found = fields(draft(["2001-05-03", "2019-07-04"] * 30))
    assert (found["min"], found["max"]) == (dt.date(2001, 1, 1), dt.date(2019, 12, 31))
    found = fields(draft(["2019-02-03", "2019-12-04"] * 30))
    assert (found["min"], found["max"]) == (dt.date(2019, 2, 1), dt.date(2019, 12, 31))


def test_money_has_bins_that_grow_and_zero_alone():
    cells = [*["0"] * 300, *(str(int(x)) for x in RNG.lognormal(8, 2, 700))]
    found = draft(cells)
    assert fields(found)["bins"] == {"digits": 2}
    (column,) = Schema.parse(f"format = 1\n{write_attribute(found)}").attributes
    widths = np.diff(column.starts)
    assert {0, 1} <= set(column.starts)
    assert widths[-2] > 100 * widths[2]
    assert any("clip" in remark for remark in found.remarks)


def test_numbers_with_many_decimals_are_cut_and_that_is_said():
    found = draft([repr(float(x)) for x in RNG.normal(25, 4, 500)])
    assert found.kind == "real"
    assert fields(found)["decimals"] == 2
    assert "decimals" in said(found)


def test_the_noise_of_doubles_is_no_decimals():
    assert fields(draft([repr(0.1 + 0.2), "0.5", "0.7"] * 30))["decimals"] == 1


def test_few_numbers_far_apart_are_a_list():
    found = draft(["93.994", "93.2", "5191.25", "4963.5"] * 40)
    assert found.kind == "ordered"
    assert fields(found)["values"] == ["93.2", "93.994", "4963.5", "5191.25"]


def test_numbers_that_look_like_codes_are_values_and_amounts_are_not():
    codes = RNG.choice(np.arange(1000, 9900, 70), 5000)
    assert draft(codes).kind == "categorical"
    amounts = RNG.choice(np.round(RNG.lognormal(7, 1.5, 120)).astype(int), 5000)
    assert draft(amounts).kind == "integer"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("id", [str(x) for x in RNG.choice(10**6, 100, replace=False)]),
        ("row", [str(x) for x in range(1000, 1100)]),
        ("reference", [f"K-{x:06d}" for x in RNG.choice(10**6, 100, replace=False)]),
        ("customerId", [f"c{x}" for x in range(100)]),
    ],
)
def test_what_names_a_row_is_an_identifier(name, cells):
    found = draft(cells, name)
    assert found.kind == "identifier"
    assert "identifier" in said(found)
    assert not found.is_learnt


@pytest.mark.parametrize("make", ["{}", "K{:06d}"])
@pytest.mark.parametrize("each", [1, 3])
def test_an_identifier_that_is_often_empty_is_said_to_be_filled(make, each):
    cells = [make.format(x) for x in range(1_000, 1_100)] * each
    full = draft(cells, "reply_id")
    gaps = draft([*cells, *[""] * 7 * len(cells)], "reply_id")
    assert (full.kind, gaps.kind) == ("identifier", "identifier")
    assert "empty" not in said(full)
    assert "88% of its cells are empty, and every record will have one" in said(gaps)


def test_an_identifier_looks_like_the_old_ones():
    assert fields(draft([f"P{x:05d}" for x in range(100)], "id"))["format"] == "P{:05d}"
    uuids = [f"{x:08x}-0000-4000-8000-{x:012x}" for x in range(100)]
    assert fields(draft(uuids))["format"] == "uuid"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("income", [str(x) for x in RNG.choice(10**5, 100, replace=False)]),
        ("region_id", many(range(10))),
        ("postcode", [f"{x:05d}" for x in RNG.integers(500, 600, 300)]),
        ("x", [str(x) for x in RNG.normal(size=100)]),
    ],
)
def test_what_measures_is_no_identifier(name, cells):
    assert draft(cells, name).is_learnt


@pytest.mark.parametrize(
    ("name", "persons", "rows"),
    [("patient_id", 150, 400), ("patient", 400, 1_600), ("x", 400, 1_600)],
)
def test_several_rows_of_a_person_are_noticed(name, persons, rows):
    found = draft([f"P{x:05d}" for x in RNG.integers(0, persons, rows)], name)
    assert found.kind == "identifier"
    assert "unit" in said(found)


def test_a_few_busy_codes_of_several_makes_are_no_persons():
    """Numbers of courses: some have a letter before or behind, and a few are given everywhere."""
    one_each = [form.format(x) for x in range(1, 200) for form in ("{}", "{}A", "M{}", "C{}BL")]
    found = draft([*one_each, *["199"] * 60, *["596"] * 60], "course_num")
    assert found.kind == "text"
    assert fields(found)["values"] == ["199", "596"]
    alike = [f"K{x}" for x in range(1, 800)]
    assert "unit" in said(draft([*alike, *["K7"] * 60, *["K596"] * 60], "reference"))


def clock(seconds) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


@pytest.mark.parametrize("rows", [100, 20_000])
def test_times_of_day_name_nobody(rows):
    """Unique, or with several rows each: too many to list, so they are left out."""
    found = draft([clock(x) for x in RNG.integers(0, 86_400, rows)], "time")
    assert fields(found) == {"release": "omit"}
    assert "times of day" in said(found)
    assert "unit" not in said(found)


def test_times_that_are_coarse_enough_are_values():
    cells = [f"{x // 4:02d}:{15 * (x % 4):02d}" for x in RNG.integers(0, 96, 3_000)]
    found = draft(cells)
    assert found.kind == "categorical"
    assert fields(found)["values"] == sorted(set(cells))
    assert draft([f"{x}:99" for x in range(100, 300)], "slot").kind == "identifier"


def test_free_text_keeps_the_frequent_or_is_left_out():
    opinions = [f"it was {x} days until somebody called back" for x in range(300)]
    assert fields(draft(opinions))["release"] == "omit"
    mixed = draft([*opinions, *["no comment"] * 100])
    assert mixed.kind == "text"
    assert fields(mixed)["values"] == ["no comment"]
    assert fields(mixed)["other"] == "other"


def test_the_word_for_the_rest_is_none_of_the_values():
    opinions = [f"opinion number {x}" for x in range(300)]
    assert fields(draft([*opinions, *["other"] * 100]))["other"] == "(other)"


def test_many_values_have_no_buckets_and_rare_ones_are_counted_not_named():
    found = draft([*many([f"town {c}" for c in range(60)], 6000), "hamlet"])
    assert "buckets" not in fields(found)
    assert "60" in said(found) or "61" in said(found)
    assert "1 of its" in said(found)
    assert "hamlet" not in said(found)


def test_whole_numbers_with_a_point_are_written_so_again():
    described = draft(["5.0", "7.0", "12.0", "NA"] * 50)
    schema = Schema.parse(f"format = 1\n{write_attribute(described)}")
    assert (described.kind, str(fields(described)["step"])) == ("real", "1.0")
    assert schema.attributes[0].unit.decimals == 1
    assert schema.attributes[0].bins == 8
    assert draft(["5.00", "7.00", "12.00"] * 50).kind == "integer"


def incomes(rows, step):
    wage = RNG.lognormal(10, 0.8, rows).astype(np.int64) + 100
    return np.where(RNG.random(rows) < 0.6, wage - wage % step, wage).tolist()


@pytest.mark.parametrize(
    ("rows", "step", "heaps"),
    [(12_000, 1_000, [1_000]), (12_000, 100, [100]), (12_000, 1, None), (9_000, 1_000, None)],
)
def test_numbers_that_crowd_at_multiples_have_heaps_where_rows_are_enough(rows, step, heaps):
    found = fields(draft(incomes(rows, step), "wage")).get("heaps")
    assert (found and [n for n in found if n >= 100]) == heaps


@pytest.mark.parametrize(("each", "apart"), [(24, True), (18, False)])
def test_rates_that_many_rows_share_have_bins_of_their_own(each, apart):
    """60 rates, and 300 numbers that one row has each: of these none is an edge."""
    rates = np.sort(RNG.choice(np.arange(1_000, 50_000, 7), 60, replace=False))
    others = RNG.choice(np.arange(1_003, 50_000, 7), 300, replace=False)
    cells = [f"{cell / 1_000:.3f}" for cell in [*np.repeat(rates, each), *others]]
    described = draft(cells)
    [attribute] = Schema.parse(f"format = 1\n{write_attribute(described)}").attributes
    alone = {attribute.positions(code)[0] for code in np.flatnonzero(attribute.widths == 1)}
    assert described.kind == "real"
    assert not alone & set(others.tolist())
    assert alone >= set(rates.tolist()) if apart else not alone & set(rates.tolist())


def test_a_column_that_is_dense_has_even_bins_however_many_rows_share_a_number():
    cells = np.repeat(np.arange(100, 2_100), 110).tolist()
    assert "edges" not in fields(draft(cells)).get("bins", {})


def test_too_many_shared_numbers_for_a_list_of_edges_have_even_bins():
    many = [f"{place / 1_000:.3f}" for place in np.repeat(1_000 + 37 * np.arange(1_200), 25)]
    assert "edges" not in fields(draft(many))["bins"]
    assert "edges" in fields(draft(many[: 25 * 900]))["bins"]


def test_spikes_of_a_skewed_column_stand_alone_among_first_digits():
    tail = (RNG.lognormal(9, 1, 400).astype(np.int64) + 1_000).tolist()
    cells = [0] * 5_000 + [15_024] * 300 + [7_688] * 150 + tail
    [attribute] = Schema.parse(f"format = 1\n{write_attribute(draft(cells))}").attributes
    alone = {attribute.positions(code)[0] for code in np.flatnonzero(attribute.widths == 1)}
    assert {0, 7_688, 15_024} <= alone
    assert not {n for n in alone if n >= 100} - {7_688, 15_024}
