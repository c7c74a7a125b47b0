"""Cells of a question in a measured table: alignment, bounds, shares and notes."""

import tracemalloc

import numpy as np
import pytest

from deniable.answers.cell_bands import Bands
from deniable.answers.fresh_counts import measured_tables
from deniable.answers.measured_cells import BOUNDS, SWAMPED, MeasuredCells, Selection
from toy_artefacts import SCHEMA, artefact_of, measure, true_table

PARTS = np.array([0, 0, 1, 1, 1, 2])


def marks(found):
    """The parts of each band, as a mask."""
    return [found.of_band(band).tolist() for band in range(len(found.starts) - 1)]


def bands_of(numbers):
    return Bands(labels=tuple(map(str, range(max(numbers) + 1))), band_of=np.array(numbers))


def test_a_band_is_aligned_if_it_is_a_union_of_parts():
    found = Selection.of(bands_of([0, 0, 0, 0, 0, 1]), np.ones(6), PARTS)
    assert found.is_aligned
    assert marks(found.inner) == [[True, True, False], [False, False, True]]


def test_a_band_or_a_condition_that_cuts_a_part_is_not():
    found = Selection.of(bands_of([0, 0, 0, 1, 1, 1]), np.ones(6), PARTS)
    assert not found.is_aligned
    assert marks(found.inner) == [[True, False, False], [False, False, True]]
    assert marks(found.outer) == [[True, True, False], [False, True, True]]
    assert found.covered.all()
    half = Selection.of(bands_of([0] * 6), np.array([1, 1, 1, 1, 1, 0.5]), PARTS)
    assert marks(half.inner) == [[True, True, False]]
    assert marks(half.outer) == [[True, True, True]]


def test_many_bands_of_many_parts_need_little_memory():
    """20,000 bands by 20,000 parts would be gigabytes."""
    codes = np.arange(20_000)
    bands = Bands(labels=("",) * len(codes), band_of=codes)
    tracemalloc.start()
    found = Selection.of(bands, np.ones(len(codes)), codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.is_aligned
    assert np.flatnonzero(found.inner.of_band(7)).tolist() == [7]
    assert peak < 20e6


@pytest.fixture(scope="module")
def sizes():
    """The counts of a column's values, asked for by two bands that cut its parts, or not."""
    (values, *_) = measured_tables(artefact_of(measure(3)), [0])
    return values


def one_way(table, numbers, shares=None):
    shares = np.ones(len(numbers)) if shares is None else shares
    selection = Selection.of(bands_of(numbers), shares, table.parts[0])
    return MeasuredCells(table=table, selections=(selection,), sampling=0.0)


def test_bounds_contain_both_the_inside_and_the_outside(sizes):
    exact = one_way(sizes, [0] * 20 + [1] * 20)
    shares = np.ones(40)
    shares[19] = 0.3
    cut = one_way(sizes, [0] * 20 + [1] * 20, shares)
    inside = one_way(sizes, [0] * 19 + [1] * 21)
    assert cut.count([0]).low == inside.count([0]).low
    assert cut.count([0]).high == exact.count([0]).high
    (first, _) = cut.cells(asked=[0])
    assert BOUNDS in first.note
    # The share of the cell lies between inside / all and outside / all inside.
    assert first.share.low <= inside.share([0], [None]).low
    assert first.share.high >= exact.share([0], [None]).high


def test_cells_are_all_combinations_and_swamped_ones_say_so():
    artefact = artefact_of(measure(3))
    table = measured_tables(artefact, [1, 2])[0]
    selections = tuple(
        Selection.of(Bands.of_parts(SCHEMA.attributes[c], parts), np.ones(len(parts)), parts)
        for c, parts in zip([1, 2], table.parts, strict=True)
    )
    cells = MeasuredCells(table=table, selections=selections, sampling=0.0)
    found = cells.cells(asked=[0, 1])
    assert len(found) == len(selections[0].bands) * len(selections[1].bands)
    truth = true_table([1, 2], [own.bands for own in selections])
    for cell, count in zip(found, truth.ravel(), strict=True):
        error, unbiased = cell.standard_error or 0.0, cell.unbiased_count or 0.0
        assert (SWAMPED in cell.note) == (error > max(unbiased, 0) / 2)
        assert abs(unbiased - count) < 5 * error
    assert cells.share([None, None], [None, None]).low == pytest.approx(1)
    within = [cell.within.estimate for cell in found[:2]]
    assert sum(within) == pytest.approx(1)


def test_a_cell_that_the_condition_excludes_is_left_out(sizes):
    shares = np.repeat([1.0, 0.0], 20)
    found = one_way(sizes, [0] * 20 + [1] * 20, shares).cells(asked=[0])
    assert [cell.labels for cell in found] == [("0",)]
    assert found[0].share.low == pytest.approx(1)


def test_bands_that_share_a_bin_leave_the_total_as_it_is():
    """A bin that two bands share is inside neither, and inside both together."""
    artefact = artefact_of(measure(3))
    table = next(t for t in measured_tables(artefact, [0]) if t.source == "two-way tables")
    bins = table.parts[0]
    widest = int(np.argmax(np.bincount(bins)))
    cut = int(np.flatnonzero(bins == widest)[1])
    halves = one_way(table, [int(code >= cut) for code in range(40)])
    whole = one_way(table, [0] * 40)
    assert not halves.is_aligned
    assert halves.count([None]) == whole.count([0])
    assert halves.share([None], [None]).low == pytest.approx(1)
