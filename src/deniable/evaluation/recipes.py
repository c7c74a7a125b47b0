"""What the paper measured, as recipes that can be run on any table (Sec. 6).

Every row of its tables is a release: independent columns, or an ω. Each is made twice: by the
authors' formulas (``--profile paper``) and by ours (the default), side by side.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import polars as pl

from deniable.arrays import Codes, Reals
from deniable.data.attributes import Attribute
from deniable.data.schema import Schema
from deniable.evaluation import erm
from deniable.evaluation.baselines import Tables, sample, two_samples
from deniable.evaluation.distances import measure_distances
from deniable.evaluation.effort import Effort
from deniable.evaluation.game import PLAYERS, play
from deniable.evaluation.learning import Exam, target_column
from deniable.pipeline import synthesize
from deniable.randomness import Keyed

Side = Literal["authors", "ours"]
SIDES: tuple[Side, ...] = ("authors", "ours")

# The rows of Tables 3 to 5, by how many of the m attributes are drawn.
OMEGAS: dict[str, tuple[int, int]] = {
    "m": (0, 0),
    "m-1": (1, 1),
    "m-2": (2, 2),
    "m-2..m": (2, 0),
    "m-6..m": (6, 0),
}
RELEASES = ("marginals", *OMEGAS)
LEARNERS = ("tree", "forest", "ada")
_PERTURB = {
    "output perturbation": erm.output_perturbation,
    "objective perturbation": erm.objective_perturbation,
}
PERTURBED = tuple(_PERTURB)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The sizes of a reproduction; those of the paper unless it would take days.

    Attributes:
        runs: Independent runs of every table's row: another release each time.
        models: Noisy models that the accuracy is averaged over.
        records: Records of a release; None: as many as the rows it was learnt from.
        candidates: How many are tested for Figure 6.
        instances: How many runs are timed for Figure 5.
        paced: Records of all these runs together.
        scanned: The same for a test by scan.
        effort: The sizes of each learner.
        epsilon: ε of a release; of the weaker models in Figure 1 a tenth.
        delta: δ of the same.
        k: Plausible seeds needed.
        gamma: Width of a range.
    """

    runs: int = 5
    models: int = 20
    records: int | None = None
    candidates: int = 20_000
    instances: int = 24
    paced: int = 1_000_000
    scanned: int = 100_000
    effort: Effort = field(default_factory=lambda: Effort(runs=1))
    epsilon: float = 1.0
    delta: float = 2.0**-30
    k: int = 50
    gamma: float = 4.0

    @classmethod
    def embedded(cls) -> Self:
        """Return the sizes for a first look at the embedded table, in minutes."""
        effort = Effort(runs=1, rows=20_000, trees=50)
        return cls(runs=2, models=5, instances=6, paced=100_000, scanned=1_000, effort=effort)


def omega_text(row: str, attributes: int) -> str:
    """Return the option ``omega`` of a row, for a table of so many attributes.

    >>> omega_text("m-6..m", 11), omega_text("m-2", 11), omega_text("m-6..m", 4)
    ('5-11', '9', '1-4')
    """
    low, high = (max(1, attributes - less) for less in OMEGAS[row])
    return f"{low}-{high}" if low < high else str(low)


def options_of(row: str, side: Side, schema: Schema, setup: Setup) -> dict[str, Any]:
    """Return the options that make the release of one row.

    The authors' releases use Privacy Test 1: under the randomized test the cost grows with every
    record, and of as many as are needed here the manifest would claim nothing.
    """
    common: dict[str, Any] = {"epsilon": setup.epsilon, "delta": setup.delta}
    if side == "authors":
        common["profile"] = "paper"
    if row == "marginals":
        return common | {"mode": "seedless", "graph": {name: [] for name in schema.names}}
    if row != "default":
        common |= {"omega": omega_text(row, len(schema.names))}
    common |= {"k": setup.k, "gamma": setup.gamma}
    return common | {"mode": "tested" if side == "authors" else "one-shot"}


