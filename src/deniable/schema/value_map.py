"""ValueMap: a computed column as a function of one other column, value by value or by steps.

A code and its text, or a fine and a coarse category, are pairs of values. An age and its age group
are steps: the first number of each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

from deniable.errors import SchemaError
from deniable.library_imports import pl
from deniable.schema.attribute import Attribute
from deniable.schema.grid import INTEGER_LIMIT

# A result; None if it is missing.
MappedValue = str | int | float | bool | None
SourceValue = str | int | float | bool | date

_SHAPES = {
    "map": 'map must be a list of pairs, as in map = [["A", 1], ["B", 1]]',
    "steps": 'steps must be a list of pairs, as in steps = [[0, "child"], [18, "adult"]]',
}


@dataclass(frozen=True, kw_only=True)
class ValueMap:
    """Values of a computed column, by the values of its source column.

    Attributes:
        source: The column that determines this one.
        pairs: A value of the source and the value that follows from it; None if that is missing. By
            steps: the first number of each interval and the value in it.
        by_steps: Whether the pairs are steps, in ascending order, of a numeric source.
    """

    source: str
    pairs: tuple[tuple[SourceValue, MappedValue], ...]
    by_steps: bool = False

    def __post_init__(self) -> None:
        if not self.pairs:
            raise SchemaError(f"{self.key} is empty; {_SHAPES[self.key]}")
        given = [_typed(value) for value, _ in self.pairs]
        if len(set(given)) < len(given):
            raise SchemaError(f"{self.key} lists a value of {self._source} twice; keep one pair")
        kinds = self._kinds
        if not kinds:
            raise SchemaError(f"{self.key}: all of its results are missing; use a constant")
        if not kinds <= {str, int, float, bool} or (len(kinds) > 1 and kinds != {int, float}):
            raise SchemaError(
                f"{self.key}: its results must be all text, all numbers, or all true and false"
            )
        if not all(isfinite(value) for _, value in self.pairs if type(value) is float):
            raise SchemaError(f"{self.key}: its results must be finite numbers")
        if any(type(value) is int and abs(value) >= INTEGER_LIMIT for _, value in self.pairs):
            raise SchemaError(f"{self.key}: its whole numbers must be below 2^62")
        if self.by_steps:
            self._require_ascending()

    @property
    def key(self) -> str:
        """The key of schema.toml that holds the pairs."""
        return "steps" if self.by_steps else "map"

    @property
    def dtype(self) -> pl.DataType:
        """The polars type of the results."""
        kinds = self._kinds
        if kinds == {int}:
            return pl.Int64()
        if kinds == {bool}:
            return pl.Boolean()
        return pl.String() if kinds == {str} else pl.Float64()

    @cached_property
    def _kinds(self) -> set[type]:
        """The types of the results that are not missing."""
        return {type(value) for _, value in self.pairs if value is not None}

    @property
    def has_missing_results(self) -> bool:
        """Whether a result is missing."""
        return any(value is None for _, value in self.pairs)

    @property
    def is_whole(self) -> bool:
        """Whether all results are whole numbers."""
        return self.dtype == pl.Int64()

    def require_source(self, source: Attribute) -> None:
        """Check that the pairs list values of the source; every value, unless it is numeric.

        Raises:
            SchemaError: A value is not one of the source's, or has no result.
        """
        if self.by_steps:
            if not source.is_whole and source.kind != "real":
                raise SchemaError(f"steps need numbers, but {self._source} has none; use map")
            return
        if source.is_numeric and source.kind != "integer":
            raise SchemaError(f"map needs listed values or integers, unlike {self._source}")
        results = {_typed(value) for value, _ in self.pairs}
        allowed = {_typed(text) for text in source.missing}
        if source.kind == "boolean":
            allowed |= {(bool, False), (bool, True)}
        for kind, value in results:
            listed = kind is type(source.values[0]) and value in source.values
            if not listed and (kind, value) not in allowed:
                raise SchemaError(f"map: {value!r} is not a value of {self._source}; correct it")
        for code, own in enumerate(source.values):
            as_boolean = source.kind == "boolean" and (bool, bool(code)) in results
            if _typed(own) not in results and not as_boolean:
                raise SchemaError(
                    f"map: {own!r} of {self._source} has no pair; add one for each value"
                )

    def results(self, source: Attribute) -> pl.Expr:
        """Compute the results from the values of the source column."""
        cell = pl.col(self.source)
        if self.by_steps:
            return self._look_up_steps(cell)
        old, new = [], []
        at_missing = None
        for value, result in self.pairs:
            if source.missing and type(value) is str and value in source.missing:
                at_missing = result
            else:
                old.append(self._output_value(value, source))
                new.append(result)
        mapped = cell.replace_strict(
            pl.Series(old), pl.Series(new, dtype=self.dtype), default=None, return_dtype=self.dtype
        )
        if at_missing is None:
            return mapped
        return pl.when(cell.is_null()).then(pl.lit(at_missing, self.dtype)).otherwise(mapped)

    @cached_property
    def _starts(self) -> list[float]:
        return [float(value) for value, _ in self.pairs]  # type: ignore[arg-type]

    @property
    def _source(self) -> str:
        return f'"{self.source}"'

    def _require_ascending(self) -> None:
        starts = [value for value, _ in self.pairs]
        if not all(type(start) in (int, float) for start in starts):
            raise SchemaError("steps: the first of each pair must be a number")
        if not all(isfinite(low) and low < high for low, high in pairwise(self._starts)):
            raise SchemaError("steps must be in ascending order")

    def _look_up_steps(self, cell: pl.Expr) -> pl.Expr:
        """Look up the last step at or below each number; below the first step, the first."""
        number = cell.cast(pl.Float64)
        found = pl.lit(self.pairs[0][1], self.dtype)
        for start, (_, result) in zip(self._starts[1:], self.pairs[1:], strict=True):
            found = pl.when(number >= start).then(pl.lit(result, self.dtype)).otherwise(found)
        return pl.when(cell.is_not_null()).then(found)

    def _output_value(self, value: SourceValue, source: Attribute) -> SourceValue:
        """Convert a value of the source to its form in released records."""
        if source.kind != "boolean" or isinstance(value, bool):
            return value
        return bool(list(source.values).index(value))  # type: ignore[arg-type]


def parse_value_map(table: Mapping[str, Any], place: str) -> ValueMap:
    """Parse the keys ``from`` and ``map`` or ``steps`` of a computed column.

    A result that is one of the column's texts for missing is missing.

    Raises:
        SchemaError: A key is missing or malformed.
    """
    key = "steps" if "steps" in table else "map"
    source, pairs = table.get("from"), table.get(key)
    if type(source) is not str or not source:
        raise SchemaError(f"{place}: {key} needs from, the name of the column that determines it")
    if ("map" in table and "steps" in table) or pairs is None or not _are_pairs(pairs):
        raise SchemaError(f"{place}: {_SHAPES[key]}; give either map or steps")
    listed = table.get("missing", [])
    texts = [text for text in listed if type(text) is str] if isinstance(listed, list) else []
    try:
        return ValueMap(
            source=source,
            pairs=tuple((one, None if other in texts else other) for one, other in pairs),
            by_steps=key == "steps",
        )
    except SchemaError as error:
        raise SchemaError(f"{place}: {error}") from None


def _are_pairs(content: object) -> bool:
    if not (isinstance(content, list) and content):
        return False
    return all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(value, str | int | float) for value in pair)
        for pair in content
    )


def _typed(value: object) -> tuple[type, object]:
    """Distinguish 1 from true, which are equal in Python."""
    return type(value), value
