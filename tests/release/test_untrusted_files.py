"""Files of somebody else's making: sizes are checked before anything is loaded."""

import io
import json
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import ArtefactError
from deniable.release import untrusted_files
from deniable.release.atomic_files import encode_json, pack_npz
from deniable.release.untrusted_files import ArrayFile, parse_json, read_json, require_small_file

ARRAYS = {
    "counts_0": np.arange(6).reshape(2, 3),
    "probabilities_1": np.array([0.25, 0.75]),
    "prefixes_2": np.zeros((0, 3), dtype=np.uint16),
}


def written(path, content):
    path.write_bytes(content)
    return path


# JSON


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**127), 2**127) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_json_is_read_as_it_was_written(value):
    assert parse_json(json.dumps({"a": value}).encode()) == {"a": value}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 30 + b"]" * 30, "nested too deeply"),
        (b"[" + b"9" * 40 + b"]", "more than 39 digits"),
        (b"[-" + b"9" * 5_000 + b"]", "more than 39 digits"),
        (b"[1e999]", "too large"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "Infinity"),
        (b'{"a": 1, "a": 2}', "two entries of the same name"),
        (b"\xff{}", "not UTF-8"),
        (b"", "not JSON"),
        (b"{} {}", "not JSON"),
    ],
)
def test_json_that_deniable_never_writes_is_refused(tmp_path, raw, why):
    with pytest.raises(ValueError, match=why):
        parse_json(raw)
    with pytest.raises(ArtefactError, match=rf"m\.json is not readable: .*{why}"):
        read_json(written(tmp_path / "m.json", raw))


def test_a_large_file_is_not_read(tmp_path):
    path = tmp_path / "m.json"
    with path.open("wb") as file:
        file.truncate(2**24 + 1)  # a hole: it takes no space on the disk
    with pytest.raises(ArtefactError, match="has 16,777,217 bytes; at most 16,777,216 are read"):
        read_json(path)


def test_what_is_not_a_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "absent"):
        with pytest.raises(ArtefactError, match=name):
            read_json(tmp_path / name)
    with pytest.raises(ArtefactError, match="a folder"):
        require_small_file(tmp_path, max_bytes=10**9)


# Arrays


def test_arrays_are_read_as_they_were_packed(tmp_path):
    path = written(tmp_path / "tables.npz", pack_npz(ARRAYS))
    with ArrayFile(path) as arrays:
        for name, array in ARRAYS.items():
            back = arrays.take(name, array.dtype)
            assert (back.shape, back.dtype) == (array.shape, array.dtype)
            assert back.tolist() == array.tolist()
            assert back.flags.writeable
        with pytest.raises(ArtefactError, match=r"tables\.npz has no array counts_1"):
            arrays.take("counts_1", np.int64)
        with pytest.raises(ArtefactError, match="of another kind"):
            arrays.take("counts_0", np.float64)


def member(array=None, *, header=None, shape="(3,)", descr="'<i8'", data=b"\0" * 24):
    """The bytes of an .npy file, its header perhaps of one's own making."""
    if array is not None:
        packed = io.BytesIO()
        np.lib.format.write_array(packed, array)
        return packed.getvalue()
    if header is None:
        header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def archive_of(*members, compression=zipfile.ZIP_STORED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return packed.getvalue()


def take_counts(tmp_path, content):
    with ArrayFile(written(tmp_path / "tables.npz", content)) as arrays:
        return arrays.take("counts_0", np.int64)


def test_the_archives_of_these_tests_can_be_read(tmp_path):
    assert take_counts(tmp_path, archive_of(("counts_0.npy", member()))).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "more",
    [
        {"shape": "(1000000000000,)"},
        {"shape": "(1000000000, 1000000000)"},
        {"shape": "(2,)"},
        {"shape": "(4,)"},
        {"shape": "(-3,)"},
        {"shape": "(" + "9" * 30 + ",)"},
        {"shape": "(1,) + (3,)"},
        {"shape": "(3"},
        {"descr": "'|O'"},
        {"descr": "'|O8'"},
        {"descr": "'<i9'"},
        {"descr": "[('a', '<i8')]"},
        {"header": b"{'shape': (3,), 'descr': '<i8', 'fortran_order': False, }"},
        {"header": b"(" * 3_000},
        {"header": b"-" * 3_000 + b"1"},
        {"header": b"{" + b"'a': 1," * 1_000 + b"}"},
        {"data": b""},
    ],
)
def test_an_array_of_another_size_than_declared_is_refused_before_memory_is_taken(tmp_path, more):
    content = archive_of(("counts_0.npy", member(**more)))
    tracemalloc.start()
    with pytest.raises(ArtefactError, match=r"tables\.npz"):
        take_counts(tmp_path, content)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_not_inflated(tmp_path, compression):
    bomb = member(np.zeros(2**20, dtype=np.int64))
    content = archive_of(("counts_0.npy", bomb), compression=compression)
    assert len(content) < len(bomb) / 100
    tracemalloc.start()
    with pytest.raises(ArtefactError, match="compressed or encrypted"):
        take_counts(tmp_path, content)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/counts_0.npy",
        "../counts_0.npy",
        "a/counts_0.npy",
        "counts_0",
        "Counts_0.npy",
        "",
        "\n",
    ],
)
def test_a_member_with_an_odd_name_is_refused(tmp_path, name):
    content = archive_of(("counts_0.npy", member()), (name, member()))
    with pytest.raises(ArtefactError, match="not an array of an artefact"):
        take_counts(tmp_path, content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path):
    content = archive_of(("counts_0.npy", member()), ("counts_0.npy", member()))
    with pytest.raises(ArtefactError, match="the same array twice"):
        take_counts(tmp_path, content)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """A hundred names for one megabyte are a bomb of a hundred megabytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("counts_0.npy", member(np.zeros(2**14, dtype=np.int64)))
        for i in range(1, 3):
            other = zipfile.ZipInfo(f"counts_{i}.npy")
            first = archive.infolist()[0]
            other.header_offset, other.CRC = first.header_offset, first.CRC
            other.file_size = other.compress_size = first.file_size
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
    with pytest.raises(ArtefactError, match="declares more bytes than it has"):
        take_counts(tmp_path, packed.getvalue())


def test_too_many_arrays_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted_files, "_MAX_ARRAYS", 1)
    content = archive_of(("counts_0.npy", member()), ("counts_1.npy", member()))
    with pytest.raises(ArtefactError, match="too many"):
        take_counts(tmp_path, content)


def test_a_large_archive_is_not_opened(tmp_path):
    path = tmp_path / "tables.npz"
    with path.open("wb") as file:
        file.truncate(2**30 + 1)
    with pytest.raises(ArtefactError, match="at most 1,073,741,824 are read"):
        ArrayFile(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"PK\x05\x06" + b"\xff" * 18, b"\x80\x04.", b"\0" * 99]
)
def test_what_is_no_archive_is_refused(tmp_path, content):
    with pytest.raises(ArtefactError, match="not readable"):
        take_counts(tmp_path, content)


def test_our_own_json_is_far_from_the_limits():
    assert parse_json(encode_json({"a": [{"b": [{"c": 2**128 - 1}]}]}))
