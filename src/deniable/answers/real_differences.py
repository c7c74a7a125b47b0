"""Which differences between groups of rows are real: shares compared, all at once, in words.

For each group of the first column and each cell of the second, the share of the cell in the group
is compared with its share in all other rows. With K comparisons each has an error of 5 % / K
(Bonferroni), so that all stated differences hold together with 95 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.answers.measured_cells import MeasuredCells
from deniable.answers.noise_intervals import CONFIDENCE, critical_value
from deniable.arrays import Reals

# A group has too few rows to compare if the standard deviation of the noise of their number exceeds
# this share of it: the ratio would no longer be nearly linear in the noise.
_MAX_GROUP_ERROR = 0.2
# Bounds the time of all comparisons in a table: their number, times the cells of the table.
_MAX_COMPARED_CELLS = 2 * 10**7


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of a share between a group and the other rows.

    Attributes:
        group: Label of the group, a band of the first column.
        other: What it is compared with: the other group, or "" for all other rows.
        outcome: Label of the cell of the second column.
        low: Lower end of the difference of shares.
        high: Upper end.
        has_rows: Whether the group and the others have enough rows to compare.
    """

    group: str
    other: str
    outcome: str
    low: float
    high: float
    has_rows: bool = True

    @property
    def is_real(self) -> bool:
        """Whether noise does not explain it."""
        return self.has_rows and (self.low > 0 or self.high < 0)


def count_comparisons(groups: int, outcomes: int) -> int:
    """Count the comparisons of a table: of two groups, or two outcomes, one is the mirror image."""
    return (1 if groups == 2 else groups) * (1 if outcomes == 2 else outcomes)


def can_compare(cells: MeasuredCells) -> bool:
    """Test that a table has groups to compare, and few enough comparisons, by its size alone."""
    sizes = [len(selection.bands) for selection in cells.selections]
    work = count_comparisons(sizes[0], sizes[1]) * cells.table.estimate.interactions.size
    return cells.is_aligned and min(sizes) >= 2 and work <= _MAX_COMPARED_CELLS


def find_differences(cells: MeasuredCells, *, comparisons: int) -> list[Difference]:
    """Compare the shares of the second column's bands between groups of the first.

    Args:
        cells: The cells of two columns.
        comparisons: The number of all comparisons that are stated together, in this table and
            in others.
    """
    groups, outcomes = (selection.bands for selection in cells.selections)
    kurtosis = cells.table.estimate.excess_kurtosis
    z = critical_value(1 - (1 - CONFIDENCE) / max(comparisons, 1), excess_kurtosis=kurtosis)
    number = len(groups)
    found = []
    for group in range(1 if number == 2 else number):
        other = groups.labels[1] if number == 2 else ""
        # Of two outcomes, the second: of "no" and "yes", people ask for "yes".
        for outcome in range(1, 2) if len(outcomes) == 2 else range(len(outcomes)):
            low, high, has_rows = _compare(cells, group, outcome, z)
            found.append(
                Difference(
                    group=groups.labels[group],
                    other=other,
                    outcome=outcomes.labels[outcome],
                    low=low,
                    high=high,
                    has_rows=has_rows,
                )
            )
    return found


def _compare(cells: MeasuredCells, group: int, outcome: int, z: float) -> tuple[float, float, bool]:
    """Interval of the difference of two shares, to first order in the noise."""
    estimate, direction, dispersion = cells.table.estimate, None, 0.0
    inside = cells.weights((group, None))
    difference = 0.0
    for sign, rows, part in (
        (1, inside, cells.weights((group, outcome))),
        (-1, _others(cells, inside), _others(cells, cells.weights((group, outcome)), outcome)),
    ):
        number = estimate.value(rows)
        if not (number > 0 and math.sqrt(estimate.variance(rows)) <= _MAX_GROUP_ERROR * number):
            return -1.0, 1.0, False
        share = estimate.value(part) / number
        difference += sign * share
        slope: Reals = sign * (part - share * rows) / number
        direction = slope if direction is None else direction + slope
        dispersion += cells.chance.of_shares * max(share * (1 - share), 0.0) / number
    assert direction is not None  # noqa: S101 - set in the loop
    half = z * math.sqrt(estimate.variance(direction) + dispersion)
    return max(difference - half, -1.0), min(difference + half, 1.0), True


def _others(cells: MeasuredCells, inside: Reals, outcome: int | None = None) -> Reals:
    """Mark the cells of all other groups."""
    others: Reals = cells.weights((None, outcome)) - inside
    return others


def describe_differences(columns: Sequence[str], differences: Sequence[Difference]) -> list[str]:
    """State the real differences in words, the largest first; then the undecided ones."""
    sentences = [*describe_real(columns, differences), *describe_too_few(columns, differences)]
    hidden = sum(each.has_rows and not each.is_real for each in differences)
    if hidden:
        what = "1 other difference is" if hidden == 1 else f"{hidden:,} other differences are"
        sentences.append(f"{what} within the noise: too small to say.")
    return sentences


def describe_real(columns: Sequence[str], differences: Sequence[Difference]) -> list[str]:
    """State the real differences in words, the largest first."""
    first, second = columns
    real = [each for each in differences if each.is_real]
    real.sort(key=lambda each: -min(abs(each.low), abs(each.high)))
    sentences = []
    for each in real:
        more = "more" if each.low > 0 else "less"
        than = f'with {first} "{each.other}"' if each.other else "in all other rows"
        low, high = sorted((abs(each.low), abs(each.high)))
        sentences.append(
            f'{second} "{each.outcome}" is {more} frequent with {first} "{each.group}" than '
            f"{than}: yes, by {_points(low, high)}."
        )
    return sentences


def describe_too_few(columns: Sequence[str], differences: Sequence[Difference]) -> list[str]:
    """Name the groups that have too few rows to compare."""
    too_few = dict.fromkeys(each.group for each in differences if not each.has_rows)
    return [f'{columns[0]} "{group}": too few rows to say.' for group in too_few]


def _points(low: float, high: float) -> str:
    """Format a range of percentage points."""
    digits = 0 if 100 * (high - low) >= 2 and round(100 * low) >= 1 else 1
    one, two = f"{100 * low:.{digits}f}", f"{100 * high:.{digits}f}"
    return f"{one} points" if one == two else f"{one} to {two} points"
