"""Answers of the model alone: marked, without intervals, the same every time."""

import math

import numpy as np
import pytest

from deniable.answers.cell_bands import make_bands
from deniable.answers.model_answer import MODEL_ONLY, draw_model, model_cells, own_allowed
from toy_artefacts import SCHEMA, toy_artefact, toy_codes


def values_of(*columns):
    return [make_bands(SCHEMA.attributes[column], "values", {}) for column in columns]


def test_three_columns_are_counted_in_the_models_records():
    artefact = toy_artefact()
    total, cells = model_cells(artefact, [1, 2], values_of(1, 2), {}, rows=800.0)
    assert total.estimate == pytest.approx(800)
    codes = draw_model(artefact)
    both = np.mean((codes[:, 1] == 0) & (codes[:, 2] == 0))
    assert cells[0].share.estimate == pytest.approx(both)
    assert cells[0].count.estimate == pytest.approx(800 * both)
    assert cells[0].within.estimate == pytest.approx(both / np.mean(codes[:, 1] == 0))
    for cell in cells:
        assert cell.note == MODEL_ONLY
        assert math.isnan(cell.count.low)
        assert math.isnan(cell.share.high)


def test_a_condition_weighs_the_records():
    shares = np.zeros(SCHEMA.attributes[0].size)
    shares[:10] = 1.0
    shares[10] = 0.5
    total, cells = model_cells(toy_artefact(), [2], values_of(2), {0: shares[None, :]}, rows=800.0)
    codes = draw_model(toy_artefact())
    assert total.estimate == pytest.approx(800 * shares[codes[:, 0]].mean())
    assert sum(cell.share.estimate for cell in cells) == pytest.approx(1)
    truth = shares[toy_codes()[:, 0]].sum()
    assert 0.5 * truth < total.estimate < 2 * truth


def test_a_condition_without_records_has_no_shares():
    shares = {0: np.zeros((1, SCHEMA.attributes[0].size))}
    total, cells = model_cells(toy_artefact(), [2], values_of(2), shares, rows=800.0)
    assert total.estimate == 0
    assert all(math.isnan(cell.share.estimate) for cell in cells)


def test_bands_that_the_condition_excludes_are_left_out():
    (bands,) = values_of(1)
    assert own_allowed(bands, None) == [True] * 4
    assert own_allowed(bands, np.array([[0, 1, 0.2, 0]])) == [False, True, True, False]


def test_the_same_artefact_gives_the_same_answer():
    assert (draw_model(toy_artefact()) == draw_model(toy_artefact())).all()
