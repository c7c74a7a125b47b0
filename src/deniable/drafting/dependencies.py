"""Find columns that follow from one other column: a code and its text, a fine and a coarse group.

Only what a data dictionary could state: nothing follows from a measurement, even if it does so in
the rows of this table.

Pairs are tested on a sample of rows first, all at once for each source; the few that pass are
tested on all rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Indices, Mask
from deniable.drafting.column_axes import MIN_BOUND_ROWS, AxisCodes, ColumnAxis
from deniable.drafting.description import TomlScalar

# Rows of the first test. The cost of the search is this times the square of the columns.
_SAMPLE_ROWS = 256
# Minimum of -ln(probability) that a dependency holds by chance, were the columns independent.
_MIN_LOG_EVIDENCE = 30.0
# Rows that a result needs, and rows without the most frequent result.
_MIN_RESULT_ROWS = 30
# Largest number of values of a source, as a share of the rows: with more, each value has too few
# rows to be evidence.
_MAX_SOURCE_SHARE = 0.1
# A range of more whole numbers is one of amounts. Ages, scores, years, the counties of a state and
# the days of a year are fewer.
_MAX_WHOLE_NUMBERS = 366
# A longer list of results is a measurement, not a group.
_MAX_RESULTS = 1_000
# Dependencies that are tested on all rows.
_MAX_TESTED = 20_000


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """A column whose value follows from another column in every row.

    Attributes:
        source: The column that determines it.
        target: The column that is determined.
        pairs: Values of the source and the results. Missing is the source's text for missing.
        by_steps: Whether the pairs are steps: the first number of each interval.
        both: Whether the source follows from the target, too.
    """

    source: str
    target: str
    pairs: tuple[tuple[TomlScalar, TomlScalar], ...] = field(repr=False)
    by_steps: bool = False
    both: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it connects."""
        return self.source, self.target


def find_dependencies(axes: Sequence[ColumnAxis]) -> list[Dependency]:
    """Find the columns that follow from another, each with the source to compute it from.

    Sources do not follow from other columns themselves, so that every chain ends at a column that
    is learnt. Of two equivalent columns the ordered one is the source.
    """
    if len(axes) < 2 or len(axes[0].codes) < 2 * _MIN_RESULT_ROWS:
        return []
    determined_by: dict[int, dict[int, Dependency]] = {}
    for source, target in _candidates(axes):
        if (found := _dependency(axes[source], axes[target])) is not None:
            determined_by.setdefault(target, {})[source] = found
    roots = _choose_roots(axes, determined_by)
    chosen = []
    for target in sorted(set(determined_by) - roots):
        options = [source for source in determined_by[target] if source in roots]
        if options:
            best = min(options, key=lambda j: (axes[j].size, j))
            found = determined_by[target][best]
            both = target in determined_by.get(best, {})
            chosen.append(
                Dependency(
                    source=found.source,
                    target=found.target,
                    pairs=found.pairs,
                    by_steps=found.by_steps,
                    both=both,
                )
            )
    return chosen


def _choose_roots(
    axes: Sequence[ColumnAxis], determined_by: Mapping[int, Mapping[int, Dependency]]
) -> set[int]:
    """Choose the columns that stay learnt: those that follow from no other, one of equivalents."""

    def rank(j: int) -> tuple[bool, int]:
        return not axes[j].is_ordered, j

    roots = set()
    for j in range(len(axes)):
        by = determined_by.get(j, {})
        finer = [i for i in by if j not in determined_by.get(i, {}) or rank(i) < rank(j)]
        if not finer:
            roots.add(j)
    return roots


