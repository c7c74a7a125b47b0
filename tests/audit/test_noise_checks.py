"""Noise checks find too little, biased and shared noise, and accept what is claimed."""

import numpy as np
import pytest

from deniable.audit.likelihood_ratio import ALL_TABLES, charged_stages
from deniable.audit.noise_checks import correlation_score, stage_noises
from deniable.privacy.pairwise_budget import PAIRS_SPEND, THREE_WAY_SPEND

CONFIDENCE = 0.9999


def block(noise, *, information=0.01, name="x"):
    """A block of runs of two columns and a last table, with noise in units of its claimed σ."""
    flat = noise.ravel()
    sums = [flat.size, flat.sum(), (flat**2).sum(), (flat**4).sum(), information * len(noise)]
    return {"stages": {name: [float(s) for s in sums]}, "first": noise.tolist(), "scores": noise}


def noise_of(key, scale=1.0):
    return np.random.default_rng(key).standard_normal((2_000, 3)) * scale


def test_the_claimed_noise_passes():
    """At 99.99 %, with a fixed key."""
    (stage,) = stage_noises([block(noise_of(1))], {"x": 0.1})
    assert stage.excess(confidence=CONFIDENCE) == []
    assert stage.numbers == 6_000
    assert stage.ratio == pytest.approx(1, abs=0.1)
    assert stage.mu == pytest.approx(0.1, rel=0.05)
    assert correlation_score([block(noise_of(1))], columns=2) < 4


def test_few_numbers_of_honest_noise_are_rarely_accused():
    """At 99.99 % about 2 of 10,000 stages of 40 runs; 9 or more have probability below 1e-3."""
    noise = np.random.default_rng(7).standard_normal((10_000, 40, 3))
    stages = [stage_noises([block(each)], {"x": 0.1})[0] for each in noise]
    assert sum(bool(stage.excess(confidence=CONFIDENCE)) for stage in stages) < 9


@pytest.mark.parametrize("scale", [0.5, 0.9])
def test_less_noise_is_found(scale):
    (stage,) = stage_noises([block(noise_of(1, scale))], {"x": 0.1})
    words = " ".join(stage.excess(confidence=CONFIDENCE))
    assert "claimed standard deviation" in words
    assert "is charged 0.1000" in words


def test_more_noise_is_no_excess():
    (stage,) = stage_noises([block(noise_of(1, 1.5))], {"x": 0.1})
    assert stage.excess(confidence=CONFIDENCE) == []


def test_a_stage_that_is_not_charged_is_found():
    (stage,) = stage_noises([block(noise_of(1))], {})
    assert "is not charged" in " ".join(stage.excess(confidence=CONFIDENCE))


def test_tables_in_place_of_triples_have_both_entries():
    """All T tables reveal T/σ²: the sum of two entries, of T - R and of R tables, and no more."""
    both = charged_stages({PAIRS_SPEND: 0.24, THREE_WAY_SPEND: 0.07})
    (stage,) = stage_noises([block(noise_of(1), information=0.25**2, name=ALL_TABLES)], both)
    assert stage.charged == pytest.approx(0.25)
    assert stage.excess(confidence=CONFIDENCE) == []
    (more,) = stage_noises([block(noise_of(1), information=0.3**2, name=ALL_TABLES)], both)
    assert "is charged 0.2500" in " ".join(more.excess(confidence=CONFIDENCE))
    # Beside triples, the tables have their own entry only.
    (beside,) = stage_noises([block(noise_of(1), information=0.3**2, name=PAIRS_SPEND)], both)
    assert "is charged 0.2400" in " ".join(beside.excess(confidence=CONFIDENCE))


def test_repeated_noise_is_found():
    same = np.tile(noise_of(2)[:1] + 2.0, (500, 1))
    (stage,) = stage_noises([block(same)], {"x": 0.1})
    assert "mean zero" in " ".join(stage.excess(confidence=CONFIDENCE))
    assert correlation_score([block(same)], columns=2) == np.inf


def test_shared_noise_is_found():
    one = noise_of(3)[:, :1]
    assert correlation_score([block(np.hstack([one, one, one]))], columns=2) > 100


def test_too_few_runs_show_no_correlation():
    assert correlation_score([block(noise_of(1)[:5])], columns=2) == 0
