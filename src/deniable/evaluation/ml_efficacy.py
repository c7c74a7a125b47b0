"""Machine learning efficacy: train on released records, test on real ones (Sec. 6.3, Table 3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from deniable.arrays import Codes, Reals
from deniable.errors import ConfigError
from deniable.evaluation.classifiers import (
    LEARNERS,
    Task,
    Term,
    fit_predict_each,
    fit_regression,
    regression_terms,
)
from deniable.evaluation.effort import Effort
from deniable.evaluation.intervals import Interval, spread, wilson_interval
from deniable.evaluation.reference_tables import EvaluationTables, sample_rows, split_rows
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

# Numbers with more values than this are predicted by regression, others by classification.
_MAX_NUMERIC_CLASSES = 20
# A forest stores the share of every class in every leaf, so the rarest classes are merged.
_MAX_CLASSES = 50
# A model is better than guessing from this many standard errors of its gain.
_MIN_STANDARD_ERRORS = 3
# Random streams of the key, apart from those of the reference tables and of distinguishability.
_TEST_STREAM, _COEFFICIENT_STREAM, _ROWS_STREAM = 99, 98, 100
# Coefficients that are shown: the largest; and how much larger than the real one is exaggerated.
_MAX_COEFFICIENTS = 8
_MIN_EXAGGERATED_RATIO = 1.5

# What a learner is trained on.
TRAINING_SOURCES = ("real", "half", "released", "marginals")


@dataclass(frozen=True, kw_only=True)
class Score:
    """Mean score of a learner on real test rows, over all runs.

    Attributes:
        value: Accuracy; for regression the coefficient of determination R².
        interval: Confidence interval of an accuracy, for the choice of test rows; None for R².
        spread: The worst and the best run.
        agreement: Share of predictions that equal those of the same learner trained on real rows;
            for regression the correlation of the two predictions.
        beats_guessing: Whether it is better than guessing, beyond the chance of the test rows.
    """

    value: float
    interval: Interval | None
    spread: Interval
    agreement: float
    beats_guessing: bool


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """A coefficient of a regression of the target on all other columns.

    Attributes:
        term: A number, per standard deviation; or a value of a column, against its commonest.
        real: The coefficient in real rows.
        released: The coefficient in as many released records.
        error: Standard error of the difference of the two.
    """

    term: str
    real: float
    released: float
    error: float

    @property
    def is_exaggerated(self) -> bool:
        """Whether the released one is much larger than the real one, beyond chance."""
        real, released = abs(self.real), abs(self.released)
        is_large = released > _MIN_EXAGGERATED_RATIO * real
        return is_large and released - real > _MIN_STANDARD_ERRORS * self.error


@dataclass(frozen=True, kw_only=True)
class MlEfficacy:
    """Scores of learners, by what they were trained on.

    Attributes:
        target: The predicted attribute.
        task: Classification or regression.
        scores: By learner, then by training source: ``scores["forest"]["released"]``.
        baseline: Score of always predicting the most common value.
        event: The value of the target whose log-odds the coefficients add to; "" for a regression,
            whose unit is the standard deviation of the target.
        coefficients: The largest coefficients of a regression, real and released.
        rows: Maximum number of training rows.
        test_rows: Number of test rows; the intervals are for the choice of these rows.
        runs: Number of runs.
        held_out: Whether the test rows were held out from the release.
    """

    target: str
    task: Task
    scores: Mapping[str, Mapping[str, Score]]
    baseline: float
    event: str
    coefficients: tuple[Coefficient, ...]
    rows: int
    test_rows: int
    runs: int
    held_out: bool

    @property
    def exaggerated(self) -> tuple[Coefficient, ...]:
        """The coefficients that are much too large in the released records."""
        return tuple(each for each in self.coefficients if each.is_exaggerated)

    @property
    def best(self) -> str:
        """The best learner on real rows."""
        return max(self.scores, key=lambda name: self.scores[name]["real"].value)

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        name = "accuracy" if self.task == "classification" else "explained"
        return {
            "target": self.target,
            "task": self.task,
            "against": "holdout" if self.held_out else "real",
            "runs": self.runs,
            "rows": self.rows,
            "test_rows": self.test_rows,
            "guessing": self.baseline,
            "event": self.event,
            "coefficients": [
                {**asdict(each), "exaggerated": each.is_exaggerated} for each in self.coefficients
            ],
            **{
                learner: {
                    source: {name: score.value, **_without(asdict(score), "value")}
                    for source, score in scores.items()
                }
                for learner, scores in self.scores.items()
            },
        }


def _without(fields: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in fields.items() if key != name}


def measure_ml_efficacy(
    tables: EvaluationTables,
    schema: Schema,
    effort: Effort,
    *,
    target: str,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> MlEfficacy | None:
    """Train every learner on real, released and independent-column rows; test on real rows.

    None if there is only one attribute.

    Args:
        tables: Training and test tables.
        schema: The schema of all tables.
        effort: Number of runs and their sizes.
        target: The attribute to predict.
        progress: Called with the work done and the total.

    Raises:
        ConfigError: The schema has no such attribute.
    """
    if len(schema.names) < 2:
        return None
    column = target_column(schema, target)
    rng = Keyed(effort.key).at("records", _TEST_STREAM)
    tables = replace(tables, test=sample_rows(tables.test, effort.test_rows, rng))
    learning_task = LearningTask.of(tables, schema, column, effort)
    scores: dict[str, dict[str, Score]] = {}
    of = len(LEARNERS) * effort.runs
    for at, learner in enumerate(LEARNERS):
        scores[learner] = learning_task.score_learner(
            learner, _offset_progress(progress, at * effort.runs, of)
        )
    progress(of, of)
    event, coefficients = learning_task.coefficients(schema.attributes)
    return MlEfficacy(
        target=schema.names[column],
        task=learning_task.task,
        scores=scores,
        baseline=learning_task.baseline(),
        event=event,
        coefficients=coefficients,
        rows=min(effort.rows, max(len(tables.train), len(tables.released))),
        test_rows=len(learning_task.truth),
        runs=effort.runs,
        held_out=tables.held_out,
    )


def _offset_progress(
    progress: Callable[[int, int], None], start: int, of: int
) -> Callable[[int], None]:
    return lambda run: progress(start + run, of)


def target_column(schema: Schema, target: str | None) -> int:
    """Return the index of the target attribute; None: the last one."""
    if len(schema.names) < 2:
        raise ConfigError("there is only one attribute: a target needs others to be predicted from")
    if target is None:
        return len(schema.names) - 1
    if target not in schema.names:
        raise ConfigError(
            f'target "{target}" is not an attribute; choose one of: {", ".join(schema.names)}'
        )
    return schema.names.index(target)


@dataclass(frozen=True, kw_only=True)
class LearningTask:
    """Prediction of one attribute from all others.

    Attributes:
        tables: Training tables.
        column: Index of the target attribute.
        task: Classification or regression.
        classes: Class of every target code.
        bins: Number of target codes that are values.
        effort: Number of runs and their sizes.
        test: Features of the test rows.
        truth: True labels of the test rows.
    """

    tables: EvaluationTables
    column: int
    task: Task
    classes: Codes
    bins: int
    effort: Effort
    test: Codes
    truth: Reals

    @classmethod
    def of(
        cls, tables: EvaluationTables, schema: Schema, column: int, effort: Effort
    ) -> "LearningTask":
        """Set up the prediction of one attribute."""
        attribute = schema.attributes[column]
        as_number = attribute.is_numeric and attribute.size > _MAX_NUMERIC_CLASSES
        classes = _merge_rare_classes(tables.train[:, column], attribute.size)
        if as_number:
            classes = np.arange(attribute.size, dtype=np.uint16)
        rows = tables.test
        if as_number:
            rows = rows[rows[:, column] < attribute.bins]
        return cls(
            tables=tables,
            column=column,
            task="regression" if as_number else "classification",
            classes=classes,
            bins=attribute.bins,
            effort=effort,
            test=np.delete(rows, column, axis=1),
            truth=classes[rows[:, column]].astype(np.float64),
        )

    def score_learner(self, learner: str, progress: Callable[[int], None]) -> dict[str, Score]:
        """Train and score a learner on every training source; report the number of each run."""
        names = (*TRAINING_SOURCES, "other half")
        predictions: dict[str, list[Reals]] = {name: [] for name in names}
        for run in range(self.effort.runs):
            progress(run)
            training = self._training_rows(run)
            predicted = self.predict(learner, list(training.values()), run)
            for source, own in zip(training, predicted, strict=True):
                predictions[source].append(own)
        agreement_with = {"half": "other half"}
        return {
            source: self.score(predictions[source], predictions[agreement_with.get(source, "real")])
            for source in TRAINING_SOURCES
        }

    def _training_rows(self, run: int) -> dict[str, Codes]:
        """Sample the training rows of one run from every source."""
        randomness, limit = Keyed(self.effort.key), self.effort.rows
        rng = randomness.at("records", _ROWS_STREAM + run)
        real = sample_rows(self._with_target(self.tables.train), limit, rng)
        half, other = split_rows(real, 0.5, rng)
        return {
            "real": real,
            "half": half,
            "other half": other,
            "released": sample_rows(self._with_target(self.tables.released), limit, rng),
            "marginals": sample_rows(self._with_target(self.tables.marginals), limit, rng),
        }

    def predict(self, learner: str, tables: Sequence[Codes], run: int) -> list[Reals]:
        """Train a learner on each of several tables and predict the test labels."""
        return fit_predict_each(
            learner,
            self.task,
            training=[
                (np.delete(rows, self.column, axis=1), self.classes[rows[:, self.column]])
                for rows in tables
            ],
            test=self.test,
            trees=self.effort.trees,
            key=self.effort.key + run,
        )

    def score(self, predictions: Sequence[Reals], reference: Sequence[Reals]) -> Score:
        """Score the predictions of several runs, and their agreement with ``reference``."""
        by_class = self.task == "classification"
        values = [self._value(predicted) for predicted in predictions]
        value = float(np.mean(values))
        pairs = zip(predictions, reference, strict=True)
        agreements = [self._agreement(predicted, expected) for predicted, expected in pairs]
        return Score(
            value=value,
            interval=wilson_interval(value, len(self.truth)) if by_class else None,
            spread=spread(values),
            agreement=float(np.mean(agreements)),
            beats_guessing=self._beats_guessing(predictions),
        )

    def _beats_guessing(self, predictions: Sequence[Reals]) -> bool:
        """Whether the gain over guessing, row by row, is more than chance, in the mean of runs."""
        if not len(self.truth):
            return False
        gain = np.mean([self._gains(predicted) for predicted in predictions], axis=0)
        error = float(gain.std()) / np.sqrt(len(gain))
        return bool(gain.mean() > _MIN_STANDARD_ERRORS * error)

    def _gains(self, predicted: Reals) -> Reals:
        """What each test row adds to a score, beyond the most common class or the mean."""
        truth = self.truth
        if self.task == "regression":
            return np.asarray((truth - truth.mean()) ** 2 - (truth - predicted) ** 2)
        classes, counts = np.unique(truth, return_counts=True)
        most_common = classes[counts.argmax()]
        return np.asarray((predicted == truth) * 1.0 - (truth == most_common))

    def coefficients(self, attributes: Sequence[Attribute]) -> tuple[str, tuple[Coefficient, ...]]:
        """Fit a regression to real rows and to as many released records; return the largest.

        The largest per standard deviation of their terms: the others decide little. The target
        is a number, or whether the column has its commonest value: the event.
        """
        rng = Keyed(self.effort.key).at("records", _COEFFICIENT_STREAM)
        tables = [self._with_target(each) for each in (self.tables.train, self.tables.released)]
        limit = min(self.effort.rows, *map(len, tables))
        real, released = (sample_rows(codes, limit, rng) for codes in tables)
        if not limit:
            return "", ()
        attribute, by_class = attributes[self.column], self.task == "classification"
        event = int(np.bincount(real[:, self.column]).argmax())
        own = Term.of_value(attribute, self.column, event)
        if not by_class:
            own = Term.of_number(attribute, self.column, real)
        terms = regression_terms(attributes, real, skipped=self.column)
        (a, error), (b, other) = (
            fit_regression(terms, codes, own.values(codes), by_class=by_class)
            for codes in (real, released)
        )
        sizes = np.maximum(abs(a), abs(b)) * [term.values(real).std() for term in terms]
        errors = np.hypot(error, other)
        largest = np.argsort(-sizes, kind="stable")[:_MAX_COEFFICIENTS].tolist()
        return own.name if by_class else "", tuple(
            Coefficient(
                term=terms[at].name,
                real=float(a[at]),
                released=float(b[at]),
                error=float(errors[at]),
            )
            for at in largest
        )

    def _with_target(self, codes: Codes) -> Codes:
        """Leave out the rows whose target is no value, where it is to be a number."""
        found = codes[codes[:, self.column] < self.bins]
        return found if self.task == "regression" and len(found) else codes

    def baseline(self) -> float:
        """Score the most common class; for regression the mean, whose R² is 0."""
        if self.task == "regression" or not len(self.truth):
            return 0.0
        return float(np.unique(self.truth, return_counts=True)[1].max() / len(self.truth))

    def _value(self, predicted: Reals) -> float:
        truth = self.truth
        if not len(truth):
            return 0.0
        if self.task == "classification":
            return float(np.mean(predicted == truth))
        total = float(((truth - truth.mean()) ** 2).sum())
        return 1 - float(((truth - predicted) ** 2).sum()) / total if total else 0.0

    def _agreement(self, predicted: Reals, reference: Reals) -> float:
        if self.task == "classification":
            return float(np.mean(predicted == reference)) if len(predicted) else 0.0
        if np.ptp(predicted) == 0 or np.ptp(reference) == 0:
            return 0.0
        return float(np.corrcoef(predicted, reference)[0, 1])


def _merge_rare_classes(codes: Codes, size: int) -> Codes:
    """Map every code to a class; all but the most common codes share one class."""
    classes = np.arange(size, dtype=np.uint16)
    if size > _MAX_CLASSES:
        common = np.argsort(-np.bincount(codes, minlength=size), kind="stable")
        classes[common[_MAX_CLASSES - 1 :]] = common[_MAX_CLASSES - 1]
    return classes
