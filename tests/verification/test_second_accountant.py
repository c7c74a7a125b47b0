"""The second accountant: against published values, brute force, and the first accountant."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deniable.errors import VerificationError
from deniable.privacy import noise_laws
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend, compose_spends
from deniable.release.manifest import ledger_entry
from deniable.verification import second_accountant
from deniable.verification.manifest_spend import ManifestSpend
from deniable.verification.second_accountant import (
    compute_epsilon,
    compute_split_epsilon,
    require_close,
)
from worlds import property_test

pytestmark = pytest.mark.slow

DELTA = 2.0**-30


def gaussian(sigma, *, moved=1, sensitivity=1):
    return ManifestSpend(
        what="counts",
        part="parameters",
        law="rounded_gaussian",
        scale=(sigma,),
        moved=moved,
        sensitivity=sensitivity,
    )


def laplace(epsilon, *, moved=1, sensitivity=1):
    return ManifestSpend(
        what="counts",
        part="parameters",
        law="discrete_laplace",
        scale=(epsilon,),
        moved=moved,
        sensitivity=sensitivity,
    )


def geometric(epsilon, r, *, moved=1):
    return ManifestSpend(
        what="seed prefixes",
        part="seeds",
        law="truncated_geometric",
        scale=(epsilon, r),
        moved=moved,
    )


def stated(epsilon, delta, *, times=1, part="seeds"):
    return ManifestSpend(
        what="tests",
        part=part,
        law="discrete_laplace",
        scale=(1.0,),
        each=(epsilon, delta),
        times=times,
    )


# Independence


def test_it_shares_no_code_with_the_first_accountant():
    tree = ast.parse(Path(second_accountant.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in imported if name.startswith("deniable")}
    own = "deniable.verification.manifest_spend"
    assert ours == {"deniable.arrays", "deniable.errors", own}
    libraries = {"collections.abc", "dataclasses", "functools", "math", "numpy", "scipy.special"}
    assert imported - ours == libraries


# Golden: the review, computed there by other programs


@pytest.mark.parametrize(
    ("epsilon", "number", "r"),
    [
        *((1.0, 1, 21), (0.5, 1, 39), (0.391, 1, 49), (0.1, 1, 178), (1.0, 2, 41)),
        *((1.0, 3, 61), (1.0, 5, 101), (1.0, 7, 141), (0.1, 3, 534), (0.1, 7, 1246)),
    ],
)
def test_the_thresholds_of_truncated_geometric_noise(epsilon, number, r):
    """the review, sections 3.1 and 3.2: the smallest r at δ = 2^-30."""
    enough = compute_epsilon([geometric(epsilon / number, r, moved=number)], delta=DELTA)
    too_few = compute_epsilon([geometric(epsilon / number, r - 1, moved=number)], delta=DELTA)
    assert enough <= epsilon * (1 + 1e-9)
    assert too_few > epsilon


@pytest.mark.parametrize(
    ("epsilon", "queries", "sigma", "digits"),
    [
        *((1.0, 1, 5.507, 1e-3), (1.0, 11, 18.26, 1e-3), (1.0, 132, 63.3, 2e-3)),
        *((1.0, 187, 75.3, 2e-3), (0.1, 11, 167, 5e-3), (0.1, 187, 688, 2e-3)),
        (3.0, 11, 6.46, 2e-3),
    ],
)
def test_the_scales_of_gaussian_noise(epsilon, queries, sigma, digits):
    """the review, section 5: "Gaussian exact", to the digits printed there."""
    assert compute_epsilon([gaussian(sigma, moved=queries)], delta=DELTA) == pytest.approx(
        epsilon, rel=digits
    )


def test_the_joint_cost_of_two_parts_of_a_split():
    """the review, section 5 (ii): ε = 3 in two parts of p = (e-1)/(e³-1) each: 1.4899, not 1."""
    rate = (math.e - 1) / (math.e**3 - 1)
    uses = [stated(3.0, 0.0, part="structure"), stated(3.0, 0.0, part="parameters")]
    shares = {"structure": rate, "parameters": rate}
    assert compute_split_epsilon(uses, shares, delta=1e-9) == pytest.approx(1.4899, abs=5e-5)
    with pytest.raises(VerificationError, match="no fraction"):
        compute_split_epsilon(uses, {"structure": rate}, delta=1e-9)
    with pytest.raises(VerificationError, match="sum to over 1"):
        compute_split_epsilon(uses, {"structure": 0.6, "parameters": 0.6}, delta=1e-9)


def test_what_one_randomized_test_costs():
    """guarantee.md, Theorem 4' with integer noise: k = 50, γ = 4, ε0 = 1, t = 29 by hand."""
    epsilon, delta = second_accountant.randomized_test_cost(
        k=50, epsilon0=1.0, t=29, gamma=4.0, dummies=8
    )
    assert epsilon == pytest.approx(1 + math.log(33 / 29), rel=1e-15)
    assert delta == pytest.approx(math.exp(-21) / (1 + math.exp(-1)), rel=1e-14)
    with pytest.raises(VerificationError, match="dummy seeds"):
        second_accountant.randomized_test_cost(k=50, epsilon0=1.0, t=29, gamma=4.0, dummies=7)
    with pytest.raises(VerificationError, match="1 ≤ t < k"):
        second_accountant.randomized_test_cost(k=29, epsilon0=1.0, t=29, gamma=4.0, dummies=8)


