"""Long work on one machine: a pool of threads, its memory, and a callback that reports progress.

Threads suffice, because NumPy releases the GIL while it computes.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

# Where Linux states the free memory, and a container its limit.
_MEMORY_INFO, _CONTAINER_LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")

Item = TypeVar("Item")
Result = TypeVar("Result")

# Tasks in flight per worker: enough to keep all workers busy while the next result in order takes
# several times longer than the others.
_TASKS_PER_WORKER = 4

# Freed memory up to twice this size stays with the process.
_KEPT_BYTES = 2**24

# Called with the name of a stage, the work done and the total work.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, of: int) -> None:
    """No-op progress callback."""


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> int | None:
    """The bytes that this process can still allocate, by the system or its container; or None."""
    found = []
    with suppress(OSError, ValueError):
        lines = _MEMORY_INFO.read_text(encoding="ascii").splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # "max" is no number: no limit
        found.append(int(_CONTAINER_LIMIT.read_text(encoding="ascii")))
    return min(found, default=None)


def keep_freed_memory() -> None:
    """Make the C library keep some of the memory that is freed.

    For kernels that allocate the same large arrays for each item. New pages cost as much time as a
    sixth of all that is done with them. By default glibc returns nearly everything to the system;
    it keeps up to twice as much as the largest array that was freed. This one is never written to,
    so it occupies no memory. Other libraries are not affected.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)


def map_in_order(
    kernel: Callable[[Item], Result], items: Iterable[Item], *, workers: int
) -> Iterator[Result]:
    """Map ``kernel`` over items with ``workers`` threads; yield the results in the items' order.

    Items may be infinite: only a few tasks are in flight ahead of the next result. A single worker
    is the calling thread, which does nothing ahead.
    """
    if workers == 1:
        yield from map(kernel, items)
        return
    pool = ThreadPoolExecutor(workers)
    running: deque[Future[Result]] = deque()
    try:
        for item in items:
            running.append(pool.submit(kernel, item))
            if len(running) >= _TASKS_PER_WORKER * workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        # Do not wait for the threads: the garbage collector may close this generator in a thread
        # that is just being started, which would deadlock.
        pool.shutdown(wait=False, cancel_futures=True)
