"""QueryAnswer: counts, shares, means and quantiles of an artefact, each with its interval."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from deniable.data.dataframes import Foreign, FrameKind, PolarsKind
from deniable.html import notebook_summary, table, tag

# Most cells that a notebook shows.
_SHOWN_CELLS = 20
# How the cells of a column are formed: see ``answers.query:query``.
BandRule = str | int | float | Sequence[Any] | Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes:
        estimate: The estimate; NaN if the noise allows none.
        low: Lower end.
        high: Upper end.
    """

    estimate: float
    low: float
    high: float

    def clip(self, low: float, high: float) -> "Interval":
        """Restrict to possible values, which cannot exclude the true one."""

        def clipped(number: float) -> float:
            return min(max(number, low), high)

        return Interval(
            estimate=clipped(self.estimate), low=clipped(self.low), high=clipped(self.high)
        )

    def document(self) -> dict[str, float | None]:
        """Return the JSON form; null for a number that is not finite."""
        return {
            name: number if math.isfinite(number) else None
            for name, number in (
                ("estimate", self.estimate),
                ("low", self.low),
                ("high", self.high),
            )
        }


@dataclass(frozen=True, kw_only=True)
class AnswerCell:
    """One cell of a table.

    Attributes:
        labels: Its value, or range of values, of each column.
        count: Number of rows.
        share: Share of all rows that satisfy the condition.
        within: Two columns: share of the rows with its value of the first column.
        unbiased_count: Estimated count before it is clipped at 0, to add up; None: model only.
        standard_error: Standard deviation of the noise of that count; None: model only.
        note: What a reader must know of this cell; "" if nothing.
    """

    labels: tuple[str, ...]
    count: Interval
    share: Interval
    within: Interval | None = None
    unbiased_count: float | None = None
    standard_error: float | None = None
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "labels": list(self.labels),
            "count": self.count.document(),
            "share": self.share.document(),
            "within": None if self.within is None else self.within.document(),
            "unbiased_count": self.unbiased_count,
            "standard_error": self.standard_error,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class NumberSummary:
    """The mean or a quantile of a numeric column.

    Attributes:
        column: The column.
        group: The value of the other column; "" for all rows.
        statistic: "mean", or "quantile 0.5".
        value: The estimate with its interval; for dates, in days or seconds since 1970.
        text: Estimate, lower and upper end, formatted as values of the column.
        note: What a reader must know; "" if nothing.
    """

    column: str
    group: str
    statistic: str
    value: Interval
    text: tuple[str, str, str]
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "column": self.column,
            "group": self.group,
            "statistic": self.statistic,
            **self.value.document(),
            "text": list(self.text),
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class QueryAnswer:
    """The answer to a question about the columns of an artefact.

    Attributes:
        columns: The columns.
        where: The condition; "" for all rows.
        measured: Whether intervals are computed; else the model alone answers.
        basis: What the answer was computed from, in one sentence.
        sampling_error: Whether the intervals are for a population, not for the table.
        rows: Number of rows that satisfy the condition.
        cells: The cells of the table.
        numbers: Means and quantiles of numeric columns.
        notes: What a reader must know of all of it.
        kind: The kind of data frame that the table came in.
        is_confidential: Whether the artefact claims no privacy.
    """

    columns: tuple[str, ...]
    where: str = ""
    measured: bool
    basis: str
    sampling_error: bool = False
    rows: Interval
    cells: tuple[AnswerCell, ...] = field(repr=False)
    numbers: tuple[NumberSummary, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    kind: FrameKind = field(default=PolarsKind(()), repr=False)
    is_confidential: bool = field(default=False, repr=False)

    def _repr_html_(self) -> str:
        """Show the first cells in a notebook; of an artefact without a guarantee, none."""
        facts = {"columns": ", ".join(self.columns), "where": self.where or "all rows"}
        notes = [tag("p", note) for note in (self.basis, *self.notes)]
        if self.is_confidential:
            return notebook_summary("Answer, not shown here", facts, *notes)
        ends = ("estimate", "low", "high") if self.measured else ("estimate",)
        head = [*self.columns, *("count", "from", "to")[: len(ends)], "share"]
        rows = [
            [
                *cell.labels,
                *(_rounded(getattr(cell.count, end)) for end in ends),
                _percent(cell.share.estimate),
            ]
            for cell in self.cells[:_SHOWN_CELLS]
        ]
        left_out = len(self.cells) - len(rows)
        if left_out:
            notes.append(tag("p", f"{left_out:,} more cells: frame() has all."))
        return notebook_summary("Answer", facts, table(head, rows, left=len(self.columns)), *notes)

    def frame(self) -> Foreign:
        """Return the table, a row for each cell, in the kind of data frame that was learnt.

        It is a polars frame if the artefact was loaded.
        """
        measures = ("count", "share", *(["within"] if len(self.columns) > 1 else []))
        content: dict[str, Any] = {}
        for at, column in enumerate(self.columns):
            content[column] = pl.Series([cell.labels[at] for cell in self.cells], dtype=pl.String)
        for measure in measures:
            found = [getattr(cell, measure) for cell in self.cells]
            for end in ("estimate", "low", "high"):
                name = measure if end == "estimate" else f"{measure}_{end}"
                numbers = [None if each is None else each.document()[end] for each in found]
                content[_free(name, self.columns)] = pl.Series(numbers, dtype=pl.Float64)
        content[_free("note", self.columns)] = pl.Series(
            [cell.note for cell in self.cells], dtype=pl.String
        )
        return self.kind.convert(pl.DataFrame(content))

    def numbers_frame(self) -> Foreign:
        """Return the means and quantiles, in the same kind of data frame."""
        names = ("column", "group", "statistic", "estimate", "low", "high", "note")
        rows = [each.document() for each in self.numbers]
        schema = {
            name: pl.Float64 if name in ("estimate", "low", "high") else pl.String for name in names
        }
        cells = [[row[name] for name in names] for row in rows]
        return self.kind.convert(pl.DataFrame(cells, schema, orient="row"))

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "columns": list(self.columns),
            "where": self.where,
            "measured": self.measured,
            "basis": self.basis,
            "confidence": 0.95,
            "sampling_error": self.sampling_error,
            "rows": self.rows.document(),
            "cells": [cell.document() for cell in self.cells],
            "numbers": [each.document() for each in self.numbers],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Write the answer as JSON text."""
        return json.dumps(self.document(), ensure_ascii=False, allow_nan=False)


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "unknown"


def _percent(share: float) -> str:
    return f"{share:.1%}" if math.isfinite(share) else "unknown"


def _free(name: str, columns: Sequence[str]) -> str:
    """Avoid the name of a column of the table."""
    while name in columns:
        name += "_"
    return name
