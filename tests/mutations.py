"""Mutations of valid inputs: of bytes, of JSON documents and of packed arrays."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Draws = np.random.Generator
Mutation = Callable[[Draws, bytes], bytes]

# Numbers at and beyond the ends of what programs hold.
NUMBERS = (
    *(b"0", b"-1", b"1", b"-0.0", b"0.5", b"1e400", b"-1e400", b"nan", b"inf", b"1e-400"),
    *(b"9223372036854775807", b"-9223372036854775809", b"18446744073709551616", b"4294967296"),
    *(b"9" * 30, b"9" * 5_000, b"0x10", b"1_000", b"2147483647", b"65535", b"65536"),
)
DATES = (b"9999-12-31", b"10000-01-01", b"0000-00-00", b"0001-01-01", b"2024-02-30")
# Bytes that mean something to a parser or to a terminal.
TOKENS = (
    *(
        b"\x00",
        b"\n",
        b"\r",
        b"\r\n",
        b",",
        b";",
        b'"',
        b'""',
        b"'",
        b"\\",
        b"\xff",
        b"\xef\xbb\xbf",
    ),
    *(b"\x1b[31m", b"[/red]", b"[bold]", b"\xe2\x80\xae", b"\xed\xa0\x80", b"{}", b"%s", b"#"),
    *(b"=", b"[[attribute]]\n", b"[[constraint]]\n", b"format = 1\n", b"true", b"null", b"[]"),
    *(b" " * 70_000, b"a" * 70_000),
)


def _place(draws: Draws, data: bytes) -> int:
    return int(draws.integers(0, len(data) + 1))


def _slice(draws: Draws, data: bytes) -> tuple[int, int]:
    """Choose a slice, short more often than long."""
    start = _place(draws, data)
    return start, min(len(data), start + int(len(data) ** draws.random()))


def flip(draws: Draws, data: bytes) -> bytes:
    """Change a few bits."""
    changed = bytearray(data or b"\x00")
    for at in draws.integers(0, len(changed), int(draws.integers(1, 6))):
        changed[at] ^= 1 << int(draws.integers(0, 8))
    return bytes(changed)


def cut_end(draws: Draws, data: bytes) -> bytes:
    """Keep a beginning."""
    return data[: _place(draws, data)]


def cut_out(draws: Draws, data: bytes) -> bytes:
    """Remove a slice."""
    start, end = _slice(draws, data)
    return data[:start] + data[end:]


def insert(draws: Draws, data: bytes) -> bytes:
    """Insert a token, or random bytes."""
    at = _place(draws, data)
    chosen = (*TOKENS, draws.bytes(int(draws.integers(1, 20))))
    return data[:at] + chosen[draws.integers(len(chosen))] + data[at:]


def duplicate(draws: Draws, data: bytes) -> bytes:
    """Repeat a slice."""
    start, end = _slice(draws, data)
    return data[:end] + data[start:end] * int(draws.integers(1, 4)) + data[end:]


def swap_lines(draws: Draws, data: bytes) -> bytes:
    """Exchange two lines."""
    lines = data.split(b"\n")
    i, j = draws.integers(0, len(lines), 2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def extreme_number(draws: Draws, data: bytes) -> bytes:
    """Replace a number or a date."""
    found = list(re.finditer(rb"\d{4}-\d\d-\d\d|-?\d+(?:\.\d+)?", data))
    if not found:
        return insert(draws, data)
    match = found[draws.integers(len(found))]
    choices = DATES if b"-" in match[0][1:] else NUMBERS
    return data[: match.start()] + choices[draws.integers(len(choices))] + data[match.end() :]


def nest(draws: Draws, data: bytes) -> bytes:
    """Insert many opening brackets, or parts of a dotted name."""
    at = _place(draws, data)
    opening = (b"[" * 100_000, b"{" * 2_000, b'{"a":' * 100_000, b"(" * 5_000, b"a." * 1_000)
    return data[:at] + opening[draws.integers(len(opening))] + data[at:]


def splice(draws: Draws, data: bytes, others: Sequence[bytes]) -> bytes:
    """Insert a slice of another valid input."""
    other = others[int(draws.integers(len(others)))]
    start, end = _slice(draws, other)
    at = _place(draws, data)
    return data[:at] + other[start:end] + data[at:]


ALL: tuple[Mutation, ...] = (
    *(flip, cut_end, cut_out, insert, insert, duplicate, swap_lines),
    *(extreme_number, extreme_number, nest),
)


def mutate(draws: Draws, data: bytes, others: Sequence[bytes]) -> bytes:
    """Apply one mutation, or more: the first of several often ends the reading."""
    for _ in range(int(draws.geometric(0.7))):
        which = int(draws.integers(len(ALL) + 1))
        data = splice(draws, data, others) if which == len(ALL) else ALL[which](draws, data)
    return data


VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, 1e-320),
    *("", "x", "inf", "nan", "../../etc", "\x1b[2J", "[/b]", "é\u202e", "9" * 50),
    *([], {}, [[]], [1, "a"], {"a": 1}, [None] * 5),
)


def mutate_json(draws: Draws, document: Any) -> Any:
    """Change one place of a document, found by a random walk down."""
    if isinstance(document, dict) and document and draws.random() < 0.85:
        return _mutate_object(draws, document)
    if isinstance(document, list) and document and draws.random() < 0.8:
        return _mutate_list(draws, document)
    return VALUES[draws.integers(len(VALUES))]


def _mutate_object(draws: Draws, document: dict[str, Any]) -> dict[str, Any]:
    name = sorted(document)[draws.integers(len(document))]
    action = draws.random()
    if action < 0.1:
        return {key: value for key, value in document.items() if key != name}
    if action < 0.15:
        return {**document, f"{name} ": document[name]}
    return {**document, name: mutate_json(draws, document[name])}


def _mutate_list(draws: Draws, document: list[Any]) -> list[Any]:
    at = int(draws.integers(len(document)))
    action = draws.random()
    if action < 0.15:
        return document[:at] + document[at + 1 :]
    if action < 0.3:
        return [*document, document[at]]
    return [*document[:at], mutate_json(draws, document[at]), *document[at + 1 :]]


def encode(document: Any) -> bytes:
    """Encode a mutated document; infinity and NaN are allowed, as a forger may write them."""
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")


def mutate_arrays(draws: Draws, packed: bytes) -> bytes:
    """Change one array of an .npz file: its numbers, type, shape, header, name or presence."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[draws.integers(len(members))]
    array = np.load(io.BytesIO(members[name]))
    action = int(draws.integers(7))
    if action == 0:
        del members[name]
    elif action == 1:
        members[name] = flip(draws, members[name])
    elif action == 2:
        members[name] = cut_end(draws, members[name])
    elif action == 3:
        # A declared shape that the data does not have.
        shape = str(array.shape).encode()
        huge = (b"(9999999999999,)", b"(0,)", b"(-1,)", b"(1, 1, 1, 1)")[draws.integers(4)]
        members[name] = members[name].replace(shape.ljust(len(huge)), huge.ljust(len(shape)))
    else:
        members[name] = _saved(_other_array(draws, array))
    return zipped(members, compressed=bool(draws.random() < 0.2))


def _other_array(draws: Draws, array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    action = int(draws.integers(5))
    if action == 0:
        return changed.astype((np.float32, np.int8, np.complex128, "<U3")[draws.integers(4)])
    if action == 1:
        return np.concatenate([changed, changed]) if changed.ndim else changed
    if action == 2:
        return changed[:0] if changed.ndim else changed
    if not changed.size:
        return np.ones(3, dtype=changed.dtype)
    at = int(draws.integers(changed.size))
    if changed.dtype.kind == "f":
        changed.flat[at] = (np.nan, np.inf, -1.0, 1e300, 0.0)[draws.integers(5)]
    else:
        limits = np.iinfo(changed.dtype)
        changed.flat[at] = (limits.max, limits.min, 0, 1)[draws.integers(4)]
    return changed


def _saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def zipped(members: dict[str, bytes], *, compressed: bool) -> bytes:
    """Pack files as a zip archive."""
    packed = io.BytesIO()
    how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(packed, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=how)
    return packed.getvalue()
