"""Evidence of cases: where it ends in the order, likelihoods, and parts of it."""

import numpy as np
import pytest

from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.arrays import CODE
from deniable.errors import InvariantError

CODES = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=CODE)
TABLE = np.array([[1.0, 0.5], [0.0, 2.0]])


def test_the_end_is_after_the_last_attribute_of_the_order():
    order = (2, 0, 1)
    assert CaseEvidence(codes=CODES).end(order) == 0
    assert CaseEvidence(codes=CODES, given=frozenset({2})).end(order) == 1
    factor = Factor(attribute=1, table=TABLE)
    assert CaseEvidence(codes=CODES, given=frozenset({2}), factors=(factor,)).end(order) == 3


def test_likelihoods_are_selected_by_a_code_by_the_case_or_for_all():
    states = np.array([2, 0])
    codes = CODES[[1, 0]]
    assert Factor(attribute=1, table=TABLE, by=0).likelihoods(codes, states).tolist() == [
        [0, 2],
        [1, 0.5],
    ]
    rows = np.array([1, 0, 1])
    by_case = Factor(attribute=1, table=TABLE, rows=rows)
    assert by_case.likelihoods(codes, states).tolist() == [[0, 2], [0, 2]]
    assert Factor(attribute=1, table=TABLE).likelihoods(codes, states).tolist() == [[1, 0.5]]


def test_a_part_takes_the_rows_of_its_cases():
    factor = Factor(attribute=1, table=TABLE, rows=np.array([1, 0, 1]))
    part = CaseEvidence(codes=CODES, factors=(factor,)).take(np.array([2, 1]))
    assert part.codes.tolist() == [[0, 0, 0], [1, 1, 0]]
    assert part.factors[0].rows.tolist() == [1, 0]


def test_a_factor_needs_a_row_for_each_case():
    with pytest.raises(InvariantError):
        CaseEvidence(codes=CODES, factors=(Factor(attribute=1, table=TABLE, rows=np.array([1])),))
