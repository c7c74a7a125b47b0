"""Special functions of SciPy: the same as the package's, without its import."""

import subprocess
import sys
from importlib.machinery import PathFinder

import numpy as np
import pytest
from scipy import special

from deniable.verification import scipy_special

POINTS = np.concatenate([np.linspace(-40, 40, 4_001), [-np.inf, np.inf, np.nan, 700.0, 1e300]])
LOADED = """
import sys
from deniable.verification.scipy_special import erfcx, gammaln, ndtr
print(ndtr(0.0), gammaln(3.0) > 0, erfcx(0.0), "scipy.special" in sys.modules)
"""


@pytest.fixture
def without_package(monkeypatch):
    """A program that has not imported scipy.special."""
    monkeypatch.delitem(sys.modules, "scipy.special")


@pytest.mark.usefixtures("without_package")
def test_the_compiled_functions_are_those_of_the_package():
    compiled = scipy_special.load_functions()
    package = (special.erfcx, special.gammaln, special.ndtr)
    for own, known in zip(compiled, package, strict=True):
        assert np.array_equal(own(POINTS), known(POINTS), equal_nan=True)


def test_a_package_that_is_loaded_is_used():
    assert scipy_special.load_functions() == (special.erfcx, special.gammaln, special.ndtr)


@pytest.mark.usefixtures("without_package")
@pytest.mark.parametrize("name", ["_no_such_module", "_comb"])
def test_a_module_without_the_functions_is_replaced_by_the_package(monkeypatch, name):
    """As in a version of SciPy that has them elsewhere."""
    monkeypatch.setattr(scipy_special, "_COMPILED", name)
    loaded = scipy_special.load_functions()
    assert [each.__name__ for each in loaded] == ["erfcx", "gammaln", "ndtr"]


def test_the_compiled_module_is_where_it_is_expected():
    """Otherwise every verification imports the whole package."""
    assert PathFinder.find_spec("_special_ufuncs", special.__path__) is not None
    program = [sys.executable, "-c", LOADED]
    shown = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert shown.split() == ["0.5", "True", "1.0", "False"]
