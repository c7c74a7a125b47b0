"""State of the files that a check has read, to decide later whether its verdict still holds.

A check compares each file with its hash in the manifest. So the hash of the manifest stands for
those of all files; size and times show cheaply whether a file was written to since.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from deniable.errors import DeniableError
from deniable.release.atomic_files import file_hash
from deniable.release.untrusted_files import read_json
from deniable.studio.made_output import manifest_hash

# Files of a release that are looked at; one in more parts has no lasting verdict here.
_MAX_FILES = 100_000


def state_of_files(release: Path) -> dict[str, Any]:
    """The state of a release: the hash of its manifest; name, size and times of each file.

    Of a file of generated records, whose manifest is next to it, the same.
    """
    if release.is_file():
        return {
            "manifest": manifest_hash(_manifest(release)),
            "files": {release.name: _seen(release)},
        }
    found: dict[str, list[int]] = {}
    for parent, _, names in os.walk(release):
        for name in names:
            path = Path(parent, name)
            found[path.relative_to(release).as_posix()] = _seen(path)
        if len(found) > _MAX_FILES:
            return {}
    return {"manifest": manifest_hash(_manifest(release)), "files": found}


def _seen(path: Path) -> list[int]:
    found = path.lstat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _manifest(release: Path) -> Path:
    if release.is_file():
        return release.with_name(f"{release.name}.manifest.json")
    return release / "manifest.json"


def is_unchanged(release: Path, state: Mapping[str, Any]) -> bool:
    """Whether a release is as it was: a file with another time must have the manifest's hash."""
    with suppress(DeniableError, OSError, AttributeError, KeyError, TypeError):
        now = state_of_files(release)
        if not state.get("manifest") or now.get("manifest") != state["manifest"]:
            return False
        before, found = state["files"], now["files"]
        if before.keys() != found.keys():
            return False
        touched = [name for name in found if list(before[name]) != found[name]]
        hashes = read_json(_manifest(release))["files"] if touched else {}
        home = release.parent if release.is_file() else release
        return all(
            name == "manifest.json"
            or (
                before[name][0] == found[name][0]
                and not (home / name).is_symlink()
                and file_hash(home / name) == hashes[name]
            )
            for name in touched
        )
    return False
