"""Imports of libraries that take longer than their work: later, in part, or faster.

polars is imported on first use, as ``pl``: a plan reads no table and does not load it. A module
that uses this ``pl`` must also defer its annotations (``from __future__ import annotations``):
evaluating ``pl.Expr`` would be a use.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

__all__ = ["load_compiled", "pl", "without_collection"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _LazyPolars:
        """Stand-in for the module; every attribute is looked up in polars itself."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("polars"), name)

    pl = _LazyPolars()


def load_compiled(package: str, name: str) -> Any | None:
    """Load a compiled module of SciPy without the package around it (ADR 0027).

    Args:
        package: The package of SciPy, such as "sparse".
        name: The module in it.

    Returns:
        The module; None if the package is imported already, or has no such module.
    """
    scipy = find_spec("scipy")
    if f"scipy.{package}" in sys.modules or scipy is None:
        return None
    folders = [str(Path(each) / package) for each in scipy.submodule_search_locations or ()]
    found = PathFinder.find_spec(name, folders)
    if found is None or found.loader is None:
        return None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


@contextmanager
def without_collection() -> Iterator[None]:
    """Import modules without garbage collection, which takes a twentieth of a small run.

    The modules of a run have a hundred thousand objects, which stay. Python would search them for
    garbage again and again, after every 700 new ones.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
