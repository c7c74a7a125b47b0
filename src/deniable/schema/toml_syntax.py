"""TOML syntax: parse a text that anyone may have written, and refuse what no document needs."""

import re
import tomllib
from typing import Any

# Most parts of a dotted key, such as a.b.c. The parser's time is quadratic in their number, which
# would be minutes for a key of 100 kilobytes. Our own documents have keys of two parts.
MAX_KEY_PARTS = 100

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
# A key with too many parts, or a string or comment, in which dots mean nothing. A bare part is not
# entered in its middle: the search is linear in the length of the text.
_LONG_KEY = re.compile(
    r'"""(?:[^\\]|\\.)*?"""'
    r"|'''.*?'''"
    rf"|(?P<key>(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}})"
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|#[^\n]*+""",
    re.DOTALL,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        ValueError: The text is no TOML, or uses it to excess. The message says what is wrong, and
            where, in the middle of a sentence: it has no capital and no full stop.
    """
    for found in _LONG_KEY.finditer(text):
        if found["key"] is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts (at line {line})")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    except (RecursionError, ValueError):
        raise ValueError(
            "lists are nested too deeply, or a number has too many digits; no document needs that"
        ) from None
