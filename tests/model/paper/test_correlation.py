"""Integer entropies, and correlations computed from them, against the paper's formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import correlation, entropy, whole_entropy
from deniable.counting.contingency import QueryAxis, count_cells
from deniable.model.paper import correlation as correlation_module
from deniable.model.paper.correlation import (
    StructureNoise,
    correlations_from_entropies,
    entropy_queries,
    learn_correlations,
    learn_paper_correlations,
    measure_entropies,
    symmetrical_uncertainty,
)
from deniable.privacy.composition import Guarantee
from deniable.privacy.entropy_scale import EntropyScale
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import exact
from deniable.privacy.paper_noise import MAX_STEPS_PER_RECORD, paper_noise
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from worlds import codes_of, plain_attribute, property_test, schemas, tables

pytestmark = pytest.mark.slow

BITS = 20


def count_in(schema, table):
    codes = codes_of(table, len(schema))
    return lambda queries: [count_cells(schema, codes, query) for query in queries]


def column(schema, table, axis: QueryAxis) -> list[int]:
    codes = [record[axis.attribute] for record in table]
    return [schema[axis.attribute].groups[c] for c in codes] if axis.bucketed else codes


@st.composite
def measured(draw, least=1):
    schema = draw(schemas(least=least))
    return schema, draw(tables(schema, least=1, most=30))


@property_test
@given(measured(), st.integers(0, BITS))
def test_s_over_n_is_the_entropy_within_one_unit(case, bits):
    """|S / (n·2^bits) - H| ≤ 2^-bits.

    G(c) sums c steps, each rounded by at most ½ (the first, 0, not at all), so G(n) is off by at
    most (n-1)/2 and the Σ_cells G(c) by at most (n-1)/2 as well: S by less than n. The doubles
    of both sides add less than 2^-40.
    """
    schema, table = case
    scale = EntropyScale(rows_max=1000, bits=bits)
    for query, s in measure_entropies(count_in(schema, table), schema, scale).items():
        joint = list(zip(*[column(schema, table, axis) for axis in query], strict=True))
        h = entropy(joint)
        assert abs(s / (len(table) * 2**bits) - h) <= 2.0**-bits + 2.0**-40, query


@property_test
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.integers(0, 5),
    st.integers(1, 300),
    st.integers(0, 6),
)
def test_one_record_moves_s_by_at_most_most_for_every_rows_max(counts, at, rows_max, bits):
    """guarantee.md, Lemma 9: S(D + d) - S(D) ∈ [0, Δ], whatever the guess of the size."""
    scale = EntropyScale(rows_max=rows_max, bits=bits)
    before = np.array(counts, dtype=np.int64)
    after = before.copy()
    after[at % len(counts)] += 1
    assert 0 <= scale.measure(after) - scale.measure(before) <= scale.sensitivity
    assert scale.sensitivity % 2 == 0


@property_test
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(1, 200), st.integers(0, 12)
)
def test_s_is_the_integer_form_to_the_last_unit(counts, rows_max, bits):
    """Every step rounded to nearest, capped at Δ: also beyond ``rows_max``."""
    scale = EntropyScale(rows_max=rows_max, bits=bits)
    measured = scale.measure(np.array(counts, dtype=np.int64))
    assert (measured, scale.sensitivity) == whole_entropy(counts, rows_max=rows_max, bits=bits)


def test_one_record_can_move_s_by_almost_most():
    """The bound is not slack: n equal records and one unlike them (Lemma 8 attains it)."""
    scale = EntropyScale(rows_max=1000, bits=4)
    alone, beside = np.array([1000, 0]), np.array([1000, 1])
    assert scale.measure(beside) - scale.measure(alone) >= scale.sensitivity - 2


def test_beyond_rows_max_s_still_grows_and_the_bound_still_holds():
    scale = EntropyScale(rows_max=10, bits=4)
    for n in range(1, 200):
        step = scale.measure(np.array([n, 1])) - scale.measure(np.array([n, 0]))
        assert 0 <= step <= scale.sensitivity


def test_eleven_bucketed_attributes_need_187_entropies():
    """m(3m+1)/2 for m = 11 (the review, section 0): not the m(m+1) = 132 of the paper."""
    schema = [
        Attribute(name=f"x{i}", kind="integer", values=range(4)).with_bucket_width(2)
        for i in range(11)
    ]
    queries = entropy_queries(schema)
    assert len(queries) == len(set(queries)) == 187


@property_test
@given(schemas())
def test_every_entropy_the_paper_needs_is_asked_once(schema):
    """H(x_i), H(bkt x_i), H(x_i, x_j), H(x_i, bkt x_j), i ≠ j, less those that are equal."""
    bucketed = {i for i, a in enumerate(schema) if len(set(a.groups)) < a.size}
    needed = set()
    for i in range(len(schema)):
        needed.add(frozenset([(i, False)]))
        needed.add(frozenset([(i, i in bucketed)]))
        for j in range(len(schema)):
            if i != j:
                needed.add(frozenset([(i, False), (j, False)]))
                needed.add(frozenset([(i, False), (j, j in bucketed)]))
    asked = [
        frozenset((axis.attribute, axis.bucketed) for axis in q) for q in entropy_queries(schema)
    ]
    assert len(asked) == len(set(asked))
    assert set(asked) == needed
    m, b = len(schema), len(bucketed)
    assert len(asked) == m + b + m * (m - 1) // 2 + b * (m - 1)


@property_test
@given(st.floats(-5, 50), st.floats(-5, 50), st.floats(-5, 100))
def test_symmetrical_uncertainty_stays_in_the_unit_interval(h_x, h_y, h_xy):
    """With noise the entropies can be anything (Sec. 3.3.1)."""
    assert 0 <= symmetrical_uncertainty(h_x, h_y, h_xy) <= 1


@property_test
@given(measured(least=2))
def test_correlations_are_those_of_the_paper(case):
    """From exact entropies, to the last digits: ``eq:gm:correlation``."""
    schema, table = case
    columns = {
        query: list(zip(*[column(schema, table, axis) for axis in query], strict=True))
        for query in entropy_queries(schema)
    }
    entropies = {query: len(table) * entropy(joint) for query, joint in columns.items()}
    found = correlations_from_entropies(schema, entropies)
    for i in range(len(schema)):
        assert found.single[i] == pytest.approx(len(table) * entropy([r[i] for r in table]))
        assert found.between[i, i] == found.with_parent[i, i] == 0
        for j in set(range(len(schema))) - {i}:
            x, y = column(schema, table, QueryAxis(i)), column(schema, table, QueryAxis(j))
            z = column(schema, table, QueryAxis(j, bucketed=True))
            assert found.between[i, j] == pytest.approx(correlation(x, y), abs=1e-9)
            assert found.with_parent[i, j] == pytest.approx(correlation(x, z), abs=1e-9)


@property_test
@given(measured(least=2))
def test_learning_without_noise_gives_the_correlations_of_the_data(case):
    """corr = 2 - 2·S_xy / (S_x + S_y); each S is off by less than n units (above).

    With h = H(x) + H(y) > 0 and u = 2^-bits, numerator and denominator are off by at most u
    and 2u: |Δcorr| ≤ 2·(u·h + 2u·H(x,y)) / (h·(h - 2u)) ≤ 6u / (h - 2u), as H(x,y) ≤ h.
    """
    schema, table = case
    noise = StructureNoise(
        scale=EntropyScale(rows_max=1000, bits=BITS), entropy=exact(), records=exact()
    )
    found, records, spends = learn_correlations(
        Keyed(1).at("noise"), count_in(schema, table), schema, noise
    )
    assert records == len(table)
    assert [spend.l0_sensitivity for spend in spends] == [len(entropy_queries(schema)), 1]
    for i in range(len(schema)):
        for j in set(range(len(schema))) - {i}:
            x, y = (
                column(schema, table, QueryAxis(i)),
                column(schema, table, QueryAxis(j, bucketed=True)),
            )
            h, unit = entropy(x) + entropy(y), 2.0**-BITS
            tolerance = 6 * unit / (h - 2 * unit) + 1e-12 if h > 0 else 0.0
            assert abs(found.with_parent[i, j] - correlation(x, y)) <= tolerance


# The paper's noise: entropies in steps of their sensitivity at a noisy number of records.

PAPER = paper_noise(
    Guarantee(epsilon=1.0, delta=1e-6),
    attributes=2,
    fractions={"structure": 0.5, "parameters": 0.5},
).structure
PAIR = [plain_attribute("x", 3), plain_attribute("y", 4)]
PAPER_TABLE = [(0, 1), (0, 2), (1, 3), (2, 1), (2, 0), (0, 1), (1, 1)]


@pytest.fixture
def steps_at(monkeypatch):
    """Return the entropies that get noise, in steps, where the noisy number of records is given."""

    def steps_at(table, noisy_records):
        asked = {}

        def answer(_rng, counts, law, *, what, **entry):
            asked[what] = counts.tolist()
            noisy = np.array([noisy_records]) if what == "number of records" else counts
            return noisy, Spend(what=what, law=law, **entry)

        monkeypatch.setattr(correlation_module, "add_noise", answer)
        rng = Keyed(1).at("noise")
        _, records, _ = learn_paper_correlations(rng, count_in(PAIR, table), PAIR, PAPER)
        assert (asked["number of records"], records) == ([len(table)], noisy_records)
        return np.array(asked["entropies"])

    return steps_at


@pytest.mark.parametrize("noisy", [-10, 900, 5_000, 10**6])
def test_the_papers_step_follows_from_the_noisy_number_of_records(steps_at, noisy):
    """Copies of all records change their number and no entropy: the steps stay as they are.

    A step is a share of the sensitivity at a lower bound of n. If it followed from n itself, a
    record would move the entropies by more steps than it is charged for.
    """
    unit = PAPER.unit(PAPER.lower_bound(noisy))
    by_query = [
        *(entropy([row[i] for row in PAPER_TABLE]) for i in range(2)),
        entropy(PAPER_TABLE),
    ]
    for copies in (1, 200, 3_000):
        found = steps_at(PAPER_TABLE * copies, noisy)
        # Rounding to a step; S has units of 2^-16 bits, and each of its n increments is rounded.
        tolerance = 0.5 + 2**-16 / unit + 1e-6
        np.testing.assert_allclose(found, np.array(by_query) / unit, rtol=0, atol=tolerance)


@pytest.mark.parametrize("copies", [1, 30, 900])
def test_a_record_moves_the_papers_steps_by_what_is_charged(steps_at, copies):
    """Where the lower bound is at most n, as it is except with probability β."""
    table = PAPER_TABLE * copies
    slack = 10**6 - PAPER.lower_bound(10**6)
    for noisy in (-(10**6), len(table) // 2, len(table) + slack):
        assert PAPER.lower_bound(noisy) <= len(table)
        before = steps_at(table, noisy)
        for more in [(x, y) for x in range(3) for y in range(4)]:
            moved = np.abs(steps_at([*table, more], noisy) - before)
            assert moved.max() <= MAX_STEPS_PER_RECORD


def test_a_constant_column_predicts_nothing():
    schema = [plain_attribute("x", 3), plain_attribute("y", 3)]
    table = [(0, 1), (1, 1), (2, 1)]
    scale = EntropyScale(rows_max=100, bits=4)
    entropies = measure_entropies(count_in(schema, table), schema, scale)
    found = correlations_from_entropies(schema, {q: float(s) for q, s in entropies.items()})
    assert found.with_parent[0, 1] == 0


@property_test
@given(measured())
def test_s_of_a_table_is_zero_where_all_records_are_equal(case):
    schema, table = case
    alike = table[:1] * len(table)
    scale = EntropyScale(rows_max=100, bits=4)
    assert set(measure_entropies(count_in(schema, alike), schema, scale).values()) == {0}


def test_growth_is_the_difference_of_c_log_c():
    """u(c) = (c+1)·log2(c+1) - c·log2(c) at 2^40 units to the bit, from S of two cells."""
    scale = EntropyScale(rows_max=10, bits=40)
    for c in (1, 2, 5, 9):
        units = scale.measure(np.array([c, 1]))  # = G(c+1) - G(c) = U(c)
        by_definition = (c + 1) * math.log2(c + 1) - c * math.log2(c)
        assert units == pytest.approx(by_definition * 2**40, abs=2)
