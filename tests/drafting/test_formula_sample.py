"""Samples in which formulas are sought."""

import numpy as np

from deniable.drafting.formula_sample import FormulaSample

SAMPLE = FormulaSample(
    numbers=np.arange(12.0).reshape(3, 4), decimals=(0, 2, 1, 0), distinct=(5, 90, 5, 40)
)


def test_the_longest_columns_are_returned_in_order():
    assert SAMPLE.longest(SAMPLE.columns, 2) == [1, 3]
    assert SAMPLE.longest([2, 0, 3], 2) == [0, 3], "the first of columns of the same length"


def test_selected_columns_keep_their_facts():
    kept = SAMPLE.select([3, 1])
    assert kept.numbers.tolist() == [[3, 1], [7, 5], [11, 9]]
    assert (kept.decimals, kept.distinct) == ((0, 2), (40, 90))


def test_half_of_the_last_decimal_is_within_the_rounding_error():
    assert np.all(SAMPLE.tolerances > 0.5 * 10.0 ** -np.array(SAMPLE.decimals))
    assert np.all(SAMPLE.tolerances < 0.52 * 10.0 ** -np.array(SAMPLE.decimals))
