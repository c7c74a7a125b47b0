"""Formula: an arithmetic expression over columns, translated to a polars expression.

Allowed are ``+``, ``-``, ``*``, ``/``, parentheses, numbers and column names. A column name with
other characters than letters, digits and underscores is written in backquotes. The text is parsed
against this list, never evaluated as Python.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from deniable.errors import SchemaError
from deniable.library_imports import pl

_MAX_FORMULA_LENGTH = 1_000
_BACKQUOTED = re.compile("`([^`]*)`")

_Operation = Callable[["pl.Expr", "pl.Expr"], "pl.Expr"]


def _divide(one: pl.Expr, two: pl.Expr) -> pl.Expr:
    """Divide; null if the divisor is zero."""
    return pl.when(two != 0).then(one / two)


_OPERATIONS: dict[type[ast.operator], _Operation] = {
    ast.Add: lambda one, two: one + two,
    ast.Sub: lambda one, two: one - two,
    ast.Mult: lambda one, two: one * two,
    ast.Div: _divide,
}


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
        self._translate(self._tree, lambda _: pl.lit(0.0))
        if not self.names:
            raise SchemaError(
                'a formula must name a column; for a fixed value, use type = "constant"'
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The distinct columns in the formula."""
        found = [
            self._column_name(node.id)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Name)
        ]
        return tuple(dict.fromkeys(found))

    @property
    def may_be_fractional(self) -> bool:
        """Whether the result may be fractional for whole numbers."""
        return any(
            isinstance(node, ast.Div)
            or (isinstance(node, ast.Constant) and isinstance(node.value, float))
            for node in ast.walk(self._tree)
        )

    def expression(self, number: Callable[[str], pl.Expr]) -> pl.Expr:
        """Translate the formula to polars; ``number`` maps a column name to its expression."""
        return self._translate(self._tree, number)

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

    def _translate(self, node: ast.expr, number: Callable[[str], pl.Expr]) -> pl.Expr:
        if isinstance(node, ast.BinOp) and (operation := _OPERATIONS.get(type(node.op))):
            return operation(
                self._translate(node.left, number), self._translate(node.right, number)
            )
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._translate(node.operand, number)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Name):
            return number(self._column_name(node.id))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return pl.lit(self._finite(node.value))  # type: ignore[arg-type]
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
            f'formula = "{self.text}": {what}. Allowed are +, -, *, /, parentheses, numbers and '
            "column names (`in backquotes` if a name has spaces)"
        )
