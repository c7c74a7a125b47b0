"""A release as its page shows it: certificate, first records, what checks found."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.audit.audit_report import AUDIT_DOCUMENT, AUDIT_FORMAT, AUDIT_PAGE
from deniable.errors import ArtefactError, DataError, DeniableError
from deniable.release.manifest import FORMAT
from deniable.release.untrusted_files import read_json
from deniable.studio.checked_files import is_unchanged
from deniable.studio.plan_consequences import certificate_danger
from deniable.studio.run_screen import failure_message
from deniable.studio.run_store import RunRecord, StepStatus
from deniable.studio.table_facts import TableHead, table_facts
from deniable.studio.workspace import Workspace

# Modes whose records are covered by ε; in mode "tested", ε covers the model alone.
_COVERED = ("one-shot", "seedless", "randomized")
_MODEL = "artefact.json"
_RECORD_FILES = ("synthetic.csv", "synthetic.parquet")


@dataclass(frozen=True, kw_only=True)
class ReleaseView:
    """What can be shown of a release.

    Attributes:
        path: Its folder, below the root.
        manifest: Its manifest.
        records_file: The name of its records.
        records: Its first records; None if they cannot be read.
        metrics: The numbers of its internal report; empty if there is none.
        verdict: The result of ``deniable verify``; empty if it has not run.
        is_current: Whether no file has changed since that check.
        faults: Why a check or a measurement ended without a result, by its command.
        audits: Paths of audit pages next to its report, below the root.
        artefact: Its artefact, which generates more records, below the root; "" without one.
        used_table: Whether the last check also read the confidential table.
    """

    path: str
    manifest: Mapping[str, Any]
    records_file: str
    records: TableHead | None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] = field(default_factory=dict)
    is_current: bool = False
    faults: Mapping[str, str] = field(default_factory=dict)
    audits: Sequence[str] = ()
    artefact: str = ""
    used_table: bool = False

    @property
    def guarantee(self) -> Mapping[str, Any]:
        """The guarantee of the manifest."""
        found = self.manifest.get("guarantee")
        return found if isinstance(found, dict) else {}

    @property
    def claims_privacy(self) -> bool:
        """Whether its manifest claims a finite ε."""
        epsilon = self.guarantee.get("epsilon")
        return isinstance(epsilon, int | float) and not isinstance(epsilon, bool)

    @property
    def drafted(self) -> list[str]:
        """The entries of its schema that were read off the table and not confirmed."""
        found = self.manifest.get("schema")
        listed = found.get("drafted") if isinstance(found, dict) else None
        return [str(each) for each in listed] if isinstance(listed, list) else []

    @property
    def has_passed(self) -> bool:
        """Whether the files that are there now passed every check."""
        return (
            self.is_current
            and self.verdict.get("passed") is True
            and bool(self.verdict.get("checks"))
            and not self.failed_checks
        )

    @property
    def may_publish(self) -> bool:
        """Whether it may leave: it promises something about its records, and passed its check.

        **Privacy**

        - Neighbours: those of the manifest.
        - Covers: the marks and the button of the page; all of them follow this.
        - Does not cover: whether the noise was secret, which no check of files can show.
        - Assumes: runs and their files are changed by their owner only.
        """
        return self.is_covered and not self.danger and self.has_passed

    @property
    def danger(self) -> str:
        """The warning that its ε or δ promises little or nothing; "" for usual ones."""
        return certificate_danger(self.manifest)

    @property
    def is_covered(self) -> bool:
        """Whether its manifest claims a finite ε for its records, not only for their model."""
        return self.claims_privacy and self.manifest.get("mode") in _COVERED

    @property
    def failed_checks(self) -> list[Mapping[str, Any]]:
        """The checks that failed."""
        return [each for each in self.verdict.get("checks", ()) if not each.get("passed")]


def read_release(space: Workspace, path: str) -> ReleaseView:
    """Read what can be shown of a release.

    Raises:
        ArtefactError: It has no readable manifest.
        PathError: The path leaves the root.
    """
    folder = space.root.locate(path)
    manifest = read_json(space.root.locate(f"{path}/manifest.json"))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ArtefactError(f"{path}/manifest.json is no manifest of a release")
    verdict, state, used_table = latest_verdict(space, path)
    name = next((each for each in _RECORD_FILES if (folder / each).is_file()), "")
    return ReleaseView(
        path=path,
        manifest=manifest,
        records_file=name,
        records=_first_records(space, f"{path}/{name}") if name else None,
        metrics=_json_of(space, f"{path}.internal/report/metrics.json"),
        verdict=verdict,
        is_current=bool(verdict) and is_unchanged(folder, state),
        faults={each: latest_fault(space, path, each) for each in ("verify", "evaluate")},
        audits=_audits(space, path),
        artefact=_artefact(folder, path),
        used_table=used_table,
    )


def _artefact(folder: Path, path: str) -> str:
    """The artefact of a release; a folder of ``deniable learn`` is one itself."""
    places = {f"{path}/artefact": folder / "artefact", path: folder}
    return next((name for name, each in places.items() if (each / _MODEL).is_file()), "")


def table_of(space: Workspace, path: str) -> str:
    """The table of a release that the studio made; "" if it is not known."""
    return next((run.table for run in space.store.all() if run.out == path), "")


def _first_records(space: Workspace, path: str) -> TableHead | None:
    with suppress(DataError, OSError):
        return table_facts(space.root.locate(path))
    return None


def _json_of(space: Workspace, path: str) -> Mapping[str, Any]:
    with suppress(DeniableError, OSError):
        found = read_json(space.root.locate(path))
        if isinstance(found, dict):
            return found
    return {}


def _audits(space: Workspace, path: str) -> list[str]:
    """Find audit pages in the internal folder of a release."""
    found = []
    with suppress(DeniableError, OSError):
        for inner in space.root.entries(f"{path}.internal"):
            document = _json_of(space, f"{inner.path}/{AUDIT_DOCUMENT}")
            if document.get("format") == AUDIT_FORMAT:
                found.append(f"{inner.path}/{AUDIT_PAGE}")
    return found


def latest_verdict(
    space: Workspace, path: str
) -> tuple[Mapping[str, Any], Mapping[str, Any], bool]:
    """The newest verdict on a release, the state of its files then, and whether the table was read.

    Checks of more records are about other files.
    """
    for run, status in steps_on(space, path):
        is_own = status.step.arguments[0] == "verify" and run.kind != "records"
        if is_own and "passed" in status.result:
            return status.result, status.files, "--against" in status.step.arguments
    return {}, {}, False


def latest_fault(space: Workspace, path: str, command: str) -> str:
    """Why the newest run of a command on a release ended without a result; "" if it did not."""
    for run, status in steps_on(space, path):
        if run.kind == "records":
            continue
        if status.step.arguments[0] == command and status.state not in ("waiting", "cancelled"):
            has_ended = status.state in ("failed", "killed") and "passed" not in status.result
            return failure_message(status, is_made=True) if has_ended else ""
    return ""


def steps_on(space: Workspace, path: str) -> list[tuple[RunRecord, StepStatus]]:
    """The steps of all runs on a release, the newest run first."""
    return [
        (run, status)
        for run in space.store.all()
        if run.out == path or (run.kind in ("records", "check") and run.schema == path)
        for status in space.store.status(run)
    ]
