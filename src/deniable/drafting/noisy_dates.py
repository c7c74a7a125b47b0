"""Dates and times of a private draft: format, and bounds in years."""

from datetime import date

import numpy as np
import polars as pl

from deniable.drafting.cell_patterns import parse_dates
from deniable.drafting.date_columns import TemporalKind, date_range_fields
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField
from deniable.drafting.measured_column import (
    CLIP_FIELD,
    MeasuredColumn,
    fallback_fields,
    median_cell,
)
from deniable.drafting.type_histogram import occupied_range

# First years of the cells: centuries, and single years where most dates are.
_YEARS = (*range(1000, 1900, 100), *range(1900, 2101), *range(2150, 9999, 500))
_LAST_YEAR = 9999


def draft_dates(measured: MeasuredColumn, text_format: str, kind: TemporalKind) -> ColumnDraft:
    """Describe dates or times: bounds are the first and the last frequent year.

    Privacy:
        Neighbours: add or remove one row, which moves one year by one.
        Covers: the bounds, and the texts that mean missing.
    """
    dtype = pl.Date() if kind == "date" else pl.Datetime("us")
    years = parse_dates(measured.column.texts, text_format, dtype).dt.year().fill_null(0)
    cells = np.searchsorted(_YEARS, years.to_numpy(), side="right") - 1
    details = measured.measure_details(cells, len(_YEARS), lists=False)
    first, last = occupied_range(details.cells, details.sigma)
    ends = [*_YEARS, _LAST_YEAR + 1]
    low, high = date(_YEARS[first], 1, 1), date(ends[last + 1] - 1, 12, 31)
    # A text format without seconds needs a grid of minutes.
    step = 1 if "%S" in text_format else 60
    comments = DRAFTED_PRIVATELY, DRAFTED_PRIVATELY
    middle = first + median_cell(details.cells[first : last + 1])
    fields = [
        *date_range_fields(kind, low, high, step=step, comments=comments),
        DraftField("format", text_format, DRAFTED_PRIVATELY),
        CLIP_FIELD,
        *fallback_fields(measured.missing_texts(details), date(_YEARS[middle], 1, 1)),
    ]
    return ColumnDraft(name=measured.name, kind=kind, fields=tuple(fields))
