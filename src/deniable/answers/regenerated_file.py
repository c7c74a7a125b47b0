"""Generate a file of records again from its artefact, and compare."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from deniable.answers.conditional_records import InferenceTally
from deniable.answers.conditional_release import INTERNAL, generate_conditional
from deniable.data.table_io import infer_format, write_table
from deniable.errors import ConfigError
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.release.atomic_files import file_hash, new_file
from deniable.release.generation import decode_blocks
from deniable.verification.claims import Inexact, ManifestClaims
from deniable.verification.manifest_spend import require
from deniable.verification.written_form import require_same_file
from deniable.workers import no_progress

_SAME_VALUES = "values; another version of polars wrote the file, so its bytes were not compared"


def check_regenerated(
    file: Path, artefact: Artefact, claims: ManifestClaims, given: object | None
) -> str | Inexact:
    """Generate the file again from the artefact, the manifest and the given rows, and compare."""
    parameters = claims.parameters
    file_format = infer_format(Path(file.name.removesuffix(INTERNAL)), ConfigError)
    tally = InferenceTally()
    with TemporaryDirectory() as temporary:
        again = Path(temporary) / f"again{file_format}"
        with new_file(again):
            write_table(again, _frames(artefact, claims, given, tally), artefact.schema)
        exact = file_hash(file) == file_hash(again)
        if not exact:
            why = "the artefact, the manifest's key and what was given generate another file"
            require(file.suffix == ".parquet", why)
            require_same_file(file, again, artefact.schema, writer=parameters.get("writer"))
    if "inference" in parameters:
        same = parameters["inference"] == tally.document()
        require(same, "the manifest states another error of inference")
    said = f"Artefact and key generate the same {parameters['records']:,} records again: identical"
    return f"{said} bytes." if exact else Inexact(f"{said} {_SAME_VALUES}.")


def _frames(
    artefact: Artefact, claims: ManifestClaims, given: object | None, tally: InferenceTally
) -> Iterator[pl.DataFrame]:
    parameters, key = claims.parameters, Keyed(claims.parameters["key"])
    if not {"where", "balance", "given"} & set(parameters):
        return decode_blocks(artefact.records(parameters["records"], key), artefact.schema, key)
    balance = parameters.get("balance")
    facts = parameters.get("given")
    release = generate_conditional(
        artefact,
        None if facts else parameters["records"],
        given=given if facts else None,
        records_each=facts["records_each"] if facts else 1,
        given_is_public=facts["public"] if facts else False,
        where=parameters.get("where"),
        balance=_balance_text(balance) if balance else None,
        key=key.key,
    )
    require(release.source.number == parameters["records"], "the given rows are not as many")
    stated = {name: parameters.get(name) for name in ("where", "balance", "given")}
    found = {name: release.source.parameters.get(name) for name in stated}
    require(stated == found, "the manifest describes other given rows")
    return release.source.frames(tally, no_progress)


def _balance_text(balance: dict[str, list[float]]) -> str:
    [(name, shares)] = balance.items()
    return f"{name}: {', '.join(map(repr, shares))}"
