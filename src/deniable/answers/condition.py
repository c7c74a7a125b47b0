"""Condition on records: comparisons of columns with values, joined by ``and``.

    age >= 65 and income = "More than 50,000"
    "marital status" in ("Married", "Widowed") and visit < 2024-07-01 and weight is not missing

A comparison is ``=`` (or ``==``), ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in (…)`` or
``not in (…)``. Texts are quoted, with ``"`` or ``'``; a quote within a text is doubled. Names of
columns are quoted if they hold other characters than letters, digits, ``_``, ``-`` and ``.``, or
are one of the words ``and``, ``in``, ``not`` and ``is``. Numbers, dates and times are written as in
the schema, without quotes; dates and times may be quoted. A missing cell satisfies ``is missing``
only. The text is parsed by this grammar, never evaluated.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from math import ceil, floor
from typing import Literal, cast

import numpy as np

from deniable.answers.allowed_values import AllowedValues
from deniable.arrays import Mask, Reals
from deniable.errors import ConfigError
from deniable.schema.attribute import Attribute, summarize_values
from deniable.schema.constraint_axis import MAX_POSITION, MIN_POSITION
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Computed, Constant, Identifier

# Bounds the work of a hostile condition.
_MAX_CONDITION_LENGTH = 10_000
# Bounds the digits of a number: Python refuses to parse thousands of them.
_MAX_NUMBER_LENGTH = 100

_Order = Literal["<", "<=", ">", ">="]
_TokenKind = Literal["text", "word", "symbol", "end"]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
      | (?P<word>[^\s"'=!<>(),]+)
      | (?P<symbol><=|>=|!=|==?|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_KEYWORDS = ("and", "in", "not", "is")
_COMPARISONS = ("=", "==", "!=", "<", "<=", ">", ">=")
_WRITTEN = "= (or ==), !=, <, <=, >, >="


@dataclass(frozen=True)
class _Token:
    """A token of a condition: its kind, content, and position in the text, from 1."""

    kind: _TokenKind
    content: str
    at: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.content.lower() == word

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.content in symbols


@dataclass(frozen=True)
class RecordCondition:
    """A condition on records, as the set of allowed values of each column it names.

    Attributes:
        text: The condition as written.
        allowed: The allowed values, by column; never empty.
    """

    text: str
    allowed: Mapping[str, AllowedValues] = field(repr=False)

    @classmethod
    def parse(cls, text: str, schema: Schema) -> "RecordCondition":
        """Parse a condition on the columns of a schema.

        Raises:
            ConfigError: The text is not a condition, names an unknown column or value, or allows
                no value of some column. The message quotes the condition and the schema only.
        """
        if type(text) is not str or len(text) > _MAX_CONDITION_LENGTH:
            raise ConfigError(
                f"a condition must be a text of at most {_MAX_CONDITION_LENGTH:,} characters"
            )
        return cls(text, _Parser(text, schema).parse())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition names, each once."""
        return tuple(self.allowed)

    def allowed_codes(self, attribute: Attribute) -> Mask:
        """Mark the codes of an attribute that hold an allowed value; all where it is not named."""
        found = self.allowed.get(attribute.name)
        return np.ones(attribute.size, dtype=bool) if found is None else found.codes

    def shares(self, attribute: Attribute) -> Reals:
        """Compute the share of each code's values that are allowed; 1 where it is not named.

        See ``AllowedValues.shares``: between 0 and 1 where the condition cuts through a bin.
        """
        found = self.allowed.get(attribute.name)
        return np.ones(attribute.size) if found is None else found.shares


