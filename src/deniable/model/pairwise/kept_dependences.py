"""Dependences that a pairwise model kept: what stands out from the noise of its own counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.noise_level import (
    VISIBLE_SIGMAS,
    ColumnNoise,
    NoiseLevel,
    PairNoises,
    noise_level,
)
from deniable.model.pairwise.one_way import value_distributions
from deniable.model.pairwise.table_layout import Pair
from deniable.schema.attribute import Attribute


@dataclass(frozen=True, kw_only=True)
class KeptDependences:
    """Dependences that a model kept, judged by its noisy counts alone.

    Attributes:
        level: The noise level.
        dependent: Number of pairs of columns whose dependence stands out from the noise.
        by_chance: Number of pairs that stand out by chance if all columns are independent.
    """

    level: NoiseLevel
    dependent: int
    by_chance: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was kept, in words."""
        if not self.level.pairs:
            return self.level.sentences
        chance = round(self.by_chance)
        counted = (
            f"{self.dependent:,} of {self.level.pairs:,} pairs of columns show a dependence that "
            f"stands out from the noise (by chance alone: about {chance:,})."
        )
        return (*self.level.sentences, counted)

    @property
    def warning(self) -> str:
        """Warn that most of the model is noise; "" otherwise."""
        return MOSTLY_NOISE if self.level.is_mostly_noise else ""

    def document(self) -> dict[str, float | int | None]:
        """The figures for JSON."""
        counted = {"dependent_pairs": self.dependent, "dependent_by_chance": round(self.by_chance)}
        return {**self.level.document(), **counted}


MOSTLY_NOISE = (
    "Most of what was learnt is noise: relations between columns are lost, or made up by chance. "
    "Use more rows, a larger ε (up to 10), or fewer columns; or name the columns that matter most "
    "by --target."
)


def find_kept_dependences(
    measured: PairwiseMeasurements, attributes: Sequence[Attribute]
) -> KeptDependences | None:
    """Find the dependences that a model kept, from its noisy counts; None if they have no noise.

    Args:
        measured: The noisy counts.
        attributes: The domain of each column.

    Privacy:
        Covers: everything, as post-processing of the noisy counts, at no cost.
    """
    sigmas = [*measured.value_sigmas, *measured.interaction_sigmas.values()]
    sigmas += [measured.table_sigma] if measured.tables else []
    if not all(sigma > 0 for sigma in sigmas):
        return None
    marginals = value_distributions(attributes, measured.values, measured.value_sigmas)
    columns = list(
        map(
            ColumnNoise.of,
            attributes,
            measured.bins,
            measured.groups,
            marginals,
            measured.value_sigmas,
        )
    )
    tables = {pair: measured.table(pair)[1] for pair in measured.tables}
    pairs = PairNoises.of(columns, measured.interaction_sigmas, tables)
    level = noise_level(columns, pairs, records=measured.records)
    dependent, by_chance = _count_dependent(measured, columns, pairs, measured.records)
    return KeptDependences(level=level, dependent=dependent, by_chance=by_chance)


def _count_dependent(
    measured: PairwiseMeasurements,
    columns: Sequence[ColumnNoise],
    pairs: PairNoises,
    records: float,
) -> tuple[int, float]:
    """Count the pairs whose dependence stands out, and those expected to do so by chance.

    The sum of squares of independent columns has d = (a - 1)(b - 1) dimensions and is about a
    multiple of a χ² variable: its mean, times (1 + 2√(2/d)), is the threshold.
    """
    shapes: dict[tuple[int, int], list[int]] = {}
    keys: list[Pair] = list(measured.interactions)
    for at, pair in enumerate(keys):
        shapes.setdefault(measured.interactions[pair].shape, []).append(at)
    dependent, by_chance = 0, 0.0
    for (a, b), chosen in shapes.items():
        freedom = (a - 1) * (b - 1)
        interactions = np.stack([measured.interactions[keys[at]] for at in chosen])
        found, noise = _sums_of_squares(
            interactions,
            columns,
            pairs.take(np.array(chosen)),
            records=records,
        )
        ratio = 1 + VISIBLE_SIGMAS * math.sqrt(2 / freedom)
        dependent += int(np.count_nonzero(found > ratio * noise))
        by_chance += len(chosen) * _chi_squared_tail(freedom, freedom * ratio)
    return dependent, by_chance


def _chi_squared_tail(freedom: int, threshold: float) -> float:
    """Probability that a χ² variable with ``freedom`` degrees of freedom exceeds a threshold > 0.

        Σ_{k < f/2} e^-x x^k / k!                             for even f, with x = threshold / 2
        erfc(√x) + Σ_{k < (f-1)/2} e^-x x^(k+½) / Γ(k + 3/2)  for odd f

    >>> round(_chi_squared_tail(1, 3.8415), 4), round(_chi_squared_tail(4, 9.4877), 4)
    (0.05, 0.05)
    """
    x, is_odd = threshold / 2, freedom % 2
    powers = np.arange(freedom // 2) + is_odd / 2
    terms = [math.exp(p * math.log(x) - x - math.lgamma(p + 1)) for p in powers.tolist()]
    return math.fsum([*terms, math.erfc(math.sqrt(x)) if is_odd else 0.0])


def _sums_of_squares(
    interactions: Counts,
    columns: Sequence[ColumnNoise],
    pairs: PairNoises,
    *,
    records: float,
) -> tuple[Reals, Reals]:
    """Sum the squares of each pair's residual, and compute their expectation under independence.

    The expectation has three parts: the noise of the interactions; the noise of the margins, which
    centring removes only where the other column's groups have equal weight; and the sampling
    variance, n Σ r (1 - r) Σ c (1 - c).

    Args:
        interactions: Noisy interactions of pairs of one shape, scaled by the number of cells.
        columns: The columns.
        pairs: These pairs.
        records: Number of records.
    """
    rows = np.stack([columns[i].shares for i in pairs.first])
    others = np.stack([columns[j].shares for j in pairs.second])
    sampling = records * (1 - np.square(rows).sum(axis=1)) * (1 - np.square(others).sum(axis=1))
    rows = rows - rows.mean(axis=1, keepdims=True)
    others = others - others.mean(axis=1, keepdims=True)
    centred = interactions / (rows.shape[1] * others.shape[1])
    centred = centred - centred.mean(axis=1, keepdims=True)
    centred = centred - centred.mean(axis=2, keepdims=True)
    residual = centred - records * rows[:, :, None] * others[:, None, :]
    margins = np.array([column.values * column.sigma**2 for column in columns])
    margins *= np.array([1 - 1 / len(column.shares) for column in columns])
    noise = (rows.shape[1] - 1) * (others.shape[1] - 1) * pairs.sigma**2
    noise = noise + sampling + margins[pairs.first] * np.square(others).sum(axis=1)
    noise = noise + margins[pairs.second] * np.square(rows).sum(axis=1)
    return np.square(residual).sum(axis=(1, 2)), noise
