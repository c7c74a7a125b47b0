"""Sessions: what must be set, who is refused, and what is missing, each with what to do."""

import os
import socket
import stat
from types import SimpleNamespace

import pytest

from deniable.counting.spark import spark_errors, spark_session
from deniable.counting.spark.spark_session import (
    CONFIDENTIAL,
    open_session,
    require_confidential,
    require_java,
    require_pyspark,
    session_of,
)
from deniable.errors import EngineError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark")


class Conf:
    def __init__(self, values):
        self._values = values

    def get(self, name, default):
        return self._values.get(name, default)


class Session:
    """What the check reads of a session."""

    def __init__(self, **changed):
        closed = {name: wanted for name, (wanted, _) in CONFIDENTIAL.items()}
        values = closed | {name.replace("_", "."): value for name, value in changed.items()}
        conf = Conf({name: value for name, value in values.items() if value is not None})
        self.sparkContext = SimpleNamespace(getConf=lambda: conf)
        # What anyone may have written into the settings of SQL since.
        self.conf = Conf(closed)


def test_a_confidential_session_is_accepted():
    require_confidential(Session(), accept_open=False)
    require_confidential(Session(spark_eventLog_enabled=None), accept_open=False)


@pytest.mark.parametrize("name", list(CONFIDENTIAL))
def test_each_setting_is_needed(name):
    wanted, own = CONFIDENTIAL[name]
    opened = Session(**{name: "false" if wanted == "true" else "true"})
    with pytest.raises(
        EngineError, match=f"Stop the session and make a new one with {name}={wanted};"
    ):
        require_confidential(opened, accept_open=False)
    require_confidential(opened, accept_open=True)
    if own != wanted:
        with pytest.raises(EngineError, match=name):
            require_confidential(Session(**{name: None}), accept_open=False)


def test_a_session_with_a_ui_is_refused():
    """Spark shows the number of rows there, unless it is switched off."""
    with pytest.raises(EngineError, match=r"new one with spark.ui.enabled=false"):
        require_confidential(Session(**{"spark.ui.enabled": "true"}), accept_open=False)


def test_tls_serves_as_well_as_encrypted_messages():
    name = "spark.network.crypto.enabled"
    require_confidential(
        Session(**{name: "false", "spark.ssl.rpc.enabled": "true"}), accept_open=False
    )


def connect_session(**client):
    """A session of Spark Connect, as a user brings it."""

    class Connected(Session):
        def __init__(self):
            super().__init__()
            del self.sparkContext
            self.client = SimpleNamespace(**client)

    Connected.__module__ = "pyspark.sql.connect.session"
    return Connected()


def test_a_session_of_spark_connect_that_is_brought_needs_tls():
    secure = connect_session(_builder=SimpleNamespace(use_ssl=True))
    assert session_of(SimpleNamespace(sparkSession=secure), accept_open=False) is secure
    for client in ({"_builder": SimpleNamespace(use_ssl=False)}, {"_builder": object()}, {}):
        brought = connect_session(**client)
        with pytest.raises(EngineError, match="Spark Connect without TLS"):
            session_of(SimpleNamespace(sparkSession=brought), accept_open=False)
        assert session_of(SimpleNamespace(sparkSession=brought), accept_open=True) is brought


def java(tmp_path, monkeypatch, script):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "this is version 11. Install it"),
        ("echo 'java version \"1.8.0_402\"' >&2", "this is version 8. Install it"),
        ("exit 1", "this one cannot be started. Install it"),
    ],
)
def test_a_wrong_java_is_named(tmp_path, monkeypatch, script, expected):
    java(tmp_path, monkeypatch, script)
    with pytest.raises(EngineError, match=expected):
        require_java()


def test_java_17_will_do(tmp_path, monkeypatch):
    java(tmp_path, monkeypatch, "echo 'openjdk version \"17.0.15\" 2025' >&2")
    require_java()


def test_no_java_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"there is none. Install it .*openjdk-17-jre-headless"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineError, match="there is none"):
        require_java()