class _Parser:
    """Recursive descent over the tokens of one condition."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._columns = {column.name: column for column in schema.columns}
        self._tokens = list(self._split())
        self._next = 0

    def parse(self) -> dict[str, AllowedValues]:
        allowed: dict[str, AllowedValues] = {}
        while True:
            start = self._peek()
            attribute = self._column()
            found = self._comparison(attribute)
            if attribute.name in allowed:
                found = allowed[attribute.name].intersect(found)
            if found.is_empty:
                raise self._error(
                    start, f'no value of column "{attribute.name}" satisfies the condition'
                )
            allowed[attribute.name] = found
            token = self._take()
            if token.kind == "end":
                return allowed
            if token.is_word("or"):
                raise self._error(
                    token, "there is no or; use in (…), or draw twice and join the records"
                )
            if not token.is_word("and"):
                raise self._error(token, "expected and, or the end of the condition")

    def _split(self) -> Iterator[_Token]:
        at = 0
        while self._text[at:].strip():
            found = _TOKEN.match(self._text, at)
            if found is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise self._error_at(
                    at + 1, "a quote is not closed, or a character is not allowed here"
                )
            kind = cast("_TokenKind", found.lastgroup)
            yield _Token(kind, found[kind], found.start(kind) + 1)
            at = found.end()
        yield _Token("end", "", len(self._text) + 1)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def _column(self) -> Attribute:
        token = self._take()
        if token.kind not in ("word", "text"):
            raise self._error(token, "expected the name of a column")
        name = _unquote(token)
        column = self._columns.get(name)
        if isinstance(column, Attribute):
            return column
        if isinstance(column, Computed):
            raise self._error(token, f'column "{name}" is computed; name the columns it comes from')
        if isinstance(column, Constant | Identifier):
            kind = "constant" if isinstance(column, Constant) else "an identifier"
            raise self._error(token, f'column "{name}" is {kind}; a condition cannot select by it')
        near = difflib.get_close_matches(name, self._columns, n=1)
        known = summarize_values(list(self._columns))
        hint = f'did you mean "{near[0]}"?' if near else f"the columns are {known}"
        raise self._error(token, f'no column "{name}"; {hint}')

    def _comparison(self, attribute: Attribute) -> AllowedValues:
        token = self._take()
        if token.is_word("is"):
            return self._missingness(attribute)
        negated = token.is_word("not")
        if negated:
            token = self._take()
        if token.is_word("in"):
            found = self._list(attribute)
            return found.complement() if negated else found
        if negated or not token.is_symbol(*_COMPARISONS):
            raise self._error(token, f"expected {_WRITTEN}, in (…), not in (…) or is missing")
        if self._peek().is_symbol(*_COMPARISONS):
            raise self._error(self._peek(), f"a comparison is one of {_WRITTEN}")
        if token.is_symbol("=", "==", "!="):
            found = self._values(attribute, [self._value()])
            return found.complement() if token.content == "!=" else found
        return self._ordered(attribute, cast("_Order", token.content), self._value())

    def _missingness(self, attribute: Attribute) -> AllowedValues:
        token = self._take()
        negated = token.is_word("not")
        if negated:
            token = self._take()
        if not token.is_word("missing"):
            raise self._error(token, "expected missing, or not missing")
        if not attribute.missing and not negated:
            raise self._error(token, f'cells of column "{attribute.name}" are never missing')
        codes = np.full(attribute.size, negated)
        codes[attribute.bins :] = not negated
        return AllowedValues.of_codes(attribute, codes)

    def _list(self, attribute: Attribute) -> AllowedValues:
        token = self._take()
        if not token.is_symbol("("):
            raise self._error(token, 'expected a list in parentheses, as in ("a", "b")')
        values = [self._value()]
        while (token := self._take()).is_symbol(","):
            values.append(self._value())
        if not token.is_symbol(")"):
            raise self._error(token, "expected a comma or ) after a value of the list")
        return self._values(attribute, values)

    def _value(self) -> _Token:
        token = self._take()
        if token.kind not in ("text", "word") or token.content.lower() in _KEYWORDS:
            raise self._error(token, "expected a value: a number, a date, or a text in quotes")
        return token

    def _values(self, attribute: Attribute, tokens: Sequence[_Token]) -> AllowedValues:
        """Allow the listed values; a text that means missing allows missing cells."""
        missing = [t for t in tokens if attribute.missing and _unquote(t) in attribute.missing]
        present = [token for token in tokens if token not in missing]
        if attribute.is_numeric:
            positions = sorted({self._on_grid(attribute, token) for token in present})
            intervals = [(position, position) for position in positions]
            return AllowedValues.of_positions(attribute, intervals, missing=bool(missing))
        codes = np.zeros(attribute.size, dtype=bool)
        codes[[self._listed(attribute, token) for token in present]] = True
        if attribute.missing:
            codes[-1] = bool(missing)
        return AllowedValues.of_codes(attribute, codes)

    def _ordered(self, attribute: Attribute, order: _Order, token: _Token) -> AllowedValues:
        if attribute.grid is not None:
            at = self._position(attribute, token)
            interval = _half_line(order, at)
            return AllowedValues.of_positions(attribute, [interval], missing=False)
        if attribute.is_whole and attribute.kind != "ordered":
            values = np.array(attribute.values, dtype=np.int64)
            low, high = _half_line(order, self._number(attribute, token))
        elif attribute.kind == "ordered":
            values = np.arange(attribute.bins)
            low, high = _half_line(order, Fraction(self._listed(attribute, token)))
        else:
            raise self._error(
                token, f'the values of column "{attribute.name}" have no order; use in (…)'
            )
        codes = np.zeros(attribute.size, dtype=bool)
        codes[: attribute.bins] = (low <= values) & (values <= high)
        return AllowedValues.of_codes(attribute, codes)

    def _listed(self, attribute: Attribute, token: _Token) -> int:
        """Look up the code of a listed value."""
        content = _unquote(token)
        is_bare = token.kind == "word" or content not in attribute.values
        if attribute.kind == "boolean" and is_bare and content.lower() in ("false", "true"):
            return int(content.lower() == "true")
        texts = [str(value) for value in attribute.values]
        if content in texts and (token.kind == "text" or _is_number(content)):
            return texts.index(content)
        if content in texts:
            raise self._error(token, "put this text in quotes")
        near = difflib.get_close_matches(content, texts, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"they are {summarize_values(texts)}"
        raise self._error(token, f'this is not a value of column "{attribute.name}"; {hint}')

    def _on_grid(self, attribute: Attribute, token: _Token) -> int:
        """Parse a value of a numeric kind that has to be one of its values."""
        at = self._position(attribute, token)
        if at.denominator > 1 or int(at) not in attribute.values:
            raise self._error(
                token, f'this is not a value of column "{attribute.name}"; correct it'
            )
        return int(at)

    def _position(self, attribute: Attribute, token: _Token) -> Fraction:
        """Parse a value of a numeric kind: its position, fractional between grid points."""
        grid = attribute.grid
        if grid is None or grid.kind in ("integer", "real"):
            return self._number(attribute, token) / Fraction(grid.step if grid is not None else 1)
        try:
            moment = datetime.fromisoformat(_unquote(token))
            exact = date.fromisoformat(_unquote(token)) if len(_unquote(token)) == 10 else moment
            return grid.position_of(exact)
        except (ValueError, OverflowError):
            what = "write dates as 2024-12-31 and times as 2024-12-31T23:59:59"
            raise self._error(token, what) from None

    def _number(self, attribute: Attribute, token: _Token) -> Fraction:
        if token.kind != "word" or not _is_number(token.content):
            raise self._error(
                token, f'column "{attribute.name}" has numbers; write one without quotes'
            )
        if len(token.content) > _MAX_NUMBER_LENGTH:
            raise self._error(token, f"a number has at most {_MAX_NUMBER_LENGTH} characters")
        return Fraction(token.content)

    def _error(self, token: _Token, what: str) -> ConfigError:
        return self._error_at(token.at, what)

    def _error_at(self, at: int, what: str) -> ConfigError:
        return ConfigError(f"condition, character {at}: {what}. The condition is: {self._text}")


def _unquote(token: _Token) -> str:
    if token.kind != "text":
        return token.content
    quote = token.content[0]
    return token.content[1:-1].replace(2 * quote, quote)


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _half_line(order: _Order, at: Fraction) -> tuple[int, int]:
    """Return the first and the last integer that compare so with a number."""
    at = min(max(at, Fraction(MIN_POSITION + 1)), Fraction(MAX_POSITION - 1))
    if order == "<":
        return MIN_POSITION, ceil(at) - 1
    if order == "<=":
        return MIN_POSITION, floor(at)
    return (floor(at) + 1 if order == ">" else ceil(at)), MAX_POSITION
