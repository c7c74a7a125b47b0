"""More records of a release: any, those of a condition, with shares of a column, or completed rows.

They come from the artefact by ``deniable generate``, and are then checked by ``deniable verify``.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from deniable.answers.balance import Balance
from deniable.answers.condition import RecordCondition
from deniable.answers.conditional_release import INTERNAL
from deniable.errors import ConfigError, DeniableError
from deniable.schema.schema import Schema
from deniable.studio.checked_files import is_unchanged
from deniable.studio.equivalent_command import generate_command, paste_text, verify_command
from deniable.studio.plan_form import MAX_RECORDS
from deniable.studio.release_view import ReleaseView, read_release, table_of
from deniable.studio.run_screen import failure_message
from deniable.studio.run_store import RunRecord, Step
from deniable.studio.workspace import Call, Page, Redirect, Reply, Workspace, address

DEFAULT_RECORDS = "10000"
# Digits of a number in a field; larger ones mean nothing here.
_MAX_DIGITS = 15
# Names that a condition has without quotes: no keyword of it.
_WORD = re.compile(r"(?!(and|or|in|not|is|missing)$)[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class MoreRequest:
    """What more records were asked for.

    Attributes:
        release: The release, below the root.
        artefact: Its artefact, below the root.
        texts: The fields of the form.
    """

    release: str
    artefact: str
    texts: Mapping[str, str]

    @property
    def given(self) -> str:
        """The file with rows to complete; "" if records are drawn."""
        return self.texts.get("given", "").strip()

    @property
    def is_internal(self) -> bool:
        """Whether the file must not leave: it copies rows that were not declared public."""
        return bool(self.given) and "given_is_public" not in self.texts

    @property
    def where(self) -> str:
        """The condition; "" without one."""
        return " ".join(self.texts.get("where", "").split())

    @property
    def balance(self) -> str:
        """The column whose shares are set, with the shares; "" without one."""
        column = self.texts.get("balance", "")
        shares = self.texts.get("shares", "").strip()
        if column and shares:
            return f'"{column}": {shares}'
        return column

    @property
    def suffix(self) -> str:
        """The end of the name of the file."""
        kind = ".parquet" if self.texts.get("format") == "parquet" else ".csv"
        return kind + (INTERNAL if self.is_internal else "")

    def commands(self, out: str) -> list[tuple[str, ...]]:
        """The commands that make the file, and check it.

        Raises:
            ConfigError: A number is none.
        """
        options = [f"--where={self.where}"] if self.where else []
        records = ""
        if self.given:
            each = _number(self.texts.get("records_each", "1"), "each row, completed")
            options += ["--records-each", each] if each != "1" else []
            options += ["--given-is-public"] if "given_is_public" in self.texts else []
        else:
            records = _number(self.texts.get("records", DEFAULT_RECORDS), "records")
            options += [f"--balance={self.balance}"] if self.balance else []
        make = generate_command(
            self.artefact, out=out, records=records, given=self.given, options=options
        )
        return [make, verify_command(out, artefact=self.artefact, given=self.given)]

    def check(self, call: Call) -> None:
        """Refuse what can be seen to be impossible before anything is computed.

        Raises:
            ConfigError: The condition or the shares do not fit the schema, or contradict the rest.
            PathError: The given rows are not below the root.
        """
        if self.given:
            call.space.root.locate(self.given)
            if self.balance:
                raise ConfigError(
                    "shares and rows to complete exclude each other: given cells are not changed"
                )
            if not self.is_internal and self.given == table_of(call.space, self.release):
                raise ConfigError(
                    f"{self.given} is the confidential table of this release, so its rows cannot "
                    "be declared public"
                )
        if self.where or self.balance:
            schema = read_schema(call.space, self.artefact)
            if self.where:
                RecordCondition.parse(self.where, schema)
            if self.balance:
                Balance.parse(self.balance, schema)


@dataclass(frozen=True, kw_only=True)
class MadeRecords:
    """A file of more records.

    Attributes:
        path: Its path, below the root.
        what: How it was asked for.
        may_publish: Whether it may leave: so may the release, it passed its own check, and it has
            no given row that was not declared public.
        state: Why not, or that it was checked.
    """

    path: str
    what: str
    may_publish: bool
    state: str


def show_request(call: Call) -> Reply:
    """Show what a request for more records means: a part of the page."""
    release = read_release(call.space, call.form.get("release", "").strip("/"))
    return Page("more_outcome.html", request_content(call, release, call.form))


def start_more(call: Call) -> Reply:
    """Start to generate more records from the artefact of a release, and to check them."""
    path = call.form.get("release", "").strip("/")
    release = read_release(call.space, path)
    request = _request(release, call.form)
    request.check(call)
    out = records_path(call, path, request.suffix)
    names = ("Generate records", "Check them")
    commands = request.commands(out)
    run = call.space.store.create(
        kind="records",
        table="",
        schema=path,
        out=out,
        steps=tuple(
            Step(name=name, arguments=each) for name, each in zip(names, commands, strict=True)
        ),
    )
    call.space.control.begin(run)
    return Redirect(address(f"/run/{run.id}"))


def request_content(call: Call, release: ReleaseView, given: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows of a request: why it is impossible, its mark, its command."""
    error, command, internal = "", "", False
    try:
        request = _request(release, given)
        internal = request.is_internal
        request.check(call)
        out = records_path(call, release.path, request.suffix)
        command = paste_text(call.space.root.path, *request.commands(out))
    except (DeniableError, OSError) as fault:
        error = str(fault) if isinstance(fault, DeniableError) else "this file is not there"
    return {
        "more_error": error,
        "more_command": command,
        "more_is_internal": internal,
        "more_completes": bool(given.get("given")),
        "release": release,
    }


