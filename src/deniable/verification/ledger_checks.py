"""Check a manifest's ledger: expected spends, noise laws, and costs by the second accountant.

Costs come from ``second_accountant``, which shares no code with the accountant that wrote them.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from deniable.privacy.wording import round_up
from deniable.verification.claims import (
    COUNTS_OF,
    DRAFT_SPEND,
    MOMENT_L0_SENSITIVITIES,
    NUMBERS_PER_PAIR,
    NUMBERS_PER_TRIPLE,
    PAIR_SPENDS,
    RECORDS_OF,
    SQUARES_OF,
    SUMS_OF,
    THREE_WAY_SPEND,
    VALUES_OF,
    Check,
    ManifestClaims,
    run_check,
)
from deniable.verification.draft_checks import check_composed_total, require_composed_draft
from deniable.verification.manifest_spend import ManifestSpend, require
from deniable.verification.second_accountant import (
    compute_epsilon,
    compute_split_epsilon,
    count_losses,
    entropy_sensitivities,
    require_close,
)

# Valid bounds B to which standardised values are clipped before they are summed.
_VALUE_BOUNDS = {8, 16, 32, 64}
# Longest table of noise, in steps from 0; that of Gaussian noise has a length of 12.5 σ.
_MAX_RADIUS = 2**26


def run_ledger_checks(claims: ManifestClaims) -> list[Check]:
    """Run the checks of a manifest that has spends and claims privacy."""
    checks: dict[str, Callable[[ManifestClaims], str]] = {
        "ledger": _check_ledger,
        "noise": _check_noise,
        "cost of each spend": _check_single_costs,
        "total cost": _check_total,
        "requested budget": _check_budget,
    }
    return [run_check(name, lambda body=body: body(claims)) for name, body in checks.items()]  # type: ignore[misc]


def _check_ledger(claims: ManifestClaims) -> str:
    """Check that the ledger has exactly the spends that this mode makes with this schema."""
    expected = [(DRAFT_SPEND, "structure")] if claims.composed_draft is not None else []
    expected += _model_spends(claims)
    expected += [("seed prefixes", "seeds")] if claims.has_seed_histogram else []
    expected += [("deniability tests", "seeds")] if claims.mode == "randomized" else []
    found = [(spend.what, spend.part) for spend in claims.spends]
    odd = [what for what, _ in sorted(set(expected) ^ set(found))]
    require(not odd, f'"{"".join(odd[:1])}" is missing or unexpected')
    require(found == expected, "an entry is duplicated or out of order")
    moved = {"entropies": _entropy_counts(claims)}
    if claims.is_pairwise:
        moved |= {what: {number} for what, number in claims.pair_stages.items()}
    for name, model in _summed_attributes(claims):
        sums, squares = MOMENT_L0_SENSITIVITIES[model]
        moved |= {f"{SUMS_OF}{name}": {sums}, f"{SQUARES_OF}{name}": {squares}}
    stated = {"deniability tests"}
    stated |= {"number of records"} if claims.document["profile"] == "paper" else set()
    for spend in claims.spends:
        what = spend.what
        require(spend.moved in moved.get(what, {1}), f"{what}: wrong count of numbers per record")
        times = claims.parameters["records"] if what == "deniability tests" else 1
        require(spend.times == times, f"{what}: wrong number of repetitions")
        has_cost = (spend.each is not None) == (what in stated)
        require(has_cost, f"{what}: a stated cost is missing or unexpected")
    return f"The {len(found)} spends are those of this mode with {len(claims.names)} attributes."


def _model_spends(claims: ManifestClaims) -> list[tuple[str, str]]:
    """List the spends of learning the model, and the part of the data of each, in order."""
    if claims.is_pairwise:
        spends = [(f"{VALUES_OF}{name}", "structure") for name in claims.names]
        return spends + [(what, "parameters") for what in claims.pair_stages]
    learnt = claims.parameters["graph"] == "learnt"
    spends = [("entropies", "structure"), ("number of records", "structure")] if learnt else []
    for name, model in zip(claims.names, claims.models, strict=True):
        summed = (RECORDS_OF, SUMS_OF, SQUARES_OF)
        kinds = (COUNTS_OF,) if model == "histogram" else summed
        spends += [(f"{kind}{name}", "parameters") for kind in kinds]
    return spends


def _summed_attributes(claims: ManifestClaims) -> list[tuple[str, str]]:
    """List the attributes learnt from sums of their values, with their model kind."""
    models = () if claims.is_pairwise else zip(claims.names, claims.models, strict=True)
    return [(name, model) for name, model in models if model != "histogram"]


def _entropy_counts(claims: ManifestClaims) -> set[int]:
    """Count the entropies: m(m+1)/2 + b·m for b bucketed attributes; every b without a schema."""
    m, schema = len(claims.names), claims.schema
    if schema is None:
        return {m * (m + 1) // 2 + b * m for b in range(m + 1)}
    return {m * (m + 1) // 2 + m * sum(attribute.is_bucketed for attribute in schema.attributes)}


def _check_noise(claims: ManifestClaims) -> str:
    """Check the law and sensitivity of every spend, and the threshold that follows from them."""
    parameters, paper = claims.parameters, claims.document["profile"] == "paper"
    gaussian, laplace = "rounded_gaussian", "discrete_laplace"
    structure = {laplace} if paper else {gaussian}
    laws = {"entropies": structure, "number of records": structure}
    laws["seed prefixes"] = {"truncated_geometric"}
    laws["deniability tests"] = {laplace}
    if claims.is_pairwise:
        laws |= {spend.what: {gaussian} for spend in claims.spends if spend.part != "seeds"}
    # The paper's noise is scaled to a change of 128 steps; the true change is at most 65 (Lemma 8).
    steps = {"entropies": {65} if paper else entropy_sensitivities(parameters["rows_max"])}
    counts = {(spend.law, spend.scale) for spend in claims.spends if _is_counts(spend)}
    require(len(counts) <= 1, "the attributes' counts do not all have the same noise")
    steps |= _sum_sensitivities(claims)
    _require_pair_budget(claims)
    if claims.composed_draft is not None:
        require_composed_draft(claims, claims.composed_draft)
    for spend in claims.spends:
        law_known = spend.law in laws.get(spend.what, {gaussian, laplace})
        require(law_known, f"{spend.what}: unexpected noise law")
        step_known = spend.sensitivity in steps.get(spend.what, {1})
        require(step_known, f"{spend.what}: wrong sensitivity")
        if spend.what == "seed prefixes":
            same = parameters["threshold"] == parameters["k"] + spend.r
            require(same, "the threshold is not k + r")
        if spend.what == "deniability tests":
            same = spend.scale == (parameters["epsilon0"],)
            require(same, "the noise of the deniability test's threshold does not match ε0")
    return "Noise laws, sensitivities and the threshold meet the theorems' conditions."


def _is_counts(spend: ManifestSpend) -> bool:
    return spend.what.startswith(COUNTS_OF)


def _require_pair_budget(claims: ManifestClaims) -> None:
    """Require the fixed split of the pairs' budget, in μ².

    Interactions of pairs have a half. Of the other half, three-way interactions have the share of
    the two-way tables that are reserved for them, and the other tables have the rest.
    """
    squares = {
        spend.what: spend.moved / spend.scale[0] ** 2
        for spend in claims.spends
        if spend.what in (*PAIR_SPENDS, THREE_WAY_SPEND) and spend.law != "exact"
    }
    if PAIR_SPENDS[0] in squares:
        interactions, tables = squares[PAIR_SPENDS[0]], squares[PAIR_SPENDS[1]]
        three_way = squares.get(THREE_WAY_SPEND, 0.0)
        known = _three_way_square(claims, tables, is_measured=three_way > 0)
        same = abs(interactions - tables - three_way) <= 1e-9 * (interactions + tables)
        same = same and abs(three_way - known) <= 1e-9 * (three_way + known)
        require(same, "the stages of the pair measurement split their budget incorrectly")
    elif squares:
        # Interactions are omitted only if a half of this budget would need noise whose table is
        # longer than any: else a file's manifest could hide them.
        every = len(claims.names) * (len(claims.names) - 1) // 2
        sigma = math.sqrt(NUMBERS_PER_PAIR * every / (squares[PAIR_SPENDS[1]] / 2))
        require(12.5 * sigma > _MAX_RADIUS, "the interactions of pairs are missing")


def _three_way_square(claims: ManifestClaims, tables: float, *, is_measured: bool) -> float:
    """Compute μ² of three-way interactions, given that of the two-way tables.

    They are omitted only if attributes have too few or too many triples, or if they would need
    noise whose table is longer than any.
    """
    reserved, number = claims.reserved_tables, claims.pair_stages[PAIR_SPENDS[1]]
    each = tables / number
    if is_measured or not reserved:
        return reserved * each
    sigma = math.sqrt(NUMBERS_PER_TRIPLE * math.comb(len(claims.names), 3) / (reserved * each))
    require(12.5 * sigma > _MAX_RADIUS, "the three-way interactions are missing")
    return 0.0


def _sum_sensitivities(claims: ManifestClaims) -> dict[str, set[int]]:
    """List the valid sensitivities of sums and sums of squares: B and B², for the attribute's B.

    Also require that each of the three kinds costs a third of a table of counts, in μ² or ε.
    """
    spends = {spend.what: spend for spend in claims.spends}
    steps: dict[str, set[int]] = {}
    costs = [_additive_cost(spend) for spend in claims.spends if _is_counts(spend)]
    for name, _ in _summed_attributes(claims):
        kinds = [spends[f"{kind}{name}"] for kind in (RECORDS_OF, SUMS_OF, SQUARES_OF)]
        bound = kinds[1].sensitivity
        steps |= {kinds[1].what: _VALUE_BOUNDS, kinds[2].what: {bound * bound}}
        costs += [3 * _additive_cost(spend) for spend in kinds]
        require(len({spend.law for spend in kinds}) == 1, f"{name}: its sums mix two noise laws")
    same = not costs or max(costs) <= min(costs) * (1 + 1e-9)
    require(same or not steps, "the sums of an attribute do not cost a third of a table each")
    return steps


def _additive_cost(spend: ManifestSpend) -> float:
    """Compute a cost that adds up over spends of one law: μ² for Gaussian, ε for Laplace noise."""
    if spend.law == "rounded_gaussian":
        return float(spend.moved * (spend.sensitivity / spend.scale[0]) ** 2)
    return float(spend.moved * spend.sensitivity * spend.scale[0])


def _check_single_costs(claims: ManifestClaims) -> str:
    """Check the claimed cost of each spend alone, at the requested δ."""
    delta = claims.parameters["delta"]
    known: dict[ManifestSpend, float] = {}
    for spend in claims.spends:
        require(spend.claimed[1] == round_up(delta), f"{spend.what}: its δ is not the requested δ")
        kind = replace(spend, what="", part="", claimed=(0.0, 0.0))
        if kind not in known:
            known[kind] = compute_epsilon([spend], delta=delta)
        what = f"{spend.what} alone"
        require_close(spend.claimed[0], known[kind], losses=count_losses([spend]), what=what)
    return "The claimed cost of each spend alone is correct."


def _check_total(claims: ManifestClaims) -> str:
    """Check the claimed total cost of all spends, at the claimed δ."""
    cost, parameters, spends = claims.cost_per_row, claims.parameters, claims.spends
    if claims.composed_draft is not None:
        return check_composed_total(claims)
    if "fractions" in parameters:
        exact = compute_split_epsilon(spends, parameters["fractions"], delta=cost.delta)
    else:
        exact = compute_epsilon(spends, delta=cost.delta)
    tests = [spend for spend in spends if spend.what == "deniability tests"]
    added = exact
    if tests and "fractions" not in parameters:
        # The cost of very many tests may be added to the model's, instead of composed with it.
        model = [spend for spend in spends if spend not in tests]
        added = sum(compute_epsilon(part, delta=cost.delta / 2) for part in (tests, model))
    losses = count_losses(spends)
    require_close(cost.epsilon, exact, at_most=added, losses=losses, what="all spends")
    at = f"at δ = {cost.delta:.6g}"
    return f"All spends together cost ε = {exact:.6g} {at}; ε = {cost.epsilon:.6g} is claimed."


def _check_budget(claims: ManifestClaims) -> str:
    """Check that the claim is within the requested (ε, δ); the paper's ε formula may exceed it."""
    parameters, cost = claims.parameters, claims.cost
    limit = math.inf if claims.document["profile"] == "paper" else parameters["epsilon"]
    require(cost.epsilon <= limit, "the claimed ε exceeds the requested ε")
    within = 0 < cost.delta <= round_up(parameters["delta"])
    require(within, "the claimed δ exceeds the requested δ")
    requested = f"ε = {parameters['epsilon']} and δ = {parameters['delta']}"
    if cost.epsilon > parameters["epsilon"]:
        return f"The paper's formula meets the requested {requested}; the true ε is higher."
    return f"The claim is within the requested {requested}."
