"""Count the cells that columns with a fallback adjust, so that no cell is an error.

The counts are exact, hence confidential: they go to the internal folder of a release only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from deniable.arrays import Mask
from deniable.data.column_encoder import NO_CODE, ColumnEncoder, parse_cells, parse_exactly
from deniable.data.typed_texts import has_text
from deniable.schema.grid import Grid

# What became of a cell: the fallback, the nearest whole number, the nearest bound, or "other".
Adjustment = Literal["replaced", "rounded", "clipped", "other"]
_ADJUSTMENTS: tuple[Adjustment, ...] = ("replaced", "rounded", "clipped", "other")

AdjustedCounts = dict[str, dict[Adjustment, int]]


@dataclass
class AdjustedCells:
    """Numbers of adjusted cells in the kept rows, collected over batches.

    Attributes:
        counts: By column name and adjustment; only those that occur.
    """

    columns: tuple[ColumnEncoder, ...] = field(repr=False)
    counts: AdjustedCounts = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Sequence[ColumnEncoder]) -> "AdjustedCells":
        """Prepare to count in those columns that have a fallback."""
        return cls(tuple(each for each in columns if each.is_lenient and each.heaping is None))

    def expressions(self) -> list[pl.Expr]:
        """What became of each cell: a 1-based index in ``_ADJUSTMENTS``, 0 for nothing."""
        return [
            _find_adjustments(column).alias(f"\0adjusted {j}")
            for j, column in enumerate(self.columns)
        ]

    def add(self, batch: pl.DataFrame, keep: Mask | None) -> None:
        """Count the cells of the next batch, whose last columns are those of ``expressions``."""
        first = batch.width - len(self.columns)
        for j, column in enumerate(self.columns):
            found = batch.to_series(first + j).to_numpy()
            kept = found if keep is None else found[keep]
            cells = np.bincount(kept, minlength=1 + len(_ADJUSTMENTS))[1:].tolist()
            for adjustment, number in zip(_ADJUSTMENTS, cells, strict=True):
                if number:
                    counts = self.counts.setdefault(column.attribute.name, {})
                    counts[adjustment] = counts.get(adjustment, 0) + number


def _find_adjustments(column: ColumnEncoder) -> pl.Expr:
    attribute, code = column.attribute, column.code_without_fallback()
    found = [_index("replaced", code.is_null() | (code == NO_CODE))]
    if attribute.missing_code is not None:
        found.append(pl.when(code == attribute.missing_code).then(0))
    if column.grid is not None and column.is_parsed:
        found += _number_adjustments(column, column.grid)
    if attribute.kind == "text":
        cell, other = pl.col(attribute.name), list(attribute.values).index(attribute.other)
        is_named = has_text(cell, column.dtype, [attribute.other])
        if column.is_text:
            is_named = cell.cast(pl.String) == attribute.other
        found.append(_index("other", (code == other) & ~is_named.fill_null(value=False)))
    return pl.coalesce([*found, pl.lit(0)]).cast(pl.UInt8)


def _number_adjustments(column: ColumnEncoder, grid: Grid) -> list[pl.Expr]:
    """Find numbers outside the bounds, and fractions among whole numbers."""
    attribute, parsed, found = column.attribute, parse_cells(column, grid), []
    if attribute.is_numeric and attribute.outside == "clip":
        position, low, high = grid.positions(parsed), attribute.values[0], attribute.values[-1]
        found.append(_index("clipped", ~position.is_between(pl.lit(low), pl.lit(high))))
    if grid.kind == "integer":
        is_exact = parse_exactly(column, grid).is_not_null()
        found.append(_index("rounded", parsed.is_not_null() & ~is_exact))
    return found


def _index(adjustment: Adjustment, where: pl.Expr) -> pl.Expr:
    return pl.when(where).then(1 + _ADJUSTMENTS.index(adjustment))
