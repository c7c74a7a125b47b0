"""Results of ``synthesize`` and ``learn``: the guarantee, what the noise left, and what is next."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.cli.output import count_records, print_json, print_list, print_text, program_name

if TYPE_CHECKING:
    from deniable.release.artefact import Artefact
    from deniable.release.manifest import Certificate
    from deniable.release.release import Release

# Printed after a run that read the table. Nothing is stored about earlier runs.
COSTS_ADD_UP = "Costs add up: every other run on the same table adds its own ε and δ to these."


def summarize_claim(certificate: "Certificate") -> dict[str, Any]:
    """Summarize the guarantee of a release, for JSON."""
    from deniable.release.manifest import json_number

    return {
        "mode": certificate.mode,
        "epsilon": json_number(certificate.cost.epsilon),
        "delta": certificate.cost.delta,
        "guarantee": certificate.sentence,
    }


def summarize_kept(artefact: "Artefact | None") -> dict[str, Any]:
    """Summarize what a model kept by its own noisy counts, for JSON: figures, and in words."""
    kept = None if artefact is None else artefact.kept
    figures = None if kept is None else {**kept.document(), "text": list(kept.sentences)}
    return {"kept": figures, "warnings": [kept.warning] if kept and kept.warning else []}


def show_release(
    release: "Release", out: Path, records: int, *, quiet: bool, as_json: bool
) -> None:
    """Print the result of a run: the guarantee, and what may be published."""
    if as_json:
        claim, kept = summarize_claim(release.certificate), summarize_kept(release.artefact)
        print_json(records=records, folder=str(out), **claim, **kept)
    elif not quiet:
        print_text(count_records(records) + f" in {out}", release.guarantee)
        if release.artefact is not None:
            _show_kept(release.artefact)
        if release.certificate.claims_privacy:
            print_text(_advise(release.certificate, out))
            free = " More records from the same artefact cost nothing."
            print_text(COSTS_ADD_UP + (free if release.artefact is not None else ""))
            print_text(f"Next: {program_name()} verify {out}")


def show_artefact(artefact: "Artefact", out: Path, *, quiet: bool, as_json: bool) -> None:
    """Print the result of ``learn``: the guarantee, what was kept, and what to do next."""
    if as_json:
        claim = summarize_claim(artefact.certificate)
        print_json(artefact=str(out), **claim, **summarize_kept(artefact))
    elif not quiet:
        print_text(f"Artefact in {out}", artefact.guarantee)
        _show_kept(artefact)
        if artefact.certificate.claims_privacy:
            print_text(COSTS_ADD_UP)
        print_text(f"Next: {program_name()} generate {out} --records 10000 --out records.csv")


def _show_kept(artefact: "Artefact") -> None:
    """Print what the model kept, by its own noisy counts; warn if most of it is noise."""
    kept = artefact.kept
    if kept is not None:
        print_list("What the noise left, by the noisy counts alone:", kept.sentences)
        print_text(*([f"WARNING: {kept.warning}"] if kept.warning else []))


def _advise(certificate: "Certificate", out: Path) -> str:
    """Advise whether a release may be published."""
    kept = f"Keep {out}.internal/ confidential. {out}/manifest.json lists the costs."
    requested = float(certificate.parameters["epsilon"])
    if certificate.cost.epsilon > requested:
        return (
            f"WARNING: ε = {certificate.cost.epsilon:g} exceeds the requested ε = {requested:g}. "
            "The paper's formula meets the request; the true cost does not (docs/guarantee.md). "
            f"{kept}"
        )
    if certificate.mode == "tested":
        return (
            f"{out}/ is plausibly deniable, not differentially private: decide whether that "
            f"suffices before you publish it. {kept}"
        )
    return f"Publish {out}/. {kept}"
