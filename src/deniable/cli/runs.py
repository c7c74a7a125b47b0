"""The commands of the road itself: plan, learn, generate, synthesize, verify; and the demo."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli.answers import claim_of, print_json, program_name, progress, say
from deniable.cli.options import Json, Key, Quiet, Records, SchemaFile, Table, app, with_options

__all__ = ["app"]


@app.command(short_help="The embedded table, start to report.")
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Where the release goes.")] = Path("demo"),
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Synthesize and evaluate the embedded table, start to report, in under a minute."""
    from deniable.demo import demo_schema, demo_table
    from deniable.evaluation.effort import Effort
    from deniable.evaluation.run import evaluate
    from deniable.pipeline import synthesize
    from deniable.release.whole import folders

    target, internal = folders(out)
    table, schema = demo_table(), demo_schema()
    with progress(quiet=quiet or as_json) as watch:
        release = synthesize(table, schema, records=10_000, watch=watch)
        release.write(out)
        records, report = target / "synthetic.csv", internal / "report"
        evaluate(table, records, schema, out=report, effort=Effort.quick(), watch=watch)
    _tell_release(release, out, 10_000, quiet=quiet, as_json=as_json)
    if not (quiet or as_json):
        say(f"What the records are worth: {out}.internal/report/report.html, for you alone.")


@app.command(short_help="Learn an artefact from a table, with noise.")
@with_options
def learn(
    *,
    table: Table,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="The folder of the artefact.")],
    quiet: Quiet = False,
    as_json: Json = False,
    options: dict[str, Any],
) -> None:
    """Learn an artefact, with noise: any number of records can be generated from it."""
    from deniable import pipeline
    from deniable.data.schema import Schema
    from deniable.release.records import require_free

    require_free(out)
    with progress(quiet=quiet or as_json) as watch:
        artefact = pipeline.learn(table, Schema.read(schema), watch=watch, **options)
        artefact.save(out)
    if as_json:
        print_json(artefact=str(out), **claim_of(artefact.certificate))
    elif not quiet:
        say(f"Artefact in {out}", artefact.guarantee)
        say(f"Next: {program_name()} generate {out} --records 10000 --out records.csv")


@app.command(short_help="Generate records from an artefact.")
def generate(
    artefact: Annotated[Path, typer.Argument(help="A folder that deniable learn wrote.")],
    *,
    records: Records,
    out: Annotated[Path, typer.Option(help="The file: .csv, .csv.gz or .parquet.")],
    key: Key = None,
    workers: Annotated[int | None, typer.Option(help="Threads. [one a core]")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Generate records from an artefact. The confidential table is not needed."""
    from deniable.pipeline import generate as generate_records
    from deniable.release.storage import load

    with progress(quiet=quiet or as_json) as watch:
        learnt = load(artefact)
        release = generate_records(learnt, records, key=key, workers=workers, watch=watch)
        release.write_file(out)
    if as_json:
        print_json(records=records, file=str(out), **claim_of(release.certificate))
    elif not quiet:
        say(f"{records:,} records in {out}", release.guarantee)


@app.command(short_help="From a table to records that may leave.")
@with_options
def synthesize(
    *,
    table: Table,
    schema: SchemaFile,
    records: Records,
    out: Annotated[Path, typer.Option(help="The folder of the release.")],
    file_format: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    key: Key = None,
    quiet: Quiet = False,
    as_json: Json = False,
    options: dict[str, Any],
) -> None:
    """Turn a confidential table into records that may leave, and say what was promised."""
    from deniable import pipeline
    from deniable.data.schema import Schema
    from deniable.errors import ConfigError
    from deniable.release.whole import folders

    if file_format not in ("csv", "parquet"):
        raise ConfigError(f"--format {file_format}: say csv or parquet")
    folders(out)
    with progress(quiet=quiet or as_json) as watch:
        release = pipeline.synthesize(
            table, Schema.read(schema), records=records, key=key, watch=watch, **options
        )
        release.write(out, file_format="parquet" if file_format == "parquet" else "csv")
    _tell_release(release, out, records, quiet=quiet, as_json=as_json)


@app.command(short_help="What a run would cost; no row is read.")
@with_options
def plan(
    *,
    schema: SchemaFile,
    records: Annotated[int | None, typer.Option(help="How many records, if known.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    options: dict[str, Any],
) -> None:
    """Show what a run would cost, and the noise it means, before a row is read."""
    from deniable.config import Config
    from deniable.data.schema import Schema
    from deniable.forecast import forecast
    from deniable.spending import plan_run

    config = Config.assemble(options)
    run = plan_run(Schema.read(schema), config, records=records)
    answer = forecast(run, config, records=records)
    if as_json:
        print_json(**answer)
    elif not quiet:
        from deniable.terminal import show_plan

        show_plan(answer)


@app.command(short_help="Check a release against its manifest.")
def verify(
    release: Annotated[Path, typer.Argument(help="A release, an artefact, or generated records.")],
    *,
    against: Annotated[
        Path | None, typer.Option(help="The confidential table, for its holder.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a release against its manifest, from its files alone. Exit code 1: it is not so."""
    from deniable.release.verify import verify as verify_release

    report = verify_release(release, against=against)
    if as_json:
        checks = [dataclasses.asdict(check) for check in report.checks]
        print_json(passed=report.passed, checks=checks, unknown=list(report.unknown))
    elif not quiet:
        from deniable.terminal import show_report

        show_report(report.checks, report.unknown)
    report.require()


def _tell_release(release: Any, out: Path, records: int, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        print_json(records=records, folder=str(out), **claim_of(release.certificate))
    elif not quiet:
        say(f"{records:,} records in {out}", release.guarantee)
        if release.certificate.claims_privacy:
            say(
                f"Publish {out}/; keep {out}.internal/ to yourself. "
                f"{out}/manifest.json says what was spent; {program_name()} verify {out} checks it."
            )
