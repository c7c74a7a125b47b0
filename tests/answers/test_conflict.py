"""Conflicts: the smallest part of impossible evidence that is found."""

import numpy as np

from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.answers.conflict import find_conflict
from small_laws import UNIVERSE, small_law


def test_a_pair_that_a_mask_excludes_is_found():
    law = small_law("masked")
    one, four = np.argwhere(~law.pair_masks[1, 4])[0]
    codes = UNIVERSE[:1].copy()
    codes[0, [1, 4]] = one, four
    evidence = CaseEvidence(codes=codes, given=frozenset({0, 1, 2, 4}))
    assert set(find_conflict(law, evidence)) == {1, 4}


def test_a_value_that_is_impossible_alone_is_found():
    law = small_law("seedless")
    factor = Factor(attribute=4, table=np.zeros((1, 4)))
    evidence = CaseEvidence(codes=UNIVERSE[:1], given=frozenset({0, 1}), factors=(factor,))
    assert find_conflict(law, evidence) == (4,)


def test_otherwise_all_that_come_before_are_named():
    """Prefixes of three attributes, where only one combination of the first two is absent."""
    law = small_law("combined")
    codes = UNIVERSE[:1].copy()
    codes[0, [2, 0, 4]] = 0, 0, 3
    evidence = CaseEvidence(codes=codes, given=frozenset({0, 2, 4, 3}))
    assert set(find_conflict(law, evidence)) <= {0, 2, 4}
