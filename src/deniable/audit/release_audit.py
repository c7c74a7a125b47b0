"""Audit a release as an outsider (``deniable audit RELEASE``), without the table.

The verdict of ``verify``, and what the verified guarantee allows any attacker.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deniable.audit.attack_success import allowed_advantage
from deniable.audit.audit_report import (
    AuditReport,
    AuditSection,
    AuditTable,
    write_audit,
)
from deniable.audit.trade_off import (
    AllowedRates,
    allowed_by_guarantee,
    allowed_sentence,
    area_below,
)
from deniable.errors import ArtefactError, ConfigError
from deniable.evaluation.svg_plots import draw_lines
from deniable.files import as_path
from deniable.html import Markup, figure
from deniable.release.atomic_files import require_free
from deniable.release.manifest import Certificate
from deniable.release.untrusted_files import read_json
from deniable.verification.verify import VerificationReport, verify

# False alarms for which the bound is stated.
_FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1)
_CURVE_POINTS = 80
_NOTHING_PROMISED = "The manifest promises no differential privacy."


def audit_release(release: str | Path, *, out: str | Path | None = None) -> AuditReport:
    """Verify a release, and state what its guarantee allows an attacker. No table is read.

    Args:
        release: The folder of a release or of an artefact; or a file of generated records.
        out: A new folder for audit.html and audit.json; None: nothing is written.

    Raises:
        ConfigError: ``release`` has no manifest.
        OutputError: ``out`` is not free.
    """
    path = as_path(release, "the release")
    if out is not None:
        require_free(Path(out))
    try:
        verified = verify(path)
    except ConfigError as error:
        raise ConfigError(f"{error}. To attack releases of a table, give --schema") from None
    manifest = _read_manifest(path)
    sections = [_verification_section(verified)]
    if verified.passed:
        sections.append(_bounds_section(manifest))
    report = AuditReport(
        edition="public" if _claims_privacy(manifest) else "internal",
        subject="release",
        headline=_headline(verified, manifest),
        findings=[part.words[0] for part in sections],
        guarantee=_sentence(manifest) if verified.passed else "No promise could be verified.",
        sections=sections,
        settings={"release": path.name},
    )
    if out is not None:
        write_audit(report, Path(out))
    return report


def _read_manifest(path: Path) -> Mapping[str, Any]:
    """Read the manifest; empty if it cannot be read, which ``verify`` reports."""
    place = path / "manifest.json"
    if not path.is_dir():
        name = path.name.removesuffix(".manifest.json")
        place = path.with_name(f"{name}.manifest.json")
    try:
        document = read_json(place)
    except ArtefactError:
        return {}
    return document if isinstance(document, dict) else {}


def _claims_privacy(manifest: Mapping[str, Any]) -> bool:
    """Whether a finite ε is claimed. A release without one is confidential, and so is its audit."""
    guarantee = manifest.get("guarantee")
    return isinstance(guarantee, dict) and guarantee.get("epsilon") not in (None, "inf")


def _sentence(manifest: Mapping[str, Any]) -> str:
    return str(manifest["guarantee"]["sentence"])


def _promise(manifest: Mapping[str, Any]) -> tuple[float, float]:
    """ε and δ about the presence of a row; infinite if nothing is promised."""
    claimed = manifest["guarantee"]
    if manifest["mode"] == "tested" or claimed["epsilon"] == "inf":
        return math.inf, 0.0
    return float(claimed["epsilon"]), float(claimed["delta"])


def _headline(verified: VerificationReport, manifest: Mapping[str, Any]) -> str:
    if not verified.passed:
        return "Verification failed: nothing can be said about the privacy of this release."
    epsilon, delta = _promise(manifest)
    if math.isinf(epsilon):
        return "The release matches its manifest, which does not promise to hide a row's presence."
    allowed = partial(allowed_by_guarantee, epsilon=epsilon, delta=delta)
    caution = Certificate.of_document(manifest).caution
    words = ["The release matches its manifest.", caution, allowed_sentence(0.01, allowed)]
    return " ".join(filter(None, words))


def _verification_section(verified: VerificationReport) -> AuditSection:
    failed = [*verified.failed, *verified.inexact]
    result = "passed" if verified.passed else f"failed in {len(failed)}"
    words = [
        f"Verification {result}: {len(verified.checks)} checks recomputed every statement of the "
        "manifest from the files."
    ]
    if verified.unknown:
        words.append("What the files cannot show: " + "; ".join(verified.unknown) + ".")
    return AuditSection(
        name="verification",
        title="Verification",
        words=words,
        tables=(
            AuditTable(
                caption="Checks",
                head=("check", "result", "explanation"),
                rows=[
                    (check.name, "PASS" if check.passed else "FAIL", check.explanation)
                    for check in verified.checks
                ],
                left=3,
            ),
        ),
        within=verified.passed,
        results={
            "passed": verified.passed,
            "failed": [check.name for check in failed],
            "unknown": list(verified.unknown),
        },
        fault="the release does not match its manifest; ask its publisher",
    )


def _bounds_section(manifest: Mapping[str, Any]) -> AuditSection:
    """State what the guarantee allows, as sentences."""
    epsilon, delta = _promise(manifest)
    if math.isinf(epsilon):
        return _unbounded_section(manifest)
    allowed = partial(allowed_by_guarantee, epsilon=epsilon, delta=delta)
    sentences = [allowed_sentence(rate, allowed) for rate in _FALSE_ALARMS]
    advantage, area = allowed_advantage(epsilon=epsilon, delta=delta), area_below(allowed)
    accuracy = (1 + advantage) / 2
    unit = manifest["guarantee"]["unit"]
    return AuditSection(
        name="bounds",
        title="What an attacker can find",
        words=(
            sentences[_FALSE_ALARMS.index(0.01)],
            "This holds for every attacker, even one who knows all other rows, sees everything "
            f"that was released and has any computer. It is about the presence of {unit}.",
            f"An attacker who must decide whether {unit} is present, which has probability ½, is "
            f"right with probability at most {100 * accuracy:.3g} %. Any other attack, such as "
            f"inferring a value, succeeds at most {100 * advantage:.3g} percentage points more "
            f"often than if {unit} were not in the table.",
        ),
        tables=(
            AuditTable(
                caption=f"Bounds of ε = {epsilon:g}, δ = {delta:g}",
                head=("statement",),
                rows=[(sentence,) for sentence in sentences],
            ),
        ),
        figures=(_draw_bounds(allowed),),
        results={
            "epsilon": epsilon,
            "delta": delta,
            "true_positives": {
                f"{rate:g}": float(allowed(np.array([rate]))[0]) for rate in _FALSE_ALARMS
            },
            "auc": area,
            "advantage": advantage,
        },
    )


def _draw_bounds(allowed: AllowedRates) -> Markup:
    grid = np.linspace(0.0, 1.0, _CURVE_POINTS)
    curves = {
        "allowed": list(zip(grid.tolist(), allowed(grid).tolist(), strict=True)),
        "guessing": [(0.0, 0.0), (1.0, 1.0)],
    }
    return figure(
        draw_lines(curves, across="false alarms", up="members found", as_percent=True),
        "The most members that an attacker can find, by the share of false alarms.",
    )


def _unbounded_section(manifest: Mapping[str, Any]) -> AuditSection:
    return AuditSection(
        name="bounds",
        title="What an attacker can find",
        words=_unbounded_words(manifest),
        results={"epsilon": "inf"},
    )


def _unbounded_words(manifest: Mapping[str, Any]) -> Sequence[str]:
    claimed = manifest["guarantee"]
    if manifest["mode"] != "tested":
        return (f"{_NOTHING_PROMISED} An attacker may find every row.",)
    k = manifest["parameters"].get("k")
    model = (
        "nothing is promised of its model"
        if claimed["epsilon"] == "inf"
        else f"its model alone is ({claimed['epsilon']}, {claimed['delta']:g})-private"
    )
    return (
        f"Of each record, at least {k} rows are equally plausible seeds. The presence of a row is "
        f"not hidden; {model}.",
        f"Someone who knows {k} - 1 of {k} rows that share a prefix sees from one record that the "
        "last one is in the table. Many records together reveal more than each of them.",
    )
