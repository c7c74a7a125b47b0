"""Means and quantiles: exact without noise, bounds within bins, at least the stated coverage."""

import numpy as np
import pytest

from chance import assert_rate
from deniable.answers.number_summaries import QUANTILES
from deniable.answers.query import ask_question, choose_cells, summarize_question
from toy_artefacts import SCHEMA, many, toy_artefact, toy_codes

PRICE = SCHEMA.attributes[3]


def prices(where=slice(None)):
    codes = toy_codes()[where, 3]
    return codes[codes < 12] + 1.0


def expected(values):
    found = {"mean": values.mean()}
    for q in QUANTILES:
        found[f"quantile {q:g}"] = np.quantile(values, q, method="inverted_cdf")
    return found


def summaries(artefact, columns, **more):
    question = ask_question(artefact, columns, **more)
    tables, cells = choose_cells(question)
    return summarize_question(question, tables, cells)


def test_without_noise_means_and_quantiles_are_those_of_the_table():
    """Missing cells are left out."""
    exact = toy_artefact(epsilon=float("inf"))
    for each in summaries(exact, "price"):
        truth = expected(prices())[each.statistic]
        assert each.value.low == pytest.approx(truth, abs=1e-3)
        assert each.value.high == pytest.approx(truth, abs=1e-3)
        assert each.note == ""


def test_by_another_column_too():
    exact = toy_artefact(epsilon=float("inf"))
    found = summaries(exact, ["sold", "price"], by={"sold": "values"})
    assert [each.group for each in found] == ["no"] * 4 + ["yes"] * 4
    for each in found:
        truth = expected(prices(toy_codes()[:, 2] == (each.group == "yes")))[each.statistic]
        assert each.value.low <= truth + 1e-3
        assert each.value.high >= truth - 1e-3
        assert each.value.high - each.value.low < 0.01


def test_a_condition_on_the_column_itself_restricts_it():
    exact = toy_artefact(epsilon=float("inf"))
    values = prices()
    (mean, *_) = summaries(exact, "price", where="price >= 4")
    assert mean.value.estimate == pytest.approx(values[values >= 4].mean(), abs=1e-3)


@pytest.mark.untraced
@pytest.mark.slow
@pytest.mark.parametrize("columns", ["size", "price", ["sold", "size"]])
def test_intervals_cover_at_least_as_often_as_stated(columns):
    """120 artefacts; a false alarm of 1e-6 for each of the statistics."""
    names = [columns] if isinstance(columns, str) else columns
    at = SCHEMA.names.index(names[-1])
    codes = toy_codes()
    hits: dict[str, int] = {}
    for artefact in many(300)[:120]:
        for each in summaries(artefact, columns)[:4]:
            rows = codes if not each.group else codes[codes[:, 2] == (each.group == "yes")]
            values = rows[:, at].astype(float)
            values = values + 1 if names[-1] == "price" else values
            values = values[values < 13] if names[-1] == "price" else values
            truth = expected(values)[each.statistic]
            hits.setdefault(each.statistic, 0)
            hits[each.statistic] += each.value.low <= truth <= each.value.high
    for covered in hits.values():
        # Fewer than 95 % is a failure, more is not: bounds within bins are wider.
        assert_rate(min(covered, 114), 120, 0.95)


def test_what_noise_swamps_says_so():
    noisy = toy_artefact(epsilon=0.01)
    notes = {each.note for each in summaries(noisy, "size")}
    assert "swamped by noise" in notes
