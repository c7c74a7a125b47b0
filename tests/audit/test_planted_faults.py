"""Planted faults are what their names say."""

import math
from dataclasses import replace

import pytest

from deniable.audit.neighbours import find_case
from deniable.audit.planted_faults import (
    FAULT_WORDS,
    parse_fault,
    planted_plan,
    planted_randomness,
)
from deniable.errors import ConfigError
from deniable.privacy.noise_laws import discrete_laplace, truncated_geometric
from deniable.randomness import Keyed, Secret

OPTIONS = {"epsilon": 1.0, "delta": 1e-3}


def test_unknown_faults_are_refused():
    assert parse_fault(None) is None
    assert [parse_fault(name) for name in FAULT_WORDS] == list(FAULT_WORDS)
    with pytest.raises(ConfigError, match="half-noise"):
        parse_fault("no-noise")


@pytest.mark.parametrize(
    "name", ["many targets", "kept prefix", "alone in its cells", "random split"]
)
def test_half_of_the_noise_is_half_in_every_stage(name):
    plan = find_case(name, OPTIONS).plan
    halved = planted_plan("half-noise", plan)
    assert planted_plan("row-count", plan) is plan
    for before, after in zip(plan.privacy.spends, halved.privacy.spends, strict=True):
        share = after.law.variance / before.law.variance
        if before.law.name.startswith("truncated"):
            assert share < 0.5  # it keeps its bound, which cuts the wider law off more
        else:
            rounding = 0.005 if before.law.name == "rounded_gaussian" else 0.02
            assert share == pytest.approx(1 / 4, abs=rounding)
    if plan.privacy.pairs is None:
        return
    mu = plan.privacy.pairs.mu_interactions
    assert halved.privacy.pairs.mu_interactions == pytest.approx(2 * mu)
    # Infinite in tables of two columns, which have no triples.
    mu = plan.privacy.pairs.mu_three_way
    assert halved.privacy.pairs.mu_three_way == pytest.approx(2 * mu)
    assert math.isfinite(mu) == (name == "alone in its cells")


@pytest.mark.parametrize("law", [discrete_laplace(0.2), truncated_geometric(0.1, 200)])
def test_other_laws_are_halved_too(law):
    plan = find_case("kept prefix", OPTIONS).plan
    plan = replace(plan, privacy=replace(plan.privacy, counts=law, seeds=law))
    halved = planted_plan("half-noise", plan).privacy
    assert halved.counts.variance == pytest.approx(law.variance / 4, rel=0.05)
    assert halved.seeds.radius <= law.radius


def test_shared_noise_begins_anew_with_every_draw():
    rng = planted_randomness("shared-noise", Keyed(1)).at("noise")
    assert (rng.words(3) == rng.words(5)[:3]).all()
    assert (rng.half_words(4) == rng.half_words(4)).all()
    assert (rng.random(4) == rng.random(4)).all()
    assert (rng.integers(9, 4) == rng.integers(9, 4)).all()
    other = planted_randomness("shared-noise", Keyed(2)).at("noise")
    assert (rng.words(3) != other.words(3)).any()


def test_a_fixed_seed_is_the_same_in_every_run():
    one, two = (planted_randomness("fixed-seed", Secret()).at("noise") for _ in range(2))
    assert (one.words(3) == two.words(3)).all()
    assert planted_randomness(None, Keyed(3)) == Keyed(3)
