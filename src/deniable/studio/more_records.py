"""More records of a release, or those for which a condition holds.

They come from the artefact by ``deniable generate``, and are then checked by ``deniable verify``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deniable.answers.condition import RecordCondition
from deniable.errors import ConfigError, DeniableError
from deniable.schema.schema import Schema
from deniable.studio.checked_files import is_unchanged
from deniable.studio.equivalent_command import generate_command, paste_text, verify_command
from deniable.studio.plan_form import MAX_RECORDS
from deniable.studio.release_view import ReleaseView, read_release
from deniable.studio.root_folder import require_disk_space
from deniable.studio.run_screen import failure_message
from deniable.studio.run_store import RunRecord, Step
from deniable.studio.workspace import Call, Page, Redirect, Reply, Workspace, address
from deniable.studio.zip_stream import is_internal

DEFAULT_RECORDS = "10000"
# Digits of a number in a field; larger ones mean nothing here.
_MAX_DIGITS = 15


@dataclass(frozen=True, kw_only=True)
class MadeRecords:
    """A file of more records.

    Attributes:
        path: Its path, below the root.
        condition: What holds for its records; "" without one.
        may_publish: Whether it may leave: so may the release, it passed its own check, and its name
            does not say that it stays inside.
        state: Why not, or that it was checked.
    """

    path: str
    condition: str
    may_publish: bool
    state: str


def show_request(call: Call) -> Reply:
    """Show what a request for more records means: a part of the page."""
    release = read_release(call.space, call.form.get("release", "").strip("/"))
    return Page("more_outcome.html", _request_content(call, release, call.form))


def start_more(call: Call) -> Reply:
    """Start to generate more records from the artefact of a release, and to check them."""
    path = call.form.get("release", "").strip("/")
    out, make, check = _commands(call, read_release(call.space, path), call.form)
    steps = (
        Step(name="Generate records", arguments=make),
        Step(name="Check them", arguments=check),
    )
    run = call.space.store.create(kind="records", table="", schema=path, out=out, steps=steps)
    call.space.control.begin(run)
    return Redirect(address(f"/run/{run.id}"))


def form_content(call: Call, release: ReleaseView) -> dict[str, Any]:
    """What the page shows of more records: the command by default, and the files that are there."""
    if not release.artefact:
        return {}
    made = made_records(call.space, release)
    return {"made": made, **_request_content(call, release, {})}


def _request_content(call: Call, release: ReleaseView, given: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows of a request: why it is impossible, or its command."""
    error, command = "", ""
    try:
        _, *commands = _commands(call, release, given)
        command = paste_text(call.space.root.path, *commands)
    except DeniableError as fault:
        error = str(fault)
    return {"more_error": error, "more_command": command, "release": release}


def _commands(
    call: Call, release: ReleaseView, given: Mapping[str, str]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The file of a request, the command that makes it, and the one that checks it.

    Raises:
        ConfigError: There is no artefact, the number is none, or the condition does not fit the
            schema.
        OutputError: The records do not fit on the disk.
    """
    if not release.artefact:
        raise ConfigError("this mode keeps no artefact: more records need another run")
    records = _number(given.get("records", DEFAULT_RECORDS))
    schema = Schema.read(call.space.root.locate(f"{release.artefact}/schema.toml"))
    where = " ".join(given.get("where", "").split())
    if where:
        RecordCondition.parse(where, schema)
    file_format = "parquet" if given.get("format") == "parquet" else "csv"
    root = call.space.root.path
    require_disk_space(root, schema, records=int(records), file_format=file_format)
    out = records_path(call, release.path, f".{file_format}")
    make = generate_command(release.artefact, out=out, records=records, where=where)
    return out, make, verify_command(out, artefact=release.artefact)


def made_records(space: Workspace, release: ReleaseView) -> list[MadeRecords]:
    """The files of more records of a release that are there."""
    runs = [
        run for run in space.store.all() if run.kind == "records" and run.schema == release.path
    ]
    return [_made(space, release, run) for run in runs if space.root.new_path(run.out).is_file()]


def _made(space: Workspace, release: ReleaseView, run: RunRecord) -> MadeRecords:
    make, *checks = space.store.status(run)
    passed = any(each.result.get("passed") is True for each in checks)
    is_current = passed and is_unchanged(space.root.path / run.out, checks[-1].files)
    state = "checked: PASS"
    if any(each.state in ("running", "waiting") for each in checks):
        state = "is being checked"
    elif not passed:
        state = "its check failed: do not publish it"
        if checks and checks[-1].state in ("failed", "killed") and not checks[-1].result:
            state = failure_message(checks[-1], is_made=True)
    elif not is_current:
        state = "changed since it was checked"
    return MadeRecords(
        path=run.out,
        condition=_condition(make.step.arguments),
        may_publish=release.may_publish and is_current and not is_internal(run.out),
        state=state,
    )


def _condition(arguments: Sequence[str]) -> str:
    """The condition of a command; "" without one."""
    where = "--where="
    return next((each.removeprefix(where) for each in arguments if each.startswith(where)), "")


def _number(text: str) -> str:
    number = text.replace(",", "").replace("_", "").strip()
    is_number = number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS
    if not is_number or not 1 <= int(number) <= MAX_RECORDS:
        raise ConfigError("records: write a whole number, at least 1")
    return str(int(number))


def records_path(call: Call, path: str, suffix: str = ".csv") -> str:
    """A free name for more records, next to their release."""
    used = {run.out for run in call.space.store.all()}
    for number in range(1, 10_000):
        out = f"{path}-more-{number}{suffix}"
        if out not in used and not call.space.root.new_path(out).exists():
            return out
    raise ConfigError("there are too many files of more records; delete some")
