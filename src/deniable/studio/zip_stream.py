"""A release as one zip, made while it is sent: no temporary file, and little memory."""

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from deniable.errors import ArtefactError
from deniable.release.manifest import FORMAT
from deniable.release.untrusted_files import read_json
from deniable.studio.root_folder import PathError, RootFolder

_BLOCK = 2**18


class _Sent(io.RawIOBase):
    """A file that keeps what was written to it until it is taken."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def zip_blocks(root: RootFolder, folder: str) -> Iterator[bytes]:
    """Make a zip of a release, in blocks: its manifest, and the files that this lists.

    Nothing else in the folder is sent. All files are looked at before the first block is made, so a
    release with a missing file, a link or a listing that leaves it is refused as a whole.

    Args:
        root: The root.
        folder: The folder, below the root. It is the only folder at the top of the zip.

    Raises:
        ArtefactError: The manifest is none, or lists what cannot be in a release.
        PathError: A path is internal, a link, or no regular file.
        FileNotFoundError: A file that is listed is not there.
    """
    require_public(folder)
    names = list_files(read_json(root.locate(f"{folder}/manifest.json")))
    for name in names:
        with root.open(f"{folder}/{name}"):
            pass
    return _blocks(root, folder, names, base=PurePosixPath(folder).name)


def zip_records(root: RootFolder, path: str) -> Iterator[bytes]:
    """Make a zip of a file of generated records and its manifest, in blocks.

    Raises:
        ArtefactError: Its manifest is none, or lists another file.
        PathError: A path is internal, a link, or no regular file.
        FileNotFoundError: One of the two is not there.
    """
    require_public(path)
    place = PurePosixPath(path)
    manifest = f"{place.name}.manifest.json"
    parent = place.parent.as_posix()
    listed = list_files(read_json(root.locate(f"{parent}/{manifest}")))
    if listed != sorted(("manifest.json", place.name)):
        raise ArtefactError("the manifest next to this file is about another one")
    names = (place.name, manifest)
    for name in names:
        with root.open(f"{parent}/{name}"):
            pass
    return _blocks(root, parent, names, base=place.name.split(".")[0])


def _blocks(root: RootFolder, folder: str, names: Sequence[str], *, base: str) -> Iterator[bytes]:
    sent = _Sent()
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with root.open(f"{folder}/{name}") as file:
                entry = zipfile.ZipInfo(f"{base}/{name}")
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                large = os.fstat(file).st_size >= 2**31
                with archive.open(entry, "w", force_zip64=large) as member:
                    while block := os.read(file, _BLOCK):
                        member.write(block)
                        if taken := sent.take():
                            yield taken
    yield sent.take()


def list_files(manifest: Any) -> list[str]:
    """List the files of a release, by their path in it: the manifest, and what it lists.

    Raises:
        ArtefactError: It is no manifest of a release.
    """
    listed = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(listed, dict) or manifest.get("format") != FORMAT:
        raise ArtefactError("this folder has no manifest of a release")
    for name in listed:
        parts = name.split("/")
        if any(not each or each.startswith(".") or is_internal(each) for each in parts):
            raise ArtefactError("the manifest lists a file that cannot be in a release")
    return sorted({"manifest.json", *listed})


def require_public(path: str) -> None:
    """Refuse a path that goes through an internal folder.

    Raises:
        PathError: It does.
    """
    if any(is_internal(name) for name in PurePosixPath(path).parts):
        raise PathError("an internal folder stays inside; it cannot be downloaded")


def is_internal(name: str) -> bool:
    """Whether a folder of this name is for what stays inside."""
    return name.casefold().endswith(".internal")
