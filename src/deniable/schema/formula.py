"""Formula: an arithmetic expression over columns.

Allowed are ``+``, ``-``, ``*``, ``/``, ``log()``, ``sqrt()``, parentheses, numbers and columns. The
name of a column with other characters than letters, digits and underscores is in backquotes. The
text is parsed against this list, never evaluated as Python.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import Reals
from deniable.errors import SchemaError
from deniable.library_imports import pl

_MAX_FORMULA_LENGTH = 1_000
# Operations inside each other; a sum of n columns has n.
_MAX_DEPTH = 500
_BACKQUOTED = re.compile("`([^`]*)`")

_Operation = Callable[[Reals, Reals], Reals]


def _divide(one: Reals, two: Reals) -> Reals:
    """Divide; NaN if the divisor is zero."""
    return one / np.where(two != 0, two, np.nan)


_OPERATIONS: dict[type[ast.operator], _Operation] = {
    ast.Add: lambda one, two: one + two,
    ast.Sub: lambda one, two: one - two,
    ast.Mult: lambda one, two: one * two,
    ast.Div: _divide,
}


# log 2, as a number of few digits and the rest: whole multiples of the first are exact.
_LOG_2_HIGH, _LOG_2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
# Terms of the series of the logarithm; a further one is below the precision of a double.
_LOG_TERMS = 12


def natural_log(numbers: Reals) -> Reals:
    """Compute natural logarithms, the same digits on every computer; NaN for 0 and below.

        log(2^e m) = e log 2 + 2 (s + s³/3 + s⁵/5 + …),   s = (m - 1) / (m + 1),   ½ ≤ m² ≤ 2

    Libraries differ in the last digit, and ``verify`` compares files byte by byte.
    """
    mantissa, exponent = np.frexp(np.where((numbers > 0) & np.isfinite(numbers), numbers, np.nan))
    is_small = mantissa < math.sqrt(0.5)
    mantissa = np.where(is_small, 2 * mantissa, mantissa)
    whole = np.where(is_small, exponent - 1, exponent).astype(np.float64)
    s = (mantissa - 1) / (mantissa + 1)
    square = s * s
    series = np.zeros_like(s)
    for k in reversed(range(1, _LOG_TERMS)):
        series = (series + 1 / (2 * k + 1)) * square
    small: Reals = 2 * s * series + whole * _LOG_2_LOW
    logarithms: Reals = whole * _LOG_2_HIGH + (2 * s + small)
    return logarithms


def square_root(numbers: Reals) -> Reals:
    """Compute square roots, which every computer rounds correctly; NaN below 0."""
    roots: Reals = np.sqrt(np.where(numbers >= 0, numbers, np.nan))
    return roots


_FUNCTIONS: dict[str, Callable[[Reals], Reals]] = {"log": natural_log, "sqrt": square_root}


@dataclass(frozen=True)
class Formula:
    """An arithmetic expression over numeric columns.

    Raises:
        SchemaError: The text is not such an expression.
    """

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str or not 0 < len(self.text) <= _MAX_FORMULA_LENGTH:
            raise SchemaError(
                f"a formula must be a text of at most {_MAX_FORMULA_LENGTH:,} characters"
            )
        if _depth(self._tree) > _MAX_DEPTH:
            raise self._error("it is nested too deeply")
        self._evaluate(dict.fromkeys(self.names, np.zeros(1)))
        if not self.names:
            raise SchemaError(
                'a formula must name a column; for a fixed value, use type = "constant"'
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The distinct columns in the formula."""
        nodes = list(ast.walk(self._tree))
        functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        found = [
            self._column_name(node.id)
            for node in nodes
            if isinstance(node, ast.Name) and id(node) not in functions
        ]
        return tuple(dict.fromkeys(found))

    @property
    def may_be_fractional(self) -> bool:
        """Whether the result may be fractional for whole numbers."""
        return any(
            isinstance(node, ast.Div | ast.Call)
            or (isinstance(node, ast.Constant) and isinstance(node.value, float))
            for node in ast.walk(self._tree)
        )

    def expression(self, number: Callable[[str], pl.Expr]) -> pl.Expr:
        """The formula for polars: null where there is no result, or a column is missing.

        It is computed step by step in NumPy: an expression of polars that uses a part twice, as a
        quotient does to find zeros, computes it twice, and so on for each part inside another.

        Args:
            number: Maps the name of a column to its expression.
        """
        names = self.names

        def compute(columns: Sequence[pl.Series]) -> pl.Series:
            numbers = [column.cast(pl.Float64).to_numpy() for column in columns]
            found = self._evaluate(dict(zip(names, numbers, strict=True)))
            return pl.Series(found, dtype=pl.Float64).fill_nan(None)

        return pl.map_batches([number(name) for name in names], compute, return_dtype=pl.Float64)

    def _evaluate(self, numbers: Mapping[str, Reals]) -> Reals:
        """Compute the results from the numbers of each column; NaN is missing."""
        with np.errstate(all="ignore"):
            return self._value(self._tree, numbers)

    @cached_property
    def _placeholders(self) -> dict[str, str]:
        """Column names in backquotes, by the Python identifier that replaces each."""
        names = dict.fromkeys(_BACKQUOTED.findall(self.text))
        unused = "column_"
        while unused in self.text:
            unused += "_"
        return {f"{unused}{i}": name for i, name in enumerate(names)}

    @cached_property
    def _tree(self) -> ast.expr:
        stand_in = {name: short for short, name in self._placeholders.items()}
        plain = _BACKQUOTED.sub(lambda found: f" {stand_in[found[1]]} ", self.text)
        try:
            return ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("it cannot be parsed") from None

    def _column_name(self, short: str) -> str:
        return self._placeholders.get(short, short)

    def _value(self, node: ast.expr, numbers: Mapping[str, Reals]) -> Reals:
        if isinstance(node, ast.BinOp) and (operation := _OPERATIONS.get(type(node.op))):
            return operation(self._value(node.left, numbers), self._value(node.right, numbers))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._value(node.operand, numbers)
            return -inner if isinstance(node.op, ast.USub) else inner
        if (function := _called_function(node)) is not None:
            return function(self._value(node.args[0], numbers))  # type: ignore[attr-defined]
        if isinstance(node, ast.Name):
            return numbers[self._column_name(node.id)]
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return np.array([self._finite(node.value)])  # type: ignore[arg-type]
        raise self._error("it contains something that is not allowed")

    def _finite(self, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise self._error("a number in it is too large")
        return number

    def _error(self, what: str) -> SchemaError:
        return SchemaError(
            f'formula = "{self.text}": {what}. Allowed are +, -, *, /, log(), sqrt(), parentheses, '
            "numbers and column names (`in backquotes` if a name has spaces)"
        )


def _depth(tree: ast.expr) -> int:
    """Count the levels of an expression, without recursion."""
    levels, nodes = 0, [tree]
    while nodes:
        levels += 1
        nodes = [
            child
            for node in nodes
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        ]
    return levels


def _called_function(node: ast.expr) -> Callable[[Reals], Reals] | None:
    """The function that a call with one argument names; None for other expressions."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return None
    if len(node.args) != 1 or node.keywords:
        return None
    return _FUNCTIONS.get(node.func.id)
