"""Numeric columns: bounds, codes for missing, lists, bins, heaping and spikes."""

import numpy as np
import pytest

from drafted_columns import draft_column, fields_of, notes_of, parse_column, single_position_bins

RNG = np.random.default_rng(4)


def test_bounds_of_a_wide_range_are_rounded_outward_with_a_comment():
    found = draft_column([str(n) for n in range(17, 91)] * 3)
    assert (fields_of(found)["min"], fields_of(found)["max"]) == (15, 90)
    comments = {field.key: field.comment for field in found.fields}
    assert "rounded outward" in comments["min"]


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
def test_a_code_that_stands_out_means_missing(cells, missing):
    found = draft_column(cells)
    assert found.kind == "integer"
    assert fields_of(found).get("missing") == missing
    if missing:
        assert "mean missing" in notes_of(found) or missing == [""]


def test_a_doubtful_code_gets_a_note():
    assert "99" in notes_of(draft_column([*map(str, range(90)), *["99"] * 40]))


def test_bounds_never_reach_a_number_that_means_missing():
    found = draft_column(["99", *map(str, range(48))] * 9)
    assert fields_of(found)["max"] < 99
    assert fields_of(draft_column(["-8", *map(str, range(3, 80))] * 9))["min"] > -8


def test_money_has_growing_bins_and_a_bin_for_zero():
    cells = [*["0"] * 300, *(str(int(x)) for x in RNG.lognormal(8, 2, 700))]
    found = draft_column(cells)
    assert fields_of(found)["bins"] == {"digits": 2}
    column = parse_column(found)
    widths = np.diff(column.starts)
    assert {0, 1} <= set(column.starts)
    assert widths[-2] > 100 * widths[2]
    assert any("clip" in remark for remark in found.remarks)


def test_numbers_with_many_decimals_are_rounded_with_a_note():
    found = draft_column([repr(float(x)) for x in RNG.normal(25, 4, 500)])
    assert found.kind == "real"
    assert fields_of(found)["decimals"] == 2
    assert "decimals" in notes_of(found)


def test_rounding_errors_of_doubles_are_not_decimals():
    assert fields_of(draft_column([repr(0.1 + 0.2), "0.5", "0.7"] * 30))["decimals"] == 1


@pytest.mark.parametrize("rows", [40, 4_000])
def test_numbers_with_decimals_are_a_range_however_few_and_far_apart_they_are(rows):
    found = draft_column(["93.994", "93.2", "5191.25", "4963.5"] * rows)
    assert found.kind == "real"
    assert fields_of(found)["decimals"] == 3
    assert {93_200, 93_994, 4_963_500, 5_191_250} <= single_position_bins(parse_column(found))


def test_many_numbers_far_apart_are_codes_and_amounts_a_range():
    codes = RNG.choice(np.unique(RNG.integers(1_000, 9_900, 130)), 8_000)
    found = draft_column(codes)
    assert found.kind == "ordered"
    assert "categorical" in notes_of(found)
    assert parse_column(found).size == len(np.unique(codes))
    limits = RNG.choice(np.arange(1_000, 9_900, 70), 5_000)
    assert draft_column(limits).kind == "integer"
    fields = fields_of(draft_column([str(x) for x in limits]))
    assert (fields["min"], fields["max"], fields["step"]) == (1_000, 10_000, 10)
    amounts = RNG.choice(np.round(RNG.lognormal(7, 1.5, 120)).astype(int), 5_000)
    assert draft_column(amounts).kind == "integer"


def test_a_long_list_of_codes_has_no_rare_ones():
    """They become one text if the header says that they are codes; else the column is a range."""
    codes = np.unique(RNG.integers(10_000, 99_000, 300))
    cells = [*np.repeat(codes[:190], 40), *codes[190:]]
    found = draft_column([str(x) for x in cells], "zip code")
    assert (found.kind, fields_of(found)["other"]) == ("text", "other")
    assert fields_of(found)["values"] == [str(code) for code in codes[:190]]
    assert draft_column(cells, "zip code").kind == "integer"
    assert draft_column([str(x) for x in cells], "industry").kind == "integer"


