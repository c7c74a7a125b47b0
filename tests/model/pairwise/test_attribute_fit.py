"""The fit of one attribute: its own distribution among the records, whatever is allowed."""

import numpy as np
import pytest

from deniable.model.pairwise.attribute_fit import _MAX_MARGIN_FACTOR, _fit_margin
from deniable.model.pairwise.bin_masks import BinMasks
from deniable.model.pairwise.loglinear import LogLinear, softmax
from deniable.model.pairwise.record_pool import Parent, RecordPool

RECORDS = 4_096
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
