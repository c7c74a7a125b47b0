"""Columns of days and moments: which format, which bounds, which bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

import numpy as np
import polars as pl

from deniable.drafting.attributes import READ, ROUNDED, Described, Field, Plain
from deniable.drafting.cells import DATES, DATETIMES, EITHER, EITHER_MOMENT, Moment, parsed

_DAY = 86_400
_DAYS: tuple[int, ...] = (1, 7, 30, 91, 182, 365, 730, 1826, 3652)
_SECONDS = (1, 60, 300, 900, 3600, 6 * 3600, _DAY, *(days * _DAY for days in _DAYS[1:]))
_STEPS = (_DAY, 3600, 60)
MOST_POSITIONS = 1_000
_ENOUGH = 150

MomentKind = Literal["date", "datetime"]


@dataclass(frozen=True, kw_only=True)
class Moments:
    """The days or moments of a column, and how they are written."""

    kind: MomentKind
    values: pl.Series
    form: str | None = None
    also: str | None = None


def read_moments(texts: pl.Series) -> Moments | None:
    """Return the days or moments that all ``texts`` say in one format; None if they do not."""
    dates = [form for form in DATES if _reads_all(texts, form, pl.Date())]
    if dates:
        also = next((other for one, other in EITHER if dates[:2] == [one, other]), None)
        days = parsed(texts, dates[0], pl.Date())
        return Moments(kind="date", values=days, form=dates[0], also=also)
    for form in DATETIMES:
        if _reads_all(texts, form, pl.Datetime("us")):
            values = parsed(texts, form, pl.Datetime("us"))
            other = dict(EITHER_MOMENT).get(form)
            also = other if other and _reads_all(texts, other, pl.Datetime("us")) else None
            return Moments(kind="datetime", values=values, form=form, also=also)
    return None


def _reads_all(texts: pl.Series, form: str, dtype: Moment) -> bool:
    # A first look at a few: most columns are no dates.
    few = texts.head(20)
    return (
        parsed(few, form, dtype).null_count() == 0 and parsed(texts, form, dtype).null_count() == 0
    )


def describe_moments(name: str, moments: Moments, missing: Sequence[str]) -> Described:
    """Return what a draft says of a column of days or moments."""
    days = moments.values.cast(pl.Date)
    first, last = days.min(), days.max()
    if not (isinstance(first, date) and isinstance(last, date)):
        raise TypeError("a column of dates has dates")
    low, high = whole_years(first, last)
    why = _why(low, first), _why(high, last)
    fields = describe_range(moments.kind, low, high, step=step_of(moments.values), why=why)
    if moments.form is not None:
        fields.append(Field("format", moments.form, READ))
    if missing:
        fields.append(Field("missing", [*missing], READ))
    notes = []
    if moments.also is not None:
        notes.append(
            f'its dates fit two formats, "{moments.form}" and "{moments.also}": decide which'
        )
    return Described(name=name, kind=moments.kind, fields=tuple(fields), notes=tuple(notes))


def _why(bound: date, own: date) -> str:
    return READ if bound == own else ROUNDED


def whole_years(first: date, last: date) -> tuple[date, date]:
    """Return the days from the first to the last, rounded outward to years, or to months."""
    if (last - first).days > 2 * 365:
        return date(first.year, 1, 1), date(last.year, 12, 31)
    after = date(last.year + last.month // 12, last.month % 12 + 1, 1) if last.year < 9999 else None
    return first.replace(day=1), last if after is None else after - timedelta(days=1)


def describe_range(
    kind: MomentKind, low: date, high: date, *, step: int, why: tuple[str, str]
) -> list[Field]:
    """Return bounds, grid, bins and buckets of days or moments; ``step`` is in seconds."""
    if kind == "date":
        fields = [Field("min", low, why[0]), Field("max", high, why[1])]
        span, widths = (high - low).days + 1, _DAYS
        unit = 1
    else:
        unit = step
        fields = [
            Field("min", _midnight(low), why[0]),
            Field("max", _midnight(high) + timedelta(seconds=_DAY - unit), why[1]),
            Field("step_seconds", unit, READ if READ in why[0] else why[0]),
        ]
        span, widths = ((high - low).days + 1) * _DAY // unit, _SECONDS
    word = "days" if kind == "date" else "seconds"
    if span > MOST_POSITIONS:
        width = next((w for w in widths if w >= unit and span * unit / w <= _ENOUGH), widths[-1])
        fields.append(Field("bins", {"width": width}, f"{word}; within a bin, all alike"))
        fields.append(Field("buckets", {"width": 10 * width}, f"{word}; ten bins each"))
    elif span > 20:
        wide: Plain = -(-span // 10) * unit
        fields.append(Field("buckets", {"width": wide}, f"{word}; about ten"))
    return fields


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def step_of(values: pl.Series) -> int:
    """Return the coarsest grid, in seconds, on which all moments lie."""
    if values.dtype == pl.Date or not len(values):
        return _DAY
    seconds = values.cast(pl.Datetime("us")).dt.epoch("s").drop_nulls().to_numpy()
    return next((step for step in _STEPS if not np.any(seconds % step)), 1)
