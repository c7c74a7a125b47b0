"""The command ``audit``: attack the mechanism, the releases of a table, or one release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.options import (
    Json,
    Quiet,
    given_options,
    positive_number,
    with_options,
)
from deniable.cli.output import print_json, print_list, print_text, show_progress
from deniable.errors import ConfigError

if TYPE_CHECKING:
    from deniable.audit.audit_report import AuditReport
    from deniable.workers import Progress

_USAGE = (
    "choose what to audit: --mechanism (no table), TABLE --schema S --out DIR (attacks on a table) "
    "or RELEASE (what an outsider can find out)"
)


AuditedPath = Annotated[
    Path | None, typer.Argument(help="Table (with --schema), or release.", show_default=False)
]
Mechanism = Annotated[
    bool,
    typer.Option(
        "--mechanism",
        help="Attack the shipped mechanism on worst-case tables; no table is needed.",
        rich_help_panel="Common",
    ),
]
AuditedSchema = Annotated[
    Path | None, typer.Option(help="Schema of the table (schema.toml).", rich_help_panel="Common")
]
AuditFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the report. An interrupted audit resumes there.", rich_help_panel="Common"
    ),
]
Holdout = Annotated[
    Path | None, typer.Option(help="Real rows that are not in the table.", rich_help_panel="Common")
]
AuditRuns = Annotated[
    int | None,
    typer.Option(
        "--runs",
        parser=positive_number,
        help="Runs with and without the row, each. [what takes two minutes]",
        rich_help_panel="Common",
    ),
]
Plant = Annotated[
    str | None,
    typer.Option(
        metavar="<fault>",
        help="With --mechanism: plant a fault, which the audit must find: half-noise, fixed-seed, "
        "shared-noise or row-count.",
        rich_help_panel="Common",
    ),
]


@with_options
def audit(
    *,
    source: AuditedPath = None,
    mechanism: Mechanism = False,
    schema: AuditedSchema = None,
    out: AuditFolder = None,
    holdout: Holdout = None,
    runs: AuditRuns = None,
    plant: Plant = None,
    quiet: Quiet = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Attack our own promise, and print the result next to the bound. Exit code 1: exceeded.

    --mechanism: worst-case tables, the shipped code and the system's noise. TABLE --schema S:
    attacks on this table; the report is confidential. RELEASE: what an outsider can find out.
    """
    with show_progress(quiet=quiet or as_json) as progress:
        if mechanism:
            _refuse(source=source, schema=schema, holdout=holdout)
            report = _audit_mechanism(given_options(options), out, runs, plant, progress)
        elif schema is not None:
            _refuse(plant=plant)
            chosen = {"holdout": holdout, "runs": runs, **given_options(options)}
            report = _audit_table(source, schema, out, progress, chosen)
        else:
            _refuse(plant=plant, holdout=holdout, runs=runs)
            report = _audit_release(source, out)
    if as_json:
        print_json(**report.document())
    elif not quiet:
        _show(report, out)
    report.require()


def _audit_mechanism(
    options: dict[str, Any],
    out: Path | None,
    runs: int | None,
    plant: str | None,
    progress: "Progress",
) -> "AuditReport":
    from deniable.audit.mechanism import audit_mechanism

    return audit_mechanism(out=out, runs=runs, plant=plant, progress=progress, **options)


def _audit_table(
    table: Path | None,
    schema: Path,
    out: Path | None,
    progress: "Progress",
    options: dict[str, Any],
) -> "AuditReport":
    from deniable.audit.table_audit import audit_table

    if table is None or out is None:
        raise ConfigError("an audit of a table needs TABLE, --schema and --out")
    return audit_table(table, schema, out=out, progress=progress, **options)


def _audit_release(release: Path | None, out: Path | None) -> "AuditReport":
    from deniable.audit.release_audit import audit_release

    if release is None:
        raise ConfigError(_USAGE)
    return audit_release(release, out=out)


def _refuse(**given: object) -> None:
    """Refuse options that this kind of audit does not use."""
    for name, value in given.items():
        if value is not None:
            what = "the argument" if name == "source" else f"--{name}"
            raise ConfigError(f"{what} does not fit this kind of audit; {_USAGE}")


def _show(report: "AuditReport", out: Path | None) -> None:
    """Print the result, and where the page is."""
    print_list(report.headline, report.findings)
    if out is not None:
        print_text(f"Report in {out}/audit.html, numbers in {out}/audit.json")
