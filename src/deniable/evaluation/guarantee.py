"""What the records under evaluation come with: the manifest beside them, read and checked."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.errors import DeniableError
from deniable.release.records import file_hash
from deniable.release.verify import verify


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a manifest says of the records, and whether that was found to be so.

    Attributes:
        mode: What happened to the seeds.
        sentence: What is claimed.
        epsilon: Of the claim; None where nothing is claimed.
        delta: Of the claim.
        parameters: The options that shaped the release.
        not_covered: What the claim is silent about.
        failures: What verification objects to; empty where all is well.
        schema: The hash of the release's schema.
    """

    mode: str
    sentence: str
    epsilon: float | None
    delta: float
    parameters: dict[str, Any]
    not_covered: tuple[str, ...]
    failures: tuple[str, ...]
    schema: str = ""

    @property
    def holds(self) -> bool:
        """Whether privacy is claimed, and verification found nothing against it."""
        return self.epsilon is not None and not self.failures

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        return {
            "mode": self.mode,
            "sentence": self.sentence,
            "epsilon": "inf" if self.epsilon is None else self.epsilon,
            "delta": self.delta,
            "verified": not self.failures,
            "failures": list(self.failures),
        }


def read_claim(synthetic: object) -> Claim | None:
    """Return what the manifest beside a file of records says; None where there is none.

    A release has manifest.json in its folder, generated records have FILE.manifest.json.
    """
    if not isinstance(synthetic, str | Path):
        return None
    path = Path(synthetic)
    for manifest, whole in (
        (path.with_name(f"{path.name}.manifest.json"), path),
        (path.with_name("manifest.json"), path.parent),
    ):
        if manifest.is_file():
            return _read(manifest, records=path, whole=whole)
    return None


def _read(manifest: Path, *, records: Path, whole: Path) -> Claim:
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
        claimed = document["guarantee"]
        return Claim(
            mode=str(document["mode"]),
            sentence=str(claimed["sentence"]),
            epsilon=None if claimed["epsilon"] == "inf" else float(claimed["epsilon"]),
            delta=float(claimed["delta"]),
            parameters=dict(document["parameters"]),
            not_covered=tuple(map(str, document["not_covered"])),
            failures=_failures(document, records=records, whole=whole),
            schema=str(document["schema"]["sha256"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Claim(
            mode="unknown",
            sentence="The manifest beside the records cannot be read.",
            epsilon=None,
            delta=0.0,
            parameters={},
            not_covered=(),
            failures=(f"{manifest.name} is not a manifest of deniable",),
        )


def _failures(document: dict[str, Any], *, records: Path, whole: Path) -> tuple[str, ...]:
    """Return what speaks against a manifest: another file, or what ``verify`` finds."""
    listed = document["files"].get(records.name)
    if listed is None or not records.is_file() or listed != file_hash(records):
        return (f"the manifest is not about this {records.name}",)
    try:
        return tuple(f"{check.name}: {check.explanation}" for check in verify(whole).failed)
    except DeniableError as error:
        return (str(error),)
