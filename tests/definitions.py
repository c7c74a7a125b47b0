"""The paper's definitions, slow and literal: the oracles that the fast code is compared with.

Transcribed from the paper, not from the package, of which nothing is imported here. A record is a
tuple of codes, a table a list of records, a probability a ``Fraction`` wherever it is rational.
Labels are those of the LaTeX source.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations, product

Record = tuple[int, ...]
Table = list[Record]
Parents = tuple[tuple[int, ...], ...]
Correlation = Callable[[int, int], float]
# From the bucketed values of the parents, ascending, to the probability of every value.
Conditional = dict[tuple[int, ...], list[Fraction]]


# Structure: sec:gm:structure


def entropy(values: Sequence[object]) -> float:
    """H(z) in bits of the empirical distribution of ``values`` (``lem:hsensitivity``, proof)."""
    n = len(values)
    return -sum(count / n * math.log2(count / n) for count in Counter(values).values())


def whole_entropy(counts: Sequence[int], *, rows_max: int, bits: int) -> tuple[int, int]:
    """S = n·H in whole units of 2^-bits, and Δ (the review, section 4, "Integer form").

    u(c) = (c+1)·log2(c+1) - c·log2(c) in 60 decimals, so that rounding it is beyond doubt.
    """
    with localcontext(prec=60):

        def units(c: int) -> Decimal:
            g = [Decimal(x) * Decimal(x).ln() if x > 0 else Decimal(0) for x in (c, c + 1)]
            return 2**bits * (g[1] - g[0]) / Decimal(2).ln()

        most = 2 * math.ceil(units(rows_max) / 2)
        steps = [min(round(units(c)), most) for c in range(sum(counts))]
    return sum(steps) - sum(sum(steps[:c]) for c in counts), most


def correlation(xs: Sequence[object], ys: Sequence[object]) -> float:
    """corr(x, y), the symmetrical uncertainty coefficient (``eq:gm:correlation``).

    Two constant columns leave it 0/0; they tell nothing of each other, so 0.
    """
    information = entropy(xs) + entropy(ys)
    if information == 0:
        return 0.0
    together = entropy(list(zip(xs, ys, strict=True)))
    return min(1.0, max(0.0, 2 - 2 * together / information))


def merit(i: int, parents: Sequence[int], predicts: Correlation, between: Correlation) -> float:
    """score(P_G(i)) (``eq:gm:merit``); the second sum over ordered pairs of different parents.

    ``predicts(i, j)`` is corr(x_i, bkt x_j) (``eq:gm:discretization``), ``between(j, k)`` is
    corr(x_j, x_k). The empty set scores 0.
    """
    if not parents:
        return 0.0
    above = math.fsum(predicts(i, j) for j in parents)
    shared = math.fsum(between(j, k) for j in parents for k in parents if j != k)
    return above / math.sqrt(len(parents) + shared)


def cost(parents: Iterable[int], buckets: Sequence[int]) -> int:
    """cost(P_G(i)), with |bkt x_j| for |x_j| (``eq:gm:constraint``, ``eq:gm:discretization``)."""
    return math.prod(buckets[j] for j in parents)


def has_cycle(parents: Parents) -> bool:
    """Whether some attribute is its own ancestor (``sec:gm:model``: G is acyclic)."""

    def ancestors(i: int) -> set[int]:
        found: set[int] = set()
        new = set(parents[i])
        while new:
            found |= new
            new = {grandparent for j in new for grandparent in parents[j]} - found
        return found

    return any(i in ancestors(i) for i in range(len(parents)))


def greedy_graphs(
    predicts: Correlation, between: Correlation, buckets: Sequence[int], *, max_cost: int
) -> set[Parents]:
    """All graphs that greedy search can end in (``sec:gm:structure``).

    Start without edges; always add the edge that raises the total score most, of those that
    leave the graph acyclic and each cost within ``max_cost``; end where none raises it. Two
    scores closer than 1e-12 count as equal, since in floats either may be the larger; all choices
    among equals are followed, which is why there may be several graphs.
    """
    tie = 1e-12
    every = range(len(buckets))

    def with_edge(parents: Parents, i: int, j: int) -> Parents:
        return tuple(tuple(sorted({*p, j})) if c == i else p for c, p in enumerate(parents))

    def total(parents: Parents) -> float:
        return math.fsum(merit(i, parents[i], predicts, between) for i in every)

    def allowed(parents: Parents) -> list[Parents]:
        larger = [with_edge(parents, i, j) for i in every for j in every if j not in parents[i]]
        return [
            graph
            for graph in larger
            if not has_cycle(graph) and all(cost(p, buckets) <= max_cost for p in graph)
        ]

    def predictive(graph: Parents) -> bool:
        # A parent that predicts nothing cannot raise a score, in floats neither.
        return all(predicts(i, j) > 0 for i in every for j in graph[i])

    ends, seen = set(), set()
    left: list[Parents] = [((),) * len(buckets)]
    while left:
        parents = left.pop()
        if parents in seen:
            continue
        seen.add(parents)
        gains = {graph: total(graph) - total(parents) for graph in allowed(parents)}
        best = max(gains.values(), default=0.0)
        if best <= tie:
            ends.add(parents)
        least = max(best, 0.0) - tie
        left += [graph for graph, gain in gains.items() if gain >= least and predictive(graph)]
    return ends


def is_drawing_order(order: Sequence[int], parents: Parents) -> bool:
    """Whether σ is a permutation with ∀ j ∈ P_G(i): σ(j) < σ(i) (``sec:gm:synthesis``)."""
    if sorted(order) != list(range(len(parents))):
        return False
    return all(order.index(j) < order.index(i) for i, chosen in enumerate(parents) for j in chosen)


# Parameters: sec:gm:parameters


def conditional(
    table: Table,
    i: int,
    parents: Sequence[int],
    sizes: Sequence[int],
    bucket_of: Sequence[Sequence[int]],
    *,
    alpha: Fraction,
    noise: Callable[[tuple[int, ...], int], int] = lambda _c, _l: 0,
) -> Conditional:
    """p_{i,l}^c of every configuration c and value l (``eq:gm:mlparameters``).

    n_{i,l}^c by counting, plus ``noise(c, l)``, clipped at zero (``sec:gm:parameters_dp``); α the
    same for every value; parents bucketed (``eq:gm:discretization``).
    """
    table_of: Conditional = {}
    for c in product(*[sorted(set(bucket_of[j])) for j in parents]):
        counts = []
        for value in range(sizes[i]):
            n = 0
            for x in table:
                if x[i] == value and tuple(bucket_of[j][x[j]] for j in parents) == c:
                    n += 1
            counts.append(max(0, n + noise(c, value)))
        total = sum(alpha + n for n in counts)
        table_of[c] = [(alpha + n) / total for n in counts]
    return table_of


def norm_sub(row: Sequence[int]) -> list[Fraction]:
    """max(X_l - λ, 0) with Σ_l max(X_l - λ, 0) = max(0, Σ_l X_l) (the review, section 7).

    The values that stay above zero are the j largest, for some j; then λ follows. Try each j.
    """
    total = max(0, sum(row))
    if total == 0:
        return [Fraction(0)] * len(row)
    for j in range(1, len(row) + 1):
        level = Fraction(sum(sorted(row)[-j:]) - total, j)
        lowered = [max(x - level, Fraction(0)) for x in row]
        if sum(lowered) == total:
            return lowered
    raise AssertionError("there is always one")


# The model and synthesis: sec:gm:model, sec:gm:synthesis


@dataclass(frozen=True)
class Model:
    """A network as the paper writes it: |x_i|, bkt, P_G, σ and the conditional probabilities."""

    sizes: tuple[int, ...]
    bucket_of: tuple[tuple[int, ...], ...]
    parents: Parents
    order: tuple[int, ...]
    tables: tuple[Conditional, ...]

    def universe(self) -> Table:
        """Return every possible record, U (``app:connection``)."""
        return list(product(*[range(size) for size in self.sizes]))

    def factor(self, i: int, value: int, given: Record) -> Fraction:
        """Return Pr{x_i = value | bkt(x_j), j ∈ P_G(i)} (``eq:gm:discretization``)."""
        c = tuple(self.bucket_of[j][given[j]] for j in self.parents[i])
        return self.tables[i][c][value]


@cache
def _power_of_half(f: int) -> int:
    with localcontext(prec=60):
        return round(Decimal(2) ** (30 - Decimal(f) / 4096))


def loglinear_distribution(
    base: Sequence[int],
    effects: Sequence[Sequence[int]],
    bins: Sequence[int],
    within: Sequence[int],
) -> list[Fraction]:
    """Pr{value} of a log-linear conditional, given what each parent's group adds: exactly.

    A logarithm is in units of 1/4096 to base 2. The likeliest bin has the weight 2^30; another one
    that is f + 4096 s units below it has round(2^(30 - f/4096)) divided by 2^s, rounded down. The
    values of a bin share it by their weights ``within``.
    """
    logarithms = [sum(parts) for parts in zip(base, *effects, strict=True)]
    weights = []
    for own in logarithms:
        s, f = divmod(max(logarithms) - own, 4096)
        weights.append(_power_of_half(f) >> s)
    shares = [sum(w for w, b in zip(within, bins, strict=True) if b == own) for own in bins]
    return [
        Fraction(weights[b], sum(weights)) * Fraction(w, share)
        for b, w, share in zip(bins, within, shares, strict=True)
    ]


def record_probability(model: Model, x: Record) -> Fraction:
    """Pr{x_1, …, x_m} (``eq:gm:model``)."""
    p = Fraction(1)
    for i in range(len(x)):
        p *= model.factor(i, x[i], x)
    return p


def synthesis_probability(model: Model, y: Record, d: Record, omega: int) -> Fraction:
    """Pr{y = M(d)} with ω attributes re-sampled (``eq:gm:seedbased_synthesis``).

    The record is built as the text says: the first m - ω attributes in the order σ are the
    seed's; each later one is drawn given the seed's values of its kept parents and the new values
    of its re-sampled ones.
    """
    kept = model.order[: len(y) - omega]
    record = list(d)
    for i in kept:
        if y[i] != record[i]:
            return Fraction(0)
    p = Fraction(1)
    for i in model.order[len(y) - omega :]:
        p *= model.factor(i, y[i], tuple(record))
        record[i] = y[i]
    return p


def hidden_probability(model: Model, y: Record, d: Record, omegas: Sequence[int]) -> Fraction:
    """Pr{y = M(d)} where M first draws ω uniformly from ``omegas`` (``subsec:evalsetup``)."""
    return sum((synthesis_probability(model, y, d, omega) for omega in omegas), Fraction(0)) / len(
        omegas
    )


def shared_prefix(d: Record, y: Record, order: Sequence[int]) -> int:
    """LCP(d, y): how many first attributes, in the order σ, are equal (guarantee.md, Theorem 6)."""
    length = 0
    while length < len(order) and d[order[length]] == y[order[length]]:
        length += 1
    return length


def most_likely_values(model: Model, x: Record, i: int) -> list[Fraction]:
    """Pr{x with x_i = l} for each l: its largest entries are the most likely values of x_i.

    By the full joint distribution, all other attributes given (``subsec:eval_stat``).
    """
    return [
        record_probability(model, (*x[:i], value, *x[i + 1 :])) for value in range(model.sizes[i])
    ]


# Plausible deniability: sec:pd


def partition_number(p: Fraction, gamma: Fraction) -> int | None:
    """The only i ≥ 0 with γ^-(i+1) < p ≤ γ^-i; none for p = 0 (``def:privacytest``)."""
    if p == 0:
        return None
    i, upper = 0, Fraction(1)
    while not upper / gamma < p <= upper:
        i, upper = i + 1, upper / gamma
    return i


def near_boundary(p: Fraction, gamma: Fraction) -> bool:
    """Whether p lies so near a γ^-i that a double cannot tell on which side."""
    if p == 0:
        return False
    place = -math.log(p) / math.log(gamma)
    return abs(place - round(place)) < 1e-9


def plausible_seeds(probabilities: Sequence[Fraction], own: int, gamma: Fraction) -> int:
    """k' of Privacy Tests 1 and 2, steps 1 and 2 (``def:privacytest``).

    ``probabilities`` are Pr{y = M(d_a)} of all records d_a of D, ``own`` the place of d.
    """
    i = partition_number(probabilities[own], gamma)
    assert i is not None, "a seed that cannot have made the candidate is not its seed"
    return sum(partition_number(p, gamma) == i for p in probabilities)


def is_deniable(probabilities: Sequence[Fraction], own: int, *, k: int, gamma: Fraction) -> bool:
    """Definition 1, by trying every d_2, …, d_k (``def:pdcriterion``, ``eq:pdcond``)."""
    others = [a for a in range(len(probabilities)) if a != own]
    for chosen in combinations(others, k - 1):
        ps = [probabilities[a] for a in (own, *chosen)]
        if all(q > 0 and 1 / gamma <= p / q <= gamma for p in ps for q in ps):
            return True
    return False


def released(
    seeds: Table,
    universe: Table,
    probability: Callable[[Record, Record], Fraction],
    passes: Callable[[Record, int], bool],
) -> dict[Record, Fraction]:
    """Pr{F(D) = y} of every y (``def:mechanism``; ``lem:decomp``, proof, first lines).

    ``probability(y, d)`` is Pr{y = M(d)}; ``passes(y, a)`` whether y passes when seed a made it.
    """
    result = {}
    for y in universe:
        total = Fraction(0)
        for a, d in enumerate(seeds):
            p = probability(y, d)
            if p > 0 and passes(y, a):
                total += p
        result[y] = total / len(seeds)
    return result


# Noise: δ of an integer law


def noise_delta(weights: Iterable[int], epsilon: float, *, shift: int = 1) -> float:
    """δ of noise on a number that changes by ``shift``: Σ_z max(0, g(z) - e^ε g(z - shift)).

    ``weights`` are those of 0, 1, …, r, of a symmetric law on -r … r: both directions, and both
    signs of ``shift``, have the same δ. e^ε is rounded down and the sum up.
    """
    assert epsilon >= 0
    if shift == 0:
        return 0.0
    one_side = list(weights)
    both = [*one_side[:0:-1], *one_side]
    pairs = list(zip([*both, *[0] * shift], [*[0] * shift, *both], strict=True))
    if epsilon == math.inf:
        excess = Fraction(sum(w for w, v in pairs if v == 0))
    else:
        with localcontext(prec=60 + int(epsilon)):
            factor = int((Decimal(epsilon).exp() * 2**160).to_integral_value(ROUND_FLOOR))
        excess = Fraction(sum(max(0, (w << 160) - factor * v) for w, v in pairs), 2**160)
    delta = excess / sum(both)
    nearest = float(delta)
    return nearest if nearest >= delta else math.nextafter(nearest, math.inf)
