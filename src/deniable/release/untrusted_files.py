"""Read JSON and arrays that anyone may have written: sizes are checked before anything is loaded.

A few kilobytes can declare arrays of terabytes, inflate to gigabytes, or nest so deeply that a
parser overflows its stack. Memory here is bounded by the size of the file, which is bounded too.
"""

import json
import math
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import ArtefactError
from deniable.files import require_regular_file

# Largest files, in bytes. A JSON text takes up to 25 times its size once it is parsed.
MAX_TEXT_BYTES = 2**24
MAX_ARRAYS_BYTES = 2**30
# Deepest nesting of JSON. Our own documents have 6 levels.
_MAX_DEPTH = 20
# Most digits of an integer: a key below 2^128 has 39.
_MAX_DIGITS = 39
# Most arrays in one file.
_MAX_ARRAYS = 2**20

# Names, headers and types of the arrays that ``pack_npz`` writes. No other header is parsed.
_MEMBER_NAME = re.compile(r"[a-z]+(_[0-9]{1,6}){0,2}\.npy")
_MAGIC = b"\x93NUMPY\x01\x00"
_MAX_HEADER = 2**12
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18}(?:, [0-9]{1,18})*)?),?\), \} *\n"
)


def require_small_file(path: Path, *, max_bytes: int) -> None:
    """Refuse what is not a regular file, or is too large.

    Raises:
        ArtefactError: The message has the size and the limit.
    """
    require_regular_file(path, ArtefactError, absent="the file is missing")
    size = path.stat().st_size
    if size > max_bytes:
        raise ArtefactError(
            f"{path.name} has {size:,} bytes; at most {max_bytes:,} are read. deniable writes no "
            "such file"
        )


def read_json(path: Path) -> Any:
    """Read a JSON file: at most 16 MiB, no deep nesting, no long integer, no repeated name.

    Raises:
        ArtefactError: The file is not such a file; the message names it.
    """
    require_small_file(path, max_bytes=MAX_TEXT_BYTES)
    try:
        return parse_json(path.read_bytes())
    except OSError as fault:
        raise ArtefactError(f"{path.name} cannot be read ({fault.strerror})") from None
    except ValueError as fault:
        raise ArtefactError(f"{path.name} is not readable: {fault}") from None


def parse_json(raw: bytes) -> Any:
    """Parse JSON that anyone may have written.

    Raises:
        ValueError: It is not strict JSON, is nested too deeply, has an integer of too many digits,
            or has an object with two entries of the same name.
    """
    try:
        value = json.loads(
            raw.decode(),
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_names,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as fault:
        raise ValueError(f"it is not JSON (line {fault.lineno:,})") from None
    _require_shallow(value)
    return value


def _parse_int(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(f"an integer has more than {_MAX_DIGITS} digits")
    return int(digits)


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("an object has two entries of the same name")
    return values


def _require_shallow(value: Any) -> None:
    """Refuse nesting that a later, recursive reader may not survive."""
    level: Iterable[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return
    raise ValueError("it is nested too deeply")


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class ArrayFile:
    """An .npz file that ``pack_npz`` wrote, or that claims so. Arrays are read one by one.

    Members must be stored without compression, so no array is larger than the file.

    Raises:
        ArtefactError: The archive is damaged, compressed or encrypted, has odd, repeated or
            overlapping members, or an array whose declared shape is not that of its bytes.
    """

    def __init__(self, path: Path) -> None:
        require_small_file(path, max_bytes=MAX_ARRAYS_BYTES)
        self._name = path.name
        self._file: IO[bytes] = path.open("rb")
        try:
            self._archive = zipfile.ZipFile(self._file)
            self._members = self._checked_members(path.stat().st_size)
        except BaseException as fault:
            self._file.close()
            if isinstance(fault, ArtefactError) or not isinstance(fault, Exception):
                raise
            # zipfile raises many kinds of exceptions for a crafted archive.
            raise ArtefactError(f"{self._name} is not readable") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._archive.close()
        self._file.close()

    def take(self, name: str, dtype: Any) -> NDArray[Any]:
        """Read an array of this type."""
        member = self._members.get(f"{name}.npy")
        if member is None:
            raise ArtefactError(f"{self._name} has no array {name}")
        with self._archive.open(member) as content:
            kind, shape = self._read_header(content)
            if kind != np.dtype(dtype):
                raise ArtefactError(f"{self._name} holds arrays of another kind")
            size = kind.itemsize * math.prod(shape)
            raw = bytearray(content.read(min(size, member.file_size)))
            if len(raw) != size or content.read(1):
                raise ArtefactError(f"array {name} in {self._name} has another size than declared")
        return np.frombuffer(raw, dtype=kind).reshape(shape)

    def _checked_members(self, size: int) -> dict[str, zipfile.ZipInfo]:
        members = self._archive.infolist()
        names = [member.filename for member in members]
        if len(members) > _MAX_ARRAYS or len(set(names)) != len(names):
            raise ArtefactError(f"{self._name} holds the same array twice, or too many")
        if not all(map(_MEMBER_NAME.fullmatch, names)):
            raise ArtefactError(f"{self._name} holds something that is not an array of an artefact")
        for member in members:
            plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
            if not plain or member.file_size != member.compress_size:
                raise ArtefactError(f"{self._name} is compressed or encrypted")
        if sum(member.file_size for member in members) > size:
            raise ArtefactError(f"{self._name} declares more bytes than it has")
        return dict(zip(names, members, strict=True))

    def _read_header(self, content: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Read type and shape. The pattern leaves nothing to evaluate, and no pickled objects."""
        start = content.read(len(_MAGIC) + 2)
        length = int.from_bytes(start[len(_MAGIC) :], "little")
        found = None
        if start.startswith(_MAGIC) and length <= _MAX_HEADER:
            found = _HEADER.fullmatch(content.read(length))
        if found is None:
            raise ArtefactError(f"{self._name} holds an array that deniable did not write")
        kind, shape = found[1].decode(), found[2].decode()
        try:
            dtype = np.dtype(kind)
        except TypeError:
            raise ArtefactError(f"{self._name} holds arrays of an unknown kind") from None
        return dtype, tuple(int(each) for each in shape.split(", ") if each)
