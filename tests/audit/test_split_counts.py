"""Counts of a split: their mean and variance are stated, and rows that serve two parts show."""

import numpy as np
import pytest

from deniable.audit.split_counts import SPLIT_STAGE, PartCount, split_numbers
from deniable.privacy.noise_laws import rounded_gaussian

SHARES = {"seeds": 0.3, "parameters": 0.6}
ROWS, OTHERS, SIGMA, RUNS = 400, 30, 5.0, 3_000
LAW = rounded_gaussian(SIGMA)
# Many rows of the value 1, and others of the value 0.
CELLS = np.repeat([1, 0], [ROWS, OTHERS])


def numbers_of(rng, parts):
    """The numbers of one run, given the part of each row: a row of a table is drawn once."""
    counts = {}
    for part, share in SHARES.items():
        released = np.bincount(CELLS[parts[part]], minlength=2)
        noisy = released + SIGMA * rng.standard_normal(2)
        counts[part] = PartCount.of(noisy, CELLS, np.full(len(CELLS), share), LAW)
    return dict(split_numbers(counts))


def runs_of(draw):
    """Means and variances of the numbers, over many runs with a fixed key."""
    rng = np.random.default_rng(3)
    runs = [numbers_of(rng, draw(rng)) for _ in range(RUNS)]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def draw_honest(rng):
    uniform = rng.random(ROWS + OTHERS)
    return {"seeds": uniform < 0.3, "parameters": (uniform >= 0.3) & (uniform < 0.9)}


def draw_each_part_alone(rng):
    return {part: rng.random(ROWS + OTHERS) < share for part, share in SHARES.items()}


def test_numbers_of_an_honest_split_have_mean_zero_and_variance_one():
    """Five standard errors each, and a fixed key."""
    found = runs_of(draw_honest)
    assert len(found) == 3
    for name, values in found.items():
        assert name.startswith(SPLIT_STAGE)
        assert abs(values.mean()) < 5 / np.sqrt(RUNS)
        assert values.var() == pytest.approx(1, abs=5 * np.sqrt(2 / RUNS))


def test_rows_that_serve_two_parts_make_their_difference_vary_less():
    found = runs_of(draw_each_part_alone)
    alone, difference = found["split: rows that serve seeds"], list(found.values())[-1]
    assert alone.var() == pytest.approx(1, abs=5 * np.sqrt(2 / RUNS))
    assert difference.var() < 0.7
