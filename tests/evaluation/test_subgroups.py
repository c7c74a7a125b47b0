"""Subgroups and rarity bands, on releases that lost a group or invented rare values."""

import numpy as np
import pytest

from deniable.evaluation import subgroups
from deniable.evaluation.reference_tables import EvaluationTables
from deniable.evaluation.subgroups import measure_subgroups


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


def test_bands_measure_how_much_of_the_rare_pairs_was_kept(small_schema, halves):
    real, holdout = halves
    copied = measure_subgroups(
        small_schema.attributes, EvaluationTables.of(real, holdout, holdout, key=0)
    )
    assert [b.released for b in copied.bands] == pytest.approx([b.reference for b in copied.bands])
    assert sum(b.reference for b in copied.bands) == pytest.approx(1)
    assert copied.bands[0].reference == 0
    spread_out = np.stack([np.arange(3_000) % size for size in small_schema.sizes], axis=1)
    invented = EvaluationTables.of(real, spread_out.astype(np.uint16), holdout, key=0)
    assert measure_subgroups(small_schema.attributes, invented).bands[0].released > 0.1


def test_occurrences_are_the_same_for_small_and_for_large_tables(monkeypatch, rng):
    reference, rows = rng.integers(0, 50, 200), rng.integers(0, 60, 300)
    expected = [int((reference == cell).sum()) for cell in rows]
    assert subgroups._occurrences(reference, rows).tolist() == expected
    monkeypatch.setattr(subgroups, "_MAX_DENSE_CELLS", 10)
    assert subgroups._occurrences(reference, rows).tolist() == expected
