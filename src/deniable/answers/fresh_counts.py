"""Choose the noisy counts that answer a question about one or two columns.

Bins and groups follow from noisy one-way counts, and interactions choose the pairs that have
two-way tables. Noise that made a choice is no longer centred, given the choice. So each question is
answered from counts that were drawn after everything that formed its cells:

    values of one column     one-way counts: the cells are public
    bins of one column       two-way tables: one-way counts formed the cells
    groups of two columns    interactions, whether or not the pair has a two-way table, with
                             margins and total of two-way tables
    bins of two columns      two-way tables: earlier counts formed the cells and chose the pair

For artefacts of the paper's estimators, no count answers: the model does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from deniable.answers.table_estimate import MarginEstimate, TableEstimate, TotalEstimate
from deniable.arrays import Indices, Reals
from deniable.errors import ArtefactError
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.table_layout import Pair
from deniable.model.paper.moments import Moments
from deniable.release.artefact import Artefact

Source = Literal["one-way counts", "interactions", "two-way tables"]
# Keeps weights finite where there is no noise.
_MIN_VARIANCE = 1e-12
# Variance that rounding to integers adds to Gaussian noise (Sheppard).
_ROUNDING_VARIANCE = 1 / 12


@dataclass(frozen=True, kw_only=True)
class MeasuredTable:
    """An estimated table of one or two columns, and the rows and columns that codes belong to.

    Attributes:
        estimate: The estimated table; with one column if one was asked for.
        parts: For each column asked for, the row or column of the table of each code.
        source: The noisy counts it is estimated from.
    """

    estimate: TableEstimate
    parts: tuple[Indices, ...] = field(repr=False)
    source: Source

    def transpose(self) -> "MeasuredTable":
        """Exchange the two columns."""
        own = self.estimate
        exchanged = replace(
            own,
            interactions=own.interactions.T,
            row_of=own.column_of,
            rows=own.columns,
            column_of=own.row_of,
            columns=own.rows,
        )
        return replace(self, estimate=exchanged, parts=self.parts[::-1])


def measured_tables(artefact: Artefact, columns: Sequence[int]) -> list[MeasuredTable]:
    """Find the estimated tables of one or two columns, the coarsest first; none if not counted."""
    if not isinstance(artefact.evidence, PairwiseMeasurements):
        return []
    counts = PairwiseCounts(artefact.evidence)
    if len(columns) == 1:
        return [found for found in (counts.values(columns[0]), counts.bins(columns[0])) if found]
    i, j = columns
    pair = (min(i, j), max(i, j))
    found = [table for table in (counts.groups_of(pair), counts.bins_of(pair)) if table is not None]
    return found if i < j else [table.transpose() for table in found]


def estimate_rows(artefact: Artefact) -> float:
    """Estimate the number of rows of the table from noisy counts.

    Raises:
        ArtefactError: The manifest has an impossible fraction of the rows that was counted.
    """
    evidence = artefact.evidence
    if isinstance(evidence, PairwiseMeasurements):
        return measured_tables(artefact, [0])[0].estimate.total.count
    fraction = float(artefact.certificate.parameters.get("fractions", {}).get("parameters", 1.0))
    if not 0 < fraction <= 1:
        raise ArtefactError("manifest.json has an impossible fraction of the data")
    counts = [own.records if isinstance(own, Moments) else own for own in evidence.tables]
    # The fewest cells have the least noise.
    return float(min(counts, key=np.size).sum()) / fraction


class PairwiseCounts:
    """Fresh noisy counts of the default model, combined by least squares."""

    def __init__(self, measured: PairwiseMeasurements) -> None:
        """Keep noisy counts."""
        self._measured = measured

    def values(self, i: int) -> MeasuredTable:
        """Estimate the counts of a column's values from its one-way counts, and all totals."""
        counts = self._measured.values[i].astype(np.float64)
        margin = MarginEstimate.combine([counts], [self._value_variance(i)])
        codes = np.arange(len(counts))
        return _one_way(margin, self._total_of_values, codes, "one-way counts")

    def bins(self, i: int) -> MeasuredTable | None:
        """Estimate the counts of a column's bins from all two-way tables that contain it."""
        margin = self._margin(i)
        if margin is None:
            return None
        codes = self._measured.bins[i]
        return _one_way(margin, self._total_of_tables, codes, "two-way tables")

    def groups_of(self, pair: Pair) -> MeasuredTable | None:
        """Estimate the counts between groups of a pair from its interactions.

        Its two-way table is used for margins only, as any other: it was counted, or not, because of
        the interactions, and noise that decides whether it is used would no longer be centred.
        """
        measured, (i, j) = self._measured, pair
        if pair not in measured.interactions:
            return None
        cells = measured.interactions[pair].size
        variance = measured.interaction_sigmas[pair] ** 2 + _ROUNDING_VARIANCE / cells**2
        return self._two_way(
            pair,
            measured.interaction(pair),
            variance,
            (measured.groups[i], measured.groups[j]),
            "interactions",
        )

    def bins_of(self, pair: Pair) -> MeasuredTable | None:
        """Estimate the counts between bins of a pair from its two-way table, if it has one."""
        if pair not in self._measured.tables:
            return None
        table, _ = self._measured.table(pair)
        identity = tuple(np.arange(size) for size in table.shape)
        return self._two_way(
            pair, table, self._table_variance(pair), (identity[0], identity[1]), "two-way tables"
        )

    def _two_way(
        self,
        pair: Pair,
        interactions: Reals,
        variance: float,
        parts: tuple[Indices, Indices],
        source: Source,
    ) -> MeasuredTable | None:
        """Combine interactions with margins and total; None if a column is in no two-way table."""
        i, j = pair
        rows, columns = self._margin(i), self._margin(j)
        if rows is None or columns is None:
            return None
        estimate = TableEstimate(
            interactions=interactions,
            interaction_variance=variance,
            row_of=parts[0],
            rows=rows,
            column_of=parts[1],
            columns=columns,
            total=self._total_of_tables,
        )
        bins = self._measured.bins
        codes = (parts[0][bins[i]], parts[1][bins[j]])
        return MeasuredTable(estimate=estimate, parts=codes, source=source)

    def _value_variance(self, i: int) -> float:
        return _rounded_variance(self._measured.value_sigmas[i])

    def _table_variance(self, pair: Pair) -> float:
        """Variance of a cell of the mean of a pair's two-way tables."""
        each = _rounded_variance(self._measured.table_sigma)
        return each / self._measured.table_counts[pair]

    @cached_property
    def _total_of_values(self) -> TotalEstimate:
        values = self._measured.values
        variances = [len(own) * self._value_variance(i) for i, own in enumerate(values)]
        return TotalEstimate.combine([float(own.sum()) for own in values], variances)

    @cached_property
    def _total_of_tables(self) -> TotalEstimate:
        measured = self._measured
        tables = [(pair, measured.table(pair)[0]) for pair in measured.tables]
        variances = [table.size * self._table_variance(pair) for pair, table in tables]
        return TotalEstimate.combine([float(table.sum()) for _, table in tables], variances)

    def _margin(self, i: int) -> MarginEstimate | None:
        """Counts of a column's bins, from all two-way tables that contain it; None if none does."""
        margins, variances = [], []
        for pair in self._measured.tables:
            if i in pair:
                table, _ = self._measured.table(pair)
                other = 1 - pair.index(i)
                margins.append(table.sum(axis=other))
                variances.append(table.shape[other] * self._table_variance(pair))
        return MarginEstimate.combine(margins, variances) if margins else None


def _rounded_variance(sigma: float) -> float:
    return sigma**2 + _ROUNDING_VARIANCE if sigma > 0 else _MIN_VARIANCE


def _one_way(
    margin: MarginEstimate, total: TotalEstimate, codes: Indices, source: Source
) -> MeasuredTable:
    size = len(margin.effects)
    estimate = TableEstimate(
        interactions=np.zeros((size, 1)),
        interaction_variance=0.0,
        row_of=np.arange(size),
        rows=margin,
        column_of=np.zeros(1, dtype=np.intp),
        columns=MarginEstimate.single(),
        total=total,
    )
    return MeasuredTable(estimate=estimate, parts=(codes,), source=source)
