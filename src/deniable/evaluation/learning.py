"""Learn from released records, be tested on real ones (Sec. 6.3, Tables 3 and 4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from deniable.arrays import Codes, Reals
from deniable.data.schema import Schema
from deniable.errors import ConfigError
from deniable.evaluation import erm
from deniable.evaluation.baselines import Tables, cut, sample
from deniable.evaluation.classifiers import LEARNERS, Task, fit_predict
from deniable.evaluation.confidence import Interval, jackknife, spread, wilson
from deniable.evaluation.effort import Effort
from deniable.randomness import Keyed

# A number with more values than this is learnt as a number, with fewer as so many classes.
_FEW_VALUES = 20
# A forest holds a share of every class in every leaf: rarer classes become one.
_MOST_CLASSES = 50
_GROUPS = 10
# Streams of the key, beside those of the tables and of the game.
_ROWS, _NOISE = 100, 10_000

# What stands beside accuracies in Table 4: how the private classifiers were made.
PARAMETERS = ("epsilon", "penalty")
SOURCES = ("real", "half", "released", "marginals")


@dataclass(frozen=True, kw_only=True)
class Score:
    """How well a learner does on real test rows, over all runs.

    Attributes:
        value: Share of right answers; for a number, the share of its variance that is explained.
        interval: What the choice of test rows makes of it.
        spread: The worst and the best run.
        agreement: How often it says what the same learner says that was trained on real rows; for
            a number, the correlation of what the two say.
    """

    value: float
    interval: Interval
    spread: Interval
    agreement: float


@dataclass(frozen=True, kw_only=True)
class Learning:
    """Learners by what they were trained on.

    Attributes:
        target: The attribute to tell.
        task: Whether it is a class or a number.
        scores: ``scores["forest"]["released"]``.
        guessing: What the commonest value scores.
        private: ``private["logistic"]["objective perturbation"]``, for a target of two classes.
        rows: The most rows a learner was trained on.
        test_rows: How many it was tested on.
        held_out: Whether the test rows are ones the release was not learnt from.
    """

    target: str
    task: Task
    scores: Mapping[str, Mapping[str, Score]]
    guessing: float
    private: Mapping[str, Mapping[str, float]]
    rows: int
    test_rows: int
    runs: int
    held_out: bool

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        name = "accuracy" if self.task == "classification" else "explained"
        return {
            "target": self.target,
            "task": self.task,
            "against": "holdout" if self.held_out else "real",
            "runs": self.runs,
            "rows": self.rows,
            "test_rows": self.test_rows,
            "guessing": self.guessing,
            **{
                learner: {
                    source: {name: score.value, **_without(asdict(score), "value")}
                    for source, score in scores.items()
                }
                for learner, scores in self.scores.items()
            },
            "private": {loss: self._linear(found) for loss, found in self.private.items()},
        }

    def _linear(self, found: Mapping[str, float]) -> dict[str, object]:
        """Return Table 4 of one loss: its parameters, and every accuracy with its interval."""
        return {
            name: value
            if name in PARAMETERS
            else {"accuracy": value, "interval": list(wilson(value, self.test_rows))}
            for name, value in found.items()
        }


def _without(fields: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in fields.items() if key != name}


def measure_learning(
    tables: Tables,
    schema: Schema,
    effort: Effort,
    *,
    target: str | None = None,
    watch: Callable[[int, int], None] = lambda _done, _of: None,
) -> Learning:
    """Train every learner on real rows, released records and independent columns; test on reals.

    Args:
        tables: Who learns from what.
        schema: The attributes.
        effort: How many runs, of what size.
        target: The attribute to tell; None: the schema's last.
        watch: Told how far it has come.

    Raises:
        ConfigError: The schema has no such attribute, or no other beside it.
    """
    column = target_column(schema, target)
    exam = Exam.of(tables, schema, column, effort)
    scores: dict[str, dict[str, Score]] = {}
    # The linear classifiers of Table 4 take about as long as a run of all others.
    of = (len(LEARNERS) + 1) * effort.runs
    for at, learner in enumerate(LEARNERS):
        scores[learner] = exam.take(learner, _later(watch, at * effort.runs, of))
    watch(len(LEARNERS) * effort.runs, of)
    private = measure_private(tables, schema, effort, target=schema.names[column])
    watch(of, of)
    return Learning(
        target=schema.names[column],
        task=exam.task,
        scores=scores,
        guessing=exam.guessing(),
        private=private,
        rows=min(effort.rows, max(len(tables.train), len(tables.released))),
        test_rows=len(exam.truth),
        runs=effort.runs,
        held_out=tables.held_out,
    )


def _later(watch: Callable[[int, int], None], start: int, of: int) -> Callable[[int], None]:
    return lambda run: watch(start + run, of)


def target_column(schema: Schema, target: str | None) -> int:
    """Return the number of the attribute to tell."""
    if len(schema.names) < 2:
        raise ConfigError("there is only one attribute: nothing can be learnt from the others")
    if target is None:
        return len(schema.names) - 1
    if target not in schema.names:
        raise ConfigError(
            f'target "{target}" is no attribute; it can be one of: {", ".join(schema.names)}'
        )
    return schema.names.index(target)


@dataclass(frozen=True, kw_only=True)
class Exam:
    """What is to be told, from what, and by whom.

    Attributes:
        tables: Where the learners' rows come from.
        column: The attribute to tell.
        task: Whether it is a class or a number.
        classes: The class of every code.
        effort: How much work it may be.
        test: The features of the test rows.
        truth: What they are.
    """

    tables: Tables
    column: int
    task: Task
    classes: Codes
    effort: Effort
    test: Codes
    truth: Reals

    @classmethod
    def of(cls, tables: Tables, schema: Schema, column: int, effort: Effort) -> "Exam":
        """Return the exam of one attribute."""
        attribute = schema.attributes[column]
        as_number = attribute.kind in erm.NUMERIC and attribute.size > _FEW_VALUES
        classes = _merged(tables.train[:, column], attribute.size)
        if as_number:
            classes = np.arange(attribute.size, dtype=np.uint16)
        rows = tables.test
        if as_number and attribute.missing_code is not None:
            rows = rows[rows[:, column] != attribute.missing_code]
        return cls(
            tables=tables,
            column=column,
            task="regression" if as_number else "classification",
            classes=classes,
            effort=effort,
            test=np.delete(rows, column, axis=1),
            truth=classes[rows[:, column]].astype(np.float64),
        )

    def take(self, learner: str, watch: Callable[[int], None]) -> dict[str, Score]:
        """Return the scores of a learner, by what it was trained on; tell each run's number."""
        answers: dict[str, list[Reals]] = {source: [] for source in (*SOURCES, "other half")}
        for run in range(self.effort.runs):
            watch(run)
            for source, rows in self._sources(run).items():
                answers[source].append(self.answer(learner, rows, run))
        beside = {"half": "other half"}
        return {
            source: self.score(answers[source], answers[beside.get(source, "real")])
            for source in SOURCES
        }

    def _sources(self, run: int) -> dict[str, Codes]:
        """Return what is learnt from in one run: at most so many rows, others each time."""
        randomness, most = Keyed(self.effort.key), self.effort.rows
        rng = randomness.at("records", _ROWS + run)
        real = sample(self.tables.train, most, rng)
        half, other = cut(real, 0.5, rng)
        return {
            "real": real,
            "half": half,
            "other half": other,
            "released": sample(self.tables.released, most, rng),
            "marginals": sample(self.tables.marginals, most, rng),
        }

    def answer(self, learner: str, rows: Codes, run: int) -> Reals:
        """Return what a learner says of the test rows that was trained on these."""
        return fit_predict(
            learner,
            self.task,
            train=np.delete(rows, self.column, axis=1),
            labels=self.classes[rows[:, self.column]],
            test=self.test,
            trees=self.effort.trees,
            key=self.effort.key + run,
        )

    def score(self, answers: Sequence[Reals], beside: Sequence[Reals]) -> Score:
        """Return how good some runs' answers are, and how often they are those beside them."""
        each = [self._value(answer, self.truth) for answer in answers]
        value = float(np.mean(each))
        agree = [self._agreement(*pair) for pair in zip(answers, beside, strict=True)]
        return Score(
            value=value,
            interval=self._interval(value, answers[0]),
            spread=spread(each),
            agreement=float(np.mean(agree)),
        )

    def guessing(self) -> float:
        """Return what the commonest class scores; the mean of a number explains nothing."""
        if self.task == "regression" or not len(self.truth):
            return 0.0
        return float(np.unique(self.truth, return_counts=True)[1].max() / len(self.truth))

    def _value(self, answer: Reals, truth: Reals) -> float:
        if not len(truth):
            return 0.0
        if self.task == "classification":
            return float(np.mean(answer == truth))
        total = float(((truth - truth.mean()) ** 2).sum())
        return 1 - float(((truth - answer) ** 2).sum()) / total if total else 0.0

    def _interval(self, value: float, answer: Reals) -> Interval:
        if self.task == "classification":
            return wilson(value, len(self.truth))
        group = np.arange(len(self.truth)) % _GROUPS
        left_out = [self._value(answer[group != g], self.truth[group != g]) for g in range(_GROUPS)]
        return jackknife(value, left_out)

    def _agreement(self, answer: Reals, beside: Reals) -> float:
        if self.task == "classification":
            return float(np.mean(answer == beside)) if len(answer) else 0.0
        if np.ptp(answer) == 0 or np.ptp(beside) == 0:
            return 0.0
        return float(np.corrcoef(answer, beside)[0, 1])


