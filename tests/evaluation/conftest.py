"""Fixtures of the evaluation tests: small tables, a release, and small sizes."""

import numpy as np
import pytest

from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.reference_tables import EvaluationTables, independent_columns, split_rows
from deniable.pipeline.api import synthesize
from deniable.randomness import Keyed


@pytest.fixture(scope="session")
def little() -> Effort:
    return Effort(runs=1, rows=1_000, trees=5, game=500)


@pytest.fixture(scope="session")
def halves(small_codes):
    """Real rows to learn from, and others that are held out."""
    return split_rows(small_codes, 0.5, Keyed(1).at("records"))


@pytest.fixture(scope="session")
def tables(halves) -> EvaluationTables:
    """Released records with independent columns, and real rows: the worst kind of release."""
    real, holdout = halves
    released = independent_columns(real, 1_500, Keyed(2).at("records"))
    return EvaluationTables.of(real, released, holdout, key=0)


@pytest.fixture(scope="session")
def release(tmp_path_factory, small_files, small_schema):
    """A release on disk, with its manifest; and its table, schema and held-out rows."""
    folder = tmp_path_factory.mktemp("evaluation") / "release"
    synthesize(small_files / "table.csv", small_schema, records=800, key=3).write(folder)
    return folder


@pytest.fixture(scope="session")
def internal(release, small_files, small_schema, tmp_path_factory):
    """An internal edition without held-out rows, and the folder it was written to."""
    out = tmp_path_factory.mktemp("internal") / "out"
    metrics = evaluate(
        small_files / "table.csv",
        release / "synthetic.csv",
        small_schema,
        out=out,
        effort=Effort(runs=2, rows=500, trees=5, game=300),
    )
    return metrics, out


@pytest.fixture(scope="session")
def public(release, small_schema, tmp_path_factory):
    out = tmp_path_factory.mktemp("public") / "out"
    # There is no such table: a public edition cannot have read it.
    metrics = evaluate(
        "no/such/table.csv", release / "synthetic.csv", small_schema, out=out, edition="public"
    )
    return metrics, out


@pytest.fixture
def rng():
    return np.random.default_rng(20_260)
