"""Record the noisy histograms of a private draft, and feed them back to a draft of another table.

A private draft reads the rows through ``HistogramMeasurer.measure`` only. So two tables that get
the same answers must give the same draft, byte for byte, whatever their rows and column types.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.draft import draft_schema
from deniable.drafting.noisy_histograms import HistogramMeasurer, NoisyHistogram
from deniable.randomness import Keyed, Rng, Stage


@dataclass(frozen=True)
class FixedSecret:
    """Keyed noise that passes for secret, so that a draft claims what users would see."""

    key: int = 1
    is_secret: ClassVar[bool] = True

    def at(self, stage: Stage, block: int = 0) -> Rng:
        return Keyed(self.key).at(stage, block)


@dataclass(frozen=True)
class Question:
    """One exact histogram: the counts of cells known in advance, and those of texts."""

    public: Counts
    texts: dict[str, int]

    def distance(self, other: "Question") -> int:
        """How many rows were moved from one histogram to the other."""
        both = self.texts.keys() | other.texts.keys()
        moved = sum(abs(self.texts.get(text, 0) - other.texts.get(text, 0)) for text in both)
        return moved + int(np.abs(self.public - other.public).sum())


@dataclass
class Record:
    """A draft, the histograms that it asked for, and the noisy answers."""

    questions: list[Question] = field(default_factory=list)
    answers: list[NoisyHistogram] = field(default_factory=list)
    text: str = ""
    notes: tuple[str, ...] = ()


def record_draft(source: object, *, epsilon: float = 1.0, key: int = 1, **options: Any) -> Record:
    """Draft a table privately, and keep what was asked and answered."""
    return _draft(source, None, epsilon, key, options)


def replay_draft(
    source: object, answers: Sequence[NoisyHistogram], *, epsilon: float = 1.0, **options: Any
) -> Record:
    """Draft a table privately with the answers that another table got."""
    return _draft(source, answers, epsilon, 2, options)


def _draft(
    source: object,
    answers: Sequence[NoisyHistogram] | None,
    epsilon: float,
    key: int,
    options: dict[str, Any],
) -> Record:
    record = Record()
    with _asking(record, answers):
        draft = draft_schema(source, draft_epsilon=epsilon, noise=FixedSecret(key), **options)
    record.text, record.notes = draft.text, draft.notes
    return record


@contextmanager
def _asking(record: Record, answers: Sequence[NoisyHistogram] | None) -> Iterator[None]:
    measure = HistogramMeasurer.measure
    left = None if answers is None else iter(answers)

    def asked(
        self: HistogramMeasurer,
        public: Counts,
        listed: CountedTexts | None = None,
        *,
        share: float,
    ) -> NoisyHistogram:
        texts = (
            {} if listed is None else dict(zip(listed.texts, listed.counts.tolist(), strict=True))
        )
        record.questions.append(Question(public, texts))
        if left is None:
            answer = measure(self, public, listed, share=share)
        else:
            answer = next(left)
            assert len(answer.public) == len(public), "the cells depend on the table"
            shares = self.noise.mu * answer.sigma * share**0.5
            assert abs(shares - 1) < 1e-9, "the noise depends on the table"
        record.answers.append(answer)
        return answer

    with patch.object(HistogramMeasurer, "measure", asked):
        yield
    assert left is None or next(left, None) is None, "this draft asks less than the recorded one"
