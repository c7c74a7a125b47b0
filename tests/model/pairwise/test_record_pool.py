"""The pool of records of a fit: configurations, distributions, draws, prefixes."""

import numpy as np
import pytest

from deniable.model.pairwise import record_pool
from deniable.model.pairwise.loglinear import LogLinear, softmax
from deniable.model.pairwise.record_pool import Parent, RecordPool

RECORDS = 4_096
PARENTS = (
    Parent(attribute=0, groups=np.array([0, 1, 1]), group_count=2),
    Parent(attribute=1, groups=np.arange(3), group_count=3),
)


def pool_of_two():
    """A pool of three attributes, two of which are drawn."""
    pool = RecordPool.empty(RECORDS, 3)
    for i, shares in enumerate(([0.5, 0.25, 0.25], [0.125, 0.375, 0.5])):
        pool.draw(i, np.array([shares]), np.zeros(RECORDS, dtype=np.intp))
    return pool


def test_draws_have_their_shares_and_are_the_same_every_time():
    one, two = pool_of_two(), pool_of_two()
    assert np.array_equal(one.bins, two.bins)
    counts = np.bincount(one.bins[:, 0], minlength=3)
    assert np.abs(counts - RECORDS * np.array([0.5, 0.25, 0.25])).max() <= 2  # stratified
    assert np.array_equal(np.sort(one.similarity), np.arange(RECORDS))


def test_configurations_are_those_of_the_records():
    pool = pool_of_two()
    groups, repeats, index = pool.configurations(PARENTS)
    expected = [parent.groups[pool.bins[:, parent.attribute]] for parent in PARENTS]
    assert repeats.sum() == RECORDS
    assert len(repeats) == len(set(zip(*(each.tolist() for each in groups), strict=True))) <= 6
    for found, known in zip(groups, expected, strict=True):
        assert np.array_equal(found[index], known)


def test_with_very_many_configurations_each_record_has_its_own(monkeypatch):
    pool = pool_of_two()
    few, _, few_index = pool.configurations(PARENTS)
    monkeypatch.setattr(record_pool, "_MAX_NUMBERED_CONFIGURATIONS", 5)
    groups, repeats, index = pool.configurations(PARENTS)
    assert len(repeats) == RECORDS
    assert set(repeats.tolist()) == {1}
    for own, shared in zip(groups, few, strict=True):
        assert np.array_equal(own[index], shared[few_index])


def test_distributions_are_those_of_the_model_at_each_record():
    pool = pool_of_two()
    rng = np.random.default_rng(3)
    effects = (rng.normal(size=(2, 4)), rng.normal(size=(3, 4)))
    model = LogLinear(base=rng.normal(size=4), effects=effects)
    distributions, index = pool.distributions(model, PARENTS)
    groups = [parent.groups[pool.bins[:, parent.attribute]] for parent in PARENTS]
    assert distributions[index] == pytest.approx(softmax(model.logits(groups)))
    alone, same = pool.distributions(LogLinear(base=np.log([0.25, 0.75]), effects=()), ())
    assert alone.tolist() == [pytest.approx([0.25, 0.75])]
    assert same.max() == 0


def test_prefixes_replace_the_attributes_that_are_drawn_first():
    pool = pool_of_two()
    before = pool.bins.copy()
    prefixes = np.random.default_rng(1).integers(0, 4, (RECORDS, 1)).astype(np.uint16)

    class Measured:
        bins = (np.arange(3), np.array([0, 0, 1, 2]), np.arange(2))

    pool.take_prefixes(prefixes, [1, 0, 2], Measured())
    assert np.array_equal(pool.bins[:, 1], Measured.bins[1][prefixes[:, 0]])
    assert np.array_equal(pool.bins[:, 0], before[:, 0])
    in_order = pool.bins[pool.similarity, 1]
    assert (np.diff(in_order) >= 0).all()
