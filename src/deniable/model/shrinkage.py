"""Noisy pairs made to agree with each other, and believed only as far as their noise allows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.data.attributes import Attribute
from deniable.model.coarse import sum_by
from deniable.model.pairs import Measured, Pair, share_of, shares_of_values

# No value is impossible: the least share of a bin, and the least count in units of its deviation.
_LEAST_SHARE = 1e-6
_HIDDEN = 0.25
# Keeps the weights of tables without noise finite.
_NO_NOISE = 1e-6
# The strength of a pair that shows nothing: it may still be looked at again.
_LEAST_STRENGTH = 1e-4
# The least of what independence would put in a cell; and rounds of fitting margins.
_LEAST_CELL = 1e-3
_RAKES = 20
# By how much the largest singular value that noise is expected to have is passed by chance: a
# table of which nothing but chance is kept is worse than independence.
_BY_CHANCE = 1.05
# One attribute all but decides the other where cells that stand out hold this share of the records,
# and the rest is off by no more deviations than this from what noise alone would leave.
_DECIDED = 0.8
_FAR_OFF = 3.0


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """What the noisy counts say, tables in agreement.

    Attributes:
        records: How many records the pairs speak of.
        values: Each attribute's distribution.
        bins: The same in bins.
        excess: For i < j, counts beyond what independence would give; rows and columns sum to 0.
        effect: τ: the mean square of excess over expected, the noise taken off; 0: no effect.
        sigma: The deviation of the noise of each pair's counts.
        weight: How much one attribute says about the other, to rank parents by.
    """

    records: float
    values: tuple[Reals, ...] = field(repr=False)
    bins: tuple[Reals, ...] = field(repr=False)
    excess: dict[Pair, Reals] = field(repr=False)
    effect: dict[Pair, float] = field(repr=False)
    sigma: dict[Pair, float] = field(repr=False)
    weight: Reals = field(repr=False)

    def excess_of(self, parent: int, child: int) -> Reals:
        """Return the excess of a pair, the parent's bins by the child's."""
        if parent < child:
            return self.excess[parent, child]
        turned: Reals = self.excess[child, parent].T
        return turned

    def effect_of(self, one: int, other: int) -> float:
        """Return τ of a pair; 0 where it was not counted."""
        return self.effect.get((min(one, other), max(one, other)), 0.0)

    def sigma_of(self, one: int, other: int) -> float:
        """Return the deviation of the noise of a pair's counts."""
        return self.sigma[min(one, other), max(one, other)]


def find_dependence(measured: Measured, attributes: Sequence[Attribute]) -> Dependence:
    """Return what noisy values and pairs say together: post-processing, so it costs nothing."""
    records = measured.ratio * measured.records
    tables = {pair: measured.counts(pair) for pair in measured.pairs}
    values, bins = [], []
    alone = shares_of_values(attributes, measured.values, measured.sigmas)
    for i, (own, groups) in enumerate(zip(alone, measured.bins, strict=True)):
        share = _agreed_share(i, own, measured, tables)
        inside = (own + 1e-9) / sum_by(groups, own + 1e-9)[groups]
        values.append(inside * share[groups])
        bins.append(share)
    beyond = {
        (i, j): centred(table - records * np.outer(bins[i], bins[j]))
        for (i, j), (table, _) in tables.items()
    }
    sigma = {pair: deviation for pair, (_, deviation) in tables.items()}
    margins = [records * share for share in bins]
    excess, effect = {}, {}
    weight = np.zeros((len(bins), len(bins)))
    for (i, j), believed in _believe(beyond, sigma, margins).items():
        expected = np.outer(margins[i], bins[j])
        effect[i, j] = _effect(beyond[i, j], expected, sigma[i, j])
        excess[i, j] = believed - expected
        said = float((excess[i, j] ** 2 / (expected + sigma[i, j])).sum()) / records
        weight[i, j] = weight[j, i] = said
    return Dependence(
        records=records,
        values=tuple(values),
        bins=tuple(bins),
        excess=excess,
        effect=effect,
        sigma=sigma,
        weight=weight,
    )


