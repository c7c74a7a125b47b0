"""A studio on a folder with the small table, its schema, and a release of it."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from deniable.arrays import Codes, Reals
from deniable.evaluation import distinguishability, ml_efficacy
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.pipeline import api
from studio_client import StudioClient, record_release


@pytest.fixture
def folder(tmp_path: Path, small_files: Path) -> Path:
    """A folder with table.csv and schema.toml."""
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(small_files / "table.csv", root)
    shutil.copy(small_files / "schema.toml", root)
    return root


@pytest.fixture
def studio(folder: Path) -> Iterator[StudioClient]:
    """A studio on that folder, with a client that was let in."""
    found = StudioClient(folder)
    yield found
    for process in found.space.control.processes:
        process.wait(60)


def most_frequent(*_: object, labels: Codes, test: Codes, **__: object) -> Reals:
    """Predict the most frequent label: a report has all its parts without a trained model."""
    return np.full(len(test), float(np.bincount(labels).argmax()))


def most_frequent_each(
    *_: object, training: Sequence[tuple[Codes, Codes]], test: Codes, **__: object
) -> list[Reals]:
    """The same of several tables."""
    return [most_frequent(labels=labels, test=test) for _features, labels in training]


@pytest.fixture(scope="session")
def made_release(tmp_path_factory: pytest.TempPathFactory, small_files: Path) -> Path:
    """A folder with a release of the small table, measured. Tests copy it."""
    folder = tmp_path_factory.mktemp("made")
    table, schema = small_files / "table.csv", small_files / "schema.toml"
    api.synthesize(table, schema, records=300, k=20).write(folder / "out")
    effort = Effort(runs=1, rows=200, trees=2, game=100, test_rows=200)
    report = folder / "out.internal" / "report"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ml_efficacy, "fit_predict_each", most_frequent_each)
        patch.setattr(distinguishability, "fit_predict", most_frequent)
        evaluate(table, folder / "out" / "synthetic.csv", schema, out=report, effort=effort)
    return folder


@pytest.fixture
def released(studio: StudioClient, folder: Path, made_release: Path) -> StudioClient:
    """A studio whose folder has a release, and the run that made it."""
    for name in ("out", "out.internal"):
        shutil.copytree(made_release / name, folder / name)
    record_release(studio, "out", epsilon=0.9)  # its manifest states a little more
    return studio
