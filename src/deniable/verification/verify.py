"""Verify that a release matches its manifest, from its files alone (``deniable verify``).

Every number is recomputed, every file is written again, and every record of an artefact is
generated again. Files are not signed: a consistent rewrite of all of them goes undetected.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deniable.data.table_io import read_codes
from deniable.errors import ConfigError, VerificationError
from deniable.files import as_path
from deniable.html import notebook_summary, tag
from deniable.release.atomic_files import encode_json
from deniable.release.manifest import of_another_series
from deniable.release.untrusted_files import read_json
from deniable.schema.attribute import summarize_values
from deniable.schema.schema import Schema
from deniable.verification.artefact_checks import (
    ARTEFACT_FILES,
    MANIFEST_FILE,
    check_hashes,
    list_unknown_model,
    read_artefact,
)
from deniable.verification.claims import Check, ManifestClaims, Subject, run_check
from deniable.verification.manifest_checks import ARTEFACT_MODES, run_manifest_checks
from deniable.verification.manifest_spend import require
from deniable.verification.record_checks import (
    TABLE_FILES,
    check_columns,
    check_regenerated,
    is_part,
    read_records,
    require_all_parts,
    run_table_checks,
)
from deniable.verification.written_form import undetermined_cells

# What verification cannot show: for any release, then by what is missing.
_NEVER_VERIFIED = (
    "whether all files were rewritten consistently: they are not signed",
    "whether the noise came from the operating system, and the options were fixed in advance",
)
_WITHOUT_ARTEFACT = (
    "whether the records came from the model in the ledger: the release does not include it",
    "options that leave no trace without an artefact: max_cost, alpha, estimator, profile, and ω "
    "where it was chosen automatically",
)
_WITHOUT_TABLE = (
    "whether at least k rows of the table share the kept attribute values: the table's holder can "
    "check, with --against"
)
_WITHOUT_SCHEMA = (
    "whether the records fit the schema, and whether the artefact generates them: the file comes "
    "with neither, so cells, and columns that are not in the ledger, can be anything",
)
# What not even the table's holder can check, by mode.
_BEYOND_TABLE = {
    "randomized": "whether each record passed its test: the test's threshold was random and is not "
    "kept, so not even the table's holder can check",
    "seedless": "whether the noisy counts are of the holder's table: no attribute values of its "
    "rows are kept, so it has nothing to show",
    "one-shot": "whether the noisy counts are of the holder's table: no attribute values of its "
    "rows are kept, so it has nothing to show",
    "tested": "whether at least k rows of the table could have been the seed of each record: the "
    "model is the user's, and the release does not include it",
}
_NOT_ASKED = "; nothing was checked against the table that was given"
_SAME_BYTES = "It is readable, and writing it again gives identical bytes."
_OTHER_BYTES = "it is not in the exact form that deniable writes"
_OTHER_VERSION = (
    "deniable {made_by} wrote it, and this is deniable {ours}, which does not verify it: use the "
    "version that wrote it, pip install deniable=={made_by}"
)


def _outcome(check: Check) -> str:
    return "FAILED" if not check.passed else "passed" if check.exact else "nearly"


@dataclass(frozen=True, kw_only=True, repr=False)
class VerificationReport:
    """Result of verifying a release.

    Attributes:
        checks: Every check that was run, with its result.
        unknown: What could not be verified, one sentence each.
        accept_other_platform: Whether checks within the tolerance for another platform count as
            passed.
    """

    checks: tuple[Check, ...]
    unknown: tuple[str, ...] = ()
    accept_other_platform: bool = False

    def __repr__(self) -> str:
        """Summarize the result; the checks have the details."""
        result = (
            "passed" if self.passed else "NOT VERIFIED EXACTLY" if not self.failed else "FAILED"
        )
        failed = (
            f", failed: {', '.join(check.name for check in self.failed)}" if self.failed else ""
        )
        return f"<VerificationReport: {result}, {len(self.checks)} checks{failed}>"

    def _repr_html_(self) -> str:
        """Show every check in a notebook, the failed ones first."""
        checks = sorted(self.checks, key=lambda check: (check.passed, check.exact))
        facts = {f"{_outcome(check)}: {check.name}": check.explanation for check in checks}
        result = "passed" if self.passed else "failed" if self.failed else "not verified exactly"
        unknown = tag("ul", [tag("li", each) for each in self.unknown])
        more = (tag("p", "Not verified:"), unknown) if self.unknown else ()
        return notebook_summary(f"Verification {result}", facts, *more)

    @property
    def passed(self) -> bool:
        """Whether every check passed, exactly unless another platform is accepted."""
        return not self.failed and (self.accept_other_platform or not self.inexact)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The failed checks."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def inexact(self) -> tuple[Check, ...]:
        """The checks that passed only within the tolerance for another platform."""
        return tuple(check for check in self.checks if check.passed and not check.exact)

    def require(self) -> None:
        """Raise an error unless every check passed.

        Raises:
            VerificationError: Some checks failed, or are not exact and another platform is not
                accepted; the message lists them.
        """
        if self.failed:
            raise _verification_error(
                "the release does not match its manifest; ask its publisher", self.failed
            )
        if not self.passed:
            raise _verification_error(
                "the release was NOT VERIFIED EXACTLY: its manifest names another platform, and a "
                "small forgery would not be found. Verify it on that platform, or accept this with "
                "--accept-other-platform (in Python, accept_other_platform=True)",
                self.inexact,
            )


def _verification_error(what: str, checks: Sequence[Check]) -> VerificationError:
    return VerificationError(
        "\n  ".join([what, *(f"{check.name}: {check.explanation}" for check in checks)])
    )


def verify(
    path: str | Path, *, against: object | None = None, accept_other_platform: bool = False
) -> VerificationReport:
    """Verify a release, an artefact or a file of generated records against its manifest.

    Args:
        path: The folder of a release or of an artefact; or a file that ``deniable generate`` wrote.
        against: The confidential table, a path or a data frame: also check the promises about
            its rows. For its holder; the report has no cell and no count of it.
        accept_other_platform: Whether a release passes whose last digits or bytes cannot be
            compared, because other libraries or another processor made it. What is then compared
            within a tolerance is in ``inexact`` of the report.

    Raises:
        ConfigError: ``path`` is not a release, an artefact or a file with a manifest.
        DataError: ``against`` does not fit the schema.
    """
    path = as_path(path, "the release")
    if path.is_dir():
        if not (path / MANIFEST_FILE).is_file():
            reason = "it is neither a release nor an artefact"
            raise ConfigError(f"{path} has no {MANIFEST_FILE}: {reason}")
        subject: Subject = "artefact" if (path / "artefact.json").exists() else "release"
        report = _verify_folder(path, subject, against)
        return replace(report, accept_other_platform=accept_other_platform)
    file = path.with_name(path.name.removesuffix(f".{MANIFEST_FILE}"))
    manifest = file.with_name(f"{file.name}.{MANIFEST_FILE}")
    if not file.is_file():
        raise ConfigError(f"{path} is neither a folder of a release or an artefact, nor a file")
    if not manifest.is_file():
        raise ConfigError(f"{file} has no {manifest.name}: verify the folder of its release")
    if against is not None:
        raise ConfigError("--against needs the artefact: verify its folder, not a file of records")
    report = _verify_file(file, manifest)
    return replace(report, accept_other_platform=accept_other_platform)


def _verify_file(file: Path, manifest: Path) -> VerificationReport:
    """Verify a file of generated records against its own manifest."""
    claims, checks = _read_claims(manifest, "file", None)
    if claims is not None:
        checks.append(run_check("files", lambda: check_hashes(claims.document, {file.name: file})))
        if not claims.claims_nothing:
            checks += run_manifest_checks(claims)
            checks.append(run_check("records", lambda: check_columns(claims, file)))
    return VerificationReport(checks=tuple(checks), unknown=_NEVER_VERIFIED + _WITHOUT_SCHEMA)


def _verify_folder(folder: Path, subject: Subject, against: object | None) -> VerificationReport:
    """Verify the folder of a release or of an artefact."""
    schema_check, schema = _read_schema(folder)
    claims, checks = _read_claims(folder / MANIFEST_FILE, subject, schema)
    checks.append(schema_check)
    if claims is None or schema is None:
        return VerificationReport(checks=tuple(checks))
    checks.append(run_check("files", lambda: _check_files(folder, claims)))
    checks.append(run_check("schema in manifest", lambda: _check_schema(claims.document, schema)))
    manifest_checks = run_manifest_checks(claims)
    checks += manifest_checks
    if claims.claims_nothing:
        why = ("anything else: the manifest claims nothing, and the release is confidential",)
        return VerificationReport(checks=tuple(checks), unknown=why)
    artefact, records = None, None
    has_artefact = claims.mode in ARTEFACT_MODES
    if has_artefact:
        home = folder if subject == "artefact" else folder / "artefact"
        artefact, artefact_checks = read_artefact(home, claims)
        checks += artefact_checks
    if subject == "release":
        regenerate = None
        if artefact is not None:
            regenerate = partial(check_regenerated, artefact, claims, folder)
        records, record_checks = read_records(folder, schema, claims, regenerate)
        checks += record_checks
    table_checks: list[Check] = []
    if against is not None:
        rows, _ = read_codes(against, schema)
        table_checks = run_table_checks(rows, claims, artefact, records)
    unknown = list(_NEVER_VERIFIED)
    if all(check.passed for check in manifest_checks):
        unknown += _list_unknown(claims, schema)
        if not table_checks:
            unknown.append(_unknown_of_table(claims, is_given=against is not None))
    return VerificationReport(checks=(*checks, *table_checks), unknown=tuple(unknown))


def _list_unknown(claims: ManifestClaims, schema: Schema) -> list[str]:
    """List what files cannot show in this mode, with this schema; the manifest is valid."""
    if claims.mode in ARTEFACT_MODES:
        return list_unknown_model(claims)
    unknown = list(_WITHOUT_ARTEFACT)
    if drawn := undetermined_cells(schema):
        listed = summarize_values(drawn, limit=20)
        unknown.append(
            "whether values within bins and UUIDs were drawn at random: this mode keeps no key, so "
            f"any value of a bin and any distinct UUIDs pass, in {listed}"
        )
    return unknown


def _unknown_of_table(claims: ManifestClaims, *, is_given: bool) -> str:
    """Describe what only the table can show, or not even the table."""
    is_checkable = claims.copies_prefixes or (claims.mode == "tested" and not claims.has_own_model)
    why = _WITHOUT_TABLE if is_checkable else _BEYOND_TABLE[claims.mode]
    return why + _NOT_ASKED if is_given else why


def _read_claims(
    path: Path, subject: Subject, schema: Schema | None
) -> tuple[ManifestClaims | None, list[Check]]:
    """Read a manifest and check its exact form; the claims are None if it cannot be read."""
    found: list[ManifestClaims] = []

    def check_readable() -> str:
        document = read_json(path)
        raw = path.read_bytes()
        require(isinstance(document, dict), "it is not a manifest")
        if (made_by := of_another_series(document)) is not None:
            ours = version("deniable")
            raise VerificationError(_OTHER_VERSION.format(made_by=made_by, ours=ours))
        claims = ManifestClaims(document=document, subject=subject, schema=schema)
        _ = claims.claims_nothing, claims.has_own_model, claims.names  # raises if one is missing
        found.append(claims)
        require(encode_json(document) == raw, _OTHER_BYTES)
        return _SAME_BYTES

    check = run_check(path.name, check_readable)
    return (found[0] if found else None), [check]


def _read_schema(folder: Path) -> tuple[Check, Schema | None]:
    """Read the schema and check its exact form; it is None if it cannot be read."""
    found: list[Schema] = []

    def check_readable() -> str:
        path = folder / "schema.toml"
        found.append(Schema.read(path))
        same = found[0].text().encode() == path.read_bytes()
        require(same, _OTHER_BYTES)
        return _SAME_BYTES

    return run_check("schema.toml", check_readable), (found[0] if found else None)


def _check_files(folder: Path, claims: ManifestClaims) -> str:
    """Check that the folder has exactly the files of its mode, with the manifest's hashes."""
    present = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    require(not any(path.is_symlink() for path in present.values()), "a file is a symbolic link")
    found = {name: path for name, path in present.items() if not path.is_dir()}
    found.pop(MANIFEST_FILE)
    if claims.subject == "artefact":
        expected = set(ARTEFACT_FILES)
    else:
        tables = [name for name in TABLE_FILES if name in found]
        if not tables and (tables := [name for name in found if is_part(Path(name))]):
            require_all_parts(tables, claims)
        else:
            require(len(tables) == 1, f"there must be exactly one of {', '.join(TABLE_FILES)}")
        expected = {"schema.toml", *tables}
        if claims.mode in ARTEFACT_MODES:
            expected |= {f"artefact/{name}" for name in (*ARTEFACT_FILES, MANIFEST_FILE)}
    folders = {name for name, path in present.items() if path.is_dir()}
    expected_folders = {name.rpartition("/")[0] for name in expected if "/" in name}
    _require_exactly(found.keys() | folders, expected | expected_folders)
    return check_hashes(claims.document, found)


def _require_exactly(found: Collection[str], expected: Collection[str]) -> None:
    """Refuse what is missing, and what does not belong there, a desktop's own files included."""
    missing, unexpected = set(expected) - set(found), set(found) - set(expected)
    require(not missing, f"missing: {summarize_values(sorted(missing))}")
    require(
        not unexpected,
        f"not part of a release: {summarize_values(sorted(unexpected))}; if it is known where this "
        "comes from (a desktop's .DS_Store, a cluster's _SUCCESS), delete it",
    )


def _check_schema(document: Mapping[str, Any], schema: Schema) -> str:
    """Check the manifest's hash of the schema, and its list of unconfirmed attributes."""
    expected = {
        "sha256": hashlib.sha256(schema.text().encode()).hexdigest(),
        "drafted": list(schema.drafted),
    }
    same = encode_json(document["schema"]) == encode_json(expected)
    require(same, "the manifest's hash or list of unconfirmed attributes does not match")
    return "The manifest has this schema's hash and its unconfirmed attributes."
