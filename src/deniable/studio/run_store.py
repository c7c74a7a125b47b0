"""Runs of the studio on disk: one folder for each, which outlives pages and the server.

A run is a list of steps; each step is one command of the command line in a process of its own. Its
folder, readable by its owner only, has ``run.json`` and for each step its progress, output, errors
and a lock that the process holds as long as it runs. So a running one is recognized after a restart
of the server, and a process ID that was given to another program is never mistaken for it.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from deniable.errors import ArtefactError, ConfigError
from deniable.release.untrusted_files import parse_json, read_json
from deniable.studio.access_guard import random_text
from deniable.studio.root_folder import STATE_FOLDER

FORMAT = "deniable studio run 1"
RunKind = Literal["draft", "release", "records", "check"]
StepState = Literal["waiting", "running", "done", "failed", "cancelled", "killed"]
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
INTERRUPTED = 130
# Bytes of a step's files that are read; a command writes less.
_MAX_READ = 2**22


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command of a run.

    Attributes:
        name: What it does, for the page.
        arguments: The arguments of ``deniable``.
    """

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What is known of a run when it starts, and what it has made.

    Attributes:
        id: Its name: the time of its start, and a random part.
        kind: What it makes: a draft, a release, more records, or a check of a release.
        table: The confidential table, below the root; "" if none is read.
        schema: The schema, below the root.
        out: What it writes, below the root.
        steps: Its commands.
        started: When it was started (UTC, ISO 8601).
        table_size: Bytes of the table.
        table_hash: SHA-256 of the table, once it is known.
        epsilon: The ε of the plan; of a private draft, its own.
        delta: The δ of the plan.
        mode: The mode of a release.
        made: What its first step has made (``MadeOutput``), once that has ended.
    """

    id: str
    kind: RunKind
    table: str
    schema: str
    out: str
    steps: tuple[Step, ...]
    started: str
    table_size: int = 0
    table_hash: str = ""
    epsilon: float | str | None = None
    delta: float | None = None
    mode: str = ""
    made: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """How far one step has come.

    Attributes:
        step: The step.
        state: Its state.
        stages: Work done and total work of each stage that was reported.
        code: The exit code, once it has ended.
        errors: What it printed on standard error.
        output: What it printed on standard output.
        pid: Its process; None if it has not reported it.
        files: The state of the release before it was checked; empty for other commands.
    """

    step: Step
    state: StepState
    stages: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    code: int | None = None
    errors: str = ""
    output: str = ""
    pid: int | None = None
    files: Mapping[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> dict[str, Any]:
        """The JSON object that the command printed; empty if it printed none."""
        try:
            found = parse_json(self.output.strip().encode())
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class RunStore:
    """All runs under a root.

    Args:
        root: The folder of the studio. Runs are kept in its hidden folder .deniable-studio.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / STATE_FOLDER / "runs"

    def prepare(self) -> None:
        """Create the folders, readable by their owner only.

        Raises:
            ConfigError: The root cannot be written to.
        """
        try:
            for folder in (self._folder.parent, self._folder):
                if folder.is_symlink():
                    raise ConfigError(f"{folder} is a link; remove it, or choose another --root")
                folder.mkdir(mode=0o700, exist_ok=True)
                folder.chmod(0o700)
        except OSError as fault:
            raise ConfigError(
                f"--root {self._folder.parents[1]} cannot be written to ({fault.strerror}). The "
                "studio keeps its runs there; choose a folder that you may write to"
            ) from None

    def create(self, **facts: Any) -> RunRecord:
        """Create the folder of a new run."""
        self.prepare()
        now = datetime.now(UTC)
        name = f"{now:%Y%m%d-%H%M%S}-{random_text()[:6]}"
        run = RunRecord(id=name, started=now.isoformat(timespec="seconds"), **facts)
        self.folder(name).mkdir(mode=0o700)
        try:
            self.save(run)
        except OSError:
            self.forget(name)
            raise
        return run

    def folder(self, name: str) -> Path:
        """The folder of a run.

        Raises:
            ConfigError: It is no name of a run.
        """
        if not _ID.fullmatch(name):
            raise ConfigError("there is no such run")
        return self._folder / name

    def save(self, run: RunRecord) -> None:
        """Write ``run.json``: whole, or not at all."""
        path = self.folder(run.id) / "run.json"
        stage = path.with_suffix(f".{random_text()[:8]}")
        text = json.dumps({"format": FORMAT, **asdict(run)}, indent=2)
        try:
            file = os.open(stage, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as opened:
                opened.write(text)
            stage.rename(path)
        except BaseException:
            with suppress(OSError):
                stage.unlink(missing_ok=True)
            raise

    def load(self, name: str) -> RunRecord:
        """Read a run.

        Raises:
            ConfigError: It is not there, or not readable.
        """
        try:
            found = read_json(self.folder(name) / "run.json")
            known = {each.name for each in fields(RunRecord)}
            facts = {key: value for key, value in found.items() if key in known}
            steps = tuple(
                Step(name=each["name"], arguments=tuple(each["arguments"]))
                for each in found["steps"]
            )
            return RunRecord(**{**facts, "steps": steps})
        except (ArtefactError, AttributeError, KeyError, TypeError):
            raise ConfigError("there is no such run; it was deleted, or its file changed") from None

    def all(self) -> list[RunRecord]:
        """All runs, the newest first."""
        return list(self._runs())

    def _runs(self) -> Iterator[RunRecord]:
        try:
            names = sorted((each.name for each in self._folder.iterdir()), reverse=True)
        except OSError:
            return
        for name in names:
            if _ID.fullmatch(name):
                with suppress(ConfigError):
                    yield self.load(name)

    def change(self, name: str, **facts: Any) -> RunRecord:
        """Change what is recorded of a run."""
        run = replace(self.load(name), **facts)
        self.save(run)
        return run

    def forget(self, name: str) -> None:
        """Remove the folder of a run."""
        shutil.rmtree(self.folder(name), ignore_errors=True)

    def status(self, run: RunRecord) -> list[StepStatus]:
        """How far each step has come, from the files of the run alone."""
        folder = self.folder(run.id)
        found = [step_status(folder, at, step) for at, step in enumerate(run.steps)]
        if self.is_cancelled(run):
            # A process that was stopped before it could listen looks like a killed one.
            found = [
                replace(each, state="cancelled") if each.state in ("waiting", "killed") else each
                for each in found
            ]
        return found

    def is_cancelled(self, run: RunRecord) -> bool:
        """Whether its owner has cancelled a run, which may still be ending."""
        return (self.folder(run.id) / "cancelled").exists()

    def mark_cancelled(self, run: RunRecord) -> None:
        """Record that a run is cancelled: no further step starts."""
        (self.folder(run.id) / "cancelled").touch(mode=0o600)


def step_status(folder: Path, at: int, step: Step) -> StepStatus:
    """How far a step has come: from its lock, its progress and its output."""
    if not (folder / f"{at}.lock").exists():
        return StepStatus(step=step, state="waiting")
    # The lock first: a process that ends between the two looks would else seem to be killed.
    is_held = is_locked(folder / f"{at}.lock")
    lines = _read_lines(folder / f"{at}.progress")
    stages = {
        str(line["stage"]): (int(line["done"]), int(line["of"]))
        for line in lines
        if "stage" in line
    }
    code = next((int(line["exit"]) for line in lines if "exit" in line), None)
    pid = next((int(line["pid"]) for line in lines if "pid" in line), None)
    written = _read_text(folder / f"{at}.pid").strip()
    pid = int(written) if written.isdigit() else pid
    state: StepState = "running"
    if not is_held:
        state = "killed" if code is None else "failed"
        state = {0: "done", INTERRUPTED: "cancelled"}.get(-1 if code is None else code, state)  # type: ignore[assignment]
    ended = state != "running"
    return StepStatus(
        step=step,
        state=state,
        stages=stages,
        code=code,
        pid=pid,
        errors=_read_text(folder / f"{at}.err") if ended else "",
        output=_read_text(folder / f"{at}.out") if ended else "",
        files=next(iter(_read_lines(folder / f"{at}.files")), {}) if ended else {},
    )


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a step.

    Raises:
        OSError: The lock cannot be tested, for example because too many files are open. The
            process must then not be treated as killed.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two tests at the same time do not see each other's lock.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_READ).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _read_lines(path: Path) -> Sequence[dict[str, Any]]:
    """Read JSON lines; skip a last line that is still being written."""
    found = []
    for line in _read_text(path).splitlines():
        with suppress(ValueError):
            value = parse_json(line.encode())
            if isinstance(value, dict):
                found.append(value)
    return found
