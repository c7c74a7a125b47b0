"""Which outputs of a command are in place."""

from pathlib import Path

from deniable.output_tracker import OutputTracker, current_tracker, tracked_outputs


def test_the_tracker_of_a_command_is_found_while_it_runs():
    with tracked_outputs() as tracker:
        assert current_tracker() is tracker
        current_tracker().paths.append(Path("o"))
    assert tracker.paths == [Path("o")]
    assert current_tracker().paths == []


def test_outside_of_a_command_nothing_is_kept():
    current_tracker().paths.append(Path("o"))
    assert current_tracker().paths == []


def test_a_command_is_complete_with_the_last_of_its_outputs():
    tracker = OutputTracker(expected=2)
    for complete in (False, True):
        tracker.paths.append(Path("o"))
        assert tracker.is_complete is complete
    assert not OutputTracker().is_complete
