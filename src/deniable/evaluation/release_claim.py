"""Privacy claim of the evaluated records: read from their manifest and verified."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deniable.errors import ArtefactError, DeniableError
from deniable.release.atomic_files import file_hash
from deniable.release.release import Release
from deniable.release.untrusted_files import read_json
from deniable.verification.artefact_checks import MANIFEST_FILE
from deniable.verification.record_checks import find_tables
from deniable.verification.verify import verify


@dataclass(frozen=True, kw_only=True)
class ReleaseClaim:
    """The guarantee that a manifest claims, and the result of verifying it.

    Attributes:
        mode: The mode of the release, such as "one-shot" or "seedless".
        sentence: The claimed guarantee in words.
        epsilon: The claimed ε; None if no privacy is claimed.
        delta: The claimed δ.
        parameters: The options of the release.
        not_covered: What the guarantee does not cover.
        failures: Failed checks of the verification; empty if all passed.
        is_written: Whether the release is in files, and was verified; otherwise it is in memory.
    """

    mode: str
    sentence: str
    epsilon: float | None
    delta: float
    parameters: dict[str, Any]
    not_covered: tuple[str, ...]
    failures: tuple[str, ...]
    is_written: bool = True

    @classmethod
    def of_release(cls, release: Release) -> Self:
        """Take the claim of a release in memory, which has no files to verify."""
        document = release.certificate.document(release.schema, {})
        return cls(**_claimed(document), failures=(), is_written=False)

    @property
    def holds(self) -> bool:
        """Whether a privacy guarantee is claimed and every check passed."""
        return not self.doubt

    @property
    def doubt(self) -> str:
        """Why the claim is not to be relied on; "" if it holds."""
        if self.failures:
            return self.failures[0].rstrip(".")
        if self.epsilon is None:
            return "they claim no privacy"
        return "" if self.is_written else "write the release first, so that it can be verified"

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "mode": self.mode,
            "sentence": self.sentence,
            "epsilon": "inf" if self.epsilon is None else self.epsilon,
            "delta": self.delta,
            "verified": self.is_written and not self.failures,
            "failures": list(self.failures),
        }


def read_claim(synthetic: object) -> ReleaseClaim | None:
    """Read and verify the manifest of records, or take it from a release; None if there is none.

    A release has manifest.json in its folder; generated records have FILE.manifest.json. The folder
    of a release stands for its table, or for all of its parts.
    """
    if isinstance(synthetic, Release):
        return ReleaseClaim.of_release(synthetic)
    if not isinstance(synthetic, str | Path):
        return None
    path = Path(synthetic)
    if files := find_released(path):
        return _read_manifest(path / MANIFEST_FILE, records=files, verified_path=path)
    for manifest, verified_path in (
        (path.with_name(f"{path.name}.manifest.json"), path),
        (path.with_name(MANIFEST_FILE), path.parent),
    ):
        if manifest.is_file():
            return _read_manifest(manifest, records=(path,), verified_path=verified_path)
    return None


def find_released(path: Path) -> tuple[Path, ...]:
    """Find the table of a release, or its parts by number; none if this is not its folder."""
    return find_tables(path) if (path / MANIFEST_FILE).is_file() else ()


def _read_manifest(manifest: Path, *, records: Sequence[Path], verified_path: Path) -> ReleaseClaim:
    try:
        document = read_json(manifest)
        return ReleaseClaim(
            **_claimed(document),
            failures=_find_failures(document, records=records, verified_path=verified_path),
        )
    except (ArtefactError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return ReleaseClaim(
            mode="unknown",
            sentence="The manifest next to the records cannot be read.",
            epsilon=None,
            delta=0.0,
            parameters={},
            not_covered=(),
            failures=(f"{manifest.name} is not a manifest written by deniable",),
        )


def _claimed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a manifest claims."""
    claimed = document["guarantee"]
    return {
        "mode": str(document["mode"]),
        "sentence": str(claimed["sentence"]),
        "epsilon": None if claimed["epsilon"] == "inf" else float(claimed["epsilon"]),
        "delta": float(claimed["delta"]),
        "parameters": dict(document["parameters"]),
        "not_covered": tuple(map(str, document["not_covered"])),
    }


def _find_failures(
    document: dict[str, Any], *, records: Sequence[Path], verified_path: Path
) -> tuple[str, ...]:
    """List the reasons not to trust a manifest: another file's hash, or failed checks."""
    for file in records:
        listed = document["files"].get(file.name)
        if listed is None or not file.is_file() or listed != file_hash(file):
            return (f"the manifest describes another file than this {file.name}",)
    try:
        report = verify(verified_path)
        doubted = (*report.failed, *report.inexact)
        return tuple(f"{check.name}: {check.explanation}" for check in doubted)
    except DeniableError as error:
        return (str(error),)
