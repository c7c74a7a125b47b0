"""A private draft of the schema, composed with the run that uses it (guarantee.md, Theorem 14).

A draft adds Gaussian noise to histograms, and so does the default model to its tables. Composed as
Gaussian noise, both together cost far less than the sum of their ε: squares of μ add up.
"""

import math
from dataclasses import dataclass

from deniable.errors import BudgetError
from deniable.privacy import noise_laws
from deniable.privacy.composition import Guarantee, gaussian_delta, gaussian_mu, upper_bound
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_tables import delta_before_table_error, with_table_error

# Bounds on the relative and the additive error of a table of rounded Gaussian noise.
TABLE_GROWTH, TABLE_MASS = 2.0**-41, 2.0**-99
DRAFT_SPEND = "schema draft"
# Histograms of each drafted column: distinct values, types, and at most three of details. One more
# is the number of rows.
HISTOGRAMS_PER_COLUMN = 5
# Of the histograms of a column, this many may list texts.
LISTS_PER_COLUMN = 2
# Share of ε and δ that is left for rounding errors.
_ROUNDING_SHARE = 1e-6
# Share of δ for texts that a single row would show.
_TEXT_DELTA_SHARE = 0.25
# A larger ε buys no accuracy that a draft could use.
_MAX_DRAFT_EPSILON = 30.0
# Stated noise may differ from what ε and δ give by this much: they are written with all digits.
_STATED_PRECISION = 1e-9


@dataclass(frozen=True, kw_only=True)
class DraftScales:
    """Calibrated noise of a private draft.

    Attributes:
        mu: μ of all histograms together, as one Gaussian mechanism.
        epsilon: ε of that mechanism, without the errors of its tables.
        text_delta: Largest probability that one list shows a text of a single row.
    """

    mu: float
    epsilon: float
    text_delta: float


def calibrate_draft(limit: Guarantee, *, histograms: int, lists: int) -> DraftScales:
    """Choose the noise of a draft: three quarters of δ for counts, a quarter for texts.

    Args:
        limit: (ε, δ) for one row.
        histograms: Largest number of histograms.
        lists: Largest number of histograms among them that list texts.

    Raises:
        BudgetError: Nothing of ε is left for the noise.

    Privacy:
        Neighbours: add or remove one row, which moves one cell of each histogram by one.
        Covers: all histograms and lists together, by Theorem 7b; the caller tests the total.
        Does not cover: the run that uses the draft (``DraftMechanism.limit_without_texts``).
    """
    largest, kept = min(limit.epsilon, _MAX_DRAFT_EPSILON), 1 - _ROUNDING_SHARE
    text_delta = kept * _TEXT_DELTA_SHARE * limit.delta / max(lists, 1)
    epsilon = kept * largest - histograms * TABLE_GROWTH + math.log1p(-lists * text_delta)
    delta = kept * (1 - _TEXT_DELTA_SHARE) * limit.delta
    if epsilon <= 0:
        raise BudgetError(f"ε = {limit.epsilon:.4g} is too small for {histograms} histograms")
    mu = gaussian_mu(epsilon=epsilon, delta=delta) * kept
    return DraftScales(mu=mu, epsilon=epsilon, text_delta=text_delta)


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
        if not (0 < self.mu < math.inf and self.columns >= 1 and 0 <= self.text_delta < 1):
            raise BudgetError(
                "the noise of a draft needs μ > 0, columns ≥ 1 and 0 ≤ δ of texts < 1"
            )

    @classmethod
    def of(cls, limit: Guarantee, *, columns: int) -> "DraftMechanism":
        """The noise of a draft of ``columns`` columns for single rows."""
        lists = LISTS_PER_COLUMN * columns
        scales = calibrate_draft(limit, histograms=1 + HISTOGRAMS_PER_COLUMN * columns, lists=lists)
        return cls(mu=scales.mu, columns=columns, text_delta=upper_bound(lists * scales.text_delta))

    def is_that_of(self, limit: Guarantee) -> bool:
        """Test whether this is the noise of a draft with that (ε, δ)."""
        if not self.costs_at_most(limit):
            return False
        own = DraftMechanism.of(limit, columns=self.columns)
        pairs = ((self.mu, own.mu), (self.text_delta, own.text_delta))
        return all(math.isclose(one, two, rel_tol=_STATED_PRECISION) for one, two in pairs)

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
        cost = with_table_error(ideal, growth=self._table_growth, mass=self._mass)
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
        return upper_bound(self._table_growth - math.log1p(-self.text_delta))

    @property
    def _table_growth(self) -> float:
        return self.histograms * TABLE_GROWTH

    @property
    def _mass(self) -> float:
        return self.histograms * TABLE_MASS