def strengths(measured: Measured, attributes: Sequence[Attribute]) -> dict[Pair, float]:
    """Return how far each pair is from independent, as a share of the records, beyond its noise.

    Of the first look alone; what noise could have made counts as almost nothing.
    """
    records = measured.ratio * measured.records
    alone = shares_of_values(attributes, measured.values, measured.sigmas)
    shares = [sum_by(groups, own) for groups, own in zip(measured.bins, alone, strict=True)]
    found = {}
    for (i, j), table in measured.pairs.items():
        beyond = centred(table - records * np.outer(shares[i], shares[j]))
        by_direction = float(np.abs(shrink(beyond, measured.sigma)).sum()) / 2
        by_cell = float(beyond[stands_out(beyond, measured.sigma)].sum())
        found[i, j] = max(by_direction, by_cell) / records
    return {pair: far + _LEAST_STRENGTH for pair, far in found.items()}


def _agreed_share(
    i: int, own: Reals, measured: Measured, tables: Mapping[Pair, tuple[Reals, float]]
) -> Reals:
    """Return the distribution of bins that all tables with attribute i agree on best.

    The mean of what each says, weighed by how sure it is: a bin of the attribute's own table sums
    the noise of its values, a row of a pair's that of its columns.
    """
    groups, records = measured.bins[i], measured.ratio * measured.records
    variance = (measured.ratio * measured.sigmas[i]) ** 2 * np.bincount(groups) + _NO_NOISE
    said = records * sum_by(groups, own) / variance
    sure = 1 / variance
    for (a, b), (table, sigma) in tables.items():
        if i in (a, b):
            rows = table if a == i else table.T
            spread = sigma**2 * rows.shape[1] + _NO_NOISE
            said = said + rows.sum(axis=1) / spread
            sure = sure + 1 / spread
    # What noise has hidden may be there all the same: a missing cell above all, whose bin is its
    # own however rare it is.
    hidden = np.maximum(_HIDDEN / np.sqrt(sure) / records, _LEAST_SHARE)
    share = np.maximum(share_of(said / sure, records), hidden)
    agreed: Reals = share / share.sum()
    return agreed


def _believe(
    beyond: Mapping[Pair, Reals], sigma: Mapping[Pair, float], margins: Sequence[Reals]
) -> dict[Pair, Reals]:
    """Return each pair's table, with its margins, as far as noise lets it be believed."""
    tables = {}
    for (i, j), found in beyond.items():
        decided = decide(found, sigma[i, j], margins[i], margins[j])
        if decided is not None:
            tables[i, j] = decided
    others = {pair: found for pair, found in beyond.items() if pair not in tables}
    shapes = _directions(others, sigma, len(margins))
    for (i, j), found in others.items():
        kept = _believed(found, shapes[i], shapes[j], sigma[i, j])
        expected = np.outer(margins[i], margins[j]) / margins[i].sum()
        tables[i, j] = rake(expected + kept, margins[i], margins[j])
    return {pair: tables[pair] for pair in beyond}


def _directions(beyond: Mapping[Pair, Reals], sigma: Mapping[Pair, float], m: int) -> list[Reals]:
    """Return, for each attribute, the directions in which its bins differ in some table.

    All tables of an attribute side by side, each in units of its noise: directions whose singular
    value noise alone could not make. What one table hints at, many together can show.
    """
    found = []
    for i in range(m):
        sides = [
            (table if one == i else table.T) / sigma[one, other]
            for (one, other), table in beyond.items()
            if i in (one, other) and sigma[one, other] > 0
        ]
        if not sides:
            found.append(np.empty((0, 0)))
            continue
        whole = np.concatenate(sides, axis=1)
        left, size, _ = np.linalg.svd(whole, full_matrices=False)
        by_noise = np.sqrt(len(whole) - 1) + np.sqrt(whole.shape[1] - len(sides))
        found.append(left[:, size > _BY_CHANCE * by_noise])
    return found


def _believed(beyond: Reals, left: Reals, right: Reals, sigma: float) -> Reals:
    """Return a table's excess without what noise could have made.

    What lies in the directions of both attributes is shrunk there, among few numbers; the rest by
    itself.
    """
    if not sigma > 0:
        return beyond
    inside = left.T @ beyond @ right
    rest = shrink(beyond - left @ inside @ right.T, sigma)
    if not inside.size:
        return rest
    shared: Reals = left @ shrink(inside, sigma, less=0) @ right.T
    return shared + rest


def stands_out(beyond: Reals, sigma: float) -> Mask:
    """Return the cells that hold more than noise would put in the fullest of so many."""
    far: Mask = beyond > sigma * np.sqrt(2 * np.log(beyond.size))
    return far


