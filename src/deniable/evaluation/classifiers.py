"""The learners that judge a release: tree, forest, AdaBoost, logistic regression or ridge.

Features are codes for trees, and one column a code for linear models. A missing cell is a code
like any other.
"""

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Codes, Reals
from deniable.workers import all_cores

Task = Literal["classification", "regression"]

# By name, in the order they are reported; as the paper has them, and one linear model.
LEARNERS = ("tree", "forest", "ada", "linear")
# In the words of the report.
TITLES = {
    "tree": "Tree",
    "forest": "Random forest",
    "ada": "AdaBoost",
    "linear": "Logistic regression",
}
_MOST_STEPS = 300


def title_of(name: str, task: Task) -> str:
    """Return what a learner is called in the report."""
    return "Ridge regression" if (name, task) == ("linear", "regression") else TITLES[name]


def fit_predict(
    name: str, task: Task, *, train: Codes, labels: Codes, test: Codes, trees: int, key: int
) -> Reals:
    """Return what a learner, trained on some rows, says of others.

    Args:
        name: One of ``LEARNERS``.
        task: Whether labels are classes or numbers.
        train: Features to learn from.
        labels: What to learn, one a row.
        test: Features to tell the labels of.
        trees: The size of a forest.
        key: Same key, same answer.
    """
    if len(np.unique(labels)) < 2:  # nothing to learn, and some learners refuse to
        return np.full(len(test), float(labels[0]))
    learner = _make(name, task, trees=trees, key=key)
    with warnings.catch_warnings():
        # How far a linear model came in its last step is not what is measured.
        warnings.simplefilter("ignore")
        found: NDArray[Any] = learner.fit(train, labels).predict(test)
    return found.astype(np.float64)


def _make(name: str, task: Task, *, trees: int, key: int) -> Any:
    """Return a learner that has learnt nothing yet."""
    from sklearn import ensemble, tree  # type: ignore[import-untyped] # noqa: PLC0415 - slow

    classes = task == "classification"
    if name == "tree":
        kind = tree.DecisionTreeClassifier if classes else tree.DecisionTreeRegressor
        return kind(random_state=key)
    if name == "forest":
        kind = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
        return kind(n_estimators=trees, random_state=key, n_jobs=all_cores())
    if name == "ada":
        kind = ensemble.AdaBoostClassifier if classes else ensemble.AdaBoostRegressor
        return kind(random_state=key)
    return _linear(classes=classes)


def _linear(*, classes: bool) -> Any:
    """Return a linear model over one column for every code; codes it has not seen count nothing."""
    from sklearn.linear_model import (  # type: ignore[import-untyped] # noqa: PLC0415 - slow
        LogisticRegression,
        Ridge,
    )
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped] # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # type: ignore[import-untyped] # noqa: PLC0415

    model = LogisticRegression(max_iter=_MOST_STEPS) if classes else Ridge()
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), model)
