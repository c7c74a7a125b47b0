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
)
from deniable.audit.audit_report import AuditReport, AuditSection, AuditTable
from deniable.audit.exposure import AuditTargets
from deniable.audit.inference_attacks import AttackComparison
from deniable.audit.membership_results import LEARNED, MembershipResults
from deniable.audit.retraining import AuditedTable
from deniable.audit.trade_off import allowed_by_guarantee
from deniable.evaluation.svg_plots import draw_lines
from deniable.html import Markup, figure

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
) -> AuditReport:
    """Put the results of all attacks on a table together."""
    sections = [_membership_section(membership, audited), *inference_sections(comparisons)]
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
    strongest = max((pair[1] for pair in success.values()), key=lambda found: found.auc.interval[0])
    return AuditSection(
        name="membership",
        title="Membership",
        words=(
            _membership_finding(strongest, promised=promised, exceeds=exceeds),
            _membership_method(results, audited),
        ),
        tables=(
            AuditTable(
                caption="Membership attacks, with 95 % intervals",
                head=("attack", "targets", "trials", "AUC", "allowed", *_rate_titles()),
                rows=_success_rows(success),
                left=2,
            ),
        ),
        figures=(_membership_figure(results),),
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
        "far from all others) and random rows. Releases were learnt again with fresh noise, each "
        "target in or out by a coin. The attacker knows every other row. From the artefact's noisy "
        "counts, or from the released prefixes of seeds, the likelihood ratio is the best test "
        f'there is. "{LEARNED.capitalize()}" is a control that sees {audited.records:,} records '
        "only, and was trained on answers to queries in other retrainings."
    )


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


def _success_row(name: str, group: str, found: AttackSuccess) -> tuple[str, ...]:
    cells = [name, group, f"{sum(found.trials):,}", _number(found.auc), _ceiling(found.auc.allowed)]
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


def _membership_figure(results: MembershipResults) -> Markup:
    grid = np.linspace(0.0, 1.0, _CURVE_POINTS)
    curves = {
        name: _curve(trials.of(results.targets.most_exposed), grid)
        for name, trials in results.trials.items()
    }
    if not math.isinf(results.epsilon):
        allowed = partial(allowed_by_guarantee, epsilon=results.epsilon, delta=results.delta)
        curves["allowed by (ε, δ)"] = list(zip(grid.tolist(), allowed(grid).tolist(), strict=True))
    curves["guessing"] = [(0.0, 0.0), (1.0, 1.0)]
    return figure(
        draw_lines(curves, across="false alarms", up="members found", as_percent=True),
        "Members found among the most exposed rows, by the share of false alarms.",
    )


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


_COMPARISON_METHODS = {
    "singling out": (
        "The attacker picks the combinations of values that are rarest among the released records, "
        "and claims that exactly one row has them. The same claims are made about as many control "
        "rows, which were not in the table."
    ),
    "attribute inference": (
        "The attacker knows all columns of a row but one, and takes the missing value from the "
        "nearest released record. The same is tried with control rows: what is inferred of them "
        "too is knowledge about everybody, not about a row. The first line is the mean over "
        "columns; single columns are shown for orientation, and one in forty is above zero by "
        "chance."
    ),
}


def inference_sections(comparisons: Sequence[AttackComparison]) -> list[AuditSection]:
    """Build a section for each attack, with single columns below attribute inference.

    No limit is stated: (ε, δ) bounds what an attack gains by the presence of one row, and these
    compare different rows. A holdout of another population would exceed any limit.
    """
    sections = []
    columns = [each for each in comparisons if each.is_column]
    for each in comparisons:
        if each.is_column:
            continue
        inference = each.name == "attribute inference"
        sections.append(
            AuditSection(
                name=each.name.replace(" ", "_"),
                title=each.name.capitalize(),
                words=(_comparison_finding(each), _COMPARISON_METHODS[each.name]),
                tables=(_comparison_table([each, *columns] if inference else [each]),),
                results={
                    **each.document(),
                    **({"columns": [c.document() for c in columns]} if inference else {}),
                },
            )
        )
    return sections


def _comparison_finding(found: AttackComparison) -> str:
    low, high = (100 * side for side in found.interval)
    numbers = f"{100 * found.difference:+.1f} points [{low:+.1f}, {high:+.1f}]"
    if found.shows_evidence:
        return (
            f"There is evidence of {found.name}: the attack succeeds more often on rows of the "
            f"table than on other rows, by {numbers}."
        )
    return (
        f"No evidence of {found.name}: success on rows of the table less success on other rows is "
        f"{numbers}."
    )


def _comparison_table(comparisons: Sequence[AttackComparison]) -> AuditTable:
    return AuditTable(
        caption="Success on rows of the table and on control rows, with the 95 % interval",
        head=("", "attempts", "table", "control", "difference"),
        rows=[
            (
                each.name,
                f"{each.attempts[0]:,}",
                f"{100 * each.table:.1f} %",
                f"{100 * each.control:.1f} %",
                f"{100 * each.difference:+.1f} [{100 * each.interval[0]:+.1f}, "
                f"{100 * each.interval[1]:+.1f}]",
            )
            for each in comparisons
        ],
    )
