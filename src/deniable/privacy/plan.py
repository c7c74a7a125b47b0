"""Privacy plan: the noise of every stage, all planned spends, and their total cost.

A plan follows from public facts only: the attributes, the number of entropies, the requested
(ε, δ). It can be made, shown and refused before any row is read. The ledger of the run must equal
it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from deniable.errors import BudgetError, ConfigError
from deniable.privacy import noise_laws
from deniable.privacy.calibration import NoiseScales, PublicFacts, calibrate, structure_laws
from deniable.privacy.composition import Guarantee, random_partition
from deniable.privacy.draft_mechanism import TABLE_GROWTH, DraftMechanism
from deniable.privacy.entropy_scale import EXACT_BITS, EntropyScale
from deniable.privacy.ledger import PARTS, Part, Spend, compose_spends
from deniable.privacy.moment_budget import TableModel, table_spends
from deniable.privacy.noise_laws import Law
from deniable.privacy.pairwise_budget import (
    PairNoise,
    count_tables,
    interactions_spend,
    pair_noise,
    three_way_spend,
)
from deniable.privacy.paper_noise import PaperNoise, paper_noise

# Probabilities of the parts if each record serves one: with seeds, without, and in the paper.
SPLIT: Mapping[Part, float] = {"structure": 0.2, "parameters": 0.4, "seeds": 0.4}
SPLIT_SEEDLESS: Mapping[Part, float] = {"structure": 0.3, "parameters": 0.7}
PAPER_SPLIT: Mapping[Part, float] = {"structure": 0.187, "parameters": 0.187, "seeds": 0.492}
# Largest ε of a plan, whatever the limit: a larger one cannot be certified.
MAX_PLANNED_EPSILON = 38.0
# Fractions of ε to calibrate for, in order. The certified cost must not exceed the limit, but it is
# rounded up, partly on a grid that calibration does not use; so calibration aims below the limit.
_EPSILON_FRACTIONS = (1 - 1e-5, 1 - 1e-3, 1 - 1e-2, 0.97, 0.9, 0.8)
# The fraction of a run that is composed with a private draft: one for all schemas. The relative
# error of all noise tables must be at most half of what it leaves, and of 0.001.
_FRACTION_AFTER_DRAFT = 1 - 1e-3
_MAX_GROWTH_AFTER_DRAFT = 5e-4
_MAX_EPSILON_AFTER_DRAFT = 16.0


@dataclass(frozen=True, kw_only=True)
class PlannedNoise:
    """Noise of every stage.

    Attributes:
        scale: Unit of the entropies.
        entropy: Noise of each entropy.
        records: Noise of the number of records.
        counts: Noise of every count of the conditional tables.
        seeds: Bounded noise of the seed histogram, if there is one.
        paper: The paper's noise, in the paper's profile.
        pairs: Noise of one-way and two-way tables, if those are learnt.
    """

    scale: EntropyScale
    entropy: Law = field(repr=False)
    records: Law = field(repr=False)
    counts: Law = field(repr=False)
    seeds: Law | None = field(repr=False)
    paper: PaperNoise | None = None
    pairs: PairNoise | None = None


@dataclass(frozen=True, kw_only=True)
class Plan(PlannedNoise):
    """Noise of every stage, all spends, and their total cost.

    Attributes:
        spends: All uses of the data that the run makes.
        cost: Certified (ε, δ); within the limit, except with the paper's noise.
        draft: Ledger entry of a private draft, if ``cost`` covers it.
    """

    spends: tuple[Spend, ...]
    cost: Guarantee
    draft: Spend | None = None

    @property
    def entries(self) -> tuple[Spend, ...]:
        """All uses of the data that ``cost`` covers."""
        return self.spends if self.draft is None else (self.draft, *self.spends)


def require_record_count(number: object) -> None:
    """Refuse a number of records that is not an integer, or less than one."""
    if type(number) is not int:  # no bool, and no float that happens to be whole
        raise ConfigError(f"records = {number!r}: must be an integer of type int")
    if number < 1:
        raise ConfigError(f"records = {number}: ask for at least 1")


def split_fractions(*, seeds: bool, of_paper: bool) -> dict[Part, float]:
    """Probabilities of the parts, if each record serves one."""
    if of_paper:
        return {part: p for part, p in PAPER_SPLIT.items() if seeds or part != "seeds"}
    return dict(SPLIT if seeds else SPLIT_SEEDLESS)


@lru_cache(maxsize=64)
def make_plan(facts: PublicFacts) -> Plan:
    """Plan a run within ``facts.limit`` with as little noise as possible.

    Raises:
        BudgetError: The limit cannot be met.

    Privacy:
        Neighbours: add or remove one record.
        Covers: all ``spends`` together, by privacy loss distributions; with a split, by
            guarantee.md, Theorem 10.
    """
    if facts.limit.epsilon == math.inf:
        exact = noise_laws.exact()
        pairs = None
        if facts.sizes:
            pairs = pair_noise(facts.sizes, mu_values=math.inf, mu_pairs=math.inf)
        seeds = exact if facts.seeds else None
        scales = NoiseScales(mu_structure=math.inf, counts=exact, seeds=seeds, pairs=pairs)
        noise = _planned_noise(facts, scales)
        spends = planned_spends(facts, noise)
        return Plan(**vars(noise), spends=spends, cost=Guarantee(epsilon=math.inf))
    if facts.of_paper:
        return _plan_with_paper_noise(facts)
    _require_delta(facts)
    if facts.draft is not None:
        return _plan_after_draft(facts, facts.draft)
    # A plan for a smaller ε also meets a larger one, and less noise would not help any more.
    target = min(facts.limit.epsilon, MAX_PLANNED_EPSILON)
    for fraction in _EPSILON_FRACTIONS:
        limit = Guarantee(epsilon=fraction * target, delta=facts.limit.delta)
        noise = _planned_noise(facts, calibrate(facts, limit))
        spends = planned_spends(facts, noise)
        if facts.fractions is None:
            cost = compose_spends(spends, delta=limit.delta)
        else:
            cost = split_cost(spends, delta=limit.delta, fractions=facts.fractions)
        if cost.within(facts.limit):
            return Plan(**vars(noise), spends=spends, cost=cost)
    raise BudgetError(
        f"ε = {facts.limit.epsilon:g} and δ = {facts.limit.delta:g} cannot be met: the stages "
        f"would cost ε = {cost.epsilon:.4g}. Ask for a larger δ or ε."
    )


def composes_with_draft(draft: DraftMechanism, *, attributes: int, epsilon: float) -> bool:
    """Test whether a pairwise run can be composed with a private draft of its schema.

    The errors of the noise tables must be small for every schema that the draft could have given.
    """
    if epsilon > _MAX_EPSILON_AFTER_DRAFT:
        return False
    # Three columns at the least: then all stages measure something.
    columns = max(draft.columns, attributes, 3)
    numbers = columns + 2 * count_tables(columns)
    numbers += interactions_spend(columns, noise_laws.exact()).l0_sensitivity
    numbers += three_way_spend(min(columns, 31), noise_laws.exact()).l0_sensitivity
    return numbers * TABLE_GROWTH <= _MAX_GROWTH_AFTER_DRAFT * min(epsilon, 1.0)


def _plan_after_draft(facts: PublicFacts, draft: DraftMechanism) -> Plan:
    """Plan a run that is composed with a private draft of its schema.

    The cost is the limit, whatever the schema: a smaller one that follows from the schema would
    follow from the table.

    Privacy:
        Neighbours: add or remove one record.
        Covers: the draft and the run together (guarantee.md, Theorem 14).
    """
    total = facts.limit
    limit = draft.limit_without_texts(total)
    aim = Guarantee(epsilon=_FRACTION_AFTER_DRAFT * limit.epsilon, delta=limit.delta)
    noise = _planned_noise(facts, calibrate(facts, aim))
    plan = Plan(**vars(noise), spends=planned_spends(facts, noise), cost=total, draft=draft.spend)
    if not compose_spends(plan.entries, delta=limit.delta).within(limit):
        raise BudgetError(
            f"ε = {total.epsilon:g} and δ = {total.delta:g} cannot be met together with the "
            "private draft of the schema. Ask for a larger δ or ε."
        )
    return plan


def planned_spends(facts: PublicFacts, noise: PlannedNoise) -> tuple[Spend, ...]:
    """List all uses of the data that a run will make; the ledger must equal them."""
    spends = [] if noise.pairs is None else noise.pairs.spends(facts.names)
    if facts.queries:
        spends += [
            Spend(
                what="entropies",
                part="structure",
                law=noise.entropy,
                sensitivity=noise.scale.sensitivity // 2,
                l0_sensitivity=facts.queries,
            ),
            Spend(what="number of records", part="structure", law=noise.records),
        ]
    if noise.pairs is None:
        histograms: list[TableModel] = ["histogram"] * len(facts.names)
        models = facts.models or histograms
        for name, model in zip(facts.names, models, strict=True):
            spends += table_spends(name, model, noise.counts)
    if noise.seeds is not None:
        spends.append(Spend(what="seed prefixes", part="seeds", law=noise.seeds))
    if facts.test is not None:
        spends.append(facts.test)
    return tuple(spends)


def _planned_noise(facts: PublicFacts, scales: NoiseScales) -> PlannedNoise:
    """Complete the calibrated noise by that of the entropies."""
    scale, entropy, records = structure_laws(facts, scales.mu_structure)
    return PlannedNoise(
        scale=scale,
        entropy=entropy,
        records=records,
        counts=scales.counts,
        seeds=scales.seeds,
        pairs=scales.pairs,
    )


def _plan_with_paper_noise(facts: PublicFacts) -> Plan:
    """Build the plan with the paper's noise. Its true cost may exceed the limit."""
    fractions = facts.fractions
    if fractions is None:
        raise BudgetError(
            "the paper's formulas need --data-use split, where each row serves one part"
        )
    paper = paper_noise(facts.limit, attributes=len(facts.names), fractions=fractions)
    noise = PlannedNoise(
        scale=EntropyScale(rows_max=facts.rows_max, bits=EXACT_BITS),
        entropy=paper.structure.entropy,
        records=paper.structure.records,
        counts=paper.counts,
        seeds=None,
        paper=paper,
    )
    structure = paper.structure.spends(facts.queries) if facts.queries else ()
    spends = (*structure, *planned_spends(replace(facts, queries=0), noise))
    cost = split_cost(spends, delta=facts.limit.delta, fractions=fractions)
    return Plan(**vars(noise), spends=spends, cost=cost)


def split_cost(
    spends: tuple[Spend, ...], *, delta: float, fractions: Mapping[Part, float]
) -> Guarantee:
    """Compose all uses of the data, across the parts of a split.

    Privacy:
        Neighbours: add or remove one record of the whole table.
        Covers: all outputs together.
        Assumes: each record serves one part, chosen by an independent, secret draw (guarantee.md,
            Theorem 10).
    """
    # Each part gets δ / Σ p, so that neither term of the theorem's δ' exceeds δ.
    each = delta / sum(fractions.values()) * (1 - 1e-9)
    parts = []
    for part in PARTS:
        used = tuple(spend for spend in spends if spend.part == part)
        if used:
            parts.append((fractions[part], compose_spends(used, delta=each)))
    if any(cost.epsilon == math.inf for _, cost in parts):
        return Guarantee(epsilon=math.inf, delta=0.0)
    return random_partition(parts)


def _require_delta(facts: PublicFacts) -> None:
    if facts.limit.delta <= 0:
        raise BudgetError(
            "δ = 0 is not possible: Gaussian noise and the seed histogram need δ > 0. Use a δ far "
            "below 1 / (number of rows), such as 1e-9."
        )
