"""Correlation of attributes from noisy entropies: symmetrical uncertainty.

The paper scores parents by symmetrical uncertainty (Eq. 5, ``eq:gm:correlation``), a ratio of
entropies. We measure S = n·H instead, as an integer, and add noise to it. The ratio stays the same,
S does not need the confidential n, and it has a small sensitivity (guarantee.md, Lemma 9).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from deniable.arrays import Reals
from deniable.counting.contingency import ContingencyTable, CountQueries, Query, QueryAxis
from deniable.privacy.entropy_scale import EXACT_BITS, EntropyScale
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.privacy.paper_noise import MAX_STEPS_PER_RECORD, PaperStructure
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute


def symmetrical_uncertainty(h_x: float, h_y: float, h_xy: float) -> float:
    """Compute corr(x, y) from the entropies of x, y and the pair (Eq. 5, ``eq:gm:correlation``).

        corr(x, y) = 2 - 2 · H(x, y) / (H(x) + H(y))

    0 means independent, 1 means each determines the other. All three may be multiplied by the same
    number: S works as well as H. Noise can move the result outside [0, 1], or the denominator to
    zero or below; the paper requires only that the result be in [0, 1]. We clamp it. Attributes
    without information (denominator ≤ 0) count as independent: a constant column has no
    children.

    >>> symmetrical_uncertainty(1.0, 1.0, 1.0), symmetrical_uncertainty(1.0, 1.0, 2.0)
    (1.0, 0.0)
    >>> symmetrical_uncertainty(0.0, 0.0, 0.0)
    0.0
    """
    information = h_x + h_y
    if information <= 0:
        return 0.0
    return min(1.0, max(0.0, 2 - 2 * h_xy / information))


@dataclass(frozen=True)
class Correlations:
    """Entropies and correlations: the only statistics that structure learning uses.

    Attributes:
        single: S(x_i) of each attribute; for the drawing order.
        with_parent: corr(x_i, bkt(x_j)) at [i, j]: how well j predicts i as a parent.
        between: corr(x_i, x_j) at [i, j]: how redundant two parents are.
    """

    single: Reals
    with_parent: Reals
    between: Reals


def entropy_queries(attributes: Sequence[Attribute]) -> list[Query]:
    """List the distinct tables whose entropies structure learning needs.

    H(x_i), H(bkt x_i), H(x_i, x_j) and H(x_i, bkt x_j), for all i and j ≠ i (Sec. 3.3.1): for m
    attributes, all bucketed, m(3m+1)/2 of them. An attribute that is not bucketed needs only the
    tables without buckets.
    """
    every = range(len(attributes))
    bucketed = [j for j in every if attributes[j].is_bucketed]
    return [
        *[(QueryAxis(i),) for i in every],
        *[(QueryAxis(j, bucketed=True),) for j in bucketed],
        *[(QueryAxis(i), QueryAxis(j)) for i, j in combinations(every, 2)],
        *[(QueryAxis(i), QueryAxis(j, bucketed=True)) for j in bucketed for i in every if i != j],
    ]


def measure_entropies(
    count: CountQueries, attributes: Sequence[Attribute], scale: EntropyScale
) -> dict[Query, int]:
    """Compute the exact S of every query, in the order of ``entropy_queries``. Confidential.

    Records are counted once for each pair of attributes; coarser tables are computed from these.
    """
    indices = range(len(attributes))
    pairs = list(combinations(indices, 2))
    tables: dict[Query, ContingencyTable] = {}
    if not pairs:
        tables[(QueryAxis(0),)] = count([(QueryAxis(0),)])[0]
    pair_queries: list[Query] = [(QueryAxis(i), QueryAxis(j)) for i, j in pairs]
    for query, table in zip(pair_queries, count(pair_queries), strict=True):
        tables[query] = table
    for i in indices[1:]:
        tables[(QueryAxis(i),)] = tables[(QueryAxis(0), QueryAxis(i))].margin(1)
    if pairs:
        tables[(QueryAxis(0),)] = tables[(QueryAxis(0), QueryAxis(1))].margin(0)
    return {
        query: scale.measure(_derive_table(query, tables, attributes).counts)
        for query in entropy_queries(attributes)
    }


def _derive_table(
    query: Query, tables: dict[Query, ContingencyTable], attributes: Sequence[Attribute]
) -> ContingencyTable:
    """Compute the table of ``query`` from the tables of pairs and single attributes."""
    if query in tables:
        return tables[query]
    groups = attributes[query[-1].attribute].bucket_of
    indices = [axis.attribute for axis in query]
    table = tables[tuple(QueryAxis(i) for i in sorted(indices))]
    return table.coarsen(sorted(indices).index(indices[-1]), groups)


@dataclass(frozen=True, kw_only=True)
class StructureNoise:
    """Noise of the entropies: correlated, because a record moves all of them in one direction.

    Attributes:
        scale: The unit of S.
        entropy: The noise of each Q_i = S_i - (Δ/2)·n.
        records: The noise of n, common to all S̃_i = Q̃_i + (Δ/2)·ñ.
    """

    scale: EntropyScale
    entropy: Law
    records: Law


def learn_correlations(
    rng: Rng, count: CountQueries, attributes: Sequence[Attribute], noise: StructureNoise
) -> tuple[Correlations, int, list[Spend]]:
    """Measure correlations from noisy entropies; return them, the noisy record count and spends.

    guarantee.md, Lemma 9: a record raises n by one and each S_i by an amount in [0, Δ], so it moves
    each Q_i = S_i - (Δ/2)·n by at most Δ/2. Noise is added to n and to the Q_i, all of them
    integers; S̃_i = Q̃_i + (Δ/2)·ñ is computed from noisy numbers only.

    Privacy:
        Neighbours: add or remove one record of the part that is counted.
        Covers: the correlations, the noisy number of records, and everything computed from them.
        Does not cover: the exact entropies, which do not leave this function.
    """
    half_sensitivity = noise.scale.sensitivity // 2
    exact = measure_entropies(count, attributes, noise.scale)
    records = count([(QueryAxis(0),)])[0].records
    centred = np.array([s - half_sensitivity * records for s in exact.values()], dtype=np.int64)
    noisy, entropy_spend = add_noise(
        rng,
        centred,
        noise.entropy,
        what="entropies",
        part="structure",
        sensitivity=half_sensitivity,
        l0_sensitivity=len(centred),
    )
    noisy_records, records_spend = add_noise(
        rng,
        np.array([records], dtype=np.int64),
        noise.records,
        what="number of records",
        part="structure",
    )
    entropies = noisy + half_sensitivity * noisy_records[0]
    by_query = dict(zip(exact, entropies.astype(np.float64).tolist(), strict=True))
    return (
        correlations_from_entropies(attributes, by_query),
        int(noisy_records[0]),
        [entropy_spend, records_spend],
    )


def learn_paper_correlations(
    rng: Rng, count: CountQueries, attributes: Sequence[Attribute], noise: PaperStructure
) -> tuple[Correlations, int, list[Spend]]:
    """Measure correlations with the paper's noise, H̃ = H + Lap(Δ_H / ε_H), at a noisy n_T.

    Eq. 8-10: ``eq:gm:entropy``, ``eq:gm:entropy_sensitivity``, ``eq:gm:n_sensitivity``. The
    sensitivity is that of a safe lower bound of n_T, and entropies are rounded to steps of it.

    Privacy:
        Neighbours: add or remove one record of the part that is counted.
        Covers: what ``PaperStructure.spends`` charges.
    """
    fine = EntropyScale(rows_max=2**40, bits=EXACT_BITS)
    exact = measure_entropies(count, attributes, fine)
    records = count([(QueryAxis(0),)])[0].records
    planned = noise.spends(len(exact))
    noisy_records, records_spend = add_noise(
        rng,
        np.array([records], dtype=np.int64),
        noise.records,
        what="number of records",
        part="structure",
    )
    unit = noise.unit(noise.lower_bound(int(noisy_records[0])))
    bits = np.array(list(exact.values())) / 2.0**EXACT_BITS / max(records, 1)
    steps = np.rint(bits / unit).astype(np.int64)
    noisy, entropy_spend = add_noise(
        rng,
        steps,
        noise.entropy,
        what="entropies",
        part="structure",
        sensitivity=MAX_STEPS_PER_RECORD,
        l0_sensitivity=len(steps),
    )
    by_query = dict(zip(exact, (noisy * unit).tolist(), strict=True))
    # The cost of the record count includes the probability that the lower bound exceeds n.
    charged = replace(records_spend, each=planned[1].each)
    return (
        correlations_from_entropies(attributes, by_query),
        int(noisy_records[0]),
        [entropy_spend, charged],
    )


def correlations_from_entropies(
    attributes: Sequence[Attribute], entropies: dict[Query, float]
) -> Correlations:
    """Compute all correlations from entropies, exact or noisy (Eq. 5, on S = n·H)."""
    m = len(attributes)
    single = np.array([entropies[(QueryAxis(i),)] for i in range(m)], dtype=np.float64)
    with_parent, between = np.zeros((m, m)), np.zeros((m, m))
    for i, j in combinations(range(m), 2):
        pair = entropies[(QueryAxis(i), QueryAxis(j))]
        between[i, j] = between[j, i] = symmetrical_uncertainty(single[i], single[j], pair)
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            if attributes[j].is_bucketed:
                bucket = entropies[(QueryAxis(j, bucketed=True),)]
                pair = entropies[(QueryAxis(i), QueryAxis(j, bucketed=True))]
                with_parent[i, j] = symmetrical_uncertainty(single[i], bucket, pair)
            else:
                with_parent[i, j] = between[i, j]
    return Correlations(single, with_parent, between)
