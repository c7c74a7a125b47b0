"""Kept dependences: pairs that stand out, and those that noise alone makes stand out."""

import math

import numpy as np
import pytest
from scipy.special import gammaincc

import deniable
from deniable.arrays import CODE
from deniable.data.codec import Codec
from deniable.model.pairwise.kept_dependences import (
    MOSTLY_NOISE,
    _chi_squared_tail,
    find_kept_dependences,
)
from deniable.schema.schema import Schema
from small_runs import NOISE
from worlds import plain_attribute

SKEWED = [0.7, 0.2, 0.1]


def learnt(codes, *, epsilon=1.0, size=3, **options):
    schema = Schema(
        tuple(plain_attribute(f"x{i}", size) for i in range(codes.shape[1])), rows_max=10_000
    )
    table = Codec(schema).decode(np.asfortranarray(codes.astype(CODE)))
    return deniable.learn(
        table, schema, mode="seedless", epsilon=epsilon, noise=NOISE, workers=1, **options
    )


@pytest.mark.untraced
@pytest.mark.parametrize("shares", [[1 / 3] * 3, SKEWED])
def test_independent_columns_show_about_as_many_dependences_as_chance(shares):
    """276 pairs: 4 standard deviations of a binomial are a false alarm of 1 in 10,000."""
    rng = np.random.default_rng(5)
    kept = learnt(rng.choice(3, size=(20_000, 24), p=shares), epsilon=0.5).kept
    assert kept.level.pairs == 276
    assert 5 < kept.by_chance < 20
    assert kept.dependent < kept.by_chance + 4 * math.sqrt(kept.by_chance)


def test_planted_dependences_are_counted():
    """Columns 0 and 1, 2 and 3, … agree in 70 % of the rows; the others are independent."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 3, size=(20_000, 12))
    same = rng.random((20_000, 6)) < 0.7
    codes[:, 1::2] = np.where(same, codes[:, ::2], codes[:, 1::2])
    kept = learnt(codes).kept
    assert 6 <= kept.dependent <= 6 + kept.by_chance + 4 * math.sqrt(kept.by_chance)
    assert kept.level.visible_association < 0.1
    assert kept.warning == ""
    assert f"{kept.dependent} of 66 pairs of columns show a dependence" in kept.sentences[-1]
    assert f"(by chance alone: about {round(kept.by_chance)})" in kept.sentences[-1]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("rows", "columns", "epsilon"),
    [
        (2, 5, 1.0),
        pytest.param(5_000, 5, 0.0001, marks=pytest.mark.slow),
        pytest.param(500, 50, 1.0, marks=pytest.mark.slow),
    ],
)
def test_a_model_of_noise_warns(rows, columns, epsilon):
    codes = np.random.default_rng(7).integers(0, 3, size=(rows, columns))
    kept = learnt(codes, epsilon=epsilon).kept
    assert kept.warning == MOSTLY_NOISE
    assert "no dependence stands out" in kept.sentences[1]


def test_a_column_alone_has_no_pairs():
    kept = learnt(np.random.default_rng(8).integers(0, 3, size=(5_000, 1))).kept
    assert (kept.level.pairs, kept.dependent, len(kept.sentences)) == (0, 0, 1)
    assert kept.level.value_error < 0.01


def test_without_noise_and_without_pairs_nothing_is_stated():
    codes = np.random.default_rng(9).integers(0, 3, size=(500, 3))
    assert learnt(codes, epsilon=math.inf).kept is None
    assert learnt(codes, estimator="norm-sub").kept is None


def test_what_was_kept_follows_from_the_saved_noisy_counts(tmp_path):
    """And is stated in artefact.json."""
    artefact = learnt(np.random.default_rng(10).integers(0, 3, size=(2_000, 4)))
    artefact.save(tmp_path / "a")
    loaded = deniable.load(tmp_path / "a")
    assert loaded.kept == artefact.kept
    assert find_kept_dependences(loaded.evidence, loaded.schema.attributes) == artefact.kept


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 50, 841, 9_801])
def test_the_tail_of_a_sum_of_squares_is_that_of_scipy(freedom):
    for factor in (0.5, 1.0, 1 + 2 * math.sqrt(2 / freedom), 3.0):
        exact = gammaincc(freedom / 2, factor * freedom / 2)
        assert _chi_squared_tail(freedom, factor * freedom) == pytest.approx(exact, rel=1e-10)
