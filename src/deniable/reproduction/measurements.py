"""Measurements of the paper's evaluation that do not compare two tables.

- Table size and number of unique records (Tables 1 and 2).
- Accuracy of the model and of baselines, attribute by attribute (Figures 1 and 2).
- Run times of learning and generation (Figure 5).
- Pass rates of the deniability test (Figure 6).

All results are confidential: they are measured without noise.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.counting.prefix_counts import PrefixCounts
from deniable.evaluation.classifiers import fit_predict
from deniable.evaluation.effort import Effort
from deniable.evaluation.intervals import Interval, spread, wilson_interval
from deniable.evaluation.reference_tables import sample_rows
from deniable.model.bayesian_network import Network
from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import synthesize
from deniable.randomness import Keyed
from deniable.release.deniability_test import count_hidden_omega
from deniable.release.release import Release
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.workers import Progress

# Memory limit of a forest: every leaf stores the share of every class.
_MAX_FOREST_BYTES = 2**30
_MIN_TREES = 5
# The progress stage of ``synthesize`` that ends when learning ends.
_LEARNING_STAGE = "learn the model"


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """Size of a table and of its domain (Table 2).

    Attributes:
        records: Number of rows.
        numerical: Number of numeric attributes.
        categorical: Number of other attributes.
        possible: Number of different records that the schema allows.
        unique: Number of different records in the table.
    """

    records: int
    numerical: int
    categorical: int
    possible: int
    unique: int

    @property
    def unique_share(self) -> float:
        """Different records as a share of all records."""
        return self.unique / max(1, self.records)

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return asdict(self) | {"unique_share": self.unique_share}


def table_facts(schema: Schema, codes: Codes) -> TableFacts:
    """Count records, attributes and unique records of a table."""
    numerical = sum(attribute.is_numeric for attribute in schema.attributes)
    return TableFacts(
        records=len(codes),
        numerical=numerical,
        categorical=len(schema.attributes) - numerical,
        possible=math.prod(schema.sizes),
        unique=count_unique(codes),
    )


def count_unique(codes: Codes) -> int:
    """Count the different rows."""
    if not len(codes):
        return 0
    group = np.zeros(len(codes), dtype=np.int64)
    for column in range(codes.shape[1]):
        # Groups are renumbered after every column, so that the numbers cannot overflow.
        _, group = np.unique(group * 2**16 + codes[:, column], return_inverse=True)
    return int(group.max()) + 1


@dataclass(frozen=True, kw_only=True)
class GuessRate:
    """Accuracy of baselines that predict one attribute from all others (Figure 2).

    Attributes:
        attribute: Name of the attribute.
        guessing: Accuracy of uniform guessing: 1 / number of values.
        marginals: Accuracy of always predicting the most common value.
        forest: Accuracy of a random forest.
    """

    attribute: str
    guessing: float
    marginals: float
    forest: float

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ModelGuessRate:
    """Accuracy of several models by attribute: mean, and minimum and maximum."""

    mean: tuple[float, ...]
    spread: tuple[Interval, ...]
    models: int

    def improvement(self, baselines: Sequence[GuessRate]) -> tuple[float, ...]:
        """Compute the relative improvement over marginals: share of errors avoided (Figure 1)."""
        return tuple(
            (accuracy - baseline.marginals) / max(1 - baseline.marginals, 1e-12)
            for accuracy, baseline in zip(self.mean, baselines, strict=True)
        )


def model_accuracy(network: Network, records: Codes) -> tuple[float, ...]:
    """Compute how often each attribute's most likely value, given all others, is correct."""
    return tuple(
        float(np.mean(network.most_likely(records, i) == records[:, i]))
        for i in range(records.shape[1])
    )


def measure_model_accuracy(
    learn: Callable[[int], Network], records: Codes, *, models: int
) -> ModelGuessRate:
    """Learn ``models`` models with independent noise, and measure their accuracy."""
    accuracies = [model_accuracy(learn(at), records) for at in range(models)]
    by_attribute = list(zip(*accuracies, strict=True))
    return ModelGuessRate(
        mean=tuple(float(np.mean(values)) for values in by_attribute),
        spread=tuple(spread(values) for values in by_attribute),
        models=models,
    )


def measure_baselines(
    attributes: Sequence[Attribute], train: Codes, test: Codes, effort: Effort
) -> tuple[GuessRate, ...]:
    """Measure the baselines of the model accuracy: guessing, most common value, random forest."""
    baselines = []
    for i, attribute in enumerate(attributes):
        commonest = np.bincount(train[:, i], minlength=attribute.size).argmax()
        predicted = fit_predict(
            "forest",
            "classification",
            train=np.delete(train, i, axis=1),
            labels=train[:, i],
            test=np.delete(test, i, axis=1),
            trees=_forest_size(len(train), attribute.size, effort.trees),
            key=effort.key,
        )
        baselines.append(
            GuessRate(
                attribute=attribute.name,
                guessing=1 / attribute.size,
                marginals=float(np.mean(test[:, i] == commonest)),
                forest=float(np.mean(predicted == test[:, i])),
            )
        )
    return tuple(baselines)


