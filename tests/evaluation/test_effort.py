"""Sizes of an evaluation."""

import pytest

from deniable.errors import ConfigError
from deniable.evaluation.effort import Effort


def test_an_evaluation_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least 1"):
        Effort(runs=0)
    assert Effort.quick().rows < Effort().rows


@pytest.mark.parametrize("name", ["runs", "rows", "trees", "game", "test_rows"])
def test_every_size_is_at_least_1(name):
    with pytest.raises(ConfigError, match=name):
        Effort(**{name: 0})


def test_only_the_defaults_and_more_are_thorough():
    assert Effort(key=7).is_thorough
    assert Effort(runs=5).is_thorough
    assert not Effort.quick().is_thorough
    assert not Effort(test_rows=10_000).is_thorough
