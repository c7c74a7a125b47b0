"""Results of a case: the promise, the verdict on made-up runs, and ratios."""

import math

import numpy as np
import pytest
from scipy import stats

from deniable.audit.case_results import losses_of, promise_of, summarize_case
from deniable.audit.neighbours import find_case
from deniable.privacy.composition import gaussian_mu
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import discrete_laplace, rounded_gaussian

OPTIONS = {"epsilon": 1.0, "delta": 1e-2}
CONFIDENCE = 0.9999


def made_up(case, key, *, mu, runs=1_000, undeniable=0, facts=None):
    """Blocks of runs whose scores are those of a Gaussian mechanism of μ."""
    rng = np.random.default_rng(key)
    targets = len(case.targets)
    present = rng.integers(0, 2, (runs, targets)).astype(bool)
    if targets == 1:
        present = (np.arange(runs) % 2 == 1)[:, None]
    scores = mu * (rng.standard_normal((runs, targets)) + mu * present) - mu * mu / 2
    block = {
        "present": present.astype(int).tolist(),
        "scores": scores.tolist(),
        "first": [],
        "facts": {str(i): facts(here[0]) for i, here in enumerate(present)} if facts else {},
        "stages": {},
        "undeniable": undeniable,
    }
    return [block]


def charged(case):
    """μ that a case charges."""
    mu = promise_of(case).mu
    assert mu is not None
    return mu


def test_the_promise_of_gaussian_noise_is_a_mu():
    """μ that is charged is nearly the largest that (ε, δ) allows."""
    promise = promise_of(find_case("many targets", OPTIONS))
    most = gaussian_mu(epsilon=1.0, delta=1e-2)
    mu = charged(find_case("many targets", OPTIONS))
    assert most * 0.98 < mu <= most
    assert math.hypot(*promise.gaussian.values()) == pytest.approx(mu)
    expected = stats.norm.cdf(stats.norm.ppf(0.1) + mu)
    assert promise.allowed(np.array([0.1]))[0] == pytest.approx(expected)


def test_a_person_is_promised_the_noise_of_all_rows():
    case = find_case("people with many rows", OPTIONS)
    mu, _ = losses_of(case.plan.privacy.spends)
    assert promise_of(case).mu == pytest.approx(3 * mu)


@pytest.mark.parametrize(
    "name", ["kept prefix", "random split", "randomized test", "private draft"]
)
def test_other_modes_promise_no_mu(name):
    promise = promise_of(find_case(name, OPTIONS))
    assert promise.mu is None
    assert promise.epsilon <= 1.0
    assert promise.is_exact == (name == "kept prefix")
    # No curve allows more than (ε, δ) does, up to how far the plan stays below it.
    assert promise.allowed(np.array([0.1]))[0] <= math.e * 0.1 + 1e-2


def test_tested_seeds_are_promised_plausible_seeds_only():
    case = find_case("tested seeds", OPTIONS)
    assert promise_of(case).k == 50
    assert summarize_case(case, made_up(case, 1, mu=3.0), confidence=CONFIDENCE).exceeded == ()
    result = summarize_case(case, made_up(case, 1, mu=3.0, undeniable=2), confidence=CONFIDENCE)
    assert "fewer than k = 50" in result.exceeded[0]


def test_losses_are_split_into_gaussian_and_discrete():
    spends = [
        Spend(what="a", part="seeds", law=rounded_gaussian(5.0)),
        Spend(what="b", part="seeds", law=rounded_gaussian(10.0), l0_sensitivity=4),
        Spend(what="c", part="seeds", law=discrete_laplace(0.2), l0_sensitivity=2),
    ]
    mu, discrete = losses_of(spends)
    assert mu == pytest.approx(math.hypot(0.2, 0.2))
    assert discrete is not None
    assert discrete.losses.max() == pytest.approx(0.4, abs=1e-5)
    assert losses_of(spends[:2])[1] is None


def test_what_is_charged_is_within_and_its_interval_has_one():
    """With a fixed key, and at a confidence of 99.99 % for each bound."""
    case = find_case("many targets", OPTIONS)
    mu = charged(case)
    result = summarize_case(case, made_up(case, 3, mu=mu), confidence=CONFIDENCE)
    assert result.exceeded == ()
    low, middle, high = result.mu_ratio or (1.0, 1.0, 1.0)
    assert low < 1 < high
    assert low < (result.mu_ratio_bound or 0.0) < middle
    low, _, high = result.advantage_ratio or (1.0, 1.0, 1.0)
    assert low < 1 < high


def test_more_than_is_charged_is_found():
    case = find_case("many targets", OPTIONS)
    mu = charged(case)
    result = summarize_case(case, made_up(case, 3, mu=1.3 * mu), confidence=CONFIDENCE)
    assert any("area" in words for words in result.exceeded)
    assert result.within is False


def test_much_more_exceeds_epsilon_and_what_is_allowed():
    case = find_case("alone in its cells", OPTIONS)
    result = summarize_case(case, made_up(case, 3, mu=4.0), confidence=CONFIDENCE)
    words = " ".join(result.exceeded)
    assert "shows ε ≥" in words
    assert "more than is allowed" in words


def test_a_telling_fact_is_found():
    case = find_case("private draft", OPTIONS)
    blocks = made_up(case, 3, mu=0.0, runs=200, facts=lambda here: {"rows": 5.0 + here})
    result = summarize_case(case, blocks, confidence=CONFIDENCE)
    assert "rows" in result.exceeded[0]
    same = made_up(case, 3, mu=0.0, runs=200, facts=lambda _: {"rows": 5.0})
    assert summarize_case(case, same, confidence=CONFIDENCE).exceeded == ()
