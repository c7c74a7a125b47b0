"""The command line application and its flags, generated from the options of ``Config``."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from deniable.cli.terminal import print_line
from deniable.config import options as all_options
from deniable.option import Option

_OTHER_PANEL = "Options"
OUTPUT_PANEL = "Output"


class PanelCommand(TyperCommand):
    """A command whose help lists its options by panel."""

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


app = typer.Typer(
    name="deniable",
    help="Synthetic records with a privacy guarantee that is proved, printed and checkable.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

TablePath = Annotated[
    Path, typer.Argument(help="Confidential table: .csv, .csv.gz or .parquet.", show_default=False)
]
SchemaPath = Annotated[
    Path,
    typer.Option(
        "--schema",
        help="Schema of the table (schema.toml).",
        show_default=False,
        rich_help_panel="Common",
    ),
]
RecordCount = Annotated[
    int,
    typer.Option(
        "--records",
        help="Number of records to release.",
        show_default=False,
        rich_help_panel="Common",
    ),
]
Key = Annotated[
    int | None,
    typer.Option(
        "--key",
        help="Key of the generation: same artefact and key, same records. [a fresh one]",
        show_default=False,
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Print errors only.", rich_help_panel=OUTPUT_PANEL),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object.", rich_help_panel=OUTPUT_PANEL),
]


def output_option(text: str) -> Any:
    """An ``--out`` flag in the panel of the common options."""
    return typer.Option("--out", help=text, show_default=False, rich_help_panel="Common")


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
            typer.Option(help="TOML file with options.", rich_help_panel="Common"),
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
    if option.name == "omega_known":
        kind = Literal["yes", "no"]
    elif kind is bool:
        default, text = False, option.text
    settings = typer.Option(
        option.flag, help=text, show_default=False, rich_help_panel=option.section
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if kind is bool else kind | None, settings],
    )


def _panel_order(parameter: inspect.Parameter) -> int:
    """Arguments first, then the panels; within a panel the order of declaration."""
    panels = ["Common", "Privacy", "Model", "The paper's modes", "Execution", OUTPUT_PANEL]
    settings = parameter.annotation.__metadata__[0]
    panel = getattr(settings, "rich_help_panel", None)
    return panels.index(panel) if panel in panels else -1


def given_options(chosen: dict[str, Any]) -> dict[str, Any]:
    """The options that were given: by a configuration file, and by flags, which win."""
    from deniable.config import read_options, require_known

    file = chosen.pop("config")
    if chosen["omega_known"] is not None:
        chosen["omega_known"] = chosen["omega_known"] == "yes"
    chosen["accept_drafted_schema"] = chosen["accept_drafted_schema"] or None
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
