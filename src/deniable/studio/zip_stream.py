"""A folder as one zip, made while it is sent: no temporary file, and little memory."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from deniable.studio.root_folder import RootFolder

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
    """Yield the blocks of a zip with all files of a folder below the root.

    Links are not followed: a folder that has one is refused.

    Args:
        root: The root.
        folder: The folder, below the root. It is the only folder at the top of the zip.
    """
    names = list_files(root, folder)
    base = Path(folder).name
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


def list_files(root: RootFolder, folder: str) -> list[str]:
    """List the files of a folder below the root, by their path in it."""
    base = root.locate(folder)
    found: list[str] = []
    for parent, folders, files in os.walk(base):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        found += [
            Path(parent, each).relative_to(base).as_posix()
            for each in files
            if not each.startswith(".")
        ]
    return sorted(found)
