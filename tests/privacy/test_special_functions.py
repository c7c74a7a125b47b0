"""Special functions against SciPy's, to a few units in the last place."""

import numpy as np
from scipy import special

from deniable.privacy.special_functions import erfcx, log_factorial, log_sum_exp


def test_scaled_erfc_is_accurate_to_16_ulp():
    """Near 0, across the limit 2π from which the residue is left out, and far out."""
    x = np.concatenate([np.linspace(0, 7, 20_001), np.geomspace(1e-300, 1e6, 4_001), [2 * np.pi]])
    np.testing.assert_allclose(erfcx(x), special.erfcx(x), rtol=2.0**-49, atol=0)


def test_scaled_erfc_needs_the_residue_and_all_nodes():
    """Each part that could be lost matters: what is left of it is checked above."""
    assert erfcx(np.array([0.0]))[0] == 1.0  # the sum is 0 here: all of it is the residue
    far = np.array([50.0])  # and here all of it is the sum
    np.testing.assert_allclose(erfcx(far), special.erfcx(far), rtol=2.0**-49)


def test_log_factorial_is_accurate_to_16_ulp_of_its_terms():
    n = np.concatenate([np.arange(3_000.0), np.round(np.geomspace(3_000, 1e12, 2_000))])
    expected = special.gammaln(n + 1)
    error = np.abs(log_factorial(n) - expected)
    assert (error <= 2.0**-49 * np.maximum(expected, 1.0)).all()


def test_log_sum_exp_does_not_overflow():
    values = np.array([-1_000.0, 800.0, 799.5, -np.inf])
    assert abs(log_sum_exp(values) - special.logsumexp(values)) < 1e-12
