"""Integer S = n·H: close to n·H, and changed by at most Δ by one record, for every table."""

import itertools
import math

import numpy as np
import pytest

import definitions
from deniable.errors import InvariantError
from deniable.privacy import entropy_scale
from deniable.privacy.entropy_scale import EntropyScale


def scale(rows_max=1_000, bits=4):
    return EntropyScale(rows_max=rows_max, bits=bits)


def measure(units, cells):
    return units.measure(np.array(cells, dtype=np.int64))


def histograms(records, cells):
    """All ways to distribute n records among cells, up to the order of the cells."""
    if cells == 1:
        yield (records,)
        return
    for first in range(records + 1):
        for rest in histograms(records - first, cells - 1):
            if not rest or first <= rest[0]:
                yield (first, *rest)


@pytest.mark.parametrize("bits", [0, 2, 4, 16])
@pytest.mark.parametrize("rows_max", [1, 2, 5, 100])
def test_one_more_record_adds_between_nothing_and_the_sensitivity(rows_max, bits):
    """Every histogram of up to 9 records in 4 cells; most lie beyond the small ``rows_max``."""
    entropy_scale = scale(rows_max, bits)
    for records in range(10):
        for cells in histograms(records, 4):
            before = measure(entropy_scale, cells)
            for cell in range(4):
                more = [c + (i == cell) for i, c in enumerate(cells)]
                assert 0 <= measure(entropy_scale, more) - before <= entropy_scale.sensitivity


def test_the_sensitivity_is_attained_and_so_is_nothing():
    """n equal records and another one: u(n). One more of the same kind: nothing."""
    entropy_scale = scale(rows_max=200, bits=4)
    assert measure(entropy_scale, [10_000, 1]) == entropy_scale.sensitivity
    assert measure(entropy_scale, [500, 0]) == measure(entropy_scale, [501, 0]) == 0


@pytest.mark.parametrize("rows_max", [1, 7, 1_000, 10**7, 2**53])
@pytest.mark.parametrize("bits", [0, 2, 4, 16])
def test_the_sensitivity_is_even_and_that_of_lemma_9(rows_max, bits):
    """Δ ≥ 2^bits · u(rows_max), and less than two units above it."""
    most = scale(rows_max, bits).sensitivity
    growth = math.log2(rows_max + 1) + rows_max * math.log1p(1 / rows_max) / math.log(2)
    assert most % 2 == 0
    assert 2**bits * growth * (1 - 1e-12) <= most < 2**bits * growth * (1 + 1e-12) + 2


@pytest.mark.parametrize("bits", [0, 2, 4, 16])
def test_the_steps_never_decrease_and_end_at_the_sensitivity(bits):
    """U(c) = S(c, 1), since a single cell has no entropy: far beyond ``rows_max``, too."""
    entropy_scale = scale(rows_max=300, bits=bits)
    steps = [measure(entropy_scale, [c, 1]) for c in range(2_000)]
    assert steps[0] == 0
    assert steps == sorted(steps)
    assert steps[-1] == entropy_scale.sensitivity


@pytest.mark.parametrize("bits", [4, 16])
def test_up_to_rows_max_it_is_n_times_the_entropy_but_for_rounding(bits):
    """n + n steps are summed, each rounded by at most half a unit."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        cells = rng.multinomial(int(rng.integers(1, 1_000)), rng.dirichlet(np.ones(6)))
        values = list(itertools.chain(*[[i] * c for i, c in enumerate(cells)]))
        ideal = 2**bits * len(values) * definitions.entropy(values)
        assert abs(measure(scale(bits=bits), cells) - ideal) <= len(values)


def test_beyond_rows_max_it_grows_more_slowly():
    cells = [3_000, 3_000]
    assert measure(scale(rows_max=100, bits=8), cells) < measure(scale(10**4, bits=8), cells)


@pytest.mark.parametrize("cells", [[], [0], [0, 0, 0], [1], [500], [0, 7]])
def test_where_all_records_are_equal_or_there_are_none_it_is_zero(cells):
    assert measure(scale(), cells) == 0


def test_cells_may_come_in_any_order_and_empty_ones_do_not_count():
    values = {measure(scale(), cells) for cells in itertools.permutations([5, 0, 2, 9])}
    assert values == {measure(scale(), [9, 5, 2])}


def test_increments_that_decrease_have_no_bounded_sensitivity(monkeypatch):
    """Lemma 9 needs U to be non-decreasing: else one record could change S by more than Δ."""
    assert EntropyScale(rows_max=100, bits=10).measure(np.array([3, 4])) > 0
    monkeypatch.setattr(entropy_scale, "_entropy_increment", lambda n: 1.0 - (n == 3))
    with pytest.raises(InvariantError, match="increments of S decrease"):
        EntropyScale(rows_max=100, bits=10).measure(np.array([3, 4]))
