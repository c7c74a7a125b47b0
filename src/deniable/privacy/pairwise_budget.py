"""Split the pairwise budget among one-way tables, pair selection and two-way tables.

The noise follows from public facts: the number of attributes, their domain sizes, and a guess of
the number of rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from deniable.privacy import noise_laws
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import Law

# Budget shares of μ²: the smallest and largest share of the one-way tables; of the rest, the share
# of pair selection (if not all pairs are measured), and the share of the second measurement, which
# is spent on the most dependent pairs. Tuned on rows that were not tested on (docs/utility.md).
VALUES_SHARE_RANGE = (0.3, 0.8)
STRENGTH_SHARE = 0.2
REMEASURE_SHARE = 0.5
# At most this many pairs are measured, or this many per attribute if that is more.
MAX_PAIRS = 700
MAX_PAIRS_PER_ATTRIBUTE = 7
# Fewer are measured if their noise would exceed this share of the rows. The minimum is a quarter
# of all pairs, clamped to this range per attribute.
TARGET_PAIR_DEVIATION = 1 / 300
MIN_PAIRS_SHARE = 1 / 4
MIN_PAIRS_PER_ATTRIBUTE = (1.5, 2.5)
# Tables of the second measurement per measured pair; some pairs get several of them, some none.
REMEASUREMENTS_PER_PAIR = 4
# The share of a one-way table grows with this power of its size, which minimizes the total error.
_SIZE_EXPONENT = 2 / 3
# Cells beyond this multiple of rows / σ are lost in the noise and do not increase the share.
_RESOLVABLE_CELLS = 0.5
# Names of the spends.
STRENGTH_SPEND = "strength of pairs"
PAIRS_SPEND = "pairs of attributes"
REMEASURE_SPEND = "remeasured pairs of attributes"


@dataclass(frozen=True, kw_only=True)
class PairNoise:
    """Noise of one-way tables, pair selection, two-way tables and their second measurement.

    Attributes:
        values: Noise of each attribute's one-way counts.
        strength: Noise of the strength of dependence, by which the strongest pairs are selected;
            None if all pairs are measured.
        pairs: Noise of each pair's counts.
        measured: Number of measured pairs.
        remeasured: Noise of a pair's counts in the second measurement.
        remeasurements: Number of tables of the second measurement; 0 without noise.
    """

    values: tuple[Law, ...] = field(repr=False)
    strength: Law | None = field(repr=False)
    pairs: Law = field(repr=False)
    measured: int
    remeasured: Law = field(repr=False)
    remeasurements: int

    @property
    def mean_sigma(self) -> float:
        """Standard deviation of a pair's counts if all pairs are remeasured equally often."""
        first, second = gaussian_sigma(self.pairs), gaussian_sigma(self.remeasured)
        if not first:
            return 0.0
        repeats = self.remeasurements / self.measured / second**2 if self.remeasurements else 0.0
        return 1 / math.sqrt(1 / first**2 + repeats)

    def spends(self, names: Sequence[str]) -> list[Spend]:
        """List the spends of learning one-way and two-way tables."""
        spends = [
            Spend(what=f"values of {name}", part="structure", law=law)
            for name, law in zip(names, self.values, strict=True)
        ]
        if self.strength is not None:
            law, pairs = self.strength, len(names) * (len(names) - 1) // 2
            spends.append(Spend(what=STRENGTH_SPEND, part="parameters", law=law, moved=pairs))
        if self.measured:
            law = self.pairs
            spends.append(Spend(what=PAIRS_SPEND, part="parameters", law=law, moved=self.measured))
        if self.remeasurements:
            law, tables = self.remeasured, self.remeasurements
            spends.append(Spend(what=REMEASURE_SPEND, part="parameters", law=law, moved=tables))
        return spends


