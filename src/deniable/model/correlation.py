"""How much attributes say about each other: entropies, and the correlation made of them.

The paper scores parents by symmetrical uncertainty (Eq. 5, ``eq:gm:correlation``), a ratio of
entropies. Multiplied by the number of records, an entropy is S = n·H; the ratio does not change,
and S needs no secret n and has a small sensitivity (guarantee.md, Lemma 9). So S is what is
measured, in whole numbers, and what noise is added to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from deniable.arrays import Reals
from deniable.data.attributes import Attribute
from deniable.model.cells import Axis, Count, Query, Tally
from deniable.privacy.entropies import EXACT_BITS, EntropyScale
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.paper import MOST_STEPS, PaperStructure
from deniable.randomness import Rng


def symmetrical_uncertainty(h_x: float, h_y: float, h_xy: float) -> float:
    """Return corr(x, y) from the entropies of x, y and the pair (Eq. 5, ``eq:gm:correlation``).

        corr(x, y) = 2 - 2 · H(x, y) / (H(x) + H(y))

    0 means independent, 1 means each determines the other. All three may be multiplied by the
    same number, as S is. Noise can put the ratio outside that interval, or its denominator at
    or below zero; the paper asks only that the result stay in [0, 1]. We clamp, and call two
    attributes without information (denominator ≤ 0) independent: a constant column is
    nobody's parent.

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
    """What structure learning needs to know of the data, and all it gets to know.

    Attributes:
        single: S(x_i), by attribute; for the drawing order.
        with_parent: corr(x_i, bkt(x_j)) at [i, j]: what j says, as a parent, about i.
        between: corr(x_i, x_j) at [i, j]: what two parents have in common.
    """

    single: Reals
    with_parent: Reals
    between: Reals


def entropy_queries(attributes: Sequence[Attribute]) -> list[Query]:
    """Return the distinct tables whose entropies structure learning needs, each once.

    H(x_i), H(bkt x_i), H(x_i, x_j) and H(x_i, bkt x_j), for all i and j ≠ i (Sec. 3.3.1): for m
    attributes, all bucketed, m(3m+1)/2 of them. An attribute that is its own bucket adds none
    of the bucketed ones.
    """
    every = range(len(attributes))
    bucketed = [j for j in every if attributes[j].is_bucketed]
    return [
        *[(Axis(i),) for i in every],
        *[(Axis(j, bucketed=True),) for j in bucketed],
        *[(Axis(i), Axis(j)) for i, j in combinations(every, 2)],
        *[(Axis(i), Axis(j, bucketed=True)) for j in bucketed for i in every if i != j],
    ]


def measure_entropies(
    count: Count, attributes: Sequence[Attribute], scale: EntropyScale
) -> dict[Query, int]:
    """Return the exact S of every query, in the order of ``entropy_queries``. Confidential.

    The data are counted once for each pair; coarser tables follow from finer ones.
    """
    every = range(len(attributes))
    pairs = list(combinations(every, 2))
    tallies: dict[Query, Tally] = {}
    if not pairs:
        tallies[(Axis(0),)] = count([(Axis(0),)])[0]
    asked: list[Query] = [(Axis(i), Axis(j)) for i, j in pairs]
    for query, tally in zip(asked, count(asked), strict=True):
        tallies[query] = tally
    for i in every[1:]:
        tallies[(Axis(i),)] = tallies[(Axis(0), Axis(i))].margin(1)
    if pairs:
        tallies[(Axis(0),)] = tallies[(Axis(0), Axis(1))].margin(0)
    return {
        query: scale.measure(_tally_of(query, tallies, attributes).counts)
        for query in entropy_queries(attributes)
    }


def _tally_of(query: Query, tallies: dict[Query, Tally], attributes: Sequence[Attribute]) -> Tally:
    """Return the table of ``query``, made from the tables of pairs and of single attributes."""
    if query in tallies:
        return tallies[query]
    groups = attributes[query[-1].attribute].bucket_of
    plain = [axis.attribute for axis in query]
    tally = tallies[tuple(Axis(i) for i in sorted(plain))]
    return tally.merge(sorted(plain).index(plain[-1]), groups)


@dataclass(frozen=True, kw_only=True)
class StructureNoise:
    """What is added to the entropies: correlated noise, as a record moves them all one way.

    Attributes:
        scale: The unit of S.
        entropy: The noise of each Q_i = S_i - (Δ/2)·n.
        records: The noise of n, which all S̃_i = Q̃_i + (Δ/2)·ñ then share.
    """

    scale: EntropyScale
    entropy: Law
    records: Law


