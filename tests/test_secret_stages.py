"""Secret stages: what depends on rows draws from the randomness of the run, never from a key.

Keys are public, or printed in a manifest. Noise of a key could be subtracted; with a known
split, threshold or choice of seeds the theorems do not hold. The laws of all these draws would be
right, so that no test of a law notices.
"""

import threading
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import learn, synthesize
from deniable.randomness import Keyed, Rng, Stage
from replay_cases import WORLDS

pytestmark = pytest.mark.slow

# What may be drawn from a key: post-processing of noisy numbers, and values within public bins.
PUBLIC = {"parameters", "records", "values", "identifiers"}
OPEN = Keyed.at


@dataclass
class Spied:
    """Randomness that passes for the system's, and notes the stages that it is asked for."""

    is_secret: ClassVar[bool] = True
    stages: set[Stage] = field(default_factory=set)

    def at(self, stage: Stage, block: int = 0) -> Rng:
        self.stages.add(stage)
        return OPEN(Keyed(1), stage, block)


@pytest.fixture
def keyed(monkeypatch) -> set[Stage]:
    """The stages that were opened with a key."""
    # A run that has its records does not wait for blocks that are under way: here, of other tests.
    of_others = set(threading.enumerate()) - {threading.current_thread()}
    stages: set[Stage] = set()

    def at(self: Keyed, stage: Stage, block: int = 0) -> Rng:
        if threading.current_thread() not in of_others:
            stages.add(stage)
        return OPEN(self, stage, block)

    monkeypatch.setattr(Keyed, "at", at)
    return stages


GIVEN = {"omega": "2", "k": 5, "epsilon": 3.0, "delta": 1e-5}
MODES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "one-shot": ({}, {"noise"}),
    "seedless": ({"mode": "seedless", "omega": "auto"}, {"noise"}),
    "split": (
        {"data_use": "split", "estimator": "norm-sub"},
        {"noise", "parameters", "split"},
    ),
    "the paper's": ({"estimator": "norm-sub", "parameters": "drawn"}, {"noise", "parameters"}),
    "tested": ({"mode": "tested"}, {"noise", "seeds", "candidates", "values"}),
    "randomized": (
        {"mode": "randomized", "k": 600},
        {"noise", "seeds", "candidates", "threshold", "values"},
    ),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_stage_of_a_run_that_reads_rows_is_secret(mode, keyed):
    options, wanted = MODES[mode]
    world, noise = WORLDS["units"], Spied()
    synthesize(world.table(1, 3_000), world.schema, records=2, noise=noise, **GIVEN | options)
    assert noise.stages == wanted | {"units"}
    assert keyed <= PUBLIC


def test_a_model_of_ones_own_is_scanned_in_secret(keyed):
    world, noise = WORLDS["few values"], Spied()
    model = NetworkModel(learn(world.table(1, 900), world.schema, omega="2").network, (4,))
    keyed.clear()
    synthesize(
        world.table(1, 900), world.schema, records=2, noise=noise, model=model, mode="tested", k=2
    )
    assert noise.stages == {"seeds", "candidates", "scan", "values"}
    assert keyed <= PUBLIC


@pytest.mark.parametrize("unit", [{}, {"unit": "p", "max_rows_per_unit": 2}])
def test_a_private_draft_is_secret(unit, keyed):
    draws = np.random.default_rng(1)
    table = pl.DataFrame({"p": draws.integers(0, 300, 900), "x": draws.integers(0, 9, 900)})
    noise = Spied()
    draft_schema(table, draft_epsilon=1.0, noise=noise, **unit)
    assert noise.stages == ({"noise", "units"} if unit else {"noise"})
    assert keyed == set()
