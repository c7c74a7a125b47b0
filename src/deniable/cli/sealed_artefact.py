"""Load an artefact and check its manifest, before its claims are printed or written again."""

from pathlib import Path

from deniable.errors import ArtefactError
from deniable.release.artefact import Artefact, load
from deniable.release.untrusted_files import read_json
from deniable.verification.claims import ManifestClaims
from deniable.verification.manifest_checks import run_manifest_checks


def load_sealed(folder: Path) -> Artefact:
    """Load an artefact and check its claims: form, sentence, ledger and costs.

    The model is not fitted again; ``deniable verify`` does.

    Privacy:
        Covers: the guarantee that the returned artefact states follows from its ledger.
        Does not cover: a manifest and files that were all rewritten consistently.

    Raises:
        ArtefactError: The artefact is damaged or was changed, or its manifest contradicts itself.
    """
    artefact = load(folder)
    claims = ManifestClaims(
        document=read_json(folder / "manifest.json"), subject="artefact", schema=artefact.schema
    )
    failed = [check for check in run_manifest_checks(claims) if not check.passed]
    if failed:
        raise ArtefactError(
            f"the manifest of {folder} does not hold ({failed[0].name}: {failed[0].explanation}). "
            "It was changed, or written by another version of deniable. Get it again, or use that "
            "version"
        )
    return artefact
