"""The report of a mechanism audit: one section for each case, in words, tables and plots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deniable.audit.attack_bounds import (
    AreaEstimate,
    Rates,
    epsilon_lower_bound,
    mu_lower_bound,
)
from deniable.audit.audit_report import AuditReport, AuditSection, AuditTable
from deniable.audit.case_results import FALSE_ALARM_PROBABILITY, CaseResult
from deniable.audit.noise_checks import StageNoise
from deniable.audit.planted_faults import FAULT_WORDS, Fault
from deniable.audit.trade_off import area_below
from deniable.config import Config
from deniable.privacy.wording import meaningless_claim

_READING = (
    "Each part below compares two made-up tables that differ in one row, or in one person. The "
    "shipped code ran on both many times, with fresh noise. An attacker who knows everything but "
    "this row decided for each release which of the tables it was made from.",
    '"At least" is what these decisions prove with a confidence of 95 %. The promise is kept as '
    'long as it is not above "promised, at most".',
    "ε and δ are the promise. μ is the same promise for Gaussian noise, in one number: releases of "
    "the two tables are as hard to tell apart as two normal distributions whose means are μ "
    "standard deviations apart. Where μ measured is about 1.0 of μ charged, the attack finds all "
    "that is charged: no other attack finds more, and no budget is wasted.",
)
_PLANTED = "the planted fault was found here, as it must be; the shipped code does not have it"


def mechanism_report(
    results: Sequence[CaseResult],
    *,
    config: Config,
    fault: Fault | None,
    needed: int | None,
    options: Mapping[str, Any],
    left_out: Sequence[str] = (),
) -> AuditReport:
    """Write the results of all cases as a report.

    Args:
        results: The cases.
        config: The options that were audited.
        fault: The planted fault.
        needed: Runs each way after which it was found; None if it was not.
        options: The options as given, for audit.json.
        left_out: Cases that these options do not allow, and why.
    """
    sections = [_case_section(result) for result in results]
    if fault is not None:
        sections = [replace(section, fault=_PLANTED) for section in sections]
    exceeded = [result for result in results if result.exceeded]
    headline = _headline(results, exceeded, fault, needed)
    findings = [_finding(result) for result in results]
    findings += [f"Not possible with these options: {words}" for words in left_out]
    promise = (
        f"ε = {config.epsilon:g}, δ = {config.delta:g} for adding or removing one row (or one "
        "person), in every mode but tested, which promises k plausible seeds of every record."
    )
    promise = meaningless_claim(config.delta, rows=config.rows_max) + promise
    return AuditReport(
        edition="public",
        subject="mechanism",
        headline=headline,
        findings=findings,
        guarantee=promise,
        sections=sections,
        reading=_READING,
        settings={
            "options": {name: str(value) for name, value in options.items()},
            "plant": fault,
            "runs_to_find": needed,
            "false_alarms": FALSE_ALARM_PROBABILITY,
            "left_out": list(left_out),
        },
    )


def _headline(
    results: Sequence[CaseResult],
    exceeded: Sequence[CaseResult],
    fault: Fault | None,
    needed: int | None,
) -> str:
    runs = sum(result.runs for result in results)
    if fault is not None:
        planted = f"A fault was planted: {FAULT_WORDS[fault]}."
        if exceeded:
            return (
                f"{planted} It was found in {len(exceeded)} of {len(results)} cases; {needed:,} "
                "runs each way of the first of them were enough."
            )
        return f"{planted} It was not found in {runs:,} runs. {_runs_advice(results)}"
    if exceeded:
        names = ", ".join(result.case.name for result in exceeded)
        return f"The promise is exceeded: {names}."
    return (
        f"No attack exceeded the promise, in {runs:,} runs on {len(results)} pairs of worst-case "
        "tables."
    )


def _runs_advice(results: Sequence[CaseResult]) -> str:
    """How many runs would show twice the allowed μ, or a tenth more than it."""
    ratios = [result.mu_ratio for result in results if result.mu_ratio is not None]
    if not ratios:
        return "Use --runs for more."
    half = min((high - low) / 2 for low, _, high in ratios)
    factor = math.ceil((half / 0.1) ** 2)
    return (
        f"The interval of μ is ± {half:.2f} of the charge here; an excess of a tenth needs about "
        f"{max(factor, 1):,} times as many runs (--runs)."
    )


def _finding(result: CaseResult) -> str:
    """The decision on a case, in a sentence; the numbers behind it are in the report."""
    name = f"{result.case.mode}, {result.case.name}"
    if result.exceeded:
        return f"EXCEEDED: {name}. {'; '.join(result.exceeded)}."
    if result.case.mode == "tested":
        return (
            f"Kept: {name}. Every record had at least k plausible seeds. The seeds have no "
            "differential privacy, as the mode states."
        )
    estimate, proved = _found(result)
    if proved > 1:
        return (
            f"Not decided: {name}. With a confidence of 95 % the runs show more than is allowed, "
            "which chance does in one case of 20; the promise counts as exceeded only if chance "
            "does so in fewer than one audit of 1,000. Make more runs (--runs)."
        )
    if estimate > 1:
        return (
            f"Kept, as far as these runs can tell: {name}. The estimate is above what is allowed, "
            "but it is uncertain, and what the runs prove is not above. More runs (--runs) tell "
            "more."
        )
    return f"Kept: {name}."


def _found(result: CaseResult) -> tuple[float, float]:
    """What the attack found over what is allowed: the estimate, and the 95 % lower bound."""
    ratio, advantage = result.mu_ratio, result.advantage_ratio
    if ratio is not None and result.mu_ratio_bound is not None:
        return ratio[1], result.mu_ratio_bound
    if advantage is not None:
        return advantage[1], advantage[0]
    proved = _best_epsilon(result) / result.promise.epsilon
    return proved, proved


def _measured_words(result: CaseResult) -> str:
    """The numbers behind the decision on a case."""
    ratio, advantage = result.mu_ratio, result.advantage_ratio
    if result.case.mode == "tested":
        return f"The row's prefix shows {_tested_words(result)}."
    if ratio is not None:
        return (
            f"μ measured is {ratio[1]:.3f} of μ charged ({ratio[0]:.3f} to {ratio[2]:.3f}, 95 %; "
            f"lower bound {result.mu_ratio_bound:.3f})."
        )
    if advantage is not None:
        return (
            f"The attack finds {advantage[1]:.3f} of what the exact losses allow "
            f"({advantage[0]:.3f} to {advantage[2]:.3f}, 95 %)."
        )
    return f"Lower bound on ε: {_best_epsilon(result):.3f}."


def _tested_words(result: CaseResult) -> str:
    epsilon = _best_epsilon(result, delta=0.0)
    return f"ε ≥ {epsilon:.2f} (δ = 0)" if epsilon > 0 else "nothing in so few runs"


def _best_epsilon(result: CaseResult, *, delta: float | None = None) -> float:
    """The largest of the 95 % lower bounds on ε."""
    chosen = result.promise.delta if delta is None else delta
    rates = [rate for rate in (result.rates, result.fact and result.fact[1]) if rate is not None]
    return max((epsilon_lower_bound(each, delta=chosen) for each in rates), default=0.0)


def _case_section(result: CaseResult) -> AuditSection:
    case = result.case
    promised = None if math.isinf(result.promise.epsilon) else f"{result.promise.epsilon:.4g}"
    words = [_finding(result), _measured_words(result), case.words]
    if case.complete < 1:
        words.append(
            "Part of the runs stop at the noisy counts, where the rows are read for the last time; "
            "the others go all the way to the artefact."
        )
    tables = [_bounds_table(result, promised)]
    if result.stages:
        tables.append(_noise_table(result))
    return AuditSection(
        name=case.name,
        title=f"{case.mode}: {case.name}",
        words=words,
        tables=tables,
        within=result.within,
        results=case_document(result),
    )


def _bounds_table(result: CaseResult, promised: str | None) -> AuditTable:
    rows = []
    charged = None if result.promise.mu is None else f"{result.promise.mu:.4f}"
    none = "not promised"
    if result.rates is not None:
        score = "likelihood ratio" if result.case.records is None else "records with the prefix"
        epsilon = epsilon_lower_bound(result.rates, delta=result.promise.delta)
        rows.append(
            [f"ε at δ = {result.promise.delta:g}, {score}", f"{epsilon:.4f}", promised or none]
        )
        rows.append(
            [f"μ, {score}, one threshold", f"{mu_lower_bound(result.rates):.4f}", charged or "–"]
        )
    if result.area is not None and result.case.records is None:
        rows.append(["μ, all thresholds", f"{result.area.mu_bound():.4f}", charged or "–"])
        most = area_below(result.promise.allowed)
        rows.append(
            ["area below the curve", f"{result.area.bound(confidence=0.95):.4f}", f"{most:.4f}"]
        )
    if result.fact is not None:
        test, rates = result.fact
        epsilon = epsilon_lower_bound(rates, delta=result.promise.delta)
        rows.append([f"ε, most revealing fact: {test}", f"{epsilon:.4f}", promised or none])
    if result.promise.k is not None:
        rows.append(["records with fewer than k plausible seeds", f"{result.undeniable:,}", "0"])
    return AuditTable(
        caption=f"Lower bounds at 95 %, from {result.runs:,} runs, and what is promised",
        head=["", "at least", "promised, at most"],
        rows=rows,
    )


def _noise_table(result: CaseResult) -> AuditTable:
    rows = []
    for stage in result.stages:
        half = 1.96 * stage.error / (2 * max(stage.ratio, 1e-12))
        deviation = math.sqrt(stage.ratio)
        mu = f"{stage.mu:.4f}" if stage.information > 0 else "–"
        charged = "–" if stage.charged is None else f"{stage.charged:.4f}"
        interval = f"{deviation:.4f} ± {half * deviation:.4f}"
        rows.append([stage.name, f"{stage.numbers:,}", interval, mu, charged])
    return AuditTable(
        caption="Noise of each stage, measured: the tables are known here, so the noise is too",
        head=["stage", "numbers", "measured / claimed σ", "μ by this noise", "μ charged"],
        rows=rows,
    )


def case_document(result: CaseResult) -> dict[str, Any]:
    """The numbers of a case, for audit.json."""
    promise = result.promise
    document: dict[str, Any] = {
        "mode": result.case.mode,
        "runs": result.runs,
        "targets": len(result.case.targets),
        "promise": {
            "epsilon": None if math.isinf(promise.epsilon) else promise.epsilon,
            "delta": promise.delta,
            "mu": promise.mu,
            "k": promise.k,
        },
        "exceeded": list(result.exceeded),
        "noise": [_stage_document(stage) for stage in result.stages],
    }
    if result.rates is not None:
        document["likelihood_ratio"] = _rates_document(result.rates, promise.delta)
    if result.area is not None:
        document |= _area_document(result, result.area)
    if result.fact is not None:
        test, rates = result.fact
        document["fact"] = {"test": str(test), **_rates_document(rates, promise.delta)}
    if promise.k is not None:
        document["undeniable"] = result.undeniable
    return document


def _rates_document(rates: Rates, delta: float) -> dict[str, Any]:
    """Counts of a test, with the bounds that follow from them."""
    return {
        "epsilon_lower": epsilon_lower_bound(rates, delta=delta),
        "mu_lower": mu_lower_bound(rates),
        "false_positives": [rates.false_hits, rates.absent],
        "true_positives": [rates.true_hits, rates.present],
    }


def _area_document(result: CaseResult, area: AreaEstimate) -> dict[str, Any]:
    return {
        "area": {
            "estimate": area.area,
            "error": area.error,
            "allowed": area_below(result.promise.allowed),
            "advantage_ratio": result.advantage_ratio,
        },
        "mu": {
            "interval": area.mu_interval(),
            "lower": area.mu_bound(),
            "ratio": result.mu_ratio,
            "ratio_lower": result.mu_ratio_bound,
        },
    }


def _stage_document(stage: StageNoise) -> dict[str, Any]:
    return {
        "stage": stage.name,
        "numbers": stage.numbers,
        "variance_ratio": stage.ratio,
        "error": stage.error,
        "mu": stage.mu if stage.information > 0 else None,
        "charged": stage.charged,
    }
