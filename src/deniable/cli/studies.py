"""The commands around the road: drafting a schema before it, evaluation and the paper after it."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.answers import print_json, program_name, progress, say
from deniable.cli.options import Json, Quiet, SchemaFile, Table
from deniable.cli.runs import app

if TYPE_CHECKING:
    from deniable.drafting.schemas import Draft
    from deniable.evaluation.recipes import Setup

__all__ = ["app"]

# The sizes of a reproduction.
Runs = Annotated[
    int | None, typer.Option(min=1, help="Independent runs of each row. [5; embedded: 2]")
]
Models = Annotated[
    int | None, typer.Option(min=1, help="Noisy models to average. [20; embedded: 5]")
]
Released = Annotated[
    int | None, typer.Option(min=1, help="Records of a release. [as many as are learnt from]")
]

_EMBEDDED = (
    "These figures are of the embedded table, which is itself synthetic: nobody in it exists, and "
    "what they say of the paper is worth no more than that. Give --data for a table of your own."
)


@app.command(short_help="Draft a schema from a table.")
def init(
    table: Table,
    *,
    out: Annotated[Path, typer.Option(help="The schema to write.")] = Path("schema.toml"),
    draft_epsilon: Annotated[
        float | None, typer.Option(help="Draft with differential privacy, for this ε of the total.")
    ] = None,
    draft_delta: Annotated[float, typer.Option(help="δ of the same.")] = 1e-10,
    unit: Annotated[
        str | None, typer.Option(help="The column that says whose row it is, if some have several.")
    ] = None,
    max_rows_per_unit: Annotated[
        int | None, typer.Option(help="The most rows of one unit that count. [1]")
    ] = None,
    sdv: Annotated[
        Path | None, typer.Option(help="SDV metadata (JSON, V1) to take the types from.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draft a schema from a table: types, domains, buckets; and say what needs a human.

    What is read off the table is marked as not confirmed: it discloses something about it until
    somebody who knows the data dictionary has looked at it and set confirmed = true.
    """
    from deniable.drafting.schemas import draft_schema
    from deniable.interchange.sdv import merge_sdv, read_sdv
    from deniable.release.records import require_free, write_text

    require_free(out)
    with progress(quiet=quiet or as_json) as watch:
        draft = draft_schema(
            table,
            draft_epsilon=draft_epsilon,
            draft_delta=draft_delta,
            unit=unit,
            max_rows_per_unit=max_rows_per_unit or (None if unit is None else 1),
            watch=lambda done, of: watch("look at columns", done, of),
        )
    write_text(out, draft.text if sdv is None else merge_sdv(read_sdv(sdv), draft.text).text())
    if as_json:
        cost = None if draft.cost is None else dataclasses.asdict(draft.cost)
        print_json(schema=str(out), notes=list(draft.notes), cost=cost)
    elif not quiet:
        _tell_draft(out, draft)


def _tell_draft(out: Path, draft: "Draft") -> None:
    say(f"Draft in {out}")
    for note in draft.notes:
        say(f"- {note}")
    if draft.cost is not None:
        say("It was drafted with differential privacy: its cost is part of every total.")
    else:
        say(
            f"{out} was read off the table and is as confidential as the table until you have "
            "looked at each column and set confirmed = true."
        )
    say(f"Next: {program_name()} plan --schema {out}")


@app.command(short_help="What released records are worth, as a report.")
def evaluate(
    real: Annotated[Path, typer.Argument(help="The confidential table.")],
    synthetic: Annotated[Path, typer.Argument(help="The records to evaluate.")],
    *,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="The folder of the report.")],
    holdout: Annotated[
        Path | None, typer.Option(help="Real rows that the release was not learnt from.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column that learners are asked for. [the last]")
    ] = None,
    edition: Annotated[str, typer.Option(help="internal, or public.")] = "internal",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure what released records are worth, and write a report to read.

    An internal report discloses something about the real table: it must not leave. A public one
    has nothing in it but the manifest and the records.
    """
    from deniable.data.schema import Schema
    from deniable.errors import ConfigError
    from deniable.evaluation.run import evaluate as measure

    if edition not in ("internal", "public"):
        raise ConfigError(f"--edition {edition}: say internal or public")
    with progress(quiet=quiet or as_json) as watch:
        metrics = measure(
            real,
            synthetic,
            Schema.read(schema),
            holdout=holdout,
            target=target,
            out=out,
            edition="public" if edition == "public" else "internal",
            watch=watch,
        )
    if as_json:
        print_json(folder=str(out), **metrics.document())
    elif not quiet:
        say(f"Report in {out}/report.html, numbers in {out}/metrics.json")


@app.command(short_help="The paper's evaluation, done again.")
def reproduce(
    *,
    data: Annotated[Path | None, typer.Option(help="Rows to learn from. [embedded]")] = None,
    test: Annotated[Path | None, typer.Option(help="Rows to test on. [embedded]")] = None,
    schema: Annotated[Path | None, typer.Option(help="What their columns hold.")] = None,
    out: Annotated[Path, typer.Option(help="The folder of tables and figures.")],
    target: Annotated[
        str | None, typer.Option(help="The column that learners are asked for. [the last]")
    ] = None,
    runs: Runs = None,
    models: Models = None,
    records: Released = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run the paper's evaluation beside our default, and set both against its numbers.

    An interrupted run goes on where it was, if it is started again with the same folder and the
    same options; only --runs may grow. A table of 70,000 rows takes some 20 minutes of one core.
    """
    from deniable.data.schema import Schema
    from deniable.demo import demo_schema, demo_table
    from deniable.errors import ConfigError
    from deniable.evaluation.reproduction import reproduce as run

    if (data is None) != (schema is None) or (test is not None and data is None):
        raise ConfigError("--data and --schema go together, and --test goes with them")
    with progress(quiet=quiet or as_json) as watch:
        page = run(
            data or demo_table(),
            demo_schema() if schema is None else Schema.read(schema),
            out,
            test=test,
            target=target,
            setup=_setup(data, runs=runs, models=models, records=records),
            note="" if data else _EMBEDDED,
            watch=watch,
        )
    if as_json:
        print_json(folder=str(out), page=str(page))
    elif not quiet:
        if not data:
            say(_EMBEDDED)
        say(f"Tables and figures in {page}; the tables as text in {page.with_name('tables.md')}")


def _setup(data: Path | None, **chosen: int | None) -> "Setup":
    """Return the sizes of a reproduction: those of the paper, fewer for the embedded table."""
    from deniable.evaluation.recipes import Setup

    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    return dataclasses.replace(Setup() if data else Setup.embedded(), **given)
