"""Membership by likelihood ratio: how much likelier is a release if a row was in the table?

The attacker knows all other rows, reads the noisy counts of an artefact, or which prefixes of seeds
were released, and knows the law of the noise. No test of the same numbers does better (Neyman and
Pearson). Attacks that read records only are in ``query_attacks``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.counting.contingency import cell_indices
from deniable.model.bayesian_network import table_query
from deniable.model.graph import Graph
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import TableCounts
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.run_plan import Run
from deniable.privacy.noise_laws import Law
from deniable.release.artefact_arrays import Evidence
from deniable.release.seed_histogram import KeptPrefixes

# Variance that exact counts are given, so that their ratio is large and not infinite.
_EXACT_VARIANCE = 1e-3
# Largest log ratio of one number: more is certainty.
_MAX_LOG_RATIO = 100.0


@dataclass(frozen=True, kw_only=True)
class KnownRows:
    """What the attacker knows of the table: rows, and the probability that each is in it.

    Attributes:
        codes: The rows, targets included.
        weights: 1 for a row that is known to be in the table, 0 for one that is not, ½ for one
            that was included by a coin that the attacker did not see.
        targets: Indices of the targets.
        shares: The public probability of each part of the data; 1 if all rows serve every stage.
    """

    codes: Codes = field(repr=False)
    weights: Reals = field(repr=False)
    targets: Indices = field(repr=False)
    shares: dict[str, float]

    def others(self, cells: Indices, size: int) -> tuple[Reals, Reals]:
        """Expected number and variance of the other rows in each target's cell."""
        w = self.weights
        expected = np.bincount(cells, weights=w, minlength=size)
        variance = np.bincount(cells, weights=w * (1 - w), minlength=size)
        own, at = w[self.targets], cells[self.targets]
        return expected[at] - own, variance[at] - own * (1 - own)


def known_rows(codes: Codes, weights: Reals, targets: Indices, run: Run) -> KnownRows:
    """Collect what the attacker knows; the shares of the parts are public."""
    shares = {"structure": 1.0, "parameters": 1.0, "seeds": 1.0}
    if run.plan.fractions is not None:
        shares = dict.fromkeys(shares, 0.0)
        shares |= {str(part): share for part, share in run.plan.fractions.items()}
    return KnownRows(codes=codes, weights=weights, targets=targets, shares=shares)


def evidence_ratios(evidence: Evidence, graph: Graph, known: KnownRows, run: Run) -> Reals:
    """Log likelihood ratio of the noisy counts that a model was fitted to, for each target.

    Later counts depend on earlier ones through noisy numbers only, so log ratios add up.

    Args:
        evidence: The noisy counts.
        graph: The graph of the model; the paper's counts are by its parents.
        known: What the attacker knows of the rows.
        run: The run: its noise laws are public.
    """
    if isinstance(evidence, PairwiseMeasurements):
        return _pairwise_ratios(evidence, known)
    return _table_ratios(evidence, graph, known, run)


def _pairwise_ratios(evidence: PairwiseMeasurements, known: KnownRows) -> Reals:
    """Sum the ratios of one-way tables, interactions of pairs and triples, and two-way tables."""
    total = np.zeros(len(known.targets))
    for i, (released, sigma) in enumerate(zip(evidence.values, evidence.value_sigmas, strict=True)):
        cells = known.codes[:, i].astype(np.intp)
        total += _cell_ratios(released, cells, sigma**2, known, part="structure")
    bins = [own.astype(np.intp) for own in evidence.bins]
    groups = [own.astype(np.intp)[of] for own, of in zip(evidence.groups, bins, strict=True)]
    for pair, sigma in evidence.interaction_sigmas.items():
        total += _interaction_ratios(evidence.interaction(pair), sigma, pair, groups, known)
    if (three_way := evidence.three_way) is not None:
        groups = [own.astype(np.intp)[of] for own, of in zip(three_way.groups, bins, strict=True)]
        for triple, sigma in three_way.sigmas.items():
            total += _interaction_ratios(
                three_way.interaction(triple), sigma, triple, groups, known
            )
    for (i, j), released in evidence.tables.items():
        mean, sigma = evidence.table((i, j))
        cells = bins[i][known.codes[:, i]] * released.shape[1] + bins[j][known.codes[:, j]]
        total += _cell_ratios(mean.ravel(), cells, sigma**2, known, part="parameters")
    return total


