"""A private draft composed with a run (Theorem 14): the draft's outcome chooses the schema."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import BudgetError
from deniable.privacy.accountant import ShiftedTableLoss
from deniable.privacy.calibration import PublicFacts
from deniable.privacy.composition import Guarantee, gaussian_delta, gaussian_mu
from deniable.privacy.discrete_losses import DiscreteLoss, mixture_delta
from deniable.privacy.draft_mechanism import DraftMechanism, calibrate_draft
from deniable.privacy.ledger import compose_spends, privacy_losses
from deniable.privacy.plan import composes_with_draft, make_plan

LIMIT = Guarantee(epsilon=1.0, delta=1e-6)
DRAFT = DraftMechanism(mu=0.1, columns=12, text_delta=6e-8)


def facts(*, m=5, seeds=True, sizes=7, limit=LIMIT, draft=DRAFT):
    return PublicFacts(
        limit=limit,
        names=tuple(f"x{i}" for i in range(m)),
        queries=0,
        rows_max=10_000,
        seeds=seeds,
        sizes=(sizes,) * m,
        draft=draft,
    )


# Schemas that one draft may give: few columns and many, small and large.
# And modes without seeds, which may be chosen after the draft was read.
SCHEMAS = [
    facts(m=m, seeds=seeds, sizes=sizes)
    for m, seeds in ((1, False), (2, True), (5, True), (5, False), (12, True))
    for sizes in (2, 40)
]


def noise_of(plan):
    """μ of a run's Gaussian noise, and the loss of its seed histogram."""
    losses, discrete = privacy_losses(plan.spends), DiscreteLoss.zero()
    for loss in losses:
        if isinstance(loss, ShiftedTableLoss):
            discrete = DiscreteLoss.from_table(loss.weights)
    return math.hypot(*(loss.mu for loss in losses if hasattr(loss, "mu"))), discrete


def run_deltas(plan, epsilons):
    """δ of a run alone at every ε."""
    mu, discrete = noise_of(plan)
    return [mixture_delta(epsilon=epsilon, mu=mu, discrete=discrete) for epsilon in epsilons]


