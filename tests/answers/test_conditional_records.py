"""Records given a condition, in blocks: exact inference once, selected states in each block."""

import pytest

from deniable.answers import conditional_records as module
from deniable.answers import inference
from deniable.answers.conditional_records import InferenceTally
from deniable.answers.conditional_release import generate_conditional

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("exact", [True, False])
def test_blocks_are_as_long_as_asked_for_and_do_not_depend_on_workers(rich, monkeypatch, exact):
    monkeypatch.setattr(module, "_RECORDS_PER_BLOCK", 500)
    monkeypatch.setattr(inference, "_MAX_ENTRIES", 2**22 if exact else 1)
    request = {"where": "weight >= 3.3 and age > 20", "key": 4}
    one = generate_conditional(rich, 1_700, workers=1, **request)
    two = generate_conditional(rich, 1_700, workers=2, **request)
    frames = list(one.source.frames(InferenceTally(), lambda *_: None))
    assert [len(frame) for frame in frames] == [500, 500, 500, 200]
    assert one.frame().equals(two.frame())
    assert one.tally.is_exact is exact
    assert ("total_variation" in one.tally.document()) is not exact


def test_errors_of_blocks_are_averaged_over_cases():
    tally = InferenceTally()
    assert tally.document() == {"method": "exact"}
    tally.add(InferenceTally(1, 0.02, is_exact=False))
    tally.add(InferenceTally(3, 0.0, is_exact=True))
    assert tally.document() == {"method": "selected states", "total_variation": 0.005}
