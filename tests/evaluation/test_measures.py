"""Baselines, intervals, the game, learning, groups, marginals, facts: one thing each."""

import numpy as np
import pytest
from scipy import stats

from chance import assert_rate
from deniable.data.attributes import Attribute
from deniable.data.schema import Schema
from deniable.errors import ConfigError
from deniable.evaluation.baselines import Tables, cut, independent, sample, two_samples
from deniable.evaluation.classifiers import fit_predict
from deniable.evaluation.confidence import jackknife, wilson
from deniable.evaluation.effort import Effort
from deniable.evaluation.facts import count_unique, table_facts
from deniable.evaluation.game import play, play_game
from deniable.evaluation.groups import measure_groups
from deniable.evaluation.learning import measure_learning, target_column
from deniable.evaluation.marginals import OTHERS, measure_marginals
from deniable.randomness import Keyed


def rows(codes):
    return sorted(map(tuple, codes.tolist()))


def test_wilson_is_scipys():
    for rate, trials in ((0.0, 10), (0.3, 50), (1.0, 7)):
        theirs = stats.binomtest(round(rate * trials), trials).proportion_ci(method="wilson")
        assert wilson(rate, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert wilson(0.5, 0) == (0.0, 1.0)


def test_the_jackknife_of_a_mean_is_its_standard_error(rng):
    """Of a mean, leaving out one value at a time gives s/√n exactly."""
    values = rng.standard_normal(30)
    low, high = jackknife(values.mean(), [np.delete(values, i).mean() for i in range(30)])
    assert (high - low) / 2 == pytest.approx(1.959964 * values.std(ddof=1) / 30**0.5)


def test_a_cut_deals_every_row_once(small_codes):
    one, two = cut(small_codes, 0.3, Keyed(1).at("records"))
    assert len(one) == 600
    assert rows(np.concatenate([one, two])) == rows(small_codes)


def test_a_sample_is_no_larger_than_asked_and_all_rows_stay_as_they_are(small_codes):
    assert len(sample(small_codes, 10, Keyed(1).at("records"))) == 10
    assert sample(small_codes, 10_000, Keyed(1).at("records")) is small_codes


def test_two_samples_have_no_row_in_common():
    numbered = np.arange(1_000, dtype=np.uint16).reshape(-1, 1)
    one, two = two_samples(numbered, 300, Keyed(4).at("records"))
    assert len(one) == len(two) == 300
    assert not set(one.ravel()) & set(two.ravel())
    assert (one == sample(numbered, 300, Keyed(4).at("records"))).all()
    halves = two_samples(numbered, 800, Keyed(4).at("records"))
    assert rows(np.concatenate(halves)) == rows(numbered)


def test_independent_columns_keep_single_columns_and_nothing_else(small_codes):
    drawn = independent(small_codes, 20_000, Keyed(1).at("records"))
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
    tables = Tables.of(real, real, None, key=0)
    assert not tables.held_out
    assert not set(tables.train[:, 0]) & set(tables.test[:, 0])
    assert not set(tables.ceiling[0][:, 0]) & set(tables.ceiling[1][:, 0])
    assert len(tables.train) == 70


def test_nobody_can_tell_real_rows_from_other_real_rows(small_codes):
    """False-alarm rate 10⁻⁶ under a fixed key; the companion below must be told apart."""
    one, two = cut(small_codes, 0.5, Keyed(3).at("records"))
    found = play("forest", one, two, Effort(runs=1, trees=10, game=500))
    assert_rate(round(found.accuracy * found.tested_on), found.tested_on, 0.5)
    other = two.copy()
    other[:, 2] = 1 - other[:, 2]
    told = play("forest", one, other, Effort(runs=1, trees=10, game=500))
    assert told.accuracy > 0.8
    assert told.trained_on == 1_000


def test_independent_columns_are_told_from_real_rows(tables, little):
    game = play_game(tables, little)
    assert game.rounds["forest"]["marginals"].accuracy > 0.6
    assert game.rounds["forest"]["reals"].accuracy < 0.6
    assert game.document()["against"] == "holdout"


def test_where_there_is_one_class_it_is_the_answer():
    train = np.zeros((5, 2), dtype=np.uint16)
    found = fit_predict(
        "forest", "classification", train=train, labels=np.full(5, 3, dtype=np.uint16),
        test=train[:2], trees=2, key=0,
    )  # fmt: skip
    assert found.tolist() == [3.0, 3.0]


def test_learning_from_independent_columns_is_guessing(tables, small_schema, little):
    found = measure_learning(tables, small_schema, little, target="home")
    assert found.task == "classification"
    tree = found.scores["tree"]
    assert tree["real"].agreement == 1
    assert tree["real"].value > found.guessing + 0.1
    assert tree["released"].value < tree["real"].value - 0.1
    assert tree["released"].interval[0] < tree["released"].value < tree["released"].interval[1]
    assert set(found.private) == {"logistic", "huber"}
    assert found.private["logistic"]["not private"] > found.private["logistic"]["marginals"]
    told = found.document()["private"]["logistic"]
    assert told["epsilon"] == 1
    low, high = told["released"]["interval"]
    assert low < told["released"]["accuracy"] < high


def test_several_classes_have_no_private_classifier_to_compare_with(tables, small_schema, little):
    found = measure_learning(tables, small_schema, little, target="pet")
    assert found.task == "classification"
    assert found.private == {}


def test_a_number_is_learnt_as_a_number(tables, small_schema, little):
    found = measure_learning(tables, small_schema, little, target="years")
    assert found.task == "regression"
    assert found.guessing == 0
    ridge = found.scores["linear"]
    # boats moves years: a ridge regression explains some of it, from reals only.
    assert ridge["real"].value > 0.3
    assert abs(ridge["released"].value) < 0.15
    assert ridge["half"].agreement > 0.9
    assert "explained" in found.document()["linear"]["released"]


def test_a_number_that_is_missing_is_not_asked_for():
    numbers = Attribute(name="n", kind="integer", values=range(30), missing=("?",))
    schema = Schema((Attribute(name="c", kind="categorical", values=("x", "y")), numbers))
    codes = np.stack([np.arange(400) % 2, np.arange(400) % 31], axis=1).astype(np.uint16)
    tables = Tables.of(codes, codes, codes, key=0)
    found = measure_learning(tables, schema, Effort(runs=1, rows=100, trees=2, game=10), target="n")
    assert found.test_rows == int((codes[:, 1] != 30).sum())


def test_rare_classes_become_one():
    values = tuple(f"v{i}" for i in range(80))
    schema = Schema(
        (
            Attribute(name="c", kind="categorical", values=values),
            Attribute(name="d", kind="categorical", values=values),
        )
    )
    # The first 49 values are common, the other 31 rare.
    column = np.concatenate([np.repeat(np.arange(49), 10), np.arange(49, 80)]).astype(np.uint16)
    codes = np.stack([column, column], axis=1)
    tables = Tables.of(codes, codes, codes, key=0)
    effort = Effort(runs=1, rows=10_000, trees=2, game=10)
    found = measure_learning(tables, schema, effort, target="d")
    # A tree tells every common value, and all rare ones as one.
    assert found.scores["tree"]["real"].value == 1.0


def test_a_target_that_is_not_there_is_named(small_schema):
    with pytest.raises(ConfigError, match=r'"petz" is no attribute.*years, trade'):
        target_column(small_schema, "petz")
    with pytest.raises(ConfigError, match="only one attribute"):
        target_column(Schema((small_schema.attributes[0],)), None)
    assert target_column(small_schema, None) == 4


def test_a_group_that_was_not_released_is_the_worst_kept(small_schema, halves):
    real, holdout = halves
    released = real[real[:, 4] != 2]
    groups = measure_groups(small_schema.attributes, Tables.of(real, released, holdout, key=0))
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
    lost = measure_groups(small_schema.attributes, Tables.of(real, fewer, holdout, key=0)).lost
    assert [(g.attribute, g.value) for g in lost] == [("pet", "pangolin")]
    few = fewer[-40:][::2]
    groups = measure_groups(small_schema.attributes, Tables.of(real, few[:8], holdout, key=0))
    assert not [g for g in groups.lost if g.attribute == "pet"]


def test_bands_say_how_much_of_what_is_rare_was_kept(small_schema, halves):
    real, holdout = halves
    copied = measure_groups(small_schema.attributes, Tables.of(real, holdout, holdout, key=0))
    assert [b.released for b in copied.bands] == pytest.approx([b.reference for b in copied.bands])
    assert sum(b.reference for b in copied.bands) == pytest.approx(1)
    assert copied.bands[0].reference == 0
    spread_out = np.stack([np.arange(3_000) % size for size in small_schema.sizes], axis=1)
    invented = Tables.of(real, spread_out.astype(np.uint16), holdout, key=0)
    assert measure_groups(small_schema.attributes, invented).bands[0].released > 0.1


def test_marginals_are_shares_by_the_schemas_names(small_schema, small_codes):
    years, trade, home, *_ = measure_marginals(small_schema.attributes, small_codes, None)
    assert home.labels == ("houseboat", "windmill")
    assert home.real is None
    assert home.released == pytest.approx(np.bincount(small_codes[:, 2]) / 2_000)
    assert trade.labels[-1] == "missing"
    assert years.is_number
    assert years.labels[0] == "20 to 21"
    assert len(years.labels) == 30
    assert sum(years.released) == pytest.approx(1)


def test_of_many_values_the_rarest_are_drawn_as_one(rng):
    attribute = Attribute(
        name="c", kind="categorical", values=tuple(f"v{i}" for i in range(40)), missing=("",)
    )
    codes = np.minimum(rng.geometric(0.1, 500) - 1, 40)[:, None].astype(np.uint16)
    (found,) = measure_marginals([attribute], codes, codes)
    assert len(found.labels) == 14
    assert found.labels[-1] == OTHERS
    assert sum(found.released) == pytest.approx(1)
    assert found.released[0] == np.bincount(codes[:, 0]).max() / 500


def test_facts_count_different_records(small_schema, small_codes):
    facts = table_facts(small_schema, small_codes)
    assert facts.unique == len({tuple(row) for row in small_codes.tolist()})
    assert facts.possible == 60 * 5 * 2 * 6 * 3
    assert (facts.numerical, facts.categorical) == (2, 3)
    assert facts.document()["unique_share"] == facts.unique / 2_000
    assert count_unique(small_codes[:0]) == 0


def test_an_evaluation_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least one"):
        Effort(runs=0)
    assert Effort.quick().rows < Effort().rows
