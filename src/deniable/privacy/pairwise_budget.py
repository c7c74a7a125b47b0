"""Split the pairwise budget among one-way tables, interactions, and two-way tables.

The noise follows from public facts alone: the number of attributes and their domain sizes. What
each stage measures with its share is decided by noisy answers of earlier stages.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from deniable.privacy import noise_laws
from deniable.privacy.composition import upper_bound
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import Law

# Budget shares of μ²: one-way tables; and, of the rest, the interactions of all pairs. Two-way
# tables have what remains. Tuned on rows that were not tested on (benchmarks/utility.md).
VALUES_SHARE = 0.33
INTERACTIONS_SHARE = 0.5
# Interactions are measured between at most this many groups of each attribute's values.
MAX_GROUPS = 16
# Pairs with a target column are measured with this multiple of the others' precision.
TARGET_WEIGHT = 4
# Three-way interactions can have this share of the tables' budget, if there are at most this many
# triples. They are measured between at most this many groups of each attribute's values.
THREE_WAY_SHARE = 0.15
MAX_TRIPLES = 4096
MAX_THREE_WAY_GROUPS = 7
# Two-way tables: this many for each pair, of at most 700 pairs or 7 per attribute. Some pairs get
# several of them, some none.
TABLES_PER_PAIR = 4
MAX_PAIRS = 700
MAX_PAIRS_PER_ATTRIBUTE = 7
# The share of a one-way table grows with this power of its size, which minimizes the total error;
# a size counts as at most this many values, since noise hides finer detail.
_SIZE_EXPONENT = 2 / 3
_MAX_WEIGHTED_SIZE = 100
# The stated entry of the interactions counts each number this many times, and has at least this σ:
# its table then has the relative error that any table of noise may have (Theorem 12).
_STATED_MULTIPLE = 16
_MIN_STATED_SIGMA = 12.0
# Names of the spends.
INTERACTIONS_SPEND = "interactions of pairs"
THREE_WAY_SPEND = "three-way interactions"
PAIRS_SPEND = "pairs of attributes"


@dataclass(frozen=True, kw_only=True)
class PairNoise:
    """Noise of one-way tables, interactions and two-way tables.

    Without noise, the two-way tables of all pairs are counted, and no interactions.

    Attributes:
        values: Noise of each attribute's one-way counts.
        interactions: Noise that states the cost of all interactions together. The noise of each
            pair follows from it and from the numbers of groups, which noisy counts determine.
        tables: Noise of each two-way table.
        table_count: Number of two-way tables, without three-way interactions.
        three_way: Noise that states the cost of all three-way interactions together.
        reserved_count: Number of two-way tables that are given up for three-way interactions, if
            noisy counts show enough rows for these; 0 if they are never measured.
    """

    values: tuple[Law, ...] = field(repr=False)
    interactions: Law = field(repr=False)
    tables: Law = field(repr=False)
    table_count: int
    three_way: Law = field(default_factory=noise_laws.exact, repr=False)
    reserved_count: int = 0

    @property
    def mu_interactions(self) -> float:
        """μ of all interactions together; infinite if they are not measured."""
        if self.interactions.name == "exact":
            return math.inf
        return interactions_spend(len(self.values), self.interactions).mu

    @property
    def mu_three_way(self) -> float:
        """μ of all three-way interactions together; infinite if they are never measured."""
        if not self.reserved_count:
            return math.inf
        return three_way_spend(len(self.values), self.three_way).mu

    def spends(self, names: Sequence[str]) -> list[Spend]:
        """List the spends of learning one-way tables, interactions and two-way tables."""
        spends = [
            Spend(what=f"values of {name}", part="structure", law=law)
            for name, law in zip(names, self.values, strict=True)
        ]
        if self.table_count:
            if self.interactions.name != "exact":
                spends.append(interactions_spend(len(names), self.interactions))
            if self.reserved_count:
                spends.append(three_way_spend(len(names), self.three_way))
            law, count = self.tables, self.table_count - self.reserved_count
            spends.append(Spend(what=PAIRS_SPEND, part="parameters", law=law, l0_sensitivity=count))
        return spends


def interactions_spend(attributes: int, law: Law) -> Spend:
    """State the cost of the interactions of all pairs (guarantee.md, Theorem 12).

    The scales of the pairs are chosen later, so that Σ ‖Δq‖² / σ² is the μ² of this entry. It also
    bounds the table errors: one record changes at most MAX_GROUPS² numbers of a pair, counted 16
    times here, and their σ is at most 2 MAX_GROUPS² √pairs / μ, which is 8 times that of the entry.
    """
    pairs = attributes * (attributes - 1) // 2
    numbers = _STATED_MULTIPLE * MAX_GROUPS**2 * pairs
    return Spend(what=INTERACTIONS_SPEND, part="parameters", law=law, l0_sensitivity=numbers)


def three_way_spend(attributes: int, law: Law) -> Spend:
    """State the cost of all three-way interactions, or of the tables that are measured instead.

    As ``interactions_spend``. The σ of a triple's numbers is at most 2 MAX_THREE_WAY_GROUPS³
    √triples / μ, which is 10 times that of the entry; the tables have a smaller σ, and are fewer
    than the entry's numbers (guarantee.md, Theorem 13).
    """
    numbers = _STATED_MULTIPLE * MAX_THREE_WAY_GROUPS**3 * math.comb(attributes, 3)
    return Spend(what=THREE_WAY_SPEND, part="parameters", law=law, l0_sensitivity=numbers)


def interaction_sigmas(
    shapes: Sequence[tuple[int, ...]], weights: Sequence[int], *, mu: float
) -> list[float]:
    """Choose σ of each centred table, of pairs or triples, so that all together cost ``mu``.

        σ_p = √(Σ_q w_q c_q / w_p) / μ,   c = (1 - 1/a)(1 - 1/b)…       so that  Σ c_p / σ_p² = μ²

    Args:
        shapes: The numbers of groups, (a, b) or (a, b, c), of each pair or triple; at least 2 each.
        weights: The relative precision of each, from 1 to TARGET_WEIGHT.
        mu: μ of the stage.

    Privacy:
        Neighbours: add or remove one record, which moves the centred table of a pair by
            (e_i - 1/a)(e_j - 1/b)ᵀ, of squared length c, and of a triple alike (Lemma 11).
        Covers: all of the tables, as one Gaussian mechanism of μ, rounded up.
        Assumes: shapes and weights were fixed before these tables were counted.
    """
    if math.isinf(mu):
        return [0.0] * len(shapes)
    costs = [math.prod(1 - 1 / groups for groups in shape) for shape in shapes]
    total = upper_bound(math.fsum(w * c for w, c in zip(weights, costs, strict=True)))
    return [upper_bound(math.sqrt(total / weight) / mu) for weight in weights]


def count_tables(attributes: int) -> int:
    """Count the two-way tables: four for each pair, of at most 700 pairs or 7 per attribute.

    >>> count_tables(1), count_tables(11), count_tables(200)
    (0, 220, 5600)
    """
    total = attributes * (attributes - 1) // 2
    return TABLES_PER_PAIR * min(total, max(MAX_PAIRS, MAX_PAIRS_PER_ATTRIBUTE * attributes))


def count_reserved(attributes: int) -> int:
    """Count the two-way tables that three-way interactions can replace; 0 for too many triples.

    >>> count_reserved(2), count_reserved(11), count_reserved(30), count_reserved(31)
    (0, 33, 261, 0)
    """
    if not 0 < math.comb(attributes, 3) <= MAX_TRIPLES:
        return 0
    return round(THREE_WAY_SHARE * count_tables(attributes))


def pair_noise(sizes: Sequence[int], *, mu_values: float, mu_pairs: float) -> PairNoise:
    """Choose noise so that all one-way tables cost ``mu_values`` and all pairs ``mu_pairs``.

        σ_i = 1 / (μ √w_i),  w_i ∝ (number of values)^⅔,  Σ w = 1;        σ = √tables / μ

    where a size counts as at most 100. If the interactions would need noise beyond 2^26, where no
    dependence could show, two-way tables have their share.

    Privacy:
        Neighbours: add or remove one record, which changes one cell of each table by one.
        Covers: each stage, as one Gaussian mechanism: Σ 1/σ² = μ², or less if σ of the stated
            entry of interactions would be below 12.
    """
    exact, tables = noise_laws.exact(), count_tables(len(sizes))
    if math.isinf(mu_values):
        values, pairs = (exact,) * len(sizes), len(sizes) * (len(sizes) - 1) // 2
        return PairNoise(values=values, interactions=exact, tables=exact, table_count=pairs)
    weights = [min(size, _MAX_WEIGHTED_SIZE) ** _SIZE_EXPONENT for size in sizes]
    values = tuple(
        noise_laws.rounded_gaussian(1 / (mu_values * math.sqrt(weight / sum(weights))))
        for weight in weights
    )
    if not tables:
        return PairNoise(values=values, interactions=exact, tables=exact, table_count=0)
    stated = interactions_spend(len(sizes), exact).l0_sensitivity / INTERACTIONS_SHARE
    mu_pairs = min(mu_pairs, math.sqrt(stated) / _MIN_STATED_SIGMA)
    sigma, interactions, share = math.sqrt(stated) / mu_pairs, exact, 0.0
    if noise_laws.gaussian_radius(sigma) <= noise_laws.MAX_RADIUS:
        interactions, share = noise_laws.rounded_gaussian(sigma), INTERACTIONS_SHARE
    each = noise_laws.rounded_gaussian(math.sqrt(tables / (1 - share)) / mu_pairs)
    three_way, reserved = _three_way_noise(len(sizes), each) if share else (exact, 0)
    return PairNoise(
        values=values,
        interactions=interactions,
        tables=each,
        table_count=tables,
        three_way=three_way,
        reserved_count=reserved,
    )


def _three_way_noise(attributes: int, tables: Law) -> tuple[Law, int]:
    """Choose the stated noise of three-way interactions: the cost of the tables reserved for them.

    None are reserved if that noise would be beyond 2^26.
    """
    exact, reserved = noise_laws.exact(), count_reserved(attributes)
    if not reserved:
        return exact, 0
    numbers = three_way_spend(attributes, exact).l0_sensitivity
    # Rounded down: the entry also pays for those tables.
    sigma = gaussian_sigma(tables) * math.sqrt(numbers / reserved) * (1 - 2**-48)
    if noise_laws.gaussian_radius(sigma) > noise_laws.MAX_RADIUS:
        return exact, 0
    return noise_laws.rounded_gaussian(sigma), reserved


def pairwise_shares(attributes: int) -> tuple[float, float]:
    """Split μ² between one-way tables and pairs; the two shares add up to 1."""
    return (1.0, 0.0) if attributes < 2 else (VALUES_SHARE, 1 - VALUES_SHARE)


def gaussian_sigma(law: Law) -> float:
    """σ of Gaussian noise; 0 without noise."""
    return float(dict(law.parameters).get("sigma", 0.0))