def _cell_ratios(
    released: Counts | Reals,
    cells: Indices,
    variance: float,
    known: KnownRows,
    *,
    part: str,
) -> Reals:
    """Log ratio of a table of Gaussian noise: only the target's own cell tells anything.

        s (y - s c - s/2) / v,   v = σ² + s (1 - s) c + s² Var c

    where c is the expected number of others in the cell and s the share of the part.
    """
    share = known.shares[part]
    others, unknown = known.others(cells, len(released))
    spread = variance + share * (1 - share) * others + share**2 * unknown
    spread = np.maximum(spread, _EXACT_VARIANCE)
    excess = released[cells[known.targets]] - share * others - share / 2
    return np.clip(share * excess / spread, -_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def _interaction_ratios(
    released: Reals,
    sigma: float,
    attributes: Sequence[int],
    groups: Sequence[Indices],
    known: KnownRows,
) -> Reals:
    """Log ratio of a centred table: a row adds (e_i - 1/a)(e_j - 1/b)ᵀ, or of three (Lemma 11)."""
    share, shape = known.shares["parameters"], released.shape
    of_attributes = tuple(groups[i][known.codes[:, i]] for i in attributes)
    cells: Indices = np.ravel_multi_index(of_attributes, shape)
    expected = np.bincount(cells, weights=known.weights, minlength=released.size).reshape(shape)
    residual: Reals = released - share * expected
    # Centred again: the part of the noise outside says nothing of the row.
    for axis in range(residual.ndim):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    squared = float(np.prod([1 - 1 / size for size in shape]))
    at, own = cells[known.targets], known.weights[known.targets]
    others, unknown = known.others(cells, released.size)
    excess = residual.ravel()[at] + share * (own - 0.5) * squared
    spread = sigma**2 + squared * (share * (1 - share) * others + share**2 * unknown)
    spread = np.maximum(spread, _EXACT_VARIANCE)
    ratios: Reals = np.clip(share * excess / spread, -_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return ratios


def _table_ratios(evidence: TableCounts, graph: Graph, known: KnownRows, run: Run) -> Reals:
    """Sum the ratios of the paper's conditional tables; moments are not attacked."""
    law, attributes = run.plan.privacy.counts, run.schema.attributes
    total = np.zeros(len(known.targets))
    for i, released in enumerate(evidence.tables):
        if isinstance(released, Moments):
            continue
        cells = cell_indices(attributes, known.codes, table_query(graph, i))
        if law.name == "discrete_laplace" and known.shares["parameters"] == 1:
            total += _laplace_ratios(released.ravel(), cells, law, known)
        else:
            total += _cell_ratios(released.ravel(), cells, law.variance, known, part="parameters")
    return total


def _laplace_ratios(released: Counts, cells: Indices, law: Law, known: KnownRows) -> Reals:
    """Log ratio of discrete Laplace noise, (|y - c| - |y - c - 1|) / b."""
    others, _ = known.others(cells, len(released))
    excess = released[cells[known.targets]] - others
    scale = np.sqrt(law.variance / 2)
    return np.asarray((np.abs(excess) - np.abs(excess - 1)) / scale)


def prefix_ratios(
    level: KeptPrefixes, order: Sequence[int], known: KnownRows, *, k: int, law: Law
) -> Reals:
    """Log likelihood ratio of one length of the seed histogram, for each target.

    A prefix is kept if its count is at least k and its noisy count at least k + r. Prefixes that
    are not kept are evidence too. With a split, which rows are seeds is secret: 0.
    """
    if known.shares["seeds"] < 1:
        return np.zeros(len(known.targets))
    columns = list(order[: level.length])
    counted = zip(_rows(level.prefixes), level.counts.tolist(), strict=True)
    kept = {row.tobytes(): noisy for row, noisy in counted}
    prefixes = _rows(known.codes[:, columns])
    _, cells = np.unique(prefixes, return_inverse=True)
    others, _ = known.others(cells, int(cells.max()) + 1)
    ratios = np.zeros(len(known.targets))
    for at, (target, count) in enumerate(zip(known.targets, np.rint(others), strict=True)):
        noisy = kept.get(prefixes[target].tobytes())
        with_row = _log_probability(noisy, int(count) + 1, k=k, law=law)
        without = _log_probability(noisy, int(count), k=k, law=law)
        ratios[at] = np.clip(with_row - without, -_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return ratios


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
    share, weight = known.shares["seeds"], 1 / len(model.kept)
    per_row = len(released) / max(share * float(known.weights.sum()), 1.0)
    total = np.zeros(len(known.targets))
    for length in model.kept:
        if length == 0:
            continue
        columns = list(model.network.order[:length])
        both = np.concatenate([known.codes[:, columns], released[:, columns]])
        _, cells = np.unique(_rows(both), return_inverse=True)
        of_rows, of_records = np.split(cells, [len(known.codes)])
        size = int(cells.max()) + 1
        others = share * known.others(of_rows, size)[0]
        hits = np.bincount(of_records, minlength=size)[of_rows[known.targets]]
        pass_with = np.array([passes(count) for count in others + share])
        pass_without = np.array([passes(count) for count in others])
        chance = (1 - weight) * per_row * (others + 0.05) + 0.01
        expected_with = weight * per_row * (others + share) * pass_with + chance
        expected = weight * per_row * others * pass_without + chance
        ratios = hits * np.log(expected_with / expected) - (expected_with - expected)
        total += np.clip(ratios, -_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return total


def _rows(codes: Codes) -> np.ndarray:
    """View each row as one opaque value that can be compared and sorted."""
    packed = np.ascontiguousarray(codes)
    return packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))).ravel()


def _log_probability(noisy: int | None, count: int, *, k: int, law: Law) -> float:
    """Log probability of a kept noisy count, or of none, given the exact count; never -inf."""
    least = -_MAX_LOG_RATIO
    if count < k:
        return 0.0 if noisy is None else least
    weights = law.table.probabilities()
    if noisy is not None:
        z = abs(noisy - count)
        return max(float(np.log(weights[z])), least) if z <= law.radius else least
    # Not kept: the noise is below k + r - count.
    below = np.arange(-law.radius, min(k + law.radius - count, law.radius + 1))
    lost = float(weights[np.abs(below)].sum())
    return max(float(np.log(lost)), least) if lost > 0 else least
