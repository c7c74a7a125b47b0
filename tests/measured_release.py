"""A small release with its internal report, made in this process without a trained model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from deniable.arrays import Codes, Reals
from deniable.evaluation import distinguishability, ml_efficacy
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.pipeline import api


def make_measured_release(folder: Path, small_files: Path) -> Path:
    """Release the small table to ``out`` in a folder, and measure it; return the folder.

    The report has all its parts, but its learners predict the most frequent label: scikit-learn
    takes seconds to import, and what it learns is tested elsewhere.
    """
    table, schema = small_files / "table.csv", small_files / "schema.toml"
    api.synthesize(table, schema, records=300, k=20).write(folder / "out")
    effort = Effort(runs=1, rows=200, trees=2, game=100, test_rows=200)
    report = folder / "out.internal" / "report"
    with without_training():
        evaluate(table, folder / "out" / "synthetic.csv", schema, out=report, effort=effort)
    return folder


@contextmanager
def without_training() -> Iterator[None]:
    """Let learners predict the most frequent label."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ml_efficacy, "fit_predict_each", _most_frequent_each)
        patch.setattr(distinguishability, "fit_predict", _most_frequent)
        yield


def _most_frequent(*_: object, labels: Codes, test: Codes, **__: object) -> Reals:
    return np.full(len(test), float(np.bincount(labels).argmax()))


def _most_frequent_each(
    *_: object, training: Sequence[tuple[Codes, Codes]], test: Codes, **__: object
) -> list[Reals]:
    return [_most_frequent(labels=labels, test=test) for _features, labels in training]
