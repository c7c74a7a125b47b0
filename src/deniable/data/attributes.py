"""Attribute: what a column may hold, the code of each value, and the bucket of each code.

A new kind of attribute needs a name in ``AttributeKind``, a check in ``_CHECKS``, and two
functions in ``schema.py`` that read and write its fields. All else sees its ``values`` only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from deniable.arrays import MOST_VALUES, Indices
from deniable.errors import SchemaError

Value = str | int
AttributeKind = Literal["categorical", "integer"]
Outside = Literal["error", "drop", "clip"]

# Beyond it, a whole number may be one that was cut to fit 64 bits on its way in.
LARGEST = 2**62


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One column: its values in the order of their codes, and its buckets.

    Code i stands for ``values[i]``. Where ``missing`` is declared, one more code, the last,
    stands for a missing cell, and is a bucket of its own.

    Attributes:
        name: The column's name in the table.
        kind: ``"integer"`` is all whole numbers from the first value to the last.
        values: Distinct, all text or all whole numbers.
        missing: The texts that mean missing; the first is written back.
        groups: The bucket of every code, numbered from 0 in the order of their first codes. Left
            out, every code is a bucket.
        outside: What a value outside ``values`` does: fails, drops its record, or (integers)
            moves to the nearest value.
        confirmed: Whether a human vouches for this description. One that was read off the data
            discloses something about it.
    """

    name: str
    kind: AttributeKind
    values: Sequence[Value]
    missing: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    outside: Outside = "error"
    confirmed: bool = True

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemaError('an attribute has no name: set name = "…" to the column\'s header')
        _CHECKS[self.kind](self)
        _require_values(self)
        _require_missing(self)
        if not self.groups:
            object.__setattr__(self, "groups", tuple(range(self.size)))
        _require_groups(self)
        if self.outside == "clip" and self.kind != "integer":
            raise self.error('outside = "clip" is for integers; set it to "error" or "drop"')

    @property
    def size(self) -> int:
        """The number of codes, that of a missing cell included."""
        return len(self.values) + bool(self.missing)

    @property
    def missing_code(self) -> int | None:
        """The code of a missing cell, where the attribute has one: the last."""
        return len(self.values) if self.missing else None

    @property
    def is_numeric(self) -> bool:
        """Whether the values are whole numbers; otherwise they are text."""
        return isinstance(self.values[0], int)

    @property
    def missing_numbers(self) -> tuple[int, ...]:
        """The whole numbers among the texts that mean missing; none for an attribute of text."""
        numbers = (whole_number(text) for text in self.missing) if self.is_numeric else ()
        return tuple(number for number in numbers if number is not None)

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

    def with_bucket_width(self, width: int) -> "Attribute":
        """Return the attribute with buckets of ``width`` consecutive integers, from the first."""
        if self.kind != "integer":
            raise self.error("buckets = { width = … } is for integers; list groups of values")
        if type(width) is not int or width < 1:
            raise self.error("the width of buckets is a whole number, at least 1")
        return replace(self, groups=self._numbered(i // width for i in range(len(self.values))))

    def with_bucket_groups(self, groups: Sequence[Sequence[Value]]) -> "Attribute":
        """Return the attribute with the given groups of values as buckets.

        Raises:
            SchemaError: Some value is in no group, or in two, or a group holds something else.
        """
        bucket_of = {}
        for bucket, group in enumerate(groups):
            for value in group:
                if value in bucket_of:
                    raise self.error(f"{show(value)} is in two buckets; leave it in one")
                bucket_of[value] = bucket
        if absent := [value for value in self.values if value not in bucket_of]:
            raise self.error(f"no bucket holds {show_some(absent)}; add them to one")
        known = set(self.values)
        if foreign := [value for value in bucket_of if value not in known]:
            raise self.error(
                f"the buckets hold {show_some(foreign)}, not a value; remove or add it"
            )
        return replace(self, groups=self._numbered(bucket_of[value] for value in self.values))

    def error(self, what: str) -> SchemaError:
        """Return the error that says ``what`` is wrong with this attribute."""
        return SchemaError(f'attribute "{self.name}": {what}')

    def _numbered(self, labels: Iterable[int]) -> tuple[int, ...]:
        """Return the groups in which equal labels share a bucket, a missing cell apart."""
        number: dict[int, int] = {}
        groups = [number.setdefault(label, len(number)) for label in labels]
        return tuple(groups + [len(number)] * bool(self.missing))


def whole_number(text: str) -> int | None:
    """Return the whole number that ``text`` says, as a cell of a CSV file would; else None."""
    try:
        return int(text) if "_" not in text else None
    except ValueError:
        return None


def show(value: Value) -> str:
    """Return a value of a schema as a schema writes it."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def show_some(values: Sequence[Value], *, most: int = 5) -> str:
    """Return the first few of ``values``, and how many more there are."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(show(value) for value in values[:most]) + more


def _check_categorical(attribute: Attribute) -> None:
    if isinstance(attribute.values, str):
        raise attribute.error("values is one text; write a list of them")
    object.__setattr__(attribute, "values", tuple(attribute.values))


def _check_integer(attribute: Attribute) -> None:
    if not isinstance(attribute.values, range) or attribute.values.step != 1:
        raise attribute.error("the values of an integer are a range; give its min and its max")
    if not attribute.values:
        raise attribute.error("min is above max; exchange them")


_CHECKS: dict[AttributeKind, Callable[[Attribute], None]] = {
    "categorical": _check_categorical,
    "integer": _check_integer,
}


def _require_values(attribute: Attribute) -> None:
    values = attribute.values
    if not values:
        raise attribute.error("it has no values; list at least one")
    if len(values) + bool(attribute.missing) > MOST_VALUES:
        raise attribute.error(
            f"it has more than {MOST_VALUES:,} values (a missing cell counts as one); "
            "group them into fewer before the table comes here"
        )
    ends = (values[0], values[-1]) if isinstance(values, range) else values
    if not (all(type(v) is str for v in ends) or all(type(v) is int for v in ends)):
        raise attribute.error("its values must be all text or all whole numbers")
    if any(isinstance(v, int) and abs(v) >= LARGEST for v in ends):
        raise attribute.error("a value is 2^62 or more; write such numbers as text")
    if not isinstance(values, range) and len(set(values)) < len(values):
        twice = [v for v in dict.fromkeys(values) if values.count(v) > 1]
        raise attribute.error(f"listed more than once: {show_some(twice)}; list each value once")


def _require_missing(attribute: Attribute) -> None:
    object.__setattr__(attribute, "missing", tuple(attribute.missing))
    if not all(type(text) is str for text in attribute.missing):
        raise attribute.error('missing is a list of texts; quote its numbers, as in ["-8"]')
    if len(set(attribute.missing)) < len(attribute.missing):
        raise attribute.error("missing lists a text twice; list each once")
    meant: Sequence[Value] = attribute.missing_numbers or attribute.missing
    values = attribute.values if isinstance(attribute.values, range) else set(attribute.values)
    if both := [value for value in meant if value in values]:
        raise attribute.error(f"both a value and missing: {show_some(both)}; decide which it is")


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
