"""Start, follow and cancel the processes of runs. They continue if the server stops."""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from deniable.studio.checked_files import state_of_files
from deniable.studio.made_output import record_made
from deniable.studio.run_store import RunRecord, RunStore, StepStatus, is_locked

# Seconds between two checks of the runs.
_POLL_SECONDS = 0.25
_READ_BYTES = 2**20
# -P: a file of the table's folder must not be imported as a module.
PROGRAM = (sys.executable, "-P", "-m", "deniable")
# Steps whose result is wanted even if an earlier check failed.
_CHECKS = "verify"


class RunControl:
    """Starts the steps of runs, one after the other.

    Args:
        root: The folder in which commands run.
        store: The runs.
        program: The command line; tests have shorter ones.

    Attributes:
        processes: Those that were started here, and may go on.
    """

    def __init__(self, root: Path, store: RunStore, program: Sequence[str] = PROGRAM) -> None:
        self._program = tuple(program)
        self._root = root
        self._store = store
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._watched: set[str] = set()
        self._obstacles: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Find the runs that have not ended, and watch them."""
        for run in self._store.all():
            self._watched.add(run.id)
        self._thread = threading.Thread(target=self._watch, name="runs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. Processes go on without us."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def begin(self, run: RunRecord) -> None:
        """Start the first step of a new run."""
        self._watched.add(run.id)
        self.advance(run)

    def advance(self, run: RunRecord) -> None:
        """Start the next step, if the one before is done; clean up after a killed one."""
        with self._lock:
            self._obstacles.pop(run.id, None)
            # Before a further step starts, which may change what is there.
            record_made(self._store, self._root, run)
            for at, status in enumerate(self._store.status(run)):
                if status.state == "waiting":
                    self._start_step(run, at)
                    return
                if status.state == "running":
                    return
                if status.state in ("killed", "cancelled"):
                    self._remove_remains(run, status)
                if status.state != "done" and status.step.arguments[0] != _CHECKS:
                    break
            self._watched.discard(run.id)

    def obstacle(self, run: RunRecord) -> str:
        """Why the next step of a run cannot start for now; "" if nothing is in its way."""
        return self._obstacles.get(run.id, "")

    def cancel(self, run: RunRecord) -> None:
        """Ask the running step to stop: it removes what it has begun to write.

        A second time, end it at once; then its remains are removed for it.
        """
        folder = self._store.folder(run.id)
        with self._lock:
            number = signal.SIGKILL if self._store.is_cancelled(run) else signal.SIGTERM
            self._store.mark_cancelled(run)
        self._watched.add(run.id)
        for at, status in enumerate(self._store.status(run)):
            # While the lock is held, the process is ours: no other can have its number.
            if status.pid is not None and is_locked(folder / f"{at}.lock"):
                with suppress(ProcessLookupError):
                    os.kill(status.pid, number)

    def _watch(self) -> None:
        while not self._stopped.wait(_POLL_SECONDS):
            self.processes = [each for each in self.processes if each.poll() is None]
            for name in list(self._watched):
                try:
                    self.advance(self._store.load(name))
                except Exception as fault:
                    # One run must not end the watch over the others. A full disk or too many open
                    # files pass: it is tried again, as long as its folder is there.
                    self._obstacles[name] = _reason(fault)
                    if not self._store.folder(name).exists():
                        self._watched.discard(name)

    def _start_step(self, run: RunRecord, at: int) -> None:
        """Start a process that holds the lock of its step until it ends."""
        folder = self._store.folder(run.id)
        try:
            lock = os.open(folder / f"{at}.lock", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except FileExistsError:
            return  # another server was faster
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._keep_state(folder, at, run)
            process = self._spawn(folder, at, run, lock)
            self.processes.append(process)
            # On a full disk it goes on without: the process reports its number by itself.
            with suppress(OSError):
                (folder / f"{at}.pid").write_text(f"{process.pid}\n", encoding="ascii")
        except OSError as fault:
            reason = f"the process could not be started ({fault.strerror})"
            if not _write_failure(folder, at, reason):
                # Not even that fits on the disk: leave the step as it was, to be tried again.
                self._obstacles[run.id] = _reason(fault)
                for end in ("files", "out", "err", "progress", "lock"):
                    (folder / f"{at}.{end}").unlink(missing_ok=True)
        finally:
            os.close(lock)

    def _keep_state(self, folder: Path, at: int, run: RunRecord) -> None:
        """Keep the state of a release before it is checked: a verdict holds for these files."""
        command, *rest = run.steps[at].arguments
        if command == _CHECKS and rest:
            state = json.dumps(state_of_files(self._root / rest[0]))
            with _new_file(folder / f"{at}.files") as file:
                file.write(state.encode())

    def _spawn(self, folder: Path, at: int, run: RunRecord, lock: int) -> "subprocess.Popen[bytes]":
        command = [*self._program, *run.steps[at].arguments, "--json"]
        with (
            _new_file(folder / f"{at}.out") as out,
            _new_file(folder / f"{at}.err") as err,
            _new_file(folder / f"{at}.progress"),
        ):
            environment = {**os.environ, "DENIABLE_PROGRESS": str(folder / f"{at}.progress")}
            environment.pop("DENIABLE_DEBUG", None)
            return subprocess.Popen(  # noqa: S603 - arguments are a list; no shell reads them
                command,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                pass_fds=(lock,),
                start_new_session=True,
            )

    def _remove_remains(self, run: RunRecord, status: StepStatus) -> None:
        """Remove what a killed process had begun to write next to its target."""
        if status.pid is None or not run.out:
            return
        target = self._root / run.out
        for name in (target.name, f"{target.name}.internal", f"{target.name}.manifest.json"):
            remains = target.with_name(f".partial.{status.pid}.{name}")
            if remains.is_dir() and not remains.is_symlink():
                shutil.rmtree(remains, ignore_errors=True)
            else:
                with suppress(OSError):
                    remains.unlink(missing_ok=True)
        report = self._root / f"{run.out}.internal" / f".partial.{status.pid}.report"
        shutil.rmtree(report, ignore_errors=True)


def _reason(fault: Exception) -> str:
    """What is in the way of a step, in words of the system: they quote no cell."""
    return (fault.strerror if isinstance(fault, OSError) else None) or type(fault).__name__


def _new_file(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


def _write_failure(folder: Path, at: int, message: str) -> bool:
    """Record why a step could not start; return whether that worked."""
    try:
        (folder / f"{at}.err").write_text(message, encoding="utf-8")
        (folder / f"{at}.progress").write_text(json.dumps({"exit": 2}) + "\n", encoding="utf-8")
    except OSError:
        return False
    return True


def hash_table(path: Path) -> str:
    """SHA-256 of a table. Confidential: it identifies the table."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
