"""The commands, in the order people need them."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deniable.cli.audit_commands import audit
from deniable.cli.generate_commands import generate, verify
from deniable.cli.options import (
    OUTPUT_PANEL,
    Clean,
    DraftDelta,
    DraftEpsilon,
    DraftProfile,
    FileFormat,
    HeaderLine,
    Json,
    Key,
    LargeDelta,
    LastTarget,
    Models,
    PanelCommand,
    Quiet,
    RecordCount,
    RecordsOfRun,
    RowsPerUnit,
    Runs,
    SchemaPath,
    SdvMetadata,
    TableFile,
    TablePath,
    TableRows,
    Target,
    Thorough,
    UnitColumn,
    app,
    given_options,
    output_option,
    whole_number,
    with_options,
)
from deniable.cli.output import (
    print_json,
    print_text,
    show_artefact,
    show_draft,
    show_metrics,
    show_progress,
    show_release,
)
from deniable.cli.plan_tables import show_plan
from deniable.cli.query_command import query
from deniable.cli.studio_command import studio
from deniable.files import current_tracker, require_regular_file

__all__ = ["app", "audit", "generate", "query", "studio", "verify"]

AllNotes = Annotated[
    bool, typer.Option("--all", help="Show all notes, not only the most important.")
]
ReportEdition = Annotated[
    Literal["internal", "public"],
    typer.Option(help="internal: measured on real rows, confidential; public: may be shared."),
]
_DEMO_RECORDS = 10_000
_EMBEDDED_NOTE = (
    "These figures are measured on the embedded table, which is itself synthetic. They are no "
    "reproduction of the paper. Use --data for a table of your own."
)


@app.command(cls=PanelCommand, short_help="Run everything on an embedded table.")
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder of the release.")] = Path("demo"),
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Synthesize and evaluate the embedded table, from start to report, in under a minute."""
    from deniable.demo import demo_schema, demo_table
    from deniable.evaluation.classifiers import require_scikit_learn
    from deniable.evaluation.effort import Effort
    from deniable.evaluation.evaluate import evaluate
    from deniable.pipeline.api import synthesize
    from deniable.release.release import release_folders

    require_scikit_learn()  # before the release is written, which stays if the report fails
    public, internal = release_folders(out, clean=clean)
    current_tracker().expected = 3  # the release, its internal folder, and then the report
    table, schema = demo_table(), demo_schema()
    with show_progress(quiet=quiet or as_json) as progress:
        release = synthesize(table, schema, records=_DEMO_RECORDS, progress=progress)
        release.write(out, progress=progress)
        records, report = public / "synthetic.csv", internal / "report"
        evaluate(table, records, schema, out=report, effort=Effort.quick(), progress=progress)
    show_release(release, out, _DEMO_RECORDS, quiet=quiet, as_json=as_json)
    if not (quiet or as_json):
        print_text(f"Utility report, confidential: {out}.internal/report/report.html")


