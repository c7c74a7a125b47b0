"""What commands print: progress bars, JSON, paragraphs, and the result of each command."""

import dataclasses
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.cli.progress_file import VARIABLE, file_progress
from deniable.cli.terminal import escape, print_line, red_output, unescaped_errors

if TYPE_CHECKING:
    from deniable.drafting.draft import Draft
    from deniable.evaluation.metrics import Metrics
    from deniable.release.artefact import Artefact
    from deniable.release.manifest import Certificate
    from deniable.release.release import Release
    from deniable.verification.claims import Check
    from deniable.workers import Progress

# Notes of a draft that are printed; the others are in the schema.
_MAX_NOTES_SHOWN = 10
# Printed after a run that read the table. Nothing is stored about earlier runs.
COSTS_ADD_UP = "Costs add up: every other run on the same table adds its own ε and δ to these."
# Columns of the narrowest terminal that lines are wrapped for.
_MIN_WIDTH = 20


@contextmanager
def show_progress(*, quiet: bool) -> "Iterator[Progress]":
    """Show a progress bar for each stage on a terminal; nothing elsewhere, or if quiet.

    If the variable DENIABLE_PROGRESS names a file, progress goes there instead.
    """
    if os.environ.get(VARIABLE) and (to_file := file_progress()) is not None:
        yield to_file
        return
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        from deniable.workers import no_progress

        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
    )
    # The bars move the cursor, so their codes must reach the terminal; names of stages are escaped.
    console = Console(file=unescaped_errors())
    with ProgressBars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, of: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(escape(stage), total=None if of == 1 else of)
            bars.update(tasks[stage], completed=done, total=of if done or of > 1 else None)

        yield report


