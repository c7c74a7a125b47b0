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
) -> tuple[str, ...]:
    """``deniable init``: draft a schema; with an ε, privately."""
    parts = ["init", as_argument(table), "--out", as_argument(out)]
    parts += ["--draft-epsilon", epsilon] if epsilon else []
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
    """``deniable plan --all``: what the plan screen shows."""
    guess = ("--rows", rows) if rows else ()
    chosen = ("--schema", as_argument(schema), "--records", records, *guess, *options)
    return ("plan", *chosen, "--all")


def verify_command(release: str, *, against: str = "") -> tuple[str, ...]:
    """``deniable verify``."""
    table = ("--against", as_argument(against)) if against else ()
    return ("verify", as_argument(release), *table)


def evaluate_command(table: str, release: str, records: str) -> tuple[str, ...]:
    """``deniable evaluate``: the internal report of a release, in its internal folder."""
    return (
        *("evaluate", as_argument(table), as_argument(f"{release}/{records}")),
        *("--schema", as_argument(f"{release}/schema.toml")),
        *("--out", as_argument(f"{release}.internal/report")),
    )


def generate_command(release: str, *, records: str, out: str) -> tuple[str, ...]:
    """``deniable generate``: more records from the artefact of a release."""
    artefact = as_argument(f"{release}/artefact")
    return ("generate", artefact, "--records", records, "--out", as_argument(out))
