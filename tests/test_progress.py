"""Progress: every stage is reported, from its start to its end."""

from deniable.pipeline import api
from deniable.release.generation import BLOCK
from small_runs import INF


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
