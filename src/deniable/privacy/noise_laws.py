"""Integer noise laws: discrete Laplace, truncated geometric, rounded Gaussian.

A law is a table of integer weights on [-r, r] that sum to 2^128 (``noise_tables.WeightTable``).
Pr{Z = z} is therefore an exact fraction: the sampled law is the accounted law, without floating
point. The table is computed on first use; planning needs only the name and the parameters.

``relative_error`` and ``tv`` bound the relative and the additive error of the table with respect to
the law it is named after. ``noise_tables.with_table_error`` adds their cost to a guarantee.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from deniable.errors import BudgetError, InvariantError
from deniable.privacy import noise_tables
from deniable.privacy.noise_tables import TOTAL_WEIGHT, WeightTable
from deniable.privacy.theorems import geometric_histogram_cost

# Largest r of a table; and up to which r its weights are computed in decimals, not in doubles.
MAX_RADIUS = 2**26
MAX_DECIMAL_RADIUS = 2**15
MAX_DECIMAL_RADIUS_NORMAL = 2**7  # smaller, because each weight is a series

# Relative and total error of weights computed in doubles. A weight has a relative error of at most
# (79 · 3 + 16) · 2^-53: the largest exponent is 79, with three roundings in it, and every other
# step is of an ulp or two. Dividing by the sum, which has the same error, gives 2^-44. The mean
# exponent is at most one, so the total error is 2^-49.
_DOUBLES_RELATIVE_ERROR = 2.0**-43
_DOUBLES_TV = 2.0**-49
# Truncation radius of unbounded laws, in units of their scale; less than 2^-110 is beyond it.
_LAPLACE_RADIUS = 112 * math.log(2)
_GAUSSIAN_RADIUS = 12.5


@dataclass(frozen=True, kw_only=True)
class Law:
    """Symmetric law on the integers -r … r, as a table of weights that sum to 2^128.

    Two laws are equal if their names and parameters are: these determine the table.

    Attributes:
        name: Name of the ideal law.
        parameters: Its parameters, by name.
        radius: r, the largest value.
        make: Computes the table; slow for millions of weights.
        relative_error: η, bound on the relative error of a weight.
        tv: Bound on the remaining error of any event's probability: truncation, and rounding to
            integers. If η = 0, the total variation between table and ideal law.
    """

    name: str
    parameters: tuple[tuple[str, float], ...] = ()
    radius: int = field(repr=False, compare=False)
    make: Callable[[], WeightTable] = field(repr=False, compare=False)
    relative_error: float = field(default=0.0, repr=False, compare=False)
    tv: float = field(default=0.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (0 <= self.tv <= 1 and 0 <= self.relative_error < 1):
            raise InvariantError(
                f"{self}: invalid table errors {self.relative_error} and {self.tv}"
            )

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters)})"

    @cached_property
    def table(self) -> WeightTable:
        """The weight table, computed on first use."""
        table = self.make()
        if table.radius != self.radius:
            raise InvariantError(f"{self}: the table has radius {table.radius}, not {self.radius}")
        return table

    def weight(self, z: int) -> int:
        """Weight of ``z``, out of 2^128."""
        return self.table.weight(z)

    def probability(self, z: int) -> Fraction:
        """Exact probability Pr{Z = z}."""
        return Fraction(self.weight(z), TOTAL_WEIGHT)

    @cached_property
    def variance(self) -> float:
        """Variance; the mean is zero.

        That of a rounded normal is σ² + 1/12 (Sheppard's correction). For the σ of a long table,
        above 10, the difference is below e^-1900, and planning does not need the table.
        """
        if self.name == "rounded_gaussian" and self.radius > MAX_DECIMAL_RADIUS_NORMAL:
            return dict(self.parameters)["sigma"] ** 2 + 1 / 12
        return float(2 * (np.arange(self.radius + 1.0) ** 2 @ self.table.probabilities()))


def exact() -> Law:
    """Point mass at zero: no noise. δ = 1 for every ε."""
    return Law(name="exact", radius=0, make=partial(WeightTable.of_integers, []))


def discrete_laplace(epsilon: float) -> Law:
    """Discrete Laplace law of scale b = 1/ε, truncated where a mass of 2^-112 remains.

        g(z) = (1 - α) / (1 + α) · α^|z|,  α = e^-ε,  |z| ≤ 112 · b · ln 2

    Privacy:
        Neighbours: add or remove one record, which changes a number by one.
        Covers: that number, (ε, 0), up to the table error.
        Does not cover: several numbers that one record changes; those compose.
    """
    _require(0 < epsilon < math.inf, f"discrete Laplace noise needs 0 < ε < ∞; got {epsilon}")
    what = f"discrete Laplace noise of ε = {epsilon}"
    r = _checked_radius(math.floor(_LAPLACE_RADIUS / epsilon), what)
    cut = 2 * math.exp(-epsilon * (r + 1)) / (1 + math.exp(-epsilon))
    in_doubles = r > MAX_DECIMAL_RADIUS
    masses = partial(noise_tables.geometric_masses, epsilon)
    return Law(
        name="discrete_laplace",
        parameters=(("epsilon", epsilon),),
        radius=r,
        make=partial(WeightTable.of_masses, masses, r)
        if in_doubles
        else partial(noise_tables.geometric_table, epsilon, r, cut_at=None),
        relative_error=_DOUBLES_RELATIVE_ERROR if in_doubles else 0.0,
        tv=_table_tv(r, cut=cut),
    )


def truncated_geometric(epsilon: float, r: int) -> Law:
    """Truncated geometric law, the noise of Mechanism B (guarantee.md, Theorem 7).

        g(z) = α^|z| · (1 - α) / (1 + α - 2 α^(r+1)),  α = e^-ε,  |z| ≤ r

    Privacy:
        Neighbours: add or remove one record, which changes a number by one.
        Covers: that number, (ε, g(r)), up to the table error.
        Does not cover: several numbers that one record changes; those compose.
    """
    _require(0 < epsilon < math.inf, f"truncated geometric noise needs 0 < ε < ∞; got {epsilon}")
    r = _checked_radius(r, f"truncated geometric noise with r = {r}")
    in_doubles = r > MAX_DECIMAL_RADIUS
    masses = partial(noise_tables.geometric_masses, epsilon)
    return Law(
        name="truncated_geometric",
        parameters=(("epsilon", epsilon), ("r", r)),
        radius=r,
        make=partial(WeightTable.of_masses, masses, r)
        if in_doubles
        else partial(noise_tables.geometric_table, epsilon, r, cut_at=r),
        tv=_table_tv(r, doubles=in_doubles),
    )


def rounded_gaussian(sigma: float) -> Law:
    """Law of a normal variable rounded to the nearest integer.

        g(z) = Φ((z + ½) / σ) - Φ((z - ½) / σ)

    An integer shift of it is a rounded shifted normal, which is post-processing. The guarantee of
    the Gaussian mechanism therefore holds (guarantee.md, Noise tables), up to the table error.

    Privacy:
        Neighbours: add or remove one record, which changes some numbers by integers.
        Covers: those numbers, as a Gaussian mechanism of μ = (L2 sensitivity) / σ;
            ``noise_tables.with_table_error`` adds the cost of each table.
        Does not cover: changes that are not integers.
    """
    _require(0 < sigma < math.inf, f"rounded Gaussian noise needs 0 < σ < ∞; got {sigma}")
    r = _checked_radius(gaussian_radius(sigma), f"rounded Gaussian noise of σ = {sigma}")
    in_doubles = r > MAX_DECIMAL_RADIUS_NORMAL
    masses = partial(noise_tables.rounded_normal_masses, sigma, r)
    return Law(
        name="rounded_gaussian",
        parameters=(("sigma", sigma),),
        radius=r,
        make=partial(WeightTable.of_masses, masses, r)
        if in_doubles
        else partial(noise_tables.rounded_normal_table, sigma, r),
        relative_error=_DOUBLES_RELATIVE_ERROR if in_doubles else 0.0,
        tv=_table_tv(r, cut=math.erfc((r + 0.5) / sigma * math.sqrt(0.5))),
    )


def gaussian_radius(sigma: float) -> int:
    """Truncation radius r of ``rounded_gaussian``: less than 2^-116 is beyond r + ½ ≥ 12.5 σ."""
    return math.ceil(min(_GAUSSIAN_RADIUS * sigma - 0.5, 2.0 * MAX_RADIUS))


def smallest_radius(*, epsilon: float, delta: float) -> int:
    """Find the smallest r at which Mechanism B is (ε, δ); δ includes the rounding of the table."""
    # A plan with 2^22 weights takes seconds; beyond the other bound the rounding of the table alone
    # would use half of δ.
    bound = min(2.0**22, delta * TOTAL_WEIGHT / (2 * (1 + math.exp(min(epsilon, 700.0)))))
    low, high, is_enough = 0, 1, False
    while high - low > 1 or not is_enough:
        r = (low + high) // 2 if is_enough else high
        tv = _table_tv(r, doubles=r > MAX_DECIMAL_RADIUS)
        if geometric_histogram_cost(epsilon=epsilon, r=r, tv=tv).delta <= delta:
            high, is_enough = r, True
        else:
            low, high = r, high if is_enough else 2 * r
        if not is_enough and high > bound:
            raise BudgetError(
                f"the seed histogram's share of the budget (ε = {epsilon:.3g}, δ = {delta:.3g}) is "
                "too small for any noise. Use a larger ε (up to 10) or δ, or --mode seedless"
            )
    return high


def bounded_noise(*, epsilon: float, delta: float) -> Law:
    """Choose the noise of Mechanism B: no (ε, δ) selection keeps more (Theorem 7.4).

    Privacy:
        Neighbours: add or remove one record, which changes one cell.
        Covers: every kept cell and any number of records generated from them, (ε, δ) by
            Theorem 7.
        Does not cover: the model of the other attributes.
    """
    return truncated_geometric(epsilon, smallest_radius(epsilon=epsilon, delta=delta))


def _table_tv(r: int, *, cut: float = 0.0, doubles: bool = False) -> float:
    """Bound the additive error of a table: one unit per weight, truncation, double rounding."""
    return 2 * (r + 2) / TOTAL_WEIGHT + cut * (1 + 2.0**-30) + doubles * _DOUBLES_TV


def _checked_radius(r: int, what: str) -> int:
    if r < 1:
        raise BudgetError(f"{what} is too narrow for integers: ask for a smaller ε")
    if r > MAX_RADIUS:
        raise BudgetError(f"{what} needs a table larger than 2^26: ask for a larger ε (up to 10)")
    return r


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise BudgetError(otherwise)