@pytest.mark.parametrize("name", ["cd4", "cd40_count", "zip"])
@pytest.mark.parametrize("rows", [150, 2_000, 400_000])
def test_counts_of_cells_are_no_codes_whatever_their_header(name, rows):
    counts = RNG.integers(0, 900 if rows > 150 else 40, rows)
    assert draft_column([str(x) for x in counts], name).kind == "integer"


def test_a_few_amounts_of_few_people_are_no_list():
    """A loss that few people have: 0 in most rows, 40 other numbers in a row or two each."""
    amounts = RNG.choice(np.arange(200, 4_000), 40, replace=False)
    assert draft_column([*np.zeros(3_000, dtype=int), *amounts, *amounts]).kind == "integer"


def test_a_header_alone_lists_no_rare_number():
    ages = [*range(1, 14)] * 20
    assert draft_column([str(x) for x in ages], "occ_code").kind == "ordered"
    assert draft_column([str(x) for x in [*ages, 14]], "occ_code").kind == "integer"


def test_many_numbers_on_a_grid_are_a_range_with_a_step_below_a_code_for_missing():
    cells = [str(x) for x in RNG.choice(np.arange(0, 1_001, 5), 4_000)]
    found = fields_of(draft_column(cells))
    assert (found["min"], found["max"], found["step"]) == (0, 1_000, 5)
    assert parse_column(draft_column(cells)).size == 201
    few = [str(x) for x in RNG.choice(np.arange(0, 381, 4), 4_000)]
    assert fields_of(draft_column([*few, "-8", "-8"]))["missing"] == ["-8"]
    parse_column(draft_column([*few, "-8", "-8"]))


@pytest.mark.parametrize("numbers", [np.arange(0, 361, 10), np.arange(1978, 2013, 2)])
def test_whole_numbers_on_a_coarse_grid_are_a_list(numbers):
    """Wind directions in tens of degrees, every other year."""
    found = draft_column([str(x) for x in RNG.choice(numbers, 2000)])
    assert found.kind == "ordered"
    assert parse_column(found).size == len(numbers)


@pytest.mark.parametrize(
    ("numbers", "size"), [(np.arange(0, 5, 0.25), 20), (np.arange(-7, 7, 0.5), 28)]
)
def test_decimals_on_a_coarse_grid_are_a_range_with_its_step(numbers, size):
    """Quarters of an hour: a range of hundredths would have other numbers between them."""
    cells = RNG.choice(numbers, 2000)
    for found in (draft_column([str(x) for x in cells]), draft_column(cells)):
        attribute = parse_column(found)
        assert (found.kind, attribute.size) == ("real", size)
        assert float(attribute.grid.step) == numbers[1] - numbers[0]
    apart = draft_column([str(x) for x in cells + 0.1])
    assert fields_of(apart)["decimals"] == (2 if size == 20 else 1), "steps are counted from 0"


@pytest.mark.parametrize(
    "numbers", [[0, 1, 2], np.arange(0, 1001), [*range(0, 230, 10), 57], [*range(21), 40]]
)
def test_other_numbers_are_a_range(numbers):
    assert draft_column([str(x) for x in RNG.choice(numbers, 4000)]).kind == "integer"


@pytest.mark.parametrize("numbers", [[-1, 1], [0, 2, 4], [1, 2, 3, 9], [0, 30, 60, 90, 600]])
def test_frequent_codes_with_gaps_are_a_list(numbers):
    """A range would have other numbers between them, in a few records."""
    found = draft_column([str(x) for x in RNG.choice(numbers, 4000)])
    assert fields_of(found)["values"] == numbers
    # A gap after a rare number may be chance: how many visits someone made.
    rare = [str(x) for x in [*RNG.choice([0, 1, 2], 4000), *[5] * 19]]
    assert draft_column(rare).kind == "integer"


def test_numbers_of_a_column_of_codes_have_no_order():
    found = draft_column(RNG.choice(np.arange(1000, 9900, 70), 5000), name="zip code")
    assert found.kind == "categorical"
    assert "official list" in notes_of(found)


def test_a_list_of_integers_with_a_decimal_point_keeps_it():
    draft = draft_column(["162000.0", "85000.0", "1200.0"] * 100)
    assert draft.kind == "ordered"
    assert fields_of(draft)["values"] == ["1200.0", "85000.0", "162000.0"]