def _forest_size(rows: int, classes: int, wanted: int) -> int:
    return max(_MIN_TREES, min(wanted, _MAX_FOREST_BYTES // (16 * max(1, rows) * classes)))


@dataclass(frozen=True, kw_only=True)
class RunTime:
    """Run time: number of records, seconds to learn, and seconds to generate them."""

    records: int
    learning: float
    generation: float

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return asdict(self)


def measure_run_times(
    source: object,
    schema: Schema,
    *,
    records: Sequence[int],
    learn: Callable[[], GenerativeModel] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    **options: Any,
) -> tuple[RunTime, ...]:
    """Time learning and generation of a pipeline run, for each number of records.

    Learning is everything before the first record is generated, including reading the table.

    Args:
        source: A path or a data frame.
        schema: The schema of the table.
        records: Number of records of each run.
        learn: Learns a model whose seeds are counted by a scan; None: the built-in model, with
            counts by look-up.
        progress: Called with the number of finished runs and of all runs.
        options: Options of ``Config``.
    """

    def make(number: int, stage_progress: Progress) -> Release:
        model = None if learn is None else learn()
        return synthesize(
            source, schema, records=number, model=model, progress=stage_progress, **options
        )

    found = []
    for at, number in enumerate(records):
        progress(at, len(records))
        found.append(_time_run(make, number))
    progress(len(records), len(records))
    return tuple(found)


def _time_run(make: Callable[[int, Progress], Release], number: int) -> RunTime:
    learnt: list[float] = []

    def note_end_of_learning(stage: str, done: int, of: int) -> None:
        if stage == _LEARNING_STAGE and done == of:
            learnt.append(time.perf_counter())

    start = time.perf_counter()
    release = make(number, note_end_of_learning)
    for _ in release.encoded.blocks():
        pass
    end = time.perf_counter()
    return RunTime(records=number, learning=learnt[0] - start, generation=end - learnt[0])


@dataclass(frozen=True, kw_only=True)
class PassRate:
    """Share of candidates with at least k plausible seeds."""

    k: int
    passed: float
    interval: Interval


def pass_rates(
    model: NetworkModel,
    seeds: Codes,
    *,
    ks: Sequence[int],
    candidates: int,
    gamma: float | None,
    checked: int | None = None,
    key: int = 0,
) -> tuple[PassRate, ...]:
    """Measure the share of candidates that pass Privacy Test 1, for every k.

    Args:
        model: Model that makes the candidates.
        seeds: D_S.
        ks: Thresholds k.
        candidates: Number of candidates.
        gamma: Width of the ranges if ω is hidden, as in the paper; None: each candidate is tested
            under its own ω, and γ has no effect.
        checked: Number of seeds to check, drawn at random (``max_check_plausible``); the others do
            not count. None: all seeds.
        key: Key of the seeds and candidates.
    """
    plausible = _count_plausible_seeds(
        model, seeds, candidates, gamma=gamma, checked=checked, key=key
    )
    rates = [float(np.mean(plausible >= k)) for k in ks]
    return tuple(
        PassRate(k=k, passed=rate, interval=wilson_interval(rate, candidates))
        for k, rate in zip(ks, rates, strict=True)
    )


def _count_plausible_seeds(
    model: NetworkModel,
    seeds: Codes,
    candidates: int,
    *,
    gamma: float | None,
    checked: int | None,
    key: int,
) -> Counts:
    """Count the plausible seeds k' of each candidate."""
    randomness = Keyed(key)
    rng = randomness.at("seeds")
    own = seeds[rng.integers(len(seeds), candidates)]
    omegas = model.choose_omegas(candidates, rng)
    made = model.propose_from(own, np.arange(len(own)), omegas, randomness.at("candidates"))
    checked_seeds = seeds if checked is None else sample_rows(seeds, checked, randomness.at("scan"))
    network = model.network
    sizes = [attribute.size for attribute in network.attributes]
    counts = PrefixCounts.of(checked_seeds, network.order, model.kept, sizes)
    if gamma is not None:
        return count_hidden_omega(model, counts, made, own, gamma=gamma)
    level = np.searchsorted(model.kept, len(network.order) - omegas)
    plausible: Counts = counts.look_up(made)[np.arange(candidates), level]
    return plausible
