"""Errors on a cluster: what to do, and never a message that Spark or a task made."""

import io
import logging
from types import SimpleNamespace

import pytest

from deniable.counting.spark.spark_errors import (
    TaskFault,
    describe_fault,
    is_spark_error,
    spark_errors,
)
from deniable.counting.spark.spark_rows import _in_order, batch_size, raise_faults
from deniable.errors import (
    ConfigError,
    DataError,
    DeniableError,
    EngineError,
    InvariantError,
    OutputError,
)

CELL = "heliotrope-marsh"


def spark_error(text):
    """An exception as Spark raises it, with a row in its message."""
    kind = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    return kind(f"Job aborted: {text}; Row({CELL})")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("[PYTHON_VERSION_MISMATCH] 3.12", "another version of Python"),
        ("ModuleNotFoundError: No module named 'deniable'", "install deniable\\[spark\\]"),
        ("ExecutorLostFailure (executor 3 exited)", "lost too often"),
        ("All masters are unresponsive! Giving up", "out of reach: check --master"),
        ("java.lang.IllegalStateException", "Spark could not count \\(Py4JJavaError\\)"),
    ],
)
def test_an_error_of_spark_says_what_to_do(text, advice):
    with pytest.raises(EngineError, match=advice) as caught, spark_errors("count"):
        raise spark_error(text)
    assert CELL not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert caught.value.exit_code == 2


def test_pyspark_does_not_log_a_message_that_is_caught(capfd, monkeypatch):
    """Its exceptions log themselves, with the cell that they quote, when they are made."""
    logger = pytest.importorskip("pyspark.logger").PySparkLogger
    monkeypatch.delenv("DENIABLE_DEBUG", raising=False)
    loggers = [logger.getLogger(f"{name}QueryContextLogger") for name in ("DataFrame", "SQL")]
    handler = logging.StreamHandler(io.StringIO())

    def fail():
        for each in loggers:
            each.exception(f"The value '{CELL}'", errorClass="CAST_INVALID_INPUT")
        raise spark_error("CAST_INVALID_INPUT")

    for each in loggers:
        monkeypatch.setattr(each, "handlers", [handler])
    with pytest.raises(EngineError), spark_errors("count"), spark_errors("count"):
        fail()
    assert handler.stream.getvalue() == ""
    assert CELL not in capfd.readouterr().err
    with pytest.raises(Exception, match=CELL):
        fail()
    assert handler.stream.getvalue().count(CELL) >= 2


def test_before_a_table_is_read_the_reason_is_shown():
    """Its first line: of Java's exception, not of the call that raised it."""
    text = "An error occurred\n: SparkException: Asked for 512 MiB at sc://h/;token=abc;x\n\tat x"
    expected = (
        r"\(Py4JJavaError\). Spark reports: SparkException: Asked for 512 MiB at sc://h/;token=…;x."
    )
    start = spark_errors("start a session", is_start=True)
    with pytest.raises(EngineError, match=expected) as caught, start:
        raise spark_error(text)
    assert "DENIABLE_DEBUG=1" in str(caught.value)
    assert CELL not in str(caught.value)


def test_errors_of_our_own_and_bugs_pass():
    for error in (DataError("x"), ZeroDivisionError()):
        with pytest.raises(type(error)), spark_errors("count"):
            raise error
    assert not is_spark_error(ValueError())
    assert is_spark_error(ConnectionRefusedError())


@pytest.mark.parametrize(
    ("error", "origin", "kind"),
    [
        (DataError("line 3"), "data", DataError),
        (OutputError("disk full"), "output", OutputError),
        (ConfigError("odd"), "bug", InvariantError),
        (RuntimeError(CELL), "bug", InvariantError),
    ],
)
def test_a_fault_of_a_task_is_raised_on_the_driver(error, origin, kind):
    caught: BaseException = error
    try:
        raise error
    except (DeniableError, RuntimeError) as raised:
        caught = raised
    fault = TaskFault.decode(describe_fault(caught, 4).encode())
    assert (fault.origin, fault.item) == (origin, 4)
    assert CELL not in fault.message
    with pytest.raises(kind):
        fault.throw()


def test_another_version_is_an_engine_error():
    with pytest.raises(EngineError, match="same"):
        TaskFault("version", "install the same version", 0).throw()


def test_a_bug_names_its_place():
    try:
        int("x" + CELL)
    except ValueError as error:
        fault = describe_fault(error, 0)
    assert "ValueError at test_spark_errors.py:" in fault.message


def test_the_first_fault_is_raised():
    faults = [TaskFault("data", "second", 7), TaskFault("bug", "first", 2)]
    rows = [{"fault": None}, *({"fault": fault.encode()} for fault in faults)]
    with pytest.raises(InvariantError, match="first"):
        raise_faults(rows)
    with pytest.raises(DataError, match="second"):
        raise_faults(rows[:2])
    raise_faults(rows[:1])


class Conf(dict[str, str]):
    def set(self, name, value):
        self[name] = value


def test_a_setting_of_the_users_session_is_put_back():
    conf = Conf({(name := "spark.sql.execution.arrow.maxRecordsPerBatch"): "777"})
    with batch_size(SimpleNamespace(conf=conf), 16):
        assert conf[name] == "16"
    with pytest.raises(DataError), batch_size(SimpleNamespace(conf=conf), 16):
        raise DataError("x")
    assert conf[name] == "777"


def test_prefixes_are_in_the_order_of_their_codes():
    found = [(b"\x01\x00", 4), (b"\x00\xff", 5), (b"\x00\x02", 6)]
    level = _in_order(found, 1)
    assert level.prefixes[:, 0].tolist() == [2, 255, 256]
    assert level.counts.tolist() == [6, 5, 4]
    assert _in_order([], 3).prefixes.shape == (0, 3)
