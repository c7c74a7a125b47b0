"""The commands ``generate`` and ``verify``: generate records of an artefact, check a release."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deniable.cli.options import (
    Clean,
    Engine,
    Json,
    Key,
    Master,
    OpenCluster,
    PartFormat,
    Quiet,
    RecordsPath,
    Workers,
    positive_number,
    whole_number,
)
from deniable.cli.output import (
    count_records,
    print_caution,
    print_json,
    print_text,
    show_progress,
    show_verification,
    summarize_claim,
)
from deniable.cli.terminal import print_error
from deniable.errors import ConfigError

if TYPE_CHECKING:
    from deniable.answers.conditional_release import ConditionalRelease

_CONDITION_PANEL = "Conditions"
_GIVEN_WARNING = (
    "Warning: the given rows were copied into {path}. They were not declared public, so it is "
    "internal: only you can read it, and it must not leave. If the rows are public, use "
    "--given-is-public."
)

_EXACT = {
    "exact": "The distribution is exact.",
    "nearly exact": "The distribution is nearly exact: the request cuts through bins of a column "
    "that has a constraint.",
}

ArtefactPath = Annotated[
    Path,
    typer.Argument(help="Artefact folder: from learn, or RELEASE/artefact.", show_default=False),
]
GeneratedCount = Annotated[
    int | None,
    typer.Option(
        "--records",
        parser=whole_number,
        help="Number of records to generate; not with --given.",
        show_default=False,
        rich_help_panel="Common",
    ),
]
Given = Annotated[
    Path | None,
    typer.Option(
        help="Rows to complete: a table with some cells filled, and the others empty or absent.",
        show_default=False,
        rich_help_panel=_CONDITION_PANEL,
    ),
]
RecordsEach = Annotated[
    int | None,
    typer.Option(
        "--records-each",
        parser=positive_number,
        help="How often each given row is completed. [1]",
        show_default=False,
        rich_help_panel=_CONDITION_PANEL,
    ),
]
GivenIsPublic = Annotated[
    bool,
    typer.Option(
        "--given-is-public",
        help="Declare the given rows public, so that the result may leave.",
        rich_help_panel=_CONDITION_PANEL,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="<condition>",
        help="Condition on the records, such as 'age >= 65 and income = \"high\"'.",
        show_default=False,
        rich_help_panel=_CONDITION_PANEL,
    ),
]
BalanceShares = Annotated[
    str | None,
    typer.Option(
        "--balance",
        metavar="<column>",
        help="Column whose values get equal shares, or shares such as 'income: 0.5, 0.5'.",
        show_default=False,
        rich_help_panel=_CONDITION_PANEL,
    ),
]
Against = Annotated[
    Path | None, typer.Option(help="The original table: also check the claims about its rows.")
]
ArtefactOfFile = Annotated[
    Path | None,
    typer.Option(help="Artefact of a file of records: also generate the file again."),
]
GivenOfFile = Annotated[
    Path | None, typer.Option(help="Rows that a file of records completes, with --artefact.")
]


def generate(
    artefact: ArtefactPath,
    *,
    records: GeneratedCount = None,
    out: RecordsPath,
    file_format: PartFormat = None,
    given: Given = None,
    records_each: RecordsEach = None,
    given_is_public: GivenIsPublic = False,
    where: Where = None,
    balance: BalanceShares = None,
    key: Key = None,
    workers: Workers = None,
    engine: Engine = "local",
    master: Master = None,
    accept_open_cluster: OpenCluster = False,
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Generate records from an artefact. The confidential table is not needed.

    Records may satisfy a condition, have shares of a column's values, or complete given rows.
    """
    if clean:
        from deniable.release.atomic_files import remove_litter

        remove_litter(out)
    drawn: dict[str, Any] = {"key": key, "workers": workers}
    shown: dict[str, Any] = {"quiet": quiet, "as_json": as_json}
    if given is None:
        _require_records(records, bool(records_each) or given_is_public)
    if engine == "local":
        _require_no_cluster(file_format, master, accept_open_cluster)
    if given is None and where is None and balance is None:
        drawn |= {"engine": engine, "master": master, "accept_open_cluster": accept_open_cluster}
        _generate_plain(artefact, records or 0, out, file_format or "csv", drawn, **shown)
        return
    if engine != "local":
        raise ConfigError("--given, --where and --balance need --engine local")
    request: dict[str, Any] = {"given": given, "where": where, "balance": balance, **drawn}
    if given is not None:
        request |= {"records_each": records_each or 1, "given_is_public": given_is_public}
    _generate_conditional(artefact, records, out, request, **shown)


