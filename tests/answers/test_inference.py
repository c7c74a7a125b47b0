"""Inference by enumeration: likelihoods to twelve digits, and the law of drawn records."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from deniable.answers import inference as module
from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.answers.frontier import Frontier
from deniable.answers.inference import infer, split_cases
from deniable.answers.released_law import joint_index
from deniable.answers.state_filter import run_filter
from deniable.arrays import CODE
from deniable.errors import InvariantError
from deniable.randomness import Keyed
from small_laws import KINDS, ORDER, SIZES, UNIVERSE, enumerated, small_law

PATTERNS = [
    frozenset(which) for size in range(1, 5) for which in combinations(range(len(SIZES)), size)
]
# A soft factor on attribute 3, and one on attribute 1 whose row is the code of attribute 4.
FACTOR = Factor(attribute=3, table=np.array([[0.25, 0.0, 1.0]]))
PAIR_FACTOR = Factor(attribute=1, by=4, table=np.array([[1, 0, 0.5], [0.5, 1, 1]] * 2))


def evidence_of(codes, given=frozenset(), factors=()):
    return CaseEvidence(codes=np.asfortranarray(codes), given=given, factors=factors)


def weights_of(evidence, case):
    """The likelihood of each record of UNIVERSE under the evidence of one case."""
    found = np.ones(len(UNIVERSE))
    for i in evidence.given:
        found *= UNIVERSE[:, i] == evidence.codes[case, i]
    for factor in evidence.factors:
        row = UNIVERSE[:, factor.by] if factor.by is not None else 0
        row = factor.rows[case] if factor.rows is not None else row
        found *= factor.table[row, UNIVERSE[:, factor.attribute]]
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(), (FACTOR, PAIR_FACTOR)], ids=["given", "with factors"])
def test_likelihoods_are_those_of_enumeration_for_evidence_in_every_position(kind, factors):
    law, expected = small_law(kind), enumerated(small_law(kind))
    for given in PATTERNS:
        evidence = evidence_of(UNIVERSE, given, factors)
        found = np.exp(infer(law, evidence, Keyed(3).at("records")).log_likelihoods)
        probability = np.array(
            [expected @ weights_of(evidence, case) for case in range(0, len(UNIVERSE), 7)]
        )
        np.testing.assert_allclose(found[::7], probability, rtol=1e-12, atol=1e-15)


def p_value(drawn, expected):
    """The p-value of a chi-square test; rare records are counted together."""
    sizes = np.array(SIZES)
    cells = np.ravel_multi_index(tuple(drawn.T.astype(int)), sizes)
    counts = np.bincount(cells, minlength=len(expected))
    assert counts[expected == 0].sum() == 0
    common = expected * len(drawn) >= 5
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum()) * len(drawn)
    keep = wanted > 0
    return stats.chisquare(observed[keep], wanted[keep]).pvalue


CASES = [
    ({3}, ()),
    ({1, 3}, ()),
    ({2}, ()),
    ({0, 3}, ()),
    ({4}, (FACTOR,)),
    (set(), (FACTOR, PAIR_FACTOR)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("given", "factors"), CASES)
def test_records_have_the_law_of_enumeration(kind, given, factors):
    """A false alarm in 10^6 for each of 30 tests, with fixed keys."""
    law, expected = small_law(kind), enumerated(small_law(kind))
    case = int(np.argmax(expected))
    evidence = evidence_of(UNIVERSE[[case, case]], frozenset(given), factors)
    drawn = infer(law, evidence, Keyed(3).at("records")).draw(
        np.ones(20_000, dtype=np.intp), Keyed(4).at("records")
    )
    # A value that contradicts an earlier one 50 times is left to the redraw of whole records.
    for (one, two), mask in law.pair_masks.items():
        drawn = drawn[mask[drawn[:, one], drawn[:, two]]]
    assert len(drawn) > 19_900
    posterior = expected * weights_of(evidence, 1)
    assert p_value(drawn, posterior / posterior.sum()) > 1e-6


def test_a_wrong_law_is_found():
    """What the tests above would see if evidence were not passed backward."""
    law, expected = small_law("combined"), enumerated(small_law("combined"))
    evidence = evidence_of(UNIVERSE[[0]], frozenset({3}))
    drawn = infer(law, evidence, Keyed(3).at("records")).draw(
        np.zeros(20_000, dtype=np.intp), Keyed(4).at("records")
    )
    posterior = expected * weights_of(evidence, 0)
    forward_only = expected.copy().reshape(SIZES).sum(axis=3, keepdims=True)
    fixed = np.zeros(SIZES)
    fixed[:, :, :, :1, :] = forward_only
    assert p_value(drawn, posterior / posterior.sum()) > 1e-6
    assert p_value(drawn, fixed.ravel() / fixed.sum()) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_few_selected_states_are_near_the_law_and_state_their_error(kind, monkeypatch):
    """Averaged over 200 cases of equal evidence, each with its own selection of 3 states."""
    monkeypatch.setattr(module, "_MAX_ENTRIES_PER_CASE", 1)
    monkeypatch.setattr(module, "_SELECTED_STATES_PER_CASE", 3)
    law, expected = small_law(kind), enumerated(small_law(kind))
    case = int(np.argmax(expected))
    evidence = evidence_of(UNIVERSE[[case] * 200], frozenset({3}))
    posterior = infer(law, evidence, Keyed(3).at("records"))
    assert not posterior.is_exact
    weights = expected * weights_of(evidence, 0)
    found = np.exp(posterior.log_likelihoods)
    assert found.mean() == pytest.approx(weights.sum(), rel=0.1)
    assert 0 < posterior.total_variation.mean() < 0.3
    drawn = posterior.draw(np.repeat(np.arange(200), 100), Keyed(4).at("records"))
    cells = np.ravel_multi_index(tuple(drawn.T.astype(int)), SIZES)
    observed = np.bincount(cells, minlength=len(UNIVERSE)) / len(drawn)
    distance = np.abs(observed - weights / weights.sum()).sum() / 2
    assert distance < posterior.total_variation.mean() + 0.05


def test_selection_is_right_on_average_and_exact_with_enough_states(monkeypatch):
    law, expected = small_law("seedless"), enumerated(small_law("seedless"))
    evidence = evidence_of(UNIVERSE[[17] * 3000], frozenset({1, 3}))
    monkeypatch.setattr(module, "_MAX_ENTRIES_PER_CASE", 1)
    monkeypatch.setattr(module, "_SELECTED_STATES_PER_CASE", 2)
    found = np.exp(infer(law, evidence, Keyed(8).at("records")).log_likelihoods)
    weight = expected @ weights_of(evidence, 0)
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - weight) < 5 * error
    monkeypatch.setattr(module, "_SELECTED_STATES_PER_CASE", 100)
    enough = infer(law, evidence, Keyed(8).at("records"))
    np.testing.assert_allclose(np.exp(enough.log_likelihoods), weight, rtol=1e-12)
    assert enough.total_variation.max() < 1e-12


def test_impossible_evidence_has_likelihood_zero():
    law = small_law("combined")
    codes = UNIVERSE[[0, 1]].copy()
    codes[0, list(ORDER[:3])] = [0, 0, 0]
    codes[1, list(ORDER[:3])] = [0, 0, 1]
    evidence = evidence_of(codes, frozenset(ORDER[:3]))
    found = infer(law, evidence, Keyed(3).at("records"))
    assert found.log_likelihoods[0] == -np.inf
    assert found.log_likelihoods[1] > -np.inf
    drawn = found.draw(np.ones(5, dtype=np.intp), Keyed(3).at("records"))
    assert (drawn[:, list(ORDER[:3])] == [0, 0, 1]).all()


def test_cases_are_split_into_parts_that_fit(monkeypatch):
    monkeypatch.setattr(module, "_MAX_ENTRIES", 500)
    evidence = evidence_of(UNIVERSE, frozenset({3}))
    parts = list(split_cases(small_law("seedless"), evidence))
    assert len(parts) > 3
    assert np.concatenate([numbers for numbers, _ in parts]).tolist() == list(range(len(UNIVERSE)))
    assert all((part.codes == UNIVERSE[numbers]).all() for numbers, part in parts)


def test_a_case_of_many_records_has_more_states(monkeypatch):
    monkeypatch.setattr(module, "_MAX_ENTRIES_PER_CASE", 1)
    monkeypatch.setattr(module, "_SELECTED_STATES_PER_CASE", 2)
    law, evidence = small_law(KINDS[0]), evidence_of(UNIVERSE[:1], frozenset({3}))
    kept, run = [], module.run_filter

    def record(*args, max_states):
        kept.append(max_states)
        return run(*args, max_states=max_states)

    monkeypatch.setattr(module, "run_filter", record)
    for times in (1, 500, 10**6):
        assert not infer(law, evidence, Keyed(3).at("records"), times=times).is_exact
    assert sorted(set(kept)) == [2, 1_000, module._SELECTED_STATES]


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_prefixes_sum_to_one(kind):
    assert small_law(kind).start.weights.sum() == pytest.approx(1)


def test_masked_distributions_exclude_contradictions_and_sum_to_one():
    law = small_law("masked")
    found = law.distribution(UNIVERSE, 3)  # attribute 1, masked with 4
    np.testing.assert_allclose(found.sum(axis=1), 1)
    mask = law.pair_masks[1, 4]
    assert (found[~mask.T[UNIVERSE[:, 4]]] == 0).all()


def test_combinations_are_numbered_without_overflow():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 3, 50) for _ in range(60)]
    index = joint_index(columns, [3] * 60)
    _, expected = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    _, found = np.unique(index, return_inverse=True)
    assert found.tolist() == expected.ravel().tolist()
