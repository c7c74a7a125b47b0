"""Learners: random forest, logistic or ridge regression; for the paper, decision tree and AdaBoost.

And the coefficients of a logistic or ridge regression, as an analyst would fit it.

Trees use the codes as features; linear models use a one-hot encoding of them. A missing cell has a
code of its own.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import Codes, Reals
from deniable.errors import ConfigError
from deniable.evaluation.marginals import value_label
from deniable.schema.attribute import Attribute
from deniable.workers import count_cores, map_in_order

Task = Literal["classification", "regression"]

# Of a report, in this order.
LEARNERS = ("forest", "linear")
# Names in the report.
LEARNER_TITLES = {"forest": "Random forest", "linear": "Logistic regression"}
_LOGISTIC_MAX_ITERATIONS = 300
# Terms of a regression: values of a column, besides the commonest, and their least share of rows.
_MAX_VALUE_TERMS = 8
_MIN_TERM_SHARE = 0.05
# Training rows times trees from which a forest uses all cores; below, starting threads takes longer
# than training.
_MIN_PARALLEL_WORK = 50_000


def learner_title(name: str, task: Task) -> str:
    """Return the name of a learner in the report."""
    return "Ridge regression" if (name, task) == ("linear", "regression") else LEARNER_TITLES[name]


def fit_predict(
    name: str, task: Task, *, train: Codes, labels: Codes, test: Codes, trees: int, key: int
) -> Reals:
    """Fit a learner to training rows and predict the labels of test rows.

    Args:
        name: One of ``LEARNERS``, or "tree" or "ada".
        task: Classification if labels are classes, regression if they are numbers.
        train: Training features.
        labels: Training labels, one per row.
        test: Test features.
        trees: Number of trees in a random forest.
        key: Random state; the same key gives the same predictions.
    """
    return fit_predict_each(
        name, task, training=[(train, labels)], test=test, trees=trees, key=key
    )[0]


def fit_predict_each(
    name: str,
    task: Task,
    *,
    training: Sequence[tuple[Codes, Codes]],
    test: Codes,
    trees: int,
    key: int,
) -> list[Reals]:
    """Fit a learner to each of several tables and predict the labels of the same test rows.

    All cores are used: by the trees of a forest, whose tables come one after the other, since a
    forest is large; by tables otherwise.

    Args:
        name: One of ``LEARNERS``, or "tree" or "ada".
        task: Classification if labels are classes, regression if they are numbers.
        training: Features and labels of each table.
        test: Test features.
        trees: Number of trees in a random forest.
        key: Random state; the same key gives the same predictions.
    """

    def fitted(rows: tuple[Codes, Codes]) -> Reals:
        train, labels = rows
        if len(np.unique(labels)) < 2:  # some learners reject a single class
            return np.full(len(test), float(labels[0]))
        cores = count_cores() if trees * len(labels) >= _MIN_PARALLEL_WORK else 1
        learner = _new_learner(name, task, trees=trees, key=key, workers=cores)
        predicted: NDArray[Any] = learner.fit(train, labels).predict(test)
        return predicted.astype(np.float64)

    workers = 1 if name == "forest" else count_cores()
    # The matrices are small: several BLAS threads would mostly wait for each other.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # Convergence warnings do not matter here.
        warnings.simplefilter("ignore")
        return list(map_in_order(fitted, training, workers=workers))


@dataclass(frozen=True, kw_only=True)
class Term:
    """A number that a regression reads off each row: a column in standard units, or an indicator.

    Attributes:
        name: Name in the report.
        column: Column of the codes.
        value_of: The number of each code.
    """

    name: str
    column: int
    value_of: Reals

    @classmethod
    def of_number(cls, attribute: Attribute, column: int, codes: Codes) -> Self:
        """Standardize a number by the given rows; a missing cell has their mean."""
        centres = attribute.first_positions + (attribute.widths - 1) / 2
        present = codes[codes[:, column] < attribute.bins, column]
        numbers = centres[present]
        value_of = np.zeros(attribute.size)
        if len(numbers) and numbers.std() > 0:
            value_of[: attribute.bins] = (centres - numbers.mean()) / numbers.std()
        return cls(name=attribute.name, column=column, value_of=value_of)

    @classmethod
    def of_value(cls, attribute: Attribute, column: int, code: int) -> Self:
        """Indicate one value."""
        value_of = np.zeros(attribute.size)
        value_of[code] = 1.0
        name = f"{attribute.name} = {value_label(attribute, code)}"
        return cls(name=name, column=column, value_of=value_of)

    def values(self, codes: Codes) -> Reals:
        """Return the number of each row."""
        return self.value_of[codes[:, self.column]]


def regression_terms(
    attributes: Sequence[Attribute], codes: Codes, *, skipped: int
) -> tuple[Term, ...]:
    """Choose the terms of a regression by real rows: all columns but the target.

    A number is one term. Of other columns, each frequent value but the commonest is one.
    """
    found: list[Term] = []
    for column, attribute in enumerate(attributes):
        counts = np.bincount(codes[:, column], minlength=attribute.size)
        if column == skipped or np.count_nonzero(counts) < 2:
            continue
        if attribute.is_numeric and np.count_nonzero(counts[: attribute.bins]) > _MAX_VALUE_TERMS:
            found.append(Term.of_number(attribute, column, codes))
            continue
        frequent = np.argsort(-counts, kind="stable")[1 : 1 + _MAX_VALUE_TERMS]
        found += [
            Term.of_value(attribute, column, code)
            for code in frequent.tolist()
            if counts[code] >= _MIN_TERM_SHARE * len(codes)
        ]
    return tuple(found)


def fit_regression(
    terms: Sequence[Term], codes: Codes, target: Reals, *, by_class: bool
) -> tuple[Reals, Reals]:
    """Fit a regression with an intercept; return its coefficients and their standard errors.

    A penalty of ½ Σ β² keeps a coefficient finite where a term decides the target.

    Args:
        terms: The terms.
        codes: The rows.
        target: 0 or 1, or numbers.
        by_class: Whether the regression is logistic.
    """
    from sklearn.linear_model import (  # type: ignore[import-untyped] # noqa: PLC0415 - slow
        LogisticRegression,
        Ridge,
    )

    features = np.stack([each.values(codes) for each in terms], axis=1) if terms else np.empty(0)
    if not terms or len(np.unique(target)) < 2:
        return np.zeros(len(terms)), np.zeros(len(terms))
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if by_class:
            model = LogisticRegression(max_iter=_LOGISTIC_MAX_ITERATIONS).fit(features, target)
            share = model.predict_proba(features)[:, 1]
            weights = share * (1 - share)
        else:
            model = Ridge().fit(features, target)
            residuals = target - model.predict(features)
            weights = np.full(len(target), 1 / max(float(np.mean(residuals**2)), 1e-12))
        centred = features - np.average(features, axis=0, weights=np.maximum(weights, 1e-12))
        information = (centred * weights[:, None]).T @ centred + np.eye(len(terms))
        errors = np.sqrt(np.diag(np.linalg.inv(information)))
    return np.ravel(model.coef_), errors


def require_scikit_learn() -> None:
    """Refuse to start what trains models, if scikit-learn is not installed.

    Raises:
        ConfigError: It is missing; the message names the extra that installs it.
    """
    if find_spec("sklearn") is None:
        raise ConfigError(
            "this command trains models and needs scikit-learn, which is not installed: "
            "pip install 'deniable[evaluate]'"
        )


def _new_learner(name: str, task: Task, *, trees: int, key: int, workers: int) -> Any:
    """Create an unfitted learner."""
    from sklearn import ensemble, tree  # type: ignore[import-untyped] # noqa: PLC0415 - slow

    classes = task == "classification"
    if name == "tree":
        kind = tree.DecisionTreeClassifier if classes else tree.DecisionTreeRegressor
        return kind(random_state=key)
    if name == "forest":
        kind = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
        return kind(n_estimators=trees, random_state=key, n_jobs=workers)
    if name == "ada":
        kind = ensemble.AdaBoostClassifier if classes else ensemble.AdaBoostRegressor
        return kind(random_state=key)
    return _linear_model(classes=classes)


def _linear_model(*, classes: bool) -> Any:
    """Create a linear model on one-hot encoded codes; codes absent from training are ignored."""
    from sklearn.linear_model import (  # noqa: PLC0415 - slow
        LogisticRegression,
        Ridge,
    )
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped] # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # type: ignore[import-untyped] # noqa: PLC0415

    model = LogisticRegression(max_iter=_LOGISTIC_MAX_ITERATIONS) if classes else Ridge()
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), model)
