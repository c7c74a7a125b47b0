"""Results of tasks on the driver, without a cluster; with one, see test_spark_engine.py."""

import pytest

from deniable.counting.spark.spark_errors import TaskFault
from deniable.counting.spark.spark_rows import _in_order, raise_faults
from deniable.errors import DataError, InvariantError


def test_the_first_fault_is_raised():
    faults = [TaskFault("data", "second", 7), TaskFault("bug", "first", 2)]
    rows = [{"fault": None}, *({"fault": fault.encode()} for fault in faults)]
    with pytest.raises(InvariantError, match="first"):
        raise_faults(rows)
    with pytest.raises(DataError, match="second"):
        raise_faults(rows[:2])
    raise_faults(rows[:1])


def test_prefixes_are_in_the_order_of_their_codes():
    found = [(b"\x01\x00", 4), (b"\x00\xff", 5), (b"\x00\x02", 6)]
    level = _in_order(found, 1)
    assert level.prefixes[:, 0].tolist() == [2, 255, 256]
    assert level.counts.tolist() == [6, 5, 4]
    assert _in_order([], 3).prefixes.shape == (0, 3)
