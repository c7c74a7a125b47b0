"""Plan: what every stage will cost and the noise it means, before a row is read.

The cost follows from public facts alone: how many attributes, how many entropies, what was asked
for. So a plan can be made, shown and refused without the data; and what was spent must equal it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from deniable.errors import BudgetError
from deniable.privacy import laws
from deniable.privacy.composition import (
    Guarantee,
    partitioned,
)
from deniable.privacy.entropies import EXACT_BITS, EntropyScale
from deniable.privacy.laws import Law
from deniable.privacy.ledger import PARTS, Part, Spend, cost_of
from deniable.privacy.moments import TableModel, spends_of_table
from deniable.privacy.pairs import PairNoise, pair_noise
from deniable.privacy.paper import PaperNoise, paper_noise
from deniable.privacy.parts import Facts, Noise, calibrate, structure_laws

# The probabilities of the parts where each record serves one, with seeds and without.
SPLIT: Mapping[Part, float] = {"structure": 0.2, "parameters": 0.4, "seeds": 0.4}
SPLIT_SEEDLESS: Mapping[Part, float] = {"structure": 0.3, "parameters": 0.7}
SPLIT_OF_PAPER: Mapping[Part, float] = {"structure": 0.187, "parameters": 0.187, "seeds": 0.492}
# No plan spends more than this, however much is allowed: beyond, nothing is certified.
LARGEST_EPSILON = 38.0
# What is certified must not exceed what was asked for. The certificate rounds up, some of it on a
# grid that calibration does not see: it aims a little below, and lower where that was not enough.
_AIMS = (1 - 1e-5, 1 - 1e-3, 1 - 1e-2, 0.97, 0.9, 0.8)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The noise of every stage, every use of the data it allows, and what they cost together.

    Attributes:
        scale: The unit of the entropies.
        entropy: The noise of each entropy.
        records: The noise of the number of records.
        counts: The noise of every count of the conditional tables.
        seeds: The bounded noise of the seed histogram, where there is one.
        spends: Every use of the data.
        cost: The certified (ε, δ), never above what was asked for.
        paper: The paper's noise, in its profile.
        pairs: The noise of values and pairs, where those are learnt.
    """

    scale: EntropyScale
    entropy: Law = field(repr=False)
    records: Law = field(repr=False)
    counts: Law = field(repr=False)
    seeds: Law | None = field(repr=False)
    spends: tuple[Spend, ...]
    cost: Guarantee
    paper: PaperNoise | None = None
    pairs: PairNoise | None = None


def split_of(*, seeds: bool, of_paper: bool) -> dict[Part, float]:
    """Return the probabilities of the parts, where each record serves one."""
    if of_paper:
        return {part: p for part, p in SPLIT_OF_PAPER.items() if seeds or part != "seeds"}
    return dict(SPLIT if seeds else SPLIT_SEEDLESS)


@lru_cache(maxsize=64)
def make_plan(facts: Facts) -> Plan:
    """Return the plan that meets ``facts.limit`` with the least noise we know.

    Raises:
        BudgetError: The limit cannot be met.

    Privacy:
        Neighbours: add or remove one record.
        Covers: every use of the data listed in ``spends``, together, by privacy loss
            distributions; under a split by guarantee.md, Theorem 10.
    """
    if facts.limit.epsilon == math.inf:
        exact = laws.exact()
        pairs = None
        if facts.sizes:
            pairs = pair_noise(facts.sizes, mu_values=math.inf, mu_pairs=math.inf)
        seeds = exact if facts.lengths else None
        return _plan_of(facts, Noise(mu_structure=math.inf, counts=exact, seeds=seeds, pairs=pairs))
    if facts.of_paper:
        return _plan_of_paper(facts)
    _require_delta(facts)
    # Whatever meets a smaller ε meets a larger one, and so little noise is of no more use.
    asked = min(facts.limit.epsilon, LARGEST_EPSILON)
    for aim in _AIMS:
        limit = Guarantee(epsilon=aim * asked, delta=facts.limit.delta)
        plan = _plan_of(facts, calibrate(facts, limit))
        if plan.cost.within(facts.limit):
            return plan
    raise BudgetError(
        f"ε = {facts.limit.epsilon:g} and δ = {facts.limit.delta:g} cannot be met: the stages "
        f"would cost ε = {plan.cost.epsilon:.4g}. Ask for a larger δ or ε."
    )


