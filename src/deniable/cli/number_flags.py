"""Flags with a number: parse what was typed, and explain what is no number."""

import math
import re
from collections.abc import Callable
from typing import Any

import typer

from deniable.errors import ConfigError

# What people put between groups of three digits: "3,000", "3.000", "3 000", "3'000", "3_000".
_GROUPED_DIGITS = re.compile(r"[+-]?\d{1,3}([,.'_\s]\d{3})+", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
# No option is longer: a key has at most 39 digits.
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def number_flag(flag: str, kind: type, *, least: int | None = None, **settings: Any) -> Any:
    """Declare a flag with a number, for an annotation of a command.

    Args:
        flag: The flag, such as ``--records``.
        kind: ``int`` or ``float``.
        least: Smallest number allowed; None: the function that takes the number checks it.
        settings: Further arguments of ``typer.Option``.
    """
    parse = whole_number(flag, least=least) if kind is int else decimal_number(flag)
    return typer.Option(flag, parser=parse, metavar=f"<{kind.__name__}>", **settings)


def whole_number(flag: str, *, least: int | None = None) -> Callable[[str], int]:
    """Make the parser of a flag with a whole number."""

    def parse(text: str) -> int:
        typed = text.strip()
        if not _WHOLE_NUMBER.fullmatch(typed):
            example = re.sub(r"[^\d]", "", typed) if _GROUPED_DIGITS.fullmatch(typed) else "1000"
            raise ConfigError(
                f"{flag} {text}: not a whole number; write digits only, such as {flag} {example}"
            )
        number = int(typed)
        if least is not None and number < least:
            raise ConfigError(f"{flag} {text}: must be at least {least}")
        return number

    return parse


def decimal_number(flag: str) -> Callable[[str], float]:
    """Make the parser of a flag with a number, which may be infinite."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isnan(number):
            return number
        typed = text.strip()
        example = typed.replace(",", ".") if _DECIMAL_COMMA.fullmatch(typed) else "0.5"
        raise ConfigError(
            f"{flag} {text}: not a number; write digits and a decimal point, such as "
            f"{flag} {example}"
        )

    return parse
