"""Thread pool: results in order, few tasks in flight, no waiting at the end."""

import gc
import threading
from collections.abc import Generator
from itertools import count, islice

import pytest

from deniable.workers import _TASKS_PER_WORKER, map_in_order


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(workers):
    assert list(map_in_order(lambda x: x * x, range(100), workers=workers)) == [
        x * x for x in range(100)
    ]


def test_infinite_items_have_few_tasks_in_flight():
    asked = []

    def items():
        for item in count():
            asked.append(item)
            yield item

    first = list(islice(map_in_order(lambda x: x, items(), workers=2), 10))
    assert first == list(range(10))
    assert len(asked) <= 10 + 2 * _TASKS_PER_WORKER


def test_an_exception_of_a_kernel_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda x: 1 // x, [2, 1, 0, 3], workers=2))


@pytest.mark.parametrize("end", ["closed", "collected"])
def test_closing_early_does_not_wait_for_threads(end):
    """The garbage collector may be the one, while the interpreter starts a thread.

    To wait for a thread takes a lock that is then held already: the program would stand still.
    """
    gate, waiting, finished = (threading.Event() for _ in range(3))

    def kernel(item):
        if item:
            waiting.set()
            gate.wait(10)
            finished.set()
        return item

    results = map_in_order(kernel, [0, 1, 1, 1], workers=1)
    try:
        assert next(islice(results, 1)) == 0
        assert waiting.wait(60)
        if end == "closed":
            assert isinstance(results, Generator)
            results.close()
        else:
            del results
            gc.collect()
        assert not finished.is_set(), "it came back while a kernel was at work"
    finally:
        gate.set()
