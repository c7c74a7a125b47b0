"""Log-linear fits: known models are recovered, gradients match the loss."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from deniable.model.pairwise import effect_penalty, loglinear
from deniable.model.pairwise.effect_penalty import EffectPenalty
from deniable.model.pairwise.lbfgs import minimise
from deniable.model.pairwise.loglinear import (
    LogLinear,
    ParentEvidence,
    _Objective,
    _row_sums,
    fit_loglinear,
    softmax,
)
from deniable.model.pairwise.trends import TrendDirections
from worlds import property_test

few = settings(property_test, max_examples=25)


def known_model(key, sizes, values):
    """Parameters of moderate size."""
    rng = np.random.default_rng(key)
    base = rng.normal(size=values)
    return LogLinear(
        base=base, effects=tuple(0.8 * rng.normal(size=(size, values)) for size in sizes)
    )


def evidence_of(model, sizes, weights, *, penalty=1e-6):
    """Two-way tables of the model, without noise, if configurations have these weights."""
    table = weights[:, None] * model.table()
    share = table.sum(axis=0) / weights.sum()
    groups = np.unravel_index(np.arange(len(weights)), sizes)
    listed = []
    for size, group in zip(sizes, groups, strict=True):
        wanted = np.zeros((size, len(share)))
        np.add.at(wanted, group, table)
        expected = np.outer(np.bincount(group, weights, minlength=size), share)
        listed.append(
            ParentEvidence(
                groups=group,
                target=wanted,
                expected=expected,
                penalty=np.full(wanted.shape, penalty),
            )
        )
    return share, listed


def weights_of(key, sizes):
    return np.random.default_rng(key).integers(50, 900, int(np.prod(sizes))).astype(np.float64)


@pytest.mark.parametrize(("sizes", "values"), [((3,), 4), ((2, 3), 3), ((4, 2, 3), 5)])
@pytest.mark.parametrize("key", [1, 2])
def test_a_known_model_is_recovered_from_its_two_way_tables(sizes, values, key):
    """Two-way tables determine a log-linear model: no noise, almost no penalty, the same tables."""
    model, weights = known_model(key, sizes, values), weights_of(key, sizes)
    share, evidence = evidence_of(model, sizes, weights)
    found = fit_loglinear(share, evidence, weights)
    far = np.abs(found.table() - model.table()).max()
    assert far < 0.01
    alone = np.abs(softmax(np.log(share)[None, :]) - model.table()).max()
    assert alone > 0.1, "so that there was something to find"


def test_a_model_of_the_attribute_alone_is_its_share():
    share = np.array([0.5, 0.3, 0.2])
    found = fit_loglinear(share, (), np.empty(0))
    np.testing.assert_allclose(found.table(), share[None, :])
    assert found.effects == ()


def test_a_large_penalty_keeps_effects_at_zero():
    """And the attribute keeps its own distribution."""
    model, weights = known_model(1, (3, 2), 4), weights_of(1, (3, 2))
    share, evidence = evidence_of(model, (3, 2), weights, penalty=1e12)
    found = fit_loglinear(share, evidence, weights)
    np.testing.assert_allclose(found.table(), np.tile(share, (6, 1)), atol=1e-3)


def test_a_visible_trend_survives_a_penalty_that_removes_other_effects():
    """The mean value rises with the parent's group; a penalty of 30 records per entry leaves a
    third of that rise, and nine tenths if the trend is known."""
    sizes, values = (6,), 12
    rise = 0.05 * np.outer(np.arange(6) - 2.5, np.arange(12) - 5.5)
    model = LogLinear(base=np.zeros(12), effects=(rise,))
    weights = np.full(6, 120.0)
    share, evidence = evidence_of(model, sizes, weights, penalty=30.0)
    known = replace(evidence[0], trends=TrendDirections(columns=trend_of(values)))

    def slope(found):
        means = found.table() @ np.arange(12)
        return float(np.polyfit(np.arange(6), means, 1)[0])

    plain = slope(fit_loglinear(share, evidence, weights)) / slope(model)
    kept = slope(fit_loglinear(share, [known], weights)) / slope(model)
    assert plain < 0.4
    assert kept > 0.9


def test_parents_that_contradict_each_other_do_not_make_effects_grow_without_end(monkeypatch):
    """Two equal parents: the attribute follows one of them, and does the opposite of the other, by
    50 records each. Noise makes such tables, and no model has both."""
    weights = np.full(2, 2_500.0)
    follows = np.array([[1_300.0, 1_200.0], [1_200.0, 1_300.0]])
    listed = [
        ParentEvidence(
            groups=np.arange(2),
            target=target,
            expected=np.full((2, 2), 1_250.0),
            penalty=np.full((2, 2), 0.5),
        )
        for target in (follows, follows[::-1])
    ]

    def largest_effect():
        share = np.array([0.5, 0.5])
        found = fit_loglinear(share, listed, weights, iterations=400, tolerance=1e-12)
        np.testing.assert_allclose(found.table().mean(axis=0), 0.5, atol=0.001)
        return max(np.abs(effect).max() for effect in found.effects)

    # 10 (θ - 6) + 0.5 θ = 50
    assert largest_effect() == pytest.approx(110 / 10.5, abs=0.1)
    monkeypatch.setattr(effect_penalty, "_RIDGE_BEYOND_LIMIT", 0.0)
    assert largest_effect() == pytest.approx(100, abs=1)


def test_evidence_without_excess_gives_no_effect():
    model, weights = known_model(1, (3, 2), 4), weights_of(1, (3, 2))
    share, evidence = evidence_of(model, (3, 2), weights)
    flat = [
        ParentEvidence(groups=e.groups, target=e.expected, expected=e.expected, penalty=e.penalty)
        for e in evidence
    ]
    found = fit_loglinear(share, flat, weights)
    np.testing.assert_allclose(found.table(), np.tile(share, (6, 1)), atol=1e-3)


def test_a_fit_that_knows_the_constraints_has_the_counts_that_remain_after_them():
    """Two-way counts of a known model whose values are restricted: its effects are recovered."""
    sizes, values = (3, 2), 4
    model, weights = known_model(3, sizes, values), weights_of(3, sizes)
    allowed = np.log(np.random.default_rng(3).choice([0.01, 0.3, 1.0], (6, values)))
    with_masks = softmax(np.log(model.table()) + allowed)
    share = weights @ with_masks / weights.sum()
    _, evidence = evidence_of(model, sizes, weights)
    for each in evidence:
        each.target[:] = 0
        np.add.at(each.target, each.groups, weights[:, None] * with_masks)
    knowing = fit_loglinear(share, evidence, weights, allowed=allowed).table()
    assert np.abs(softmax(np.log(knowing) + allowed) - with_masks).max() < 0.01
    ignorant = fit_loglinear(share, evidence, weights).table()
    assert np.abs(softmax(np.log(ignorant) + allowed) - with_masks).max() > 0.1


def plain_loss(problem, evidence, share, weights, scaled):
    """-(log-likelihood) + penalty, per record, one configuration after the other.

    What the constraints add is no parameter: the likelihood of the targets is without it, up to a
    constant.
    """
    allowed = np.zeros((len(weights), 1)) if problem.allowed is None else problem.allowed
    base, effects, _ = problem.parameters(scaled)
    starts = np.cumsum([0, *(len(e.target) for e in evidence)])
    value = 0.0
    for c, weight in enumerate(weights):
        rows = [effects[start + e.groups[c]] for start, e in zip(starts, evidence, strict=False)]
        value += weight * np.log(np.exp(base + np.sum(rows, axis=0) + allowed[c]).sum())
    wanted = np.concatenate([e.target for e in evidence])
    value -= (wanted * effects).sum() + (weights.sum() * share * base).sum()
    penalty = EffectPenalty.of([e.penalty for e in evidence], [e.trends for e in evidence])
    return (value + penalty.loss(effects)[0]) / weights.sum()


def trend_of(size):
    """Unit vector from the lowest to the highest of so many places."""
    scores = np.linspace(-1.0, 1.0, size)
    return scores / np.linalg.norm(scores)


@few
@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.integers(2, 5),
    st.integers(0, 2**32),
    st.floats(0.5, 200),
    st.sampled_from(["", "rows", "columns", "masks"]),
)
def test_loss_and_gradient_are_those_of_the_definition(sizes, values, key, penalty, part):
    """The gradient against differences of the literal loss. Floats inside have 32 bits. The last
    parent has a trend, of its own groups or of the values, or constraints exclude values."""
    model, weights = known_model(key, sizes, values), weights_of(key, sizes)
    share, evidence = evidence_of(model, sizes, weights, penalty=penalty)
    directions = {"rows": trend_of(sizes[-1]), "columns": trend_of(values)}
    own = TrendDirections(**{name: directions[name] for name in directions if name == part})
    evidence[-1] = replace(evidence[-1], trends=own)
    allowed = np.log(np.random.default_rng(key).choice([0.01, 0.5, 1], (len(weights), values)))
    problem = _Objective.of(share, evidence, weights, None, allowed if part == "masks" else None)
    at = np.random.default_rng(key).normal(size=problem.size)
    value, gradient = problem.loss(at)
    assert value == pytest.approx(plain_loss(problem, evidence, share, weights, at), abs=1e-5)
    for place in range(0, len(at), max(1, len(at) // 12)):
        step = np.zeros_like(at)
        step[place] = 1e-3
        difference = plain_loss(problem, evidence, share, weights, at + step)
        difference -= plain_loss(problem, evidence, share, weights, at - step)
        slope = difference / 2e-3
        assert gradient[place] == pytest.approx(slope, rel=1e-3, abs=2e-6)


@few
@given(st.lists(st.integers(1, 4), max_size=3), st.integers(1, 5), st.integers(0, 2**32))
def test_the_table_of_a_model_is_what_each_configuration_draws(sizes, values, key):
    """Configurations are numbered with the last parent fastest, as a network numbers them."""
    model = known_model(key, sizes, values)
    table = model.table()
    assert table.shape == (int(np.prod(sizes, dtype=int)), values)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    groups = np.unravel_index(np.arange(len(table)), sizes) if sizes else ()
    np.testing.assert_allclose(softmax(model.logits(groups)), table)


def test_a_fit_is_the_same_every_time():
    model, weights = known_model(3, (4, 3), 6), weights_of(3, (4, 3))
    share, evidence = evidence_of(model, (4, 3), weights, penalty=2.0)
    one, two = (fit_loglinear(share, evidence, weights) for _ in range(2))
    assert one.base.tobytes() == two.base.tobytes()
    assert [e.tobytes() for e in one.effects] == [e.tobytes() for e in two.effects]


@pytest.mark.parametrize("size", [50.0, 5_000.0])
def test_the_loss_of_very_large_effects_is_that_of_the_definition(size):
    """Convex everywhere: clipped logits would make a loss that falls without end."""
    model, weights = known_model(1, (2, 3), 4), weights_of(1, (2, 3))
    share, evidence = evidence_of(model, (2, 3), weights, penalty=0.5)
    problem = _Objective.of(share, evidence, weights)
    at = size * np.random.default_rng(1).normal(size=problem.size)
    base, effects, _ = problem.parameters(at)
    logits = base + effects[evidence[0].groups] + effects[2 + evidence[1].groups]
    assert np.ptp(logits) > 0.02 * size, "so that large sizes are beyond exp of 32-bit floats"
    wanted = np.concatenate([each.target for each in evidence])
    value = weights @ np.logaddexp.reduce(logits, axis=1) - (wanted * effects).sum()
    value += 0.25 * (effects**2).sum() - (weights.sum() * share * base).sum()
    value += 5 * (np.maximum(np.abs(effects) - 6, 0) ** 2).sum()
    found, gradient = problem.loss(at)
    assert found == pytest.approx(value / weights.sum(), rel=1e-5)
    fitted = weights[:, None] * softmax(logits)
    np.testing.assert_allclose(
        gradient[:4] * weights.sum() / problem.base_scale,
        fitted.sum(axis=0) - weights.sum() * share,
        atol=0.01 * weights.sum(),
    )


def test_the_loss_is_the_same_in_blocks_of_configurations(monkeypatch):
    """But for rounding: a block normalises its rows only where it must."""
    model, weights = known_model(5, (3, 4, 2), 5), weights_of(5, (3, 4, 2))
    share, evidence = evidence_of(model, (3, 4, 2), weights, penalty=1.0)
    problem = _Objective.of(share, evidence, weights)
    at = 300.0 * np.random.default_rng(5).normal(size=problem.size)
    base, effects, _ = problem.parameters(at)
    parents = zip((0, 3, 7), evidence, strict=True)
    logits = base + sum(effects[start + each.groups] for start, each in parents)
    too_large = np.abs(logits).max(axis=1) > loglinear._MAX_LOGIT
    assert too_large.any()
    assert not too_large.all(), "some blocks of one configuration need no maxima, others do"
    value, gradient = problem.loss(at)
    monkeypatch.setattr(loglinear, "_CONFIGURATIONS_PER_BLOCK", 1)
    in_blocks, own_gradient = problem.loss(at)
    assert in_blocks == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(own_gradient, gradient, rtol=1e-5, atol=1e-5)


def test_evaluations_do_not_depend_on_those_before():
    """Buffers are used again: neither an earlier result nor a later one may change."""
    model, weights = known_model(7, (3, 5), 4), weights_of(7, (3, 5))
    share, evidence = evidence_of(model, (3, 5), weights, penalty=1.0)
    problem = _Objective.of(share, evidence, weights)
    one, other = np.random.default_rng(7).normal(size=(2, problem.size))
    value, gradient = problem.loss(one)
    kept = gradient.copy()
    problem.loss(other)
    assert gradient.tobytes() == kept.tobytes()
    again, own_gradient = problem.loss(one)
    assert (again, own_gradient.tobytes()) == (value, gradient.tobytes())


def test_two_threads_compute_the_same_loss_to_the_last_bit(monkeypatch):
    """In two halves, whether or not there is a second thread; and nearly that of all at once."""
    model, weights = known_model(6, (3, 5), 4), weights_of(6, (3, 5))
    share, evidence = evidence_of(model, (3, 5), weights, penalty=1.0)
    problem = _Objective.of(share, evidence, weights)
    at = np.random.default_rng(6).normal(size=problem.size)
    value, gradient = problem.loss(at)
    monkeypatch.setattr(loglinear, "_MIN_CELLS_FOR_HALVES", 1)
    alone, own_gradient = problem.loss(at)
    with ThreadPoolExecutor(1) as thread:
        both, their_gradient = problem.loss(at, second_thread=thread)
    assert (alone, own_gradient.tobytes()) == (both, their_gradient.tobytes())
    assert alone == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(own_gradient, gradient, rtol=1e-5, atol=1e-6)


def test_large_logits_do_not_overflow():
    rows = softmax(np.array([[1e4, 0.0], [-1e4, -1e4]]))
    np.testing.assert_allclose(rows, [[1, 0], [0.5, 0.5]])


class _Litter(ctypes.Structure):
    """Signalling NaNs, put on the stack when it is passed by value."""

    _fields_ = [("words", ctypes.c_uint32 * 20_000)]


def test_row_sums_do_not_depend_on_what_is_on_the_stack():
    litter = _Litter((ctypes.c_uint32 * 20_000)(*[0x7FA00000] * 20_000))
    leave = ctypes.CDLL(None).getpid
    leave.argtypes = [_Litter]
    rng = np.random.default_rng(5)
    for rows in range(1, 12):
        for columns in range(1, 12):
            shares = rng.random((rows, columns)).astype(np.float32)
            leave(litter)
            assert _row_sums(shares) == pytest.approx(shares.sum(axis=1), rel=1e-6)


SIZES, VALUES = (3, 4), 5


def unit(size):
    scores = np.linspace(-1.0, 1.0, size)
    return scores / np.linalg.norm(scores)


def penalty_of(key, trend):
    """Two parents, of which the second may have a trend."""
    rng = np.random.default_rng(key)
    ridges = [rng.uniform(0.5, 20, (size, VALUES)) for size in SIZES]
    directions = {"rows": unit(SIZES[1]), "columns": unit(VALUES)}
    found = TrendDirections(**{name: directions[name] for name in [trend] if name})
    return ridges, EffectPenalty.of(ridges, [TrendDirections(), found]), found


def literal_penalty(ridges, trend, effects):
    """Each effect squared, times half its ridge; √0.03 of it along the trend; 10 beyond ±6."""
    value = 0.0
    first, second = effects[: SIZES[0]], effects[SIZES[0] :].copy()
    along = np.zeros_like(second)
    if trend.columns is not None:
        for group in range(SIZES[1]):
            along[group] = (second[group] @ trend.columns) * trend.columns
    if trend.rows is not None:
        for value_ in range(VALUES):
            along[:, value_] = (trend.rows @ second[:, value_]) * trend.rows
    second += (np.sqrt(0.03) - 1) * along
    for ridge, own in zip(ridges, (first, second), strict=True):
        value += sum(r * e**2 / 2 for r, e in zip(ridge.ravel(), own.ravel(), strict=True))
    return value + sum(10 * max(abs(e) - 6, 0) ** 2 / 2 for e in effects.ravel())


@property_test
@given(st.integers(0, 2**32), st.sampled_from(["", "rows", "columns"]), st.floats(0.1, 8))
def test_penalty_and_gradient_are_those_of_the_definition(key, trend, size):
    ridges, penalty, found = penalty_of(key, trend)
    rng = np.random.default_rng(key)
    effects = size * rng.normal(size=(sum(SIZES), VALUES))
    value, gradient = penalty.loss(effects)
    assert value == pytest.approx(literal_penalty(ridges, found, effects), rel=1e-9)
    step = rng.normal(size=effects.shape)
    ahead, behind = (literal_penalty(ridges, found, effects + s * step) for s in (1e-5, -1e-5))
    # The second derivative of the part beyond the limit jumps there: not exact to more digits.
    assert float((gradient * step).sum()) == pytest.approx((ahead - behind) / 2e-5, rel=1e-4)


def test_a_trend_costs_three_in_a_hundred_of_the_ridge():
    effects = np.zeros((sum(SIZES), VALUES))
    effects[SIZES[0] :] = np.outer(np.ones(SIZES[1]), unit(VALUES))
    ridges = [np.full((size, VALUES), 2.0) for size in SIZES]
    plain = EffectPenalty.of(ridges, [TrendDirections()] * 2).loss(effects)[0]
    trends = [TrendDirections(), TrendDirections(columns=unit(VALUES))]
    assert plain == pytest.approx(4.0)
    assert EffectPenalty.of(ridges, trends).loss(effects)[0] == pytest.approx(0.03 * plain)


# L-BFGS: minima are those of other methods, and bad steps are shortened


def quadratic(matrix, target):
    """½ (x - t)ᵀ A (x - t): its minimum is t."""

    def loss(x):
        turned = matrix @ (x - target)
        return 0.5 * float((x - target) @ turned), turned

    return loss


def logistic(rows, wanted, penalty):
    """A penalised logistic loss, per row."""

    def loss(x):
        logits = rows @ x
        value = np.logaddexp(0, logits).sum() - wanted @ logits + 0.5 * penalty * x @ x
        gradient = rows.T @ (1 / (1 + np.exp(-logits)) - wanted) + penalty * x
        return float(value) / len(rows), gradient / len(rows)

    return loss


@property_test
@given(st.integers(1, 8), st.floats(1, 300), st.floats(0.01, 100), st.integers(0, 2**32 - 1))
def test_a_quadratic_is_minimised_from_any_initial_curvature(n, spread, guess, key):
    rng = np.random.default_rng(key)
    turned = np.linalg.qr(rng.normal(size=(n, n)))[0]
    matrix = turned @ np.diag(np.geomspace(1, spread, n)) @ turned.T
    target = rng.normal(size=n)
    found = minimise(
        quadratic(matrix, target), np.zeros(n), curvature=guess, iterations=500, tolerance=0.0
    )
    np.testing.assert_allclose(found, target, atol=2e-6)


@pytest.mark.parametrize("key", range(5))
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_the_minimum_is_as_low_as_scipy_s(key, penalty):
    """Oracle: L-BFGS-B, with the same limits."""
    rng = np.random.default_rng(key)
    rows, wanted = rng.normal(size=(300, 40)), rng.integers(0, 2, 300).astype(float)
    loss = logistic(rows, wanted, penalty)
    theirs = minimize(
        loss, np.zeros(40), jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-6}
    )
    ours = minimise(loss, np.zeros(40), curvature=0.25, iterations=200, tolerance=1e-12)
    assert loss(ours)[0] == pytest.approx(theirs.fun, abs=1e-9)
    assert len(rows) * loss(np.zeros(40))[0] > len(rows) * theirs.fun + 10, "nothing to descend"


def test_it_stops_at_the_tolerance_or_after_the_last_iteration():
    asked = []
    plain = quadratic(np.diag(np.geomspace(1, 1e4, 30)), np.ones(30))

    def loss(x):
        asked.append(x)
        return plain(x)

    once = minimise(loss, np.zeros(30), curvature=1e4, iterations=1, tolerance=0.0)
    assert plain(once)[0] < plain(np.zeros(30))[0]
    few = len(asked)
    asked.clear()
    minimise(loss, np.zeros(30), curvature=1e4, iterations=500, tolerance=1.0)
    assert len(asked) <= few + 1
    asked.clear()
    minimise(loss, np.ones(30), curvature=1.0, iterations=500, tolerance=0.0)
    assert len(asked) == 1, "flat already"


def test_a_step_to_nan_is_shortened():
    """-ln x + x, defined for x > 0 only; the first step from 4 would go below zero."""

    def loss(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1 - 1 / x

    found = minimise(loss, np.array([4.0]), curvature=0.1, iterations=50, tolerance=0.0)
    np.testing.assert_allclose(found, 1.0, atol=1e-5)


def test_without_a_descending_step_the_start_is_returned():
    """A wrong gradient: no step descends, and the search ends."""
    found = minimise(
        lambda x: (float(np.abs(x).sum()), np.ones_like(x)),
        np.zeros(3),
        curvature=1.0,
        iterations=50,
        tolerance=0.0,
    )
    assert found.tolist() == [0.0, 0.0, 0.0]
