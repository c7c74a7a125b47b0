"""One machine, every core: threads, since NumPy releases the interpreter while it computes."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Blocks under way for each worker: enough that none waits for the one whose turn it is, were that
# several times the work of another.
_AHEAD = 4


def all_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    kernel: Callable[[Item], Result], items: Iterable[Item], *, workers: int
) -> Iterator[Result]:
    """Yield ``kernel(item)`` in the order of the items, computed by ``workers`` threads.

    Items may be endless: only a few are under way ahead of the one that is waited for.
    """
    pool = ThreadPoolExecutor(workers)
    running: deque[Future[Result]] = deque()
    try:
        for item in items:
            running.append(pool.submit(kernel, item))
            if len(running) >= _AHEAD * workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        # Nobody waits for threads here: if the rest was not wanted, the one who ends this may be
        # the garbage collector, in a thread that is just being started, and would wait for ever.
        pool.shutdown(wait=False, cancel_futures=True)
