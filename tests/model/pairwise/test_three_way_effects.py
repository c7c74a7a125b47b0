"""Effects of pairs of parents: the loss by its definition, and a known effect is recovered."""

from itertools import product

import numpy as np
import pytest

from deniable.model import effect_tables
from deniable.model.pairwise.loglinear import ParentEvidence, _Objective, fit_loglinear, softmax
from deniable.model.pairwise.three_way_effects import (
    TripleDesign,
    TripleEvidence,
    TripleParents,
    _centring_matrix,
    centre_axes,
)

CONFIGURATIONS = np.array(list(product(range(4), range(3))))
GROUPS = [CONFIGURATIONS[:, 0], CONFIGURATIONS[:, 1]]
PARENTS = TripleParents(
    first=0,
    second=1,
    first_groups=np.array([0, 0, 1, 1]),
    second_groups=np.arange(3),
    child_groups=np.array([0, 1, 1, 0]),
)
WEIGHTS = np.random.default_rng(2).integers(500, 3_000, len(CONFIGURATIONS)).astype(float)


def counts_of(logits):
    """Counts by group of the first parent in triples, of the second, and of the attribute."""
    table = np.zeros((2, 3, 2))
    rows = WEIGHTS[:, None] * softmax(logits)
    for (one, two), row in zip(CONFIGURATIONS, rows, strict=True):
        np.add.at(table[PARENTS.first_groups[one], two], PARENTS.child_groups, row)
    return table


def evidence_of(logits, *, penalty=1e-3):
    """What a model with these logits has: its one-way, two-way and three-way counts."""
    rows = WEIGHTS[:, None] * softmax(logits)
    share = rows.sum(axis=0) / WEIGHTS.sum()
    pairs = []
    for group in GROUPS:
        target = np.zeros((int(group.max()) + 1, 4))
        np.add.at(target, group, rows)
        expected = np.outer(np.bincount(group, WEIGHTS), share)
        pairs.append(
            ParentEvidence(
                groups=group,
                target=target,
                expected=expected,
                penalty=np.full(target.shape, penalty),
            )
        )
    counts = counts_of(logits)
    triple = TripleEvidence(
        parents=PARENTS,
        joint=PARENTS.joint(GROUPS),
        target=centre_axes(counts),
        expected=counts,
        penalty=np.full(counts.shape, penalty),
    )
    return share, pairs, triple


def known_logits():
    draws = np.random.default_rng(4)
    effect = centre_axes(draws.normal(size=(2, 3, 2))).reshape(6, 2)
    logits = draws.normal(size=4) + 0.3 * draws.normal(size=(4, 4))[GROUPS[0]]
    return logits + 2 * effect[PARENTS.joint(GROUPS)][:, PARENTS.child_groups]


def test_the_table_of_a_model_has_its_effects_of_two_parents():
    share, pairs, triple = evidence_of(known_logits())
    model = fit_loglinear(share, pairs, WEIGHTS, triples=[triple])
    assert model.triples
    np.testing.assert_allclose(model.table(), softmax(model.logits(GROUPS)))


def test_a_fit_starts_from_the_model_it_is_given_and_ends_where_others_end():
    share, pairs, triple = evidence_of(known_logits())
    start = fit_loglinear(share, pairs, WEIGHTS)
    at_once = fit_loglinear(share, pairs, WEIGHTS, triples=[triple], start=start, iterations=0)
    np.testing.assert_allclose(at_once.table(), start.table(), atol=1e-12)
    far = fit_loglinear(share, pairs, WEIGHTS, triples=[triple])
    near = fit_loglinear(share, pairs, WEIGHTS, triples=[triple], start=start)
    np.testing.assert_allclose(near.table(), far.table(), atol=2e-3)


@pytest.mark.parametrize("shape", [(2, 3, 2), (1, 4, 3), (5, 5, 5)])
def test_the_matrix_that_centres_is_the_means_subtracted_along_each_axis(shape):
    table = np.random.default_rng(1).normal(size=shape)
    found = _centring_matrix(shape) @ table.ravel()
    np.testing.assert_allclose(found.reshape(shape), centre_axes(table), atol=1e-12)


def test_a_known_effect_is_recovered_and_pairs_alone_do_not_have_it():
    logits = known_logits()
    share, pairs, triple = evidence_of(logits)
    with_triple = fit_loglinear(share, pairs, WEIGHTS, triples=[triple])
    without = fit_loglinear(share, pairs, WEIGHTS)
    far = [
        np.abs(softmax(m.logits(GROUPS)) - softmax(logits)).max() for m in (with_triple, without)
    ]
    assert far[0] < 0.01
    assert far[1] > 0.1, "so that there was something to find"
    (found,) = with_triple.triples
    sums = [found.effect.reshape(2, 3, 2).sum(axis=axis) for axis in range(3)]
    assert all(np.abs(each).max() < 1e-9 for each in sums)


