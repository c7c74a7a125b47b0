"""What the tests of evaluation share: small tables, and the effort of a moment."""

import numpy as np
import pytest

from deniable.evaluation.baselines import Tables, cut, independent
from deniable.evaluation.effort import Effort
from deniable.pipeline import synthesize
from deniable.randomness import Keyed


@pytest.fixture(scope="session")
def little() -> Effort:
    return Effort(runs=1, rows=1_000, trees=5, game=500)


@pytest.fixture(scope="session")
def halves(small_codes):
    """Real rows to learn from, and others that are held out."""
    return cut(small_codes, 0.5, Keyed(1).at("records"))


@pytest.fixture(scope="session")
def tables(halves) -> Tables:
    """Records whose columns are independent, beside real rows: the worst of releases."""
    real, holdout = halves
    released = independent(real, 1_500, Keyed(2).at("records"))
    return Tables.of(real, released, holdout, key=0)


@pytest.fixture(scope="session")
def release(tmp_path_factory, small_files, small_schema):
    """A release on disk, with its manifest; and its table, schema and held-out rows."""
    folder = tmp_path_factory.mktemp("evaluation") / "release"
    synthesize(small_files / "table.csv", small_schema, records=800, key=3).write(folder)
    return folder


@pytest.fixture
def rng():
    return np.random.default_rng(20_260)
