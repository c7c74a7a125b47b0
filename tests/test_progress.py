"""Progress: every stage is reported, from its start to its end."""

from deniable.pipeline import api
from deniable.progress import no_progress
from deniable.release.generation import BLOCK
from small_runs import INF, NOISE


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


def test_a_search_for_records_is_reported_up_to_their_number(small_table, small_schema):
    """More candidates may pass in a block than are needed; the bar ends at the number asked for."""
    reported = []
    api.synthesize(
        small_table, small_schema, records=40, mode="tested", k=20, omega="3", epsilon=INF,
        progress=lambda *report: reported.append(report),
    )  # fmt: skip
    searched = [report for report in reported if report[0] == "candidates that passed"]
    assert searched[-1] == ("candidates that passed", 40, 40)
    assert all(done <= total for _, done, total in reported)


def test_without_a_callback_the_release_is_the_same(small_table, small_schema):
    """Progress is a view: reporting it must not touch the randomness of a run."""
    options = {"records": 50, "mode": "seedless", "noise": NOISE, "key": 1}
    silent = api.synthesize(small_table, small_schema, progress=no_progress, **options)
    shown = api.synthesize(small_table, small_schema, progress=lambda *_: None, **options)
    assert silent.frame().equals(shown.frame())
