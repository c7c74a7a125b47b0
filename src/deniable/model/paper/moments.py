"""Normal and regression models of numeric attributes, from noisy moments (Sec. 3.4).

The paper allows for them and omits the details. Here each model becomes a conditional table over
the attribute's bins. Everything that works with tables, the exact test included, works with it.

    normal:      x | configuration ~ N(μ_c, v_c)
    regression:  x | configuration ~ N(a_g + b_g · centres of numeric parents, v_g)

truncated to the attribute's range. Both are fitted to counts, sums and sums of products.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Counts, Indices, Reals
from deniable.errors import InvariantError
from deniable.model.paper.noisy_regression import fit_lines, shrunk_ratio
from deniable.privacy.ledger import Spend
from deniable.privacy.moment_budget import MAX_REGRESSORS, MomentModel, MomentNoise
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

# Share of a row's probability that is spread over all bins by width: no value becomes impossible.
_MIN_PROBABILITY_SHARE = 2.0**-30
# The least probability of a missing and of a present cell: 1 minus it is less than 1.
_ROUNDING = 2.0**-50


@dataclass(frozen=True, kw_only=True)
class Design:
    """Public design of the moments: integer values of bins and regressors, and groups.

    Attributes:
        values: The integer that stands for each bin of the attribute, from -B to B.
        regressors: Integers that stand for the buckets of numeric parents, from -B to B:
            configurations by regressors.
        groups: The group of each configuration. Configurations of one group differ only in their
            regressors.
    """

    values: Counts = field(repr=False)
    regressors: Counts = field(repr=False)
    groups: Indices = field(repr=False)

    @property
    def group_count(self) -> int:
        """The number of groups; each has its own regression line."""
        return int(self.groups.max()) + 1


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Noisy moments of one attribute, from which its table is estimated. One row per group.

    Attributes:
        model: Normal, or regression.
        shape: Shape of the table: configurations by codes.
        bound: B.
        deviations: Standard deviations of the noise of the three arrays; 0 means no noise.
        records: The number of records with a value and, if it can be missing, without.
        sums: The sums of each regressor and, last, of the value.
        squares: The sums of their pairwise products: the upper triangle, row by row.
    """

    model: MomentModel
    shape: tuple[int, int]
    bound: int
    deviations: tuple[float, float, float]
    records: Counts = field(repr=False)
    sums: Counts = field(repr=False)
    squares: Counts = field(repr=False)

    def __post_init__(self) -> None:
        arrays = (self.records, self.sums, self.squares)
        if not all(array.ndim == 2 and len(array) == len(self.records) for array in arrays):
            raise InvariantError("the moments of an attribute need one row per group")
        variables = self.sums.shape[1]
        fits = self.records.shape[1] in (1, 2) and 1 <= variables <= 1 + MAX_REGRESSORS
        if not (fits and self.squares.shape[1] == variables * (variables + 1) // 2):
            raise InvariantError("counts, sums and squares of an attribute have different shapes")


def make_design(
    attributes: Sequence[Attribute],
    parents: Sequence[int],
    i: int,
    *,
    model: MomentModel,
    bound: int,
) -> Design:
    """Design the moments of attribute ``i``.

    The first three numeric parents of a regression are regressors, by the centre of their bucket;
    a missing one counts as 0, the middle of its range. All other parents define groups.
    """
    shape = tuple(attributes[j].buckets for j in parents)
    bucket_indices = np.indices(shape).reshape(len(shape), int(np.prod(shape)))
    numeric = [axis for axis, j in enumerate(parents) if attributes[j].is_numeric]
    regressor_axes = numeric[:MAX_REGRESSORS] if model == "regression" else []
    group_axes = [axis for axis in range(len(shape)) if axis not in regressor_axes]
    groups = np.zeros(bucket_indices.shape[1], dtype=np.intp)
    for axis in group_axes:
        groups = groups * shape[axis] + bucket_indices[axis]
    regressors = np.zeros((bucket_indices.shape[1], len(regressor_axes)), dtype=np.int64)
    for column, axis in enumerate(regressor_axes):
        centres = _scale_to_integers(_bucket_centres(attributes[parents[axis]]), bound)
        regressors[:, column] = centres[bucket_indices[axis]]
    return Design(
        values=_scale_to_integers(_bin_centres(attributes[i]), bound),
        regressors=regressors,
        groups=groups,
    )


def _half_range(attribute: Attribute) -> float:
    """Half the distance between the first and the last position; ½ if there is only one."""
    return max((len(attribute.values) - 1) / 2, 0.5)


def _bin_starts(attribute: Attribute) -> Reals:
    """The first position of each bin, counted from that of the first bin."""
    starts = attribute.first_positions
    offsets: Reals = (starts - starts[0]).astype(np.float64)
    return offsets


def _bin_centres(attribute: Attribute) -> Reals:
    """The centre of each bin, on a scale from -1 to 1 over the attribute's range."""
    middle = (len(attribute.values) - 1) / 2
    centres = _bin_starts(attribute) + (attribute.widths - 1) / 2
    scaled: Reals = (centres - middle) / _half_range(attribute)
    return scaled


def _bin_edges(attribute: Attribute) -> Reals:
    """The start of each bin and the end of the last, on the same scale."""
    middle = (len(attribute.values) - 1) / 2
    starts = np.append(_bin_starts(attribute), len(attribute.values)) - 0.5
    edges: Reals = (starts - middle) / _half_range(attribute)
    return edges


def _bucket_centres(attribute: Attribute) -> Reals:
    """The mean position of each bucket, on the same scale; 0 for missing."""
    buckets = attribute.bucket_of[: attribute.bins]
    width = np.bincount(buckets, weights=attribute.widths, minlength=attribute.buckets)
    weighted = attribute.widths * _bin_centres(attribute)
    total = np.bincount(buckets, weights=weighted, minlength=attribute.buckets)
    return total / np.maximum(width, 1)


def _scale_to_integers(positions: Reals, bound: int) -> Counts:
    """Scale positions from -1 … 1 to integers from -B to B, clipped.

    The sensitivity depends on the clipping: one record contributes at most B, whatever its value.
    """
    return np.clip(np.rint(positions * bound), -bound, bound).astype(np.int64)


def sum_moments(table: Counts, design: Design) -> tuple[Counts, Counts, Counts]:
    """Compute the exact counts, sums and sums of products of each group. Confidential.

    Privacy:
        Neighbours: add or remove one record, which is in one cell of ``table``. With a value it
            moves, in one group, one count by 1, each of r + 1 sums by at most B, and each of
            (r + 1)(r + 2) / 2 sums of products by at most B². Without a value, one count by 1.
        Does not cover: anything; there is no noise yet.
    """
    bins = len(design.values)
    present = table[:, :bins].sum(axis=1)
    first = table[:, :bins] @ design.values
    second = table[:, :bins] @ design.values**2
    x = design.regressors
    sums = np.column_stack([x * present[:, None], first])
    products = [
        x[:, j] * x[:, k] * present if k < x.shape[1] else x[:, j] * first
        for j in range(x.shape[1])
        for k in range(j, x.shape[1] + 1)
    ]
    squares = np.column_stack([*products, second])
    records = np.column_stack([present, *table[:, bins:].T])
    return (
        _sum_by_group(records, design),
        _sum_by_group(sums, design),
        _sum_by_group(squares, design),
    )


def _sum_by_group(rows: Counts, design: Design) -> Counts:
    total = np.zeros((design.group_count, rows.shape[1]), dtype=np.int64)
    np.add.at(total, design.groups, rows)
    return total


def learn_moments(
    rng: Rng, table: Counts, design: Design, noise: MomentNoise, *, model: MomentModel, name: str
) -> tuple[Moments, list[Spend]]:
    """Measure the noisy moments of one attribute, given its exact table of counts.

    Returns:
        The moments and their spends.

    Privacy:
        Neighbours: add or remove one record of the part that is counted: see ``sum_moments``.
        Covers: all noisy moments, those of empty groups too, and everything computed from them, at
            the cost of one table of counts (``privacy.moment_budget.moment_noise``).
        Does not cover: the ranges, which must be public: values are scaled to them.
    """
    noisy, spends = [], []
    planned = noise.spends(name)
    for exact, law, spend in zip(sum_moments(table, design), noise.laws, planned, strict=True):
        numbers, spent = add_noise(
            rng,
            exact,
            law,
            what=spend.what,
            part="parameters",
            sensitivity=spend.sensitivity,
            l0_sensitivity=spend.l0_sensitivity,
        )
        noisy.append(numbers)
        spends.append(spent)
    moments = Moments(
        model=model,
        shape=(table.shape[0], table.shape[1]),
        bound=noise.bound,
        deviations=noise.deviations,
        records=noisy[0],
        sums=noisy[1],
        squares=noisy[2],
    )
    return moments, spends


def fit_table(
    moments: Moments,
    attributes: Sequence[Attribute],
    parents: Sequence[int],
    i: int,
    *,
    alpha: float,
) -> Reals:
    """Fit the conditional table of attribute ``i`` to its noisy moments. Post-processing: no cost.

    Line and variance of a group with few records, relative to the noise, are shrunk toward those of
    all groups; a prior of α records does the same without noise.
    """
    attribute = attributes[i]
    design = make_design(attributes, parents, i, model=moments.model, bound=moments.bound)
    fits = (len(design.groups), attribute.size) == moments.shape
    groups, variables = design.group_count, 1 + design.regressors.shape[1]
    record_columns = 1 + bool(attribute.missing)
    fits &= moments.records.shape == (groups, record_columns)
    if not (fits and moments.sums.shape == (groups, variables)):
        raise InvariantError("the moments of an attribute do not have the shape of its graph")
    quantisation = _quantisation_variance(attribute, design, moments.bound)
    means, variances = _fit_normals(moments, design, quantisation, alpha=alpha)
    edges = _bin_edges(attribute) * moments.bound
    rows = normal_rows(means, variances, edges)
    if not attribute.missing:
        return rows
    missing = _missing_probability(moments, alpha=alpha)[design.groups]
    return np.column_stack([rows * (1 - missing[:, None]), missing])


def normal_rows(means: Reals, variances: Reals, edges: Reals) -> Reals:
    """Compute bin probabilities under N(mean, variance), truncated to the range: one row each."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import, seldom used

    z = (edges - means[:, None]) / np.sqrt(variances)[:, None]
    # Above the mean, use the upper tail: differences of numbers near 1 would lose all digits.
    above = ndtr(-z[:, :-1]) - ndtr(-z[:, 1:])
    below = ndtr(z[:, 1:]) - ndtr(z[:, :-1])
    rows = np.maximum(np.where(z[:, :-1] > 0, above, below), 0.0)
    rows /= rows.sum(axis=1, keepdims=True)
    widths = np.diff(edges) / (edges[-1] - edges[0])
    rows = (1 - _MIN_PROBABILITY_SHARE) * rows + _MIN_PROBABILITY_SHARE * widths
    normalised: Reals = rows / rows.sum(axis=1, keepdims=True)
    return normalised


def _quantisation_variance(attribute: Attribute, design: Design, bound: int) -> float:
    """Compute the variance that binning and rounding add to a value (Sheppard's correction).

    The mean square difference between a value and the integer of its bin, for a value uniform over
    the range.
    """
    edges = _bin_edges(attribute) * bound
    widths = np.diff(edges)
    errors = (edges[1:] + edges[:-1]) / 2 - design.values
    return float((widths * (widths**2 / 12 + errors**2)).sum() / widths.sum())


def _missing_probability(moments: Moments, *, alpha: float) -> Reals:
    """Estimate the probability of a missing cell in each group."""
    noise = moments.deviations[0]
    counts = moments.records.astype(np.float64)
    present, missing = np.maximum(counts.sum(axis=0), 0.0)
    # One record is added to each kind, so that the share is neither 0 nor 1; nor by rounding.
    overall = (missing + 1) / (present + missing + 2)
    overall = float(np.clip(overall, _ROUNDING, 1 - _ROUNDING))
    variance = np.array(noise**2 * (overall**2 + (1 - overall) ** 2) / (overall * (1 - overall)))
    shares = shrunk_ratio(counts[:, 1], counts.sum(axis=1), overall, variance, alpha=alpha)
    low, high = overall * _MIN_PROBABILITY_SHARE, 1 - (1 - overall) * _MIN_PROBABILITY_SHARE
    return np.clip(shares, max(low, _ROUNDING), min(high, 1 - _ROUNDING))


def _fit_normals(
    moments: Moments, design: Design, quantisation: float, *, alpha: float
) -> tuple[Reals, Reals]:
    """Estimate mean and variance of each configuration, on the scale of -B … B."""
    bound = float(moments.bound)
    gram = _gram(moments)
    gram[:, -1, -1] -= quantisation * gram[:, 0, 0]
    noise = _gram_noise(moments)
    lines, variances = fit_lines(gram, noise, bound=bound, min_variance=quantisation, alpha=alpha)
    inputs = np.column_stack([np.ones(len(design.groups)), design.regressors])
    means = (lines[design.groups] * inputs).sum(axis=1)
    return np.clip(means, -bound, bound), np.clip(variances, quantisation, bound**2)[design.groups]


def _gram(moments: Moments) -> Reals:
    """Assemble the noisy Gram matrix Σ u uᵀ of each group, u = (1, regressors, value)."""
    size = 1 + moments.sums.shape[1]
    gram = np.empty((len(moments.records), size, size))
    gram[:, 0, 0] = moments.records[:, 0]
    gram[:, 0, 1:] = gram[:, 1:, 0] = moments.sums
    rows, columns = np.triu_indices(size - 1)
    gram[:, 1 + rows, 1 + columns] = gram[:, 1 + columns, 1 + rows] = moments.squares
    return gram


def _gram_noise(moments: Moments) -> Reals:
    """Variance of the noise of each entry of a group's Gram matrix."""
    size = 1 + moments.sums.shape[1]
    records, sums, squares = np.square(moments.deviations)
    noise = np.full((size, size), squares)
    noise[0, :] = noise[:, 0] = sums
    noise[0, 0] = records
    return noise