def _candidates(axes: Sequence[ColumnAxis]) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns whose first determines the second in a sample of rows."""
    rows = len(axes[0].codes)
    sample = spread_rows(rows, _SAMPLE_ROWS)
    cells = np.stack([axis.codes[sample] for axis in axes], axis=1)
    is_target = np.array([_may_be_target(axis, rows) for axis in axes])
    sizes = np.array([axis.size for axis in axes])
    tested = 0
    for source, axis in enumerate(axes):
        by_steps = axis.is_range and axis.is_ordered
        is_short = 2 <= axis.size <= _MAX_SOURCE_SHARE * rows
        if not _may_be_source(axis) or not (is_short or by_steps):
            continue
        order = np.argsort(cells[:, source], kind="stable")
        refuted = _changes_within(cells[order], cells[order, source])
        usable = ~refuted & is_target & (sizes <= axis.size)
        usable[source] = False
        for target in np.flatnonzero(usable).tolist():
            if tested >= _MAX_TESTED:
                return
            tested += 1
            yield source, target


def _changes_within(cells: AxisCodes, source: AxisCodes) -> Mask:
    """Mark the columns of ``cells`` that differ in two neighbouring rows of the same source."""
    same = (source[1:] == source[:-1])[:, None]
    changed: Mask = ((cells[1:] != cells[:-1]) & same).any(axis=0)
    return changed


def _may_be_source(axis: ColumnAxis) -> bool:
    """Whether a data dictionary could state what follows: from listed values, or an age."""
    if axis.is_listed or axis.numbers is None:
        return True
    is_whole = bool((axis.numbers == np.floor(axis.numbers)).all())
    return is_whole and axis.values <= _MAX_WHOLE_NUMBERS


def _may_be_target(axis: ColumnAxis, rows: int) -> bool:
    is_number_or_text = not axis.labels or not hasattr(axis.labels[0], "isoformat")
    common = int(axis.counts.max(initial=0))
    return (
        is_number_or_text
        and 2 <= axis.size <= _MAX_RESULTS
        and axis.values > 0
        and rows - common >= _MIN_RESULT_ROWS
    )


def _dependency(source: ColumnAxis, target: ColumnAxis) -> Dependency | None:
    """Describe how ``target`` follows from ``source``; None if it does not, or may by chance."""
    result = np.full(source.size, -1, dtype=np.int64)
    result[source.codes] = target.codes
    if not np.array_equal(result[source.codes], target.codes):
        return None
    starts = _step_codes(source, target, result)
    if starts is not None and not (source.is_closed and len(starts) == source.values):
        return _describe_steps(source, target, result, starts)
    if not source.is_closed or _may_be_chance(source, target, result):
        return None
    if source.size > _MAX_SOURCE_SHARE * len(source.codes):
        return None
    listed = _listed_pairs(source, target, result)
    if listed is None:
        return None
    return Dependency(source=source.name, target=target.name, pairs=tuple(listed))


def _listed_pairs(
    source: ColumnAxis, target: ColumnAxis, result: Indices
) -> list[tuple[TomlScalar, TomlScalar]] | None:
    """List source values and results; None if a value occurs in no row.

    A missing result is written as the target's text for missing. From a missing source it follows
    by itself.
    """
    pairs: list[tuple[TomlScalar, TomlScalar]] = []
    results = [*target.labels, *([] if target.missing is None else [target.missing])]
    for code, label in enumerate(source.labels):
        if result[code] < 0:
            return None
        pairs.append((label, results[result[code]]))
    if source.missing is not None and 0 <= result[source.values] < target.values:
        pairs.append((source.missing, target.labels[result[source.values]]))
    return pairs


def _step_codes(source: ColumnAxis, target: ColumnAxis, result: Indices) -> list[int] | None:
    """List the first code of each step of a monotone function of numbers; None if it is not one.

    Each result is one interval with enough rows, and missing follows from missing only.
    """
    of_numbers = result[: source.values]
    if source.numbers is None or not source.is_ordered or hasattr(source.labels[0], "isoformat"):
        return None
    if (of_numbers < 0).any() or (of_numbers >= target.values).any():
        return None
    if source.missing is not None and result[source.values] != target.values:
        return None
    starts = [0, *(np.flatnonzero(of_numbers[1:] != of_numbers[:-1]) + 1).tolist()]
    if len(set(of_numbers[starts].tolist())) < len(starts) or len(starts) < 2:
        return None
    ends = [*starts[1:], source.values]
    rows = [int(source.counts[a:b].sum()) for a, b in zip(starts, ends, strict=True)]
    if min(rows) < _MIN_RESULT_ROWS or 2 * len(starts) > source.values:
        return None
    return starts


def _describe_steps(
    source: ColumnAxis, target: ColumnAxis, result: Indices, starts: Sequence[int]
) -> Dependency | None:
    """Describe steps by a coarse bound of each, above the last number before it.

    None if the only such bound is a number that few rows have.
    """
    pairs = []
    for start in starts:
        before = source.labels[start - 1] if start else None
        first = source.coarse_bound(start, up=False, beyond=before)
        if first is None and source.counts[start] >= MIN_BOUND_ROWS:
            first = source.labels[start]
        if first is None:
            return None
        pairs.append((first, target.labels[result[start]]))
    return Dependency(source=source.name, target=target.name, pairs=tuple(pairs), by_steps=True)


def _may_be_chance(source: ColumnAxis, target: ColumnAxis, result: Indices) -> bool:
    """Whether independent columns could agree by chance: repeated source values repeat results."""
    shares = target.counts / len(target.codes)
    seen = result >= 0
    repeats = source.counts[seen] - 1
    evidence = -float((repeats * np.log(shares[result[seen]])).sum())
    return evidence < _MIN_LOG_EVIDENCE


def spread_rows(rows: int, limit: int) -> Indices:
    """Choose at most ``limit`` rows, evenly spaced over the table."""
    sample: Indices = np.unique(np.linspace(0, rows - 1, min(rows, limit)).astype(np.intp))
    return sample