def test_the_integer_sensitivities_of_entropies():
    """u(100 000) = 18.0523 bits: Δ/2 = ⌈16 · 18.0523 / 2⌉ = 145, and ⌈18.0523 / 2⌉ = 10."""
    steps = second_accountant.entropy_sensitivities(100_000)
    assert {10, 145} <= steps
    assert not {144, 146} & steps


# Definition: sums over all outcomes


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 0.9, 1.3, 2.0])
def test_the_sum_is_the_definition_for_bounded_and_unbounded_noise_together(epsilon):
    """Three numbers moved by one: δ = Σ max(0, P - e^ε Q) over every outcome."""
    r, z = 6, np.arange(-60, 61)
    tables = [
        np.where(abs(z) <= r, np.exp(-0.5 * abs(z)), 0.0),
        np.where(abs(z) <= r + 2, np.exp(-0.3 * abs(z)), 0.0),
        np.exp(-0.7 * abs(z)),
    ]
    here = [table / table.sum() for table in tables]
    moved = [np.roll(table, 1) for table in here]
    p = np.einsum("i,j,k->ijk", *here)
    q = np.einsum("i,j,k->ijk", *moved)

    uses = [geometric(0.5, r), geometric(0.3, r + 2), laplace(0.7)]
    loss = second_accountant.MixtureLoss()
    for use in uses:
        loss = loss.compose(second_accountant.privacy_loss(use))

    assert loss.delta(epsilon) == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_normal_part_is_the_integral(epsilon, mu):
    """∫ max(0, φ(x - μ) - e^(ε - l) φ(x)) dx for each loss l of ±0.8, by the trapezoid rule."""
    x = np.linspace(-10, 13, 500_001)
    p, q = stats.norm.pdf(x, loc=mu), stats.norm.pdf(x)
    likely = 1 / (1 + math.exp(-0.8))
    expected = sum(
        chance * np.trapezoid(np.maximum(p - math.exp(epsilon - loss) * q, 0), x)
        for loss, chance in ((0.8, likely), (-0.8, 1 - likely))
    )
    noise = gaussian(20.0, moved=round((20 * mu) ** 2))
    loss = second_accountant.privacy_loss(noise).compose(
        second_accountant.privacy_loss(laplace(0.8))
    )
    assert loss.delta(epsilon) == pytest.approx(expected, abs=1e-9)


def test_many_loss_values_are_rounded_up_to_a_grid(monkeypatch):
    uses = [laplace(0.1, moved=40), laplace(0.0123, moved=40)]
    fine = compute_epsilon(uses, delta=1e-6)
    monkeypatch.setattr(second_accountant, "_MAX_LOSS_VALUES", 500)
    coarse = compute_epsilon(uses, delta=1e-6)
    assert fine <= coarse < fine * 1.05


# Against the first accountant


def use_of(spend):
    read = ManifestSpend.parse(ledger_entry(spend, compose_spends(spend.alone, delta=1e-6)))
    each = None if spend.each is None else (spend.each.epsilon, spend.each.delta)
    return replace(read, each=each)


def random_spend(rng, kind, delta):
    epsilon, number = float(rng.uniform(0.1, 0.6)), int(rng.integers(1, 4))
    if kind == "gaussian":
        law = noise_laws.rounded_gaussian(float(rng.uniform(60, 400)))
        step, moved = int(rng.integers(1, 4)), int(rng.integers(1, 30))
        return Spend(what="g", part="structure", law=law, sensitivity=step, l0_sensitivity=moved)
    if kind == "laplace":
        law = noise_laws.discrete_laplace(float(rng.uniform(0.01, 0.2)))
        step, moved = int(rng.integers(1, 3)), int(rng.integers(1, 8))
        return Spend(what="l", part="parameters", law=law, l0_sensitivity=moved, sensitivity=step)
    if kind == "geometric":
        law = noise_laws.bounded_noise(epsilon=epsilon / number, delta=delta / 6 / number)
        return Spend(what="t", part="seeds", law=law, l0_sensitivity=number)
    times = int(rng.integers(1, 8))
    each = Guarantee(epsilon=float(rng.uniform(0.05, 0.2)), delta=delta / 20 / times)
    return Spend(
        what="s", part="seeds", law=noise_laws.discrete_laplace(1.0), each=each, times=times
    )


