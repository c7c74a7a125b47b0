"""The pool of records of a fit: configurations, distributions, draws, prefixes."""

import numpy as np
import pytest

from deniable.model.pairwise import record_pool
from deniable.model.pairwise.attribute_fit import _MAX_MARGIN_FACTOR, _fit_margin
from deniable.model.pairwise.bin_masks import BinMasks
from deniable.model.pairwise.loglinear import LogLinear, softmax
from deniable.model.pairwise.record_pool import Parent, RecordPool, fitted_distributions

RECORDS = 4_096
PARENTS = (
    Parent(attribute=0, groups=np.array([0, 1, 1]), group_count=2),
    Parent(attribute=1, groups=np.arange(3), group_count=3),
)


def pool_of_two():
    """A pool of three attributes, two of which are drawn."""
    pool = RecordPool.empty(RECORDS, 3)
    for i, shares in enumerate(([0.5, 0.25, 0.25], [0.125, 0.375, 0.5])):
        pool.draw(i, np.array([shares]), np.zeros(RECORDS, dtype=np.intp), np.arange(3))
    return pool


def everything_allowed(pool, attribute, bins):
    """No constraint: each bin is one piece."""
    masks = BinMasks.of({}, [np.arange(bins)] * 3, [np.full(bins, 1 / bins)] * 3)
    return masks.allowed(attribute, [0, 1], pool.pieces)


def test_draws_have_their_shares_and_are_the_same_every_time():
    one, two = pool_of_two(), pool_of_two()
    assert np.array_equal(one.bins, two.bins)
    counts = np.bincount(one.bins[:, 0], minlength=3)
    assert np.abs(counts - RECORDS * np.array([0.5, 0.25, 0.25])).max() <= 2  # stratified
    assert np.array_equal(np.sort(one.similarity), np.arange(RECORDS))


def test_configurations_are_those_of_the_records():
    pool = pool_of_two()
    found = pool.configurations(PARENTS, everything_allowed(pool, 2, 4))
    groups, repeats, index = found.groups, found.repeats, found.index
    expected = [parent.groups[pool.bins[:, parent.attribute]] for parent in PARENTS]
    assert repeats.sum() == RECORDS
    assert len(repeats) == len(set(zip(*(each.tolist() for each in groups), strict=True))) <= 6
    for found, known in zip(groups, expected, strict=True):
        assert np.array_equal(found[index], known)


def test_with_very_many_configurations_each_record_has_its_own(monkeypatch):
    pool = pool_of_two()
    few = pool.configurations(PARENTS, everything_allowed(pool, 2, 4))
    monkeypatch.setattr(record_pool, "_MAX_NUMBERED_CONFIGURATIONS", 5)
    each = pool.configurations(PARENTS, everything_allowed(pool, 2, 4))
    assert each.repeats.tolist() == [1] * RECORDS
    for own, shared in zip(each.groups, few.groups, strict=True):
        assert np.array_equal(own[each.index], shared[few.index])


def test_distributions_are_those_of_the_model_at_each_record():
    pool = pool_of_two()
    rng = np.random.default_rng(3)
    effects = (rng.normal(size=(2, 4)), rng.normal(size=(3, 4)))
    model = LogLinear(base=rng.normal(size=4), effects=effects)
    allowed = everything_allowed(pool, 2, 4)
    found = pool.configurations(PARENTS, allowed)
    groups = [parent.groups[pool.bins[:, parent.attribute]] for parent in PARENTS]
    distributions = fitted_distributions(model, found, allowed)
    assert distributions[found.index] == pytest.approx(softmax(model.logits(groups)))
    alone = LogLinear(base=np.log([0.25, 0.75]), effects=())
    allowed = everything_allowed(pool, 2, 2)
    same = pool.configurations((), allowed)
    assert fitted_distributions(alone, same, allowed).tolist() == [pytest.approx([0.25, 0.75])]
    assert same.index.max() == 0


def test_configurations_differ_in_what_is_allowed():
    """The third value of the first attribute excludes one of the child."""
    pool = pool_of_two()
    mask = np.array([[True, True], [True, True], [True, False]])
    bins, values = [np.arange(3), np.arange(3), np.arange(2)], [np.full(3, 1 / 3)] * 2
    masks = BinMasks.of({(0, 2): mask}, bins, [*values, np.full(2, 0.5)])
    allowed = masks.allowed(2, [0, 1], pool.pieces)
    found = pool.configurations(PARENTS, allowed)
    excluded = ~allowed.allowed[found.classes][found.index][:, 1]
    assert excluded.tolist() == (pool.bins[:, 0] == 2).tolist()
    model = LogLinear(base=np.zeros(2), effects=(np.zeros((2, 2)), np.zeros((3, 2))))
    drawn = fitted_distributions(model, found, allowed)
    assert drawn[found.index[excluded]].tolist() == [[1.0, 0.0]] * excluded.sum()