def plain_table(schema: Schema, codes: Codes) -> tuple[pl.DataFrame, Schema]:
    """Return rows as a frame again, with a schema of the learnt columns alone.

    Where a code stands for several values one is drawn: encoded again, it is the same code.
    """
    learnt = tuple(column for column in schema.columns if isinstance(column, Attribute))
    plain = Schema(learnt, rows_max=schema.rows_max)
    return plain.codec.decode(codes, Keyed(0).at("records", 500)), plain


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One run's tables and learners: whatever is released is measured against them."""

    tables: Tables
    schema: Schema
    target: str
    setup: Setup
    run: int

    @cached_property
    def exam(self) -> Exam:
        """The exam of the target."""
        return Exam.of(self.tables, self.schema, self._column, self._effort)

    @property
    def _column(self) -> int:
        return target_column(self.schema, self.target)

    @property
    def _effort(self) -> Effort:
        given = self.setup.effort
        return Effort(
            runs=1, rows=given.rows, trees=given.trees, game=given.game, key=given.key + self.run
        )

    @cached_property
    def _real_answers(self) -> dict[str, Reals]:
        rows = self._rows(self.tables.train)
        return self._answers(rows)

    def _answers(self, rows: Codes) -> dict[str, Reals]:
        return {name: self.exam.answer(name, rows, self.run) for name in LEARNERS}

    def _rows(self, codes: Codes) -> Codes:
        return sample(codes, self._effort.rows, Keyed(self._effort.key).at("records", 200))

    @cached_property
    def _linear_test(self) -> tuple[Any, Reals]:
        return self._linear_problem(self.tables.test)

    def _linear_problem(self, codes: Codes) -> tuple[Any, Reals]:
        others = tuple(a for j, a in enumerate(self.schema.attributes) if j != self._column)
        features = erm.linear_features(others, np.delete(codes, self._column, axis=1))
        return features, np.where(codes[:, self._column] == 1, 1.0, -1.0)

    @property
    def _is_binary(self) -> bool:
        return self.schema.attributes[self._column].size == 2

    @cached_property
    def _plain(self) -> tuple[pl.DataFrame, Schema]:
        return plain_table(self.schema, self.tables.train)

    def release(self, options: Mapping[str, Any]) -> Codes:
        """Return the records of a release, learnt from this run's rows."""
        source, plain = self._plain
        records = self.setup.records or len(self.tables.train)
        released = synthesize(source, plain, records=records, **options)
        return np.asfortranarray(np.concatenate(list(released.blocks)))

    def measure(self, released: Codes) -> dict[str, Any]:
        """Return what Tables 3 to 5 and Figures 3 and 4 say of a release."""
        rows = self._rows(released)
        answers = self._answers(rows)
        scores = [self.exam.score([answers[n]], [self._real_answers[n]]) for n in LEARNERS]
        return {
            "table3": [*(s.value for s in scores), *(s.agreement for s in scores)],
            "table4": self._linear(rows),
            "table5": self._played(self.tables.reference, released),
            "boxes": self._boxes(released, self.tables.reference),
        }

    def measure_reals(self) -> dict[str, Any]:
        """Return the same of real rows: the ceiling. Agreement is that of two tables of them."""
        rows = self._rows(self.tables.train)
        first, second = self._answers_apart()
        full = [self.exam.score([self._real_answers[n]], [second[n]]) for n in LEARNERS]
        apart = [self.exam.score([first[n]], [second[n]]) for n in LEARNERS]
        real, other = self.tables.ceiling
        found: dict[str, Any] = {
            "table3": [*(s.value for s in full), *(s.agreement for s in apart)],
            "table4": self._linear(rows),
            "table5": self._played(other, real),
            "boxes": self._boxes(real, other),
        }
        return found | {"private": self._private(rows)}

    def _answers_apart(self) -> tuple[dict[str, Reals], dict[str, Reals]]:
        """Return the answers of learners trained on two tables of real rows with none in common.

        If there are rows enough, each is as large as a release's, and the first is trained already.
        """
        most, train = self._effort.rows, self.tables.train
        first, second = two_samples(train, most, Keyed(self._effort.key).at("records", 200))
        if len(first) == most:
            return self._real_answers, self._answers(second)
        return self._answers(first), self._answers(second)

    def _played(self, real: Codes, other: Codes) -> list[float]:
        return [play(player, real, other, self._effort).accuracy for player in PLAYERS]

    def _boxes(self, first: Codes, second: Codes) -> dict[str, list[float]]:
        return {
            name: list(
                measure_distances(
                    self.schema.attributes, first, second, width=width, most=10**9, key=self.run
                ).box
            )
            for name, width in (("attributes", 1), ("pairs", 2))
            if width <= len(self.schema.attributes)
        }

    def _linear(self, rows: Codes) -> list[float]:
        """Return the accuracy of both linear classifiers, without noise of their own."""
        if not self._is_binary:
            return []
        return [self._best(rows, loss)[1] for loss in erm.LOSSES]

    def _best(self, rows: Codes, loss: erm.Loss) -> tuple[erm.Problem, float]:
        features, labels = self._linear_problem(rows)
        test, truth = self._linear_test
        return erm.best_penalty(features, labels, loss, test=test, test_labels=truth)

    def _private(self, rows: Codes) -> dict[str, list[float]]:
        """Return the accuracy of both linear classifiers with privacy of their own, and their λ."""
        if not self._is_binary:
            return {}
        test, truth = self._linear_test
        found: dict[str, list[float]] = {name: [] for name in (*_PERTURB, "penalty")}
        for at, loss in enumerate(erm.LOSSES):
            problem, _ = self._best(rows, loss)
            found["penalty"].append(problem.penalty)
            for number, (name, method) in enumerate(_PERTURB.items()):
                rng = Keyed(self._effort.key).at("records", 300 + 2 * at + number)
                f = method(problem, epsilon=self.setup.epsilon, rng=rng)
                found[name].append(erm.accuracy(f, test, truth))
        return found


def times(instances: int, *, total: int) -> Sequence[int]:
    """Return how many records each timed run makes: evenly from few to many, ``total`` or more.

    >>> times(4, total=1_000)
    [100, 200, 300, 400]
    """
    step = math.ceil(2 * total / (instances * (instances + 1)))
    return [step * (at + 1) for at in range(instances)]
