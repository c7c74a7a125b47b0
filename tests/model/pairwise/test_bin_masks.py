"""What constraints allow between bins: pieces, allowed values, limits; against slow definitions."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deniable.model.pairwise.bin_masks import BinMasks, Pieces
from worlds import property_test

SIZES = (6, 5, 4)


def world(key):
    """Three attributes: bins and frequencies of their codes, masks, and records that obey them."""
    rng = np.random.default_rng(key)
    bins = [np.sort(rng.integers(0, 3, size)) for size in SIZES]
    bins = [np.unique(each, return_inverse=True)[1] for each in bins]
    values = [rng.dirichlet(np.ones(size)) for size in SIZES]
    masks = {
        pair: rng.random((SIZES[pair[0]], SIZES[pair[1]])) < 0.6
        for pair in ((0, 1), (0, 2), (1, 2))
        if rng.random() < 0.8
    }
    records = np.stack(
        [rng.choice(size, 4_000, p=p) for size, p in zip(SIZES, values, strict=True)], axis=1
    )
    obey = np.all([mask[records[:, i], records[:, j]] for (i, j), mask in masks.items()], axis=0)
    return bins, values, masks, records[obey] if masks else records


keys = st.integers(0, 10_000)


@property_test
@given(key=keys)
def test_codes_share_a_piece_if_they_share_a_bin_and_all_masks_treat_them_alike(key):
    bins, values, masks, _ = world(key)
    found = BinMasks.of(masks, bins, values)
    for i, pieces in enumerate(found.pieces):
        own = [m if a == i else m.T for (a, b), m in masks.items() if i in (a, b)]
        for x in range(SIZES[i]):
            for y in range(SIZES[i]):
                alike = bins[i][x] == bins[i][y] and all((m[x] == m[y]).all() for m in own)
                assert (pieces.of_code[x] == pieces.of_code[y]) == alike
        assert (np.diff(pieces.bins) >= 0).all()
        assert (pieces.bins[pieces.of_code] == bins[i]).all()
        assert (pieces.of_code[pieces.first_code] == np.arange(len(pieces.bins))).all()
        shares = (
            np.bincount(pieces.of_code, values[i]) / np.bincount(bins[i], values[i])[pieces.bins]
        )
        np.testing.assert_allclose(pieces.shares, shares)
        np.testing.assert_allclose(
            pieces.within_bins(values[i]), values[i] / np.bincount(bins[i], values[i])[bins[i]]
        )


@property_test
@given(key=keys)
def test_a_record_allows_the_values_that_go_with_each_of_its_values(key):
    """Record by record and code by code; a record that allows none is given all."""
    bins, values, masks, _ = world(key)
    found = BinMasks.of(masks, bins, values)
    codes = np.random.default_rng(key).integers(0, SIZES, (40, 3))
    pool = np.stack([found.pieces[j].of_code[codes[:, j]] for j in range(3)], axis=1)
    allowed = found.allowed(1, [2, 0], pool)
    for record, own in zip(codes, allowed.allowed[allowed.classes], strict=True):
        goes = np.ones(SIZES[1], dtype=bool)
        if (0, 1) in masks:
            goes &= masks[0, 1][record[0]]
        if (1, 2) in masks:
            goes &= masks[1, 2][:, record[2]]
        assert own[found.pieces[1].of_code].tolist() == (goes if goes.any() else ~goes).tolist()
    rows = {row.tobytes() for row in allowed.allowed}
    assert len(rows) == len(allowed.allowed), "each class once"


def test_what_is_allowed_divides_and_restricts_distributions():
    """Two bins of two codes each; the first record excludes the second code."""
    mask = np.array([[True, False, True, True], [True, True, True, True]])
    found = BinMasks.of({(0, 1): mask}, [np.arange(2), np.array([0, 0, 1, 1])], [
        np.array([0.5, 0.5]), np.array([0.1, 0.3, 0.2, 0.4])
    ])  # fmt: skip
    allowed = found.allowed(1, [0], np.array([[0, 0], [1, 0]]))
    restricted = allowed.restrict(np.array([[0.8, 0.2], [0.8, 0.2]]), allowed.classes)
    assert restricted.tolist() == [
        pytest.approx([0.0, 0.5, 0.5]),
        pytest.approx([0.6, 0.2, 0.2]),
    ]
    assert allowed.sum_bins(restricted)[0].tolist() == pytest.approx([0.5, 0.5])
    added = allowed.in_fit(allowed.classes)
    np.testing.assert_allclose(added, np.log([[0.25, 1], [1, 1]]), atol=1e-12)
    assert found.allowed(0, [], np.zeros((2, 2), dtype=int)).in_fit(np.zeros(2, dtype=int)) is None
    # No allowed bin has a probability above 0: shares of the pieces decide.
    nothing = allowed.restrict(np.array([[0.0, 0.0]]), allowed.classes[:1])
    assert nothing[0].tolist() == pytest.approx([0.0, 0.2, 0.8])


def test_a_bin_that_is_not_allowed_has_a_small_weight_in_a_fit():
    mask = np.array([[False, True], [True, True]])
    found = BinMasks.of({(0, 1): mask}, [np.arange(2)] * 2, [np.full(2, 0.5)] * 2)
    allowed = found.allowed(1, [0], np.array([[0, 0]]))
    np.testing.assert_allclose(allowed.in_fit(allowed.classes), np.log([[0.01, 1.0]]))


@property_test
@given(key=keys)
def test_counts_of_records_that_obey_the_masks_are_within_the_limits(key):
    """So limits, which know margins only, change no table of such records."""
    bins, _, masks, records = world(key)
    values = [np.bincount(records[:, i], minlength=size) + 1e-9 for i, size in enumerate(SIZES)]
    found = BinMasks.of(masks, bins, values)
    for pair in masks:
        table = np.zeros([int(bins[i].max()) + 1 for i in pair])
        np.add.at(table, tuple(bins[i][records[:, i]] for i in pair), 1)
        assume(table.sum(axis=0).min() > 0 < table.sum(axis=1).min())
        np.testing.assert_allclose(found.limit(pair, table), table, atol=0.02 + 1e-3 * table.max())


def test_limits_remove_counts_that_the_masks_exclude_and_keep_margins():
    """Rows 1 and 2 exclude the second bin's larger piece: at most 10 of its 100 go with them."""
    mask = np.ones((3, 3), dtype=bool)
    mask[:2, 2] = False
    bins = [np.arange(3), np.array([0, 1, 1])]
    found = BinMasks.of({(0, 1): mask}, bins, [np.full(3, 100.0), np.array([200.0, 10, 90])])
    table = np.array([[60.0, 40], [60, 40], [80, 20]])
    limited = found.limit((0, 1), table)
    np.testing.assert_allclose(limited.sum(axis=0), [200, 100], rtol=1e-3)
    np.testing.assert_allclose(limited.sum(axis=1), [100, 100, 100], rtol=0.05)
    assert limited[:2, 1].max() < 16
    assert limited[2, 1] > 70
    assert found.limit((0, 2), table) is table, "no mask"


def test_without_other_dependence_a_table_is_that_of_the_masks():
    """An exact integer example: 2 × 2 with one empty cell is determined by its margins."""
    mask = np.array([[True, True], [False, True]])
    found = BinMasks.of({(0, 1): mask}, [np.arange(2)] * 2, [np.full(2, 0.5)] * 2)
    table = found.independent((0, 1), np.array([70.0, 30]), np.array([40.0, 60]))
    np.testing.assert_allclose(table, [[40, 30], [0, 30]], atol=1.5)
    plain = found.independent((0, 2), np.array([70.0, 30]), np.array([40.0, 60]))
    np.testing.assert_allclose(plain, [[28, 42], [12, 18]])


def test_without_masks_pieces_are_bins():
    bins = np.array([0, 0, 1, 2])
    pieces = Pieces.of(bins, np.array([1.0, 3, 2, 2]), [])
    assert pieces.of_code.tolist() == bins.tolist()
    assert pieces.shares.tolist() == [1.0, 1.0, 1.0]
