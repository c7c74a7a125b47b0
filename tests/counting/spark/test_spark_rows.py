"""Results of tasks on the driver, without a cluster; with one, see test_spark_engine.py."""

from types import SimpleNamespace

import pytest

from deniable.counting.spark.spark_errors import TaskFault
from deniable.counting.spark.spark_rows import _in_order, batch_size, raise_faults
from deniable.errors import DataError, InvariantError


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
