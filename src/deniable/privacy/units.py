"""A person with several rows: how much of a limit one row may have."""

import math

from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, of_a_group

# Below it no noise of ours is certified.
_LEAST_DELTA = 1e-18
# Beyond it e^x is no number.
_LARGEST_POWER = 700.0


def of_unit(cost: Guarantee, *, rows: int) -> Guarantee:
    """Return what (ε, δ) for one row means for a unit of at most ``rows`` rows.

    Privacy:
        Neighbours: add or remove all rows of one unit, at most ``rows`` of which are used.
        Covers: whatever costs (ε, δ) for one row.
    """
    if rows == 1 or cost.epsilon == math.inf:
        return cost
    return of_a_group(cost, rows=rows)


def per_row(limit: Guarantee, *, rows: int) -> Guarantee:
    """Return what one row may cost so that a unit of ``rows`` rows costs at most ``limit``.

    Raises:
        BudgetError: So little of δ is left to a row that no noise can be shown to meet it.
    """
    if rows == 1 or limit.epsilon == math.inf:
        return limit
    each = limit.epsilon / rows
    delta = limit.delta / _growth(each, rows)
    if delta < _LEAST_DELTA < limit.delta:
        raise BudgetError(
            f"ε = {limit.epsilon:g} for {rows:,} rows of one unit leaves each row δ = {delta:.2g}, "
            "too little to be certified. Ask for a smaller ε or a larger δ."
        )
    return Guarantee(epsilon=each * (1 - 1e-12), delta=delta * (1 - 1e-12))


def _growth(epsilon: float, rows: int) -> float:
    """Return Σ e^(i·ε) over i < rows; infinity where that is beyond all numbers."""
    if rows * epsilon > _LARGEST_POWER:
        return math.inf
    return math.expm1(rows * epsilon) / math.expm1(epsilon) * (1 + 1e-12)
