"""Releases that several test files verify."""

import json
from typing import Any

import pytest

from releases import FEW, make
from tampering import Release


@pytest.fixture(scope="session")
def release(tmp_path_factory) -> Release:
    """A one-shot release with kept prefixes and a model of tables.

    It is the fastest to verify, which the tests do hundreds of times. ``test_artefact_checks.py``
    has a pairwise model.
    """
    folder = tmp_path_factory.mktemp("release")
    return Release(make(folder, omega="2", key=7, estimator="norm-sub"))


@pytest.fixture(scope="session")
def randomized(tmp_path_factory) -> dict[str, Any]:
    folder = make(tmp_path_factory.mktemp("randomized"), **FEW)
    return json.loads((folder / "manifest.json").read_bytes())