def test_pieces_are_drawn_and_bins_follow():
    pool = RecordPool.empty(RECORDS, 1)
    one = np.array([[0.25, 0.25, 0.5]])
    pool.draw(0, one, np.zeros(RECORDS, dtype=np.intp), np.array([0, 0, 1]))
    assert np.bincount(pool.pieces[:, 0]) / RECORDS == pytest.approx([0.25, 0.25, 0.5], abs=1e-3)
    assert pool.bins[:, 0].tolist() == (pool.pieces[:, 0] == 2).astype(int).tolist()


def test_prefixes_replace_the_attributes_that_are_drawn_first():
    pool = pool_of_two()
    before = pool.bins.copy()
    prefixes = np.random.default_rng(1).integers(0, 4, (RECORDS, 1)).astype(np.uint16)
    bins, mask = np.array([0, 0, 1, 2]), np.ones((4, 2), dtype=bool)
    mask[0, 1] = False
    sizes = (3, 4, 2)
    masks = BinMasks.of(
        {(1, 2): mask},
        [np.arange(3), bins, np.arange(2)],
        [np.full(size, 1 / size) for size in sizes],
    )
    pool.take_prefixes(prefixes, [1, 0, 2], masks)
    assert np.array_equal(pool.bins[:, 1], bins[prefixes[:, 0]])
    assert np.array_equal(pool.pieces[:, 1], masks.pieces[1].of_code[prefixes[:, 0]])
    assert np.array_equal(pool.bins[:, 0], before[:, 0])
    in_order = pool.bins[pool.similarity, 1]
    assert (np.diff(in_order) >= 0).all()


# The fit of one attribute: its own distribution among the records, whatever is allowed

# The child has three bins of two codes each. The second value of the parent excludes the last code;
# the third one leaves only the first two bins.
MASK = np.array([
    [True, True, True, True, True, True],
    [True, True, True, True, True, False],
    [True, True, True, True, False, False],
])  # fmt: skip
CODES = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])
BINS = np.array([0, 0, 1, 1, 2, 2])


def margin_of(codes=CODES, shares=(0.3, 0.4, 0.3), mask=MASK):
    """A model with effects, fitted to the distribution of the child's codes."""
    masks = BinMasks.of({(0, 1): mask}, [np.arange(3), BINS], [np.array(shares), codes])
    pool = RecordPool.empty(RECORDS, 2)
    pool.draw(0, np.array([shares]), np.zeros(RECORDS, dtype=np.intp), np.arange(3))
    parents = (Parent(attribute=0, groups=np.arange(3), group_count=3),)
    allowed = masks.allowed(1, [0], pool.pieces)
    found = pool.configurations(parents, allowed)
    effects = 0.3 * np.random.default_rng(2).normal(size=(3, 3))
    model = LogLinear(base=np.zeros(3), effects=(effects,))
    share = np.bincount(BINS, codes)
    return model, found, _fit_margin(model, parents, found, allowed, share)


def test_the_attribute_has_its_own_distribution_among_the_records():
    """In pieces of bins, too: a code that some records exclude, others draw more often."""
    model, found, fitted = margin_of()
    pieces = fitted.allowed.pieces
    weights = np.bincount(fitted.index) / RECORDS
    margin = weights @ fitted.distributions
    target = np.bincount(pieces.of_code, CODES)
    assert len(target) == 4, "the first two bins are whole, the last is divided"
    np.testing.assert_allclose(margin, target, atol=5e-3)
    # The model and the shares of the pieces have these distributions.
    logits = fitted.model.logits(found.groups)
    of_codes = softmax(logits)[:, BINS] * pieces.within_bins(CODES) * MASK[found.groups[0]]
    of_codes /= of_codes.sum(axis=1, keepdims=True)
    summed = np.stack([np.bincount(pieces.of_code, row) for row in of_codes])
    np.testing.assert_allclose(summed, fitted.distributions, atol=1e-12)
    assert fitted.model.effects is model.effects
    moved = np.exp(fitted.model.base)
    assert np.abs(moved - 1).max() > 0.1, "so that there was something to fit"


def test_a_share_that_cannot_be_met_changes_odds_by_a_bounded_factor():
    """Noise: the last code has a fifth of the records, but hardly any record allows it."""
    _, _, fitted = margin_of(shares=(1e-4, 0.5, 0.4999))
    pieces = fitted.allowed.pieces
    assert np.isfinite(fitted.distributions).all()
    odds = np.exp(fitted.model.base)[pieces.bins] * pieces.shares
    plain = np.bincount(pieces.of_code, CODES) / np.bincount(BINS, CODES)[pieces.bins]
    ratio = odds / plain
    assert ratio.max() == pytest.approx(_MAX_MARGIN_FACTOR)
    assert ratio.min() >= 1 / _MAX_MARGIN_FACTOR - 1e-12


def test_nothing_moves_where_the_distribution_is_met():
    everything = np.ones_like(MASK)
    _, found, fitted = margin_of(mask=everything)
    again = _fit_margin(
        fitted.model, fitted.parents, found, fitted.allowed, np.bincount(BINS, CODES)
    )
    np.testing.assert_array_equal(again.model.base, fitted.model.base)
    np.testing.assert_allclose(again.distributions, fitted.distributions, rtol=1e-12)