def pair_counts(
    attributes: int, *, mu: float = math.inf, rows_max: float = math.inf
) -> tuple[int, int]:
    """Count all pairs, and the pairs to measure if together they may cost ``mu``.

        measured = (μ · rows / 300)²

    It is at most 700, or 7 per attribute if that is more. It is at least a quarter of all pairs,
    clamped to between 1.5 and 2.5 per attribute.

    >>> pair_counts(11), pair_counts(200)
    ((55, 55), (19900, 1400))
    >>> pair_counts(11, mu=0.02, rows_max=80_000), pair_counts(35, mu=0.1, rows_max=5_000)
    ((55, 28), (595, 87))
    """
    total = attributes * (attributes - 1) // 2
    affordable = min(
        (TARGET_PAIR_DEVIATION * mu * rows_max) ** 2,
        max(MAX_PAIRS, MAX_PAIRS_PER_ATTRIBUTE * attributes),
    )
    low, high = (int(each * attributes) for each in MIN_PAIRS_PER_ATTRIBUTE)
    minimum = max(low, min(int(MIN_PAIRS_SHARE * total), high))
    return total, min(total, max(int(affordable), minimum))


def pair_noise(
    sizes: Sequence[int], *, mu_values: float, mu_pairs: float, rows_max: float = math.inf
) -> PairNoise:
    """Choose noise so that all one-way tables cost ``mu_values`` and all pairs ``mu_pairs``.

        σ_i = 1 / (μ √w_i),  w_i ∝ (number of values)^⅔,  Σ w = 1;        σ = √tables / μ

    where a size counts as at most ½ ``rows_max`` / σ, σ = √attributes / μ.

    Privacy:
        Neighbours: add or remove one record, which changes one cell of each table by one.
        Covers: the tables of each stage, as one Gaussian mechanism: Σ 1/σ² = μ², exactly.
    """
    total, measured = pair_counts(len(sizes), mu=mu_pairs, rows_max=rows_max)
    exact = noise_laws.exact()
    if math.isinf(mu_values):
        return PairNoise(
            values=(exact,) * len(sizes),
            strength=None,
            pairs=exact,
            measured=total,
            remeasured=exact,
            remeasurements=0,
        )
    resolvable = max(_RESOLVABLE_CELLS * rows_max * mu_values / math.sqrt(len(sizes)), 1.0)
    weights = [min(size, resolvable) ** _SIZE_EXPONENT for size in sizes]
    values = [
        noise_laws.rounded_gaussian(1 / (mu_values * math.sqrt(weight / sum(weights))))
        for weight in weights
    ]
    strength = None
    if measured < total:
        strength = noise_laws.rounded_gaussian(math.sqrt(total / STRENGTH_SHARE) / mu_pairs)
        mu_pairs *= math.sqrt(1 - STRENGTH_SHARE)
    tables = REMEASUREMENTS_PER_PAIR * measured
    first, second = exact, exact
    if measured:
        first = noise_laws.rounded_gaussian(math.sqrt(measured / (1 - REMEASURE_SHARE)) / mu_pairs)
        second = noise_laws.rounded_gaussian(math.sqrt(tables / REMEASURE_SHARE) / mu_pairs)
    return PairNoise(
        values=tuple(values),
        strength=strength,
        pairs=first,
        measured=measured,
        remeasured=second,
        remeasurements=tables,
    )


def pairwise_shares(attributes: int, *, mu: float, rows_max: int) -> tuple[float, float]:
    """Split μ² between one-way tables and pairs; the two shares add up to 1.

        values: 0.3 + 2.5 √(σ / rows),  at most 0.8        σ = √pairs / μ

    The noisier the pairs, the larger the share of the one-way tables. ``rows_max`` is a public
    guess.
    """
    total, _ = pair_counts(attributes)
    if not total:
        return 1.0, 0.0
    smallest, largest = VALUES_SHARE_RANGE
    values = min(largest, smallest + 2.5 * math.sqrt(math.sqrt(total) / mu / rows_max))
    return values, 1 - values


def gaussian_sigma(law: Law) -> float:
    """σ of Gaussian noise; 0 without noise."""
    return float(dict(law.parameters).get("sigma", 0.0))
