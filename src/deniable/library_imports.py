"""polars is imported on first use, as ``pl``: a plan reads no table and does not load it.

A module that uses this ``pl`` must also defer its annotations (``from __future__ import
annotations``): evaluating ``pl.Expr`` would be a use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _LazyPolars:
        """Stand-in for the module; every attribute is looked up in polars itself."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("polars"), name)

    pl = _LazyPolars()
