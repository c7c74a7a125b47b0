"""What each stage may have of the budget, and the noise that means: from public facts alone."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from deniable.errors import BudgetError
from deniable.privacy import laws
from deniable.privacy.atoms import Atoms, mixture_delta
from deniable.privacy.composition import (
    Guarantee,
    above,
    gaussian_mu,
    optimal,
    tables_noise,
)
from deniable.privacy.entropies import EXACT_BITS, EntropyScale
from deniable.privacy.guarantee import structure_noise
from deniable.privacy.laws import Law
from deniable.privacy.ledger import PARTS, Part, Spend, is_heavy, weights_of
from deniable.privacy.moments import TableModel, laplace_excess
from deniable.privacy.pairs import PairNoise, pair_noise, shares_of

# Shares of what is asked for, chosen before any data: the seeds' part of ε, from least to most, the
# structure's part of what is left (as variance), and how much of δ may go to the histogram's edge.
SEEDS_SHARES = (0.03, 0.1)
STRUCTURE_SHARE = 0.1
EDGE_SHARE = 0.5
# Seeds get so much that their noise stays below about this share of the rows.
_SEEN = 1 / 10
# Units of S to the bit: the finest whose noise fits a table.
_NOISY_BITS = (4, 3, 2, 1, 0)
# Twice this share of δ is left to the certificate: to its grid, and to the tables of noise.
_MOST_ROUNDING = 0.01


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
        sizes: How many values each attribute has, where values and pairs are learnt in place of
            structure and tables; empty: they are not.
        models: How each attribute is learnt, where some are not by counts of their values; empty:
            all are.
        seeds_share: The seeds' share of ε; None: the usual rule.
        values_share: The values' share of the budget of values and pairs; None: the usual rule.
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
    sizes: tuple[int, ...] = ()
    seeds_share: float | None = None
    values_share: float | None = None
    models: tuple[TableModel, ...] = ()
    of_paper: bool = False

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The scales of the noise, before there are tables of it."""

    mu_structure: float
    counts: Law
    seeds: Law | None
    pairs: PairNoise | None = None


def calibrate(facts: Facts, limit: Guarantee) -> Noise:
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


def _calibrate_whole(facts: Facts, limit: Guarantee) -> Noise:
    """Return the least noise with which all stages, on all records, stay in the limit."""
    epsilon, delta = limit.epsilon, limit.delta
    atoms, seeds = Atoms.none(), None
    if facts.lengths:
        share = facts.seeds_share or seeds_share(facts, limit)
        seeds = laws.bounded(
            epsilon=share * epsilon, delta=EDGE_SHARE * delta, lengths=facts.lengths
        )
        atoms = Atoms.table(weights_of(seeds)).times(facts.lengths)
    if facts.test is not None and facts.test.each is not None:
        each = facts.test.each
        atoms = Atoms.stated(each.epsilon, each.delta, times=facts.test.times)
    if facts.sizes:
        aim = delta * (1 - 2 * _MOST_ROUNDING)
        mu = _largest(lambda mu: mixture_delta(epsilon=epsilon, mu=mu, atoms=atoms), aim)
        return Noise(mu_structure=mu, counts=laws.exact(), seeds=seeds, pairs=_pairs_at(facts, mu))
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
    excess = laplace_excess(facts.models)
    if excess * math.sqrt(2) / each_table(mu_laplace) <= 1 / each_table(mu_gaussian):
        counts = laws.discrete_laplace(each_table(mu_laplace))
        return Noise(mu_structure=mu_laplace * math.sqrt(for_structure), counts=counts, seeds=seeds)
    counts = laws.rounded_gaussian(1 / each_table(mu_gaussian))
    return Noise(mu_structure=mu_gaussian * math.sqrt(for_structure), counts=counts, seeds=seeds)


def seeds_share(facts: Facts, limit: Guarantee) -> float:
    """Return the seeds' share of ε, from public facts: 0.03, or more where their noise asks for it.

        10 · lengths · ln(1/δ) / (rows · ε),  at least 0.03, at most 0.1

    The noise of a prefix reaches up to about lengths · ln(1/δ) over the seeds' ε; with this share,
    to a tenth of the rows. More than that brings less than it takes from the model.
    """
    least, most = SEEDS_SHARES
    reach = facts.lengths * math.log(1 / limit.delta) / limit.epsilon
    return min(most, max(least, reach / (_SEEN * facts.rows_max)))


def _pairs_at(facts: Facts, mu: float) -> PairNoise:
    """Return the noise with which values and pairs together cost μ."""
    values, pairs = shares_of(len(facts.sizes), mu=mu, rows_max=facts.rows_max)
    if facts.values_share is not None and pairs:
        values, pairs = facts.values_share, 1 - facts.values_share
    return pair_noise(
        facts.sizes,
        mu_values=mu * math.sqrt(values),
        mu_pairs=mu * math.sqrt(pairs),
        rows_max=facts.rows_max,
    )


def _calibrate_parts(facts: Facts, fractions: Mapping[Part, float], limit: Guarantee) -> Noise:
    """Return the noise of each part when every part may cost the same (guarantee.md, Theorem 10).

    ε = ln(1 + Σ p_j (e^ε_j - 1)) solved for one ε_j.
    """
    # Seeds that are only tested against cost nothing that is claimed.
    idle = () if facts.lengths or facts.test is not None else ("seeds",)
    used = [part for part in PARTS if part in fractions and part not in idle]
    whole = sum(fractions[part] for part in used)
    each = math.log1p(math.expm1(limit.epsilon) / whole)
    delta = limit.delta * (1 - 2 * _MOST_ROUNDING)
    tables = tables_noise(tables=len(facts.names), epsilon=each, delta=delta)
    mu = gaussian_mu(epsilon=each, delta=delta)
    sigma = above(math.sqrt(len(facts.names)) / mu)
    excess = laplace_excess(facts.models)
    if tables.law == "discrete_laplace" and excess * tables.deviation <= sigma:
        counts = laws.discrete_laplace(1 / tables.scale)
    else:
        counts = laws.rounded_gaussian(sigma)
    seeds = None
    if facts.lengths:
        seeds = laws.bounded(epsilon=each, delta=delta, lengths=facts.lengths)
    pairs = None
    if facts.sizes:
        pairs = pair_noise(facts.sizes, mu_values=mu, mu_pairs=mu, rows_max=facts.rows_max)
    return Noise(mu_structure=mu, counts=counts, seeds=seeds, pairs=pairs)


def structure_laws(facts: Facts, mu: float) -> tuple[EntropyScale, Law, Law]:
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
