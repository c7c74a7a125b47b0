"""Thread pool: results in order, few tasks in flight, no waiting. Progress: every stage."""

import gc
import platform
import subprocess
import sys
import threading
from collections.abc import Generator
from itertools import count, islice

import numpy as np
import pytest

from deniable import workers
from deniable.data.codec import Codec
from deniable.pipeline import api
from deniable.release.generation import BLOCK
from deniable.workers import _TASKS_PER_WORKER, map_in_order, no_progress
from perturbation_model import PerturbationModel
from small_runs import INF, NOISE


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

    results = map_in_order(kernel, [0, 1, 1, 1], workers=2)
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


def test_progress_is_reported_for_every_stage_to_its_end(small_table, small_schema):
    reported = []

    def progress(stage, done, of):
        reported.append((stage, done, of))

    release = api.synthesize(
        small_table, small_schema, records=2 * BLOCK + 1, epsilon=INF, mode="seedless",
        progress=progress,
    )  # fmt: skip
    release.frame(progress=progress)
    assert reported[0] == ("read the table", 0, 1)
    assert reported[-1] == ("records", 2 * BLOCK + 1, 2 * BLOCK + 1)
    done = [done for stage, done, _ in reported if stage == "records"]
    assert done == sorted(done)
    assert len(done) == 4


@pytest.mark.parametrize("records", [700, 999, 1_009])
def test_a_search_for_records_is_reported_in_whole_percents(small_schema, small_codes, records):
    """How many candidates passed is exact and confidential; so are blocks in which none did.

    A percent of few records is nearly that number, so there only start and end are shown.
    """
    reported = []
    codes = np.asfortranarray(small_codes[:400])
    api.synthesize(
        Codec(small_schema).decode(codes), small_schema, records=records, mode="tested", k=8,
        gamma=4, model=PerturbationModel.of(small_schema.attributes, stay=0.7, step=2.0),
        progress=lambda *report: reported.append(report),
    )  # fmt: skip
    searched = [report for report in reported if report[0] == "candidates that passed"]
    assert {of for _, _, of in searched} == {100}
    percents = [done for _, done, _ in searched]
    assert percents == sorted(set(percents))
    assert percents[-1] == 100
    if records < 1_000:
        assert percents in ([0, 100], [100])
    else:
        assert len(percents) > 2, "several blocks are needed"


def test_without_a_callback_the_release_is_the_same(small_table, small_schema):
    """Progress is a view: reporting it must not touch the randomness of a run."""
    options = {"records": 50, "mode": "seedless", "noise": NOISE, "key": 1}
    silent = api.synthesize(small_table, small_schema, progress=no_progress, **options)
    shown = api.synthesize(small_table, small_schema, progress=lambda *_: None, **options)
    assert silent.frame().equals(shown.frame())


_COUNT_NEW_PAGES = """
import resource, sys
import numpy as np
from deniable.workers import keep_freed_memory

def count_new_pages(arrays, turns=40):
    for turn in range(turns):
        if turn == turns // 4:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        each = [np.ones(2**18) for _ in range(arrays)]
        del each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "keep":
    keep_freed_memory()
print(count_new_pages(4) + count_new_pages(12))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for the C library of GNU only")
def test_freed_memory_is_kept_for_the_next_arrays():
    """In processes of their own: what this one did before changes what the library keeps."""
    returned, kept = (
        int(subprocess.check_output([sys.executable, "-c", _COUNT_NEW_PAGES, each]))
        for each in ("return", "keep")
    )
    assert 10 * kept < returned


@pytest.mark.parametrize(
    ("info", "limit", "free"),
    [
        ("MemTotal: 9 kB\nMemAvailable:  7 kB\n", "max\n", 7 * 1024),
        ("MemAvailable: 7 kB\n", "1000\n", 1000),
        (None, "1000\n", 1000),
        (None, None, None),
    ],
)
def test_free_memory_is_the_least_of_what_the_system_states(
    monkeypatch, tmp_path, info, limit, free
):
    for name, text in (("_MEMORY_INFO", info), ("_CONTAINER_LIMIT", limit)):
        monkeypatch.setattr(workers, name, tmp_path / name)
        if text is not None:
            (tmp_path / name).write_text(text)
    assert workers.free_memory() == free
