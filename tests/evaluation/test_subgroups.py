"""Subgroups, on releases that lost a group."""

import numpy as np
import pytest

from deniable.evaluation import subgroups
from deniable.evaluation.distances import total_variation
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
