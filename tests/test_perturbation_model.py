"""The model that changes a seed a little: its law, written out, and what it draws."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_distribution
from deniable.errors import ConfigError
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from perturbation_model import PerturbationModel
from worlds import codes_of, count_records, plain_attribute, property_test, schemas, tables


def moves(attribute: Attribute, a: int, b: int, *, stay: float, step: float) -> float:
    """Pr{value a becomes b}: what the class says, in words."""
    missing = attribute.missing_code
    if attribute.kind == "integer" and a != missing:
        if b == missing:
            return 0.0
        weights = [math.exp(-abs(a - c) / step) for c in range(len(attribute.values))]
        return weights[b] / math.fsum(weights)
    return (1 - stay) / attribute.size + (stay if a == b else 0)


def probability(schema, y, d, **options) -> float:
    return math.prod(
        moves(attribute, a, b, **options) for attribute, a, b in zip(schema, d, y, strict=True)
    )


@st.composite
def cases(draw):
    schema = draw(schemas(most=3))
    options = {"stay": draw(st.floats(0, 0.99)), "step": draw(st.floats(0.1, 10))}
    return schema, draw(tables(schema, least=1, most=4)), options


@property_test
@given(cases())
def test_log_probability_is_the_law_of_the_class(case):
    schema, seeds, options = case
    model = PerturbationModel.of(schema, **options)
    universe = list(product(*[range(attribute.size) for attribute in schema]))
    logs = model.log_probability(codes_of(universe, len(schema)), codes_of(seeds, len(schema)))
    assert logs.shape == (len(universe), len(seeds))
    expected = [[probability(schema, y, d, **options) for d in seeds] for y in universe]
    np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-10)
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1, atol=1e-12)


@property_test
@given(cases())
def test_rows_of_every_table_sum_to_one(case):
    schema, _, options = case
    for table in PerturbationModel.of(schema, **options).tables:
        np.testing.assert_allclose(table.probabilities.sum(axis=1), 1, atol=1e-12)


SCHEMA = (
    Attribute(name="n", kind="integer", values=range(10, 14), missing=("?",)),
    plain_attribute("c", 3),
)


def propose_many(seed, *, step: float, trials: int = 120_000) -> Counter:
    model = PerturbationModel.of(SCHEMA, stay=0.4, step=step)
    seeds = codes_of([seed] * trials, 2)
    candidates = model.propose(seeds, Keyed(17).at("candidates"))
    assert set(count_records(seeds)) == {seed}, "the seeds are not to be touched"
    return count_records(candidates)


def expected_of(seed) -> dict:
    universe = product(range(5), range(3))
    return {y: probability(SCHEMA, y, seed, stay=0.4, step=1.5) for y in universe}


@pytest.mark.parametrize("seed", [(0, 1), (2, 2), (4, 0)])
def test_candidates_have_the_law_of_log_probability(seed):
    """A number at the end, one in the middle, a missing one; false-alarm rate 1e-6 each."""
    assert_distribution(propose_many(seed, step=1.5), expected_of(seed))


def test_that_assertion_notices_larger_steps():
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(propose_many((2, 2), step=1.8), expected_of((2, 2)))


@pytest.mark.parametrize(
    ("stay", "step"), [(1.0, 1.0), (-0.1, 1.0), (0.5, 0.0), (0.5, math.inf), (math.nan, 1.0)]
)
def test_options_that_make_no_model_are_refused(stay, step):
    with pytest.raises(ConfigError, match="need 0 ≤ stay < 1"):
        PerturbationModel.of(SCHEMA, stay=stay, step=step)


def test_a_square_table_too_large_is_refused():
    wide = Attribute(name="wide", kind="integer", values=range(5000))
    with pytest.raises(ConfigError, match='"wide" has more than'):
        PerturbationModel.of([wide], stay=0.5, step=1.0)
