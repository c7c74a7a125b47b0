"""Spark sessions that keep a confidential table to themselves.

A session that is made here encrypts what it writes and sends, knows its executors by a secret, and
has neither a UI nor an event log: both show exact numbers of rows. Another session is refused.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.counting.spark.spark_errors import spark_errors, unprinted_log
from deniable.errors import EngineError
from deniable.randomness import Expanded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each setting, the value that it must have, and the value that Spark gives it.
CONFIDENTIAL = {
    "spark.io.encryption.enabled": ("true", "false"),
    "spark.authenticate": ("true", "false"),
    "spark.network.crypto.enabled": ("true", "false"),
    "spark.ui.enabled": ("false", "true"),
    "spark.eventLog.enabled": ("false", "false"),
}
# TLS between the processes serves as well as the encryption of messages.
_TLS = "spark.ssl.rpc.enabled"
_OWN_SETTINGS = {
    "spark.app.name": "deniable",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_AUTHENTICATION = "spark.authenticate.secret"
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_LEAST_JAVA = 17
_NO_TLS = (
    "Spark Connect without TLS sends what is confidential in the clear: write "
    "sc://HOST:PORT/;use_ssl=true; or pass --accept-open-cluster (in Python, "
    "accept_open_cluster=True) if the network is as confidential as the table"
)
_MASTER_PORTS = {"spark": 7077, "sc": 15002}
_CONNECT_SECONDS = 5.0


def open_session(master: str | None, *, accept_open: bool) -> "SparkSession":
    """Return the active session, or make one.

    Args:
        master: The URL of the cluster: spark://, yarn, k8s://, local-cluster[…], local[…], or
            sc:// for Spark Connect. None: the active session, or what spark-submit has set.
        accept_open: Whether a session may show or write what is confidential.

    Raises:
        EngineError: Spark or Java is missing, the cluster is out of reach, or the session is not
            confidential.
    """
    require_pyspark()
    # It is printed for every job; what is used here works with pandas 3.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    session_class = import_module("pyspark.sql").SparkSession
    active = _running_session(session_class)
    if active is not None:
        require_confidential(active, accept_open=accept_open)
        return active
    remote = os.environ.get("SPARK_REMOTE") if master is None else master
    if remote is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        raise EngineError("--engine spark needs --master, the URL of the cluster")
    is_connect = master is None or master.startswith("sc://")
    if remote is not None and is_connect and not accept_open:
        _require_tls(remote)
    _require_reachable(remote or "")
    with spark_errors("start a session", is_start=True):
        if remote is not None and is_connect:
            session: SparkSession = session_class.builder.remote(remote).getOrCreate()
        else:
            require_java()
            with unprinted_log():
                session = _build(session_class.builder, master)
    require_confidential(session, accept_open=accept_open)
    return session


def session_of(frame: Any, *, accept_open: bool) -> "SparkSession":
    """Return the session of a DataFrame, which need not be the active one.

    Raises:
        EngineError: The session is not confidential.
    """
    require_pyspark()
    session: SparkSession = frame.sparkSession
    require_confidential(session, accept_open=accept_open)
    return session


def _running_session(session_class: Any) -> "SparkSession | None":
    """Return the session of this process, also one that another thread made; None without one.

    Settings of a new session would not change a context that runs, but only seem to.
    """
    active: SparkSession | None = session_class.getActiveSession()
    if active is None and import_module("pyspark").SparkContext._active_spark_context is not None:
        with spark_errors("use the running session"):
            active = session_class.builder.getOrCreate()
    return active


def _require_tls(remote: str) -> None:
    """Refuse a connection of Spark Connect that is not encrypted."""
    words = remote.partition("://")[2].partition("/")[2].split(";")
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    if settings.get("use_ssl", "").lower() != "true":
        raise EngineError(_NO_TLS)


def _uses_tls(session: Any) -> bool:
    """Whether a session of Spark Connect, made by anyone, encrypts its connection."""
    builder = getattr(getattr(session, "client", None), "_builder", None)
    return getattr(builder, "use_ssl", False) is True


def _build(builder: Any, master: str | None) -> "SparkSession":
    """Make a session. Java is started before it has settings: its arguments are not secret."""
    settings = {name: value for name, (value, _) in CONFIDENTIAL.items()} | _OWN_SETTINGS
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            settings |= _LOOPBACK
            _stay_on_this_machine()
    if not _is_set_elsewhere(_AUTHENTICATION):
        settings |= _secret_for(master or "")
    for name, value in settings.items():
        builder = builder.config(name, value)
    import_module("pyspark").SparkContext._ensure_initialized()
    session: SparkSession = builder.getOrCreate()
    return session


def _secret_for(master: str) -> dict[str, str]:
    """Make the secret by which processes know each other, where Spark itself makes none.

    A cluster on this machine gets a fresh one. The processes of a standalone cluster have theirs
    already, which this session must know.
    """
    if master.startswith("local-cluster"):
        return {_AUTHENTICATION: Expanded.fresh().token("authenticate").hex()}
    if master.startswith("spark://"):
        raise EngineError(
            f"a standalone cluster needs {_AUTHENTICATION}, the same as its master and workers "
            "have, in spark-defaults.conf of this machine (SPARK_CONF_DIR)"
        )
    return {}


def _stay_on_this_machine() -> None:
    """Let all processes of a local cluster use the loopback device and this Python."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    home = Path(str(import_module("pyspark").__file__)).parent
    os.environ.setdefault("SPARK_HOME", str(home))


