"""Type inference: each rule, with cells that it must not catch."""

import datetime as dt

import polars as pl
import pytest

from drafted_columns import draft_column, fields_of


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["yes", "no"] * 50, "boolean"),
        (["0", "1"] * 50, "boolean"),
        (["TRUE", "FALSE", ""] * 50, "boolean"),
        (["yes", "no", "unknown"] * 50, "categorical"),
        (["1", "2"] * 50, "integer"),
        (["5.0", "6.0", "NA"] * 50, "real"),
        (["5.0", "6", "NA"] * 50, "integer"),
        (["5", "7", "NA"] * 50, "ordered"),
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
def test_the_type_of_text_cells_is_inferred(cells, kind):
    assert draft_column(cells).kind == kind


@pytest.mark.parametrize(
    ("dtype", "cells", "kind"),
    [
        (pl.Boolean, [True, False, None] * 20, "boolean"),
        (pl.Int8, [0, 1] * 20, "integer"),
        (pl.Float64, [1.0, 2.0, float("nan")] * 20, "integer"),
        (pl.Float64, [1.5, 2.0, None] * 20, "real"),
        (pl.Float64, [1.0, 2.0**53] * 20, "identifier"),
        (pl.Int64, [1, 2**53] * 20, "ordered"),
        (pl.Decimal(10, 2), ["1.50", "2.25"] * 20, "real"),
        (pl.Date, [dt.date(2020, 1, 1), dt.date(2021, 5, 5)] * 20, "date"),
        (pl.Datetime("ms"), [dt.datetime(2020, 1, 1, 5), None] * 20, "datetime"),
        (pl.Categorical, ["a", "b"] * 20, "categorical"),
        (pl.List(pl.Int64), [[1], [2]] * 20, "identifier"),
        (pl.Null, [None] * 20, "constant"),
    ],
)
def test_a_typed_column_keeps_its_type(dtype, cells, kind):
    assert draft_column(cells, dtype=dtype).kind == kind


def test_none_is_a_value_if_another_text_means_missing():
    both = draft_column(["None", "", "cat", "dog"] * 30)
    assert "None" in fields_of(both)["values"]
    assert fields_of(both)["missing"] == [""]
    assert fields_of(draft_column(["None", "cat", "dog"] * 30))["missing"] == ["None"]
