"""The noise of values and pairs of attributes: how a budget is shared among them.

All of it follows from public facts: how many attributes there are, how many values they have, and
a guess of the number of rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from deniable.privacy import laws
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend

# Shares of the budget, as variance: what the values get, from least to most; of the rest, what
# choosing pairs gets where not all of them are counted, and what is kept for a second look at those
# that depend most. Chosen on rows that were not tested on (docs/utility.md).
VALUES_SHARES = (0.3, 0.8)
STRENGTH_SHARE = 0.2
SECOND_SHARE = 0.5
# All pairs are counted up to so many; beyond, the strongest, and so many for each attribute.
ALL_PAIRS = 700
PAIRS_EACH = 7
# Fewer where they would drown together: as many as leave each a deviation of this share of the
# rows; but a quarter of all at least, no fewer and no more than so many for each attribute.
CLEAR = 1 / 300
FEWEST = 1 / 4
FEWEST_EACH = (1.5, 2.5)
# So many tables are counted at the second look for each of the first, some pairs often, some never.
LOOKS_EACH = 4
# An attribute's values get a share that grows with their number, but more slowly: so the sum of
# all distances is least. More cells than this times rows / σ are lost in noise anyway, and earn
# no more.
_GROWTH = 2 / 3
_HOPEFUL = 0.5


@dataclass(frozen=True, kw_only=True)
class PairNoise:
    """The noise of each stage.

    Attributes:
        values: Of each attribute's counts.
        strength: Of how strongly two attributes depend, where only the strongest pairs are
            counted; None: all are.
        pairs: Of each pair's counts.
        measured: How many pairs are counted.
        again: Of the counts of a pair at each further look.
        looks: How many further looks there are; 0: none, as without noise.
    """

    values: tuple[Law, ...] = field(repr=False)
    strength: Law | None = field(repr=False)
    pairs: Law = field(repr=False)
    measured: int
    again: Law = field(repr=False)
    looks: int

    @property
    def usual(self) -> float:
        """The deviation that a pair's counts would have if all were looked at equally often."""
        first, again = deviation(self.pairs), deviation(self.again)
        if not first:
            return 0.0
        sure = 1 / first**2 + (self.looks / self.measured / again**2 if self.looks else 0.0)
        return 1 / math.sqrt(sure)

    def spends(self, names: Sequence[str]) -> list[Spend]:
        """Return every use of the data that learning values and pairs makes."""
        spends = [
            Spend(what=f"values of {name}", part="structure", law=law)
            for name, law in zip(names, self.values, strict=True)
        ]
        if self.strength is not None:
            law, every = self.strength, len(names) * (len(names) - 1) // 2
            spends.append(Spend(what=STRENGTH, part="parameters", law=law, moved=every))
        if self.measured:
            law = self.pairs
            spends.append(Spend(what=PAIRS, part="parameters", law=law, moved=self.measured))
        if self.looks:
            law = self.again
            spends.append(Spend(what=AGAIN, part="parameters", law=law, moved=self.looks))
        return spends


STRENGTH = "strength of pairs"
PAIRS = "pairs of attributes"
AGAIN = "second look at pairs"


def numbers_of_pairs(
    attributes: int, *, mu: float = math.inf, rows_max: float = math.inf
) -> tuple[int, int]:
    """Return how many pairs there are, and how many of them are counted when all may cost ``mu``.

        (μ · rows / 300)²,  at most 700 or 7 for each attribute, at least a quarter of all,
        which is taken for 1.5 for each attribute where it is less, for 2.5 where it is more

    >>> numbers_of_pairs(11), numbers_of_pairs(200)
    ((55, 55), (19900, 1400))
    >>> numbers_of_pairs(11, mu=0.02, rows_max=80_000), numbers_of_pairs(35, mu=0.1, rows_max=5_000)
    ((55, 28), (595, 87))
    """
    every = attributes * (attributes - 1) // 2
    clear = min((CLEAR * mu * rows_max) ** 2, max(ALL_PAIRS, PAIRS_EACH * attributes))
    low, high = (int(each * attributes) for each in FEWEST_EACH)
    fewest = max(low, min(int(FEWEST * every), high))
    return every, min(every, max(int(clear), fewest))


def pair_noise(
    sizes: Sequence[int], *, mu_values: float, mu_pairs: float, rows_max: float = math.inf
) -> PairNoise:
    """Return the noise with which all values cost ``mu_values``, and all pairs ``mu_pairs``.

        σ_i = 1 / (μ √w_i),  w_i ∝ (number of values)^⅔,  Σ w = 1;        σ = √tables / μ

    where an attribute counts no more values than ½ ``rows_max`` / σ, σ = √attributes / μ.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each table by one.
        Covers: Σ 1/σ² over all tables is μ² of each stage, exactly: Gaussian noise adds so.
    """
    every, measured = numbers_of_pairs(len(sizes), mu=mu_pairs, rows_max=rows_max)
    exact = laws.exact()
    if math.isinf(mu_values):
        return PairNoise(
            values=(exact,) * len(sizes),
            strength=None,
            pairs=exact,
            measured=every,
            again=exact,
            looks=0,
        )
    hopeful = max(_HOPEFUL * rows_max * mu_values / math.sqrt(len(sizes)), 1.0)
    weights = [min(size, hopeful) ** _GROWTH for size in sizes]
    values = [
        laws.rounded_gaussian(1 / (mu_values * math.sqrt(weight / sum(weights))))
        for weight in weights
    ]
    strength = None
    if measured < every:
        strength = laws.rounded_gaussian(math.sqrt(every / STRENGTH_SHARE) / mu_pairs)
        mu_pairs *= math.sqrt(1 - STRENGTH_SHARE)
    looks = LOOKS_EACH * measured
    first, again = exact, exact
    if measured:
        first = laws.rounded_gaussian(math.sqrt(measured / (1 - SECOND_SHARE)) / mu_pairs)
        again = laws.rounded_gaussian(math.sqrt(looks / SECOND_SHARE) / mu_pairs)
    return PairNoise(
        values=tuple(values),
        strength=strength,
        pairs=first,
        measured=measured,
        again=again,
        looks=looks,
    )


def shares_of(attributes: int, *, mu: float, rows_max: int) -> tuple[float, float]:
    """Return the shares of values and of pairs in the budget, as variance; together 1.

        values: 0.3 + 2.5 √(σ / rows),  at most 0.8        σ = √pairs / μ

    The noisier pairs will be, the less they can say, and the more is left to single attributes.
    From public facts alone: ``rows_max`` is a guess.
    """
    every, _ = numbers_of_pairs(attributes)
    if not every:
        return 1.0, 0.0
    least, most = VALUES_SHARES
    values = min(most, least + 2.5 * math.sqrt(math.sqrt(every) / mu / rows_max))
    return values, 1 - values


def deviation(law: Law) -> float:
    """Return σ of Gaussian noise; 0 without noise."""
    return float(dict(law.parameters).get("sigma", 0.0))
