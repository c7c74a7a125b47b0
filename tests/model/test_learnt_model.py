"""The learnt model: its network follows from its noisy counts alone."""

import dataclasses

import numpy as np
import pytest

from deniable.config import Config
from deniable.counting.local import LocalRows
from deniable.model.learnt_model import LearntModel
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.parameters import TableCounts
from deniable.pipeline.learn_model import learn_model
from deniable.pipeline.run_plan import Run, plan_run
from deniable.privacy.ledger import PARTS
from deniable.randomness import Keyed


def learnt(schema, codes, **options) -> tuple[LearntModel, Run]:
    config = Config.assemble({"mode": "seedless", **options})
    run = Run(schema=schema, config=config, plan=plan_run(schema, config), randomness=Keyed(3))
    return learn_model(dict.fromkeys(map(str, PARTS), LocalRows(codes)), run), run


def test_the_network_is_post_processing_of_the_evidence(small_schema, small_codes):
    """Fitted again from the noisy counts, without the table: the same network, to the bit."""
    model, run = learnt(small_schema, small_codes)
    assert isinstance(model.evidence, PairwiseMeasurements)
    again = fit_network(
        model.evidence, small_schema.attributes, max_cost=run.config.max_configurations
    )
    assert again.graph == model.network.graph
    assert again.order == model.network.order
    for one, two in zip(again.tables, model.network.tables, strict=True):
        np.testing.assert_array_equal(one.probabilities, two.probabilities)


@pytest.mark.parametrize(
    ("estimator", "kind"), [("pairs", PairwiseMeasurements), ("norm-sub", TableCounts)]
)
def test_each_estimator_has_its_own_evidence_and_the_spends_of_its_plan(
    small_schema, small_codes, estimator, kind
):
    model, run = learnt(small_schema, small_codes, estimator=estimator)
    assert isinstance(model.evidence, kind)
    assert [spend.what for spend in model.spends] == [s.what for s in run.plan.privacy.spends]


def test_without_noise_the_number_of_seeds_is_the_number_of_rows(small_schema, small_codes):
    for estimator in ("pairs", "norm-sub"):
        exact, _ = learnt(small_schema, small_codes, estimator=estimator, epsilon=float("inf"))
        noisy, _ = learnt(small_schema, small_codes, estimator=estimator)
        assert exact.seed_count == 2_000
        assert noisy.seed_count != 2_000


def test_a_model_is_a_value_and_its_repr_has_no_counts(small_schema, small_codes):
    model, _ = learnt(small_schema, small_codes, epsilon=float("inf"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.seed_count = 5  # type: ignore[misc]  # it is frozen: that is the point
    assert "evidence" not in repr(model)
    assert "array(" not in repr(model)
