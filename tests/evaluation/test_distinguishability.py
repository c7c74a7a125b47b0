"""Distinguishability: classifiers on tables that are equal in law, and on tables that are not."""

from chance import assert_rate
from deniable.evaluation.distinguishability import distinguish, measure_distinguishability
from deniable.evaluation.effort import Effort
from deniable.evaluation.reference_tables import split_rows
from deniable.randomness import Keyed


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
