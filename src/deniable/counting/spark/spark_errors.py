"""Errors on a cluster: faults of tasks as values, and Spark's own errors in words of ours.

No task raises: Spark would print the traceback to a log, and a message may quote a cell. A task
returns a fault instead. What Spark itself reports is never shown, for the same reason.
"""

import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, NoReturn

from deniable.errors import DataError, DeniableError, EngineError, InvariantError, OutputError

FaultOrigin = Literal["data", "output", "version", "bug"]

# File descriptor of standard error.
_STDERR = 2
# Loggers of PySpark that print an error's message on standard error before anyone can catch it.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_NOT_SHOWN = "Spark's message is not shown, as it may quote cells."
# What Spark's errors contain, and what to do then.
_KNOWN = (
    (
        ("PYTHON_VERSION_MISMATCH", "Python in worker has different version"),
        "the executors run another version of Python than this program: set PYSPARK_PYTHON to the "
        "same Python on all machines",
    ),
    (
        ("No module named", "ModuleNotFoundError", "Can't get attribute"),
        "the executors do not have this version of deniable and of what it needs: install "
        "deniable[spark] in the Python of all machines (PYSPARK_PYTHON)",
    ),
    (
        ("ExecutorLostFailure", "Executor heartbeat timed out", "executor failures", "SIGKILL"),
        "executors were lost too often, and Spark gave up: give them more memory "
        "(spark.executor.memory, spark.executor.memoryOverhead), or write the table in smaller "
        "parts. Nothing was released",
    ),
    (
        ("All masters are unresponsive", "Connection refused", "UNAVAILABLE", "UnknownHost"),
        "the cluster is out of reach: check --master, and that the cluster runs",
    ),
)


@dataclass(frozen=True)
class TaskFault:
    """What went wrong in a task. Its message has no cell.

    Attributes:
        origin: The table, the output, the installation on the executor, or a bug.
        message: The message; for a bug, the kind of exception and where it was raised.
        item: The number of the part, block or partition.
    """

    origin: FaultOrigin
    message: str
    item: int

    def encode(self) -> str:
        """Encode as JSON."""
        return json.dumps([self.origin, self.message, self.item])

    @classmethod
    def decode(cls, text: str) -> "TaskFault":
        """Decode what ``encode`` wrote."""
        return cls(*json.loads(text))

    def throw(self) -> NoReturn:
        """Raise the fault, on the driver."""
        kinds: dict[FaultOrigin, type[DeniableError]] = {
            "data": DataError,
            "output": OutputError,
            "version": EngineError,
            "bug": InvariantError,
        }
        raise kinds[self.origin](self.message)


def describe_fault(error: BaseException, item: int) -> TaskFault:
    """Turn an exception into a fault: our own message, or where a foreign one was raised."""
    if isinstance(error, DataError):
        return TaskFault("data", str(error), item)
    if isinstance(error, OutputError):
        return TaskFault("output", str(error), item)
    if isinstance(error, DeniableError):
        return TaskFault("bug", f"{type(error).__name__} in a task: {error}", item)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "deniable" in PurePath(frame.filename).parts] or frames
    place = f"{PurePath(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "an unknown place"
    message = (
        f"{type(error).__name__} at {place} in a task on the cluster; its message is not shown"
    )
    return TaskFault("bug", message, item)


@contextmanager
def unprinted_log() -> Iterator[None]:
    """Take standard error from the block, and from processes that it starts.

    The log of Java, and the message of a panic in a library, may quote cells. If the environment
    sets DENIABLE_DEBUG, they are printed.
    """
    if os.environ.get("DENIABLE_DEBUG"):
        yield
        return
    kept, nowhere = os.dup(_STDERR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def spark_errors(action: str, *, is_start: bool = False) -> Iterator[None]:
    """Turn errors of Spark into an ``EngineError`` with advice, without their message.

    Args:
        action: What is done in the block, to complete "Spark could not".
        is_start: Whether a session is started: then no table was read, and the message is shown.
    """
    try:
        with nullcontext() if os.environ.get("DENIABLE_DEBUG") else _silent_loggers():
            yield
    except DeniableError:
        raise
    except Exception as error:  # py4j, pyspark and gRPC have no common base
        if not is_spark_error(error):
            raise
        text = str(error)
        advice = next((what for marks, what in _KNOWN if any(m in text for m in marks)), None)
        why = (
            f"{_first_line(text)} DENIABLE_DEBUG=1 prints Spark's log." if is_start else _NOT_SHOWN
        )
        problem = advice or f"Spark could not {action} ({type(error).__name__}). {why}"
        raise EngineError(problem) from None


@contextmanager
def _silent_loggers() -> Iterator[None]:
    """Disable PySpark's loggers of errors in the block: a message may quote a cell."""
    module = sys.modules.get("pyspark.logger")
    loggers = [module.PySparkLogger.getLogger(name) for name in _LOGGERS] if module else []
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def _first_line(text: str) -> str:
    """Return the first line of what Java, or else Python, reports; without tokens."""
    lines = [line for line in text.splitlines() if line.strip()]
    reported = next((line for line in lines if line.startswith(": ")), lines[0] if lines else "")
    reported = re.sub(r"token=[^;\s]*", "token=…", reported.removeprefix(": ").strip())
    return f"Spark reports: {reported.rstrip('.')}." if reported else ""


def is_spark_error(error: BaseException) -> bool:
    """Whether an exception comes from Spark or its connection."""
    bases = {base.__module__.partition(".")[0] for base in type(error).__mro__}
    return bool(bases & {"py4j", "pyspark", "grpc"}) or isinstance(error, ConnectionError)