def test_without_the_extra_there_is_no_engine(monkeypatch):
    monkeypatch.setattr(spark_session, "find_spec", lambda name: None if name == "pyspark" else 1)
    with pytest.raises(EngineError, match=r"pip install 'deniable\[spark\]'"):
        require_pyspark()


@pytest.fixture
def no_session(monkeypatch):
    pytest.importorskip("pyspark")
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(
    ("master", "expected"),
    [
        (None, "needs --master"),
        ("spark://127.0.0.1:9", "out of reach .*check the address"),
        ("sc://127.0.0.1:9/;use_ssl=true;token=heliotrope", "sc://127.0.0.1:9/ is out of reach"),
        ("sc://127.0.0.1:9", "without TLS"),
        ("sc://127.0.0.1:9/;token=heliotrope", "without TLS"),
        ("sc://127.0.0.1:9/;use_ssl=true;use_ssl=false", "without TLS"),
        ("sc://h:seven/;use_ssl=true;token=heliotrope", "write it as sc://HOST:PORT"),
        ("spark://", "write it as spark://HOST:PORT"),
        ("spark://h:seven", "write it as spark://HOST:PORT"),
    ],
)
def test_a_master_out_of_reach_is_an_error_at_once(master, expected):
    with pytest.raises(EngineError, match=expected) as caught:
        open_session(master, accept_open=False)
    assert "heliotrope" not in str(caught.value)


@pytest.mark.usefixtures("no_session")
def test_a_remote_of_the_environment_needs_tls_too(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:9")
    with pytest.raises(EngineError, match=r"use_ssl=true; or pass --accept-open-cluster"):
        open_session(None, accept_open=False)
    with pytest.raises(EngineError, match="out of reach"):
        open_session(None, accept_open=True)


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize("accept_open", [True, False])
def test_a_running_context_is_found_without_an_active_session(monkeypatch, accept_open):
    """A builder with settings would seem to change it: it is read as it runs."""
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    running = Session(**{"spark.io.encryption.enabled": "false"})
    monkeypatch.setattr(SparkContext, "_active_spark_context", running.sparkContext)
    monkeypatch.setattr(SparkSession, "builder", SimpleNamespace(getOrCreate=lambda: running))
    if accept_open:
        assert open_session("local[1]", accept_open=True) is running
        return
    with pytest.raises(EngineError, match=r"a new one with spark.io.encryption.enabled=true;"):
        open_session("local[1]", accept_open=False)


def test_each_kind_of_cluster_has_its_secret():
    """Spark makes one itself on YARN and Kubernetes; a standalone cluster has one already."""
    one, two = (spark_session._secret_for("local-cluster[2,1,1024]") for _ in range(2))
    assert one != two
    assert len(one["spark.authenticate.secret"]) == 64
    assert spark_session._secret_for("yarn") == {}
    with pytest.raises(EngineError, match=r"needs spark.authenticate.secret, the same as"):
        spark_session._secret_for("spark://host:7077")


def test_one_master_of_several_suffices():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        spark_session._require_reachable(f"spark://127.0.0.1:9,127.0.0.1:{port}")
    with pytest.raises(EngineError, match="out of reach"):
        spark_session._require_reachable("spark://127.0.0.1:9,127.0.0.1:9")


def test_a_secret_of_the_cluster_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not spark_session._is_set_elsewhere("spark.authenticate.secret")
    (tmp_path / "spark-defaults.conf").write_text("# x\nspark.authenticate.secret  abc\n")
    assert spark_session._is_set_elsewhere("spark.authenticate.secret")
    assert not spark_session._is_set_elsewhere("spark.authenticate")
    assert os.environ["SPARK_CONF_DIR"]


def test_a_java_that_is_started_has_no_standard_error(capfd, monkeypatch):
    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    with spark_errors.unprinted_log():
        os.write(2, b"a cell")
    os.write(2, b"ours")
    monkeypatch.setenv("DENIABLE_DEBUG", "1")
    with spark_errors.unprinted_log():
        os.write(2, b" shown")
    assert capfd.readouterr().err == "ours shown"
