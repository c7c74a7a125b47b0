"""From a plan and what a run did to its certificate: the sentence, and the numbers behind it."""

import math
from collections.abc import Mapping
from typing import Any

from deniable.config import Config
from deniable.data.schema import Schema
from deniable.errors import InvariantError
from deniable.privacy import sentences
from deniable.privacy.composition import Guarantee
from deniable.privacy.paper import records_of_paper
from deniable.privacy.sentences import round_up
from deniable.release.manifest import ACCOUNTANT, ASSUMPTIONS, Certificate, entries
from deniable.spending import RunPlan, settle

NOTHING = Guarantee(epsilon=math.inf, delta=0.0)


def certify(
    plan: RunPlan,
    config: Config,
    *,
    omegas: tuple[int, ...],
    is_secret: bool,
    schema: Schema,
    extra: Mapping[str, Any],
    own_model: bool = False,
) -> Certificate:
    """Return what may be said of a run that spent what its plan says.

    Args:
        plan: What was planned and, by the ledger, spent.
        config: The options.
        omegas: How many attributes were drawn, one of these for each record.
        is_secret: Whether all noise came from the operating system. If not, nothing is claimed.
        schema: What the columns may hold; descriptions nobody confirmed are mentioned.
        extra: Further parameters to print, such as the number of records.
        own_model: Whether the model is the user's; then no cost of it is known.
    """
    config = settle(config, schema)
    cost = claimed(plan.cost, config) if is_secret and not own_model else NOTHING
    says_something = is_secret and (own_model or cost.epsilon < math.inf)
    spends = () if own_model else plan.noise.spends
    said = _sentence(plan, config, cost, omegas, is_secret=is_secret, own_model=own_model)
    if says_something:
        said += sentences.about_schema(
            unit=plan.unit,
            rows=plan.rows,
            k=None if plan.mode in ("seedless", "randomized") else config.k,
            draft=plan.draft,
            drafted=schema.drafted,
        )
    return Certificate(
        mode=plan.mode,
        profile=config.profile,
        data_use=config.data_use,
        parameters=_parameters(plan, config, omegas, own_model=own_model) | dict(extra),
        sentence=said,
        cost=cost,
        assumptions=ASSUMPTIONS if says_something else (),
        spends=entries(spends, delta=config.delta),
        accountants=[
            {
                "name": ACCOUNTANT,
                "epsilon": "inf" if cost.epsilon == math.inf else cost.epsilon,
                "delta": cost.delta,
            }
        ],
    )


def claimed(cost: Guarantee, config: Config) -> Guarantee:
    """Return what is printed: rounded up, and never above what was asked for.

    In the paper's profile it is the paper's formula that meets what was asked for, and only what
    is true is claimed, however much that is.
    """
    if cost.epsilon == math.inf:
        return NOTHING
    if config.profile == "paper":
        return Guarantee(epsilon=round_up(cost.epsilon), delta=round_up(cost.delta))
    if not cost.within(Guarantee(epsilon=config.epsilon, delta=config.delta)):
        raise InvariantError("the run cost more than was asked for: nothing is released")
    return Guarantee(
        epsilon=min(config.epsilon, round_up(cost.epsilon)),
        delta=min(config.delta, round_up(cost.delta)),
    )


def _parameters(
    plan: RunPlan, config: Config, omegas: tuple[int, ...], *, own_model: bool
) -> dict[str, Any]:
    """Return the options that shaped the release, those that do not apply left out."""
    chosen: dict[str, Any] = {
        "epsilon": config.epsilon,
        "delta": config.delta,
        "omega": list(omegas),
        "max_cost": config.most_configurations,
        "estimator": config.chosen_estimator,
        "graph": "given" if config.graph is not None else "learnt",
        "rows_max": plan.noise.scale.rows_max,
    }
    if not config.uses_pairs:
        chosen |= {"alpha": config.alpha, "parameters": config.parameters}
    if plan.mode != "seedless":
        chosen |= {"k": config.k, "omega_known": config.omega_known}
    if plan.noise.seeds is not None:
        chosen["threshold"] = config.k + plan.noise.seeds.r
    if plan.mode in ("tested", "randomized") and (own_model or not config.omega_known):
        chosen["gamma"] = config.gamma
    if plan.test is not None:
        test = plan.test
        chosen |= {"epsilon0": test.epsilon0, "t": test.t, "dummies": test.dummies}
        chosen["gamma"] = test.gamma
    if plan.fractions is not None:
        chosen["fractions"] = dict(plan.fractions)
    if plan.unit is not None:
        chosen |= {"unit": plan.unit, "rows_per_unit": plan.rows}
    if plan.draft is not None:
        chosen["draft"] = {"epsilon": plan.draft.epsilon, "delta": plan.draft.delta}
    if plan.noise.paper is not None:
        chosen["paper_formula"] = _paper_formula(plan, config)
    return chosen


def _paper_formula(plan: RunPlan, config: Config) -> dict[str, Any]:
    """Return what the paper's own formulas come to: printed, never claimed."""
    said = {"model": plan.noise.paper.formula} if plan.noise.paper is not None else {}
    if plan.test is not None:
        test = plan.test
        said["records"] = records_of_paper(
            k=test.k,
            gamma=config.gamma,
            epsilon0=test.epsilon0,
            t=test.t,
            records=test.records,
        )
    return {
        what: {"epsilon": round_up(cost.epsilon), "delta": round_up(cost.delta)}
        for what, cost in said.items()
    }


def _sentence(
    plan: RunPlan,
    config: Config,
    cost: Guarantee,
    omegas: tuple[int, ...],
    *,
    is_secret: bool,
    own_model: bool,
) -> str:
    if not is_secret:
        return sentences.nothing_claimed(why=sentences.KNOWN_NOISE)
    if plan.mode == "tested":
        hidden = own_model or not (config.omega_known or len(omegas) == 1)
        gamma = config.gamma if hidden else None
        model = None if own_model else cost
        if cost.epsilon == math.inf and not own_model:
            return sentences.nothing_claimed(why=sentences.WITHOUT_NOISE)
        said = sentences.tested(model, k=config.k, gamma=gamma, one_omega=len(omegas) == 1)
    elif cost.epsilon == math.inf:
        return sentences.nothing_claimed(why=sentences.WITHOUT_NOISE)
    elif plan.test is not None:
        said = sentences.randomized(cost, records=plan.test.records, each=plan.test.each)
    elif plan.noise.seeds is not None:
        said = sentences.one_shot(cost, k=config.k)
    else:
        said = sentences.seedless(cost)
    if plan.fractions is not None:
        said += sentences.split({str(part): share for part, share in plan.fractions.items()})
    return said
