"""Sections of the report on a table: findings in words, then tables and plots."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from deniable.audit.attack_success import (
    AttackRate,
    AttackSuccess,
    AttackTrials,
    measure_success,
)
from deniable.audit.audit_report import AuditReport, AuditSection, AuditTable
from deniable.audit.exposure import AuditTargets
from deniable.audit.inference_attacks import AttackComparison
from deniable.audit.membership_results import DENSITY, FIXED, LEARNED, MembershipResults
from deniable.audit.release_sections import inference_sections, posterior_section
from deniable.audit.retraining import AuditedTable
from deniable.audit.seed_posterior import SeedPosterior
from deniable.audit.trade_off import allowed_by_guarantee
from deniable.evaluation.html import Markup, figure
from deniable.evaluation.svg_plots import draw_lines

# Points of a drawn curve.
_CURVE_POINTS = 60
# A difference from guessing that is worth a word: a smaller one is not seen in a single release.
_VISIBLE_AUC = 0.6
_FALSE_ALARMS = (
    "Intervals are of 95 %. A result counts as more than allowed only if chance explains it less "
    "than once in 100,000 times; the whole page has a false alarm less than once in a thousand."
)


def table_report(
    audited: AuditedTable,
    targets: AuditTargets,
    *,
    settings: Mapping[str, Any],
    membership: MembershipResults,
    guarantee: str,
    comparisons: Sequence[AttackComparison],
    posterior: SeedPosterior | None,
    known_seeds: AttackTrials | None,
) -> AuditReport:
    """Put the results of all attacks on a table together."""
    sections = [_membership_section(membership, audited)]
    if membership.one_run is not None:
        sections.append(_one_run_section(membership))
    sections += inference_sections(comparisons)
    if posterior is not None:
        sections.append(posterior_section(posterior))
    if known_seeds is not None:
        sections.append(_known_seeds_section(known_seeds))
    exceeded = any(part.within is False for part in sections)
    findings = [part.words[0] for part in sections]
    if audited.run.schema.drafted:
        findings.append(
            "The schema is an unconfirmed draft. What it discloses itself was not attacked."
        )
    return AuditReport(
        edition="internal",
        subject="table",
        headline=_headline(membership, exceeded=exceeded),
        findings=[*findings, _FALSE_ALARMS],
        guarantee=guarantee,
        sections=sections,
        settings={**settings, "targets_most_exposed": int(targets.most_exposed.sum())},
    )


def _headline(membership: MembershipResults, *, exceeded: bool) -> str:
    if exceeded:
        return "An attack found more than the guarantee allows. Do not release."
    if not math.isinf(membership.epsilon):
        return "No attack found more than the guarantee allows."
    strongest = membership.success(membership.main, membership.targets.most_exposed)
    if _is_visible(strongest):
        return "Membership is visible, and nothing is promised about it."
    return "Nothing is promised about the presence of a row, so no attack can exceed it."


def _is_visible(found: AttackSuccess) -> bool:
    return found.auc.interval[0] > 0.5 and (found.auc.estimate or 0.0) >= _VISIBLE_AUC


def _membership_section(results: MembershipResults, audited: AuditedTable) -> AuditSection:
    chosen = results.targets.most_exposed
    success = {
        name: (results.success(name), results.success(name, chosen)) for name in results.trials
    }
    exceeds = any(found.exceeds for pair in success.values() for found in pair)
    promised = not math.isinf(results.epsilon)
    if results.fixed_epsilon is not None and promised:
        exceeds |= results.fixed_epsilon[1] > results.epsilon
    strongest = max((pair[1] for pair in success.values()), key=lambda found: found.auc.interval[0])
    deciles = results.by_decile(results.main)
    return AuditSection(
        name="membership",
        title="Membership",
        words=(
            _membership_finding(strongest, promised=promised, exceeds=exceeds),
            _membership_method(results, audited),
            *_fixed_words(results),
        ),
        tables=(
            AuditTable(
                caption="Membership attacks, with 95 % intervals",
                head=("attack", "targets", "trials", "AUC", "allowed", *_rate_titles()),
                rows=_success_rows(success),
                left=2,
            ),
            AuditTable(
                caption=f"By exposure: {results.main}. Tenth 10 has the most exposed rows",
                head=("tenth of exposure", "trials", "AUC", "allowed", *_rate_titles()),
                rows=[_success_row(str(d), None, found) for d, found in deciles.items()],
            ),
        ),
        figures=_membership_figures(results, deciles),
        standards=("membership",),
        within=None if not promised else not exceeds,
        results=results.document(),
    )


def _membership_finding(strongest: AttackSuccess, *, promised: bool, exceeds: bool) -> str:
    auc, rate = strongest.auc, strongest.true_positives[0.01]
    found = "" if rate.estimate is None else f", and finds {_share(rate)} at 1 % false alarms"
    said = f"the strongest attack has AUC {_number(auc)}{found}"
    if exceeds:
        return f"Membership: {said}. That is more than the guarantee allows."
    if promised:
        is_below = auc.allowed is None or (auc.estimate or 0.0) <= auc.allowed
        verdict = "is within the bound" if is_below else "is not shown to exceed the bound"
        return (
            f"Membership of the most exposed rows {verdict}: {said}; the guarantee "
            f"allows AUC {_ceiling(auc.allowed)} and {_percent(rate.allowed)} (guessing: 0.5 and "
            "1 %)."
        )
    if _is_visible(strongest):
        return f"Membership of the most exposed rows is visible: {said} (guessing: 0.5 and 1 %)."
    return (
        f"There is no evidence of visible membership, but nothing is promised: {said} (guessing: "
        "0.5 and 1 %)."
    )


def _membership_method(results: MembershipResults, audited: AuditedTable) -> str:
    targets, most = results.targets, int(results.targets.most_exposed.sum())
    return (
        f"{len(targets)} rows were attacked: {most} that are the most exposed (rare combinations, "
        "far from all others) and random rows of every tenth of exposure. Releases were learnt "
        "again with fresh noise, each target in or out by a coin. The attacker knows every other "
        "row. From the artefact's noisy counts, or from the released prefixes of seeds, the "
        "likelihood ratio is the best test there is. The other attacks see "
        f'{audited.records:,} records only: "{DENSITY}" compares how often a target\'s pairs of '
        f'values occur with what the other rows explain; "{LEARNED}" is a control that was '
        "trained on answers to queries in other retrainings."
    )


def _fixed_words(results: MembershipResults) -> list[str]:
    if results.fixed_epsilon is None:
        return []
    promise = "nothing is promised"
    if not math.isinf(results.epsilon):
        promise = f"promised is {results.epsilon:.4g}"
    return [
        f'"{FIXED.capitalize()}": releases with and without one target at a time, so that the '
        f"trials are independent. They show that ε is at least {results.fixed_epsilon[0]:.3g} "
        f"(95 %); {promise}."
    ]


def _rate_titles() -> tuple[str, ...]:
    return ("found at 1 % false alarms", "allowed", "found at 0.1 %", "allowed")


def _success_rows(
    success: Mapping[str, tuple[AttackSuccess, AttackSuccess]],
) -> list[tuple[str, ...]]:
    return [
        _success_row(name, group, found)
        for name, pair in success.items()
        for group, found in zip(("all targets", "most exposed"), pair, strict=True)
    ]


def _success_row(name: str, group: str | None, found: AttackSuccess) -> tuple[str, ...]:
    cells = [name] if group is None else [name, group]
    cells += [f"{sum(found.trials):,}", _number(found.auc), _ceiling(found.auc.allowed)]
    for rate in found.true_positives.values():
        cells += [_share(rate), _percent(rate.allowed)]
    return tuple(cells)


def _number(rate: AttackRate) -> str:
    if rate.estimate is None:
        return "too few trials"
    return f"{rate.estimate:.3f} [{rate.interval[0]:.3f}, {rate.interval[1]:.3f}]"


def _share(rate: AttackRate) -> str:
    if rate.estimate is None:
        return "too few trials"
    low, high = (100 * side for side in rate.interval)
    return f"{100 * rate.estimate:.2f} % [{low:.2f}, {high:.2f}]"


def _ceiling(allowed: float | None) -> str:
    return "no limit" if allowed is None else f"{allowed:.3f}"


def _percent(allowed: float | None) -> str:
    return "no limit" if allowed is None else f"{100 * allowed:.2f} %"


def _membership_figures(
    results: MembershipResults, deciles: Mapping[int, AttackSuccess]
) -> list[Markup]:
    grid = np.linspace(0.0, 1.0, _CURVE_POINTS)
    curves = {
        name: _curve(trials.of(results.targets.most_exposed), grid)
        for name, trials in results.trials.items()
    }
    if not math.isinf(results.epsilon):
        allowed = partial(allowed_by_guarantee, epsilon=results.epsilon, delta=results.delta)
        curves["allowed by (ε, δ)"] = list(zip(grid.tolist(), allowed(grid).tolist(), strict=True))
    curves["guessing"] = [(0.0, 0.0), (1.0, 1.0)]
    by_exposure = [
        (float(decile), found.auc.estimate)
        for decile, found in deciles.items()
        if found.auc.estimate is not None
    ]
    ends = (1.0, 10.0)
    lines = {results.main: by_exposure, "guessing": [(end, 0.5) for end in ends]}
    limit = next(iter(deciles.values())).auc.allowed
    if limit is not None:
        lines["allowed by (ε, δ)"] = [(end, limit) for end in ends]
    return [
        figure(
            draw_lines(curves, across="false alarms", up="members found", as_percent=True),
            "Members found among the most exposed rows, by the share of false alarms.",
        ),
        figure(
            draw_lines(lines, across="tenth of exposure", up="AUC"),
            "AUC by exposure: 0.5 is guessing, 1 is certainty.",
        ),
    ]


def _curve(trials: AttackTrials, grid: np.ndarray) -> list[tuple[float, float]]:
    """True positives at rates of false ones."""
    others = np.sort(trials.scores[~trials.present])[::-1]
    members = np.sort(trials.scores[trials.present])
    if not len(others) or not len(members):
        return []
    at = np.minimum((grid * len(others)).astype(int), len(others) - 1)
    found = 1 - np.searchsorted(members, others[at], side="right") / len(members)
    found[-1] = 1.0
    return list(zip(grid.tolist(), found.tolist(), strict=True))


def _known_seeds_section(trials: AttackTrials) -> AuditSection:
    """Seeds at the threshold: the attacker knows more than (ε, δ) assumes, so there is no limit."""
    found, number = measure_success(trials, epsilon=math.inf, delta=0.0), int(trials.targets.max())
    is_seen = found.auc.interval[0] > 0.5
    finding = "The presence of some seeds is visible" if is_seen else "No evidence of visible seeds"
    return AuditSection(
        name="known_seeds",
        title="Seeds at the threshold",
        words=(
            f"{finding}, for someone who knows all other seeds: AUC {_number(found.auc)} "
            "(guessing: 0.5).",
            f"{number + 1:,} seeds were attacked: those whose presence changes the released "
            "records most, because about k seeds share their prefix. Records were released again "
            "from the same model, each of these seeds in or out by a coin. The attacker counts "
            "the records with the seed's prefix. With a split, which rows are seeds is a secret "
            "of the release, so this attacker knows more than a guarantee assumes.",
        ),
        tables=(
            AuditTable(
                caption="Membership of seeds, with 95 % intervals",
                head=("attack", "trials", "AUC", "allowed", *_rate_titles()),
                rows=[_success_row("released prefixes, other seeds known", None, found)],
            ),
        ),
        standards=("membership", "singling out"),
        within=None,
        results=found.document(),
    )


def _one_run_section(results: MembershipResults) -> AuditSection:
    found, promised = results.one_run, not math.isinf(results.epsilon)
    if found is None:
        return AuditSection(name="one_run", title="One run with coins", words=())
    within = found.proven <= results.epsilon if promised else None
    promise = f"promised is {results.epsilon:.4g}" if promised else "nothing is promised"
    verdict = "" if within is not False else " That is more than promised."
    return AuditSection(
        name="one_run",
        title="One run with coins",
        words=(
            f"A single release shows that ε is at least {found.epsilon:.3g} (95 %); "
            f"{promise}.{verdict}",
            f"{found.canaries:,} rows were included by a coin each. An attacker who knows all "
            f"other rows, but no coin, guessed {found.guesses:,} of the coins from one release; "
            f"{found.correct:,} guesses were right. A bound from one run is never tight; it needs "
            "no retraining, so it can be repeated for every release.",
        ),
        standards=("membership", "parameters"),
        within=within,
        results=found.document(),
    )
