"""Split the privacy budget among stages and calibrate each stage's noise.

Calibration uses public facts only. It never sees the data.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deniable.errors import BudgetError
from deniable.privacy import noise_laws
from deniable.privacy.composition import (
    Guarantee,
    gaussian_mu,
    optimal_composition,
    smaller_table_noise,
    upper_bound,
)
from deniable.privacy.discrete_losses import DiscreteLoss, mixture_delta
from deniable.privacy.draft_mechanism import DraftMechanism
from deniable.privacy.entropy_scale import EXACT_BITS, EntropyScale
from deniable.privacy.ledger import (
    PARTS,
    TABLE_DELTA_SHARE,
    Part,
    Spend,
    exceeds_grid,
    table_weights,
)
from deniable.privacy.moment_budget import TableModel, laplace_excess
from deniable.privacy.noise_laws import Law
from deniable.privacy.pairwise_budget import PairNoise, pair_noise, pairwise_shares
from deniable.privacy.theorems import structure_noise

# Budget shares, fixed before any data is read: the seed histogram's smallest and largest share of
# ε, its share of δ, and the structure's share of the μ² that remains for the model. With a tenth of
# δ for the seeds instead of a half, the model has 2 % less noise, and r is a tenth larger.
SEEDS_EPSILON_SHARES = (0.005, 0.1)
SEEDS_DELTA_SHARE = 0.1
# What is reserved of ε for seeds in a run that is composed with a private draft, whatever the mode.
SEEDS_SHARE_AFTER_DRAFT = 0.02
STRUCTURE_SHARE = 0.1
# Next to a pairwise model: rows times ε for which seeds would have all of ε, their largest share,
# and their least ε, which bounds the table of their noise.
_SEEDS_ROWS = 2_500_000
_MAX_SHARE_OF_PAIRWISE_MODEL = 0.02
_MIN_SEEDS_EPSILON = 1e-4
# Next to the paper's model: the smallest share, and the target bound on the noise of a prefix
# count, as a share of the rows.
_MIN_SHARE_OF_PAPER_MODEL = 0.03
_SEEDS_NOISE_SHARE = 1 / 10
# Resolutions of S to try, finest first: 2^bits units per bit of entropy.
_ENTROPY_BITS = (4, 3, 2, 1, 0)


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """Public inputs of a plan. None of them is derived from the data.

    Attributes:
        limit: Requested (ε, δ): of the whole release, or of the model alone if the guarantee does
            not cover the seeds.
        names: Learnt attributes; each has a table.
        queries: Number of distinct entropies that structure learning measures; 0 if a graph is
            given.
        rows_max: Public guess of the number of rows; affects the noise, never the guarantee.
        seeds: Whether there is a seed histogram.
        fractions: Probability of each part, if each record serves one part; None if all rows
            serve every stage, as they do if ``sizes`` are given.
        test: Deniability tests of all requested records, if they are part of the cost.
        sizes: Domain size of each attribute, if one-way and two-way tables are learnt in place
            of structure and conditional tables; otherwise empty.
        models: Model of each attribute, if some are not histograms; otherwise empty.
        of_paper: Use the paper's noise, scaled so that the paper's own formula meets the limit.
            The true cost may exceed the limit.
        draft: A private draft of the schema that is part of the limit, if the run is composed
            with it. Then ``sizes`` are given.
    """

    limit: Guarantee
    names: tuple[str, ...]
    queries: int
    rows_max: int
    seeds: bool = False
    fractions: Mapping[Part, float] | None = None
    test: Spend | None = None
    sizes: tuple[int, ...] = ()
    models: tuple[TableModel, ...] = ()
    of_paper: bool = False
    draft: DraftMechanism | None = None

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, kw_only=True)
class NoiseScales:
    """Calibrated noise of every stage; ``mu_structure`` is μ of all entropies together."""

    mu_structure: float
    counts: Law
    seeds: Law | None
    pairs: PairNoise | None = None


def calibrate(facts: PublicFacts, limit: Guarantee) -> NoiseScales:
    """Choose the noise of every stage so that all stages together cost about ``limit``."""
    if facts.fractions is not None:
        return _calibrate_split(facts, facts.fractions, limit)
    if facts.draft is not None:
        return _calibrate_after_draft(facts, facts.draft, limit)
    test, seeds, discrete = facts.test, None, DiscreteLoss.zero()
    if test is not None and test.each is not None and exceeds_grid(test.each, test.times):
        limit, test = _limit_after_test(limit, test), None
    if facts.seeds:
        share = seeds_share(facts, limit)
        seeds = noise_laws.bounded_noise(
            epsilon=share * limit.epsilon, delta=SEEDS_DELTA_SHARE * limit.delta
        )
        discrete = discrete.compose(DiscreteLoss.from_table(table_weights(seeds)))
    if test is not None and test.each is not None:
        each = test.each
        discrete = DiscreteLoss.from_guarantee(each.epsilon, each.delta, times=test.times)
    epsilon = limit.epsilon
    mu = _largest_mu(lambda mu: mixture_delta(epsilon=epsilon, mu=mu, discrete=discrete), limit)
    if not facts.sizes:
        return _calibrate_tables(facts, limit, mu, seeds, discrete)
    return NoiseScales(
        mu_structure=mu, counts=noise_laws.exact(), seeds=seeds, pairs=_pair_noise_at(facts, mu)
    )


def _calibrate_after_draft(
    facts: PublicFacts, draft: DraftMechanism, limit: Guarantee
) -> NoiseScales:
    """Choose the noise of a run that is composed with a private draft of its schema.

    The schema follows from the draft, and options may be chosen after it was read. So what bounds
    the cost follows from neither: μ of draft and run together, and the (ε, δ) reserved for seeds,
    are fixed by the limit (guarantee.md, Theorem 14). The latter is reserved even if no prefix is
    kept.

    Privacy:
        Neighbours: add or remove one record.
        Covers: the draft's Gaussian noise, the run's, and seeds of at most the reserved (ε, δ).
        Does not cover: texts of a single row, and the errors of noise tables (``plan``).
    """
    epsilon, delta = SEEDS_SHARE_AFTER_DRAFT * limit.epsilon, SEEDS_DELTA_SHARE * limit.delta
    # Rounded up by more than the rounding of the table of bounded noise.
    reserved = DiscreteLoss.from_guarantee((1 + 1e-9) * epsilon, (1 + 1e-9) * delta, times=1)
    total = limit.epsilon
    mu = _largest_mu(lambda mu: mixture_delta(epsilon=total, mu=mu, discrete=reserved), limit)
    left = mu * mu - draft.mu**2
    if left <= 0:
        raise BudgetError(
            "the private draft of the schema has used the whole ε, and nothing is left for the "
            "run. Use a larger ε (up to 10): it is the total."
        )
    seeds = None
    if facts.seeds:
        seeds = noise_laws.bounded_noise(epsilon=epsilon, delta=delta)
    return NoiseScales(
        mu_structure=math.inf,
        counts=noise_laws.exact(),
        seeds=seeds,
        pairs=_pair_noise_at(facts, math.sqrt(left)),
    )


def _limit_after_test(limit: Guarantee, test: Spend) -> Guarantee:
    """Subtract the cost of tested records from the limit; they get half of δ."""
    if test.each is None:
        return limit
    half = limit.delta / 2
    left = limit.epsilon - optimal_composition(test.each, times=test.times, delta=half).epsilon
    if left <= 0:
        raise BudgetError(
            "no budget is left for the model: the records alone cost the whole ε. Ask for "
            "fewer records, a larger k, a larger ε (up to 10), or --mode one-shot."
        )
    return Guarantee(epsilon=left, delta=half)


def _calibrate_tables(
    facts: PublicFacts,
    limit: Guarantee,
    mu_gaussian: float,
    seeds: Law | None,
    discrete: DiscreteLoss,
) -> NoiseScales:
    """Choose Laplace or Gaussian noise for the tables of a graph, whichever is less.

    Args:
        facts: The public facts.
        limit: The limit of all stages together.
        mu_gaussian: μ of all Gaussian noise within the limit.
        seeds: The noise of the seed histogram.
        discrete: The loss of the seed histogram, or of the tested records.
    """
    tables = len(facts.names)
    structure_share = STRUCTURE_SHARE if facts.queries else 0.0

    def table_mu(mu: float) -> float:
        return mu * math.sqrt((1 - structure_share) / tables)

    def laplace_delta_at(mu: float) -> float:
        laplace = DiscreteLoss.from_laplace(table_mu(mu)).self_compose(tables)
        mu_structure = mu * math.sqrt(structure_share)
        return mixture_delta(
            epsilon=limit.epsilon, mu=mu_structure, discrete=discrete.compose(laplace)
        )

    mu_laplace = _largest_mu(laplace_delta_at, limit)
    excess = laplace_excess(facts.models)
    if excess * math.sqrt(2) / table_mu(mu_laplace) <= 1 / table_mu(mu_gaussian):
        mu, counts = mu_laplace, noise_laws.discrete_laplace(table_mu(mu_laplace))
    else:
        mu, counts = mu_gaussian, noise_laws.rounded_gaussian(1 / table_mu(mu_gaussian))
    return NoiseScales(mu_structure=mu * math.sqrt(structure_share), counts=counts, seeds=seeds)


def seeds_share(facts: PublicFacts, limit: Guarantee) -> float:
    """Choose the seeds' share of ε from public facts.

    Next to a pairwise model:

        rows · ε / 2,500,000,  at least 0.005 and at least 0.0001 / ε, at most 0.02

    Kept prefixes add what pairs leave unexplained, which needs many rows; in a small table they
    would only cost. Next to the paper's model, which knows less of pairs:

        10 · ln(1/δ) / (rows · ε),  at least 0.03

    The noise of a prefix count is at most about ln(1/δ) / (the seeds' ε). This share keeps that
    bound at a tenth of the rows. Both are at most 0.1.

    Privacy:
        Covers: reads public facts only, so that the plan is fixed before a row is read.
    """
    smallest, largest = SEEDS_EPSILON_SHARES
    if not facts.sizes:
        reach = math.log(1 / limit.delta) / limit.epsilon
        share = reach / (_SEEDS_NOISE_SHARE * facts.rows_max)
        return min(largest, max(_MIN_SHARE_OF_PAPER_MODEL, share))
    useful = min(facts.rows_max * limit.epsilon / _SEEDS_ROWS, _MAX_SHARE_OF_PAIRWISE_MODEL)
    return min(largest, max(useful, smallest, _MIN_SEEDS_EPSILON / limit.epsilon))


def _pair_noise_at(facts: PublicFacts, mu: float) -> PairNoise:
    """Choose the noise of one-way and two-way tables that together cost μ."""
    values, pairs = pairwise_shares(len(facts.sizes))
    return pair_noise(facts.sizes, mu_values=mu * math.sqrt(values), mu_pairs=mu * math.sqrt(pairs))


def _calibrate_split(
    facts: PublicFacts, fractions: Mapping[Part, float], limit: Guarantee
) -> NoiseScales:
    """Choose the noise of each part, with the same ε_j for every part (guarantee.md, Theorem 10).

    Solves ε = ln(1 + Σ p_j (e^ε_j - 1)) for the common ε_j.
    """
    # Without a histogram or a randomized test the guarantee does not cover the seeds.
    unpaid = () if facts.seeds or facts.test is not None else ("seeds",)
    paid = [part for part in PARTS if part in fractions and part not in unpaid]
    rate = sum(fractions[part] for part in paid)
    each = math.log1p(math.expm1(limit.epsilon) / rate)
    delta = limit.delta * (1 - 2 * TABLE_DELTA_SHARE)
    tables = smaller_table_noise(tables=len(facts.names), epsilon=each, delta=delta)
    mu = gaussian_mu(epsilon=each, delta=delta)
    sigma = upper_bound(math.sqrt(len(facts.names)) / mu)
    excess = laplace_excess(facts.models)
    if tables.law == "discrete_laplace" and excess * tables.deviation <= sigma:
        counts = noise_laws.discrete_laplace(1 / tables.scale)
    else:
        counts = noise_laws.rounded_gaussian(sigma)
    seeds = None
    if facts.seeds:
        seeds = noise_laws.bounded_noise(epsilon=each, delta=delta)
    return NoiseScales(mu_structure=mu, counts=counts, seeds=seeds)


def structure_laws(facts: PublicFacts, mu: float) -> tuple[EntropyScale, Law, Law]:
    """Choose the resolution of S and the noise of entropies and record count at μ (Lemma 9)."""
    if mu == math.inf or not facts.queries:
        scale = EntropyScale(rows_max=facts.rows_max, bits=EXACT_BITS)
        return scale, noise_laws.exact(), noise_laws.exact()
    for bits in _ENTROPY_BITS:
        scale = EntropyScale(rows_max=facts.rows_max, bits=bits)
        sigma, sigma_n = structure_noise(queries=facts.queries, step=scale.sensitivity, mu=mu)
        if noise_laws.gaussian_radius(sigma) <= noise_laws.MAX_RADIUS:
            return scale, noise_laws.rounded_gaussian(sigma), noise_laws.rounded_gaussian(sigma_n)
    raise BudgetError(
        f"{facts.queries:,} entropies are too many for ε = {facts.limit.epsilon:g}: their noise "
        "needs a table larger than 2^26. Ask for a larger ε (up to 10), or give a graph."
    )


def _largest_mu(delta_at: Callable[[float], float], limit: Guarantee) -> float:
    """Find the largest μ with ``delta_at(μ)`` within the limit by bisection, rounded down.

    Rounding the noise to tables needs a share of δ.
    """
    aim = limit.delta * (1 - 2 * TABLE_DELTA_SHARE)
    low, high = 0.0, 1e-3
    while delta_at(high) <= aim:
        low, high = high, 2 * high
        if high > 1e6:
            return low
    for _ in range(60):
        half = (low + high) / 2
        low, high = (half, high) if delta_at(half) <= aim else (low, half)
    if low == 0.0:
        raise BudgetError(
            "no budget is left for the model: seeds and records cost the whole (ε, δ). Ask "
            "for fewer records, a larger k, a larger ε (up to 10), or --mode one-shot."
        )
    return low