def program_name() -> str:
    """The command that starts this program, as the user called it."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("deniable", "__main__.py"):
        return "python -m deniable"
    is_not_on_path = called.stem == "deniable" and not shutil.which("deniable")
    return sys.argv[0] if is_not_on_path else "deniable"


def count_records(number: int) -> str:
    """The number of records in words: "1 record", "10,000 records"."""
    return "1 record" if number == 1 else f"{number:,} records"


def print_json(**content: Any) -> None:
    """Print one JSON object on a line of its own, in ASCII, which every terminal can show."""
    print_line(json.dumps(content))


def print_text(*paragraphs: str) -> None:
    """Print paragraphs, wrapped to the width of the terminal, each with an empty line after it."""
    for paragraph in paragraphs:
        print_wrapped(paragraph)
        print_line()


def print_caution(caution: str) -> None:
    """Print, in red, that an ε or a δ promises little or nothing; nothing for usual ones."""
    if caution:
        with red_output():
            print_text(f"WARNING: {caution}")


def print_list(heading: str, items: Iterable[str]) -> None:
    """Print a heading and a list below it, wrapped, with an empty line after them."""
    print_wrapped(heading)
    for item in items:
        print_wrapped(f"- {item}", indent="  ")
    print_line()


def print_wrapped(text: str, *, indent: str = "") -> None:
    """Print a text literally, wrapped at spaces: names and paths are never cut.

    Args:
        text: The text.
        indent: Put before each line but the first.
    """
    width = max(_MIN_WIDTH, shutil.get_terminal_size().columns)
    lines = textwrap.wrap(
        escape(text),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        print_line(line)


def show_draft(draft: "Draft", out: Path, *, show_all: bool, quiet: bool, as_json: bool) -> None:
    """Print the result of ``init``: the open questions, and what to do next.

    Without ``show_all``, the ten most important ones; the schema lists all of them.
    """
    if as_json:
        cost = None if draft.cost is None else dataclasses.asdict(draft.cost)
        rules = {"drafted": draft.rules, "left_out": draft.rules_left_out}
        print_json(schema=str(out), notes=list(draft.notes), cost=cost, rules=rules)
    if quiet or as_json:
        return
    print_text(f"Draft in {out}")
    shown = draft.notes if show_all else draft.notes[:_MAX_NOTES_SHOWN]
    for note in shown:
        print_text(f"- {note}")
    if more := len(draft.notes) - len(shown):
        notes = "1 more note is" if more == 1 else f"{more} more notes are"
        print_text(f"{notes} at the top of {out}; init --all prints them all.")
    if draft.cost is not None:
        print_text("It was drafted with differential privacy: its cost is part of every total.")
    else:
        print_text(
            f"{out} was read off the table. It is as confidential as the table until you have "
            "checked each column and set confirmed = true."
        )
    print_text(f"Next: {program_name()} plan --schema {out}")


def summarize_claim(certificate: "Certificate") -> dict[str, Any]:
    """Summarize the guarantee of a release, for JSON."""
    from deniable.release.manifest import json_number

    return {
        "mode": certificate.mode,
        "epsilon": json_number(certificate.cost.epsilon),
        "delta": certificate.cost.delta,
        "guarantee": certificate.sentence,
        "caution": certificate.caution,
    }


def summarize_kept(artefact: "Artefact | None") -> dict[str, Any]:
    """Summarize for JSON what a model kept, by its noisy counts: numbers and sentences."""
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
        print_caution(release.certificate.caution)
        if release.artefact is not None:
            _show_kept(release.artefact)
        _warn_of_moved(release, out)
        if release.certificate.claims_privacy:
            print_text(_advise(release.certificate, out))
            free = " More records from the same artefact cost nothing."
            print_text(COSTS_ADD_UP + (free if release.artefact is not None else ""))
            print_text(f"Next: {program_name()} verify {out}")


def _warn_of_moved(release: "Release", out: Path) -> None:
    """Name the columns of which the schema moves many cells, to a person at a terminal only.

    Which columns these are follows from the exact rows, so no file, pipe or log may have it.
    """
    moved = release.internal.get("moved_columns", ())
    if moved and sys.stdout.isatty():
        print_text(
            f"WARNING: the schema has no value for many cells of {', '.join(moved)}: they were "
            "clipped, replaced or made other. Widen its bounds or lists if the values matter; "
            f"deniable evaluate shows how many. This is confidential, as is {out}.internal/."
        )


def show_artefact(artefact: "Artefact", out: Path, *, quiet: bool, as_json: bool) -> None:
    """Print the result of ``learn``: the guarantee, what was kept, and what to do next."""
    if as_json:
        claim = summarize_claim(artefact.certificate)
        print_json(artefact=str(out), **claim, **summarize_kept(artefact))
    elif not quiet:
        print_text(f"Artefact in {out}", artefact.guarantee)
        print_caution(artefact.certificate.caution)
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
    if certificate.caution:
        return f"After this WARNING, treat {out}/ like the table itself. {kept}"
    if certificate.mode == "tested":
        return (
            f"{out}/ is plausibly deniable, not differentially private: decide whether that "
            f"suffices before you publish it. {kept}"
        )
    return f"Publish {out}/. {kept}"


def show_metrics(metrics: "Metrics", out: Path) -> None:
    """Print the verdict of an evaluation, and where its report is."""
    if metrics.findings is not None:
        verdict = metrics.findings.verdict
        print_text(f"{verdict.grade.capitalize()}. {verdict.headline}")
        for sentence in verdict.findings:
            print_wrapped(f"- {sentence}", indent="  ")
        print_line()
        print_text("Confidential: the report is measured on real rows.")
    print_text(f"Report in {out}/report.html, numbers in {out}/metrics.json")


def show_verification(
    checks: "Iterable[Check]", unknown: Iterable[str], *, place: str, accepted: bool = False
) -> None:
    """Print each check as PASS, FAIL or INEXACT, what cannot be checked, and the verdict.

    Args:
        checks: The checks.
        unknown: What cannot be checked.
        place: The path of the release.
        accepted: Whether inexact checks, of a release of another platform, are accepted.
    """
    failed = inexact = total = 0
    for check in checks:
        total, failed = total + 1, failed + (not check.passed)
        inexact += check.passed and not check.exact
        result = ("PASS" if check.exact else "INEXACT") if check.passed else "FAIL"
        # The indent keeps a text from a manifest from looking like a line of this report.
        print_wrapped(f"{result}  {check.name}: {check.explanation}", indent=" " * 6)
    print_line()
    print_wrapped("Not checked, because files alone cannot show it:")
    for sentence in unknown:
        print_wrapped(f"  - {sentence}", indent=" " * 4)
    if failed:
        print_line()
        print_wrapped(f"FAIL: {failed} of {total} checks failed; do not trust {place}.")
    elif inexact:
        print_line()
        print_wrapped(
            f"{inexact} of {total} checks of {place} have a tolerance for another platform"
            f"{', which was accepted' if accepted else ''}."
        )
        # On a line of its own, so that it is the last one however long the path is.
        print_wrapped(f"{'PASS, but ' if accepted else ''}NOT VERIFIED EXACTLY")
    else:
        print_line()
        print_wrapped(f"PASS: all {total} checks passed; {place} is what its manifest states.")
