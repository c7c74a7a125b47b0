"""Store in an artefact, and read from it, the conditional distributions of its network."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices
from deniable.errors import ArtefactError
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.release.artefact_evidence import Arrays, TakeArray


def conditional_arrays(network: Network) -> Arrays:
    """Collect the conditional distributions as named arrays."""
    arrays: Arrays = {}
    for i, table in enumerate(network.tables):
        if isinstance(table, LogLinearConditional):
            flat: list[NDArray[Any]] = [effect.ravel() for effect in table.effects]
            arrays[f"base_{i}"] = table.base
            arrays[f"effects_{i}"] = np.concatenate([np.empty(0, dtype=np.int32), *flat])
            arrays[f"within_{i}"] = table.within
        else:
            arrays[f"probabilities_{i}"] = table.probabilities
    return arrays


def read_conditional(
    i: int, *, bins: Indices | None, groups: tuple[Indices, ...], take: TakeArray
) -> Conditional:
    """Read the conditional distribution of attribute ``i``.

    Args:
        i: The attribute.
        bins: The bin of each value, if the distribution is log-linear; None for a table.
        groups: The group of each value of each parent.
        take: Looks up an array.

    Raises:
        ArtefactError: The effects do not fit the parents' groups.
        InvariantError: Other parts do not fit.
    """
    if bins is None:
        return ConditionalTable(take(f"probabilities_{i}", np.float64))
    base, flat = take(f"base_{i}", np.int32), take(f"effects_{i}", np.int32)
    numbers = [int(own.max()) + 1 for own in groups]
    ends = np.cumsum([number * base.size for number in numbers], dtype=np.int64)
    if not (base.ndim == flat.ndim == 1) or len(flat) != (ends[-1] if len(ends) else 0):
        raise ArtefactError("the effects of a log-linear distribution do not fit its parents")
    parts = np.split(flat, ends[:-1]) if numbers else []
    effects = [part.reshape(n, len(base)) for part, n in zip(parts, numbers, strict=True)]
    within = take(f"within_{i}", np.int64)
    return LogLinearConditional(base=base, effects=tuple(effects), bins=bins, within=within)