def decide(beyond: Reals, sigma: float, rows: Reals, columns: Reals) -> Reals | None:
    """Return the table of two attributes of which one all but decides the other; None: it does not.

    Then few cells hold most records, and noise explains what is beside them. Such a table has as
    many directions as bins, so that noise hides them all, while its cells stand out.
    """
    far = stands_out(beyond, sigma)
    expected = np.outer(rows, columns) / rows.sum()
    held = np.where(far, beyond + expected, 0.0)
    if not sigma > 0 or held.sum() < _DECIDED * rows.sum():
        return None
    table = fill(held, rows, columns)
    free = (len(rows) - 1) * (len(columns) - 1)
    left = float(np.square(beyond + expected - table).sum()) / sigma**2
    return table if left < free + _FAR_OFF * np.sqrt(2 * free) else None


def fill(held: Reals, rows: Reals, columns: Reals) -> Reals:
    """Return a table with these margins in which some cells hold what they hold, or less.

    The others, those that hold nothing yet, share what is left as if rows and columns were
    independent there.
    """
    kept = held * np.minimum(1.0, rows / np.maximum(held.sum(axis=1), _NO_NOISE))[:, None]
    kept *= np.minimum(1.0, columns / np.maximum(kept.sum(axis=0), _NO_NOISE))
    left = rows - kept.sum(axis=1), columns - kept.sum(axis=0)
    others = np.where(held > 0, _NO_NOISE, np.outer(rows, columns) / rows.sum())
    for _ in range(_RAKES):
        others *= (left[0] / np.maximum(others.sum(axis=1), _NO_NOISE))[:, None]
        others *= left[1] / np.maximum(others.sum(axis=0), _NO_NOISE)
    return rake(kept + others, rows, columns)


def rake(table: Reals, rows: Reals, columns: Reals) -> Reals:
    """Return the table without anything below zero, with these margins: proportional fitting."""
    fitted: Reals = np.maximum(table, _LEAST_CELL * np.outer(rows, columns) / rows.sum() + 1e-9)
    for _ in range(_RAKES):
        fitted *= (rows / fitted.sum(axis=1))[:, None]
        fitted *= columns / fitted.sum(axis=0)
    return fitted


def centred(table: Reals) -> Reals:
    """Return the table with rows and columns that sum to zero: its margins are known better."""
    rows = table - table.mean(axis=1, keepdims=True)
    both: Reals = rows - rows.mean(axis=0, keepdims=True)
    return both


def _effect(beyond: Reals, expected: Reals, sigma: float) -> float:
    """Return the mean square of excess over expected counts, the noise's own share taken off."""
    rows, columns = beyond.shape
    if rows < 2 or columns < 2:
        return 0.0
    noise = (rows - 1) * (columns - 1) * sigma**2
    return max(0.0, float((beyond**2).sum() - noise) / float((expected**2).sum()))


def shrink(beyond: Reals, sigma: float, *, less: int = 1) -> Reals:
    """Return the table with the singular values that it would have without the noise.

    The best shrinkage in squared error for a matrix of low rank in white noise (Gavish and Donoho,
    2017): a singular value that noise alone could make becomes 0, others lose what noise added.

    Args:
        beyond: The table.
        sigma: The deviation of its noise.
        less: How many dimensions fewer it has each way than rows and columns; where they sum to
            zero, one.
    """
    rows, columns = beyond.shape
    if rows <= less or columns <= less:
        return np.zeros_like(beyond)
    one, two = np.sqrt(rows - less), np.sqrt(columns - less)
    high, low = (one + two) * sigma, abs(one - two) * sigma
    left, found, right = np.linalg.svd(beyond, full_matrices=False)
    square = np.maximum((found**2 - high**2) * (found**2 - low**2), 0.0)
    kept = np.where(found > _BY_CHANCE * high, np.sqrt(square) / np.maximum(found, 1e-300), 0.0)
    shrunk: Reals = (left * kept) @ right
    return shrunk


def strongest(dependence: Dependence, child: int, among: Sequence[int]) -> list[int]:
    """Return the attributes that say something about ``child``, those that say most first."""
    some = [j for j in among if dependence.effect_of(j, child) > 0]
    return sorted(some, key=lambda j: (-dependence.weight[j, child], j))
