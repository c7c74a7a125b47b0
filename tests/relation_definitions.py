"""Relations between columns, slow and literal: the oracle that the fast code is compared with.

Written from the definitions, with nothing of the package. A table is a dictionary of columns; a
cell of a column of numbers is a float or None, a cell of any other column is a text.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, pstdev
from typing import Any

Columns = dict[str, list[Any]]


def quantile(values: Sequence[float], share: float) -> float:
    """The linear interpolation between order statistics."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def is_number(column: list[Any]) -> bool:
    return not isinstance(next((cell for cell in column if cell is not None), None), str)


def grouped(learnt: Columns, table: Columns) -> Columns:
    """Each cell's group: a tenth of the learnt numbers, one of twelve frequent values, the rest."""
    found = {}
    for name, column in learnt.items():
        if is_number(column):
            present = [cell for cell in column if cell is not None]
            cuts = {quantile(present, tenth / 10) for tenth in range(1, 10)}
            often = {c for c in cuts if column.count(c) >= 0.05 * len(column)}
            found[name] = [
                "missing"
                if cell is None
                else str(sum(c <= cell for c in cuts) + sum(c < cell for c in often))
                for cell in table[name]
            ]
        else:
            frequent = [value for value, _ in Counter(column).most_common(12)]
            found[name] = [cell if cell in frequent else "(other)" for cell in table[name]]
    return found


def clipped(learnt: Columns, table: Columns) -> Columns:
    """The numbers, within the first and the last hundredth of the learnt ones."""
    found = {}
    for name, column in learnt.items():
        if is_number(column):
            present = [cell for cell in column if cell is not None]
            low, high = quantile(present, 0.01), quantile(present, 0.99)
            found[name] = [
                None if cell is None else min(max(cell, low), high) for cell in table[name]
            ]
    return found


def kept(ratio: float) -> float:
    return max(-1.0, ratio if ratio <= 1 else 2 - ratio)


def cramers_v(first, second) -> float:
    """Bergsma (2013): Cramér's V with a correction of its bias."""
    n, both = len(first), Counter(zip(first, second, strict=True))
    one, two = Counter(first), Counter(second)
    if min(len(one), len(two)) < 2:
        return 0.0
    chi2 = sum(
        (both[a, b] - one[a] * two[b] / n) ** 2 / (one[a] * two[b] / n) for a in one for b in two
    )
    phi = max(0.0, chi2 / n - (len(one) - 1) * (len(two) - 1) / (n - 1))
    r, k = (size - (size - 1) ** 2 / (n - 1) for size in (len(one), len(two)))
    return math.sqrt(phi / (min(r, k) - 1))


def spearman(first, second) -> float:
    """Pearson's correlation of ranks; equal numbers share the mean of their ranks."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if None not in (a, b)]

    def ranks(values):
        same = Counter(values)
        below = {value: sum(other < value for other in values) for value in same}
        return [below[value] + (same[value] + 1) / 2 for value in values]

    x, y = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    mx, my = fmean(x), fmean(y)
    product = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return product / math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))


def distance(reference, other, names) -> float:
    p, q = (
        Counter(zip(*(table[name] for name in names), strict=True)) for table in (reference, other)
    )
    return 0.5 * sum(abs(p[c] / p.total() - q[c] / q.total()) for c in p.keys() | q.keys())


def figures(learnt: Columns, reference: Columns, other: Columns) -> dict[str, float]:
    """All figures of ``other``, compared with ``reference``."""
    known, real, table = (grouped(learnt, each) for each in (learnt, reference, other))
    pairs = list(combinations(learnt, 2))
    v = [[cramers_v(t[a], t[b]) for t in (real, table)] for a, b in pairs]
    numbers = [clipped(learnt, each) for each in (learnt, reference, other)]
    rho = [[spearman(t[a], t[b]) for t in numbers[1:]] for a, b in combinations(numbers[0], 2)]
    gaps = group_gaps(numbers, real, table)
    return {
        "pairs": fmean(distance(real, table, pair) for pair in pairs),
        "association_error": fmean(abs(a - b) for a, b in v),
        "associations_kept": fmean(kept(b / a) for a, b in v if a > 0.15),
        "correlation_error": fmean(abs(a - b) for a, b in rho),
        "correlations_kept": fmean(kept(b / a) for a, b in rho if abs(a) > 0.25),
        "gap_error": sum(w * abs(a - b) for a, b, w in gaps) / sum(w for _, _, w in gaps),
        "gaps_kept": kept(sum(w * a * b for a, b, w in gaps) / sum(w * a * a for a, _, w in gaps)),
        "impossible": impossible_share(known, real, table),
    }


def group_gaps(numbers, real, table) -> list[tuple[float, float, float]]:
    """The gap in real rows, in the table, and the weight: of each number, by each other column."""
    found = []
    for of in numbers[0]:
        unit = pstdev(cell for cell in numbers[0][of] if cell is not None)
        for by in real:
            if by == of:
                continue
            for group in sorted(set(real[by])):
                (a, weight), (b, _) = (
                    gap(t[by], n[of], group, unit)
                    for t, n in ((real, numbers[1]), (table, numbers[2]))
                )
                if weight >= 0.01:
                    found.append((a, b, weight))
    return found


def gap(groups, values, group, unit) -> tuple[float, float]:
    every = [v for v in values if v is not None]
    inside = [v for g, v in zip(groups, values, strict=True) if g == group and v is not None]
    if not inside:
        return 0.0, 0.0
    return (fmean(inside) - fmean(every)) / unit, len(inside) / len(every)


def impossible_share(known, real, table) -> float:
    """The share of rows with two groups that no real row has, though five would be expected."""
    rows = len(next(iter(table.values())))
    bad = [False] * rows
    for a, b in combinations(known, 2):
        one, two = known[a] + real[a], known[b] + real[b]
        seen, of_a, of_b = set(zip(one, two, strict=True)), Counter(one), Counter(two)
        for at in range(rows):
            x, y = table[a][at], table[b][at]
            if (x, y) not in seen and of_a[x] * of_b[y] / len(one) >= 5:
                bad[at] = True
    return fmean(bad)