def _is_set_elsewhere(name: str) -> bool:
    """Whether Spark's own configuration file sets something, such as a cluster's secret."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf"
    try:
        text = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(rf"^\s*{re.escape(name)}[\s=:]", text, re.MULTILINE) is not None


def require_confidential(session: "SparkSession", *, accept_open: bool) -> None:
    """Refuse a session that would show or write what is confidential.

    Raises:
        EngineError: Some settings are not as they must be; the message lists them.
    """
    if accept_open:
        return
    if _is_connect(session) and not _uses_tls(session):
        raise EngineError(_NO_TLS)
    with spark_errors("read the settings of the session"):
        # Not session.conf: settings of SQL, in which anyone may write what the context has not.
        conf = session.conf if _is_connect(session) else session.sparkContext.getConf()
        found = {name: _setting(conf, name, own) for name, (_, own) in CONFIDENTIAL.items()}
        if _setting(conf, _TLS, "false") == "true":
            found["spark.network.crypto.enabled"] = "true"
    wrong = [
        f"{name}={wanted}" for name, (wanted, _) in CONFIDENTIAL.items() if found[name] != wanted
    ]
    if wrong:
        raise EngineError(
            "the Spark session is not confidential: it may write or show rows, or exact numbers of "
            f"rows. Stop the session and make a new one with {', '.join(wrong)}; or let deniable "
            "make it (--master); or pass --accept-open-cluster (in Python, "
            "accept_open_cluster=True) if you know that all of the cluster, with its logs, is as "
            "confidential as the table"
        )


def _is_connect(session: object) -> bool:
    return any(base.__module__.startswith("pyspark.sql.connect") for base in type(session).__mro__)


def _setting(conf: Any, name: str, default: str) -> str:
    return str(conf.get(name, default)).lower()


def require_pyspark() -> None:
    """Raise an error unless the extra is installed."""
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]
    if missing:
        raise EngineError(f"{missing[0]} is not installed: pip install 'deniable[spark]'")
    version = str(import_module("pyspark").__version__)
    if int(version.partition(".")[0]) < 4:
        raise EngineError(f"pyspark {version} is too old: pip install 'deniable[spark]'")


def require_java() -> None:
    """Raise an error unless there is a Java that Spark 4 can use."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = "Install it (Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME"
    if program is None or not os.access(program, os.X_OK):
        raise EngineError(f"Spark needs Java {_LEAST_JAVA} or later, and there is none. {how}")
    done = subprocess.run([program, "-version"], check=False, capture_output=True, text=True)  # noqa: S603
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if found is None or int(found[1]) < _LEAST_JAVA:
        version = f"this is version {found[1]}" if found else "this one cannot be started"
        raise EngineError(f"Spark needs Java {_LEAST_JAVA} or later; {version}. {how}")


def _require_reachable(master: str) -> None:
    """Try to reach the master: Spark would wait for minutes."""
    scheme, _, place = master.partition("://")
    if scheme not in _MASTER_PORTS:
        return
    places = place.partition("/")[0].partition(";")[0].split(",")
    shown = master.partition(";")[0]  # what follows may be a token
    why = ""
    for each in places:
        host, _, port = each.rpartition(":") if ":" in each else (each, "", "")
        if not host or not (port or "0").isdigit():
            raise EngineError(f"--master {shown}: write it as {scheme}://HOST:PORT")
        try:
            address = host, int(port or _MASTER_PORTS[scheme])
            socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
        else:
            return
    raise EngineError(
        f"--master {shown} is out of reach ({why}): check the address, and that it runs"
    )