def adaptive_delta(draft, plans, epsilon):
    """δ of a draft and a run that the draft's outcome chooses, at its worst: by definition.

    Outcomes of N(μ, 1) against N(0, 1) have the loss μ x - μ²/2. After each of them, the run with
    the largest δ at the rest of ε follows.
    """
    x = np.linspace(-9, 9 + draft.mu, 1_201)
    density = np.exp(-((x - draft.mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    left = epsilon - (draft.mu * x - draft.mu**2 / 2)
    worst = np.max([run_deltas(plan, left) for plan in plans], axis=0)
    return float(np.trapezoid(density * worst, x))


def total_delta(draft, plans, limit=LIMIT):
    return adaptive_delta(draft, plans, limit.epsilon) + draft.text_delta


@pytest.mark.slow
def test_whatever_schema_the_draft_chooses_draft_and_run_are_within_the_limit():
    plans = [make_plan(each) for each in SCHEMAS]
    assert total_delta(DRAFT, plans) <= LIMIT.delta
    assert total_delta(DRAFT, plans) > 0.9 * LIMIT.delta, "little is wasted"


@pytest.mark.slow
def test_a_run_that_ignores_the_draft_would_be_caught():
    alone = [make_plan(replace(each, draft=None)) for each in SCHEMAS]
    assert total_delta(DRAFT, alone) > 1.1 * LIMIT.delta


@pytest.mark.slow
def test_forgotten_texts_would_be_caught():
    silent = replace(DRAFT, text_delta=0.0)
    plans = [make_plan(replace(each, draft=silent)) for each in SCHEMAS]
    assert total_delta(DRAFT, plans) > LIMIT.delta


def test_one_run_after_a_draft_costs_what_the_accountant_says():
    """The integral over the draft's outcomes is the closed form for one schema."""
    plan = make_plan(facts())
    exact = adaptive_delta(DRAFT, [plan], 0.7)
    mu, discrete = noise_of(plan)
    closed = mixture_delta(epsilon=0.7, mu=math.hypot(DRAFT.mu, mu), discrete=discrete)
    assert exact == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 16.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_the_cost_is_what_was_asked_for_and_covers_the_draft(epsilon, delta):
    limit = Guarantee(epsilon=epsilon, delta=delta)
    own = Guarantee(epsilon=epsilon / 4, delta=delta / 10)
    mu = gaussian_mu(epsilon=own.epsilon * 0.999, delta=0.7 * own.delta)
    draft = DraftMechanism(mu=mu, columns=5, text_delta=0.2 * own.delta)
    plan = make_plan(facts(limit=limit, draft=draft))
    assert plan.cost == limit
    assert plan.entries == (draft.spend, *plan.spends)
    left = draft.limit_without_texts(plan.cost)
    assert compose_spends(plan.entries, delta=left.delta).within(left)
    # Adding the two costs would leave the run more noise.
    added = make_plan(
        facts(
            limit=Guarantee(epsilon=epsilon - own.epsilon, delta=delta - own.delta),
            draft=None,
        )
    )
    assert plan.pairs.tables.variance < added.pairs.tables.variance


def test_the_noise_does_not_depend_on_how_many_rows_the_draft_has_seen():
    few, many = (make_plan(replace(facts(), rows_max=rows)) for rows in (100, 10**7))
    assert few.spends == many.spends


def test_a_draft_that_leaves_nothing_is_refused():
    whole = gaussian_mu(epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetError, match="nothing is left for the run"):
        make_plan(facts(draft=replace(DRAFT, mu=whole)))
    with pytest.raises(BudgetError, match="leaves no ε or δ"):
        make_plan(facts(draft=replace(DRAFT, text_delta=1e-6)))


def test_one_and_two_columns_can_be_composed():
    for columns in (1, 2):
        draft = replace(DRAFT, columns=columns)
        assert composes_with_draft(draft, attributes=1, epsilon=1.0)
    with pytest.raises(BudgetError, match="columns ≥ 1"):
        replace(DRAFT, columns=0)


@pytest.mark.parametrize("columns", [1, 12, 300])
@pytest.mark.parametrize(
    "limit",
    [
        Guarantee(epsilon=0.2, delta=1e-10),
        LIMIT,
        # Accepted though they are large: hiding a text then costs an ε that tables do not.
        Guarantee(epsilon=1.0, delta=1e-3),
        Guarantee(epsilon=0.5, delta=0.3),
    ],
)
def test_the_stated_noise_of_a_draft_is_that_of_its_epsilon_and_delta(columns, limit):
    own = DraftMechanism.of(limit, columns=columns)
    assert own.is_that_of(limit)
    assert own.text_delta == pytest.approx(0.25 * limit.delta, rel=1e-5), "for all lists together"
    epsilon = limit.epsilon + math.log1p(-own.text_delta)
    assert gaussian_mu(epsilon=epsilon, delta=0.75 * limit.delta) == pytest.approx(own.mu, rel=1e-5)
    for wrong in (
        {"mu": 0.9 * own.mu},
        {"mu": 1.1 * own.mu},
        {"text_delta": own.text_delta / 2},
        {"text_delta": 0.0},
        {"columns": columns + 1, "text_delta": 1.1 * own.text_delta},
    ):
        assert not replace(own, **wrong).is_that_of(limit), wrong


def test_hidden_texts_cost_their_part_of_epsilon():
    """-ln(1 - text_delta), which only a large text_delta shows."""
    large = DraftMechanism(mu=0.5, columns=2, text_delta=0.1)
    limit = Guarantee(epsilon=1.0, delta=0.3)
    left = large.limit_without_texts(limit)
    assert left.epsilon == pytest.approx(1 + math.log(0.9), rel=1e-9)
    assert left.delta <= 0.2
    gaussian = gaussian_delta(epsilon=left.epsilon, mu=0.5)
    assert large.costs_at_most(Guarantee(epsilon=1.0, delta=0.1 + 1.12 * gaussian))
    assert not large.costs_at_most(
        Guarantee(epsilon=1.0, delta=0.1 + 0.5 * (gaussian + gaussian_delta(epsilon=1.0, mu=0.5)))
    )


def test_a_drafts_own_cost_is_checked_by_its_noise():
    own = Guarantee(epsilon=0.5, delta=1e-7)
    mu = gaussian_mu(epsilon=0.5, delta=0.8e-7)
    texts = 0.1e-7
    assert DraftMechanism(mu=mu, columns=9, text_delta=texts).costs_at_most(own)
    assert not DraftMechanism(mu=1.01 * mu, columns=9, text_delta=3 * texts).costs_at_most(own)
    assert not DraftMechanism(mu=1.2 * mu, columns=9, text_delta=texts).costs_at_most(own)
    assert gaussian_delta(epsilon=0.5, mu=1.2 * mu) > own.delta


@pytest.mark.parametrize(
    "wrong", [{"mu": 0.0}, {"mu": math.inf}, {"columns": -1}, {"text_delta": 1.0}]
)
def test_impossible_noise_of_a_draft_is_refused(wrong):
    with pytest.raises(BudgetError, match="noise of a draft"):
        replace(DRAFT, **wrong)


def test_very_wide_tables_are_not_composed_whatever_the_schema_keeps_of_them():
    """The errors of noise tables are bounded by the drafted columns, not by those that are left."""
    wide, narrow = replace(DRAFT, columns=3_000), replace(DRAFT, columns=300)
    assert not composes_with_draft(wide, attributes=3, epsilon=1.0)
    assert composes_with_draft(narrow, attributes=3, epsilon=1.0)
    assert not composes_with_draft(narrow, attributes=3_000, epsilon=1.0)
    assert not composes_with_draft(narrow, attributes=3, epsilon=1e-3)
    assert not composes_with_draft(narrow, attributes=3, epsilon=17.0)


def test_a_draft_whose_epsilon_its_tables_use_up_is_refused():
    limit = Guarantee(epsilon=1e-30, delta=1e-10)
    with pytest.raises(BudgetError, match="too small for 400 histograms"):
        calibrate_draft(limit, histograms=400, lists=10)
    assert not DRAFT.costs_at_most(limit)
