"""The released law: weights of prefixes, masked distributions."""

import numpy as np
import pytest

from deniable.answers.released_law import joint_index
from small_laws import KINDS, UNIVERSE, small_law


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_prefixes_sum_to_one(kind):
    assert small_law(kind).start.weights.sum() == pytest.approx(1)


def test_masked_distributions_exclude_contradictions_and_sum_to_one():
    law = small_law("masked")
    found = law.distribution(UNIVERSE, 3)  # attribute 1, masked with 4
    np.testing.assert_allclose(found.sum(axis=1), 1)
    mask = law.pair_masks[1, 4]
    assert (found[~mask.T[UNIVERSE[:, 4]]] == 0).all()


def test_combinations_are_numbered_without_overflow():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 3, 50) for _ in range(60)]
    index = joint_index(columns, [3] * 60)
    _, expected = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    _, found = np.unique(index, return_inverse=True)
    assert found.tolist() == expected.ravel().tolist()