def learn_correlations(
    rng: Rng, count: Count, attributes: Sequence[Attribute], noise: StructureNoise
) -> tuple[Correlations, int, list[Spend]]:
    """Return the correlations from noisy entropies, the noisy number of records, and the bill.

    guarantee.md, Lemma 9: a record raises n by one and each S_i by something in [0, Δ], so it moves
    each Q_i = S_i - (Δ/2)·n by at most Δ/2. Noise is added to n and to the Q_i, all of them whole
    numbers; S̃_i = Q̃_i + (Δ/2)·ñ is made of noisy numbers only.

    Privacy:
        Neighbours: add or remove one record of the part that is counted.
        Covers: the correlations, the noisy number of records, and all that is made of them.
        Does not cover: the exact entropies, which go no further than this function.
    """
    half = noise.scale.most // 2
    exact = measure_entropies(count, attributes, noise.scale)
    records = count([(Axis(0),)])[0].records
    centred = np.array([s - half * records for s in exact.values()], dtype=np.int64)
    noisy, spent = add_noise(
        rng,
        centred,
        noise.entropy,
        what="entropies",
        part="structure",
        sensitivity=half,
        moved=len(centred),
    )
    number, spent_number = add_noise(
        rng,
        np.array([records], dtype=np.int64),
        noise.records,
        what="number of records",
        part="structure",
    )
    entropies = noisy + half * number[0]
    named = dict(zip(exact, entropies.astype(np.float64).tolist(), strict=True))
    return correlations_of(attributes, named), int(number[0]), [spent, spent_number]


def learn_correlations_of_paper(
    rng: Rng, count: Count, attributes: Sequence[Attribute], noise: PaperStructure
) -> tuple[Correlations, int, list[Spend]]:
    """Return the same with the paper's noise: H̃ = H + Lap(Δ_H / ε_H) at a noisy n_T (Eq. 8-10).

    ``eq:gm:entropy``, ``eq:gm:entropy_sensitivity``, ``eq:gm:n_sensitivity``. The sensitivity is
    that of a safe lower bound of n_T, and entropies are rounded to whole steps of it.

    Privacy:
        Neighbours: add or remove one record of the part that is counted.
        Covers: what ``PaperStructure.spends`` charges.
    """
    fine = EntropyScale(rows_max=2**40, bits=EXACT_BITS)
    exact = measure_entropies(count, attributes, fine)
    records = count([(Axis(0),)])[0].records
    billed = noise.spends(len(exact))
    number, spent_number = add_noise(
        rng,
        np.array([records], dtype=np.int64),
        noise.records,
        what="number of records",
        part="structure",
    )
    unit = noise.unit(noise.lower_bound(int(number[0])))
    bits = np.array(list(exact.values())) / 2.0**EXACT_BITS / max(records, 1)
    steps = np.rint(bits / unit).astype(np.int64)
    noisy, spent = add_noise(
        rng,
        steps,
        noise.entropy,
        what="entropies",
        part="structure",
        sensitivity=MOST_STEPS,
        moved=len(steps),
    )
    named = dict(zip(exact, (noisy * unit).tolist(), strict=True))
    # The chance that the lower bound is above n is part of what the number costs.
    paid = replace(spent_number, each=billed[1].each)
    return correlations_of(attributes, named), int(number[0]), [spent, paid]


def correlations_of(attributes: Sequence[Attribute], entropies: dict[Query, float]) -> Correlations:
    """Return all correlations from entropies, exact or noisy (Eq. 5, on S = n·H)."""
    m = len(attributes)
    single = np.array([entropies[(Axis(i),)] for i in range(m)], dtype=np.float64)
    with_parent, between = np.zeros((m, m)), np.zeros((m, m))
    for i, j in combinations(range(m), 2):
        pair = entropies[(Axis(i), Axis(j))]
        between[i, j] = between[j, i] = symmetrical_uncertainty(single[i], single[j], pair)
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            if attributes[j].is_bucketed:
                bucket = entropies[(Axis(j, bucketed=True),)]
                pair = entropies[(Axis(i), Axis(j, bucketed=True))]
                with_parent[i, j] = symmetrical_uncertainty(single[i], bucket, pair)
            else:
                with_parent[i, j] = between[i, j]
    return Correlations(single, with_parent, between)
