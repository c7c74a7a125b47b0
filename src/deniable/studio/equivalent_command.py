"""Commands of the command line, as arguments of a process and as text to paste into a terminal."""

import shlex
from collections.abc import Sequence
from pathlib import Path

PROGRAM = "deniable"


def as_argument(path: str) -> str:
    """Write a relative path so that it is never taken for an option."""
    return f"./{path}" if path.startswith("-") else path


def paste_text(root: Path, *commands: Sequence[str]) -> str:
    """Write commands as one pastes them: first into the folder, then one command a line."""
    lines = [f"cd {shlex.quote(str(root))}"]
    lines += [shlex.join((PROGRAM, *command)) for command in commands]
    return "\n".join(lines)


def init_command(
    table: str,
    *,
    out: str,
    epsilon: str = "",
    unit: str = "",
    rows_per_unit: str = "",
    header: str = "",
) -> tuple[str, ...]:
    """``deniable init``: draft a schema; with an ε, privately."""
    parts = ["init", as_argument(table), "--out", as_argument(out)]
    parts += ["--draft-epsilon", epsilon] if epsilon else []
    parts += {"yes": ["--header"], "no": ["--no-header"]}.get(header, [])
    if unit:
        # One argument: the name of a column may begin with a dash.
        parts += [f"--unit={unit}", "--max-rows-per-unit", rows_per_unit or "1"]
    return tuple(parts)


def synthesize_command(
    table: str, *, schema: str, records: str, out: str, options: Sequence[str] = ()
) -> tuple[str, ...]:
    """``deniable synthesize``."""
    return (
        *("synthesize", as_argument(table), "--schema", as_argument(schema)),
        *("--records", records, *options, "--out", as_argument(out)),
    )


def plan_command(
    schema: str, *, records: str, options: Sequence[str] = (), rows: str = ""
) -> tuple[str, ...]:
    """``deniable plan``: what the plan screen shows."""
    guess = ("--rows", rows) if rows else ()
    return ("plan", "--schema", as_argument(schema), "--records", records, *guess, *options)


def verify_command(release: str, *, against: str = "", artefact: str = "") -> tuple[str, ...]:
    """``deniable verify``: a release, or a file of records with its artefact."""
    files = {"--against": against, "--artefact": artefact}
    named = [(flag, as_argument(path)) for flag, path in files.items() if path]
    return ("verify", as_argument(release), *(part for pair in named for part in pair))


def evaluate_command(table: str, release: str, records: str) -> tuple[str, ...]:
    """``deniable evaluate``: the internal report of a release, in its internal folder."""
    return (
        *("evaluate", as_argument(table), as_argument(f"{release}/{records}")),
        *("--schema", as_argument(f"{release}/schema.toml")),
        *("--out", as_argument(f"{release}.internal/report")),
    )


def generate_command(artefact: str, *, out: str, records: str, where: str = "") -> tuple[str, ...]:
    """``deniable generate``: more records from an artefact, or those that meet a condition."""
    condition = (f"--where={where}",) if where else ()
    number = ("--records", records)
    return ("generate", as_argument(artefact), *number, *condition, "--out", as_argument(out))
