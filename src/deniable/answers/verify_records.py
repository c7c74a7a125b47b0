"""Verify a release, and a file of records together with its artefact."""

from dataclasses import replace
from pathlib import Path

from deniable.errors import ConfigError
from deniable.files import as_path
from deniable.release.artefact import load
from deniable.release.untrusted_files import read_json
from deniable.verification.claims import Inexact, ManifestClaims, run_check
from deniable.verification.manifest_spend import require
from deniable.verification.verify import VerificationReport
from deniable.verification.verify import verify as verify_files

_REGENERATED = "regenerated records"
_WITHOUT_GIVEN = (
    "whether the records complete the given rows, and whether the artefact draws the other cells: "
    "the given rows are not at hand; use --given"
)
_WITHOUT_ARTEFACT = "whether the artefact generates the file: use --artefact"
# Options of the artefact that its records' manifests have too.
_OF_RECORDS = ("records", "key", "where", "balance", "given", "inference", "writer")


def verify(
    path: str | Path,
    *,
    against: object | None = None,
    artefact: str | Path | None = None,
    given: object | None = None,
    accept_other_platform: bool = False,
) -> VerificationReport:
    """Verify a release, an artefact or a file of generated records against its manifest.

    Args:
        path: The folder of a release or of an artefact; or a file that ``deniable generate`` wrote.
        against: The confidential table, a path or a data frame: also check the promises about
            its rows. For its holder; the report has no cell and no count of it.
        artefact: The artefact of a file of records: also generate the file again.
        given: The rows that a file of records completes, for its holder; with ``artefact``.
        accept_other_platform: Whether a release passes whose last digits or bytes cannot be
            compared, because other libraries or another processor made it.

    Raises:
        ConfigError: ``path`` is not a release, an artefact or a file with a manifest, or is not a
            file and ``artefact`` is given.
    """
    path = as_path(path, "the release")
    report = verify_files(path, against=against, accept_other_platform=accept_other_platform)
    if path.is_dir():
        if artefact is not None or given is not None:
            raise ConfigError("--artefact and --given are for a file of records, not for a folder")
        return report
    if given is not None and artefact is None:
        raise ConfigError("--given needs --artefact: the file is generated again from both")
    if any(not check.passed for check in report.checks):
        return report
    file = path.with_name(path.name.removesuffix(".manifest.json"))
    document = read_json(file.with_name(f"{file.name}.manifest.json"))
    claims = ManifestClaims(document=document, subject="file")
    if artefact is None:
        unknown = [_WITHOUT_ARTEFACT, *([_WITHOUT_GIVEN] if _completes(claims) else [])]
        return replace(report, unknown=(*report.unknown, *unknown))
    folder = as_path(artefact, "the artefact")
    checks = [run_check("artefact", lambda: _check_artefact(folder, claims))]
    if not checks[0].passed:
        return replace(report, checks=(*report.checks, *checks))
    if _completes(claims) and given is None:
        added = replace(report, unknown=(*report.unknown, _WITHOUT_GIVEN))
        return replace(added, checks=(*report.checks, *checks))
    checks.append(run_check(_REGENERATED, lambda: _regenerate(file, folder, claims, given)))
    known = tuple(text for text in report.unknown if "the file comes with neither" not in text)
    return replace(report, checks=(*report.checks, *checks), unknown=known)


def _completes(claims: ManifestClaims) -> bool:
    return "given" in claims.parameters


def _check_artefact(folder: Path, claims: ManifestClaims) -> str:
    """Check that the file's manifest makes the claims of this artefact, which is checked too."""
    report = verify_files(folder)
    failed = [check.name for check in report.failed]
    require(not failed, f"the artefact itself fails: {', '.join(failed)}")
    own = ManifestClaims(document=read_json(folder / "manifest.json"), subject="artefact")
    parameters = {
        name: value for name, value in claims.parameters.items() if name not in _OF_RECORDS
    }
    same = parameters == own.parameters and claims.document["spends"] == own.document["spends"]
    same = same and claims.document["schema"] == own.document["schema"]
    require(same, "the file's manifest states other options, costs or another schema")
    return "The artefact holds, and the file's manifest states its options, costs and schema."


def _regenerate(
    file: Path, folder: Path, claims: ManifestClaims, given: object | None
) -> str | Inexact:
    # Slow to import, and a release does not need it.
    from deniable.answers.regenerated_file import check_regenerated  # noqa: PLC0415

    return check_regenerated(file, load(folder), claims, given)
