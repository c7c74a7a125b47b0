"""The command line application and its flags, generated from the options of ``Config``."""

import inspect
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from deniable.cli.argument_conversion import use_plain_conversion
from deniable.cli.terminal import print_line
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
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
# No option is longer: a key has at most 39 digits.
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,40}", re.ASCII)


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
        use_plain_conversion(self.get_params(ctx))
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
        use_plain_conversion(self.get_params(ctx))
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


def number_flag(flag: str, kind: type, *, least: int | None = None, **settings: Any) -> Any:
    """Declare a flag with a number, for an annotation of a command.

    Args:
        flag: The flag, such as ``--records``.
        kind: ``int`` or ``float``.
        least: Smallest number allowed; None: the function that takes the number checks it.
        settings: Further arguments of ``typer.Option``.
    """
    parse = whole_number(flag, least=least) if kind is int else decimal_number(flag)
    return typer.Option(flag, parser=parse, metavar=f"<{kind.__name__}>", **settings)


def whole_number(flag: str, *, least: int | None = None) -> Callable[[str], int]:
    """Make the parser of a flag with a whole number."""

    def parse(text: str) -> int:
        typed = text.strip()
        if not _WHOLE_NUMBER.fullmatch(typed):
            example = re.sub(r"[^\d]", "", typed) if _GROUPED_DIGITS.fullmatch(typed) else "1000"
            raise ConfigError(
                f"{flag} {text}: not a whole number; write digits only, such as {flag} {example}"
            )
        number = int(typed)
        if least is not None and number < least:
            raise ConfigError(f"{flag} {text}: must be at least {least}")
        return number

    return parse


def decimal_number(flag: str) -> Callable[[str], float]:
    """Make the parser of a flag with a number, which may be infinite."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isnan(number):
            return number
        typed = text.strip()
        example = typed.replace(",", ".") if _DECIMAL_COMMA.fullmatch(typed) else "0.5"
        raise ConfigError(
            f"{flag} {text}: not a number; write digits and a decimal point, such as "
            f"{flag} {example}"
        )

    return parse


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
    number_flag(
        "--records",
        int,
        help="Number of records to release.",
        show_default=False,
        rich_help_panel="Common",
    ),
]
TableRows = Annotated[
    int | None,
    number_flag(
        "--rows",
        int,
        help="Number of rows of the table, for the forecast. [rows_max]",
        show_default=False,
        rich_help_panel="Common",
    ),
]
Key = Annotated[
    int | None,
    number_flag(
        "--key",
        int,
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
Target = Annotated[
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
    number_flag("--runs", int, least=1, help="Independent runs of each row. [5; embedded: 2]"),
]
Models = Annotated[
    int | None,
    number_flag("--models", int, least=1, help="Noisy models to average. [20; embedded: 5]"),
]
RecordsOfRun = Annotated[
    int | None,
    number_flag("--records", int, least=1, help="Records of a release. [as many as learnt from]"),
]
DraftEpsilon = Annotated[
    float | None,
    number_flag(
        "--draft-epsilon",
        float,
        help="ε of a private draft; the ε of every later run covers it.",
    ),
]
RowsPerUnit = Annotated[
    int | None,
    number_flag(
        "--max-rows-per-unit",
        int,
        help="Rows of one person that are used. [1]",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    number_flag(
        "--workers", int, help="Number of threads. [one for each core]", show_default=False
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
    declare: Callable[..., Any] = typer.Option
    if kind in (int, float):
        declare = partial(number_flag, kind=kind)
    elif kind == list[str]:
        declare = partial(typer.Option, metavar="<column>")
    elif option.choices:
        declare = partial(typer.Option, metavar="<name>")
    settings = declare(option.flag, help=text, show_default=False, rich_help_panel=option.section)
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if kind is bool else kind | None, settings],
    )


def _declared(name: str) -> Any:
    """The flag of an option of ``Config``, for a command that has only some of them."""
    return _parameter(all_options()[name]).annotation


Engine = _declared("engine")
Master = _declared("master")
OpenCluster = _declared("accept_open_cluster")


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
    for switch in ("accept_drafted_schema", "accept_open_cluster"):
        chosen[switch] = chosen[switch] or None
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
