"""Change the files of a release in one place at a time, correct every hash, and verify."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from deniable.release.atomic_files import encode_json, file_hash
from deniable.release.manifest import add_checksum
from deniable.verification import claims
from deniable.verification.claims import Check
from deniable.verification.verify import VerificationReport, verify

MANIFESTS = ("artefact/manifest.json", "manifest.json")


class _FailedCheckError(BaseException):
    """Ends a verification; not an ``Exception``, which would be a failed check of its own."""


def _require_passed(*, passed: bool, **others: Any) -> Check:
    """Make the result of a check, in place of ``Check``; a failed one ends the verification."""
    if not passed:
        raise _FailedCheckError
    return Check(passed=passed, **others)


@dataclass
class Release:
    """The original files of a release, and a way to change some of them."""

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

    def is_detected(self, changed: dict[str, bytes]) -> bool:
        """Write the changed files, correct every hash, and test whether verification fails.

        It ends at the first failed check: the rest of the report cannot make it pass.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(claims, "Check", _require_passed)
            try:
                return not self.report(changed).passed
            except _FailedCheckError:
                return True

    def report(
        self, changed: dict[str, bytes], *, manifest: dict[str, Any] | None = None, **options: Any
    ) -> VerificationReport:
        """Write the changed files and manifest, correct every hash, and verify."""
        if manifest is not None:
            changed = {**changed, "manifest.json": encode_json(manifest)}
        try:
            for name, content in changed.items():
                (self.folder / name).write_bytes(content)
            self._correct_hashes()
            return verify(self.folder, **options)
        finally:
            for name in {*changed, *MANIFESTS} & set(self.files):
                (self.folder / name).write_bytes(self.files[name])

    def _correct_hashes(self) -> None:
        for manifest, below in zip(MANIFESTS, ("artefact/", ""), strict=True):
            document = self._read(manifest)
            if self._is_changed(manifest, document):
                document = add_checksum(document)
                (self.folder / manifest).write_bytes(encode_json(document))
            files = document.get("files") if isinstance(document, dict) else None
            inside = [name for name in self.files if name.startswith(below) and name != manifest]
            moved = [name for name in inside if self._differs(name)]
            if not moved or not isinstance(files, dict):
                continue
            for name in moved:
                files[name.removeprefix(below)] = file_hash(self.folder / name)
                if name.endswith("schema.toml"):
                    document["schema"]["sha256"] = file_hash(self.folder / name)
            (self.folder / manifest).write_bytes(encode_json(add_checksum(document)))

    def _is_changed(self, manifest: str, document: Any) -> bool:
        """Whether a manifest has changed in more than its checksum."""
        if not (isinstance(document, dict) and "checksum" in document and self._differs(manifest)):
            return False
        return encode_json(add_checksum(document)) != self.files[manifest]

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
    """Change a number, text or boolean slightly, in one or two ways."""
    if isinstance(value, bool):
        return [("", not value)]
    if isinstance(value, int):
        return [(" + 1", value + 1), (" - 1", value - 1)]
    if isinstance(value, float):
        return [(" up", value * 1.0001), (" down", value * 0.93)]
    if isinstance(value, str):
        return [("", f"{value}x"), (" cut", value[:-1])]
    return [("", 0)]


def undetected(release: Release, name: str, *, step: int = 1) -> list[str]:
    """List the entries, of every ``step``-th, whose change goes undetected."""
    return [
        place
        for place, other in islice(changes(release.document(name)), 0, None, step)
        if not release.is_detected({name: encode_json(other)})
    ]
