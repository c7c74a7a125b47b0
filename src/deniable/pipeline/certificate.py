"""The certificate of a run: the guarantee as a sentence, and the costs behind it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deniable.config import Config
from deniable.errors import InvariantError
from deniable.pipeline.run_plan import Run, RunPlan
from deniable.privacy import wording
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import compose_spends
from deniable.privacy.paper_noise import paper_records_cost
from deniable.privacy.wording import round_up
from deniable.release.manifest import ACCOUNTANT, ASSUMPTIONS, Certificate, ledger_entry
from deniable.schema.schema import Schema

# The cost of a run that guarantees nothing.
NO_GUARANTEE = Guarantee(epsilon=math.inf, delta=0.0)


def certify(
    run: Run,
    *,
    omegas: tuple[int, ...],
    extra: Mapping[str, Any],
    own_model: bool = False,
    copies_prefixes: bool = True,
) -> Certificate:
    """Certify a run whose recorded costs equal its plan.

    Args:
        run: The run. Its ledger was checked against its plan. Nothing is claimed unless all noise
            came from the operating system.
        omegas: The numbers of drawn attributes, one of these for each record.
        extra: Further parameters to print, such as the number of records.
        own_model: Whether the model is the user's; then its cost is unknown.
        copies_prefixes: Mode ``one-shot``: whether a prefix was kept, by the noisy counts, so that
            records copy some. Of a plan, which cannot know: yes.

    Privacy:
        Covers: the certificate is computed from options, the schema and noisy values alone.
    """
    plan, config, is_secret = run.plan, run.config, run.randomness.is_secret
    copies = copies_prefixes and plan.privacy.seeds is not None
    cost = claimed_cost(plan.cost, config) if is_secret and not own_model else NO_GUARANTEE
    claims_something = is_secret and (own_model or cost.epsilon < math.inf)
    extra = _row_draws(run) | dict(extra)
    options = {"own_model": own_model, "copies": copies}
    sentence = _sentence(plan, config, cost, omegas, is_secret=is_secret, **options)
    if claims_something:
        sentence = wording.meaningless_claim(cost.delta, **_facts_of(plan, run.schema)) + sentence
        sentence += wording.schema_claim(
            unit=plan.unit,
            rows=plan.rows_per_unit,
            k=config.k if copies or plan.mode == "tested" else None,
            draft=plan.draft,
            composed_draft=plan.privacy.draft is not None and not own_model,
            drafted=run.schema.drafted,
            row_draws="row_draws" in extra,
        )
    return Certificate(
        mode=plan.mode,
        profile=config.profile,
        data_use=config.data_use,
        parameters=_parameters(run, omegas, **options) | extra,
        sentence=sentence,
        cost=cost,
        assumptions=ASSUMPTIONS if claims_something else (),
        spends=[
            ledger_entry(spend, compose_spends(spend.alone, delta=config.delta))
            for spend in (() if own_model else plan.privacy.entries)
        ],
        accountants=[_accountant_entry(cost)],
    )


def planned_caution(
    plan: RunPlan, config: Config, schema: Schema, *, rows: int | None = None
) -> str:
    """Warn of a planned ε or δ that promises little or nothing; "" for usual ones.

    Args:
        plan: The plan of a run.
        config: Its options.
        schema: Its schema.
        rows: The number of rows, if known. It can only add to the warning of the run itself.
    """
    facts = _facts_of(plan, schema)
    facts["rows"] = max(facts["rows"], rows or 0)
    return wording.caution(claimed_cost(plan.cost, config), **facts)


def _facts_of(plan: RunPlan, schema: Schema) -> dict[str, Any]:
    """What decides, besides ε and δ, whether a run promises anything.

    Of the schema's number of rows and the option's, the larger one: so ``verify``, which knows
    both, has the same sentence, and neither of them takes it away.
    """
    rows = max(plan.privacy.scale.rows_max, schema.rows_max)
    return {"rows": rows, "unit": plan.unit, "of_model": plan.mode == "tested"}


def _accountant_entry(cost: Guarantee) -> dict[str, Any]:
    epsilon = "inf" if cost.epsilon == math.inf else cost.epsilon
    return {"name": ACCOUNTANT, "epsilon": epsilon, "delta": cost.delta}


def _row_draws(run: Run) -> dict[str, Any]:
    """The parameter that tasks of a cluster drew which rows are used, if they did."""
    draws = run.plan.fractions is not None or run.plan.unit is not None
    is_secret = run.config.engine == "spark" and run.randomness.is_secret
    return {"row_draws": wording.ROW_DRAWS} if draws and is_secret else {}


def claimed_cost(cost: Guarantee, config: Config) -> Guarantee:
    """Round the cost up, capped at the requested ε and δ.

    Not capped in the paper's profile: there the paper's formula meets the request, and the true
    cost, which is claimed, may be larger.
    """
    if cost.epsilon == math.inf:
        return NO_GUARANTEE
    if config.profile == "paper":
        return Guarantee(epsilon=round_up(cost.epsilon), delta=round_up(cost.delta))
    if not cost.within(Guarantee(epsilon=config.epsilon, delta=config.delta)):
        raise InvariantError("the run cost more than was requested: nothing is released")
    return Guarantee(
        epsilon=min(config.epsilon, round_up(cost.epsilon)),
        delta=min(config.delta, round_up(cost.delta)),
    )


def _parameters(
    run: Run, omegas: tuple[int, ...], *, own_model: bool, copies: bool
) -> dict[str, Any]:
    """The options that shaped the release, without those that do not apply."""
    plan, config, draft = run.plan, run.config, run.schema.draft
    chosen: dict[str, Any] = {
        "epsilon": config.epsilon,
        "delta": config.delta,
        "omega": list(omegas),
        "max_cost": config.max_configurations,
        "estimator": config.chosen_estimator,
        "graph": "given" if config.graph is not None else "learnt",
        "rows_max": plan.privacy.scale.rows_max,
    }
    chosen |= {} if run.schema.header else {"header": False}
    chosen |= _estimator_parameters(config)
    if plan.mode != "seedless":
        requested = "given" if plan.omegas or own_model else "auto"
        chosen |= {"omega_requested": requested, "k": config.k, "omega_known": config.omega_known}
    if plan.privacy.seeds is not None:
        chosen["threshold"] = config.k + plan.privacy.seeds.radius
        chosen["copies_prefixes"] = copies
    if plan.mode in ("tested", "randomized") and (own_model or not config.omega_known):
        chosen["gamma"] = config.gamma
    if plan.test is not None:
        test = plan.test
        chosen |= {"epsilon0": test.epsilon0, "t": test.t, "dummies": test.dummies}
        chosen["gamma"] = test.gamma
    if plan.fractions is not None:
        chosen["fractions"] = dict(plan.fractions)
    if plan.unit is not None:
        chosen |= {"unit": plan.unit, "rows_per_unit": plan.rows_per_unit}
    if draft is not None:
        noise = draft.noise if plan.privacy.draft is not None and not own_model else None
        chosen["draft"] = replace(draft, noise=noise).stated
    if plan.privacy.paper is not None:
        chosen["paper_formula"] = _paper_formula(plan, config)
    return chosen


def _estimator_parameters(config: Config) -> dict[str, Any]:
    """The options of the estimator alone."""
    if not config.uses_pairs:
        return {"alpha": config.alpha, "parameters": config.parameters}
    return {"target": list(config.target)} if config.target else {}


def _paper_formula(plan: RunPlan, config: Config) -> dict[str, Any]:
    """The cost by the paper's own formulas: printed, never claimed."""
    formulas = {"model": plan.privacy.paper.formula} if plan.privacy.paper is not None else {}
    if plan.test is not None:
        test = plan.test
        formulas["records"] = paper_records_cost(
            k=test.k,
            gamma=config.gamma,
            epsilon0=test.epsilon0,
            t=test.t,
            records=test.records,
        )
    return {
        what: {"epsilon": round_up(cost.epsilon), "delta": round_up(cost.delta)}
        for what, cost in formulas.items()
    }


