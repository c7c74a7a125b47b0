"""Experiments of the paper's Tables 3 to 5 and Figures 3 and 4, for any table (Sec. 6).

Every row of these tables is a release: independent columns, or a value of ω. Each release is made
twice: with the authors' formulas (``--profile paper``), and with ours (the default).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import polars as pl

from deniable.arrays import Codes, Reals
from deniable.data.codec import Codec
from deniable.evaluation.distances import compare_tables
from deniable.evaluation.distinguishability import distinguish
from deniable.evaluation.effort import Effort
from deniable.evaluation.ml_efficacy import LearningTask, target_column
from deniable.evaluation.reference_tables import EvaluationTables, disjoint_samples, sample_rows
from deniable.pipeline.api import synthesize
from deniable.randomness import Keyed
from deniable.reproduction import private_erm
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

Side = Literal["authors", "ours"]
SIDES: tuple[Side, ...] = ("authors", "ours")

# Rows of Tables 3 to 5: ω of m attributes is drawn from m - first to m - second.
OMEGA_ROWS: dict[str, tuple[int, int]] = {
    "m": (0, 0),
    "m-1": (1, 1),
    "m-2": (2, 2),
    "m-2..m": (2, 0),
    "m-6..m": (6, 0),
}
RELEASE_ROWS = ("marginals", *OMEGA_ROWS)
PAPER_LEARNERS = ("tree", "forest", "ada")
_DISTINGUISHERS = ("forest", "tree")
_PERTURBATION_METHODS = {
    "output perturbation": private_erm.output_perturbation,
    "objective perturbation": private_erm.objective_perturbation,
}
PERTURBATIONS = tuple(_PERTURBATION_METHODS)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Sizes and privacy parameters of a reproduction: the paper's, unless they would take days.

    Attributes:
        runs: Independent runs, each with its own releases.
        models: Number of noisy models whose accuracy is averaged.
        records: Records per release; None: as many as the training rows.
        candidates: Number of tested candidates in Figure 6.
        instances: Number of timed runs in Figure 5.
        paced: Total records of the timed runs.
        scanned: Total records of the timed runs that count plausible seeds by a scan.
        effort: Sizes of the learners.
        epsilon: ε of a release; Figure 1 also has models with a tenth of it.
        delta: δ of a release.
        k: Minimum number of plausible seeds.
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
    def chosen(cls, *, embedded: bool, **given: int | None) -> Self:
        """Choose the sizes: those given, then the paper's, or smaller ones if ``embedded``."""
        sizes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return replace(cls.embedded() if embedded else cls(), **sizes)

    @classmethod
    def embedded(cls) -> Self:
        """Return small sizes for the embedded table; runs in minutes."""
        effort = Effort(runs=1, rows=20_000, trees=50)
        return cls(runs=2, models=5, instances=6, paced=100_000, scanned=1_000, effort=effort)


def omega_text(row: str, attributes: int) -> str:
    """Format the option ``omega`` of a row for a table with ``attributes`` attributes.

    >>> omega_text("m-6..m", 11), omega_text("m-2", 11), omega_text("m-6..m", 4)
    ('5-11', '9', '1-4')
    """
    low, high = (max(1, attributes - less) for less in OMEGA_ROWS[row])
    return f"{low}-{high}" if low < high else str(low)


def release_options(row: str, side: Side, schema: Schema, setup: Setup) -> dict[str, Any]:
    """Return the options of ``synthesize`` for the release of one row.

    The authors' releases use Privacy Test 1. Under the randomized test the cost grows with every
    record, and the number of records needed here would leave no guarantee. Ours are one-shot, which
    has one ω; where ω is drawn from a range, they use that test, too.
    """
    common: dict[str, Any] = {"epsilon": setup.epsilon, "delta": setup.delta}
    if side == "authors":
        common["profile"] = "paper"
    if row == "marginals":
        return common | {"mode": "seedless", "graph": {name: [] for name in schema.names}}
    is_range = False
    if row != "default":
        omega = omega_text(row, len(schema.names))
        is_range = "-" in omega
        common |= {"omega": omega}
    common |= {"k": setup.k, "gamma": setup.gamma}
    return common | {"mode": "tested" if side == "authors" or is_range else "one-shot"}


def decode_modelled_columns(schema: Schema, codes: Codes) -> tuple[pl.DataFrame, Schema]:
    """Decode rows to a data frame, with a schema of the modelled columns only.

    If a code stands for several values, one is drawn; encoding it again gives the same code.
    """
    modelled = tuple(column for column in schema.columns if isinstance(column, Attribute))
    reduced = Schema(modelled, rows_max=schema.rows_max)
    return Codec(reduced).decode(codes, Keyed(0).at("records", 500)), reduced


