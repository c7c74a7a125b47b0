"""Results of a case: the promise, the verdict on made-up runs, and checks of the noise."""

import math

import numpy as np
import pytest
from scipy import stats

from deniable.audit.case_results import losses_of, promise_of, summarize_case
from deniable.audit.likelihood_ratio import ALL_TABLES, charged_stages
from deniable.audit.neighbours import find_case
from deniable.audit.noise_checks import correlation_score, stage_noises
from deniable.audit.split_counts import SPLIT_STAGE, PartCount, split_numbers
from deniable.privacy.composition import gaussian_mu
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import discrete_laplace, rounded_gaussian
from deniable.privacy.pairwise_budget import PAIRS_SPEND, THREE_WAY_SPEND

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


# Noise checks find too little, biased and shared noise, and accept what is claimed


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


SHARES = {"seeds": 0.3, "parameters": 0.6}
ROWS, OTHERS, SIGMA, RUNS = 400, 30, 5.0, 3_000
LAW = rounded_gaussian(SIGMA)
# Many rows of the value 1, and others of the value 0.
CELLS = np.repeat([1, 0], [ROWS, OTHERS])


def numbers_of(rng, parts):
    """The numbers of one run, given the part of each row: a row of a table is drawn once."""
    counts = {}
    for part, share in SHARES.items():
        released = np.bincount(CELLS[parts[part]], minlength=2)
        noisy = released + SIGMA * rng.standard_normal(2)
        counts[part] = PartCount.of(noisy, CELLS, np.full(len(CELLS), share), LAW)
    return dict(split_numbers(counts))


def runs_of(draw):
    """Means and variances of the numbers, over many runs with a fixed key."""
    rng = np.random.default_rng(3)
    runs = [numbers_of(rng, draw(rng)) for _ in range(RUNS)]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def draw_honest(rng):
    uniform = rng.random(ROWS + OTHERS)
    return {"seeds": uniform < 0.3, "parameters": (uniform >= 0.3) & (uniform < 0.9)}


def draw_each_part_alone(rng):
    return {part: rng.random(ROWS + OTHERS) < share for part, share in SHARES.items()}


def test_numbers_of_an_honest_split_have_mean_zero_and_variance_one():
    """Five standard errors each, and a fixed key."""
    found = runs_of(draw_honest)
    assert len(found) == 3
    for name, values in found.items():
        assert name.startswith(SPLIT_STAGE)
        assert abs(values.mean()) < 5 / np.sqrt(RUNS)
        assert values.var() == pytest.approx(1, abs=5 * np.sqrt(2 / RUNS))


def test_rows_that_serve_two_parts_make_their_difference_vary_less():
    found = runs_of(draw_each_part_alone)
    alone, difference = found["split: rows that serve seeds"], list(found.values())[-1]
    assert alone.var() == pytest.approx(1, abs=5 * np.sqrt(2 / RUNS))
    assert difference.var() < 0.7
