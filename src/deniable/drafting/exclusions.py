"""Find combinations of two columns that no row has: "no income below 15", "never widowed at 20".

A combination is a rectangle: a condition on each column. It is drafted only if independent columns
would put ``MIN_EXPECTED_ROWS`` rows into it. So a combination that is a tenth as frequent as under
independence would be taken for impossible with probability e^-5, or 0.7 %.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from deniable.arrays import Indices, Mask
from deniable.drafting.column_axes import ColumnAxis
from deniable.drafting.dependencies import spread_rows
from deniable.drafting.empty_regions import (
    MIN_EXPECTED_ROWS,
    AxisView,
    Exclusion,
    pair_exclusions,
)
from deniable.schema.pair_masks import MaskClosure

# Largest numbers of drafted rules: of a pair of columns, and of a table. A wide table has fewer, as
# records take long to draw under many rules: a constant divided by the number of columns, but at
# least a minimum.
_MAX_RULES_PER_PAIR = 24
_MAX_RULES = 400
_MAX_RULES_TIMES_COLUMNS = 20_000
_MIN_MAX_RULES = 80
# Screening: rows, groups over all columns, groups of a column, and pairs that are searched.
_SCREENED_ROWS = 20_000
_SCREENED_GROUPS = 3_000
_MAX_SCREENED_GROUPS = 12
_MAX_SEARCHED_PAIRS = 1_500


def find_exclusions(axes: Sequence[ColumnAxis]) -> tuple[list[Exclusion], int]:
    """Find combinations that no row has.

    Returns:
        The most important ones, and how many more there are: all those that do not follow from
        others.
    """
    if len(axes) < 2 or len(axes[0].codes) < 2 * MIN_EXPECTED_ROWS:
        return [], 0
    found: list[Exclusion] = []
    beyond: list[Exclusion] = []
    views = {axis.name: AxisView(axis=axis) for axis in axes}
    for one, other in _screen_pairs(axes):
        rules = pair_exclusions(views[one.name], views[other.name])
        ranked = sorted(rules, key=lambda rule: -rule.expected)
        found += ranked[:_MAX_RULES_PER_PAIR]
        beyond += ranked[_MAX_RULES_PER_PAIR:]
    most = min(_MAX_RULES, max(_MIN_MAX_RULES, _MAX_RULES_TIMES_COLUMNS // len(axes)))
    needed = _without_implied([*sorted(found, key=_importance), *beyond], axes)
    among = {id(rule) for rule in found}
    kept = [rule for rule in needed if id(rule) in among][:most]
    return kept, len(needed) - len(kept)


def _without_implied(rules: Sequence[Exclusion], axes: Sequence[ColumnAxis]) -> list[Exclusion]:
    """Choose the rules that do not follow from others before them."""
    at = {axis.name: i for i, axis in enumerate(axes)}
    own: dict[int, list[Mask]] = {}
    for rule in rules:
        for condition, mask in zip(rule.conditions, rule.masks, strict=True):
            own.setdefault(at[condition.column], []).append(mask)
    # Codes that no rule distinguishes are merged, so that matrices are small.
    atoms = {
        i: np.unique(np.stack(masks, axis=1), axis=0, return_index=True)[1]
        for i, masks in own.items()
    }
    closure = MaskClosure([len(atoms.get(i, ())) for i in range(len(axes))])
    kept: list[Exclusion] = []
    for rule in rules:
        i, j = (at[condition.column] for condition in rule.conditions)
        excluded = np.outer(rule.masks[0][atoms[i]], rule.masks[1][atoms[j]])
        if (closure.allowed(i, j) & excluded).any():
            closure.restrict(i, j, ~excluded)
            kept.append(rule)
    return kept


def _importance(rule: Exclusion) -> tuple[bool, float, int]:
    """Sort key: rules on missing cells first, then expected rows, then the number of bounds.

    Cells that are missing together are few, but the rule is seldom chance: the same question was
    not asked. Expected rows count in rough steps, the most first.
    """
    keys = [key for each in rule.conditions for key, _ in each.bounds]
    bounds = sum(key != "missing" for key in keys)
    return "missing" not in keys, -round(float(np.log2(rule.expected)), 1), -bounds


# Screening


def _screen_pairs(axes: Sequence[ColumnAxis]) -> Iterator[tuple[ColumnAxis, ColumnAxis]]:
    """Yield the pairs with empty combinations of coarse groups, largest expected count first.

    All two-way tables of groups are one matrix product.
    """
    rows = len(axes[0].codes)
    sample = spread_rows(rows, _SCREENED_ROWS)
    groups = min(_MAX_SCREENED_GROUPS, max(3, _SCREENED_GROUPS // len(axes)))
    if groups * len(axes) > 2 * _SCREENED_GROUPS:
        axes = axes[: 2 * _SCREENED_GROUPS // groups]
    coarse = [_coarse_groups(axis, groups)[axis.codes[sample]] for axis in axes]
    offsets = np.cumsum([0, *(int(group.max()) + 1 for group in coarse)])
    flags = np.zeros((len(sample), int(offsets[-1])), dtype=np.float32)
    for group, offset in zip(coarse, offsets[:-1], strict=True):
        flags[np.arange(len(sample)), offset + group] = 1.0
    counts = flags.T @ flags
    totals = np.diagonal(counts)
    expected = np.outer(totals, totals) / len(sample)
    empty = np.where(counts == 0, expected, 0.0)
    empty *= rows / len(sample)
    by_pair = np.add.reduceat(np.add.reduceat(empty, offsets[:-1], 0), offsets[:-1], 1)
    # Groups of one column exclude each other: only pairs of different columns count.
    pairs = [
        (float(by_pair[i, j]), i, j)
        for i, j in zip(*np.nonzero(np.triu(by_pair, 1) >= MIN_EXPECTED_ROWS / 2), strict=True)
    ]
    for _, i, j in sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))[:_MAX_SEARCHED_PAIRS]:
        yield axes[i], axes[j]


def _coarse_groups(axis: ColumnAxis, groups: int) -> Indices:
    """Assign each code to one of a few groups of similar size; missing to its own."""
    counts = axis.counts[: axis.values]
    of_code: Indices = np.zeros(axis.size, dtype=np.intp)
    if axis.values:
        if axis.is_range or axis.values <= groups - 1:
            share = (np.cumsum(counts) - counts / 2) / max(int(counts.sum()), 1)
            fine = np.minimum((share * (groups - 1)).astype(np.intp), groups - 2)
            fine = fine if axis.values > groups - 1 else np.arange(axis.values)
        else:
            order = np.argsort(-counts, kind="stable")
            fine = np.full(axis.values, groups - 2, dtype=np.intp)
            fine[order[: groups - 2]] = np.arange(groups - 2)
        of_code[: axis.values] = np.unique(fine, return_inverse=True)[1]
    if axis.missing is not None:
        of_code[-1] = of_code[: axis.values].max(initial=-1) + 1
    return of_code