@app.command(cls=PanelCommand, short_help="Draft a schema from a table.")
def init(
    table: TableFile,
    *,
    out: Annotated[Path, typer.Option(help="Schema to write.")] = Path("schema.toml"),
    draft_epsilon: DraftEpsilon = None,
    draft_delta: DraftDelta = 1e-10,
    accept_large_delta: LargeDelta = False,
    unit: UnitColumn = None,
    max_rows_per_unit: RowsPerUnit = None,
    profile: DraftProfile = "default",
    header: HeaderLine = None,
    sdv: SdvMetadata = None,
    show_all: AllNotes = False,
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draft a schema from a table: types, domains, constraints, and a list of open questions.

    A plain draft is read off the table: it is as confidential as the table until someone who knows
    the data dictionary has checked each column and set confirmed = true.
    """
    from deniable.drafting.draft import draft_schema
    from deniable.errors import DataError
    from deniable.interchange.sdv import merge_sdv, read_sdv
    from deniable.release.atomic_files import require_free, write_text

    require_regular_file(table, DataError)  # first: its name may be misspelt, the output precious
    require_free(out, clean=clean)
    with show_progress(quiet=quiet or as_json) as progress:
        draft = draft_schema(
            table,
            draft_epsilon=draft_epsilon,
            draft_delta=draft_delta,
            accept_large_delta=accept_large_delta,
            unit=unit,
            max_rows_per_unit=max_rows_per_unit or (None if unit is None else 1),
            profile=profile,
            header=header,
            progress=progress,
        )
    text = draft.text if sdv is None else merge_sdv(read_sdv(sdv), draft.text).text()
    write_text(out, text, confidential=draft.cost is None)
    show_draft(draft, out, show_all=show_all, quiet=quiet, as_json=as_json)


@app.command(cls=PanelCommand, short_help="Show the cost of a run; no row is read.")
@with_options
def plan(
    *,
    schema: SchemaPath,
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            parser=whole_number,
            help="Number of records, if known.",
            rich_help_panel="Common",
        ),
    ] = None,
    rows: TableRows = None,
    show_all: Annotated[
        bool,
        typer.Option("--all", help="Compare all modes too.", rich_help_panel=OUTPUT_PANEL),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Show the cost of a run, the noise of every stage, and a forecast of what will survive.

    No row is read.
    """
    from deniable.config import Config
    from deniable.pipeline.certificate import planned_caution
    from deniable.pipeline.plan_report import report_plan
    from deniable.pipeline.run_plan import plan_run
    from deniable.schema.schema import Schema

    config, known = Config.assemble(given_options(options)), Schema.read(schema)
    run = plan_run(known, config, records=records)
    compares = show_all or as_json or run.mode == "randomized"  # its cost depends on the records
    report = report_plan(run, known, config, records=records, rows=rows, compares_modes=compares)
    caution = planned_caution(run, config, known, rows=rows)
    if as_json:
        print_json(**report, caution=caution)
    elif not quiet:
        show_plan(report, caution=caution, show_all=show_all)


@app.command(cls=PanelCommand, short_help="Turn a table into synthetic records.")
@with_options
def synthesize(
    *,
    table: TablePath,
    schema: SchemaPath,
    records: RecordCount,
    out: Annotated[Path, output_option("Folder of the release; must not exist.")],
    file_format: FileFormat = "csv",
    key: Key = None,
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Turn a confidential table into synthetic records with a privacy guarantee."""
    from deniable.pipeline import api
    from deniable.release.release import release_folders

    release_folders(out, clean=clean)
    with show_progress(quiet=quiet or as_json) as progress:
        release = api.synthesize(
            table, schema, records=records, key=key, progress=progress, **given_options(options)
        )
        release.write(out, file_format=file_format, progress=progress)
    show_release(release, out, records, quiet=quiet, as_json=as_json)


@app.command(cls=PanelCommand, short_help="Measure how useful synthetic records are.")
def evaluate(
    real: Annotated[Path, typer.Argument(help="Confidential table.", show_default=False)],
    synthetic: Annotated[Path, typer.Argument(help="Records to evaluate.", show_default=False)],
    *,
    schema: SchemaPath,
    out: Annotated[Path, output_option("Folder of the report; must not exist.")],
    holdout: Annotated[
        Path | None, typer.Option(help="Real rows that the release was not learnt from.")
    ] = None,
    target: Target = None,
    edition: ReportEdition = "internal",
    thorough: Thorough = False,
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure how useful synthetic records are, and write a report.

    An internal report discloses something about the real table and must not leave. A public report
    is made from the manifest and the artefact alone.
    """
    from deniable.evaluation.effort import Effort
    from deniable.evaluation.evaluate import evaluate as measure
    from deniable.release.atomic_files import require_free
    from deniable.schema.schema import Schema

    require_free(out, clean=clean)

    with show_progress(quiet=quiet or as_json) as progress:
        metrics = measure(
            real,
            synthetic,
            Schema.read(schema),
            holdout=holdout,
            target=target,
            out=out,
            edition=edition,
            effort=Effort() if thorough else Effort.quick(),
            progress=progress,
        )
    if as_json:
        print_json(folder=str(out), **metrics.document())
    elif not quiet:
        show_metrics(metrics, out)


app.command(cls=PanelCommand, short_help="Check a release against its manifest.")(verify)


@app.command(cls=PanelCommand, short_help="Learn an artefact from a table.")
@with_options
def learn(
    *,
    table: TablePath,
    schema: SchemaPath,
    out: Annotated[Path, output_option("Folder of the artefact; must not exist.")],
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Learn an artefact with noise: any number of records can be generated from it."""
    from deniable.pipeline import api
    from deniable.release.atomic_files import require_free

    require_free(out, clean=clean)
    with show_progress(quiet=quiet or as_json) as progress:
        artefact = api.learn(table, schema, progress=progress, **given_options(options))
        artefact.save(out)
    show_artefact(artefact, out, quiet=quiet, as_json=as_json)


app.command(cls=PanelCommand, short_help="Generate records from an artefact.")(generate)
app.command(cls=PanelCommand, short_help="Estimate counts and shares, with error bars.")(query)


@app.command(cls=PanelCommand, short_help="Reproduce the paper's evaluation.")
def reproduce(
    *,
    data: Annotated[Path | None, typer.Option(help="Rows to learn from. [embedded]")] = None,
    test: Annotated[Path | None, typer.Option(help="Rows to test on. [embedded]")] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of both.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of tables and figures.", show_default=False)],
    target: LastTarget = None,
    runs: Runs = None,
    models: Models = None,
    records: RecordsOfRun = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce the paper's evaluation for its method and ours, next to its numbers.

    An interrupted run resumes when it is started again with the same folder and options; only
    --runs may grow. A table of 70,000 rows takes about 20 minutes of one core.
    """
    from deniable.demo import demo_schema, demo_table
    from deniable.errors import ConfigError
    from deniable.reproduction.experiments import Setup
    from deniable.reproduction.reproduce import reproduce as run
    from deniable.schema.schema import Schema

    if (data is None) != (schema is None) or (test is not None and data is None):
        raise ConfigError("--data requires --schema, and --test requires --data")
    setup = Setup.chosen(embedded=data is None, runs=runs, models=models, records=records)
    with show_progress(quiet=quiet or as_json) as progress:
        page = run(
            data or demo_table(),
            Schema.read(schema) if schema else demo_schema(),
            out,
            test=test,
            target=target,
            setup=setup,
            note="" if data else _EMBEDDED_NOTE,
            progress=progress,
        )
    if as_json:
        print_json(folder=str(out), page=str(page))
    elif not quiet:
        if not data:
            print_text(_EMBEDDED_NOTE)
        print_text(f"Tables and figures in {page}; tables as text in {page.with_name('tables.md')}")


app.command(cls=PanelCommand, short_help="Attack the mechanism, a table's releases, or one.")(audit)
app.command(cls=PanelCommand, short_help="Open the whole workflow in a browser.")(studio)
