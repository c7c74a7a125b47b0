"""Date and datetime columns of a draft: format, bounds, grid and bins."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal

import numpy as np
import polars as pl

from deniable.drafting.cell_patterns import (
    AMBIGUOUS_DATE_FORMATS,
    AMBIGUOUS_DATETIME_FORMATS,
    DATE_FORMATS,
    DATETIME_FORMATS,
    TemporalType,
    parse_dates,
)
from deniable.drafting.description import (
    FROM_DATA,
    FROM_DATA_ROUNDED,
    ColumnDraft,
    DraftField,
)
from deniable.schema.bins import MAX_UNBINNED_POSITIONS

_SECONDS_PER_DAY = 86_400
_BIN_WIDTHS_IN_DAYS: tuple[int, ...] = (1, 7, 30, 91, 182, 365, 730, 1826, 3652)
_BIN_WIDTHS_IN_SECONDS = (
    *(1, 60, 300, 900, 3600, 6 * 3600, _SECONDS_PER_DAY),
    *(days * _SECONDS_PER_DAY for days in _BIN_WIDTHS_IN_DAYS[1:]),
)
_GRID_STEPS_IN_SECONDS = (_SECONDS_PER_DAY, 3600, 60)
_MAX_DATE_BINS = 150
# Texts to try before a whole column: most columns hold no dates.
_TRIED_TEXTS = 20

TemporalKind = Literal["date", "datetime"]


@dataclass(frozen=True, kw_only=True)
class DateProfile:
    """Dates or datetimes of a column. Confidential.

    Attributes:
        kind: Whether the values are dates or datetimes.
        values: The distinct values.
        text_format: Format of the texts; None if the column is typed.
        other_format: A second format that fits every text.
    """

    kind: TemporalKind
    values: pl.Series = field(repr=False)
    text_format: str | None = None
    other_format: str | None = None


def parse_date_column(texts: pl.Series) -> DateProfile | None:
    """Parse texts in the one format that fits them all; None if there is no such format."""
    formats = [each for each in DATE_FORMATS if _parses_all(texts, each, pl.Date())]
    if formats:
        pairs = (pair for pair in AMBIGUOUS_DATE_FORMATS if formats[:2] == [*pair])
        _, other = next(pairs, (None, None))
        days = parse_dates(texts, formats[0], pl.Date())
        return DateProfile(kind="date", values=days, text_format=formats[0], other_format=other)
    datetimes = pl.Datetime("us")
    for text_format in DATETIME_FORMATS:
        if _parses_all(texts, text_format, datetimes):
            other = dict(AMBIGUOUS_DATETIME_FORMATS).get(text_format)
            return DateProfile(
                kind="datetime",
                values=parse_dates(texts, text_format, datetimes),
                text_format=text_format,
                other_format=other if other and _parses_all(texts, other, datetimes) else None,
            )
    return None


def _parses_all(texts: pl.Series, text_format: str, dtype: TemporalType) -> bool:
    samples = (texts.head(_TRIED_TEXTS), texts)
    return all(parse_dates(each, text_format, dtype).null_count() == 0 for each in samples)


def describe_dates(name: str, dates: DateProfile, missing: Sequence[str]) -> ColumnDraft:
    """Describe a column of dates or datetimes."""
    days = dates.values.cast(pl.Date)
    first, last = days.min(), days.max()
    if not (isinstance(first, date) and isinstance(last, date)):
        raise TypeError("a date column without dates")
    low, high = _round_dates_outward(first, last)
    comments = _bound_comment(low, first), _bound_comment(high, last)
    step = _coarsest_step(dates.values)
    fields = date_range_fields(dates.kind, low, high, step=step, comments=comments)
    if dates.text_format is not None:
        fields.append(DraftField("format", dates.text_format, FROM_DATA))
    if missing:
        fields.append(DraftField("missing", [*missing], FROM_DATA))
    notes = []
    if dates.other_format is not None:
        notes.append(
            f'its dates fit two formats, "{dates.text_format}" and "{dates.other_format}": '
            "choose one"
        )
    return ColumnDraft(name=name, kind=dates.kind, fields=tuple(fields), notes=tuple(notes))


def _bound_comment(bound: date, observed: date) -> str:
    return FROM_DATA if bound == observed else FROM_DATA_ROUNDED


def _round_dates_outward(first: date, last: date) -> tuple[date, date]:
    """Round a range of dates outward to whole years; to whole months if it is short."""
    if (last - first).days > 2 * 365:
        return date(first.year, 1, 1), date(last.year, 12, 31)
    after = date(last.year + last.month // 12, last.month % 12 + 1, 1) if last.year < 9999 else None
    return first.replace(day=1), last if after is None else after - timedelta(days=1)


def date_range_fields(
    kind: TemporalKind, low: date, high: date, *, step: int, comments: tuple[str, str]
) -> list[DraftField]:
    """Write bounds, grid and bins of dates or datetimes as TOML fields.

    Args:
        kind: Whether the column holds dates or datetimes.
        low: First day.
        high: Last day.
        step: Grid of datetimes, in seconds.
        comments: Where each bound comes from.
    """
    if kind == "date":
        fields = [DraftField("min", low, comments[0]), DraftField("max", high, comments[1])]
        span, widths = (high - low).days + 1, _BIN_WIDTHS_IN_DAYS
        unit = 1
    else:
        unit = step
        end = _midnight(high) + timedelta(seconds=_SECONDS_PER_DAY - unit)
        step_comment = FROM_DATA if FROM_DATA in comments[0] else comments[0]
        fields = [
            DraftField("min", _midnight(low), comments[0]),
            DraftField("max", end, comments[1]),
            DraftField("step_seconds", unit, step_comment),
        ]
        span, widths = ((high - low).days + 1) * _SECONDS_PER_DAY // unit, _BIN_WIDTHS_IN_SECONDS
    word = "days" if kind == "date" else "seconds"
    if span > MAX_UNBINNED_POSITIONS:
        width = next(
            (w for w in widths if w >= unit and span * unit / w <= _MAX_DATE_BINS), widths[-1]
        )
        fields.append(
            DraftField("bins", {"width": width}, f"{word}; values in a bin are equally likely")
        )
    return fields


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _coarsest_step(values: pl.Series) -> int:
    """Find the coarsest grid that holds all datetimes: a day, an hour, a minute or a second."""
    if values.dtype == pl.Date or not len(values):
        return _SECONDS_PER_DAY
    seconds = values.cast(pl.Datetime("us")).dt.epoch("s").drop_nulls().to_numpy()
    return next((step for step in _GRID_STEPS_IN_SECONDS if not np.any(seconds % step)), 1)
