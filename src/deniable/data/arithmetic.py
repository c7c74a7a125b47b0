"""Formula: a column as an arithmetic expression of others. Parsed against a list, never evaluated.

``+``, ``-``, ``*``, ``/``, parentheses, numbers and column names; a name that is not made of
letters, digits and underscores stands in backquotes.
"""

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from deniable.errors import SchemaError

_LONGEST = 1_000
_QUOTED = re.compile("`([^`]*)`")

_Operation = Callable[[pl.Expr, pl.Expr], pl.Expr]


def _ratio(one: pl.Expr, two: pl.Expr) -> pl.Expr:
    """Return the quotient; null where the divisor is zero."""
    return pl.when(two != 0).then(one / two)


_OPERATIONS: dict[type[ast.operator], _Operation] = {
    ast.Add: lambda one, two: one + two,
    ast.Sub: lambda one, two: one - two,
    ast.Mult: lambda one, two: one * two,
    ast.Div: _ratio,
}


@dataclass(frozen=True)
class Formula:
    """An expression over columns of numbers.

    Raises:
        SchemaError: The text is no such expression.
    """

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str or not 0 < len(self.text) <= _LONGEST:
            raise SchemaError(f"a formula is a text of at most {_LONGEST:,} characters")
        self._walk(self._tree, lambda _: pl.lit(0.0))
        if not self.names:
            raise SchemaError('a formula names a column; for a fixed value, use type = "constant"')

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that it names, each once."""
        found = [self._name(node.id) for node in ast.walk(self._tree) if isinstance(node, ast.Name)]
        return tuple(dict.fromkeys(found))

    @property
    def divides(self) -> bool:
        """Whether whole numbers may give a fraction."""
        return any(
            isinstance(node, ast.Div)
            or (isinstance(node, ast.Constant) and isinstance(node.value, float))
            for node in ast.walk(self._tree)
        )

    def expression(self, number: Callable[[str], pl.Expr]) -> pl.Expr:
        """Return the formula over columns; ``number`` gives the numbers of a named one."""
        return self._walk(self._tree, number)

    @cached_property
    def _quoted(self) -> dict[str, str]:
        """What stands in for each name in backquotes."""
        names = dict.fromkeys(_QUOTED.findall(self.text))
        unused = "column_"
        while unused in self.text:
            unused += "_"
        return {f"{unused}{i}": name for i, name in enumerate(names)}

    @cached_property
    def _tree(self) -> ast.expr:
        stand_in = {name: short for short, name in self._quoted.items()}
        plain = _QUOTED.sub(lambda found: f" {stand_in[found[1]]} ", self.text)
        try:
            return ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("it cannot be read") from None

    def _name(self, short: str) -> str:
        return self._quoted.get(short, short)

    def _walk(self, node: ast.expr, number: Callable[[str], pl.Expr]) -> pl.Expr:
        if isinstance(node, ast.BinOp) and (operation := _OPERATIONS.get(type(node.op))):
            return operation(self._walk(node.left, number), self._walk(node.right, number))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._walk(node.operand, number)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Name):
            return number(self._name(node.id))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return pl.lit(self._finite(node.value))  # type: ignore[arg-type]
        raise self._error("it holds something else")

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
            f'formula = "{self.text}": {what}. It may have +, -, *, /, parentheses, numbers and '
            "names of columns (`in backquotes` if a name has blanks)"
        )
