"""Special functions of SciPy, from its compiled module: ``erfcx``, ``gammaln``, ``ndtr``.

Importing ``scipy.special`` takes a third of the time of verifying a small release (ADR 0027).
"""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

_COMPILED = "_special_ufuncs"
_NAMES = ("erfcx", "gammaln", "ndtr")


def load_functions() -> tuple[Callable[..., Any], ...]:
    """Load the three functions; import their package if its compiled module does not have them."""
    package = find_spec("scipy")
    if "scipy.special" not in sys.modules and package and package.submodule_search_locations:
        folders = [str(Path(each) / "special") for each in package.submodule_search_locations]
        found = PathFinder.find_spec(_COMPILED, folders)
        if found is not None and found.loader is not None:
            compiled = module_from_spec(found)
            found.loader.exec_module(compiled)
            if all(hasattr(compiled, name) for name in _NAMES):
                return tuple(getattr(compiled, name) for name in _NAMES)
    from scipy import special  # noqa: PLC0415 - slow to import

    return tuple(getattr(special, name) for name in _NAMES)


erfcx, gammaln, ndtr = load_functions()
