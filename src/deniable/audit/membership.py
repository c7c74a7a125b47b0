"""Membership by likelihood ratio: how much likelier is a release if a row was in the table?

The attacker knows all other rows, reads the noisy counts of an artefact, or which prefixes of seeds
were released, and knows the law of the noise. No test of the same numbers does better (Neyman and
Pearson). Attacks that read records only are in ``query_attacks``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.audit.holdout_rows import packed_rows
from deniable.audit.likelihood_ratio import (
    MAX_LOG_RATIO,
    NoisyTable,
    TailProbabilities,
    law_ratios,
    noisy_tables,
)
from deniable.counting.contingency import cell_indices
from deniable.errors import InvariantError
from deniable.model.graph import Graph
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import TableCounts, table_query
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.run_plan import Run, RunPlan
from deniable.privacy.ledger import PARTS
from deniable.privacy.noise_laws import Law
from deniable.release.artefact_arrays import Evidence
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.attribute import Attribute

# Variance that exact counts are given, so that their ratio is large and not infinite.
_EXACT_VARIANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class KnownRows:
    """What the attacker knows of the table: its rows, and which targets are in it.

    Attributes:
        codes: The rows, targets included.
        weights: How often a row is in the table: 0, 1, or ``copies`` if it is a target.
        targets: Indices of the targets.
        shares: The public probability of each part of the data; 1 if all rows serve every stage.
        copies: Equal rows that a target adds: more than one if the unit is a person.
    """

    codes: Codes = field(repr=False)
    weights: Reals = field(repr=False)
    targets: Indices = field(repr=False)
    shares: dict[str, float]
    copies: int = 1

    def others(self, cells: Indices, size: int) -> Reals:
        """Count the other rows in each target's cell."""
        counts = np.bincount(cells, weights=self.weights, minlength=size)
        others: Reals = counts[cells[self.targets]] - self.weights[self.targets]
        return others


def known_rows(
    codes: Codes, weights: Reals, targets: Indices, plan: RunPlan, *, copies: int = 1
) -> KnownRows:
    """Collect what the attacker knows; the shares of the parts are public."""
    shares = dict.fromkeys(map(str, PARTS), 1.0)
    if plan.fractions is not None:
        shares = dict.fromkeys(shares, 0.0)
        shares |= {str(part): share for part, share in plan.fractions.items()}
    return KnownRows(codes=codes, weights=weights, targets=targets, shares=shares, copies=copies)


def evidence_ratios(evidence: Evidence, graph: Graph, known: KnownRows, run: Run) -> Reals:
    """Log likelihood ratio of the noisy counts that a model was fitted to, for each target.

    Later counts depend on earlier ones through noisy numbers only, so log ratios add up.

    Args:
        evidence: The noisy counts.
        graph: The graph of the model; the paper's counts are by its parents.
        known: What the attacker knows of the rows.
        run: The run: its noise laws are public.
    """
    plan, schema = run.plan.privacy, run.schema
    if isinstance(evidence, PairwiseMeasurements):
        if plan.pairs is None:
            raise InvariantError("the run does not measure pairs")
        total = np.zeros(len(known.targets))
        for table in noisy_tables(evidence, schema.names, plan.pairs):
            total += gaussian_ratios(table, known)[0]
        return total
    return conditional_ratios(evidence, graph, schema.attributes, known, law=plan.counts)


def gaussian_ratios(table: NoisyTable, known: KnownRows) -> tuple[Reals, Reals]:
    """Log ratio of a table of Gaussian noise for each target, and the noise of all its numbers.

        m (e · Δ + (w - m/2) |Δ|²) / σ²

    where e is the noise, Δ what one row adds, m the target's copies and w those that are in the
    table. ``e`` is measured with these, so it is moved back by them.
    """
    cells, size = table.cells(known.codes), table.numbers.size
    counted = np.bincount(cells, weights=known.weights, minlength=size)
    noise = table.noise(counted.astype(np.float64, copy=False))
    own = known.weights[known.targets] - known.copies / 2
    excess = table.projections(noise, cells[known.targets]) + own * table.squared_shift
    ratios = known.copies * excess / max(table.variance, _EXACT_VARIANCE)
    return np.clip(ratios, -MAX_LOG_RATIO, MAX_LOG_RATIO), noise


def conditional_ratios(
    evidence: TableCounts,
    graph: Graph,
    attributes: Sequence[Attribute],
    known: KnownRows,
    *,
    law: Law,
) -> Reals:
    """Sum the log ratios of the paper's conditional tables: a row adds one to a cell of each.

    The noise of the graph itself is not released. Moments are not attacked.
    """
    total = np.zeros(len(known.targets))
    for i, released in enumerate(evidence.tables):
        if isinstance(released, Moments):
            continue
        cells = cell_indices(attributes, known.codes, table_query(graph, i))
        total += _cell_ratios(released.ravel(), cells, law, known)
    return total


