"""Consequences of a plan, in figures and in plain words. No row is read."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from deniable.config import Config
from deniable.errors import DeniableError
from deniable.pipeline.certificate import certify, planned_caution
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import Run, RunPlan, plan_run, resolve_options
from deniable.privacy.wording import LARGE_EPSILON, UNIT
from deniable.randomness import Secret
from deniable.release.manifest import Certificate
from deniable.schema.schema import Schema
from deniable.studio.plan_form import PlanForm
from deniable.workers import no_progress

# ε up to which one row hardly matters, or matters little; and from which little is promised.
_STRICT_EPSILON, _USUAL_EPSILON, _LOOSE_EPSILON = 0.5, 1.0, 3.0
# How a warning of the command line names an option, and where a page has it.
_TARGET_FLAG = "name the columns that matter most by --target"
_TARGET_FIELD = "choose the columns that matter most, under More options"
# Plans that are kept: a slider that goes back and forth finds them again.
_MAX_KEPT = 64


@dataclass(frozen=True, kw_only=True)
class Consequences:
    """What a plan means.

    Attributes:
        error: Why the plan is impossible; "" if it is possible.
        report: The report of ``deniable plan``.
        sentence: The guarantee that the release will state.
        words: The same for a reader who does not know the formulas.
        danger: A warning that ε or δ promises little or nothing; "" if they do not.
        caution: A warning that ε is larger than usual; "" if it is not.
        forecast: What to expect of the records.
        warnings: What may be wrong with them.
    """

    error: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    sentence: str = ""
    words: Sequence[str] = ()
    danger: str = ""
    caution: str = ""
    forecast: Sequence[str] = ()
    warnings: Sequence[str] = ()


def consequences(form: PlanForm, schema: Schema) -> Consequences:
    """Compute the consequences of a plan; if it is impossible, explain why."""
    try:
        config, records = form.config(), form.records
        return _computed(schema.text(), config, records, form.rows)
    except DeniableError as fault:
        return Consequences(error=str(fault))


@lru_cache(maxsize=_MAX_KEPT)
def _computed(text: str, config: Config, records: int, rows: int | None) -> Consequences:
    schema = Schema.parse(text)
    resolved = resolve_options(config, schema)
    run = plan_run(schema, resolved, records=records)
    report = report_plan(run, schema, resolved, records=records, rows=rows, compares_modes=False)
    danger = planned_caution(run, resolved, schema, rows=rows)
    return Consequences(
        report=report,
        sentence=planned_sentence(schema, resolved, run),
        words=plain_words(report, has_unit=schema.unit is not None, danger=danger),
        danger=danger,
        caution=caution_words(report),
        forecast=forecast_words(report["forecast"]),
        warnings=warning_words(report["forecast"]),
    )


def planned_sentence(schema: Schema, config: Config, run: RunPlan) -> str:
    """The guarantee sentence of a run that has not started.

    It depends on the schema and the options alone, so it is known before a row is read. Where ω is
    chosen by the run, the sentence of its own words is shown: it names no number of attributes.
    What it says of copied prefixes is left out of the certificate if none is kept.
    """
    planned = Run(schema=schema, config=config, plan=run, randomness=Secret(), progress=no_progress)
    return certify(planned, omegas=run.omegas or (1,), extra={}).sentence


def certificate_words(manifest: Mapping[str, Any]) -> list[str]:
    """Explain the guarantee of a release in the words of its plan; empty if it states none."""
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        claim, chosen = manifest["guarantee"], manifest["parameters"]
        report = {
            "cost": {"epsilon": claim["epsilon"], "delta": claim["delta"]},
            "mode": manifest["mode"],
            "k": chosen.get("k"),
            "threshold": chosen["threshold"] if chosen.get("copies_prefixes") else None,
        }
        danger = certificate_danger(manifest)
        return plain_words(report, has_unit=claim["unit"] != UNIT, danger=danger)
    return []


def certificate_danger(manifest: Mapping[str, Any]) -> str:
    """Warn of an ε or a δ of a release that promises little or nothing; "" for usual ones."""
    with suppress(KeyError, TypeError, ValueError, AttributeError, DeniableError):
        return Certificate.of_document(manifest).caution
    return ""


def plain_words(report: Mapping[str, Any], *, has_unit: bool, danger: str = "") -> list[str]:
    """Explain a guarantee to a reader who decides and does not calculate.

    Args:
        report: The cost, the mode, k and the threshold of a plan.
        has_unit: Whether all rows of a person are protected together.
        danger: Why ε or δ promises little or nothing; then no likeness is stated.
    """
    cost = report["cost"]
    if cost["epsilon"] == "inf":
        return [
            "Nothing is promised: without noise, records can disclose rows of the table. The "
            "result is as confidential as the table."
        ]
    whether = "one person’s rows are" if has_unit else "one row is"
    one = "any one person" if has_unit else "any one row"
    epsilon, delta = float(cost["epsilon"]), float(cost["delta"])
    if report["mode"] == "tested":
        return [
            f"Every released record could have come from at least {report['k']} different rows.",
            "This does not add up well: someone who already knows many of these rows, or sees "
            "several releases, can learn more. It is weaker than differential privacy.",
        ]
    likeness = f"The release {_likeness(epsilon)} if {one} were not in the table."
    words = [
        *([] if danger else [likeness]),
        f"Suppose someone wants to find out whether {whether} in the table, knows all the others, "
        f"and thinks both equally likely. After seeing the release they are right at most "
        f"{_percent(best_guess(epsilon, delta))} of the time; by guessing, 50 %.",
        f"Whatever the release suggests about {one}: without it, the odds of this or "
        f"any other conclusion would differ by a factor of {_factor(epsilon)}.",
        f"δ is the part of this promise that may fail: think of a chance of {_one_in(delta)}.",
    ]
    if report["threshold"] is not None:
        words.append(
            f"A combination of values is copied only if at least {report['k']} rows share it."
        )
    return words


def _likeness(epsilon: float) -> str:
    """Describe how much a release reveals about one row, in words never stronger than its ε."""
    if epsilon <= _STRICT_EPSILON:
        return "would look almost the same"
    if epsilon <= _USUAL_EPSILON:
        return "would look much the same"
    return "could look different" if epsilon < _LOOSE_EPSILON else "could look quite different"


def caution_words(report: Mapping[str, Any]) -> str:
    """Warn of an ε that is larger than usual; "" for a smaller one, or one that is a danger."""
    epsilon = float(report["cost"]["epsilon"])
    if not _LOOSE_EPSILON <= epsilon <= LARGE_EPSILON:
        return ""
    return (
        f"ε = {epsilon:g} is large: someone who knows much may become almost certain whether "
        "a row is in the table, as the figures below say. Values up to 1 are usual; choose a "
        "larger one only if other rules protect the release, too."
    )


def forecast_words(forecast: Mapping[str, Any] | None) -> list[str]:
    """What to expect of the records, for a reader who does not know these measures."""
    if not forecast:
        return []
    words = []
    error = forecast.get("value_error")
    if error is not None:
        words.append(
            f"The share of a single value will be right to about ± {200 * error:.2g} percentage "
            "points."
        )
    visible = forecast.get("visible_association")
    if visible is not None:
        words.append(
            "A relation between two columns survives if its strength (Cramér’s V) is above "
            f"{visible:.2g}, on a scale from 0, none, to 1, one column follows from the other."
        )
    share = forecast.get("sample_share")
    if share is not None:
        words.append(
            "For relations between columns, the records will be about as good as a random sample "
            f"of {100 * share:.2g} % of the rows."
        )
    return words


def warning_words(forecast: Mapping[str, Any] | None) -> list[str]:
    """The warnings of a forecast, for a reader who sees a page and no flags."""
    found = [] if not forecast else forecast["warnings"]
    return [each.replace(_TARGET_FLAG, _TARGET_FIELD) for each in found]


def best_guess(epsilon: float, delta: float) -> float:
    """The best chance to tell two equally likely neighbouring tables apart: (e^ε + δ)/(1 + e^ε).

    >>> best_guess(0.0, 0.0)
    0.5
    """
    if epsilon > 700:
        return 1.0
    return min(1.0, (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)))


def _percent(share: float) -> str:
    """A share in percent, rounded up; with more digits where it would be 100 % and is not."""
    for digits in range(1, 10):
        rounded = math.ceil(share * 10 ** (digits + 2)) / 10**digits
        if rounded < 100:
            return f"{rounded:.{digits}f}".removesuffix(".0") + " %"
    return "100 %"


def _factor(epsilon: float) -> str:
    if epsilon > 15:
        return "millions"
    factor = math.exp(epsilon)
    rounded = f"{math.ceil(factor * 10) / 10:g}" if factor < 100 else f"{math.ceil(factor):,}"
    return f"at most {rounded}"


def _one_in(delta: float) -> str:
    return "zero" if delta == 0 else f"1 in {float(f'{1 / delta:.3g}'):,.0f}"