@dataclass(frozen=True, kw_only=True)
class ExperimentBench:
    """Tables and trained learners of one run, shared by all its releases."""

    tables: EvaluationTables
    schema: Schema
    target: str
    setup: Setup
    run: int

    @cached_property
    def task(self) -> LearningTask:
        """The prediction of the target attribute."""
        return LearningTask.of(self.tables, self.schema, self._column, self._effort)

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
    def _real_predictions(self) -> dict[str, Reals]:
        return self._predictions(self._training_rows(self.tables.train))

    def _predictions(self, rows: Codes) -> dict[str, Reals]:
        return {name: self.task.predict(name, [rows], self.run)[0] for name in PAPER_LEARNERS}

    def _training_rows(self, codes: Codes) -> Codes:
        return sample_rows(codes, self._effort.rows, Keyed(self._effort.key).at("records", 200))

    @cached_property
    def _linear_test(self) -> tuple[Any, Reals]:
        return self._linear_problem(self.tables.test)

    def _linear_problem(self, codes: Codes) -> tuple[Any, Reals]:
        others = tuple(a for j, a in enumerate(self.schema.attributes) if j != self._column)
        features = private_erm.linear_features(others, np.delete(codes, self._column, axis=1))
        return features, np.where(codes[:, self._column] == 1, 1.0, -1.0)

    @property
    def _is_binary(self) -> bool:
        return self.schema.attributes[self._column].size == 2

    @cached_property
    def _decoded(self) -> tuple[pl.DataFrame, Schema]:
        return decode_modelled_columns(self.schema, self.tables.train)

    def release(self, options: Mapping[str, Any]) -> Codes:
        """Generate the records of a release that is learnt from the run's training rows."""
        source, modelled = self._decoded
        records = self.setup.records or len(self.tables.train)
        released = synthesize(source, modelled, records=records, **options)
        return np.asfortranarray(np.concatenate(list(released.encoded.blocks())))

    def measure(self, released: Codes) -> dict[str, Any]:
        """Measure a release for Tables 3 to 5 and Figures 3 and 4."""
        rows = self._training_rows(released)
        found, real = self._predictions(rows), self._real_predictions
        scores = [self.task.score([found[name]], [real[name]]) for name in PAPER_LEARNERS]
        return {
            "table3": [*(s.value for s in scores), *(s.agreement for s in scores)],
            "table4": self._linear_accuracies(rows),
            "table5": self._distinguishability(self.tables.reference, released),
            "boxes": self._boxes(released, self.tables.reference),
        }

    def measure_reals(self) -> dict[str, Any]:
        """Measure real rows, the upper baseline. Agreement is between two disjoint samples."""
        rows = self._training_rows(self.tables.train)
        full_sample = self._real_predictions
        first, second = self._disjoint_predictions()
        full = [self.task.score([full_sample[n]], [second[n]]) for n in PAPER_LEARNERS]
        apart = [self.task.score([first[n]], [second[n]]) for n in PAPER_LEARNERS]
        real, other = self.tables.ceiling
        found: dict[str, Any] = {
            "table3": [*(s.value for s in full), *(s.agreement for s in apart)],
            "table4": self._linear_accuracies(rows),
            "table5": self._distinguishability(other, real),
            "boxes": self._boxes(real, other),
        }
        return found | {"private": self._private_accuracies(rows)}

    def _disjoint_predictions(self) -> tuple[dict[str, Reals], dict[str, Reals]]:
        """Train the learners on two disjoint samples of real rows.

        If there are enough rows, both samples have full size. The first is then the sample of
        ``_real_predictions``, whose learners are trained already.
        """
        limit, train = self._effort.rows, self.tables.train
        first, second = disjoint_samples(train, limit, Keyed(self._effort.key).at("records", 200))
        if len(first) == limit:
            return self._real_predictions, self._predictions(second)
        return self._predictions(first), self._predictions(second)

    def _distinguishability(self, real: Codes, other: Codes) -> list[float]:
        return [distinguish(name, real, other, self._effort).accuracy for name in _DISTINGUISHERS]

    def _boxes(self, first: Codes, second: Codes) -> dict[str, list[float]]:
        return {
            name: list(
                compare_tables(self.schema.attributes, {"": (first, second)}, width=width)[""].box
            )
            for name, width in (("attributes", 1), ("pairs", 2))
            if width <= len(self.schema.attributes)
        }

    def _linear_accuracies(self, rows: Codes) -> list[float]:
        """Compute the accuracy of both linear classifiers, trained without noise."""
        if not self._is_binary:
            return []
        return [self._best(rows, loss)[1] for loss in private_erm.LOSSES]

    def _best(self, rows: Codes, loss: private_erm.Loss) -> tuple[private_erm.ErmProblem, float]:
        features, labels = self._linear_problem(rows)
        test, truth = self._linear_test
        return private_erm.best_penalty(features, labels, loss, test=test, test_labels=truth)

    def _private_accuracies(self, rows: Codes) -> dict[str, list[float]]:
        """Compute the accuracy and λ of both linear classifiers, trained with privacy noise."""
        if not self._is_binary:
            return {}
        test, truth = self._linear_test
        found: dict[str, list[float]] = {name: [] for name in (*_PERTURBATION_METHODS, "penalty")}
        for at, loss in enumerate(private_erm.LOSSES):
            problem, _ = self._best(rows, loss)
            found["penalty"].append(problem.penalty)
            for number, (name, method) in enumerate(_PERTURBATION_METHODS.items()):
                rng = Keyed(self._effort.key).at("records", 300 + 2 * at + number)
                f = method(problem, epsilon=self.setup.epsilon, rng=rng)
                found[name].append(private_erm.accuracy(f, test, truth))
        return found


def timed_run_sizes(instances: int, *, total: int) -> Sequence[int]:
    """Compute the records of each timed run: evenly increasing, at least ``total`` in all.

    >>> timed_run_sizes(4, total=1_000)
    [100, 200, 300, 400]
    """
    step = math.ceil(2 * total / (instances * (instances + 1)))
    return [step * (at + 1) for at in range(instances)]
