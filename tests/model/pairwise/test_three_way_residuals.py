"""Residuals: what pairs lack is found, what is only noise is not, and the model then has it."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from deniable.counting.local import count
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.denoise import denoise_tables, table_weights
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import (
    measure_pairwise,
    measure_tables,
    measure_three_way,
    with_bins,
)
from deniable.model.pairwise.three_way_residuals import divide_groups, find_residuals
from deniable.privacy.pairwise_budget import pair_noise
from deniable.randomness import Keyed
from worlds import plain_attribute

pytestmark = pytest.mark.slow

ATTRIBUTES = tuple(plain_attribute(f"x{i}", size) for i, size in enumerate((2, 2, 3, 4)))


def table_of(*, parity):
    """Columns exactly independent, some skewed; or half the third are the parity of two others."""
    values = ([0, 0, 1, 1, 1], [0, 1], [0, 0, 0, 0, 0, 1, 1, 1, 2, 2], range(4), range(50))
    codes = np.array(list(product(*values)))
    if parity:
        codes[::2, 2] = codes[::2, :2].sum(axis=1) % 2
    return np.asfortranarray(codes[:, :4].astype(np.uint16))


def measured_of(codes, *, mu=0.5, key=1):
    noise = pair_noise([a.size for a in ATTRIBUTES], mu_values=mu, mu_pairs=mu)
    rng = Keyed(key).at("noise")

    def counter(grouped):
        return partial(count, grouped, codes, workers=1)

    values = counter(ATTRIBUTES)
    measured, _ = measure_pairwise(rng, values, counter, ATTRIBUTES, noise)
    measured, _ = measure_three_way(rng, counter, ATTRIBUTES, measured, noise)
    weights = table_weights(measured, ATTRIBUTES, noise, targets=())
    binned = counter(with_bins(ATTRIBUTES, measured.bins))
    return measure_tables(rng, binned, measured, weights, noise)[0]


def residuals_of(codes, measured):
    """Of the third column given the first two: the pool has the records of the table."""
    tables = denoise_tables(measured, ATTRIBUTES)
    pool = np.asfortranarray(codes.astype(np.intp))
    bins = np.tile(tables.bins[2], (len(codes), 1))
    return find_residuals(tables, measured.three_way, pool, child=2, earlier=(0, 1), bins=bins)


def test_what_pairs_lack_is_found():
    codes = table_of(parity=True)
    measured = measured_of(codes)
    (found,) = residuals_of(codes, measured).values()
    assert found.signal > 100 * found.variance
    # By hand: the centred counts of the parity, less those of an independent third column.
    groups = [measured.three_way.groups[i][measured.bins[i]] for i in (0, 1, 2)]
    exact = np.zeros([int(own.max()) + 1 for own in groups])
    np.add.at(exact, tuple(own[codes[:, i]] for i, own in enumerate(groups)), 1)
    shares = exact.sum(axis=(0, 1)) / len(codes)
    wanted = exact - exact.sum(axis=2, keepdims=True) * shares
    for axis in range(3):
        wanted = wanted - wanted.mean(axis=axis, keepdims=True)
    assert np.abs(found.residual - wanted).max() < 0.01 * len(codes)
    assert np.abs(wanted).max() > 0.05 * len(codes)


def test_independent_columns_have_no_residual_however_skewed():
    codes = table_of(parity=False)
    found = [residuals_of(codes, measured_of(codes, key=key)) for key in range(10)]
    assert sum(map(len, found)) <= 1


def test_an_attribute_of_one_group_has_none():
    codes = table_of(parity=True)
    measured = measured_of(codes)
    groups = list(measured.three_way.groups)
    groups[2] = np.zeros_like(groups[2])
    one = type(measured.three_way)(groups=tuple(groups), interactions={}, sigmas={})
    tables = denoise_tables(measured, ATTRIBUTES)
    bins = np.tile(tables.bins[2], (len(codes), 1))
    pool = codes.astype(np.intp)
    assert find_residuals(tables, one, pool, child=2, earlier=(0, 1), bins=bins) == {}


@pytest.mark.parametrize("max_cost", [1, 1_000])
@pytest.mark.parametrize("parity", [True, False])
def test_a_fitted_network_has_the_parity_of_its_table(parity, max_cost):
    """The order is by number of bins: the third column is a child of the first two.

    Its distribution is a table if all configurations of its parents fit, else log-linear.
    """
    codes = table_of(parity=parity)
    measured = measured_of(codes)
    assert measured.three_way is not None
    network = fit_network(measured, ATTRIBUTES, max_cost=max_cost)
    drawn = np.zeros((8_000, 4), dtype=np.uint16, order="F")
    network.draw(drawn, Keyed(2).at("records"), kept=0)
    has_parity = [
        float((each[:, :2].sum(axis=1) % 2 == each[:, 2]).mean()) for each in (drawn, codes)
    ]
    assert has_parity[0] == pytest.approx(has_parity[1], abs=0.03)
    assert (has_parity[1] > 0.6) == parity
    assert isinstance(network.tables[2], LogLinearConditional) == (max_cost == 1)


def test_parents_are_added_and_their_groups_divided():
    """A parent of triples only has their groups; the groups of another are divided by them."""
    groups = [np.array([0, 1]), np.array([1, 0, 0, 0, 1]), np.array([0, 0])]
    own = {4: np.array([0]), 1: np.array([0, 0, 1, 1, 2])}
    divided = divide_groups(own, [(0, 1)], groups)
    assert list(divided) == [0, 1, 4]
    assert [each.tolist() for each in divided.values()] == [[0, 1], [1, 0, 2, 2, 3], [0]]
