"""Records that passed, drawn block by block by whoever asks: the records of a search in order."""

from dataclasses import dataclass

import numpy as np
import pytest

from deniable.counting.local import LocalEngine
from deniable.errors import BudgetError, InvariantError
from deniable.release import passed_records
from deniable.release.passed_records import PassedRecords
from deniable.workers import no_progress

BLOCK = 100


@dataclass(frozen=True)
class Numbered:
    """Candidates are numbered; some of each block pass, in other numbers each."""

    every: int = 3
    more: int = 0

    def __call__(self, block):
        numbers = np.arange(block * BLOCK, (block + 1) * BLOCK)
        passed = numbers[(numbers % self.every == 0) | (numbers % 7 == 0)][self.more :]
        return np.asfortranarray(np.stack([passed, passed], axis=1).astype(np.uint16))

    def count_passed(self, block):
        return len(self(block))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(passed_records, "BLOCK", BLOCK)


def counted(kernel, records, max_attempts=100 * BLOCK, progress=no_progress):
    return PassedRecords.count(
        kernel, LocalEngine(), records=records, max_attempts=max_attempts, progress=progress
    )


@pytest.mark.parametrize("records", [1, 42, 43, 100, 101, 250])
def test_parts_have_equal_numbers_of_the_records_that_passed(records):
    """The first of all that pass, in order; blocks of candidates pass 42 to 44 each."""
    made = counted(Numbered(), records)
    parts = list(made.blocks())
    assert [len(part) for part in parts] == [BLOCK] * (records // BLOCK) + (
        [records % BLOCK] if records % BLOCK else []
    )
    everything = np.concatenate([Numbered()(block) for block in range(10)])
    assert np.concatenate(parts).tolist() == everything[:records].tolist()
    assert made.draw_block(len(parts) - 1).tolist() == parts[-1].tolist()
    # Blocks after the one that completes the records are not needed, and not told of.
    assert made.ends[-1] >= records > (made.ends[-2] if len(made.ends) > 1 else 0)


def test_it_gives_up_after_so_many_candidates():
    with pytest.raises(BudgetError, match="300 candidates"):
        counted(Numbered(), 200, max_attempts=250)
    assert counted(Numbered(), 120, max_attempts=250).number == 120


def test_nobody_passes():
    @dataclass(frozen=True)
    class Nobody(Numbered):
        def __call__(self, block):
            return super().__call__(block)[:0]

    with pytest.raises(BudgetError, match="too few of 500 candidates"):
        counted(Nobody(), 5, max_attempts=500)


def test_what_passed_is_not_shown():
    assert repr(counted(Numbered(), 30)) == "PassedRecords(number=30)"


def test_a_kernel_that_draws_otherwise_the_second_time_is_noticed():
    made = counted(Numbered(), 120)
    other = PassedRecords(kernel=Numbered(more=1), ends=made.ends, number=120)
    with pytest.raises(InvariantError, match="drawn again"):
        other.draw_block(0)


class Forgetful(LocalEngine):
    """An engine that loses a block."""

    def run_blocks(self, kernel, blocks):
        return iter(list(super().run_blocks(kernel, blocks))[1:])


def test_a_lost_block_is_noticed():
    with pytest.raises(InvariantError, match="each block of candidates once"):
        PassedRecords.count(
            Numbered(), Forgetful(), records=90, max_attempts=900, progress=no_progress
        )


def test_progress_never_exceeds_the_number_of_records():
    calls: list[tuple[int, int]] = []
    counted(Numbered(), 90, progress=lambda _stage, done, of: calls.append((done, of)))
    assert calls[-1] == (90, 90)
    assert all(done <= 90 for done, _ in calls)
