"""Frontiers: what matters after each attribute, by the definition of the small network."""

import numpy as np

from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.answers.frontier import Frontier
from small_laws import UNIVERSE, small_law


def frontier(kind, given=(), factors=()):
    law = small_law(kind)
    evidence = CaseEvidence(codes=UNIVERSE[:1], given=frozenset(given), factors=factors)
    return Frontier.of(law, evidence)


def test_attributes_matter_until_the_last_that_depends_on_them():
    """In the order 2, 0, 4, 1, 3; attribute 3 depends on 1 and 4, in groups."""
    found = frontier("seedless", {3})
    assert found.end == 5
    assert [sorted(classes) for classes in found.classes] == [[2], [0, 2], [0, 4], [1, 4], []]
    # Attribute 1 has codes 0 and 1 of attribute 4 in one group, attribute 3 codes 2 and 3.
    assert found.classes[3][4].tolist() == [0, 1, 2, 2]
    assert found.classes[3][1].tolist() == [0, 1, 1]
    assert found.states == 6
    assert found.entries == 18


def test_given_attributes_are_not_part_of_a_state():
    found = frontier("seedless", {3, 4, 0})
    assert [sorted(classes) for classes in found.classes] == [[2], [2], [], [1], []]
    assert found.states == 2


def test_nothing_matters_after_the_evidence():
    found = frontier("seedless", {2})
    assert (found.end, found.states) == (1, 1)
    assert frontier("seedless").end == 0


def test_masks_and_factors_distinguish_codes():
    assert sorted(frontier("masked", {3}).classes[2]) == [0, 4]
    assert frontier("masked", {3}).classes[3][0].tolist() == [0, 1]
    factor = Factor(attribute=3, by=2, table=np.ones((2, 3)))
    assert 2 in frontier("seedless", factors=(factor,)).classes[3]


def test_states_begin_with_the_listed_prefixes():
    found = frontier("combined", {3})
    assert found.first == 3
    assert found.states >= 5
