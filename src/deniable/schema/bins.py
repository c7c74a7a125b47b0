"""Bins and buckets of attributes: parse them from schema.toml, and write them back.

Bins and buckets are public: they depend on the schema, never on a row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from deniable.arrays import MAX_DOMAIN_SIZE
from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid, GridValue

# By default, an attribute with at most ``MAX_UNBINNED_POSITIONS`` positions has a bin for each, and
# one with more has ``_DEFAULT_BIN_COUNT`` bins. Neighbouring bins may be merged after measurement,
# so too fine is better than too coarse.
MAX_UNBINNED_POSITIONS = 1_000
_DEFAULT_BIN_COUNT = 1_000
# The only ``digits`` of a schema.
_LEADING_DIGITS = 2
# By default, a numeric attribute with more than ``_MAX_UNBUCKETED_CODES`` codes is bucketed.
_MAX_UNBUCKETED_CODES = 20
_DEFAULT_BUCKET_COUNT = 10


def parse_bins(table: object, values: range, grid: Grid, place: str) -> Sequence[int]:
    """Parse the key ``bins`` of a schema into the first position of each bin.

    Args:
        table: ``{ width = w }``, ``{ edges = […] }`` or, for numbers, ``{ digits = 2 }``; None
            for the default. All but edges also with ``alone = […]``: values that have bins of
            their own.
        values: All positions.
        grid: The grid of the positions.
        place: The name of the attribute in error messages.
    """
    if table is None:
        return default_bin_starts(values)
    known = ({"width"}, {"edges"}, {"digits"})
    if not (isinstance(table, dict) and set(table) - {"alone"} in known):
        raise SchemaError(
            f"{place}: bins must be {{ width = … }}, {{ edges = [lower edges] }} or (numbers) "
            f"{{ digits = {_LEADING_DIGITS} }}"
        )
    if "edges" in table:
        if "alone" in table:
            raise SchemaError(f"{place}: bins with edges have no alone: add edges around the value")
        return [values[0], *_parse_edges(table, values, grid, place)]
    starts = _parse_rule(table, values, grid, place)
    if "alone" not in table:
        return starts
    alone = _parse_alone(table["alone"], values, grid, place)
    if len(starts) > MAX_DOMAIN_SIZE:  # refused before they are listed
        raise SchemaError(
            f"{place}: it has {len(starts):,} bins; at most {MAX_DOMAIN_SIZE:,} are supported. "
            "Choose wider bins"
        )
    return sorted({*starts, *_edges_of(alone, values)})


def _parse_rule(table: Mapping[str, Any], values: range, grid: Grid, place: str) -> Sequence[int]:
    """Parse bins that follow a rule: of a width, or by leading digits."""
    if "width" in table:
        return values[:: _parse_width(table["width"], grid, place)]
    digits, numbers = table["digits"], grid.kind in ("integer", "real")
    if not (numbers and type(digits) is int and digits == _LEADING_DIGITS):
        raise SchemaError(
            f"{place}: digits must be {_LEADING_DIGITS}, and only for numbers: those with the same "
            "two leading digits share a bin"
        )
    return leading_digit_starts(values, _LEADING_DIGITS)


def _edges_of(alone: Sequence[int], values: range) -> set[int]:
    """The first positions of bins of single values, and of those after them."""
    return {edge for position in alone for edge in (position, position + 1) if edge <= values[-1]}


def default_bin_starts(values: range) -> Sequence[int]:
    """List the first position of each default bin."""
    return (
        values
        if len(values) <= MAX_UNBINNED_POSITIONS
        else equal_bin_starts(values, _DEFAULT_BIN_COUNT)
    )


def equal_bin_starts(values: range, count: int) -> Sequence[int]:
    """List the first position of each of ``count`` bins of (nearly) equal width."""
    return [values[i * len(values) // count] for i in range(count)]


def leading_digit_starts(values: range, digits: int) -> Sequence[int]:
    """List the first position of each bin, where numbers with equal leading digits share a bin.

    >>> leading_digit_starts(range(8, 121), 1)
    [8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    """
    largest, power = max(abs(values[0]), abs(values[-1])), 1
    edges = list(range(10**digits))
    while edges[-1] < largest:
        power *= 10
        edges += [k * power for k in range(10 ** (digits - 1), 10**digits)]
    negative = [-(edge - 1) for edge in edges[1:] if edge > 1]
    starts = sorted({values[0], *edges, *negative})
    return [start for start in starts if values[0] <= start <= values[-1]]


def bins_as_toml(attribute: Attribute) -> dict[str, str | list[str]]:
    """Express the bins as a table that ``parse_bins`` reads; empty if they are the default."""
    values, grid, starts = attribute.values, attribute.grid, attribute.starts
    if not isinstance(values, range) or grid is None:
        return {}
    if list(starts) == list(default_bin_starts(values)):
        return {}
    if isinstance(starts, range):
        return {"width": grid.format_width(starts.step)}
    return _rule_with_alone(starts, values, grid) or {
        "edges": [grid.format_position(start) for start in starts[1:]]
    }


def _rule_with_alone(
    starts: Sequence[int], values: range, grid: Grid
) -> dict[str, str | list[str]] | None:
    """Express bins by leading digits or of one width, apart from values alone; None if not so."""
    width, _ = Counter(b - a for a, b in pairwise(starts)).most_common(1)[0]
    rules: dict[tuple[str, str], Sequence[int]] = {}
    if grid.kind in ("integer", "real"):
        rules["digits", str(_LEADING_DIGITS)] = leading_digit_starts(values, _LEADING_DIGITS)
    rules["width", grid.format_width(width)] = values[::width]
    for (key, value), plain in rules.items():
        if len(plain) > len(starts):  # Not these bins; and perhaps too many to list.
            continue
        more, single = set(starts) - set(plain), {*starts, values[-1] + 1}
        alone = [a for a in starts if a + 1 in single and (a in more or a + 1 in more)]
        if set(plain) | _edges_of(alone, values) == set(starts):
            names = [grid.format_position(position) for position in alone]
            return {key: value, "alone": names} if names else {key: value}
    return None


def parse_buckets(attribute: Attribute, buckets: object) -> Attribute:
    """Apply the key ``buckets`` of a schema to an attribute; None means the default."""
    if buckets is None:
        return with_default_buckets(attribute)
    if not isinstance(buckets, dict):
        is_nested = isinstance(buckets, list) and all(isinstance(group, list) for group in buckets)
        if not is_nested:
            raise attribute.error("buckets must be { width = … } or a list of lists of values")
        if any(isinstance(value, list | dict) for group in buckets for value in group):  # type: ignore[attr-defined]
            raise attribute.error("each bucket must be a list of values; remove the inner brackets")
        return attribute.with_bucket_groups(buckets)  # type: ignore[arg-type]
    if list(buckets) != ["width"]:
        raise attribute.error("a table of buckets must have one key: { width = … }")
    return attribute.with_bucket_width(buckets["width"])


def with_default_buckets(attribute: Attribute) -> Attribute:
    """Apply the default buckets: those of a numeric attribute with many codes have equal counts.

    Listed kinds and integers without bins are not bucketed by default.
    """
    return replace(attribute, groups=_default_groups(attribute))


def _default_groups(attribute: Attribute) -> tuple[int, ...]:
    plain = attribute.kind == "integer" and not attribute.is_binned
    if not attribute.is_numeric or plain or attribute.size <= _MAX_UNBUCKETED_CODES:
        return tuple(range(attribute.size))
    labels = (i * _DEFAULT_BUCKET_COUNT // attribute.bins for i in range(attribute.bins))
    return attribute.number_buckets(labels)


def buckets_as_toml(attribute: Attribute) -> dict[str, str]:
    """Express the buckets as a table that ``parse_buckets`` reads.

    Empty if they are the default, or if they have to be listed.

    Raises:
        SchemaError: A schema cannot express them: buckets of bins that are not of one width.
    """
    if attribute.groups == _default_groups(attribute):
        return {}
    grid = attribute.grid
    if grid is None:
        width = attribute.groups.count(0)
        labels = (code // width for code in range(attribute.bins))
        is_even = attribute.groups == attribute.number_buckets(labels)
        return {"width": str(width)} if attribute.kind == "ordered" and is_even else {}
    firsts = [
        attribute.starts[attribute.groups.index(bucket)]
        for bucket in range(attribute.buckets - bool(attribute.missing))
    ]
    length = firsts[1] - firsts[0] if len(firsts) > 1 else len(attribute.values)
    labels = ((start - firsts[0]) // length for start in attribute.starts)
    if length > 0 and attribute.groups == attribute.number_buckets(labels):
        return {"width": grid.format_width(length)}
    if attribute.kind == "integer" and not attribute.is_binned:
        return {}
    raise attribute.error("its buckets are not of one width, and cannot be written to a schema")


def parse_position(value: object, grid: Grid) -> int | None:
    """Parse a value of a schema into a position; None if it does not lie on the grid."""
    if isinstance(value, str) and grid.kind in ("date", "datetime"):
        value = _parse_moment(value)
    try:
        position = grid.position_of(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return int(position) if position.denominator == 1 else None


def _parse_moment(text: str) -> GridValue | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def _parse_width(width: object, grid: Grid, place: str) -> int:
    length = grid.width_in_positions(width)
    if length is None:
        raise SchemaError(
            f"{place}: the width of bins must be a multiple of {grid.format_width(1)}"
        )
    return length


def _parse_edges(table: Mapping[str, Any], values: range, grid: Grid, place: str) -> list[int]:
    edges = table["edges"]
    if not isinstance(edges, list):
        raise SchemaError(f"{place}: edges must be a list: the lower edges, without the first")
    positions = [parse_position(edge, grid) for edge in edges]
    low, high = values[0], values[-1]
    found = [position for position in positions if position is not None and low < position <= high]
    if len(found) < len(positions) or sorted(set(found)) != found:
        raise SchemaError(
            f"{place}: edges must ascend, lie above min and not above max, and be possible values "
            "of the column"
        )
    return found


def _parse_alone(listed: object, values: range, grid: Grid, place: str) -> list[int]:
    positions = [parse_position(v, grid) for v in listed] if isinstance(listed, list) else []
    found = [position for position in positions if position is not None and position in values]
    if not found or len(found) < len(positions):
        raise SchemaError(
            f"{place}: alone must be a list of possible values of the column, between min and max; "
            "each has a bin of its own"
        )
    return found
