"""Learners: random forest, logistic or ridge regression; for the paper, decision tree and AdaBoost.

Trees use the codes as features; linear models use a one-hot encoding of them. A missing cell has a
code of its own.
"""

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import Codes, Reals
from deniable.errors import ConfigError
from deniable.workers import count_cores, map_in_order

Task = Literal["classification", "regression"]

# Of a report, in this order.
LEARNERS = ("forest", "linear")
# Names in the report.
LEARNER_TITLES = {"forest": "Random forest", "linear": "Logistic regression"}
_LOGISTIC_MAX_ITERATIONS = 300
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
    from sklearn.linear_model import (  # type: ignore[import-untyped] # noqa: PLC0415 - slow
        LogisticRegression,
        Ridge,
    )
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped] # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # type: ignore[import-untyped] # noqa: PLC0415

    model = LogisticRegression(max_iter=_LOGISTIC_MAX_ITERATIONS) if classes else Ridge()
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), model)
