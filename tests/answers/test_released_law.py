"""The released law: shares of starts, masked distributions, probabilities of prefixes."""

import numpy as np
import pytest

from deniable.answers.released_law import joint_index
from small_laws import KINDS, ORDER, UNIVERSE, enumerated, small_law


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_starts_sum_to_one(kind):
    starts = small_law(kind).starts
    assert sum(start.share for start in starts) == pytest.approx(1)
    assert all(start.weights.sum() == pytest.approx(1) for start in starts)


def test_prefixes_have_their_probabilities():
    law, expected = small_law("masked"), enumerated(small_law("masked"))
    prefixes = np.unique(UNIVERSE[:, list(ORDER[:3])], axis=0)
    found = law.prefix_probability(prefixes)
    same = (UNIVERSE[:, list(ORDER[:3])][None] == prefixes[:, None]).all(axis=2)
    np.testing.assert_allclose(found, same @ expected, rtol=1e-12)


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
