"""Total variation, against its definition and against the scoring program of the real tables."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_rate
from deniable.evaluation import distances, subgroups
from deniable.evaluation.distances import Distances, compare_tables, total_variation
from deniable.evaluation.distinguishability import distinguish, measure_distinguishability
from deniable.evaluation.effort import Effort
from deniable.evaluation.marginals import OTHER_VALUES, measure_marginals
from deniable.evaluation.reference_tables import (
    EvaluationTables,
    disjoint_samples,
    independent_columns,
    sample_rows,
    split_rows,
)
from deniable.evaluation.subgroups import measure_subgroups
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute


def attributes_of(sizes):
    return [
        Attribute(name=f"a{i}", kind="categorical", values=tuple(f"v{j}" for j in range(size)))
        for i, size in enumerate(sizes)
    ]


def distances_of(sizes, first, second, *, width):
    return compare_tables(attributes_of(sizes), {"": (first, second)}, width=width)[""]


def by_definition(first, second, columns):
    """The largest difference of the probabilities of any event: the sum where p is above q."""
    rows = [list(map(tuple, codes[:, columns].tolist())) for codes in (first, second)]
    events = set(rows[0]) | set(rows[1])
    shares = [{e: of.count(e) / len(of) for e in events} for of in rows]
    return sum(max(0.0, shares[0][e] - shares[1][e]) for e in events)


@pytest.mark.parametrize("width", [1, 2])
def test_a_distance_is_the_largest_difference_of_any_event(width, rng):
    sizes = (2, 3, 4)
    first = np.stack([rng.integers(0, s, 40) for s in sizes], axis=1).astype(np.uint16)
    second = np.stack([rng.integers(0, s, 30) for s in sizes], axis=1).astype(np.uint16)

    found = distances_of(sizes, first, second, width=width)

    choices = list(combinations(range(3), width))
    assert found.names == tuple(tuple(f"a{i}" for i in c) for c in choices)
    expected = [by_definition(first, second, list(c)) for c in choices]
    assert found.values == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(expected))


def test_tables_compared_together_have_the_distances_they_have_alone(rng):
    sizes = (2, 3, 4)
    one, two, three = (
        np.stack([rng.integers(0, s, rows) for s in sizes], axis=1).astype(np.uint16)
        for rows in (40, 30, 50)
    )
    reports = []
    together = compare_tables(
        attributes_of(sizes),
        {"x": (one, two), "y": (three, two)},
        width=2,
        progress=lambda done, of: reports.append((done, of)),
    )
    for name, first in (("x", one), ("y", three)):
        alone = distances_of(sizes, first, two, width=2)
        assert together[name].values == pytest.approx(alone.values)
    assert reports == [(0, 3)]


def test_counting_only_cells_that_occur_changes_nothing(monkeypatch, rng):
    sizes = (50, 60)
    first, second = (
        np.stack([rng.integers(0, s, 100) for s in sizes], axis=1).astype(np.uint16)
        for _ in range(2)
    )
    dense = distances_of(sizes, first, second, width=2)
    monkeypatch.setattr(distances, "_MAX_DENSE_CELLS", 0)
    sparse = distances_of(sizes, first, second, width=2)
    assert sparse.values == pytest.approx(dense.values)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_a_distance_is_symmetric_within_0_and_1_and_blind_to_scale(cells):
    one, two = np.array(cells).T + np.array([[1], [0]])
    two[0] += 1
    distance = total_variation(one, two)
    assert 0 <= distance <= 1
    assert total_variation(two, one) == pytest.approx(distance)
    assert total_variation(7 * one, two) == pytest.approx(distance)
    assert total_variation(one, one) == 0


def test_the_worst_come_first():
    found = Distances(names=(("a",), ("b",), ("c",)), values=(0.1, 0.5, 0.2))
    assert found.worst(2) == [(("b",), 0.5), (("c",), 0.2)]
    assert (found.mean, found.max) == (pytest.approx(0.8 / 3), 0.5)
    assert found.document()["worst"] == ["b"]
    assert found.box == pytest.approx((0.1, 0.15, 0.2, 0.35, 0.5))


def test_a_group_that_was_not_released_has_the_largest_loss(small_schema, halves):
    real, holdout = halves
    released = real[real[:, 4] != 2]
    groups = measure_subgroups(
        small_schema.attributes, EvaluationTables.of(real, released, holdout, key=0)
    )
    worst = groups.subgroups[0]
    assert (worst.attribute, worst.value) == ("pet", "pangolin")
    assert (worst.released, worst.distance) == (0, 1)
    assert worst.share == pytest.approx(np.mean(holdout[:, 4] == 2))
    assert groups.lost == (worst,)
    others = [g for g in groups.subgroups if g.attribute == "home"]
    assert max(g.loss for g in others) < 0.2


def test_a_group_that_chance_made_smaller_is_not_lost(small_schema, halves):
    """Of a few released records one group may miss half; of many that is no chance."""
    real, holdout = halves
    pet = holdout[:, 4] == 2
    fewer = np.concatenate([holdout[~pet], holdout[pet][:10]])
    lost = measure_subgroups(
        small_schema.attributes, EvaluationTables.of(real, fewer, holdout, key=0)
    ).lost
    assert [(g.attribute, g.value) for g in lost] == [("pet", "pangolin")]
    few = fewer[-40:][::2]
    groups = measure_subgroups(
        small_schema.attributes, EvaluationTables.of(real, few[:8], holdout, key=0)
    )
    assert not [g for g in groups.lost if g.attribute == "pet"]


def test_every_figure_is_that_of_its_definition(small_schema, halves, monkeypatch):
    """Rows are picked group by group here; batches change nothing."""
    real, holdout = halves
    released = real[: len(real) // 2]
    compared = EvaluationTables.of(real, released, holdout, key=0)
    monkeypatch.setattr(subgroups, "_MAX_CELLS_PER_BATCH", 40)
    found = measure_subgroups(small_schema.attributes, compared)

    group = next(each for each in found.subgroups if each.value == "pangolin")
    assert group.distance == pytest.approx(_distance_within(holdout, released, 4, 2))
    assert group.chance == pytest.approx(_distance_within(real, holdout, 4, 2))


def _distance_within(one, two, column, code):
    inside = [table[table[:, column] == code] for table in (one, two)]
    others = [j for j in range(one.shape[1]) if j != column]
    return np.mean(
        [total_variation(*(np.bincount(t[:, j], minlength=99) for t in inside)) for j in others]
    )


def test_marginals_are_shares_by_the_schemas_names(small_schema, small_codes):
    years, trade, home, *_ = measure_marginals(
        small_schema.attributes, small_codes, small_codes[:500]
    )
    assert home.labels == ("houseboat", "windmill")
    assert home.real == pytest.approx(np.bincount(small_codes[:500, 2]) / 500)
    assert home.released == pytest.approx(np.bincount(small_codes[:, 2]) / 2_000)
    assert trade.labels[-1] == "missing"
    assert years.is_number
    assert years.labels[0] == "20 to 21"
    assert len(years.labels) == 30
    assert sum(years.released) == pytest.approx(1)


def test_the_rarest_of_many_values_share_a_bar(rng):
    attribute = Attribute(
        name="c", kind="categorical", values=tuple(f"v{i}" for i in range(40)), missing=("",)
    )
    codes = np.minimum(rng.geometric(0.1, 500) - 1, 40)[:, None].astype(np.uint16)
    (found,) = measure_marginals([attribute], codes, codes)
    assert len(found.labels) == 14
    assert found.labels[-1] == OTHER_VALUES
    assert sum(found.released) == pytest.approx(1)
    assert found.released[0] == np.bincount(codes[:, 0]).max() / 500


def test_real_rows_cannot_be_distinguished_from_other_real_rows(small_codes):
    """False-alarm rate 10⁻⁶ under a fixed key; changed rows must be distinguished."""
    one, two = split_rows(small_codes, 0.5, Keyed(3).at("records"))
    found = distinguish("forest", one, two, Effort(runs=1, trees=10, game=500))
    assert_rate(round(found.accuracy * found.tested_on), found.tested_on, 0.5)
    other = two.copy()
    other[:, 2] = 1 - other[:, 2]
    changed = distinguish("forest", one, other, Effort(runs=1, trees=10, game=500))
    assert changed.accuracy > 0.8
    assert changed.trained_on == 1_000


def test_independent_columns_are_distinguished_from_real_rows(tables, little):
    game = measure_distinguishability(tables, little)
    assert game.rounds["marginals"].accuracy > 0.6
    assert game.rounds["reals"].accuracy < 0.6
    assert game.document()["against"] == "holdout"


def rows(codes):
    return sorted(map(tuple, codes.tolist()))


def test_a_split_has_every_row_once(small_codes):
    one, two = split_rows(small_codes, 0.3, Keyed(1).at("records"))
    assert len(one) == 600
    assert rows(np.concatenate([one, two])) == rows(small_codes)


def test_a_sample_is_no_larger_than_asked_and_all_rows_stay_as_they_are(small_codes):
    assert len(sample_rows(small_codes, 10, Keyed(1).at("records"))) == 10
    assert sample_rows(small_codes, 10_000, Keyed(1).at("records")) is small_codes


def test_two_samples_have_no_row_in_common():
    numbered = np.arange(1_000, dtype=np.uint16).reshape(-1, 1)
    one, two = disjoint_samples(numbered, 300, Keyed(4).at("records"))
    assert len(one) == len(two) == 300
    assert not set(one.ravel()) & set(two.ravel())
    assert (one == sample_rows(numbered, 300, Keyed(4).at("records"))).all()
    halves = disjoint_samples(numbered, 800, Keyed(4).at("records"))
    assert rows(np.concatenate(halves)) == rows(numbered)


def test_independent_columns_keep_single_columns_and_nothing_else(small_codes):
    drawn = independent_columns(small_codes, 20_000, Keyed(1).at("records"))
    share = float(np.mean(small_codes[:, 4] == 0))
    assert_rate(int((drawn[:, 4] == 0).sum()), 20_000, share)
    # pet and home hang together in the table; here they do not.
    both = float(np.mean((small_codes[:, 4] == 0) & (small_codes[:, 2] == 0)))
    apart = share * float(np.mean(small_codes[:, 2] == 0))
    seen = int(((drawn[:, 4] == 0) & (drawn[:, 2] == 0)).sum())
    assert_rate(seen, 20_000, apart)
    with pytest.raises(AssertionError, match="false-alarm"):
        assert_rate(seen, 20_000, both)


def test_without_held_out_rows_no_test_row_is_learnt_from():
    real = np.stack([np.arange(100), np.arange(100)], axis=1).astype(np.uint16)
    tables = EvaluationTables.of(real, real, None, key=0)
    assert not tables.held_out
    assert not set(tables.train[:, 0]) & set(tables.test[:, 0])
    assert not set(tables.ceiling[0][:, 0]) & set(tables.ceiling[1][:, 0])
    assert len(tables.train) == 70
