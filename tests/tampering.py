"""Files of a release changed one place at a time, every hash put right: does verify notice?"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from deniable.release.manifest import sealed
from deniable.release.records import as_json, file_hash
from deniable.release.verify import verify


@dataclass
class Release:
    """The files of a release, as they were, and a way to change some of them."""

    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }

    def document(self, name: str) -> dict[str, Any]:
        return json.loads(self.files[name])

    def is_found(self, changed: dict[str, bytes]) -> bool:
        """Write the changed files, put every hash right, and return whether verify says no."""
        try:
            for name, content in changed.items():
                (self.folder / name).write_bytes(content)
            self._put_hashes_right()
            return not verify(self.folder).passed
        finally:
            for name, content in self.files.items():
                (self.folder / name).write_bytes(content)

    def _put_hashes_right(self) -> None:
        for manifest, below in (("artefact/manifest.json", "artefact/"), ("manifest.json", "")):
            document = self._read(manifest)
            if self._is_moved(manifest, document):
                document = sealed(document)
                (self.folder / manifest).write_bytes(as_json(document))
            files = document.get("files") if isinstance(document, dict) else None
            inside = [name for name in self.files if name.startswith(below) and name != manifest]
            moved = [name for name in inside if self._differs(name)]
            if not moved or not isinstance(files, dict):
                continue
            for name in moved:
                files[name.removeprefix(below)] = file_hash(self.folder / name)
                if name.endswith("schema.toml"):
                    document["schema"]["sha256"] = file_hash(self.folder / name)
            (self.folder / manifest).write_bytes(as_json(sealed(document)))

    def _is_moved(self, manifest: str, document: Any) -> bool:
        """Whether a manifest says something else; not where only its checksum does."""
        if not (isinstance(document, dict) and "checksum" in document and self._differs(manifest)):
            return False
        return as_json(sealed(document)) != self.files[manifest]

    def _read(self, manifest: str) -> Any:
        try:
            return json.loads((self.folder / manifest).read_bytes())
        except (ValueError, FileNotFoundError):
            return None

    def _differs(self, name: str) -> bool:
        return (self.folder / name).read_bytes() != self.files[name]


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every document that differs from ``value`` in one place, and the place."""
    if isinstance(value, dict):
        yield ".extra", {**value, "extra": 1}
        for name, inner in value.items():
            yield f".{name} removed", {n: v for n, v in value.items() if n != name}
            for place, other in changes(inner):
                yield f".{name}{place}", {**value, name: other}
    elif isinstance(value, list):
        yield " longer", [*value, value[-1] if value else "x"]
        for i, inner in enumerate(value):
            yield f"[{i}] removed", value[:i] + value[i + 1 :]
            for place, other in changes(inner):
                yield f"[{i}]{place}", [*value[:i], other, *value[i + 1 :]]
    else:
        yield from other_values(value)


def other_values(value: Any) -> list[tuple[str, Any]]:
    """Return a number, text or truth value changed a little, in one or two ways."""
    if isinstance(value, bool):
        return [("", not value)]
    if isinstance(value, int):
        return [(" + 1", value + 1), (" - 1", value - 1)]
    if isinstance(value, float):
        return [(" up", value * 1.0001), (" down", value * 0.93)]
    if isinstance(value, str):
        return [("", f"{value}x"), (" cut", value[:-1])]
    return [("", 0)]


def unfound(release: Release, name: str, *, step: int = 1) -> list[str]:
    """Return the places at which a change passed, of every ``step``-th that there is."""
    return [
        place
        for place, other in islice(changes(release.document(name)), 0, None, step)
        if not release.is_found({name: as_json(other)})
    ]