def _require_no_cluster(
    file_format: str | None, master: str | None, accept_open_cluster: bool
) -> None:
    """Refuse options of a cluster that would have no effect."""
    if file_format is not None:
        raise ConfigError(
            "--format needs --engine spark: on this machine, the format follows from the name in "
            "--out"
        )
    if master is not None or accept_open_cluster:
        raise ConfigError("--master and --accept-open-cluster need --engine spark")


def _require_records(records: int | None, of_given: bool) -> None:
    """Refuse a request without given rows that has their options, or no number of records."""
    if of_given:
        raise ConfigError("--records-each and --given-is-public need --given")
    if records is None:
        raise ConfigError("give --records: the number of records to generate")


def _generate_conditional(
    artefact: Path,
    records: int | None,
    out: Path,
    request: dict[str, Any],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    from deniable.answers.conditional_release import generate_conditional
    from deniable.cli.sealed_artefact import load_sealed

    release = generate_conditional(load_sealed(artefact), records, **request)
    with show_progress(quiet=quiet or as_json) as progress:
        path = release.write_file(out, progress=progress)
    _show_conditional(release, path, quiet=quiet, as_json=as_json)


def _show_conditional(
    release: "ConditionalRelease", path: Path, *, quiet: bool, as_json: bool
) -> None:
    inference = release.tally.document()
    number = release.source.number
    if as_json:
        claim = summarize_claim(release.certificate)
        internal = release.is_internal
        print_json(records=number, file=str(path), internal=internal, inference=inference, **claim)
    elif not quiet:
        error = inference.get("total_variation")
        how = (
            _EXACT[inference["method"]]
            if error is None
            else "The model is too wide for exact inference: the distribution is approximate, with "
            f"an estimated total variation of {error:g}."
        )
        print_text(count_records(number) + f" in {path}. {how}", release.guarantee)
        print_caution(release.certificate.caution)
    # Also with --quiet: the file has another name than the one that was asked for.
    if release.is_internal:
        print_error(_GIVEN_WARNING.format(path=path))


def _generate_plain(
    artefact: Path,
    records: int,
    out: Path,
    file_format: Literal["csv", "parquet"],
    options: dict[str, Any],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    from deniable.cli.sealed_artefact import load_sealed
    from deniable.pipeline import api

    loaded = load_sealed(artefact)
    with show_progress(quiet=quiet or as_json) as progress:
        release = api.generate(loaded, records, **options)
        if options["engine"] == "spark":
            release.write(out, file_format=file_format, progress=progress)
        else:
            release.write_file(out, progress=progress)
    if as_json:
        print_json(records=records, file=str(out), **summarize_claim(release.certificate))
    elif not quiet:
        print_text(count_records(records) + f" in {out}", release.guarantee)
        print_caution(release.certificate.caution)


def verify(
    release: Annotated[
        Path,
        typer.Argument(help="Release, artefact, or file of generated records.", show_default=False),
    ],
    *,
    against: Against = None,
    artefact: ArtefactOfFile = None,
    given: GivenOfFile = None,
    accept_other_platform: Annotated[
        bool,
        typer.Option(
            "--accept-other-platform",
            help="Accept tables and Parquet bytes that only another platform can verify exactly.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a release against its manifest, from its files alone. Exit code 1: it fails."""
    from deniable.answers.verify_records import verify as verify_release

    report = verify_release(
        release,
        against=against,
        artefact=artefact,
        given=given,
        accept_other_platform=accept_other_platform,
    )
    if as_json:
        checks = [dataclasses.asdict(check) for check in report.checks]
        exact = not report.inexact
        print_json(passed=report.passed, exact=exact, checks=checks, unknown=list(report.unknown))
    elif not quiet:
        show_verification(
            report.checks, report.unknown, place=str(release), accepted=accept_other_platform
        )
    report.require()
