"""Bands: the cells of one column in a table, as sets of its codes, with labels."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from deniable.arrays import Indices
from deniable.errors import ConfigError
from deniable.release.query_answer import BandRule
from deniable.schema.attribute import Attribute, Value, format_value, summarize_values
from deniable.schema.bins import parse_position
from deniable.schema.constraint_axis import MAX_POSITION, MIN_POSITION
from deniable.schema.grid import Grid

# Values of a label before "and n more"; and its longest text.
_MAX_LABEL_VALUES = 3
_MAX_LABEL_LENGTH = 60
_MISSING_LABEL = "missing"
_OTHER_LABEL = "other values"
_TOO_LARGE = "a number of the rule has too many digits"
_NAMED_RULES = ("values", "bins", "groups", "buckets")
_RULES = (
    "values, bins, groups or buckets, a width (10), lower edges (18, 30, 65), or groups of values "
    "(a + b, c)"
)


@dataclass(frozen=True, kw_only=True)
class Bands:
    """The cells of one column.

    Attributes:
        labels: A label of each band.
        band_of: The band of each code.
    """

    labels: tuple[str, ...]
    band_of: Indices = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def whole(cls, attribute: Attribute) -> "Bands":
        """One band of all codes."""
        return cls(labels=("all",), band_of=np.zeros(attribute.size, dtype=np.intp))

    @classmethod
    def of_parts(cls, attribute: Attribute, parts: Indices) -> "Bands":
        """Bands of codes with equal numbers, in the order of their first codes."""
        _, first, inverse = np.unique(parts, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        band_of = rank[inverse].astype(np.intp)
        ends = np.cumsum(np.bincount(band_of))[:-1]
        codes = np.split(np.argsort(band_of, kind="stable"), ends)
        return cls(labels=tuple(codes_label(attribute, own) for own in codes), band_of=band_of)


def codes_label(attribute: Attribute, codes: Indices) -> str:
    """Label a set of codes: a range of numbers, or the first values."""
    present = codes[codes < attribute.bins]
    if len(present) == 0:
        return _MISSING_LABEL
    is_run = bool((np.diff(present) == 1).all())
    missing = f" or {_MISSING_LABEL}" if len(present) < len(codes) else ""
    if attribute.grid is not None and is_run:
        first = attribute.grid.format_position(attribute.positions(int(present[0]))[0])
        last = attribute.grid.format_position(attribute.positions(int(present[-1]))[-1])
        return (first if first == last else f"{first} to {last}") + missing
    texts = [_value_text(attribute, int(code)) for code in present]
    if attribute.kind == "ordered" and is_run and len(texts) > 2:
        return _shorten(f"{texts[0]} to {texts[-1]}{missing}")
    more = len(texts) - _MAX_LABEL_VALUES
    label = ", ".join(texts[:_MAX_LABEL_VALUES]) + (f" and {more:,} more" if more > 0 else "")
    return _shorten(label + missing)


def _value_text(attribute: Attribute, code: int) -> str:
    if attribute.grid is None:
        return str(attribute.values[code])
    inside = attribute.positions(code)
    first, last = (attribute.grid.format_position(at) for at in (inside[0], inside[-1]))
    return first if first == last else f"{first} to {last}"


def _shorten(label: str) -> str:
    return label if len(label) <= _MAX_LABEL_LENGTH else label[: _MAX_LABEL_LENGTH - 1] + "…"


def parse_band_rules(texts: Sequence[str]) -> dict[str, BandRule]:
    """Parse rules of the command line, ``column: rule``, by column.

    >>> parse_band_rules(["age: 10", "sex: values", "state: AK + HI, TX"])
    {'age': 10, 'sex': 'values', 'state': {'AK + HI': ['AK', 'HI'], 'TX': ['TX']}}
    """
    rules: dict[str, BandRule] = {}
    for text in texts:
        column, colon, rule = text.rpartition(": ")
        if not colon:
            column, colon, rule = text.partition(":")
        column, rule = column.strip(), rule.strip()
        if not (colon and column and rule):
            raise ConfigError(f'--by "{text}": write column: rule; a rule is {_RULES}')
        if column in rules:
            raise ConfigError(f'--by names column "{column}" twice; keep one rule')
        rules[column] = _parse_rule(rule)
    return rules


def _parse_rule(rule: str) -> BandRule:
    if rule in _NAMED_RULES:
        return rule
    items = [item.strip() for item in rule.split(",")]
    numbers = [_parse_number(item) for item in items]
    if all(number is not None for number in numbers):
        known = cast("list[int | float]", numbers)
        return known[0] if len(known) == 1 else known
    if all(_is_date(item) for item in items):
        return items
    return {item: [each.strip() for each in item.split("+")] for item in items}


def _parse_number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if abs(number) < float("inf") else None
    return None


def _is_date(text: str) -> bool:
    return len(text) >= 10 and text[:4].isdigit() and text[4] == "-" and text[7] == "-"


def make_bands(attribute: Attribute, rule: BandRule, parts: Mapping[str, Indices]) -> Bands:
    """Form the bands of a column by a rule.

    Args:
        attribute: The column.
        rule: See ``query``.
        parts: The bin and the group of each code, by the names of these rules, if there are any.

    Raises:
        ConfigError: The rule does not fit the column.
    """
    if isinstance(rule, str):
        return Bands.of_parts(attribute, _named_parts(attribute, rule, parts))
    if isinstance(rule, Mapping):
        return _listed_bands(attribute, rule)
    if attribute.grid is None:
        raise _unfit(attribute, "has no numbers; use values, buckets or groups of values")
    if isinstance(rule, bool) or not isinstance(rule, int | float | Sequence):
        raise _unfit(attribute, f"got {type(rule).__name__}; a rule is {_RULES}")
    numbers = [rule] if isinstance(rule, int | float) else rule
    if any(isinstance(each, int) and not MIN_POSITION < each < MAX_POSITION for each in numbers):
        raise _unfit(attribute, _TOO_LARGE)
    if isinstance(rule, int | float):
        return Bands.of_parts(attribute, _width_parts(attribute, attribute.grid, rule))
    return Bands.of_parts(attribute, _edge_parts(attribute, attribute.grid, rule))


def _named_parts(attribute: Attribute, rule: str, parts: Mapping[str, Indices]) -> Indices:
    if rule == "values":
        return np.arange(attribute.size)
    if rule == "buckets":
        return attribute.bucket_of
    if rule not in _NAMED_RULES:
        raise _unfit(attribute, f'"{rule}" is no rule; a rule is {_RULES}')
    if rule not in parts:
        raise _unfit(attribute, f"the artefact has no {rule}: use values, buckets or a width")
    return parts[rule]


def _width_parts(attribute: Attribute, grid: Grid, width: float) -> Indices:
    length = grid.width_in_positions(width)
    if length is None:
        raise _unfit(attribute, f"a width must be a multiple of {grid.format_width(1)}")
    if length >= MAX_POSITION:
        raise _unfit(attribute, _TOO_LARGE)
    starts = attribute.first_positions
    return _checked_parts(attribute, starts // length, (starts + attribute.widths - 1) // length)


def _edge_parts(attribute: Attribute, grid: Grid, edges: Sequence[Any]) -> Indices:
    positions = [parse_position(edge, grid) for edge in edges]
    known = [position for position in positions if position is not None]
    if len(known) < len(positions) or sorted(set(known)) != known or not known:
        raise _unfit(attribute, "edges must ascend and be possible values of the column")
    starts = attribute.first_positions
    ends = starts + attribute.widths - 1
    return _checked_parts(
        attribute,
        np.array([bisect_right(known, int(start)) for start in starts]),
        np.array([bisect_right(known, int(end)) for end in ends]),
    )


def _checked_parts(attribute: Attribute, first: Any, last: Any) -> Indices:
    """Refuse bands that cut through a bin of the schema; add the band of missing cells."""
    if (first != last).any():
        raise _unfit(attribute, "the edges of bands must be edges of the schema's bins")
    parts = np.append(first, first.max() + 1) if attribute.missing else first
    found: Indices = parts.astype(np.intp)
    return found


def _listed_bands(attribute: Attribute, groups: Mapping[str, Sequence[Any]]) -> Bands:
    """Bands of listed values; all others are one more band, and missing cells another."""
    if attribute.is_numeric and attribute.is_binned:
        raise _unfit(attribute, "its values are in bins; use a width or edges")
    number: dict[Value, int] = {value: code for code, value in enumerate(attribute.values)}
    texts = {str(value): code for value, code in number.items()}
    band_of = np.full(attribute.size, -1, dtype=np.intp)
    for band, (label, values) in enumerate(groups.items()):
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise _unfit(attribute, f'the group "{label}" must be a list of values')
        for value in values:
            code = number.get(value, texts.get(str(value)))
            if code is None:
                known = summarize_values(attribute.values)
                raise _unfit(attribute, f"{format_value(value)} is no value; they are {known}")
            if band_of[code] >= 0:
                raise _unfit(attribute, f"{format_value(value)} is in two groups; keep it in one")
            band_of[code] = band
    labels = [str(label) for label in groups]
    if (band_of[: attribute.bins] < 0).any():
        band_of[: attribute.bins][band_of[: attribute.bins] < 0] = len(labels)
        labels.append(_OTHER_LABEL)
    if attribute.missing_code is not None:
        band_of[attribute.missing_code] = len(labels)
        labels.append(_MISSING_LABEL)
    return Bands(labels=tuple(labels), band_of=band_of)


def _unfit(attribute: Attribute, what: str) -> ConfigError:
    return ConfigError(f'the cells of column "{attribute.name}": {what}')
