"""The report of ``deniable plan``: costs, noise, forecast and alternatives; no row is read."""

import math
from typing import Any

from deniable.config import Config
from deniable.pipeline.forecast import forecast_run, why_no_forecast
from deniable.pipeline.run_plan import RunPlan
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import compose_spends
from deniable.privacy.randomized_test import cheapest_test
from deniable.privacy.theorems import candidate_cost, trade_off
from deniable.privacy.wording import round_up
from deniable.release.manifest import json_number, ledger_entry
from deniable.schema.schema import Schema

# Numbers of records for which the modes are compared, besides the requested one.
_COMPARED_RECORDS = (1, 100, 10_000, 1_000_000)


def report_plan(
    run: RunPlan,
    schema: Schema,
    config: Config,
    *,
    records: int | None = None,
    rows: int | None = None,
    compares_modes: bool = True,
) -> dict[str, Any]:
    """Report the plan of a run: its stages, a forecast, and the cost of other choices.

    Args:
        run: The plan.
        schema: Its schema.
        config: Its options.
        records: The number of records, if known.
        rows: The number of rows of the table, if known, for the forecast.
        compares_modes: Whether the cost of other choices is computed, which takes longer than the
            rest; without it ``records`` and ``trade_off`` are empty.
    """
    forecast = forecast_run(run, schema, config, rows=rows)
    seeds, reason = run.privacy.seeds, why_no_forecast(schema)
    return {
        "mode": run.mode,
        "data_use": config.data_use,
        "asked": {"epsilon": json_number(config.epsilon), "delta": config.delta},
        "cost": _pair(run.cost),
        "draft": None if run.draft is None else _draft(run.draft, schema),
        "stages": _stages(run, config),
        "forecast": None if forecast is None else forecast.document(),
        **({"no_forecast": reason} if reason else {}),
        "k": config.k,
        "r": seeds.radius if seeds is not None else None,
        "threshold": config.k + seeds.radius if seeds is not None else None,
        "test": _test(run),
        "records": compare_modes(config, records) if compares_modes else [],
        "trade_off": _trade_off(config) if compares_modes else [],
    }


def _draft(cost: Guarantee, schema: Schema) -> dict[str, Any]:
    """The cost of a private draft, and the number of entries of the schema that say they are its.

    Drafts of earlier versions have none that say so.
    """
    return {**_pair(cost), "entries": len(schema.drafted_privately)}


def _stages(run: RunPlan, config: Config) -> list[dict[str, Any]]:
    """One row for each kind of noise; tables of counts share one row."""
    rows: list[dict[str, Any]] = []
    if config.epsilon == math.inf:
        return rows
    for spend in run.privacy.entries:
        if spend.what.startswith("counts of ") and rows and rows[-1]["what"] == "tables of counts":
            rows[-1]["number"] += 1
            continue
        counts = spend.what.startswith("counts of ")
        what = "tables of counts" if counts else spend.what
        deviation = round(math.sqrt(spend.law.variance), 3)
        entry = ledger_entry(spend, compose_spends(spend.alone, delta=config.delta))
        rows.append({**entry, "what": what, "number": 1, "noise_deviation": deviation})
    return rows


def _test(run: RunPlan) -> dict[str, Any] | None:
    """The parameters of the randomized test, where the mode has one."""
    if run.test is None:
        return None
    test = run.test
    return {
        "records": test.records,
        "k": test.k,
        "gamma": test.gamma,
        "epsilon0": test.epsilon0,
        "t": test.t,
        "dummies": test.dummies,
        "each": _pair(test.each),
        "cost": _pair(test.cost),
    }


def compare_modes(config: Config, records: int | None) -> list[dict[str, Any]]:
    """Compare the cost of the seeds of N records between modes, for several N.

    One-shot costs the same for any N. The randomized test is given its best ε0 and t at this k;
    where no ε meets δ, or it exceeds 10^6, its entry is null. Tested guarantees no ε at all.
    """
    numbers = sorted({*_COMPARED_RECORDS, *([records] if records else [])})
    rows = []
    for n in numbers:
        test = cheapest_test(config.delta, records=n, k=config.k, gamma=1.0)
        randomized = None if test is None or test.cost.epsilon > 1e6 else test.cost.epsilon
        rows.append(
            {
                "records": n,
                "one-shot": json_number(config.epsilon),
                "seedless": json_number(config.epsilon),
                "tested": None,
                "randomized": None if randomized is None else round_up(randomized),
            }
        )
    return rows


def _trade_off(config: Config) -> list[dict[str, Any]]:
    """(ε, δ) of one candidate of the randomized test for t = 1 … k - 1."""
    epsilon0 = config.epsilon0 or 1.0
    if config.k < 2:
        return []
    costs = trade_off(
        lambda t: candidate_cost(k=config.k, epsilon0=epsilon0, t=t), k=min(config.k, 10_000)
    )
    return [{"t": t, **_pair(cost)} for t, cost in enumerate(costs, start=1)]


def _pair(cost: Guarantee) -> dict[str, Any]:
    return {"epsilon": json_number(round_up(cost.epsilon)), "delta": round_up(cost.delta)}