def form_content(call: Call, release: ReleaseView) -> dict[str, Any]:
    """What the form of more records offers: columns whose shares can be set, files of rows."""
    if not release.artefact:
        return {}
    columns: Sequence[str] = ()
    example = ""
    with suppress(DeniableError, OSError):
        schema = read_schema(call.space, release.artefact)
        columns, example = _balanced_columns(schema), example_condition(schema)
    return {
        "more_columns": columns,
        "more_example": example,
        "more_files": _tables_near(call.space, release.path),
        "made": made_records(call.space, release),
        **request_content(call, release, {}),
    }


def read_schema(space: Workspace, artefact: str) -> Schema:
    """The schema of an artefact."""
    return Schema.read(space.root.locate(f"{artefact}/schema.toml"))


def _balanced_columns(schema: Schema) -> list[str]:
    """The columns whose values can have shares."""
    found = []
    for name in schema.names:
        if name not in schema.roundness_names:
            with suppress(ConfigError):
                found.append(Balance.parse(name, schema).attribute.name)
    return found


def example_condition(schema: Schema) -> str:
    """A condition on a listed column of a schema, as an example; "" if it has none."""
    for attribute in schema.attributes:
        if attribute.grid is None and attribute.name not in schema.roundness_names:
            name, value = (_quoted(str(each)) for each in (attribute.name, attribute.values[-1]))
            return f"{attribute.name if _WORD.fullmatch(attribute.name) else name} = {value}"
    return ""


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _tables_near(space: Workspace, release: str) -> list[str]:
    """Tables in the folder of a release and at the top, that may have rows to complete."""
    folders = dict.fromkeys((str(PurePosixPath(release).parent).strip("."), ""))
    return [
        each.path
        for folder in folders
        for each in space.root.entries(folder)
        if each.kind == "table"
    ]


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
    internal = run.out.endswith(INTERNAL)
    state = "checked: PASS"
    if internal:
        state = "has given rows that were not declared public"
    elif any(each.state in ("running", "waiting") for each in checks):
        state = "is being checked"
    elif not passed:
        state = "its check failed: do not publish it"
        if checks and checks[-1].state in ("failed", "killed") and not checks[-1].result:
            state = failure_message(checks[-1], is_made=True)
    elif not is_current:
        state = "changed since it was checked"
    return MadeRecords(
        path=run.out,
        what=_what(make.step.arguments),
        may_publish=release.may_publish and is_current and not internal,
        state=state,
    )


def _what(arguments: Sequence[str]) -> str:
    """What was asked for, in short."""
    asked = [each.partition("=")[2] for each in arguments if each.startswith("--where=")]
    shares = [each.partition("=")[2] for each in arguments if each.startswith("--balance=")]
    words = [f"where {each}" for each in asked] + [f"shares of {each}" for each in shares]
    if "--given" in arguments:
        words.insert(0, f"rows of {arguments[arguments.index('--given') + 1]}, completed")
    return "; ".join(words)


def _request(release: ReleaseView, given: Mapping[str, str]) -> MoreRequest:
    if not release.artefact:
        raise ConfigError("this mode keeps no artefact: more records need another run")
    return MoreRequest(release=release.path, artefact=release.artefact, texts=given)


def _number(text: str, what: str) -> str:
    number = text.replace(",", "").replace("_", "").strip()
    is_number = number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS
    if not is_number or not 1 <= int(number) <= MAX_RECORDS:
        raise ConfigError(f"{what}: write a whole number, at least 1")
    return str(int(number))


def records_path(call: Call, path: str, suffix: str = ".csv") -> str:
    """A free name for more records, next to their release."""
    used = {run.out for run in call.space.store.all()}
    for number in range(1, 10_000):
        out = f"{path}-more-{number}{suffix}"
        if out not in used and not call.space.root.new_path(out).exists():
            return out
    raise ConfigError("there are too many files of more records; delete some")