@pytest.mark.untraced
@pytest.mark.parametrize("key", range(30))
def test_the_first_accountant_is_never_below_and_little_above(key):
    """Exact sums against privacy loss distributions on a grid of 1e-4, rounded up.

    Beyond ε = 2 the first accountant is coarser about what tables of noise are off by.
    """
    rng = np.random.default_rng(key)
    delta = float(10 ** rng.uniform(-10, -6))
    kinds = rng.permutation(["gaussian", "laplace", "geometric", "stated"])[:3]
    spends = [random_spend(rng, kind, delta) for kind in kinds]
    spends.append(random_spend(rng, "gaussian", delta))

    first = compose_spends(tuple(spends), delta=delta).epsilon
    second = compute_epsilon([use_of(spend) for spend in spends], delta=delta)

    assert second <= first
    assert first - second <= (
        1e-3 * first + 1e-4 if first <= 2 else second_accountant.MAX_EXCESS * first
    )


# Properties

uses = st.one_of(
    st.builds(gaussian, st.floats(5, 500), moved=st.integers(1, 20)),
    st.builds(laplace, st.floats(0.01, 0.3), moved=st.integers(1, 20)),
    st.builds(geometric, st.floats(0.05, 0.5), st.integers(200, 400), moved=st.integers(1, 3)),
)


@property_test
@given(use=uses, copies=st.integers(2, 4))
def test_n_copies_cost_the_same_as_one_spend_of_n_numbers(use, copies):
    many = replace(use, moved=copies * use.moved)
    assert compute_epsilon([use] * copies, delta=1e-6) == pytest.approx(
        compute_epsilon([many], delta=1e-6), rel=1e-9
    )


@property_test
@given(use=uses, other=uses)
def test_another_spend_never_costs_less(use, other):
    assert compute_epsilon([use, other], delta=1e-6) >= compute_epsilon([use], delta=1e-6) * (
        1 - 1e-9
    )


@property_test
@given(use=uses, delta=st.floats(1e-9, 1e-3))
def test_a_smaller_delta_never_costs_less(use, delta):
    assert compute_epsilon([use], delta=delta / 2) >= compute_epsilon([use], delta=delta)


def test_copies_of_a_stated_cost_are_counted():
    assert compute_epsilon([stated(0.1, 1e-9)] * 3, delta=1e-6) == pytest.approx(
        compute_epsilon([stated(0.1, 1e-9, times=3)], delta=1e-6)
    )


# Spends without a known cost


def test_no_noise_or_too_large_an_edge_costs_infinity():
    nothing = ManifestSpend(what="counts", part="parameters", law="exact")
    assert compute_epsilon([nothing], delta=1e-6) == math.inf
    assert compute_epsilon([geometric(1.0, 5)], delta=1e-6) == math.inf
    with pytest.raises(VerificationError, match="no noise"):
        second_accountant.privacy_loss(nothing)


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (replace(geometric(0.5, 30), sensitivity=2), "sensitivity 1"),
        (replace(gaussian(3.0), each=(1.0, 0.0)), "discrete Laplace noise only"),
        (stated(1000.0, 0.0), "not finite"),
        (stated(0.1, 0.0, times=2**25), "too many to audit"),
    ],
)
def test_what_no_theorem_covers_is_refused(use, why):
    with pytest.raises(VerificationError, match=why):
        second_accountant.privacy_loss(use)


def test_too_many_kinds_of_noise_are_refused():
    kinds = [laplace(0.001 * i, moved=2**20) for i in (1, 2)]
    with pytest.raises(VerificationError, match="too many different kinds"):
        compute_epsilon(kinds, delta=1e-6)


def test_a_claim_must_be_close():
    require_close(1.0, 1.0, losses=1, what="it")
    require_close(1.019, 1.0, losses=1, what="it")
    require_close(1.5, 1.0, losses=1, what="it", at_most=1.5)
    with pytest.raises(VerificationError, match=r"ε = 0\.9999 is claimed, but the noise costs 1"):
        require_close(0.9999, 1.0, losses=1, what="it")
    with pytest.raises(VerificationError, match="far more"):
        require_close(1.03, 1.0, losses=1, what="it")