def test_integers_with_a_decimal_point_keep_it():
    draft = draft_column([*(f"{x}.0" for x in range(5, 13)), "NA"] * 50)
    attribute = parse_column(draft)
    assert (draft.kind, str(fields_of(draft)["step"])) == ("real", "1.0")
    assert attribute.grid.decimals == 1
    assert attribute.bins == 8
    assert draft_column(["5.00", "6.00", "7.00"] * 50).kind == "integer"


def incomes(rows, step):
    wage = RNG.lognormal(10, 0.8, rows).astype(np.int64) + 100
    return np.where(RNG.random(rows) < 0.6, wage - wage % step, wage).tolist()


@pytest.mark.parametrize(
    ("rows", "step", "heaps"),
    [(12_000, 1_000, [1_000]), (12_000, 100, [100]), (12_000, 1, None), (9_000, 1_000, None)],
)
def test_heaping_is_found_if_there_are_enough_rows(rows, step, heaps):
    found = fields_of(draft_column(incomes(rows, step), "wage")).get("heaps")
    assert (found and [n for n in found if n >= 100]) == heaps


@pytest.mark.parametrize(("each", "apart"), [(24, True), (18, False)])
def test_spikes_have_bins_of_their_own(each, apart):
    """60 rates of many rows, and 300 numbers of one row, which are never edges."""
    rates = np.sort(RNG.choice(np.arange(1_000, 50_000, 7), 60, replace=False))
    others = RNG.choice(np.arange(1_003, 50_000, 7), 300, replace=False)
    cells = [f"{cell / 1_000:.3f}" for cell in [*np.repeat(rates, each), *others]]
    draft = draft_column(cells)
    attribute = parse_column(draft)
    alone = single_position_bins(attribute)
    assert draft.kind == "real"
    assert not alone & set(others.tolist())
    assert alone >= set(rates.tolist()) if apart else not alone & set(rates.tolist())


def test_a_dense_column_has_even_bins_however_many_rows_a_number_has():
    cells = np.repeat(np.arange(100, 2_100), 110).tolist()
    assert "edges" not in fields_of(draft_column(cells)).get("bins", {})


def test_too_many_spikes_for_a_list_of_edges_have_even_bins():
    many = [f"{place / 1_000:.3f}" for place in np.repeat(1_000 + 37 * np.arange(1_200), 25)]
    assert "edges" not in fields_of(draft_column(many))["bins"]
    assert "edges" in fields_of(draft_column(many[: 25 * 900]))["bins"]


def test_spikes_of_a_skewed_column_have_bins_among_leading_digits():
    tail = (RNG.lognormal(9, 1, 400).astype(np.int64) + 1_000).tolist()
    cells = [0] * 5_000 + [15_024] * 300 + [7_688] * 150 + tail
    attribute = parse_column(draft_column(cells))
    alone = single_position_bins(attribute)
    assert {0, 7_688, 15_024} <= alone
    assert not {n for n in alone if n >= 100} - {7_688, 15_024}


def rates(zeros, others=3_000):
    """A rate that few people have: mostly 0, else anything up to 500 in thousandths."""
    values = RNG.integers(1, 500_000, others) / 1_000
    return [0.0] * zeros + values.tolist()


def test_a_number_that_fills_its_bin_is_alone_in_it():
    """Spread over a bin from 0 to 0.5, its rows would become numbers that are nearly 0."""
    draft = draft_column(rates(zeros=200))
    assert fields_of(draft)["bins"]["alone"] == [0.0]
    assert single_position_bins(parse_column(draft)) == {0, 500_000}, "the last bin is what is left"


@pytest.mark.parametrize(("zeros", "others"), [(10, 300), (20, 3_000), (3, 3_000)])
def test_a_number_of_few_rows_is_not_alone(zeros, others):
    """Less than 20 rows; less than 2 % of all rows."""
    assert "alone" not in fields_of(draft_column(rates(zeros, others)))["bins"]


def test_a_number_that_is_as_frequent_as_its_neighbours_is_not_alone():
    """One in 40 rows has it, and as many have other numbers of its bin each."""
    cells = [0.0, 0.001, 0.002] * 300 + rates(zeros=0, others=9_000)
    assert "alone" not in fields_of(draft_column(cells))["bins"]
