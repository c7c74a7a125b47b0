"""Attribute: what a learnt column may hold, the code of each value, and the bucket of each code.

A new kind of attribute needs a name in ``AttributeKind``, a check in ``_CHECKS``, a reader in
``reading.py`` and a writer in ``notation.py``; and, if its cells are read in a new way, an
expression in ``cells.py``. The model sees codes only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, cast

import numpy as np
import polars as pl

from deniable.arrays import MOST_VALUES, Counts, Indices
from deniable.data.amounts import LARGEST, LARGEST_IN_FLOAT, NumericKind, Unit
from deniable.errors import SchemaError

Value = str | int
AttributeKind = Literal[
    "categorical", "ordered", "integer", "real", "boolean", "date", "datetime", "text"
]
Outside = Literal["error", "drop", "clip"]
ModelKind = Literal["histogram", "normal", "regression"]

_COUNT = Unit(kind="integer")
# How many dates of a range are tried, to see whether a format says all of a date.
_TRIED = 500


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One learnt column: its values in the order of their codes, and its buckets.

    A listed kind (categorical, ordered, boolean, text) has a code for each of its ``values``. A
    numeric kind (integer, real, date, datetime) lives on a grid of positions, ``values``; a code
    is a bin of one or several consecutive positions, and ``unit`` says what a position means.
    Where ``missing`` is declared, one more code, the last, stands for a missing cell, and is a
    bucket of its own.

    Attributes:
        name: The column's name in the table.
        kind: Its type in schema.toml.
        values: Listed kinds: distinct, all text or all whole numbers; of a boolean, the texts for
            false and true. Numeric kinds: the range of all positions.
        missing: The texts that mean missing; the first is written back.
        groups: The bucket of every code, numbered from 0 in the order of their first codes. Left
            out, every code is a bucket.
        outside: What a value outside ``values`` does: fails, drops its record, or (numeric kinds)
            moves to the nearest value.
        confirmed: Whether a human vouches for this description. One that was read off the data
            discloses something about it.
        starts: Numeric kinds: the first position of each bin. Left out, each position is one.
        unit: Numeric kinds: what a position means; only a real has no default.
        other: Text: the value, one of ``values``, that stands for every text that is not listed.
        model: Numeric kinds: how the distribution is learnt.
        heaps: Numbers in bins: steps, in positions, at whose multiples numbers crowd.
    """

    name: str
    kind: AttributeKind
    values: Sequence[Value]
    missing: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    outside: Outside = "error"
    confirmed: bool = True
    starts: Sequence[int] = ()
    unit: Unit | None = None
    other: str = ""
    model: ModelKind = field(default="histogram", repr=False)
    heaps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemaError('an attribute has no name: set name = "…" to the column\'s header')
        _CHECKS[self.kind](self)
        _require_values(self)
        _require_missing(self)
        if not self.groups:
            object.__setattr__(self, "groups", tuple(range(self.size)))
        _require_groups(self)
        if self.outside == "clip" and not self.is_numeric:
            raise self.error(
                'outside = "clip" is for integers, reals, dates; set it to "error" or "drop"'
            )

    @property
    def is_numeric(self) -> bool:
        """Whether the values lie on a grid: integers, reals, dates and times."""
        return self.unit is not None

    @property
    def is_whole(self) -> bool:
        """Whether a cell is a whole number: an integer, or one of listed whole numbers."""
        return self.kind == "integer" or (not self.is_numeric and isinstance(self.values[0], int))

    @property
    def is_binned(self) -> bool:
        """Whether some code stands for several values."""
        return self.is_numeric and len(self.starts) < len(self.values)

    @property
    def bins(self) -> int:
        """The number of codes that stand for values: all but that of a missing cell."""
        return len(self.starts) if self.is_numeric else len(self.values)

    @property
    def size(self) -> int:
        """The number of codes, that of a missing cell included."""
        return self.bins + bool(self.missing)

    @property
    def missing_code(self) -> int | None:
        """The code of a missing cell, where the attribute has one: the last."""
        return self.bins if self.missing else None

    @cached_property
    def missing_numbers(self) -> tuple[int | float, ...]:
        """What the texts that mean missing say as numbers, or as positions of dates.

        None for an attribute of text.
        """
        unit = self.unit or (Unit(kind="integer") if self.is_whole else None)
        return tuple(unit.numbers(self.missing)) if unit is not None else ()

    def positions(self, code: int) -> range:
        """Return the positions on the grid that a code of a numeric kind stands for."""
        last = self.values[-1] if code + 1 == self.bins else self.starts[code + 1] - 1
        return range(self.starts[code], cast("int", last) + 1)

    def centre(self, code: int) -> float:
        """Return the middle of a bin, in positions."""
        inside = self.positions(code)
        return (inside[0] + inside[-1]) / 2

    @cached_property
    def first_positions(self) -> Counts:
        """The first position of each bin, as an array to index with codes."""
        return _frozen(np.array(self.starts, dtype=np.int64))

    @cached_property
    def widths(self) -> Counts:
        """The number of positions of each bin, as an array to index with codes."""
        end = cast("int", self.values[-1]) + 1
        return _frozen(np.diff(self.first_positions, append=end))

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return max(self.groups) + 1

    @property
    def is_bucketed(self) -> bool:
        """Whether some bucket holds several codes."""
        return self.buckets < self.size

    @cached_property
    def bucket_of(self) -> Indices:
        """The bucket of each code, as an array to index with codes."""
        array: Indices = np.array(self.groups, dtype=np.intp)
        array.flags.writeable = False
        return array

    def with_bucket_width(self, width: float) -> "Attribute":
        """Return the attribute with buckets of equal width, from the first value.

        Args:
            width: In numbers, days or seconds; of an ordered kind, how many values.
        """
        if self.unit is None and self.kind != "ordered":
            raise self.error(
                "buckets = { width = … } is for integers; list groups of values (or is its type "
                '"ordered"?)'
            )
        length = (self.unit or _COUNT).length_of(width)
        if length is None:
            step = "a whole number" if self._counts else f"a multiple of {self.step}"
            raise self.error(f"the width of buckets is {step}, at least {self.step}")
        places = self.starts if self.unit is not None else range(self.bins)
        first = places[0]
        return self.with_labels((start - first) // length for start in places)

    def with_bucket_groups(self, groups: Sequence[Sequence[Value]]) -> "Attribute":
        """Return the attribute with the given groups of values as buckets.

        Raises:
            SchemaError: Some value is in no group, or in two, or a group holds something else;
                or the attribute is a numeric kind of other than single whole numbers.
        """
        if self.is_numeric and (self.kind != "integer" or self.is_binned):
            raise self.error(
                "buckets that list values are for integers without bins; write { width = … }, "
                "{ count = … } or { edges = […] }"
            )
        bucket_of: dict[Value, int] = {}
        for bucket, group in enumerate(groups):
            for value in group:
                if value in bucket_of:
                    raise self.error(f"{show(value)} is in two buckets; leave it in one")
                bucket_of[value] = bucket
        if absent := [value for value in self.values if value not in bucket_of]:
            raise self.error(f"no bucket holds {show_some(absent)}; add them to one")
        known = self.values if isinstance(self.values, range) else set(self.values)
        if foreign := [value for value in bucket_of if value not in known]:
            raise self.error(
                f"the buckets hold {show_some(foreign)}, not a value; remove or add it"
            )
        return self.with_labels(bucket_of[value] for value in self.values)

    def with_labels(self, labels: Iterable[int]) -> "Attribute":
        """Return the attribute with buckets in which equal labels share one, missing apart."""
        number: dict[int, int] = {}
        groups = [number.setdefault(label, len(number)) for label in labels]
        return replace(self, groups=tuple(groups + [len(number)] * bool(self.missing)))

    def error(self, what: str) -> SchemaError:
        """Return the error that says ``what`` is wrong with this attribute."""
        return SchemaError(f'attribute "{self.name}": {what}')

    @property
    def step(self) -> str:
        """How far two values of a numeric kind are apart, as a schema writes it."""
        return self.unit.show_width(1) if self.unit is not None else "1"

    @property
    def _counts(self) -> bool:
        return self.unit is None or self.unit.step == 1


def show(value: Value) -> str:
    """Return a value of a schema as a schema writes it."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def show_some(values: Sequence[Value | float], *, most: int = 5) -> str:
    """Return the first few of ``values``, and how many more there are."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(show(cast("Value", value)) for value in values[:most]) + more


def _frozen(array: Counts) -> Counts:
    array.flags.writeable = False
    return array


def _check_listed(attribute: Attribute) -> None:
    if isinstance(attribute.values, str):
        raise attribute.error("values is one text; write a list of them")
    object.__setattr__(attribute, "values", tuple(attribute.values))
    if attribute.starts or attribute.unit is not None or attribute.model != "histogram":
        raise attribute.error("bins and model are for integers, reals, dates and times")


def _check_boolean(attribute: Attribute) -> None:
    _check_listed(attribute)
    values = attribute.values
    texts = [value.lower() for value in values if isinstance(value, str)]
    if len(values) != 2 or len(set(texts)) != 2:
        raise attribute.error('values are two texts, for false and true: ["no", "yes"]')


def _check_text(attribute: Attribute) -> None:
    _check_listed(attribute)
    if not attribute.other or type(attribute.other) is not str:
        raise attribute.error('set other = "other": what every text that is not listed becomes')
    if attribute.other not in attribute.values:
        object.__setattr__(attribute, "values", (*attribute.values, attribute.other))


def _check_numeric(attribute: Attribute) -> None:
    values, kind = attribute.values, cast("NumericKind", attribute.kind)
    if not isinstance(values, range) or values.step != 1:
        raise attribute.error(f"the values of a {kind} are a range; give its min and its max")
    if not values:
        raise attribute.error("min is above max; exchange them")
    if max(abs(values[0]), abs(values[-1])) >= LARGEST:
        raise attribute.error("a value is 2^62 or more; write such numbers as text")
    if attribute.unit is None:
        if kind == "real":
            raise attribute.error("a real needs decimals, or a step")
        object.__setattr__(attribute, "unit", Unit(kind=kind))
    _require_unit(attribute, cast("Unit", attribute.unit))
    starts = attribute.starts if len(attribute.starts) else values
    if len(starts) <= MOST_VALUES:
        starts = _plain_starts(tuple(starts), values)
    object.__setattr__(attribute, "starts", starts)
    _require_starts(attribute)


def _require_unit(attribute: Attribute, unit: Unit) -> None:
    low, high = attribute.values[0], attribute.values[-1]
    if unit.kind != attribute.kind:
        raise attribute.error("its unit is that of another type")
    numerator = unit.step.as_integer_ratio()[0] if unit.kind == "real" else 0
    if max(abs(low), abs(high)) * numerator >= LARGEST_IN_FLOAT:  # type: ignore[arg-type]
        raise attribute.error("so many digits do not fit a number; use fewer decimals")
    width = max(1, len(attribute.values) // _TRIED)
    tried = [*attribute.values[::width], high]
    try:
        unit.require_format(cast("list[int]", tried))
    except SchemaError as error:
        raise attribute.error(str(error)) from None


def _plain_starts(starts: tuple[int, ...], values: range) -> Sequence[int]:
    """Return the starts of bins of one width as a range: one way to say it, for one meaning."""
    width = starts[1] - starts[0] if len(starts) > 1 else len(values)
    even = range(values[0], values[-1] + 1, max(1, width))
    same = len(even) == len(starts) and all(a == b for a, b in zip(even, starts, strict=True))
    return even if same else starts


def _require_starts(attribute: Attribute) -> None:
    starts, values = attribute.starts, cast("range", attribute.values)
    ascending = isinstance(starts, range) or all(
        type(one) is int and one < two for one, two in pairwise(starts)
    )
    if not ascending or starts[0] != values[0] or starts[-1] not in values:
        raise attribute.error("the edges of bins ascend, and lie inside min and max")


_CHECKS: dict[AttributeKind, Callable[[Attribute], None]] = {
    "categorical": _check_listed,
    "ordered": _check_listed,
    "boolean": _check_boolean,
    "text": _check_text,
    "integer": _check_numeric,
    "real": _check_numeric,
    "date": _check_numeric,
    "datetime": _check_numeric,
}


def _require_values(attribute: Attribute) -> None:
    if not attribute.values:
        raise attribute.error("it has no values; list at least one")
    if attribute.size > MOST_VALUES:
        cure = "set bins" if attribute.is_numeric else "group them into fewer before they come here"
        raise attribute.error(
            f"it has more than {MOST_VALUES:,} values (a missing cell counts as one); {cure}"
        )
    if attribute.is_numeric:
        return
    types = {type(value) for value in attribute.values}
    if types not in ({str}, {int}) or (attribute.kind == "text" and types != {str}):
        raise attribute.error("its values must be all text or all whole numbers")
    if any(isinstance(value, int) and abs(value) >= LARGEST for value in attribute.values):
        raise attribute.error("a value is 2^62 or more; write such numbers as text")
    if twice := [value for value, count in Counter(attribute.values).items() if count > 1]:
        raise attribute.error(f"listed more than once: {show_some(twice)}; list each value once")


def _require_missing(attribute: Attribute) -> None:
    object.__setattr__(attribute, "missing", tuple(attribute.missing))
    if not all(type(text) is str for text in attribute.missing):
        raise attribute.error('missing is a list of texts; quote its numbers, as in ["-8"]')
    if len(set(attribute.missing)) < len(attribute.missing):
        raise attribute.error("missing lists a text twice; list each once")
    if both := list(_meant_twice(attribute)):
        raise attribute.error(f"both a value and missing: {show_some(both)}; decide which it is")


def _meant_twice(attribute: Attribute) -> Iterable[Value | float]:
    """Return what is declared as a value and as missing."""
    if attribute.unit is None:
        known = set(attribute.values)
        if attribute.kind == "boolean":
            return [text for text in attribute.missing if text.lower() in map(_lower, known)]
        meant: Sequence[Value | float] = attribute.missing_numbers or attribute.missing
        return [value for value in meant if value in known]
    said = pl.Series("said", attribute.missing_numbers, strict=False).to_frame()
    places = said.select(attribute.unit.positions(pl.col("said"))).to_series().to_list()
    pairs = zip(attribute.missing_numbers, places, strict=True)
    return [number for number, place in pairs if place in attribute.values]


def _lower(value: Value) -> str:
    return str(value).lower()


def _require_groups(attribute: Attribute) -> None:
    groups = attribute.groups
    object.__setattr__(attribute, "groups", tuple(groups))
    if len(groups) != attribute.size:
        raise attribute.error(f"{attribute.size} codes need as many bucket numbers")
    numbers = list(dict.fromkeys(groups))
    if numbers != list(range(len(numbers))):
        raise attribute.error("buckets are numbered from 0 in the order of their first codes")
    if attribute.missing and groups.count(groups[-1]) > 1:
        raise attribute.error("a missing cell is a bucket of its own; leave it out of the others")
    single = attribute.kind == "integer" and not attribute.is_binned
    if attribute.is_numeric and not single and list(groups) != sorted(groups):
        raise attribute.error("a bucket of bins holds neighbours only")