def _merged(codes: Codes, size: int) -> Codes:
    """Return the class of every code: its own, or one for all but the commonest."""
    classes = np.arange(size, dtype=np.uint16)
    if size > _MOST_CLASSES:
        common = np.argsort(-np.bincount(codes, minlength=size), kind="stable")
        classes[common[_MOST_CLASSES - 1 :]] = common[_MOST_CLASSES - 1]
    return classes


def measure_private(
    tables: Tables, schema: Schema, effort: Effort, *, target: str, epsilon: float = 1.0
) -> dict[str, dict[str, float]]:
    """Return Table 4: linear classifiers with privacy of their own, beside ones on the release.

    Only for a target of two classes: the mechanisms are about those.
    """
    column = target_column(schema, target)
    if schema.attributes[column].size != 2:
        return {}
    others = tuple(a for j, a in enumerate(schema.attributes) if j != column)
    rng = Keyed(effort.key).at("records", _ROWS)
    rows = {
        "released": sample(tables.released, effort.rows, rng),
        "marginals": sample(tables.marginals, effort.rows, rng),
        "real": sample(tables.train, effort.rows, rng),
        "test": tables.test,
    }
    features = {
        name: erm.linear_features(others, np.delete(codes, column, axis=1))
        for name, codes in rows.items()
    }
    labels = {name: np.where(codes[:, column] == 1, 1.0, -1.0) for name, codes in rows.items()}
    return {loss: _linear(loss, features, labels, effort, epsilon) for loss in erm.LOSSES}


def _linear(
    loss: erm.Loss,
    features: Mapping[str, object],
    labels: Mapping[str, Reals],
    effort: Effort,
    epsilon: float,
) -> dict[str, float]:
    """Return the accuracy of one kind of linear classifier, by how it was trained."""
    test, truth = features["test"], labels["test"]
    best = {
        name: erm.best_penalty(features[name], labels[name], loss, test=test, test_labels=truth)
        for name in ("real", "released", "marginals")
    }
    problem, without_noise = best["real"]
    found = {"epsilon": epsilon, "penalty": problem.penalty, "not private": without_noise}
    for at, (name, perturb) in enumerate(
        {
            "output perturbation": erm.output_perturbation,
            "objective perturbation": erm.objective_perturbation,
        }.items()
    ):
        streams = [
            Keyed(effort.key).at("records", _NOISE + 2 * run + at) for run in range(effort.runs)
        ]
        scores = [
            erm.accuracy(perturb(problem, epsilon=epsilon, rng=rng), test, truth) for rng in streams
        ]
        found[name] = float(np.mean(scores))
    return found | {name: best[name][1] for name in ("released", "marginals")}
