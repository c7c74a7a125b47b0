"""Attribute: the domain of a learnt column, its values as integer codes, and its buckets.

The model sees codes only. CONTRIBUTING.md lists what a new kind of attribute needs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias, cast

import numpy as np

from deniable.arrays import MAX_DOMAIN_SIZE, Counts, Indices
from deniable.errors import SchemaError
from deniable.library_imports import pl
from deniable.schema.grid import FLOAT_INTEGER_LIMIT, INTEGER_LIMIT, Grid, NumericKind

Value = str | int
AttributeKind = Literal[
    "categorical", "ordered", "integer", "real", "boolean", "date", "datetime", "text"
]
Outside = Literal["error", "drop", "clip"]
ModelKind = Literal["histogram", "normal", "regression"]
# Whether an entry of a schema is public: a person says so; or "draft": a private draft found it,
# whose cost the section [draft] states. Without that section it was read off the data.
Confirmed: TypeAlias = bool | Literal["draft"]

_INTEGER_GRID = Grid(kind="integer")
# Number of dates of a range that are written and parsed, to check that a format loses nothing.
_MAX_FORMAT_CHECKS = 500


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One learnt column: its values in the order of their codes, and its buckets.

    A listed kind (categorical, ordered, boolean, text) has one code per value. A numeric kind
    (integer, real, date, datetime) has values on a grid of positions; a code is a bin of one or
    several consecutive positions, and ``grid`` maps positions to values. If ``missing`` is not
    empty, one additional code, the last, represents a missing cell; it is a bucket of its own.

    Attributes:
        name: The column's name in the table.
        kind: Its type in schema.toml.
        values: Listed kinds: distinct values, all text or all whole numbers; for a boolean, the
            texts for false and true. Numeric kinds: the range of all positions.
        missing: The texts that mean missing; the first is used in output.
        groups: The bucket of each code, numbered from 0 in the order of their first codes. By
            default, every code is a bucket.
        outside: Treatment of a value outside ``values``: raise an error, drop its record, or
            (numeric kinds) clip to the nearest value.
        confirmed: Whether a person, or a private draft, has confirmed that this description is
            public. A description read off the data discloses something about the data.
        starts: Numeric kinds: the first position of each bin. By default, each position is a bin.
        grid: Numeric kinds: the mapping of positions to values; only a real has no default.
        other: Text: the value, one of ``values``, that replaces every unlisted text.
        model: Numeric kinds: the model of the distribution.
        heaps: Numbers in bins: steps, in positions; numbers cluster at their multiples.
        fallback: Code of every invalid cell, whatever its type; None: ``outside`` applies to it.
        is_numeric: Whether the values lie on a grid: integers, reals, dates, and times.
        is_binned: Whether some code represents several values.
        bins: The number of codes, without the code for a missing cell.
        size: The number of codes, including the code for a missing cell.
    """

    name: str
    kind: AttributeKind
    values: Sequence[Value]
    missing: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    outside: Outside = "error"
    confirmed: Confirmed = True
    starts: Sequence[int] = ()
    grid: Grid | None = None
    other: str = ""
    model: ModelKind = field(default="histogram", repr=False)
    heaps: tuple[int, ...] = ()
    fallback: int | None = None
    is_numeric: bool = field(init=False, repr=False, compare=False)
    is_binned: bool = field(init=False, repr=False, compare=False)
    bins: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemaError('an attribute has no name: set name = "…" to the column header')
        _CHECKS[self.kind](self)
        is_numeric = self.grid is not None
        bins = len(self.starts if is_numeric else self.values)
        object.__setattr__(self, "is_numeric", is_numeric)
        object.__setattr__(self, "is_binned", is_numeric and bins < len(self.values))
        object.__setattr__(self, "bins", bins)
        object.__setattr__(self, "size", bins + bool(self.missing))
        _require_values(self)
        object.__setattr__(self, "missing", tuple(self.missing))
        if self.missing:
            _require_missing(self)
        if not self.groups:
            object.__setattr__(self, "groups", tuple(range(self.size)))
        _require_groups(self)
        if self.outside == "clip" and not self.is_numeric:
            raise self.error(
                'outside = "clip" is only for integers, reals and dates; use "error" or "drop"'
            )
        if self.fallback is not None and not 0 <= self.fallback < self.size:
            raise self.error("its fallback is none of its values")

    @property
    def is_whole(self) -> bool:
        """Whether the values are whole numbers: an integer kind, or listed whole numbers."""
        return self.kind == "integer" or (self.grid is None and isinstance(self.values[0], int))

    @property
    def missing_code(self) -> int | None:
        """The code for a missing cell, which is the last; None if cells cannot be missing."""
        return self.bins if self.missing else None

    @cached_property
    def missing_numbers(self) -> tuple[int | float, ...]:
        """The texts that mean missing, parsed as numbers, or as positions of dates.

        Texts that cannot be parsed are skipped; an attribute of text has none.
        """
        grid = self.grid or (Grid(kind="integer") if self.is_whole else None)
        return tuple(grid.parse_texts(self.missing)) if grid is not None else ()

    def positions(self, code: int) -> range:
        """List the grid positions in the bin of a code; numeric kinds only."""
        last = self.values[-1] if code + 1 == self.bins else self.starts[code + 1] - 1
        return range(self.starts[code], cast("int", last) + 1)

    def centre(self, code: int) -> float:
        """Compute the midpoint of a bin, in positions."""
        inside = self.positions(code)
        return (inside[0] + inside[-1]) / 2

    @cached_property
    def first_positions(self) -> Counts:
        """The first position of each bin, as an array to index with codes."""
        return _read_only(np.array(self.starts, dtype=np.int64))

    @cached_property
    def widths(self) -> Counts:
        """The number of positions in each bin, as an array to index with codes."""
        end = cast("int", self.values[-1]) + 1
        return _read_only(np.diff(self.first_positions, append=end))

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return max(self.groups) + 1

    @property
    def is_bucketed(self) -> bool:
        """Whether some bucket contains several codes."""
        return self.buckets < self.size

    @cached_property
    def bucket_of(self) -> Indices:
        """The bucket of each code, as an array to index with codes."""
        array: Indices = np.array(self.groups, dtype=np.intp)
        array.flags.writeable = False
        return array

    def with_bucket_width(self, width: float) -> "Attribute":
        """Group the codes into buckets of equal width, starting at the first value.

        Args:
            width: In numbers, days or seconds; for an ordered kind, a number of values. It is
                rounded up to where a bin ends.
        """
        if self.grid is None and self.kind != "ordered":
            raise self.error(
                "buckets = { width = … } is only for integers; list groups of values (or is its "
                'type "ordered"?)'
            )
        length = (self.grid or _INTEGER_GRID).width_in_positions(width)
        if length is None:
            step = "a whole number" if self._has_step_one else f"a multiple of {self.step_text}"
            raise self.error(f"the width of buckets must be {step}, at least {self.step_text}")
        starts = self.starts if self.grid is not None else range(self.bins)
        # The first bucket ends where a bin does, so that the width can be read off the buckets.
        first_end = next((s for s in starts if s >= starts[0] + length), starts[0] + length)
        labels = ((start - starts[0]) // (first_end - starts[0]) for start in starts)
        return replace(self, groups=self.number_buckets(labels))

    def with_bucket_groups(self, groups: Sequence[Sequence[Value]]) -> "Attribute":
        """Group the values into the given buckets.

        Raises:
            SchemaError: A value is in no group or in two, or a group contains something else; or
                the attribute is numeric, but not an integer without bins.
        """
        if self.is_numeric and (self.kind != "integer" or self.is_binned):
            raise self.error(
                "buckets can list values only for integers without bins; use { width = … }"
            )
        bucket_of: dict[Value, int] = {}
        for bucket, group in enumerate(groups):
            for value in group:
                if value in bucket_of:
                    raise self.error(f"{format_value(value)} is in two buckets; keep it in one")
                bucket_of[value] = bucket
        if absent := [value for value in self.values if value not in bucket_of]:
            raise self.error(f"no bucket contains {summarize_values(absent)}; add them to one")
        known = self.values if isinstance(self.values, range) else set(self.values)
        if foreign := [value for value in bucket_of if value not in known]:
            raise self.error(
                f"a bucket contains {summarize_values(foreign)}, which is not among the values; "
                "remove it, or add it to the values"
            )
        labels = (bucket_of[value] for value in self.values)
        return replace(self, groups=self.number_buckets(labels))

    def number_buckets(self, labels: Iterable[int]) -> tuple[int, ...]:
        """Number the buckets of codes with equal labels; a missing cell is one of its own."""
        number: dict[int, int] = {}
        groups = [number.setdefault(label, len(number)) for label in labels]
        return tuple(groups + [len(number)] * bool(self.missing))

    def error(self, what: str) -> SchemaError:
        """Build an error that names this attribute."""
        return SchemaError(f'attribute "{self.name}": {what}')

    @property
    def step_text(self) -> str:
        """The distance between neighbouring values of a numeric kind, as written in a schema."""
        return self.grid.format_width(1) if self.grid is not None else "1"

    @property
    def _has_step_one(self) -> bool:
        return self.grid is None or self.grid.step == 1


def format_value(value: Value) -> str:
    """Format a value as it is written in a schema."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def summarize_values(values: Sequence[Value | float], *, limit: int = 5) -> str:
    """Format the first ``limit`` values, and the number of the others, for a message."""
    more = f" and {len(values) - limit:,} more" if len(values) > limit else ""
    return ", ".join(format_value(cast("Value", value)) for value in values[:limit]) + more


def _read_only(array: Counts) -> Counts:
    array.flags.writeable = False
    return array


def _check_listed(attribute: Attribute) -> None:
    if isinstance(attribute.values, str):
        raise attribute.error("values is a single text; use a list")
    object.__setattr__(attribute, "values", tuple(attribute.values))
    if attribute.starts or attribute.grid is not None or attribute.model != "histogram":
        raise attribute.error("bins and model are only for integers, reals, dates and times")


def _check_boolean(attribute: Attribute) -> None:
    _check_listed(attribute)
    values = attribute.values
    texts = [value.lower() for value in values if isinstance(value, str)]
    if len(values) != 2 or len(set(texts)) != 2:
        raise attribute.error('values must be two texts, for false and true: ["no", "yes"]')


def _check_text(attribute: Attribute) -> None:
    _check_listed(attribute)
    if not attribute.other or type(attribute.other) is not str:
        raise attribute.error('set other = "other": the value that replaces unlisted texts')
    if attribute.other not in attribute.values:
        object.__setattr__(attribute, "values", (*attribute.values, attribute.other))


def _check_numeric(attribute: Attribute) -> None:
    values, kind = attribute.values, cast("NumericKind", attribute.kind)
    if not isinstance(values, range) or values.step != 1:
        raise attribute.error(f"the values of type {kind} are a range; set min and max")
    if not values:
        raise attribute.error("min is above max; swap them")
    if max(abs(values[0]), abs(values[-1])) >= INTEGER_LIMIT:
        raise attribute.error("a value is 2^62 or more; write such numbers as text")
    if attribute.grid is None:
        if kind == "real":
            raise attribute.error("a real needs decimals or a step")
        object.__setattr__(attribute, "grid", Grid(kind=kind))
    _require_grid(attribute, cast("Grid", attribute.grid))
    starts = attribute.starts if len(attribute.starts) else values
    if len(starts) <= MAX_DOMAIN_SIZE:
        starts = _canonical_starts(tuple(starts), values)
    object.__setattr__(attribute, "starts", starts)
    _require_starts(attribute)


def _require_grid(attribute: Attribute, grid: Grid) -> None:
    low, high = attribute.values[0], attribute.values[-1]
    if grid.kind != attribute.kind:
        raise attribute.error("its grid has a different type")
    numerator = grid.step.as_integer_ratio()[0] if grid.kind == "real" else 0
    if max(abs(low), abs(high)) * numerator >= FLOAT_INTEGER_LIMIT:  # type: ignore[arg-type]
        raise attribute.error("its values need more digits than a float has; use fewer decimals")
    if grid.kind in ("integer", "real"):
        return
    stride = max(1, len(attribute.values) // _MAX_FORMAT_CHECKS)
    checked = [*attribute.values[::stride], high]
    try:
        grid.require_format(cast("list[int]", checked))
    except SchemaError as error:
        raise attribute.error(str(error)) from None


def _canonical_starts(starts: tuple[int, ...], values: range) -> Sequence[int]:
    """Represent bins of equal width as a range, so that equal bins compare equal."""
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
        raise attribute.error("the edges of bins must ascend and lie between min and max")


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
    if attribute.size > MAX_DOMAIN_SIZE:
        fix = "set bins" if attribute.is_numeric else "group rare values in the table first"
        raise attribute.error(
            f"it has more than {MAX_DOMAIN_SIZE:,} values (a missing cell counts as one); {fix}"
        )
    if attribute.is_numeric:
        return
    types = {type(value) for value in attribute.values}
    if types not in ({str}, {int}) or (attribute.kind == "text" and types != {str}):
        raise attribute.error("its values must be all text or all whole numbers")
    if any(isinstance(value, int) and abs(value) >= INTEGER_LIMIT for value in attribute.values):
        raise attribute.error("a value is 2^62 or more; write such numbers as text")
    if twice := [value for value, count in Counter(attribute.values).items() if count > 1]:
        raise attribute.error(
            f"listed more than once: {summarize_values(twice)}; list each value once"
        )


def _require_missing(attribute: Attribute) -> None:
    if not all(type(text) is str for text in attribute.missing):
        raise attribute.error('missing must be a list of texts; quote numbers, as in ["-8"]')
    if len(set(attribute.missing)) < len(attribute.missing):
        raise attribute.error("missing lists a text twice; list it once")
    if both := list(_values_declared_missing(attribute)):
        raise attribute.error(
            f"listed both as a value and as missing: {summarize_values(both)}; keep one"
        )


def _values_declared_missing(attribute: Attribute) -> Iterable[Value | float]:
    """List the values that are also declared as missing."""
    if attribute.grid is None:
        known = set(attribute.values)
        if attribute.kind == "boolean":
            lower = {str(value).lower() for value in known}
            return [text for text in attribute.missing if text.lower() in lower]
        meant: Sequence[Value | float] = attribute.missing_numbers or attribute.missing
        return [value for value in meant if value in known]
    if not (numbers := attribute.missing_numbers):  # then polars need not be loaded
        return []
    parsed = pl.Series("parsed", numbers, strict=False).to_frame()
    positions = parsed.select(attribute.grid.positions(pl.col("parsed"))).to_series().to_list()
    return [n for n, at in zip(numbers, positions, strict=True) if at in attribute.values]


def _require_groups(attribute: Attribute) -> None:
    groups = attribute.groups
    object.__setattr__(attribute, "groups", tuple(groups))
    if len(groups) != attribute.size:
        raise attribute.error(f"{attribute.size} codes need {attribute.size} bucket numbers")
    numbers = list(dict.fromkeys(groups))
    if numbers != list(range(len(numbers))):
        raise attribute.error("buckets must be numbered from 0 in the order of their first codes")
    if attribute.missing and groups.count(groups[-1]) > 1:
        raise attribute.error("a missing cell is a bucket of its own; it cannot share one")
    single = attribute.kind == "integer" and not attribute.is_binned
    if attribute.is_numeric and not single and list(groups) != sorted(groups):
        raise attribute.error("a bucket of bins must be contiguous")
