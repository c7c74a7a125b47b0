"""Records that passed a deniability test, drawn again at every reading: mode ``tested`` in tasks.

Tasks first count the candidates of each block that pass; a part of the release then draws the
blocks that it needs again. So no record comes to the driver, and all parts but the last have the
same number of records, whatever number of candidates of a block passed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.counting.rows import BlockEngine
from deniable.errors import InvariantError
from deniable.release.generation import BLOCK
from deniable.release.seed_mechanism import too_few_passed
from deniable.workers import Progress

# Blocks of candidates beyond those that the share which passed so far asks for.
_SPARE_SHARE = 1.05


class PassKernel(Protocol):
    """Proposes and tests a block of candidates, the same in every task."""

    def __call__(self, block: int) -> Codes:
        """Return the candidates of a block that pass."""

    def count_passed(self, block: int) -> int:
        """Count them."""


@dataclass(frozen=True)
class _CountTask:
    """Kernel of a task: count the candidates of a block that pass, in blocks from ``first``."""

    kernel: PassKernel = field(repr=False)
    first: int

    def __call__(self, block: int) -> bytes:
        passed = self.kernel.count_passed(self.first + block)
        return np.array([self.first + block, passed], dtype="<i8").tobytes()


@dataclass(frozen=True, kw_only=True)
class PassedRecords:
    """Records that passed, in the order of their candidates.

    Attributes:
        kernel: Proposes and tests a block of candidates.
        ends: The number of candidates that passed up to the end of each block. Confidential.
        number: The number of records.
    """

    kernel: PassKernel = field(repr=False)
    ends: Counts = field(repr=False)
    number: int

    @classmethod
    def count(
        cls,
        kernel: PassKernel,
        engine: BlockEngine,
        *,
        records: int,
        max_attempts: int,
        progress: Progress,
    ) -> Self:
        """Count candidates that pass, in tasks, until there are enough.

        Args:
            kernel: Proposes and tests a block of candidates, the same in every task.
            engine: Runs the tasks.
            records: The number of records.
            max_attempts: The number of candidates after which to give up.
            progress: Called after each round of tasks.

        Raises:
            BudgetError: ``max_attempts`` candidates did not suffice.
        """
        passed = np.empty(0, dtype=np.int64)
        most = -(-max_attempts // BLOCK)
        while (found := int(passed.sum())) < records and len(passed) < most:
            share = max(found, 1) / len(passed) if len(passed) else BLOCK
            blocks = min(int((records - found) / share * _SPARE_SHARE) + 1, most - len(passed))
            more = _count_blocks(kernel, engine, len(passed), blocks)
            passed = np.concatenate([passed, more])
            progress("candidates that passed", min(int(passed.sum()), records), records)
        if found < records:
            raise too_few_passed(records, most * BLOCK)
        ends = np.cumsum(passed)
        return cls(kernel=kernel, ends=ends[: np.searchsorted(ends, records) + 1], number=records)

    def blocks(self) -> Iterator[Codes]:
        """Yield all records, block by block of the release."""
        return map(self.draw_block, range(-(-self.number // BLOCK)))

    def draw_block(self, block: int) -> Codes:
        """Draw the records of one block of the release, from all blocks of candidates it needs."""
        first, last = block * BLOCK, min((block + 1) * BLOCK, self.number)
        drawn = []
        for at in range(
            int(np.searchsorted(self.ends, first, side="right")),
            int(np.searchsorted(self.ends, last)) + 1,
        ):
            start = int(self.ends[at - 1]) if at else 0
            records = self.kernel(at)
            if len(records) != self.ends[at] - start:
                raise InvariantError("a block of candidates was drawn again, and others passed")
            drawn.append(records[max(first - start, 0) : last - start])
        return drawn[0] if len(drawn) == 1 else np.asfortranarray(np.concatenate(drawn))


def _count_blocks(kernel: PassKernel, engine: BlockEngine, first: int, blocks: int) -> Counts:
    """Count the candidates that pass in each of some blocks."""
    results = engine.run_blocks(_CountTask(kernel, first), blocks)
    counted = {int(at): int(n) for at, n in (np.frombuffer(each, "<i8") for each in results)}
    if sorted(counted) != list(range(first, first + blocks)):
        raise InvariantError("tasks did not count each block of candidates once")
    return np.array([counted[at] for at in sorted(counted)], dtype=np.int64)
