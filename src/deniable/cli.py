"""The commands. Heavy things are imported where they are used, so that --help is quick."""

import dataclasses
import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from deniable.pipeline import Watch

app = typer.Typer(
    name="deniable",
    help="Full synthetic records with a privacy guarantee that is proved, printed and checkable.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

# The options of a run: the same for every command that learns or plans.
_OPTIONS: dict[str, tuple[Any, str]] = {
    "epsilon": (float, "ε of the whole release (tested: of the model); inf for no noise. [1.0]"),
    "delta": (float, "δ of the same. [1e-9]"),
    "mode": (str, "one-shot, seedless, tested or randomized. [one-shot]"),
    "k": (int, "Rows that must share what a record kept. [50]"),
    "omega": (str, "Attributes drawn anew: 9, a range 9-11, or auto. [auto]"),
    "gamma": (float, "Width of probability ranges, for a hidden ω. [4]"),
    "epsilon0": (float, "Noise of the randomized test's threshold. [the best]"),
    "t": (int, "Where the randomized test's proof splits. [the best]"),
    "omega_known": (str, "yes: test each candidate under its own ω; no: hide it. [yes]"),
    "profile": (str, "default or paper. [default]"),
    "data_use": (str, "whole: all rows serve every stage; split: each serves one. [whole]"),
    "max_cost": (int, "The most parent configurations of an attribute. [300]"),
    "estimator": (str, "What is done to noisy counts: norm-sub or clip. [norm-sub]"),
    "alpha": (float, "Prior count of every value in every configuration. [1]"),
    "rows_max": (int, "A public guess of the number of rows; steers noise only. [the schema's]"),
    "workers": (int, "Threads. [one a core]"),
    "config": (Path, "A TOML file with options."),
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a run; it receives those that were given as ``options``."""
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.name != "options"]
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, typer.Option(help=text, show_default=False)],
        )
        for name, (kind, text) in _OPTIONS.items()
    ]
    drafted = inspect.Parameter(
        "accept_drafted_schema",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option(help="Use descriptions nobody has confirmed.")],
    )

    def wrapped(**given: Any) -> None:
        options = {name: given.pop(name) for name in _OPTIONS}
        options["accept_drafted_schema"] = given.pop("accept_drafted_schema") or None
        command(**given, options=_assembled(options))

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__signature__ = signature.replace(parameters=[*own, *shared, drafted])  # type: ignore[attr-defined]
    return wrapped


def _assembled(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as ``Config`` wants them, a configuration file's included."""
    from deniable.config import read_options, require_known
    from deniable.errors import ConfigError

    file = options.pop("config")
    known = options["omega_known"]
    if known is not None:
        if known not in ("yes", "no"):
            raise ConfigError(f"--omega-known {known}: say yes or no")
        options["omega_known"] = known == "yes"
    written = read_options(file) if file is not None else {}
    require_known(written)
    return written | {name: value for name, value in options.items() if value is not None}


Table = Annotated[Path, typer.Argument(help="The confidential table: .csv, .csv.gz, .parquet.")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="What its columns may hold.")]
Records = Annotated[int, typer.Option("--records", help="How many records to release.")]
Key = Annotated[int | None, typer.Option("--key", help="Same artefact and key, same records.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback()
def common(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Full synthetic records with a privacy guarantee that is proved, printed and checkable."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(version_of("deniable"))
        raise typer.Exit


@app.command()
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Where the release goes.")] = Path("demo"),
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Synthesize the embedded table, start to release, in under a minute."""
    from deniable.demo import demo_schema, demo_table
    from deniable.pipeline import synthesize
    from deniable.release.whole import folders

    folders(out)
    with progress(quiet=quiet or as_json) as watch:
        release = synthesize(demo_table(), demo_schema(), records=10_000, watch=watch)
        release.write(out)
    _tell_release(release, out, 10_000, quiet=quiet, as_json=as_json)


@app.command()
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
        _print_json(artefact=str(out), **_claim(artefact.certificate))
    elif not quiet:
        _say(f"Artefact in {out}", artefact.guarantee)
        _say(f"Next: deniable generate {out} --records 10000 --out records.csv")


@app.command()
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
        _print_json(records=records, file=str(out), **_claim(release.certificate))
    elif not quiet:
        _say(f"{records:,} records in {out}", release.guarantee)


@app.command()
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


@app.command()
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
        _print_json(**answer)
    elif not quiet:
        from deniable.terminal import show_plan

        show_plan(answer)


@app.command()
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
        _print_json(passed=report.passed, checks=checks, unknown=list(report.unknown))
    elif not quiet:
        from deniable.terminal import show_report

        show_report(report.checks, report.unknown)
    report.require()


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


def _tell_release(release: Any, out: Path, records: int, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        _print_json(records=records, folder=str(out), **_claim(release.certificate))
    elif not quiet:
        _say(f"{records:,} records in {out}", release.guarantee)
        if release.certificate.claims_privacy:
            _say(
                f"Publish {out}/; keep {out}.internal/ to yourself. "
                f"{out}/manifest.json says what was spent; {_program()} verify {out} checks it."
            )


def _program() -> str:
    """Return how this program can be called from here."""
    return "deniable" if shutil.which("deniable") else sys.argv[0]


def _claim(certificate: Any) -> dict[str, Any]:
    from deniable.release.manifest import number

    return {
        "mode": certificate.mode,
        "epsilon": number(certificate.cost.epsilon),
        "delta": certificate.cost.delta,
        "guarantee": certificate.sentence,
    }


def _print_json(**content: Any) -> None:
    typer.echo(json.dumps(content, ensure_ascii=False))


def _say(*lines: str) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line + "\n")
