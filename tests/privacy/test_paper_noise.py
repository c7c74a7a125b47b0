"""The paper's noise: its formulas meet the limit, and its sensitivity is charged in full."""

import math

import numpy as np
import pytest

from chance import assert_rate
from deniable.counting.local import count
from deniable.errors import BudgetError
from deniable.model.paper.correlation import learn_paper_correlations, measure_entropies
from deniable.privacy.composition import Guarantee
from deniable.privacy.entropy_scale import EXACT_BITS, EntropyScale
from deniable.privacy.noise_laws import discrete_laplace, exact
from deniable.privacy.paper_noise import (
    MAX_STEPS_PER_RECORD,
    STEPS_PER_SENSITIVITY,
    PaperStructure,
    paper_noise,
    paper_records_cost,
)
from deniable.privacy.theorems import (
    paper_entropy_sensitivity,
    paper_parameters_cost,
    paper_structure_cost,
)
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from theorems import entropy_sensitivity

LIMIT = Guarantee(epsilon=1.0, delta=2.0**-30)
FRACTIONS = {"structure": 0.187, "parameters": 0.187, "seeds": 0.492}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_paper_s_formula_comes_to_what_was_asked_for(epsilon):
    noise = paper_noise(
        Guarantee(epsilon=epsilon, delta=2.0**-30), attributes=11, fractions=FRACTIONS
    )
    assert noise.formula.epsilon <= epsilon
    assert noise.formula.epsilon == pytest.approx(epsilon, rel=1e-6)


def test_its_scales_solve_the_paper_s_formulas_before_amplification():
    """ε = ln(1 + p (e^ε_L - 1)): at p = 0.187 and ε = 1, ε_L = ln(1 + (e - 1)/0.187) = 2.32."""
    noise = paper_noise(LIMIT, attributes=11, fractions=FRACTIONS)
    part = math.log1p(math.expm1(1.0) / 0.187)
    epsilon_h = STEPS_PER_SENSITIVITY * dict(noise.structure.entropy.parameters)["epsilon"]
    epsilon_n = dict(noise.structure.records.parameters)["epsilon"]
    structure = paper_structure_cost(
        attributes=11, epsilon_h=epsilon_h, epsilon_n=epsilon_n, delta=LIMIT.delta
    )
    parameters = paper_parameters_cost(
        attributes=11, epsilon_p=dict(noise.counts.parameters)["epsilon"], delta=LIMIT.delta
    )
    assert structure.epsilon == pytest.approx(part, rel=1e-6)
    assert parameters.epsilon == pytest.approx(part, rel=1e-6)


def test_the_exact_sensitivity_is_below_half_of_the_paper_s_for_every_number_of_records():
    """So MOST_STEPS, half of them and one for rounding, is the most that a record moves."""
    for n in [*range(2, 5_000), *(10**e for e in range(4, 13))]:
        steps = entropy_sensitivity(n) / paper_entropy_sensitivity(n) * STEPS_PER_SENSITIVITY
        assert math.floor(steps) + 1 <= MAX_STEPS_PER_RECORD


def test_fewer_than_two_records_move_no_further_than_is_charged():
    """The second record may add one bit; the bound is at n_low = 2 at least."""
    assert 1.0 / paper_entropy_sensitivity(2) * STEPS_PER_SENSITIVITY + 1 <= MAX_STEPS_PER_RECORD


@pytest.mark.parametrize("fault", [{"epsilon": math.inf}, {"delta": 0.0}])
def test_without_a_limit_there_is_no_formula(fault):
    with pytest.raises(BudgetError, match="finite"):
        paper_noise(
            Guarantee(**{"epsilon": 1.0, "delta": 1e-9, **fault}),
            attributes=3,
            fractions=FRACTIONS,
        )


def test_the_lower_bound_is_above_n_as_rarely_as_it_says():
    """Pr{n_low > n} ≤ β, and not much less: the bound is not wasteful."""
    noise = PaperStructure(entropy=exact(), records=discrete_laplace(0.2), beta=0.01)
    n, trials = 1_000, 200_000
    noisy = n + noise.records.table.draw(Keyed(4).at("noise"), trials)
    above = sum(noise.lower_bound(int(number)) > n for number in noisy)
    assert above / trials <= 0.01 + 5 * math.sqrt(0.01 / trials)
    assert above > 0
    law = noise.records
    shift = 1_000 - noise.lower_bound(1_000)
    chance = float(sum(law.probability(z) for z in range(shift + 1, law.radius + 1)))
    assert chance <= 0.01
    assert_rate(int(above), trials, chance)


def test_the_lower_bound_is_never_below_two():
    noise = PaperStructure(entropy=exact(), records=discrete_laplace(0.2), beta=0.01)
    assert noise.lower_bound(-50) == 2


def test_records_add_up_as_in_theorems_1_and_2():
    """k = 50, γ = 4, ε0 = 1, t = 29: ε = 1.129, δ = 7.6e-10 for one; 1,000 times for 1,000."""
    cost = paper_records_cost(k=50, gamma=4.0, epsilon0=1.0, t=29, records=1_000)
    assert cost.epsilon == pytest.approx(1_129.3, abs=0.1)
    assert cost.delta == pytest.approx(7.58e-7, rel=0.01)


@pytest.fixture
def world():
    rng = np.random.default_rng(8)
    attributes = [
        Attribute(name="a", kind="integer", values=range(6)).with_bucket_width(2),
        Attribute(name="b", kind="categorical", values=("x", "y", "z")),
    ]
    a = rng.integers(0, 6, 400)
    codes = np.asfortranarray(np.stack([a, (a + rng.integers(0, 2, 400)) % 3], 1).astype(np.uint16))
    return attributes, lambda queries: count(attributes, codes, queries, workers=1)


def test_with_little_noise_the_correlations_are_those_without(world):
    attributes, counted = world
    noise = PaperStructure(entropy=exact(), records=discrete_laplace(40.0), beta=1e-3)
    found, records, spends = learn_paper_correlations(
        Keyed(1).at("noise"), counted, attributes, noise
    )
    scale = EntropyScale(rows_max=2**40, bits=EXACT_BITS)
    exactly = measure_entropies(counted, attributes, scale)
    assert abs(records - 400) <= 1
    bits = np.array(list(exactly.values()))[:2] / 2**EXACT_BITS / 400
    assert found.single == pytest.approx(bits, abs=noise.unit(noise.lower_bound(records)))
    assert [spend.what for spend in spends] == ["entropies", "number of records"]


def test_what_is_spent_is_what_the_plan_lists(world):
    attributes, counted = world
    noise = paper_noise(LIMIT, attributes=2, fractions=FRACTIONS).structure
    _, _, spends = learn_paper_correlations(Keyed(1).at("noise"), counted, attributes, noise)
    assert tuple(spends) == noise.spends(spends[0].l0_sensitivity)
