"""The log-linear model: a known one is found again, and the gradient is that of the loss."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.model.loglinear import (
    Evidence,
    LogLinear,
    _Problem,
    _totals,
    fit_loglinear,
    softmax,
)
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
    """What pairs of the model say, without noise, if configurations have these weights."""
    table = weights[:, None] * model.table()
    share = table.sum(axis=0) / weights.sum()
    groups = np.unravel_index(np.arange(len(weights)), sizes)
    listed = []
    for size, group in zip(sizes, groups, strict=True):
        wanted = np.zeros((size, len(share)))
        np.add.at(wanted, group, table)
        expected = np.outer(np.bincount(group, weights, minlength=size), share)
        listed.append(
            Evidence(
                groups=group,
                wanted=wanted,
                expected=expected,
                penalty=np.full(wanted.shape, penalty),
            )
        )
    return share, listed


def weights_of(key, sizes):
    return np.random.default_rng(key).integers(50, 900, int(np.prod(sizes))).astype(np.float64)


@pytest.mark.parametrize(("sizes", "values"), [((3,), 4), ((2, 3), 3), ((4, 2, 3), 5)])
@pytest.mark.parametrize("key", [1, 2])
def test_a_model_is_found_again_from_its_pairs(sizes, values, key):
    """Pairs of a log-linear model decide it: no noise, hardly a penalty, the same tables."""
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


def test_what_is_firmly_held_at_zero_stays_there():
    """And the attribute's own distribution with it."""
    model, weights = known_model(1, (3, 2), 4), weights_of(1, (3, 2))
    share, evidence = evidence_of(model, (3, 2), weights, penalty=1e12)
    found = fit_loglinear(share, evidence, weights)
    np.testing.assert_allclose(found.table(), np.tile(share, (6, 1)), atol=1e-3)


def test_evidence_without_excess_gives_no_effect():
    model, weights = known_model(1, (3, 2), 4), weights_of(1, (3, 2))
    share, evidence = evidence_of(model, (3, 2), weights)
    flat = [
        Evidence(groups=e.groups, wanted=e.expected, expected=e.expected, penalty=e.penalty)
        for e in evidence
    ]
    found = fit_loglinear(share, flat, weights)
    np.testing.assert_allclose(found.table(), np.tile(share, (6, 1)), atol=1e-3)


def plain_loss(problem, evidence, share, weights, scaled):
    """-(log-likelihood) + penalty, by the record, one configuration after the other."""
    base, effects = problem.parameters(scaled)
    starts = np.cumsum([0, *(len(e.wanted) for e in evidence)])
    value = 0.0
    for c, weight in enumerate(weights):
        rows = [effects[start + e.groups[c]] for start, e in zip(starts, evidence, strict=False)]
        value += weight * np.log(np.exp(base + np.sum(rows, axis=0)).sum())
    wanted = np.concatenate([e.wanted for e in evidence])
    penalty = np.concatenate([e.penalty for e in evidence])
    value -= (wanted * effects).sum() + (weights.sum() * share * base).sum()
    return (value + 0.5 * (penalty * effects**2).sum()) / weights.sum()


@few
@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.integers(2, 5),
    st.integers(0, 2**32),
    st.floats(0.5, 200),
)
def test_loss_and_gradient_are_those_of_the_definition(sizes, values, key, penalty):
    """The gradient against differences of the literal loss. Inside, numbers have 32 bits."""
    model, weights = known_model(key, sizes, values), weights_of(key, sizes)
    share, evidence = evidence_of(model, sizes, weights, penalty=penalty)
    problem = _Problem.of(share, evidence, weights)
    at = np.random.default_rng(key).normal(size=(problem.rows + 1) * values)
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


def test_large_logits_do_not_overflow():
    rows = softmax(np.array([[1e4, 0.0], [-1e4, -1e4]]))
    np.testing.assert_allclose(rows, [[1, 0], [0.5, 0.5]])


class _Litter(ctypes.Structure):
    """Signalling NaNs, put on the stack when it is passed by value."""

    _fields_ = [("words", ctypes.c_uint32 * 20_000)]


def test_totals_do_not_mind_what_lies_on_the_stack():
    litter = _Litter((ctypes.c_uint32 * 20_000)(*[0x7FA00000] * 20_000))
    leave = ctypes.CDLL(None).getpid
    leave.argtypes = [_Litter]
    rng = np.random.default_rng(5)
    for rows in range(1, 12):
        for columns in range(1, 12):
            shares = rng.random((rows, columns)).astype(np.float32)
            leave(litter)
            assert _totals(shares) == pytest.approx(shares.sum(axis=1), rel=1e-6)
