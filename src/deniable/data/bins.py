"""Bins and default buckets of numeric attributes: from what a schema says, and back to it.

All of it is public: it follows from the schema, never from a row.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from deniable.data.amounts import Amount, Unit
from deniable.data.attributes import Attribute
from deniable.errors import SchemaError

# Up to so many positions, each is a bin of its own; beyond, there are so many bins. Noise may join
# neighbours later, so bins are rather too fine than too coarse.
MOST_SINGLE = 1_000
_BINS = 1_000
_MOST_DIGITS = 3
# An attribute with more codes than this has so many buckets, where the schema says nothing.
_MOST_UNBUCKETED = 20
_BUCKETS = 10


def read_bins(table: object, values: range, unit: Unit, place: str) -> Sequence[int]:
    """Return the first position of each bin, as ``bins`` in a schema says.

    Args:
        table: ``{ width = w }``, ``{ count = n }``, ``{ edges = […] }`` or, for numbers,
            ``{ digits = d }``; None: the default.
        values: All positions.
        unit: What a position means.
        place: What to call the attribute in a message.
    """
    if table is None:
        return default_starts(values)
    known = (["width"], ["count"], ["edges"], ["digits"])
    if not (isinstance(table, dict) and list(table) in known):
        raise SchemaError(
            f"{place}: bins is {{ width = … }}, {{ count = … }}, {{ edges = [lower edges] }} or "
            "(numbers) { digits = … }"
        )
    if "digits" in table:
        digits = table["digits"]
        numbers = unit.kind in ("integer", "real")
        if not (numbers and type(digits) is int and 1 <= digits <= _MOST_DIGITS):
            raise SchemaError(
                f"{place}: digits is 1, 2 or {_MOST_DIGITS}, for a column of numbers: those that "
                "begin with the same digits share a bin"
            )
        return digit_starts(values, digits)
    if "width" in table:
        return values[:: _width(table["width"], unit, place)]
    if "count" in table:
        count = table["count"]
        if type(count) is not int or not 1 <= count <= len(values):
            raise SchemaError(
                f"{place}: the count of bins is a whole number from 1 to {len(values):,}, the "
                "number of its values"
            )
        return equal_starts(values, count)
    return [values[0], *_edges(table, values, unit, place)]


def default_starts(values: range) -> Sequence[int]:
    """Return the first position of each bin where a schema does not say."""
    return values if len(values) <= MOST_SINGLE else equal_starts(values, _BINS)


def equal_starts(values: range, count: int) -> Sequence[int]:
    """Return the first position of each of ``count`` bins that differ by one position at most."""
    return [values[i * len(values) // count] for i in range(count)]


def digit_starts(values: range, digits: int) -> Sequence[int]:
    """Return the first position of each bin of positions that agree in their first ``digits``.

    >>> digit_starts(range(8, 121), 1)
    [8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    """
    far, power = max(abs(values[0]), abs(values[-1])), 1
    edges = list(range(10**digits))
    while edges[-1] < far:
        power *= 10
        edges += [k * power for k in range(10 ** (digits - 1), 10**digits)]
    below = [-(after - 1) for after in edges[1:] if after > 1]
    found = sorted({values[0], *edges, *below})
    return [start for start in found if values[0] <= start <= values[-1]]


def say_bins(attribute: Attribute) -> dict[str, str | list[str]]:
    """Return what ``read_bins`` reads as the attribute's bins; empty where it is the default."""
    values, unit, starts = attribute.values, attribute.unit, attribute.starts
    if not isinstance(values, range) or unit is None:
        return {}
    if list(starts) == list(default_starts(values)):
        return {}
    if isinstance(starts, range):
        return {"width": unit.show_width(starts.step)}
    if list(starts) == list(equal_starts(values, len(starts))):
        return {"count": str(len(starts))}
    for digits in range(1, _MOST_DIGITS + 1):
        if unit.kind in ("integer", "real") and list(starts) == digit_starts(values, digits):
            return {"digits": str(digits)}
    return {"edges": [unit.show(start) for start in starts[1:]]}


def read_buckets(attribute: Attribute, buckets: object) -> Attribute:
    """Return the attribute with the buckets that a schema says; None: the default."""
    if buckets is None:
        return with_default_buckets(attribute)
    if not isinstance(buckets, dict):
        lists = isinstance(buckets, list) and all(isinstance(group, list) for group in buckets)
        if not lists:
            raise attribute.error("buckets is { width = … }, or a list of lists of values")
        if any(isinstance(value, list | dict) for group in buckets for value in group):  # type: ignore[attr-defined]
            raise attribute.error(
                "each of its buckets is a list of values; remove the inner brackets"
            )
        return attribute.with_bucket_groups(buckets)  # type: ignore[arg-type]
    if list(buckets) == ["width"]:
        return attribute.with_bucket_width(buckets["width"])
    if attribute.unit is None or list(buckets) not in (["count"], ["edges"]):
        also = ", { count = … } or { edges = […] }" if attribute.unit is not None else ""
        raise attribute.error(f"buckets as a table has one key: buckets = {{ width = … }}{also}")
    if "count" in buckets:
        return _with_bucket_count(attribute, buckets["count"])
    return _with_bucket_edges(attribute, attribute.unit, buckets)


def with_default_buckets(attribute: Attribute) -> Attribute:
    """Return a numeric attribute of many codes with a few buckets of as many bins each.

    An integer without bins stays as it is, as every listed kind does.
    """
    plain = attribute.kind == "integer" and not attribute.is_binned
    if not attribute.is_numeric or plain or attribute.size <= _MOST_UNBUCKETED:
        return replace(attribute, groups=())
    return _with_bucket_count(attribute, _BUCKETS)


def say_buckets(attribute: Attribute) -> dict[str, str | list[str]]:
    """Return what ``read_buckets`` reads as the buckets of a numeric or ordered attribute.

    Empty where it is the default, or where buckets can only be listed.
    """
    if attribute == with_default_buckets(attribute):
        return {}
    width = attribute.groups.count(0)
    if attribute.kind == "ordered":
        return {"width": str(width)} if attribute == attribute.with_bucket_width(width) else {}
    return _say_numeric(attribute, attribute.unit) if attribute.unit is not None else {}


def _say_numeric(attribute: Attribute, unit: Unit) -> dict[str, str | list[str]]:
    firsts = [
        attribute.starts[attribute.groups.index(bucket)]
        for bucket in range(attribute.buckets - bool(attribute.missing))
    ]
    length = firsts[1] - firsts[0] if len(firsts) > 1 else len(attribute.values)
    labels = ((start - firsts[0]) // length for start in attribute.starts)
    if length > 0 and attribute == attribute.with_labels(labels):
        return {"width": unit.show_width(length)}
    if attribute.kind == "integer" and not attribute.is_binned:
        return {}
    if attribute == _with_bucket_count(attribute, len(firsts)):
        return {"count": str(len(firsts))}
    return {"edges": [unit.show(first) for first in firsts[1:]]}


def read_amount(value: object, unit: Unit) -> int | None:
    """Return the position of a value that a schema writes; None where it is none of the grid."""
    if isinstance(value, str) and unit.kind in ("date", "datetime"):
        value = _moment(value)
    try:
        place = unit.place_of(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return int(place) if place.denominator == 1 else None


def _moment(text: str) -> Amount | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def _width(width: object, unit: Unit, place: str) -> int:
    length = unit.length_of(width)
    if length is None:
        raise SchemaError(f"{place}: the width of bins is a multiple of {unit.show_width(1)}")
    return length


def _edges(table: Mapping[str, Any], values: range, unit: Unit, place: str) -> list[int]:
    edges = table["edges"]
    if not isinstance(edges, list):
        raise SchemaError(f"{place}: edges is a list: the first value of each bin but the first")
    places = [read_amount(edge, unit) for edge in edges]
    low, high = values[0], values[-1]
    found = [at for at in places if at is not None and low < at <= high]
    if len(found) < len(places) or sorted(set(found)) != found:
        raise SchemaError(
            f"{place}: edges ascend, lie above min and not above max, and are values that the "
            "column can hold"
        )
    return found


def _with_bucket_count(attribute: Attribute, count: object) -> Attribute:
    if type(count) is not int or not 1 <= count <= attribute.bins:
        raise attribute.error(
            f"the count of buckets is a whole number from 1 to {attribute.bins:,}"
        )
    return attribute.with_labels(i * count // attribute.bins for i in range(attribute.bins))


def _with_bucket_edges(attribute: Attribute, unit: Unit, table: Mapping[str, Any]) -> Attribute:
    place = f'attribute "{attribute.name}": buckets'
    edges = _edges(table, range(attribute.starts[0], attribute.starts[-1] + 1), unit, place)
    if not set(edges) <= set(attribute.starts):
        raise attribute.error("the edges of buckets are edges of bins; choose among those")
    return attribute.with_labels(bisect_right(edges, start) for start in attribute.starts)