def spends_of(
    facts: Facts,
    *,
    scale: EntropyScale,
    entropy: Law,
    records: Law,
    counts: Law,
    seeds: Law | None,
    pairs: PairNoise | None = None,
) -> tuple[Spend, ...]:
    """Return every use of the data that a run will make: what the ledger must equal."""
    spends = [] if pairs is None else pairs.spends(facts.names)
    if facts.queries:
        half = scale.most // 2
        spends += [
            Spend(
                what="entropies",
                part="structure",
                law=entropy,
                sensitivity=half,
                moved=facts.queries,
            ),
            Spend(what="number of records", part="structure", law=records),
        ]
    if pairs is None:
        plain: list[TableModel] = ["histogram"] * len(facts.names)
        models = facts.models or plain
        for name, model in zip(facts.names, models, strict=True):
            spends += spends_of_table(name, model, counts)
    if seeds is not None:
        spends.append(Spend(what="seed prefixes", part="seeds", law=seeds, moved=facts.lengths))
    if facts.test is not None:
        spends.append(facts.test)
    return tuple(spends)


def _plan_of(facts: Facts, noise: Noise) -> Plan:
    """Return the plan with this noise, and what it costs."""
    chosen = structure_laws(facts, noise.mu_structure)
    scale, entropy, records = chosen
    spends = spends_of(
        facts,
        scale=scale,
        entropy=entropy,
        records=records,
        counts=noise.counts,
        seeds=noise.seeds,
        pairs=noise.pairs,
    )
    return Plan(
        scale=scale,
        entropy=entropy,
        records=records,
        counts=noise.counts,
        seeds=noise.seeds,
        spends=spends,
        cost=total_cost(spends, delta=facts.limit.delta, fractions=facts.fractions),
        pairs=noise.pairs,
    )


def _plan_of_paper(facts: Facts) -> Plan:
    """Return the plan with the paper's noise, at its true cost, which may exceed the limit."""
    fractions = facts.fractions
    if fractions is None:
        raise BudgetError("the paper's formulas are for --data-use split: each row serves one part")
    paper = paper_noise(facts.limit, attributes=len(facts.names), fractions=fractions)
    counted = replace(facts, queries=0)
    exact = laws.exact()
    scale = EntropyScale(rows_max=facts.rows_max, bits=EXACT_BITS)
    rest = spends_of(
        counted, scale=scale, entropy=exact, records=exact, counts=paper.counts, seeds=None
    )
    structure = paper.structure.spends(facts.queries) if facts.queries else ()
    spends = (*structure, *rest)
    return Plan(
        scale=scale,
        entropy=paper.structure.entropy,
        records=paper.structure.records,
        counts=paper.counts,
        seeds=None,
        spends=spends,
        cost=total_cost(spends, delta=facts.limit.delta, fractions=fractions),
        paper=paper,
    )


def total_cost(
    spends: tuple[Spend, ...], *, delta: float, fractions: Mapping[Part, float] | None
) -> Guarantee:
    """Return what all uses of the data cost together.

    Privacy:
        Neighbours: add or remove one record of the whole table.
        Covers: all outputs together; with ``fractions``, for records that each serve one part
            by an independent, secret draw (guarantee.md, Theorem 10).
    """
    if fractions is None:
        return cost_of(spends, delta=delta)
    # Every part may have δ / Σ p: then neither term of the theorem's δ' is above δ.
    each = delta / sum(fractions.values()) * (1 - 1e-9)
    parts = []
    for part in PARTS:
        used = tuple(spend for spend in spends if spend.part == part)
        if used:
            parts.append((fractions[part], cost_of(used, delta=each)))
    if any(cost.epsilon == math.inf for _, cost in parts):
        return Guarantee(epsilon=math.inf, delta=0.0)
    return partitioned(parts)


def _require_delta(facts: Facts) -> None:
    if facts.limit.delta <= 0:
        raise BudgetError(
            "δ = 0 cannot be met: the noise of entropies and seeds needs some. Ask for a δ far "
            "below one in the number of rows, such as 1e-9."
        )
