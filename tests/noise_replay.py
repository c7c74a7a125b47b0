"""Record the noisy answers of a run, and feed them back to a run on another table.

Everything after the noise is post-processing: two tables that get the same noisy answers must give
the same result, whatever their rows. ``recording`` stores the answers of ``add_noise``,
``replaying`` gives them back and ignores the counts that it is asked about.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

from deniable.arrays import CODE, Counts
from deniable.counting.local import LocalRows
from deniable.counting.prefix_counts import FrequentPrefixes
from deniable.privacy.ledger import Part, Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.randomness import Keyed, Rng, Stage

SEED_PREFIXES = "seed prefixes"
# Added to the counts of seed prefixes while every cell of the domain is counted, so that the least
# count that gets noise drops none of them; taken off again before noise is added.
_ABOVE_K = 2**40


@dataclass(frozen=True)
class ClaimedSecret:
    """Keyed noise that passes for the system's, so that a run certifies what users would see.

    Each stage has a stream of its own: what one stage draws does not depend on the rows of another.
    """

    key: int = 1
    is_secret: ClassVar[bool] = True

    def at(self, stage: Stage, block: int = 0) -> Rng:
        return Keyed(self.key).at(stage, block)


@dataclass(frozen=True)
class Answer:
    """One call of ``add_noise``: what was asked, and the noisy answer."""

    question: tuple[str, str, Law, int, int]
    exact: Counts = field(repr=False)
    noisy: Counts = field(repr=False)
    rng: Rng = field(repr=False)

    @property
    def what(self) -> str:
        return self.question[0]

    @property
    def law(self) -> Law:
        return self.question[2]

    @property
    def noise(self) -> Counts:
        return self.noisy - self.exact


@contextmanager
def recording(*, dense: bool = True) -> Iterator[list[Answer]]:
    """Collect the answers of ``add_noise``, in the order of the calls.

    Args:
        dense: Whether a seed histogram has noise on every cell: see ``_every_prefix``.
    """
    answers: list[Answer] = []

    def record(
        rng: Rng, counts: Counts, law: Law, *, what: str, part: Part, **moves: int
    ) -> tuple[Counts, Spend]:
        exact = counts - _ABOVE_K if dense and what == SEED_PREFIXES else counts
        noisy, spend = add_noise(rng, exact, law, what=what, part=part, **moves)
        answers.append(Answer(_question(law, what, part, **moves), exact, noisy, rng))
        return noisy, spend

    with _instead_of_add_noise(record), _every_prefix() if dense else nullcontext():
        yield answers


@contextmanager
def replaying(answers: Sequence[Answer], *, dense: bool = True) -> Iterator[None]:
    """Answer every question as it was answered before, whatever the counts are now."""
    left = iter(answers)

    def replay(
        rng: Rng,  # noqa: ARG001 - the noise is in the answer
        counts: Counts,
        law: Law,
        *,
        what: str,
        part: Part,
        **moves: int,
    ) -> tuple[Counts, Spend]:
        answer = next(left, None)
        assert answer is not None, f"{what}: this run asks more questions than the recorded one"
        assert _question(law, what, part, **moves) == answer.question, "another question is asked"
        assert counts.shape == answer.noisy.shape, f"{what}: other cells are counted"
        return answer.noisy.copy(), Spend(what=what, part=part, law=law, **moves)

    with _instead_of_add_noise(replay), _every_prefix() if dense else nullcontext():
        yield
    assert next(left, None) is None, "this run asks fewer questions than the recorded one"


def _question(
    law: Law, what: str, part: str, sensitivity: int = 1, l0_sensitivity: int = 1
) -> tuple[str, str, Law, int, int]:
    return what, part, law, sensitivity, l0_sensitivity


@contextmanager
def _instead_of_add_noise(double: Callable[..., Any]) -> Iterator[None]:
    """Put ``double`` wherever a module has imported ``add_noise``."""
    with ExitStack() as stack:
        for name in users_of_noise():
            stack.enter_context(patch.object(sys.modules[name], "add_noise", double))
        yield


def users_of_noise() -> list[str]:
    """List the loaded modules that add noise."""
    return sorted(
        name
        for name, module in sys.modules.items()
        if name.startswith("deniable.")
        and name != "deniable.privacy.noise"
        and getattr(module, "add_noise", None) is add_noise
    )


@contextmanager
def _every_prefix() -> Iterator[None]:
    """Add noise to every prefix of the domain, also to those of fewer than k seeds.

    This is Mechanism B as Theorem 7 states it. The product leaves out cells that can never be kept,
    with the same result (test_the_kept_prefixes_are_those_of_dense_noise). Which cells get noise
    then depends on the table, so that their noisy counts could not be fed back to another one.
    """
    sparse = LocalRows.frequent_prefixes

    def count_every_cell(
        rows: LocalRows,
        order: Sequence[int],
        lengths: Sequence[int],
        sizes: Sequence[int],
        *,
        floor: int,  # noqa: ARG001 - every cell is counted
    ) -> list[FrequentPrefixes]:
        found = sparse(rows, order, lengths, sizes, floor=1)
        return [_spread_over_domain(level, [sizes[i] for i in order]) for level in found]

    with patch.object(LocalRows, "frequent_prefixes", count_every_cell):
        yield


def _spread_over_domain(found: FrequentPrefixes, domain: list[int]) -> FrequentPrefixes:
    length = found.prefixes.shape[1]
    shape = domain[:length]
    assert np.prod(shape, dtype=float) < 2**20, "the domain is too large to count every cell"
    cells = np.indices(shape).reshape(length, -1).T.astype(CODE)
    spread = np.full(len(cells), _ABOVE_K, dtype=np.int64)
    spread[np.ravel_multi_index(tuple(found.prefixes.T.astype(np.intp)), shape)] += found.counts
    return FrequentPrefixes(cells, spread)
