"""Noise checks find too little, biased and shared noise, and accept what is claimed."""

import numpy as np
import pytest

from deniable.audit.noise_checks import correlation_score, stage_noises

CONFIDENCE = 0.9999


def block(noise, *, information=0.01):
    """A block of runs of two columns and a last table, with noise in units of its claimed σ."""
    flat = noise.ravel()
    sums = [flat.size, flat.sum(), (flat**2).sum(), (flat**4).sum(), information * len(noise)]
    return {"stages": {"x": [float(s) for s in sums]}, "first": noise.tolist(), "scores": noise}


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