def _sentence(
    plan: RunPlan,
    config: Config,
    cost: Guarantee,
    omegas: tuple[int, ...],
    *,
    is_secret: bool,
    own_model: bool,
    copies: bool,
) -> str:
    drafted = plan.draft is not None
    if not is_secret:
        return wording.no_claim(why=wording.KNOWN_NOISE)
    if plan.mode == "tested":
        hidden = own_model or not (config.omega_known or len(omegas) == 1)
        gamma = config.gamma if hidden else None
        model = None if own_model else cost
        if cost.epsilon == math.inf and not own_model:
            return wording.no_claim(why=wording.WITHOUT_NOISE)
        sentence = wording.tested_claim(model, k=config.k, gamma=gamma, one_omega=len(omegas) == 1)
    elif cost.epsilon == math.inf:
        return wording.no_claim(why=wording.WITHOUT_NOISE)
    elif plan.test is not None:
        sentence = wording.randomized_claim(cost, records=plan.test.records, each=plan.test.each)
    elif plan.privacy.seeds is not None:
        sentence = wording.one_shot_claim(
            cost, k=config.k if copies else None, private_draft=drafted
        )
    else:
        sentence = wording.seedless_claim(cost, private_draft=drafted)
    if plan.fractions is not None:
        sentence += wording.split_claim(
            {str(part): share for part, share in plan.fractions.items()}
        )
    return sentence
