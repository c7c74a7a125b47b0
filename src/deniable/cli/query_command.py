"""The command ``query``: counts, shares, means and quantiles of an artefact, with intervals."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli.options import OUTPUT_PANEL, Clean, Json, Quiet
from deniable.cli.output import print_json, print_text, print_wrapped
from deniable.cli.plan_tables import add_row, print_table
from deniable.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.release.artefact import Artefact
    from deniable.release.query_answer import AnswerCell, Interval, QueryAnswer

_FORMATS = (".csv", ".json", ".parquet")

QueriedArtefact = Annotated[
    Path,
    typer.Argument(help="Artefact folder: from learn, or RELEASE/artefact.", show_default=False),
]
QueriedColumns = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="<A[,B]>",
        help="One or two columns; for more, the model answers, without intervals.",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="<condition>", help="Condition on rows: 'age >= 65 and sex = \"f\"'."),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="<column: rule>",
        help="Cells of a column: 'age: 10' (width), 'age: 18, 30, 65' (lower edges), 'state: AK + "
        "HI, TX' (groups), 'age: values', bins, groups or buckets. May be repeated.",
    ),
]
SamplingError = Annotated[
    bool,
    typer.Option(
        "--sampling-error",
        help="Intervals for the population that the rows are a random sample of.",
    ),
]
AnswerFile = Annotated[
    Path | None,
    typer.Option(
        "--out", help="File to write: .csv, .parquet or .json.", rich_help_panel=OUTPUT_PANEL
    ),
]


def query(
    artefact: QueriedArtefact,
    *,
    columns: QueriedColumns,
    where: Where = None,
    by: By = None,
    sampling_error: SamplingError = False,
    out: AnswerFile = None,
    clean: Clean = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Estimate counts, shares, means and quantiles from an artefact, each with a 95 % interval.

    Computed from the artefact's noisy counts and the known law of their noise, not from records.
    The confidential table is not needed, and nothing is added to ε.
    """
    from deniable.answers.cell_bands import parse_band_rules
    from deniable.cli.sealed_artefact import load_sealed
    from deniable.release.atomic_files import require_free

    if out is not None:
        if out.suffix.lower() not in _FORMATS:
            raise OutputError(f"{out}: the name must end in .csv, .parquet or .json")
        require_free(out, clean=clean)
    loaded = load_sealed(artefact)
    answer = loaded.query(
        _split_columns(columns, loaded),
        where=where,
        by=parse_band_rules(by or []),
        sampling_error=sampling_error,
    )
    if out is not None:
        _write(answer, out, confidential=not loaded.certificate.claims_privacy)
    if as_json:
        print_json(**answer.document())
    elif not quiet:
        show_answer(answer)
        if out is not None:
            print_text(f"Table in {out}")


def _split_columns(text: str, artefact: "Artefact") -> list[str]:
    """Split names at commas; a name that contains one is put in double quotes."""
    if any(column.name == text for column in artefact.schema.columns):
        return [text]
    names = next(csv.reader([text], skipinitialspace=True), [])
    found = [name.strip() for name in names]
    if not found or not all(found):
        raise ConfigError('--columns: write one name, or two as in --columns "age,income"')
    return found


def _write(answer: "QueryAnswer", out: Path, *, confidential: bool) -> None:
    from deniable.release.atomic_files import as_output_error, staged_file

    with staged_file(out, confidential=confidential) as stage, as_output_error(out):
        if out.suffix.lower() == ".json":
            stage.write_text(answer.to_json() + "\n", encoding="utf-8", newline="\n")
        elif out.suffix.lower() == ".csv":
            answer.frame().write_csv(stage)
        else:
            answer.frame().write_parquet(stage)


def show_answer(answer: "QueryAnswer") -> None:
    """Print an answer: its table, means and quantiles."""
    about = "the population" if answer.sampling_error else "the table"
    condition = f" where {answer.where}" if answer.where else ""
    what = f"95 % intervals for {about}" if answer.measured else "No intervals"
    print_text(f"{' × '.join(answer.columns)}{condition}. {what}. {answer.basis}")
    print_table(_cell_table(answer))
    print_wrapped(f"Rows{condition}: {_count(answer.rows)}")
    print_text(*answer.notes)
    if answer.numbers:
        print_table(_number_table(answer))


def _cell_table(answer: "QueryAnswer") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for name in answer.columns:
        table.add_column(name, overflow="fold")
    within = len(answer.columns) > 1
    heads = ("rows", "share", *((f"within {answer.columns[0]}",) if within else ()))
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    has_notes = answer.measured and any(cell.note for cell in answer.cells)
    if has_notes:
        table.add_column("")
    for cell in answer.cells:
        notes = [cell.note] if has_notes else []
        add_row(table, *cell.labels, *_numbers_of(cell), *notes)
    return table


def _numbers_of(cell: "AnswerCell") -> list[str]:
    shares = [cell.share] if cell.within is None else [cell.share, cell.within]
    return [_count(cell.count), *map(_share, shares)]


def _number_table(answer: "QueryAnswer") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    grouped = any(each.group for each in answer.numbers)
    others = [name for name in answer.columns if name != answer.numbers[0].column]
    for name in (*(others[:1] if grouped else []), answer.numbers[0].column):
        table.add_column(name, overflow="fold")
    table.add_column("at least 95 %", justify="right", no_wrap=True)
    table.add_column("")
    for each in answer.numbers:
        text = f"{each.text[0]}  [{each.text[1]}, {each.text[2]}]"
        add_row(table, *([each.group] if grouped else []), each.statistic, text, each.note)
    return table


def _count(interval: "Interval") -> str:
    return _format(interval, "{:,.0f}", 1.0, "")


def _share(interval: "Interval") -> str:
    return _format(interval, "{:.1f}", 100.0, " %")


def _format(interval: "Interval", pattern: str, scale: float, suffix: str) -> str:
    """Format an estimate, and its interval if it has one."""
    ends: Sequence[float] = (interval.low, interval.high)
    known = math.isfinite(interval.estimate)
    text = pattern.format(scale * interval.estimate) + suffix if known else "unknown"
    if any(math.isnan(end) for end in ends):
        return text
    return f"{text}  [{', '.join(pattern.format(scale * end) for end in ends)}]"
