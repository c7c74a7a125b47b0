"""The options of a run, the same for every command that learns or plans; and the program itself."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="deniable",
    help="Full synthetic records with a privacy guarantee that is proved, printed and checkable.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
    "max_cost": (
        int,
        "The most parent configurations of an attribute. [20,000; tables of a graph: 300]",
    ),
    "estimator": (
        str,
        "pairs; or a graph's tables, by back-off, norm-sub or the paper's clip. [pairs]",
    ),
    "alpha": (float, "Prior count of every value in a graph's tables. [1]"),
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
