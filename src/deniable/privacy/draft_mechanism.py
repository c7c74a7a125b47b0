"""A private draft of the schema, composed with the run that uses it (guarantee.md, Theorem 14).

A draft adds Gaussian noise to histograms, and so does the default model to its tables. Composed as
Gaussian noise, both together cost far less than the sum of their ε: squares of μ add up.
"""

import math
from dataclasses import dataclass

from deniable.errors import BudgetError
from deniable.privacy import noise_laws
from deniable.privacy.composition import Guarantee, gaussian_delta, upper_bound
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_tables import delta_before_table_error, with_table_error

# Bounds on the relative and the additive error of a table of rounded Gaussian noise.
TABLE_GROWTH, TABLE_MASS = 2.0**-41, 2.0**-99
DRAFT_SPEND = "schema draft"
# Histograms of each drafted column: distinct values, types, and at most three of details. One more
# is the number of rows.
HISTOGRAMS_PER_COLUMN = 5


@dataclass(frozen=True, kw_only=True)
class DraftMechanism:
    """Noise of a private draft, as far as a run that is composed with it needs to know.

    Attributes:
        mu: μ of all histograms together, as one Gaussian mechanism.
        columns: Number of drafted columns, which bounds the number of histograms.
        text_delta: Largest probability that any list shows a text of a single row.
    """

    mu: float
    columns: int
    text_delta: float

    def __post_init__(self) -> None:
        if not (0 < self.mu < math.inf and self.columns >= 0 and 0 <= self.text_delta < 1):
            raise BudgetError(
                "the noise of a draft needs μ > 0, columns ≥ 0 and 0 ≤ δ of texts < 1"
            )

    @property
    def histograms(self) -> int:
        """Largest number of histograms, which bounds the error of their noise tables."""
        return 1 + HISTOGRAMS_PER_COLUMN * self.columns

    @property
    def spend(self) -> Spend:
        """Ledger entry of the whole draft: one Gaussian mechanism with its μ."""
        law = noise_laws.rounded_gaussian(1 / self.mu)
        return Spend(what=DRAFT_SPEND, part="structure", law=law)

    def costs_at_most(self, limit: Guarantee) -> bool:
        """Test whether the draft alone is within ``limit`` (guarantee.md, Theorem 7b)."""
        epsilon = limit.epsilon - self._growth
        if epsilon <= 0:
            return False
        ideal = Guarantee(epsilon=epsilon, delta=gaussian_delta(epsilon=epsilon, mu=self.mu))
        cost = with_table_error(ideal, growth=self._growth, mass=self._mass)
        return upper_bound(cost.delta + self.text_delta) <= limit.delta

    def limit_without_texts(self, limit: Guarantee) -> Guarantee:
        """Limit of draft and run together, without texts of a single row and the draft's tables.

        Draft and run cost at most ``limit`` if the draft's ideal Gaussian noise and the run, with
        the errors of its own tables, cost at most the result.

        Raises:
            BudgetError: Nothing is left.

        Privacy:
            Neighbours: add or remove one row.
            Covers: a draft and one run that uses it; the run may depend on the draft
                (guarantee.md, Theorem 14).
            Does not cover: a second run with the same draft.
        """
        epsilon = (limit.epsilon - self._growth) * (1 - 2.0**-49)
        left = (limit.delta - self.text_delta) * (1 - 2.0**-49)
        delta = delta_before_table_error(
            max(left, 0.0), epsilon=limit.epsilon, growth=self._growth, mass=self._mass
        )
        if epsilon <= 0 or delta <= 0:
            raise BudgetError("the private draft of the schema leaves no ε or δ for the run")
        return Guarantee(epsilon=epsilon, delta=delta)

    @property
    def _growth(self) -> float:
        """ε of the noise tables, and of the texts that are not shown: -ln(1 - text_delta)."""
        return upper_bound(self.histograms * TABLE_GROWTH - math.log1p(-self.text_delta))

    @property
    def _mass(self) -> float:
        return self.histograms * TABLE_MASS
