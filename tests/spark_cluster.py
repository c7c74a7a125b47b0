"""A cluster of two executor processes on this machine, which use the loopback device alone."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from deniable.counting.spark import spark_session
from deniable.errors import EngineError

MASTER = "local-cluster[2,1,1024]"
# Small tables need few shuffle partitions, and short runs no optimizing compiler: less to wait for.
DEFAULTS = """
spark.sql.shuffle.partitions 3
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""


@contextmanager
def cluster(folder: Path) -> Iterator[object]:
    """Start a session as the engine starts it; logs and spilled blocks are below ``folder``."""
    try:
        spark_session.require_pyspark()
        spark_session.require_java()
    except EngineError as error:
        pytest.skip(str(error))
    import pyspark  # noqa: PLC0415 - it may not be installed

    home = folder / "home"
    home.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    (home / "conf").mkdir(exist_ok=True)
    (home / "conf" / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(folder / "local")}
    with patch.dict(os.environ, settings):
        session = spark_session.open_session(MASTER, accept_open=False)
        try:
            yield session
        finally:
            session.stop()


def written_files(folder: Path) -> list[Path]:
    """List what the processes of the cluster wrote: logs, blocks, spilled rows."""
    places = (folder / "home" / "work", folder / "local")
    # Not Path.rglob: it fails if Spark removes a folder meanwhile.
    walks = (walk for place in places for walk in os.walk(place))
    found = (Path(where) / name for where, _, names in walks for name in names)
    return [path for path in found if path.is_file()]


def kill_own_executor() -> None:
    """Kill the executor of the task that calls this: the parent of Spark's daemon of Pythons."""
    daemon = os.getppid()
    stat = Path(f"/proc/{daemon}/stat").read_text(encoding="ascii")
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
