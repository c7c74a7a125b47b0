"""Three-way interactions: how far one record moves them, their noise, and tables in their place."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import ndtr

from chance import assert_distribution, assert_no_shared_noise
from deniable.counting.local import count
from deniable.model.pairwise import measure
from deniable.model.pairwise.measure import (
    FURTHER_TABLES,
    ThreeWayInteractions,
    measure_pairwise,
    measure_tables,
    measure_three_way,
    scaled_interactions,
    with_bins,
)
from deniable.privacy.ledger import Ledger
from deniable.privacy.noise_laws import Law, rounded_gaussian
from deniable.privacy.pairwise_budget import (
    MAX_THREE_WAY_GROUPS,
    PAIRS_SPEND,
    THREE_WAY_SPEND,
    gaussian_sigma,
    pair_noise,
)
from deniable.randomness import Keyed
from worlds import Spy, codes_of, plain_attribute

pytestmark = pytest.mark.slow

ATTRIBUTES = tuple(plain_attribute(f"x{i}", size) for i, size in enumerate((2, 3, 2, 2)))
RECORDS = list(product(*(range(attribute.size) for attribute in ATTRIBUTES)))


def noise_of(mu):
    return pair_noise([a.size for a in ATTRIBUTES], mu_values=mu, mu_pairs=mu)


def counter(codes):
    return lambda grouped: partial(count, grouped, codes, workers=1)


def measured_of(codes, noise, *, key=1):
    values = partial(count, ATTRIBUTES, codes, workers=1)
    rng = Keyed(key).at("noise")
    return measure_pairwise(rng, values, counter(codes), ATTRIBUTES, noise)


def triples_of(codes, measured, noise, *, key=1, targets=()):
    rng = Keyed(key).at("noise", 7)
    return measure_three_way(rng, counter(codes), ATTRIBUTES, measured, noise, targets=targets)


def tables_of(codes, measured, noise):
    weights = dict.fromkeys(combinations(range(4), 2), 1.0)
    binned = counter(codes)(with_bins(ATTRIBUTES, measured.bins))
    return measure_tables(Keyed(4).at("noise"), binned, measured, weights, noise)


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 5), (4, 2, 7), (7, 7, 7), (6, 3, 4)])
def test_one_record_in_any_cell_moves_interactions_by_what_lemma_11_states(shape):
    """‖Δq‖² = (abc)² (1 - 1/a)(1 - 1/b)(1 - 1/c), whatever the cell; all sums stay zero."""
    assert max(shape) <= MAX_THREE_WAY_GROUPS
    table = np.random.default_rng(3).integers(0, 900, shape)
    cells = math.prod(shape)
    lemma = cells**2 * math.prod(1 - Fraction(1, size) for size in shape)
    before = scaled_interactions(table)
    assert all(not before.sum(axis=axis).any() for axis in range(3))
    for cell in product(*map(range, shape)):
        more = table.copy()
        more[cell] += 1
        assert int(np.square(scaled_interactions(more) - before).sum()) == lemma


def test_interactions_are_the_centred_table_times_its_cells():
    """Literally: a signed sum over all margins, each divided by the cells that it sums."""
    table = np.random.default_rng(5).integers(0, 90, (2, 3, 4))
    found = scaled_interactions(table)
    for cell in np.ndindex(*table.shape):
        value = Fraction(0)
        for summed in product((False, True), repeat=3):
            at = tuple(slice(None) if s else i for s, i in zip(summed, cell, strict=True))
            own = math.prod(n for s, n in zip(summed, table.shape, strict=True) if s)
            value += Fraction((-1) ** sum(summed) * int(table[at].sum()), own)
        assert found[cell] == value * table.size


@pytest.mark.parametrize("targets", [(), (1,)])
def test_one_record_moves_no_number_further_than_it_is_charged_for(monkeypatch, targets):
    """All records that can be added to some tables. The squares of all changes, each over σ² of
    the noise that was drawn, are what the ledger states: nothing is left over."""
    noise = noise_of(8.0)
    known, _ = measured_of(codes_of(RECORDS * 50, 4), noise)
    compared = 0
    for records in ([], RECORDS[:1], RECORDS[3:9], RECORDS * 2):
        for more in RECORDS:
            spy = Spy()
            monkeypatch.setattr(measure, "add_noise", spy)
            for table in (records, [*records, more]):
                found, spends = triples_of(codes_of(list(table), 4), known, noise, targets=targets)
                assert found.three_way is not None
            half = len(spy.calls) // 2
            cost = 0.0
            for (spend, one), (same, two) in zip(spy.calls[:half], spy.calls[half:], strict=True):
                assert spend == same
                assert spend.what == "triples"
                cost += float(np.square(two - one).sum()) / gaussian_sigma(spend.law) ** 2
            (stated,) = spends
            assert stated.what == THREE_WAY_SPEND
            assert stated.mu**2 * (1 - 1e-12) <= cost <= stated.mu**2
            compared += 1
    assert compared == 4 * len(RECORDS)


def test_three_way_interactions_have_the_noise_that_is_paid_for():
    """Noise over the σ of its triple: 100 runs of four triples; the squares by 7 deviations, the
    law by ten intervals of equal probability, false-alarm rate 1e-6; fixed keys. No two cells, of
    one triple or of two, share their noise: false-alarm rate 1e-6."""
    noise, codes = noise_of(0.3), codes_of(RECORDS * 2_000, 4)
    known, _ = measured_of(codes, noise)
    scores: list[float] = []
    laws: list[Law] = []
    for key in range(100):
        found, _ = triples_of(codes, known, noise, key=key)
        laws = []
        for triple, noisy in found.three_way.interactions.items():
            exact = np.zeros(noisy.shape, dtype=np.int64)
            np.add.at(exact, tuple(codes[:, i].astype(int) for i in triple), 1)
            sigma = noisy.size * found.three_way.sigmas[triple]
            scores += ((noisy - scaled_interactions(exact)) / sigma).ravel().tolist()
            laws += [rounded_gaussian(sigma)] * noisy.size
    assert len(scores) == 100 * (8 + 3 * 12)
    assert abs(np.mean(np.square(scores)) - 1) < 7 * np.sqrt(2 / len(scores))
    assert_no_shared_noise(np.reshape(scores, (100, -1)), laws)
    tenths = np.floor(10 * ndtr(scores)).astype(int)
    assert_distribution(Counter(tenths.tolist()), dict.fromkeys(range(10), 0.1))


@pytest.mark.parametrize(("copies", "is_measured"), [(1, False), (500, True)])
def test_tables_are_measured_in_place_of_triples_or_given_up_for_them(
    copies, is_measured, monkeypatch
):
    """The ledger is the same; what it pays for is decided by noisy counts."""
    noise = noise_of(1.0)
    codes = codes_of(RECORDS * copies, 4)
    measured, spends = measured_of(codes, noise)
    measured, more = triples_of(codes, measured, noise)
    assert (measured.three_way is not None) == is_measured
    spy = Spy()
    monkeypatch.setattr(measure, "add_noise", spy)
    measured, last = tables_of(codes, measured, noise)
    names = [attribute.name for attribute in ATTRIBUTES]
    Ledger((*spends, *more, *last)).require_equal(noise.spends(names))
    own = noise.table_count - noise.reserved_count
    drawn = {spend.what: spend.l0_sensitivity for spend, _ in spy.calls}
    further = {} if is_measured else {FURTHER_TABLES: noise.reserved_count}
    assert drawn == {PAIRS_SPEND: own, **further}
    assert sum(measured.table_counts.values()) == sum(drawn.values())
    assert {spend.law for spend, _ in spy.calls} == {noise.tables}


def test_a_record_moves_one_cell_of_every_table_by_one(monkeypatch):
    """Also of those that three-way interactions would have paid for."""
    noise = noise_of(1.0)
    measured, _ = measured_of(codes_of(RECORDS, 4), noise)
    for more in RECORDS:
        spy = Spy()
        monkeypatch.setattr(measure, "add_noise", spy)
        for table in (RECORDS[:5], [*RECORDS[:5], more]):
            tables_of(codes_of(table, 4), measured, noise)
        first, second = spy.calls[:2], spy.calls[2:]
        for (spend, one), (_, two) in zip(first, second, strict=True):
            change = two - one
            assert sorted(change[change != 0].tolist()) == [1] * spend.l0_sensitivity


def test_nothing_is_measured_or_spent_without_an_entry():
    noise = replace(noise_of(1.0), reserved_count=0)
    codes = codes_of(RECORDS * 500, 4)
    measured, _ = measured_of(codes, noise)
    assert triples_of(codes, measured, noise) == (measured, [])


def test_shapes_must_match():
    table = np.zeros((2, 3, 2), dtype=np.int64)
    groups = (np.arange(2), np.arange(3), np.array([0, 0, 1]))
    good = ThreeWayInteractions(
        groups=groups, interactions={(0, 1, 2): table}, sigmas={(0, 1, 2): 2.0}
    )
    assert good.fits([2, 3, 3])
    assert not good.fits([2, 3, 2])
    assert not replace(good, sigmas={}).fits([2, 3, 3])
    assert not replace(good, interactions={(0, 1, 2): table[:, :2]}).fits([2, 3, 3])
    table += 24
    assert np.array_equal(good.interaction((0, 1, 2)), np.full((2, 3, 2), 2.0))
    assert good.mean_square == 1.0
    table[1, 2, 1] += 12
    assert good.mean_square == pytest.approx((11 + 1.5**2) / 12)