def test_a_large_penalty_keeps_the_effect_at_zero():
    share, pairs, _ = evidence_of(known_logits())
    _, _, triple = evidence_of(known_logits(), penalty=1e12)
    found = fit_loglinear(share, pairs, WEIGHTS, triples=[triple])
    assert np.abs(found.triples[0].effect).max() < 1e-6


def plain_loss(problem, pairs, triple, share, at):
    """-(log-likelihood) + penalties per record, one configuration after the other."""
    base, effects, joint = problem.parameters(at)
    starts = np.cumsum([0, *(len(each.target) for each in pairs)])
    value = 0.0
    for c, weight in enumerate(WEIGHTS):
        logits = base + sum(effects[s + e.groups[c]] for s, e in zip(starts, pairs, strict=False))
        logits = logits + joint[triple.joint[c]][PARENTS.child_groups]
        value += weight * np.log(np.exp(logits).sum())
    value -= WEIGHTS.sum() * (share * base).sum()
    for target, penalty, own in (
        *(
            (e.target, e.penalty, effects[s : s + len(e.target)])
            for s, e in zip(starts, pairs, strict=False)
        ),
        (triple.target, triple.penalty, joint.reshape(triple.target.shape)),
    ):
        value += 0.5 * (penalty * own**2).sum() - (target * own).sum()
    return value / WEIGHTS.sum()


@pytest.mark.parametrize("penalty", [0.5, 50.0])
def test_loss_and_gradient_are_those_of_the_definition(penalty):
    """The gradient against differences of the literal loss. Floats inside have 32 bits."""
    share, pairs, triple = evidence_of(known_logits(), penalty=penalty)
    problem = _Objective.of(share, pairs, WEIGHTS, TripleDesign.of([triple]))
    at = np.random.default_rng(7).normal(size=problem.size)
    assert len(at) == (1 + 4 + 3) * 4 + 12
    value, gradient = problem.loss(at)
    assert value == pytest.approx(plain_loss(problem, pairs, triple, share, at), abs=1e-5)
    for place in range(0, len(at), 3):
        step = np.zeros_like(at)
        step[place] = 1e-3
        difference = plain_loss(problem, pairs, triple, share, at + step)
        difference -= plain_loss(problem, pairs, triple, share, at - step)
        assert gradient[place] == pytest.approx(difference / 2e-3, rel=1e-3, abs=2e-6)


@pytest.mark.parametrize(("limit", "parts"), [(1, 4), (12, 2), (1_024, 1)])
def test_a_design_of_joint_groups_sums_the_row_of_each_effect(monkeypatch, limit, parts):
    """Four pairs of four parents, whatever is numbered together."""
    monkeypatch.setattr(effect_tables, "_MAX_CONFIGURATIONS", limit)
    sizes, rng = (2, 3, 2, 4), np.random.default_rng(5)
    groups = [rng.integers(size, size=50) for size in sizes]
    evidence = []
    for first, second in ((0, 1), (1, 2), (0, 3), (0, 2)):
        parents = TripleParents(
            first=first,
            second=second,
            first_groups=np.arange(sizes[first]),
            second_groups=np.arange(sizes[second]),
            child_groups=np.array([0, 1, 1]),
        )
        table = rng.random((sizes[first], sizes[second], 2))
        joint = parents.joint(groups)
        evidence.append(
            TripleEvidence(
                parents=parents, joint=joint, target=table, expected=table, penalty=table
            )
        )
    design = TripleDesign.of(evidence)
    assert len(design.joint.places) == 50 * parts
    effects = rng.normal(size=design.target.shape)
    wanted = sum(
        effects[start + each.joint] for start, each in zip(design.starts, evidence, strict=False)
    )
    by_joint, rows = design.sum_by_joint(effects), slice(10, 40)
    logits = design.logits(by_joint, rows)
    np.testing.assert_allclose(logits, wanted[rows][:, [0, 1, 1]], atol=1e-5)
    shares = rng.dirichlet([1.0] * 3, 50).astype(np.float32)
    fitted = np.zeros_like(effects)
    for start, each in zip(design.starts, evidence, strict=False):
        np.add.at(fitted, start + each.joint, np.stack([shares[:, 0], shares[:, 1:].sum(1)], 1))
    counts = np.zeros_like(by_joint)
    for part in (slice(0, 20), slice(20, 50)):
        factors = np.full(part.stop - part.start, 0.5, dtype=np.float32)
        design.add_counts(counts, 2 * shares[part], factors, part)
    np.testing.assert_allclose(design.members.transposed_times(counts), fitted, atol=1e-4)
