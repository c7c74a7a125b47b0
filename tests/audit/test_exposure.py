"""Exposure: rare and lonely rows come first, and half of the targets are random."""

import numpy as np

from audited_tables import TABLE, codes_of
from deniable.arrays import CODE
from deniable.audit.exposure import choose_targets, measure_exposure
from deniable.randomness import Keyed


def test_a_row_that_is_alone_in_its_values_is_the_most_exposed():
    codes = np.zeros((400, 4), dtype=CODE)
    codes[200:, :] = 1
    codes[7] = (2, 3, 2, 3)
    codes[11] = (0, 1, 0, 0)
    exposure = measure_exposure(codes, Keyed(1).at("scan"))
    assert np.argsort(exposure)[-2:].tolist() == [11, 7]
    assert exposure.min() >= 0
    assert exposure.max() <= 1


def test_targets_are_the_most_exposed_rows_and_random_others():
    exposure = measure_exposure(codes_of(TABLE), Keyed(1).at("scan"))
    targets = choose_targets(exposure, 41, Keyed(1).at("seeds"))
    assert len(targets) == len(set(targets.rows.tolist())) == 41
    assert targets.most_exposed.sum() == 21
    least = exposure[targets.rows[targets.most_exposed]].min()
    assert (exposure > least).sum() <= 21
    others = exposure[targets.rows[~targets.most_exposed]]
    assert others.max() <= least
    assert 0.25 < others.mean() < 0.65  # random rows, not the next in order
