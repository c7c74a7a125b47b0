"""Reference tables: disjoint splits, samples, and independent columns."""

import numpy as np
import pytest

from chance import assert_rate
from deniable.evaluation.reference_tables import (
    EvaluationTables,
    disjoint_samples,
    independent_columns,
    sample_rows,
    split_rows,
)
from deniable.randomness import Keyed


def rows(codes):
    return sorted(map(tuple, codes.tolist()))


def test_a_split_has_every_row_once(small_codes):
    one, two = split_rows(small_codes, 0.3, Keyed(1).at("records"))
    assert len(one) == 600
    assert rows(np.concatenate([one, two])) == rows(small_codes)


def test_a_sample_is_no_larger_than_asked_and_all_rows_stay_as_they_are(small_codes):
    assert len(sample_rows(small_codes, 10, Keyed(1).at("records"))) == 10
    assert sample_rows(small_codes, 10_000, Keyed(1).at("records")) is small_codes


def test_two_samples_have_no_row_in_common():
    numbered = np.arange(1_000, dtype=np.uint16).reshape(-1, 1)
    one, two = disjoint_samples(numbered, 300, Keyed(4).at("records"))
    assert len(one) == len(two) == 300
    assert not set(one.ravel()) & set(two.ravel())
    assert (one == sample_rows(numbered, 300, Keyed(4).at("records"))).all()
    halves = disjoint_samples(numbered, 800, Keyed(4).at("records"))
    assert rows(np.concatenate(halves)) == rows(numbered)


def test_independent_columns_keep_single_columns_and_nothing_else(small_codes):
    drawn = independent_columns(small_codes, 20_000, Keyed(1).at("records"))
    share = float(np.mean(small_codes[:, 4] == 0))
    assert_rate(int((drawn[:, 4] == 0).sum()), 20_000, share)
    # pet and home hang together in the table; here they do not.
    both = float(np.mean((small_codes[:, 4] == 0) & (small_codes[:, 2] == 0)))
    apart = share * float(np.mean(small_codes[:, 2] == 0))
    seen = int(((drawn[:, 4] == 0) & (drawn[:, 2] == 0)).sum())
    assert_rate(seen, 20_000, apart)
    with pytest.raises(AssertionError, match="false-alarm"):
        assert_rate(seen, 20_000, both)


def test_without_held_out_rows_no_test_row_is_learnt_from():
    real = np.stack([np.arange(100), np.arange(100)], axis=1).astype(np.uint16)
    tables = EvaluationTables.of(real, real, None, key=0)
    assert not tables.held_out
    assert not set(tables.train[:, 0]) & set(tables.test[:, 0])
    assert not set(tables.ceiling[0][:, 0]) & set(tables.ceiling[1][:, 0])
    assert len(tables.train) == 70
