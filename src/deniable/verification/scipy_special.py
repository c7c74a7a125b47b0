"""Special functions of SciPy, from its compiled module: ``erfcx``, ``gammaln``, ``ndtr``.

Importing ``scipy.special`` takes a third of the time of verifying a small release (ADR 0027).
"""

from collections.abc import Callable
from typing import Any

from deniable.library_imports import load_compiled

_COMPILED = "_special_ufuncs"
_NAMES = ("erfcx", "gammaln", "ndtr")


def load_functions() -> tuple[Callable[..., Any], ...]:
    """Load the three functions; import their package if its compiled module does not have them."""
    functions = load_compiled("special", _COMPILED)
    if not all(hasattr(functions, name) for name in _NAMES):
        from scipy import special as functions  # noqa: PLC0415 - slow to import

    return tuple(getattr(functions, name) for name in _NAMES)


erfcx, gammaln, ndtr = load_functions()
