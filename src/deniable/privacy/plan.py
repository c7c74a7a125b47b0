"""Plan: what every stage will cost and the noise it means, before a row is read.

The cost follows from public facts alone: how many attributes, how many entropies, what was asked
for. So a plan can be made, shown and refused without the data; and what was spent must equal it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from deniable.errors import BudgetError
from deniable.privacy import laws
from deniable.privacy.composition import (
    Guarantee,
    gaussian_mu,
    optimal,
    partitioned,
    tables_noise,
)
from deniable.privacy.entropies import EXACT_BITS, EntropyScale
from deniable.privacy.guarantee import structure_noise
from deniable.privacy.laws import Law
from deniable.privacy.ledger import PARTS, Part, Spend, cost_of, is_heavy, weights_of
from deniable.privacy.mixture import Atoms, mixture_delta
from deniable.privacy.paper import PaperNoise, paper_noise

# Shares of what is asked for, chosen before any data: the seeds' part of ε, the structure's part
# of what is left (as variance), and how much of δ may go to the histogram's edge.
SEEDS_SHARE = 0.25
STRUCTURE_SHARE = 0.1
EDGE_SHARE = 0.5
# The probabilities of the parts where each record serves one, with seeds and without.
SPLIT: Mapping[Part, float] = {"structure": 0.2, "parameters": 0.4, "seeds": 0.4}
SPLIT_SEEDLESS: Mapping[Part, float] = {"structure": 0.3, "parameters": 0.7}
SPLIT_OF_PAPER: Mapping[Part, float] = {"structure": 0.187, "parameters": 0.187, "seeds": 0.492}
# No plan spends more than this, however much is allowed: beyond, nothing is certified.
LARGEST_EPSILON = 38.0
# Units of S to the bit: the finest whose noise fits a table.
_NOISY_BITS = (4, 3, 2, 1, 0)
# Twice this share of δ is left to the certificate: to its grid, and to the tables of noise.
_MOST_ROUNDING = 0.05
# What is certified must not exceed what was asked for. The certificate rounds up on a grid, which
# calibration does not see, so it aims a little below, and lower where that was not enough.
_AIMS = (1 - 1e-5, 1 - 1e-3, 1 - 1e-2, 0.97, 0.9, 0.8)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a plan follows from: public, and nothing of it read off the data.

    Attributes:
        limit: (ε, δ) asked for; of the model alone where it does not cover the seeds.
        names: The attributes that are learnt; each has a table.
        queries: How many distinct entropies structure learning asks for; 0: a graph is given.
        rows_max: A public guess of the number of rows; steers rounding only.
        lengths: How many prefix lengths have a histogram; 0: none.
        fractions: The probability of each part, where each record serves one; None: all rows
            serve every stage.
        test: The deniability test of every record asked for, where it is paid for.
        of_paper: Whether the noise is the paper's, with which its own formula meets the limit;
            what it truly costs may then be more.
    """

    limit: Guarantee
    names: tuple[str, ...]
    queries: int
    rows_max: int
    lengths: int = 0
    fractions: Mapping[Part, float] | None = None
    test: Spend | None = None
    of_paper: bool = False

    def __hash__(self) -> int:
        return hash(repr(self))


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
    """

    scale: EntropyScale
    entropy: Law = field(repr=False)
    records: Law = field(repr=False)
    counts: Law = field(repr=False)
    seeds: Law | None = field(repr=False)
    spends: tuple[Spend, ...]
    cost: Guarantee
    paper: PaperNoise | None = None


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """The scales of the noise, before there are tables of it."""

    mu_structure: float
    counts: Law
    seeds: Law | None


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
        noise = _Noise(mu_structure=math.inf, counts=exact, seeds=exact if facts.lengths else None)
        return _plan_of(facts, noise)
    if facts.of_paper:
        return _plan_of_paper(facts)
    _require_delta(facts)
    # Whatever meets a smaller ε meets a larger one, and so little noise is of no more use.
    asked = min(facts.limit.epsilon, LARGEST_EPSILON)
    for aim in _AIMS:
        limit = Guarantee(epsilon=aim * asked, delta=facts.limit.delta)
        plan = _plan_of(facts, _calibrate(facts, limit))
        if plan.cost.within(facts.limit):
            return plan
    raise BudgetError(
        f"ε = {facts.limit.epsilon:g} and δ = {facts.limit.delta:g} cannot be met: the stages "
        f"would cost ε = {plan.cost.epsilon:.4g}. Ask for a larger δ or ε."
    )


def spends_of(
    facts: Facts, *, scale: EntropyScale, entropy: Law, records: Law, counts: Law, seeds: Law | None
) -> tuple[Spend, ...]:
    """Return every use of the data that a run will make: what the ledger must equal."""
    spends = []
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
    spends += [
        Spend(what=f"counts of {name}", part="parameters", law=counts) for name in facts.names
    ]
    if seeds is not None:
        spends.append(Spend(what="seed prefixes", part="seeds", law=seeds, moved=facts.lengths))
    if facts.test is not None:
        spends.append(facts.test)
    return tuple(spends)


def _plan_of(facts: Facts, noise: _Noise) -> Plan:
    """Return the plan with this noise, and what it costs."""
    chosen = _structure(facts, noise.mu_structure)
    scale, entropy, records = chosen
    spends = spends_of(
        facts,
        scale=scale,
        entropy=entropy,
        records=records,
        counts=noise.counts,
        seeds=noise.seeds,
    )
    return Plan(
        scale=scale,
        entropy=entropy,
        records=records,
        counts=noise.counts,
        seeds=noise.seeds,
        spends=spends,
        cost=total_cost(spends, delta=facts.limit.delta, fractions=facts.fractions),
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


def _structure(facts: Facts, mu: float) -> tuple[EntropyScale, Law, Law]:
    """Return the unit of S and the noise of entropies and records at this μ (Lemma 9)."""
    if mu == math.inf or not facts.queries:
        scale = EntropyScale(rows_max=facts.rows_max, bits=EXACT_BITS)
        return scale, laws.exact(), laws.exact()
    for bits in _NOISY_BITS:
        scale = EntropyScale(rows_max=facts.rows_max, bits=bits)
        sigma, sigma_n = structure_noise(queries=facts.queries, step=scale.most, mu=mu)
        if laws.gaussian_reach(sigma) <= laws.WIDEST:
            return scale, laws.rounded_gaussian(sigma), laws.rounded_gaussian(sigma_n)
    raise BudgetError(
        f"{facts.queries:,} entropies are too many for ε = {facts.limit.epsilon:g}: their noise "
        "needs a table above 2^26. Ask for a larger ε, or give a graph."
    )


def _calibrate(facts: Facts, limit: Guarantee) -> _Noise:
    """Return the noise of every stage that together costs about ``limit``."""
    if facts.fractions is not None:
        return _calibrate_parts(facts, facts.fractions, limit)
    test = facts.test
    if test is not None and test.each is not None and is_heavy(test.each, test.times):
        return _calibrate_whole(replace(facts, test=None), _less(limit, test))
    return _calibrate_whole(facts, limit)


def _less(limit: Guarantee, test: Spend) -> Guarantee:
    """Return what tested records leave of the limit: half of δ, and what of ε they do not cost."""
    if test.each is None:
        return limit
    half = limit.delta / 2
    left = limit.epsilon - optimal(test.each, times=test.times, delta=half).epsilon
    if left <= 0:
        raise BudgetError(
            "nothing is left for the model: the records cost all that was asked for. Ask for "
            "fewer records, a larger k, a larger ε, or --mode one-shot."
        )
    return Guarantee(epsilon=left, delta=half)


def _calibrate_whole(facts: Facts, limit: Guarantee) -> _Noise:
    """Return the least noise with which all stages, on all records, stay in the limit."""
    epsilon, delta = limit.epsilon, limit.delta
    atoms, seeds = Atoms.none(), None
    if facts.lengths:
        seeds = laws.bounded(
            epsilon=SEEDS_SHARE * epsilon, delta=EDGE_SHARE * delta, lengths=facts.lengths
        )
        atoms = Atoms.table(weights_of(seeds)).times(facts.lengths)
    if facts.test is not None and facts.test.each is not None:
        each = facts.test.each
        atoms = Atoms.stated(each.epsilon, each.delta, times=facts.test.times)
    tables = len(facts.names)
    for_structure = STRUCTURE_SHARE if facts.queries else 0.0

    def each_table(mu: float) -> float:
        return mu * math.sqrt((1 - for_structure) / tables)

    def with_laplace(mu: float) -> float:
        together = atoms.compose(Atoms.laplace(each_table(mu)).times(tables))
        return mixture_delta(epsilon=epsilon, mu=mu * math.sqrt(for_structure), atoms=together)

    def with_gaussian(mu: float) -> float:
        return mixture_delta(epsilon=epsilon, mu=mu, atoms=atoms)

    aim = delta * (1 - 2 * _MOST_ROUNDING)
    mu_laplace, mu_gaussian = _largest(with_laplace, aim), _largest(with_gaussian, aim)
    if math.sqrt(2) / each_table(mu_laplace) <= 1 / each_table(mu_gaussian):
        counts = laws.discrete_laplace(each_table(mu_laplace))
        return _Noise(
            mu_structure=mu_laplace * math.sqrt(for_structure), counts=counts, seeds=seeds
        )
    counts = laws.rounded_gaussian(1 / each_table(mu_gaussian))
    return _Noise(mu_structure=mu_gaussian * math.sqrt(for_structure), counts=counts, seeds=seeds)


def _calibrate_parts(facts: Facts, fractions: Mapping[Part, float], limit: Guarantee) -> _Noise:
    """Return the noise of each part when every part may cost the same (guarantee.md, Theorem 10).

    ε = ln(1 + Σ p_j (e^ε_j - 1)) solved for one ε_j.
    """
    used = [part for part in PARTS if part in fractions]
    whole = sum(fractions[part] for part in used)
    each = math.log1p(math.expm1(limit.epsilon) / whole)
    delta = limit.delta * (1 - 2 * _MOST_ROUNDING)
    tables = tables_noise(tables=len(facts.names), epsilon=each, delta=delta)
    if tables.law == "discrete_laplace":
        counts = laws.discrete_laplace(1 / tables.scale)
    else:
        counts = laws.rounded_gaussian(tables.scale)
    seeds = None
    if facts.lengths:
        seeds = laws.bounded(epsilon=each, delta=delta, lengths=facts.lengths)
    mu = gaussian_mu(epsilon=each, delta=delta)
    return _Noise(mu_structure=mu, counts=counts, seeds=seeds)


def _require_delta(facts: Facts) -> None:
    if facts.limit.delta <= 0:
        raise BudgetError(
            "δ = 0 cannot be met: the noise of entropies and seeds needs some. Ask for a δ far "
            "below one in the number of rows, such as 1e-9."
        )


def _largest(delta_of: Callable[[float], float], limit: float) -> float:
    """Return the largest μ with ``delta_of(μ)`` within the limit, rounded down."""
    low, high = 0.0, 1e-3
    while delta_of(high) <= limit:
        low, high = high, 2 * high
        if high > 1e6:
            return low
    for _ in range(60):
        half = (low + high) / 2
        low, high = (half, high) if delta_of(half) <= limit else (low, half)
    if low == 0.0:
        raise BudgetError(
            "nothing is left for the model: seeds and records cost all that was asked for. Ask "
            "for fewer records, a larger k, a larger ε, or --mode one-shot."
        )
    return low
