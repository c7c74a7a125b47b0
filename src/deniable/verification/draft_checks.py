"""Check a manifest whose total composes a private draft with the run (guarantee.md, Theorem 14)."""

import math
from collections.abc import Mapping
from typing import Any

from deniable.verification.claims import DRAFT_SPEND, ManifestClaims
from deniable.verification.manifest_spend import require
from deniable.verification.second_accountant import (
    MAX_SHORTFALL,
    compute_epsilon,
    privacy_loss,
    require_draft_noise,
    reserved_loss,
)

# Reserved for seeds whatever the options: shares of ε and δ; and the fraction of ε aimed at.
_SEEDS_EPSILON_SHARE, _SEEDS_DELTA_SHARE, _EPSILON_FRACTION = 0.02, 0.1, 0.999
# Runs with a larger ε, or whose noise tables may have a larger error, are not composed.
_MAX_EPSILON, _MAX_TABLE_GROWTH = 16.0, 5e-4
_GROWTH_PER_NUMBER = 2.0**-41


def require_composed_draft(claims: ManifestClaims, draft: Mapping[str, Any]) -> None:
    """Require that the rule allows composition, the draft's noise, and the requested total."""
    parameters = claims.parameters
    allowed = claims.is_pairwise and claims.mode != "randomized" and not claims.has_own_model
    allowed = allowed and claims.unit is None and claims.rows_per_unit == 1
    epsilon = parameters["epsilon"]
    allowed = allowed and epsilon <= _MAX_EPSILON
    columns = max(draft["columns"], len(claims.names), 3)
    growth = _GROWTH_PER_NUMBER * _count_numbers(columns)
    allowed = allowed and growth <= _MAX_TABLE_GROWTH * min(epsilon, 1.0)
    require(allowed, "a run of this kind is not composed with a draft")
    less = draft["epsilon"] < epsilon and draft["delta"] < parameters["delta"]
    require(less, "the draft of the schema costs as much as the total")
    require_draft_noise(draft)
    [entry] = [spend for spend in claims.spends if spend.what == DRAFT_SPEND]
    near = abs(draft["mu"] * entry.scale[0] - 1) <= 1e-12
    require(near and entry.moved == 1, "the entry of the draft has another noise than the draft")
    # A total that followed from the schema would follow from the table.
    same = (claims.cost.epsilon, claims.cost.delta) == (epsilon, parameters["delta"])
    require(same, "the total of a run that is composed with a draft must be what was requested")


def _count_numbers(columns: int) -> int:
    """Largest number of noisy numbers that one record changes in a table of ``columns`` columns."""
    pairs, triples = columns * (columns - 1) // 2, math.comb(min(columns, 31), 3)
    return 4096 * pairs + 5488 * triples + 8 * min(pairs, max(700, 7 * columns)) + columns


def check_composed_total(claims: ManifestClaims) -> str:
    """Check the total with what is reserved for seeds, and that seeds cost no more than that."""
    cost = claims.cost_per_row
    epsilon = _SEEDS_EPSILON_SHARE * _EPSILON_FRACTION * cost.epsilon
    delta = _SEEDS_DELTA_SHARE * cost.delta
    for spend in claims.spends:
        if spend.part == "seeds":
            own = privacy_loss(spend).delta(epsilon * (1 + MAX_SHORTFALL))
            require(own <= delta * (1 + 1e-6), "seeds cost more than is reserved for them")
    others = [spend for spend in claims.spends if spend.part != "seeds"]
    reserved = reserved_loss(epsilon, delta)
    exact = compute_epsilon(others, delta=cost.delta, reserved=reserved)
    enough = cost.epsilon >= exact * (1 - MAX_SHORTFALL)
    require(enough, f"ε = {cost.epsilon:.6g} is claimed, but draft and run cost {exact:.6g}")
    return (
        f"Draft and run together, with what is reserved for seeds, cost ε = {exact:.6g} at "
        f"δ = {cost.delta:.6g}; ε = {cost.epsilon:.6g} is claimed."
    )
