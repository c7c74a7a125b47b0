"""The command line application and its flags, generated from the options of ``Config``."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from deniable.cli.terminal import print_line
from deniable.config import Profile
from deniable.config import options as all_options
from deniable.errors import ConfigError
from deniable.option import Option

_OTHER_PANEL = "Options"
OUTPUT_PANEL = "Output"
_JSON_FLAG, _QUIET_FLAG = "--json", "--quiet"
_JSON_ADVICE = (
    "--json takes no value: it prints one JSON object on standard output. To keep it, redirect "
    "that: --json > FILE"
)
# What people put between groups of three digits: "3,000", "3.000", "3 000", "3'000", "3_000".
_GROUPED_DIGITS = re.compile(r"[+-]?\d{1,3}([,.'_\s]\d{3})+", re.ASCII)


class PanelCommand(TyperCommand):
    """A command whose help lists its options by panel."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; explain a file name after ``--json``, which takes no value."""
        given = list(args)
        if any(each.startswith(f"{_JSON_FLAG}=") for each in given):
            raise ConfigError(_JSON_ADVICE)
        if any(parameter.name == "config" for parameter in self.params):
            _refuse_keys(given)
        ctx.allow_extra_args = True  # or the library would complain first
        left: list[str] = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            if _JSON_FLAG in given:
                raise ConfigError(f"too many arguments ({' '.join(left)}). {_JSON_ADVICE}")
            ctx.fail(f"too many arguments: {' '.join(left)}")
        return left

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each panel, in the order in which the options are declared."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None) or _OTHER_PANEL
                panels.setdefault("Arguments" if is_argument else panel, []).append(row)
        others = panels.pop(_OTHER_PANEL, [])
        for panel, rows in [*panels.items(), (_OTHER_PANEL, others)]:
            with formatter.section(panel):
                formatter.write_dl(rows)


def _refuse_keys(arguments: list[str]) -> None:
    """Refuse options without a flag; say where they are written."""
    keys = {option.flag: option.name for option in all_options().values() if not option.has_flag}
    for flag in (each.partition("=")[0] for each in arguments):
        if flag in keys:
            raise ConfigError(
                f"there is no flag {flag}: write {keys[flag]} into a configuration file, and give "
                "that as --config FILE.toml"
            )


class CommandGroup(TyperGroup):
    """The program: its commands, and ``--version``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; explain an option of commands before the command."""
        if args and args[0] in (_JSON_FLAG, _QUIET_FLAG):
            raise ConfigError(f"{args[0]} is an option of a command: write it after the command")
        left: list[str] = super().parse_args(ctx, args)
        return left


app = typer.Typer(
    name="deniable",
    cls=CommandGroup,
    help="Synthetic records with a privacy guarantee that is proved, printed and checkable.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def whole_number(text: str) -> int:
    """Parse a whole number; explain what else was typed. The library reads "3.000" as 3."""
    typed = text.strip()
    if re.fullmatch(r"[+-]?\d{1,40}", typed, re.ASCII):
        return int(typed)
    example = re.sub(r"\D", "", typed) if _GROUPED_DIGITS.fullmatch(typed) else "1000"
    raise typer.BadParameter(f"{text} is not a whole number; write digits only, such as {example}")


def positive_number(text: str) -> int:
    """Parse a whole number that is at least 1."""
    if (number := whole_number(text)) < 1:
        raise typer.BadParameter("must be at least 1")
    return number


def decimal_number(text: str) -> float:
    """Parse a number; explain what else was typed."""
    try:
        return float(text)
    except ValueError:
        pass
    example = text.replace(",", ".") if re.fullmatch(r"[+-]?\d+,\d+", text.strip()) else "0.5"
    raise typer.BadParameter(f"{text} is not a number; write a decimal point, such as {example}")


TableFile = Annotated[
    Path, typer.Argument(help="Table: .csv, .csv.gz or .parquet.", show_default=False)
]
TablePath = Annotated[
    Path,
    typer.Argument(
        help="Table, or folder of parts: .csv(.gz) or .parquet.",
        show_default=False,
    ),
]
SchemaPath = Annotated[
    Path,
    typer.Option(
        "--schema",
        help="Schema (schema.toml).",
        show_default=False,
        rich_help_panel="Common",
    ),
]
RecordCount = Annotated[
    int,
    typer.Option(
        "--records",
        parser=whole_number,
        help="Number of records to release.",
        show_default=False,
        rich_help_panel="Common",
    ),
]
TableRows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        parser=whole_number,
        help="Number of rows of the table, for the forecast. [rows_max]",
        show_default=False,
        rich_help_panel="Common",
    ),
]
Key = Annotated[
    int | None,
    typer.Option(
        "--key",
        parser=whole_number,
        help="Same artefact and key, same records. [a fresh one]",
        show_default=False,
        rich_help_panel=OUTPUT_PANEL,
    ),
]
FileFormat = Annotated[
    Literal["csv", "parquet"],
    typer.Option("--format", help="Format of the records.", rich_help_panel=OUTPUT_PANEL),
]
PartFormat = Annotated[
    Literal["csv", "parquet"] | None,
    typer.Option(
        "--format",
        help="Format of the parts, on Spark. [csv]",
        show_default=False,
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(_QUIET_FLAG, help="Print errors only.", rich_help_panel=OUTPUT_PANEL),
]
Json = Annotated[
    bool,
    typer.Option(_JSON_FLAG, help="Print one JSON object.", rich_help_panel=OUTPUT_PANEL),
]
Clean = Annotated[
    bool,
    typer.Option(
        "--clean",
        help="Remove what a killed run into the same place left.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="Column that learners predict. [first target of the run, or the most associated]",
        show_default=False,
    ),
]
LastTarget = Annotated[
    str | None, typer.Option(help="Column that learners predict. [the last]", show_default=False)
]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough", help="Train models on more rows, more often: minutes instead of seconds."
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        "--runs", parser=positive_number, help="Independent runs of each row. [5; embedded: 2]"
    ),
]
Models = Annotated[
    int | None,
    typer.Option(
        "--models", parser=positive_number, help="Noisy models to average. [20; embedded: 5]"
    ),
]
RecordsOfRun = Annotated[
    int | None,
    typer.Option(
        "--records", parser=positive_number, help="Records of a release. [as many as learnt from]"
    ),
]
DraftEpsilon = Annotated[
    float | None,
    typer.Option(
        "--draft-epsilon",
        parser=decimal_number,
        help="ε of a private draft; the ε of every later run covers it.",
    ),
]
DraftDelta = Annotated[
    float, typer.Option("--draft-delta", parser=decimal_number, help="δ of a private draft.")
]
DraftProfile = Annotated[
    Profile,
    typer.Option("--profile", help="paper: with buckets, which the paper's estimators read."),
]
HeaderLine = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file holds the names of its columns.",
        show_default=False,
    ),
]
SdvMetadata = Annotated[
    Path | None, typer.Option("--sdv", help="SDV metadata (JSON, V1) to take the types from.")
]
RowsPerUnit = Annotated[
    int | None,
    typer.Option(
        "--max-rows-per-unit",
        parser=whole_number,
        help="Rows of one person that are used. [1]",
        show_default=False,
    ),
]


