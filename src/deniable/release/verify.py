"""deniable verify: whether a release is what its manifest says, from its files alone.

Every number is computed again, every file re-written, every record of an artefact generated
again. Files are not signed: one who rewrites all of them consistently has made another release,
and that cannot be found.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import ConfigError, VerificationError
from deniable.privacy.audit import require
from deniable.release.claims import Claims, Place
from deniable.release.questions import Check, check
from deniable.release.records import as_json
from deniable.release.statements import WITH_ARTEFACT, check_claims
from deniable.release.trust import (
    ARTEFACT_FILES,
    MANIFEST,
    TABLES,
    ask_columns,
    ask_generated,
    ask_hashes,
    check_against,
    read_artefact,
    read_records,
)

# What no verifier can see, whatever the release.
_REWRITTEN = (
    "files that were rewritten consistently, all of them: nothing here is signed",
    "that the noise came from the operating system, and the options were fixed in advance",
)
_WITHOUT_ARTEFACT = (
    "that the records came from the model that was paid for: it is not part of the release",
    "options that leave no trace without an artefact: max_cost, alpha, the estimator, the profile",
)
_WITHOUT_TABLE = (
    "that k rows of the table share what was kept: its holder can ask, with --against",
)
_BESIDE_NO_SCHEMA = (
    "that the records fit the schema, and which of them the artefact generates: neither is beside "
    "the file",
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was asked about a release, and answered.

    Attributes:
        checks: Every question and its answer.
        unknown: What could not be asked, one sentence each.
    """

    checks: tuple[Check, ...]
    unknown: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every answer is yes."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The questions that were answered by no."""
        return tuple(check for check in self.checks if not check.passed)

    def require(self) -> None:
        """Refuse a release that is not what it says.

        Raises:
            VerificationError: Some answers are no; it lists them.
        """
        if self.failed:
            lines = ["the release is not what its manifest says; ask who published it"]
            lines += [f"{check.name}: {check.explanation}" for check in self.failed]
            raise VerificationError("\n  ".join(lines))


def verify(path: str | Path, *, against: object | None = None) -> Report:
    """Return whether a release, an artefact or a file of generated records is what it says.

    Args:
        path: The folder of a release or of an artefact; or a file that ``deniable generate`` wrote.
        against: The confidential table, for its holder: a path or a frame. Then also what was
            promised about its rows is looked at; no cell and no count of it is shown.

    Raises:
        ConfigError: There is nothing of that kind.
        DataError: ``against`` is no table of this schema.
    """
    path = Path(path)
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise ConfigError(f"{path} has no {MANIFEST}: it is neither a release nor an artefact")
        place: Place = "artefact" if (path / "artefact.json").exists() else "release"
        return _verify_folder(path, place, against)
    file = path.with_name(path.name.removesuffix(f".{MANIFEST}"))
    if not file.is_file():
        raise ConfigError(f"{path} is neither the folder of a release or artefact, nor a file")
    if not file.with_name(f"{file.name}.{MANIFEST}").is_file():
        raise ConfigError(f"{file} has no manifest beside it; verify the folder of its release")
    if against is not None:
        raise ConfigError("--against needs the artefact: verify its folder, not a file of records")
    return _verify_file(file)


def _verify_file(file: Path) -> Report:
    """Return what can be said of generated records and the manifest beside them."""
    beside = file.with_name(f"{file.name}.{MANIFEST}")
    claims, checks = _read_claims(beside, "file", None)
    if claims is not None:
        checks.append(check("files", lambda: ask_hashes(claims.document, {file.name: file})))
        if not claims.nothing:
            checks += check_claims(claims)
            checks.append(check("records", lambda: ask_columns(claims, file)))
    return Report(checks=tuple(checks), unknown=_REWRITTEN + _BESIDE_NO_SCHEMA)


def _verify_folder(folder: Path, place: Place, against: object | None) -> Report:
    """Return what can be said of the folder of a release, or of an artefact."""
    schema_check, schema = _read_schema(folder)
    claims, checks = _read_claims(folder / MANIFEST, place, schema)
    checks.append(schema_check)
    if claims is None or schema is None:
        return Report(checks=tuple(checks))
    checks.append(check("files", lambda: _ask_files(folder, claims)))
    checks.append(check("schema in manifest", lambda: _ask_schema(claims.document, schema)))
    checks += check_claims(claims)
    if claims.nothing:
        why = ("anything else: the manifest claims nothing, and the release is confidential",)
        return Report(checks=tuple(checks), unknown=why)
    has_artefact = claims.mode in WITH_ARTEFACT
    home = folder if place == "artefact" else folder / "artefact"
    artefact = read_artefact(home, claims, checks) if has_artefact else None
    records = read_records(folder, schema, claims, checks) if place == "release" else None
    if artefact is not None and records is not None:
        checks.append(check("generated again", lambda: ask_generated(artefact, claims, folder)))
    unknown = _REWRITTEN + (() if has_artefact else _WITHOUT_ARTEFACT)
    if against is not None:
        rows, _ = read_codes(against, schema)
        checks += check_against(rows, claims, artefact, records)
    elif claims.mode != "seedless":
        unknown += _WITHOUT_TABLE
    return Report(checks=tuple(checks), unknown=unknown)


def _read_claims(
    path: Path, place: Place, schema: Schema | None
) -> tuple[Claims | None, list[Check]]:
    """Return what a manifest claims, if it is one; and whether it is written as we write."""
    found: list[Claims] = []

    def ask() -> str:
        raw = path.read_bytes()
        document = json.loads(raw)
        require(isinstance(document, dict), "it is not a manifest")
        claims = Claims(document=document, place=place, schema=schema)
        _ = claims.nothing, claims.of_own_model, claims.names  # refuses what has no claim at all
        found.append(claims)
        require(as_json(document) == raw, "its bytes are not those that the product writes")
        return "It can be read, and written again it is the same, byte for byte."

    answer = check(path.name, ask)
    return (found[0] if found else None), [answer]


def _read_schema(folder: Path) -> tuple[Check, Schema | None]:
    found: list[Schema] = []

    def ask() -> str:
        path = folder / "schema.toml"
        found.append(Schema.read(path))
        same = found[0].text().encode() == path.read_bytes()
        require(same, "its bytes are not those that the product writes")
        return "It can be read, and written again it is the same, byte for byte."

    return check("schema.toml", ask), (found[0] if found else None)


# Files


def _ask_files(folder: Path, claims: Claims) -> str:
    """The files of this mode, each with the hash that the manifest gives."""
    found = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }
    require(not any(path.is_symlink() for path in found.values()), "a file is a symbolic link")
    found.pop(MANIFEST)
    if claims.place == "artefact":
        require(set(found) == set(ARTEFACT_FILES), "an artefact has other files")
    else:
        tables = [name for name in TABLES if name in found]
        require(len(tables) == 1, "there is not one table of records")
        expected = {"schema.toml", *tables}
        if claims.mode in WITH_ARTEFACT:
            expected |= {f"artefact/{name}" for name in (*ARTEFACT_FILES, MANIFEST)}
        require(set(found) == expected, "a release of this mode has other files")
    return ask_hashes(claims.document, found)


def _ask_schema(document: Mapping[str, Any], schema: Schema) -> str:
    said = {
        "sha256": hashlib.sha256(schema.text().encode()).hexdigest(),
        "drafted": list(schema.drafted),
    }
    require(as_json(document["schema"]) == as_json(said), "it speaks of another schema")
    return "The manifest speaks of this schema, and says what of it nobody has confirmed."
