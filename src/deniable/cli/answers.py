"""What a command tells while it runs and when it is done."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from deniable.pipeline import Watch


@contextmanager
def progress(*, quiet: bool) -> "Iterator[Watch]":
    """Show how far each stage has come, on a terminal; elsewhere, and if quiet, nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda _stage, _done, _of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def watch(stage: str, done: int, of: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=None if of == 1 else of)
            bars.update(tasks[stage], completed=done, total=of if done or of > 1 else None)

        yield watch


def program_name() -> str:
    """Return how this program can be called from here: as it was."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("deniable", "__main__.py"):
        return "python -m deniable"
    is_out_of_reach = called.stem == "deniable" and not shutil.which("deniable")
    return sys.argv[0] if is_out_of_reach else "deniable"


def claim_of(certificate: Any) -> dict[str, Any]:
    """Return what is claimed of a release, for JSON."""
    from deniable.release.manifest import number

    return {
        "mode": certificate.mode,
        "epsilon": number(certificate.cost.epsilon),
        "delta": certificate.cost.delta,
        "guarantee": certificate.sentence,
    }


def print_json(**content: Any) -> None:
    """Print one JSON object on a line of its own."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def say(*lines: str) -> None:
    """Print paragraphs, wrapped to the width of the terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line + "\n")
