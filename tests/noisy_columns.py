"""Columns with noisy answers, for tests of the parts of a private draft."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from deniable.drafting.column_profile import open_table
from deniable.drafting.description import ColumnDraft
from deniable.drafting.measured_column import MeasuredColumn
from deniable.drafting.noisy_histograms import DraftNoise, HistogramMeasurer
from deniable.drafting.type_histogram import ColumnTypes, count_types
from deniable.randomness import Keyed

# Noise of σ = 4 for a third of μ².
NOISE = DraftNoise(mu=3**0.5 / 4, epsilon=1.0, text_delta=1e-6, max_histograms=9, max_lists=2)


def measured_column(
    cells: Sequence[Any], *, name: str = "x", key: int = 3, reserve: float = 0.0
) -> MeasuredColumn:
    """Measure the types of a column; two thirds of μ² are left, one of them for its details."""
    frame = pl.DataFrame({name: cells}, strict=False)
    column = open_table(frame, private=True).read_texts()[0]
    measurer = HistogramMeasurer(NOISE, Keyed(key).at("noise"))
    types = ColumnTypes.of(measurer.measure(count_types(column), share=1 / 3))
    return MeasuredColumn(
        column=column,
        measurer=measurer,
        types=types,
        rows=len(cells),
        share=1 / 3,
        reserve=reserve,
    )


def values_of(draft: ColumnDraft) -> dict[str, Any]:
    """The TOML values of a draft, by key."""
    return {field.key: field.value for field in draft.fields}
