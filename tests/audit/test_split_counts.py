"""Counts of a split: their mean and variance are stated, and rows that serve two parts show."""

import numpy as np
import pytest

from deniable.arrays import CODE
from deniable.audit.likelihood_ratio import NoisyTable
from deniable.audit.membership import KnownRows
from deniable.audit.split_counts import SPLIT_STAGE, PartCount, split_numbers

SHARES = {"structure": 0.3, "parameters": 0.6}
ROWS, OTHERS, SIGMA, RUNS = 400, 30, 5.0, 3_000


def known(share):
    """Many rows of the value 1, and others of the value 0."""
    codes = np.repeat([[1], [0]], [ROWS, OTHERS], axis=0).astype(CODE)
    weights = np.full(len(codes), share)
    return KnownRows(codes=codes, weights=weights, targets=np.array([0]), shares=SHARES)


def numbers_of(rng, parts):
    """The numbers of one run, given the part of each row: a row of a table is drawn once."""
    counts = {}
    for part, share in SHARES.items():
        released = np.bincount(np.repeat([1, 0], [ROWS, OTHERS])[parts[part]], minlength=2)
        noisy = released + SIGMA * rng.standard_normal(2)
        table = NoisyTable(
            name=part,
            part=part,
            numbers=noisy,
            attributes=(0,),
            bins=(np.arange(2),),
            variance=SIGMA**2,
        )
        expected = share * np.array([OTHERS, ROWS])
        counts[part] = PartCount.of(table, known(share), table.noise(expected))
    return dict(split_numbers(counts))


def runs_of(draw):
    """Means and variances of the numbers, over many runs with a fixed key."""
    rng = np.random.default_rng(3)
    runs = [numbers_of(rng, draw(rng)) for _ in range(RUNS)]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def draw_honest(rng):
    uniform = rng.random(ROWS + OTHERS)
    return {"structure": uniform < 0.3, "parameters": (uniform >= 0.3) & (uniform < 0.9)}


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
    alone, difference = found["split: rows that serve structure"], list(found.values())[-1]
    assert alone.var() == pytest.approx(1, abs=5 * np.sqrt(2 / RUNS))
    assert difference.var() < 0.7