def _cell_ratios(released: Counts, cells: Indices, law: Law, known: KnownRows) -> Reals:
    """Log ratio of the number in each target's cell, by the law of its noise.

    With a split, the others' number is random: it is taken as of a normal law.
    """
    share = known.shares["parameters"]
    others = known.others(cells, released.size)
    excess = released[cells[known.targets]] - share * others
    if share == 1:
        return law_ratios(law, np.rint(excess).astype(np.int64), rows=known.copies)
    spread = law.variance + share * (1 - share) * others
    shift = share * known.copies
    ratios: Reals = shift * (excess - shift / 2) / np.maximum(spread, _EXACT_VARIANCE)
    return np.clip(ratios, -MAX_LOG_RATIO, MAX_LOG_RATIO)


def prefix_ratios(
    histogram: KeptPrefixes, order: Sequence[int], known: KnownRows, *, k: int, law: Law
) -> tuple[Reals, Reals]:
    """Log ratio of the seed histogram for each target, and the noise of kept targets.

    A prefix is kept if its count is at least k and its noisy count at least k + r. Prefixes that
    are not kept are evidence too. With a split, which rows are seeds is secret: 0.
    """
    ratios = np.zeros(len(known.targets))
    if known.shares["seeds"] < 1:
        return ratios, ratios[:0]
    columns = list(order[: histogram.length])
    counted = zip(packed_rows(histogram.prefixes), histogram.counts.tolist(), strict=True)
    kept = {row.tobytes(): noisy for row, noisy in counted}
    prefixes = packed_rows(known.codes[:, columns])
    _, cells = np.unique(prefixes, return_inverse=True)
    others = np.rint(known.others(cells, int(cells.max()) + 1)).astype(int)
    tail, noise = TailProbabilities.of(law), []
    for at, (target, count) in enumerate(zip(known.targets, others.tolist(), strict=True)):
        noisy = kept.get(prefixes[target].tobytes())
        if noisy is None:
            ratios[at] = tail.hidden_ratio(count, k=k, rows=known.copies)
            continue
        ratios[at] = law_ratios(law, np.array([noisy - count]), rows=known.copies)[0]
        noise.append(noisy - count - known.weights[target])
    return ratios, np.array(noise, dtype=np.float64)


def released_prefix_ratios(
    released: Codes, model: NetworkModel, known: KnownRows, passes: Callable[[float], float]
) -> Reals:
    """Log likelihood ratio of the number of released records that share each target's prefix.

    For modes whose records are made of real seeds. A seed's prefix is released if enough seeds
    share it, so its records are a Poisson number: with the row, of one seed more, and more likely
    to pass. Records of other lengths share it by chance.

    Args:
        released: The released records.
        model: The model, with its order and the lengths of prefixes.
        known: What the attacker knows of the rows.
        passes: The probability that a candidate is released, by its number of seeds.
    """
    total = np.zeros(len(known.targets))
    for length in filter(None, model.kept):
        columns = list(model.network.order[:length])
        both = np.concatenate([known.codes[:, columns], released[:, columns]])
        _, cells = np.unique(packed_rows(both), return_inverse=True)
        of_rows, of_records = np.split(cells, [len(known.codes)])
        size = int(cells.max()) + 1
        hits = np.bincount(of_records, minlength=size)[of_rows[known.targets]]
        others = known.others(of_rows, size)
        with_row, without = _expected_records(others, len(released), model, known, passes)
        ratios = hits * np.log(with_row / without) - (with_row - without)
        total += np.clip(ratios, -MAX_LOG_RATIO, MAX_LOG_RATIO)
    return total


def _expected_records(
    others: Reals,
    records: int,
    model: NetworkModel,
    known: KnownRows,
    passes: Callable[[float], float],
) -> tuple[Reals, Reals]:
    """Expected records of a prefix of one length, with the target and without it."""
    share, weight = known.shares["seeds"], 1 / len(model.kept)
    per_row = records / max(share * float(known.weights.sum()), 1.0)
    numbers, which = np.unique(share * others, return_inverse=True)
    pass_with = np.array([passes(count) for count in numbers + share])[which]
    pass_without = np.array([passes(count) for count in numbers])[which]
    seeds = share * others
    chance = (1 - weight) * per_row * (seeds + 0.05) + 0.01
    with_row: Reals = weight * per_row * (seeds + share) * pass_with + chance
    without: Reals = weight * per_row * seeds * pass_without + chance
    return with_row, without