def output_option(text: str) -> Any:
    """An ``--out`` flag in the panel of the common options."""
    return typer.Option("--out", help=text, show_default=False, rich_help_panel="Common")


RecordsPath = Annotated[
    Path, output_option("File to write: .csv, .csv.gz or .parquet; on Spark, folder of a release.")
]
UnitColumn = Annotated[
    str | None,
    typer.Option(help="Column that identifies the person, if a person has several rows."),
]


def _take_place(ctx: typer.Context, file: Path | None) -> Path | None:
    """Take schema, out and records from the configuration file, where no flag gives them.

    Not for an audit, whose folder is another than that of a run.
    """
    if file is not None and ctx.info_name != "audit" and not ctx.resilient_parsing:
        from deniable.config import read_place

        ctx.default_map = {**(ctx.default_map or {}), **read_place(file)}
    return file


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Declare the options of a run as flags of a command, which collects them as ``**options``."""
    signature = inspect.signature(command)
    own = [each for each in signature.parameters.values() if each.name != "options"]
    flags = [_parameter(option) for option in all_options().values() if option.has_flag]
    config = inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option(
                help="TOML file with these and more options (docs/options.md).",
                rich_help_panel="Common",
                is_eager=True,
                callback=_take_place,
            ),
        ],
    )
    parameters = sorted([*own, config, *flags], key=_panel_order)
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def _parameter(option: Option) -> inspect.Parameter:
    """The flag of an option."""
    kind: Any = option.kind
    default: Any = None
    text = f"{option.text} [{option.default_text}]"
    if kind is bool:
        default, text = False, option.text
    elif get_origin(kind) is tuple:
        kind = list[str]
    settings = typer.Option(
        option.flag,
        help=text,
        show_default=False,
        rich_help_panel=option.section,
        parser={int: whole_number, float: decimal_number}.get(kind),
        metavar="<column>" if kind == list[str] else "<name>" if option.choices else None,
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if kind is bool else kind | None, settings],
    )


def _declared(name: str) -> Any:
    """The flag of an option of ``Config``, for a command that has only some of them."""
    return _parameter(all_options()[name]).annotation


Workers = _declared("workers")
Engine = _declared("engine")
Master = _declared("master")
OpenCluster = _declared("accept_open_cluster")
LargeDelta = _declared("accept_large_delta")


def _panel_order(parameter: inspect.Parameter) -> int:
    """Arguments first, then the panels; within a panel the order of declaration."""
    panels = ["Common", "Privacy", "Model", "Execution", OUTPUT_PANEL]
    settings = parameter.annotation.__metadata__[0]
    panel = getattr(settings, "rich_help_panel", None)
    return panels.index(panel) if panel in panels else -1


def given_options(chosen: dict[str, Any]) -> dict[str, Any]:
    """The options that were given: by a configuration file, and by flags, which win."""
    from deniable.config import read_options, require_known

    file = chosen.pop("config")
    chosen["target"] = chosen["target"] or None
    for option in all_options().values():
        if option.kind is bool and option.has_flag:
            chosen[option.name] = chosen[option.name] or None
    written = read_options(file) if file is not None else {}
    require_known(written)
    return written | {name: value for name, value in chosen.items() if value is not None}


@app.callback()
def common(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Synthetic records with a privacy guarantee that is proved, printed and checkable."""
    if version:
        from importlib.metadata import version as version_of

        print_line(version_of("deniable"))
        raise typer.Exit
