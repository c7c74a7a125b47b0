"""Normal and regression models of numeric attributes: noisy sums in place of counts (Sec. 3.4).

The paper allows for them and omits the details. Here each becomes a conditional table over the
attribute's bins, so that all that is done with tables, the exact test included, is done with them.

    normal:      x | configuration ~ N(μ_c, v_c)
    regression:  x | configuration ~ N(a_g + b_g · centres of numeric parents, v_g)

with the value cut to its range. Both come from numbers of records, sums and sums of products.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from deniable.arrays import Counts, Indices, Reals
from deniable.data.attributes import Attribute
from deniable.errors import InvariantError
from deniable.model.lines import fit_lines, lean
from deniable.privacy.ledger import Spend
from deniable.privacy.moments import MOST_REGRESSORS, MomentModel, MomentNoise
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng

# What every bin keeps, in proportion to its width, of a row's probability: no value becomes
# impossible because it is far out.
_UNLIKELY = 2.0**-30


@dataclass(frozen=True, kw_only=True)
class Design:
    """How the cells of a table of counts enter the sums: public.

    Attributes:
        values: What each bin of the attribute counts as, from -B to B.
        regressors: The same of numeric parents: one row a configuration, one column a regressor.
        groups: The group of each configuration: those that differ in regressors only share one.
    """

    values: Counts = field(repr=False)
    regressors: Counts = field(repr=False)
    groups: Indices = field(repr=False)

    @property
    def number_of_groups(self) -> int:
        """The number of groups; each has a line of its own."""
        return int(self.groups.max()) + 1


@dataclass(frozen=True, kw_only=True)
class Moments:
    """The noisy sums of one attribute: what its table is estimated from. One row a group.

    Attributes:
        model: Normal, or regression.
        shape: Of the table: configurations by codes.
        bound: B.
        deviations: The standard deviations of the three kinds of noise; 0: none.
        records: How many records have a value; and, where it can be missing, how many have none.
        sums: The sums of each regressor and, last, of the value.
        squares: The sums of their products, two at a time, row by row of the upper triangle.
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
            raise InvariantError("the sums of an attribute have one row a group")
        variables = self.sums.shape[1]
        fits = self.records.shape[1] in (1, 2) and 1 <= variables <= 1 + MOST_REGRESSORS
        if not (fits and self.squares.shape[1] == variables * (variables + 1) // 2):
            raise InvariantError("sums, squares and numbers of records do not fit each other")


def design_of(
    attributes: Sequence[Attribute],
    parents: Sequence[int],
    i: int,
    *,
    model: MomentModel,
    bound: int,
) -> Design:
    """Return how the cells of the table of attribute ``i`` enter its sums.

    The first three numeric parents of a regression are regressors, by the centre of their bucket;
    a missing one counts as 0, the middle of its range. All other parents make groups.
    """
    shape = tuple(attributes[j].buckets for j in parents)
    places = np.indices(shape).reshape(len(shape), int(np.prod(shape)))
    numeric = [at for at, j in enumerate(parents) if attributes[j].is_numeric]
    chosen = numeric[:MOST_REGRESSORS] if model == "regression" else []
    others = [at for at in range(len(shape)) if at not in chosen]
    groups = np.zeros(places.shape[1], dtype=np.intp)
    for at in others:
        groups = groups * shape[at] + places[at]
    regressors = np.zeros((places.shape[1], len(chosen)), dtype=np.int64)
    for column, at in enumerate(chosen):
        centres = _in_steps(_bucket_centres(attributes[parents[at]]), bound)
        regressors[:, column] = centres[places[at]]
    return Design(
        values=_in_steps(_centres(attributes[i]), bound), regressors=regressors, groups=groups
    )


def _half_range(attribute: Attribute) -> float:
    """Return half the distance of the first and the last position; of a single one, a half."""
    return max((len(attribute.values) - 1) / 2, 0.5)


def _offsets(attribute: Attribute) -> Reals:
    """Return the first position of each bin, counted from the first of all."""
    starts = attribute.first_positions
    offsets: Reals = (starts - starts[0]).astype(np.float64)
    return offsets


def _centres(attribute: Attribute) -> Reals:
    """Return where the centre of each bin lies in the attribute's range, from -1 to 1."""
    middle = (len(attribute.values) - 1) / 2
    centres = _offsets(attribute) + (attribute.widths - 1) / 2
    scaled: Reals = (centres - middle) / _half_range(attribute)
    return scaled


def _edges(attribute: Attribute) -> Reals:
    """Return, on the same scale, where each bin starts and the last one ends."""
    middle = (len(attribute.values) - 1) / 2
    starts = np.append(_offsets(attribute), len(attribute.values)) - 0.5
    edges: Reals = (starts - middle) / _half_range(attribute)
    return edges


def _bucket_centres(attribute: Attribute) -> Reals:
    """Return the mean of each bucket's positions, on the same scale; 0 for that of missing."""
    buckets = attribute.bucket_of[: attribute.bins]
    width = np.bincount(buckets, weights=attribute.widths, minlength=attribute.buckets)
    inside = attribute.widths * _centres(attribute)
    total = np.bincount(buckets, weights=inside, minlength=attribute.buckets)
    return total / np.maximum(width, 1)


def _in_steps(places: Reals, bound: int) -> Counts:
    """Return places from -1 to 1 as whole numbers from -B to B, and never beyond.

    The sensitivity rests on it: whatever a place is, one record counts for at most B.
    """
    return np.clip(np.rint(places * bound), -bound, bound).astype(np.int64)


def sum_up(table: Counts, design: Design) -> tuple[Counts, Counts, Counts]:
    """Return numbers of records, sums and sums of products of each group. Confidential.

    Privacy:
        Neighbours: add or remove one record, which is in one cell of ``table``. With a value it
            moves, in one group, one number of records by 1, each of r + 1 sums by at most B, and
            each of (r + 1)(r + 2) / 2 sums of products by at most B². Without, one number by 1.
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
    return _by_group(records, design), _by_group(sums, design), _by_group(squares, design)


def _by_group(rows: Counts, design: Design) -> Counts:
    total = np.zeros((design.number_of_groups, rows.shape[1]), dtype=np.int64)
    np.add.at(total, design.groups, rows)
    return total


def learn_moments(
    rng: Rng, table: Counts, design: Design, noise: MomentNoise, *, model: MomentModel, name: str
) -> tuple[Moments, list[Spend]]:
    """Return the noisy sums of one attribute from its exact table of counts, and the bill.

    Privacy:
        Neighbours: add or remove one record of the part that is counted: see ``sum_up``.
        Covers: all noisy sums, those of empty groups too, and all that is made of them, at the
            cost of one table of counts (``privacy.moments.moment_noise``).
        Does not cover: the ranges, which must be public: values count by where they lie in them.
    """
    noisy, spends = [], []
    planned = noise.spends(name)
    for exact, law, spend in zip(sum_up(table, design), noise.laws, planned, strict=True):
        numbers, spent = add_noise(
            rng,
            exact,
            law,
            what=spend.what,
            part="parameters",
            sensitivity=spend.sensitivity,
            moved=spend.moved,
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


# From noisy sums to a table: post-processing


def fit_table(
    moments: Moments,
    attributes: Sequence[Attribute],
    parents: Sequence[int],
    i: int,
    *,
    alpha: float,
) -> Reals:
    """Return the conditional table of attribute ``i`` that its noisy sums give: post-processing.

    A group with few records, by the known deviation of the noise, leans to the line and the
    variance of all; a prior of α records does the same without noise.
    """
    attribute = attributes[i]
    design = design_of(attributes, parents, i, model=moments.model, bound=moments.bound)
    fitting = (len(design.groups), attribute.size) == moments.shape
    groups, variables = design.number_of_groups, 1 + design.regressors.shape[1]
    columns = 1 + bool(attribute.missing)
    fitting &= moments.records.shape == (groups, columns)
    if not (fitting and moments.sums.shape == (groups, variables)):
        raise InvariantError("the sums of an attribute are of another shape than its graph gives")
    hidden = _hidden(attribute, design, moments.bound)
    means, variances = _fit(moments, design, hidden, alpha=alpha)
    edges = _edges(attribute) * moments.bound
    rows = normal_rows(means, variances, edges)
    if not attribute.missing:
        return rows
    missing = _share_missing(moments, alpha=alpha)[design.groups]
    return np.column_stack([rows * (1 - missing[:, None]), missing])


def normal_rows(means: Reals, variances: Reals, edges: Reals) -> Reals:
    """Return the probability of each bin under N(mean, variance), cut to the range: one a row."""
    z = (edges - means[:, None]) / np.sqrt(variances)[:, None]
    # Beyond the mean, by the other tail: differences of numbers near 1 would lose all digits.
    above = ndtr(-z[:, :-1]) - ndtr(-z[:, 1:])
    below = ndtr(z[:, 1:]) - ndtr(z[:, :-1])
    rows = np.maximum(np.where(z[:, :-1] > 0, above, below), 0.0)
    rows /= rows.sum(axis=1, keepdims=True)
    widths = np.diff(edges) / (edges[-1] - edges[0])
    rows = (1 - _UNLIKELY) * rows + _UNLIKELY * widths
    normalised: Reals = rows / rows.sum(axis=1, keepdims=True)
    return normalised


def _hidden(attribute: Attribute, design: Design, bound: int) -> float:
    """Return the variance that bins and whole numbers add to a value (Sheppard's correction).

    A value counts as its bin's: the mean square of what that is off by, for a value that lies
    anywhere in the range with equal chances.
    """
    edges = _edges(attribute) * bound
    widths = np.diff(edges)
    off = (edges[1:] + edges[:-1]) / 2 - design.values
    return float((widths * (widths**2 / 12 + off**2)).sum() / widths.sum())


def _share_missing(moments: Moments, *, alpha: float) -> Reals:
    """Return the probability of a missing cell in each group."""
    noise = moments.deviations[0]
    counts = moments.records.astype(np.float64)
    present, missing = np.maximum(counts.sum(axis=0), 0.0)
    # One record more of each kind than was counted: never 0, never 1.
    overall = float((missing + 1) / (present + missing + 2))
    doubt = noise**2 * (overall**2 + (1 - overall) ** 2) / (overall * (1 - overall))
    shares = lean(counts[:, 1], counts.sum(axis=1), overall, np.array(doubt), alpha=alpha)
    return np.clip(shares, overall * _UNLIKELY, 1 - (1 - overall) * _UNLIKELY)


def _fit(moments: Moments, design: Design, hidden: float, *, alpha: float) -> tuple[Reals, Reals]:
    """Return mean and variance of each configuration, on the scale of -B … B."""
    bound = float(moments.bound)
    gram = _gram(moments)
    gram[:, -1, -1] -= hidden * gram[:, 0, 0]
    noise = _noise_of_gram(moments)
    lines, variances = fit_lines(gram, noise, bound=bound, least=hidden, alpha=alpha)
    at = np.column_stack([np.ones(len(design.groups)), design.regressors])
    means = (lines[design.groups] * at).sum(axis=1)
    return np.clip(means, -bound, bound), np.clip(variances, hidden, bound**2)[design.groups]


def _gram(moments: Moments) -> Reals:
    """Return Σ u uᵀ of each group, u = (1, regressors, value): symmetric, noisy."""
    size = 1 + moments.sums.shape[1]
    gram = np.empty((len(moments.records), size, size))
    gram[:, 0, 0] = moments.records[:, 0]
    gram[:, 0, 1:] = gram[:, 1:, 0] = moments.sums
    rows, columns = np.triu_indices(size - 1)
    gram[:, 1 + rows, 1 + columns] = gram[:, 1 + columns, 1 + rows] = moments.squares
    return gram


def _noise_of_gram(moments: Moments) -> Reals:
    """Return the variance of the noise of each entry of one group's ``_gram``."""
    size = 1 + moments.sums.shape[1]
    records, sums, squares = np.square(moments.deviations)
    noise = np.full((size, size), squares)
    noise[0, :] = noise[:, 0] = sums
    noise[0, 0] = records
    return noise
