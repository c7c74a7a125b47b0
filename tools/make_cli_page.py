"""Write the reference of the command line, as Markdown, from the commands themselves.

python tools/make_cli_page.py > cli.md

The build of the documentation includes it. Options of a run are described once, in ``config.py``:
the commands take their flags from there, and this page takes them from the commands.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import typer.main

from deniable.cli.commands import app

_OTHERS = "Options"


def commands() -> dict[str, Any]:
    """Return the commands by name, in the order of ``deniable --help``."""
    group: Any = typer.main.get_command(app)
    return {name: group.get_command(None, name) for name in group.list_commands(None)}


def cell(text: str) -> str:
    """Put a text into a cell of a table, on one line."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def panels_of(command: Any) -> dict[str, list[str]]:
    """Return the rows of each panel of the command's help."""
    context = command.context_class(command)
    panels: dict[str, list[str]] = {"Arguments": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or parameter.name == "help":
            continue
        is_argument = parameter.param_type_name == "argument"
        panel = getattr(parameter, "rich_help_panel", None) or _OTHERS
        row = f"| `{cell(record[0])}` | {cell(record[1])} |"
        panels.setdefault("Arguments" if is_argument else panel, []).append(row)
    others = panels.pop(_OTHERS, [])
    return {panel: rows for panel, rows in {**panels, _OTHERS: others}.items() if rows}


def section_of(name: str, command: Any) -> Iterator[str]:
    """Yield the lines of one command's section."""
    yield f"\n## deniable {name}\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield f"{cell(paragraph)}\n"
    for panel, rows in panels_of(command).items():
        yield f"| {panel} | |\n|---|---|"
        yield from rows
        yield ""


def page() -> str:
    """Return the sections of all commands."""
    lines = (line for name, command in commands().items() for line in section_of(name, command))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
