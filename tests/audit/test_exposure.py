"""Exposure: rare and lonely rows come first, and targets cover every tenth."""

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


def test_targets_are_the_most_exposed_rows_and_random_ones_of_every_tenth():
    exposure = measure_exposure(codes_of(TABLE), Keyed(1).at("scan"))
    targets = choose_targets(exposure, 40, Keyed(1).at("seeds"))
    assert len(targets) == len(set(targets.rows.tolist())) == 40
    assert targets.most_exposed.sum() == 20
    least = exposure[targets.rows[targets.most_exposed]].min()
    assert (exposure > least).sum() <= 20
    random = targets.deciles[~targets.most_exposed]
    assert np.bincount(random, minlength=11)[1:].tolist() == [2] * 10


def test_tenths_follow_the_exposure():
    exposure = np.arange(1000) / 1000
    targets = choose_targets(exposure, 100, Keyed(1).at("seeds"))
    assert (targets.deciles == targets.rows // 100 + 1).all()
