"""Forward filtering: its steps; the law of whole records is in test_inference.py."""

import numpy as np

from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.frontier import Frontier
from deniable.answers.state_filter import run_filter
from deniable.randomness import Keyed
from small_laws import UNIVERSE, enumerated, small_law


def filtered(max_states, given=frozenset({3}), cases=4):
    law = small_law("seedless")
    evidence = CaseEvidence(codes=np.asfortranarray(UNIVERSE[:cases]), given=given)
    frontier = Frontier.of(law, evidence)
    rng = Keyed(1).at("records")
    return run_filter(law, evidence, frontier, rng, max_states=max_states)


def test_weights_sum_to_one_in_each_case_and_states_are_ordered_by_case():
    found = filtered(100)
    np.testing.assert_allclose(np.bincount(found.cases, found.weights), 1)
    assert (np.diff(found.cases) >= 0).all()


def test_likelihoods_are_sums_over_all_records():
    expected = enumerated(small_law("seedless"))
    found = np.exp(filtered(100).log_likelihoods)
    sums = [expected[UNIVERSE[:, 3] == UNIVERSE[case, 3]].sum() for case in range(4)]
    np.testing.assert_allclose(found, sums, rtol=1e-12)


def test_no_more_states_are_kept_than_allowed():
    for step in filtered(2).steps[1:]:
        assert len(step.values) <= 4 * 2 * 4
        if step.starts is not None:
            assert len(step.starts) - 1 <= 4 * 2
