"""Relations between columns: what is left of associations, rank correlations and group gaps.

A mean distance of fine cells can be small although the relation that an analyst would report is
gone. Here columns are cut into a few groups, and the strength of each relation in the released
records is divided by its strength in real rows.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from deniable.arrays import Codes, Reals
from deniable.evaluation.column_groups import group_columns
from deniable.evaluation.grouped_rows import GroupedRows
from deniable.evaluation.reference_tables import EvaluationTables, sample_rows
from deniable.evaluation.relation_figures import (
    MIN_ASSOCIATION,
    ColumnSets,
    RelationFigures,
    compare_relations,
    kept_share,
    strong_correlations,
)
from deniable.evaluation.sample_equivalent import SampleEquivalent, measure_sample_equivalent
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute

# Rows of each table that are compared; of a larger table, a random sample.
_MAX_ROWS = 40_000
_ROWS_STREAM, _SETS_STREAM = 4, 5
# Share of its strength from which a relation counts as kept, and below which it counts as lost.
_MIN_KEPT, _MAX_LOST = 0.8, 0.5
# Strength beyond chance from which a relation counts as exaggerated.
_MIN_EXAGGERATION = 0.05
# What other real rows keep is the unit, but not below this: in a tiny table it is mostly chance.
_MIN_KEPT_BY_REAL_ROWS = 0.5
# Other real rows must keep this much more than independent columns keep by chance.
_MIN_KEPT_ABOVE_CHANCE = 0.1
# Strong rank correlations from which they count.
_MIN_CORRELATIONS = 3


@dataclass(frozen=True, kw_only=True)
class Association:
    """Strength of the association of two columns (Cramér's V, bias-corrected), in [0, 1].

    Attributes:
        names: The two columns.
        real: Strength in real rows.
        released: Strength in released records.
        limit: A released strength above this is no chance: it exaggerates that of all real rows.
    """

    names: tuple[str, str]
    real: float
    released: float
    limit: float

    @property
    def kept(self) -> float:
        """Share of the strength that was kept; an exaggeration counts as much as a loss."""
        return float(kept_share(np.array([self.released / self.real]))[0])

    @property
    def is_exaggerated(self) -> bool:
        """Whether it is stronger than any real rows show, beyond chance."""
        return self.released > self.limit


@dataclass(frozen=True, kw_only=True)
class Relations:
    """Relations of the released records, compared with real rows. Confidential.

    Attributes:
        released: Figures of the released records.
        reals: Figures of other real rows: what chance alone leaves of the relations.
        independent: Figures of independent columns: what chance alone makes of no relation.
        rows: Number of real rows that were compared.
        correlations: Number of strong rank correlations in real rows.
        associations: Every compared pair of columns.
        sample: The random sample of real rows that is as good, for pairs of columns.
    """

    released: RelationFigures
    reals: RelationFigures
    independent: RelationFigures
    rows: int
    correlations: int
    associations: tuple[Association, ...] = field(repr=False)
    sample: SampleEquivalent

    @property
    def strong(self) -> tuple[Association, ...]:
        """The strong associations of real rows, the strongest first."""
        found = [each for each in self.associations if each.real > MIN_ASSOCIATION]
        return tuple(sorted(found, key=lambda each: -each.real))

    @property
    def lost(self) -> tuple[Association, ...]:
        """The strong associations of which less than half is left, the strongest first."""
        return tuple(each for each in self.strong if each.released < _MAX_LOST * each.real)

    @property
    def well_kept(self) -> tuple[Association, ...]:
        """The strong associations of which most is left, the strongest first."""
        return tuple(
            each for each in self.strong if each.kept >= _MIN_KEPT and not each.is_exaggerated
        )

    @property
    def exaggerated(self) -> tuple[Association, ...]:
        """The associations that are too strong in the records, the most exaggerated first.

        They need not be strong in real rows: a relation may be made up.
        """
        found = [each for each in self.associations if each.is_exaggerated]
        return tuple(sorted(found, key=lambda each: each.real - each.released))

    @property
    def has_strong(self) -> bool:
        """Whether real rows have a strong relation."""
        return bool(self.strong) or self.correlations > 0

    @property
    def kept(self) -> float | None:
        """Share of the relations that was kept: 0 is as much as independent columns, by chance.

        1 is as much as other real rows keep. The mean for associations, rank correlations and group
        gaps, as far as there are some. One or two strong correlations do not count as much as many
        associations: they are left out. None if nothing is strong, or if rows are so few that other
        real rows keep hardly more than independent columns.
        """
        # The error of a strength is about 1/√rows, and other real rows are a half of the table.
        error = (2 / self.rows) ** 0.5
        if not self.has_strong or max(each.real for each in self.associations) < 3 * error:
            return None  # gaps have a slope even then, but it is one of noise
        released, reals, chance = map(self._kept_by, (self.released, self.reals, self.independent))
        if reals < chance + _MIN_KEPT_ABOVE_CHANCE + error:
            return None
        return max(0.0, released - chance) / (1 - chance)

    def _kept_by(self, figures: RelationFigures) -> float:
        """Share of the relations of other real rows, in [0, 1]: above 0 by chance for few rows."""
        names = ["associations_kept", "gaps_kept"]
        if self.correlations >= _MIN_CORRELATIONS or not self.strong:
            names.append("correlations_kept")
        found = [(getattr(figures, name), getattr(self.reals, name)) for name in names]
        shares = [
            min(1.0, max(0.0, one) / max(other or 0.0, _MIN_KEPT_BY_REAL_ROWS))
            for one, other in found
            if one is not None
        ]
        return float(np.mean(shares)) if shares else 0.0

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "kept": self.kept,
            "released": asdict(self.released),
            "real": asdict(self.reals),
            "independent": asdict(self.independent),
            "rows": self.rows,
            "strong": {"associations": len(self.strong), "correlations": self.correlations},
            "sample_equivalent": asdict(self.sample),
            "associations": [
                {
                    "attributes": list(each.names),
                    "real": each.real,
                    "released": each.released,
                    "exaggerated": each.is_exaggerated,
                }
                for each in self.associations
            ],
        }


def measure_relations(
    attributes: Sequence[Attribute],
    tables: EvaluationTables,
    real: Codes,
    *,
    skipped: Collection[str] = (),
    key: int,
) -> Relations | None:
    """Measure the relations between columns; None if fewer than two columns have groups.

    Args:
        attributes: The attributes of the tables' columns.
        tables: The tables to compare.
        real: The real rows that the release was learnt from. Groups follow from them.
        skipped: Attributes that are no columns of the table.
        key: Key of the samples of rows and of columns.
    """
    columns = group_columns(attributes, _sample(real, key), skipped=skipped)
    if len(columns) < 2:
        return None
    sets = ColumnSets.choose(len(columns), Keyed(key).at("records", _SETS_STREAM))
    compared = (real, tables.reference, tables.released, tables.marginals, *tables.ceiling)
    # With held-out rows, some of these are the same table.
    different = {id(codes): codes for codes in compared}
    grouped = {at: GroupedRows.of(columns, _sample(t, key)) for at, t in different.items()}
    known, reference, released, independent, first, second = (grouped[id(t)] for t in compared)
    figures, strengths = compare_relations(sets, reference, released, known)
    reals, by_halves = compare_relations(sets, second, first, known)
    limits = _limits(strengths[:, 0], by_halves, (reference.rows, released.rows))
    return Relations(
        released=figures,
        reals=reals,
        independent=compare_relations(sets, reference, independent, known)[0],
        rows=reference.rows,
        correlations=strong_correlations(reference),
        associations=tuple(
            Association(
                names=(columns[a].name, columns[b].name), real=one, released=two, limit=limit
            )
            for (a, b), (one, two), limit in zip(
                sets.pairs, strengths.tolist(), limits.tolist(), strict=True
            )
        ),
        sample=measure_sample_equivalent(columns, real, tables.reference, tables.released, key=key),
    )


def _limits(real: Reals, others: Reals, rows: tuple[int, int]) -> Reals:
    """Compute the strength up to which a released association may be as strong as a real one.

    The largest strength in real rows, all and other ones; and three standard errors, about
    (1 - V²)/√rows for each table, so that chance alone exceeds it for few of many pairs.
    """
    largest = np.maximum(real, others.max(axis=1))
    error = (1 - largest**2) * np.sqrt(sum(1 / each for each in rows))
    return np.asarray(largest + _MIN_EXAGGERATION + 3 * error)


def _sample(codes: Codes, key: int) -> Codes:
    return sample_rows(codes, _MAX_ROWS, Keyed(key).at("records", _ROWS_STREAM))
