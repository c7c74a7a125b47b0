"""The sample equivalent: a sample of real rows is equivalent to itself."""

import numpy as np
import pytest

from deniable.evaluation import sample_equivalent
from deniable.evaluation.column_groups import group_columns
from deniable.evaluation.sample_equivalent import measure_sample_equivalent
from deniable.schema.attribute import Attribute

ATTRIBUTES = tuple(
    Attribute(name=name, kind="categorical", values=tuple("abcdefgh")) for name in "wxyz"
)


def rows_of(count, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 8, count)
    others = [np.where(rng.random(count) < 0.5, first, rng.integers(0, 8, count)) for _ in range(3)]
    return np.asfortranarray(np.stack([first, *others], axis=1).astype(np.uint16))


REAL, HOLDOUT = rows_of(8_000, 1), rows_of(3_000, 2)


def measure(released, reference=HOLDOUT):
    columns = group_columns(ATTRIBUTES, REAL)
    return measure_sample_equivalent(columns, REAL, reference, released, key=0)


@pytest.mark.parametrize("share", [0.02, 0.12, 0.4])
@pytest.mark.parametrize("reference", [REAL, HOLDOUT], ids=["same rows", "held-out rows"])
def test_a_random_sample_is_equivalent_to_a_sample_of_its_size(share, reference):
    """With fixed rows; of all draws about one in twenty is outside of its interval."""
    found = measure(REAL[: int(share * len(REAL))], reference)
    low, high = found.interval
    assert low <= share <= high
    assert found.fraction == pytest.approx(share, rel=0.35)
    assert found.rows == round(found.fraction * len(REAL))
    assert high / low < 4
    assert found.bound is None


def test_the_interval_covers_most_samples():
    """Of 40 samples at 95 %, 38 are expected; 32 or fewer has a probability below 1 in 1,000."""
    inside = 0
    for seed in range(40):
        rows = np.random.default_rng(seed).choice(len(REAL), 800, replace=False)
        low, high = measure(REAL[rows], REAL).interval
        inside += low <= 0.1 <= high
    assert inside > 32


def test_a_copy_is_as_good_as_all_rows_and_noise_is_worse_than_ten():
    copy = measure(REAL, REAL)
    assert (copy.fraction, copy.bound) == (1.0, "above")
    noise = measure(np.zeros((500, 4), dtype=np.uint16))
    assert noise.bound == "below"
    assert 10 <= noise.rows < 20


@pytest.mark.parametrize(("records", "limit"), [(8_000, 1 / 2), (800, 1 / 11)])
def test_more_records_raise_what_a_perfect_model_reaches(records, limit):
    """A perfect model of the table draws its rows; each draw adds a sampling error of its own."""
    drawn = REAL[np.random.default_rng(3).integers(0, len(REAL), records)]
    found = measure(drawn, REAL)
    assert found.limit == pytest.approx(limit)
    assert found.fraction == pytest.approx(limit, rel=0.2)


def test_the_cost_is_bounded_by_fewer_pairs(monkeypatch):
    whole = measure(REAL[:900])
    assert whole.pairs == 6
    monkeypatch.setattr(sample_equivalent, "_MIN_PAIRS", 2)
    monkeypatch.setattr(sample_equivalent, "_MAX_COUNTED", 3 * len(REAL))
    part = measure(REAL[:900])
    assert part.pairs == 3
    assert part.fraction == pytest.approx(whole.fraction, rel=0.5)


def test_a_table_of_two_rows_can_be_measured():
    columns = group_columns(ATTRIBUTES, REAL)
    found = measure_sample_equivalent(columns, REAL[:2], REAL[:2], REAL[5:7], key=0)
    assert found.fraction == 1.0
    assert found.bound in ("below", "above")
