"""Arrays of an artefact, stored and read: noisy counts, and conditional distributions.

The noisy counts are the evidence: all that the model was estimated from.
"""

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from deniable.arrays import Indices
from deniable.errors import ArtefactError
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network
from deniable.model.effect_tables import JointEffect
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.measure import (
    PairwiseMeasurements,
    Subset,
    ThreeWayInteractions,
)
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import Statistics, TableCounts
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.schema import Schema

# A model is estimated from one of these, and from nothing else that was learnt.
Evidence = TableCounts | PairwiseMeasurements
Arrays = dict[str, NDArray[Any]]
# Look up an array by its name and dtype.
TakeArray = Callable[[str, Any], NDArray[Any]]

# Names of the arrays of noisy sums.
_MOMENT_ARRAYS = ("records", "sums", "squares")
_WRONG_JOINT = "the effects of pairs of parents do not fit a log-linear distribution"
# Largest noisy number of seeds: sums of integers and of doubles are exact below it.
_MAX_SEEDS = 2**53


def describe_evidence(evidence: Evidence, names: Sequence[str]) -> dict[str, Any]:
    """Describe the noisy counts for artefact.json."""
    if isinstance(evidence, TableCounts):
        return {"kind": "tables", **_describe_moments(evidence, names)}
    return {
        "kind": "pairs",
        "sigmas": list(evidence.value_sigmas),
        "table_sigma": evidence.table_sigma,
        "fitted_with": evidence.fitted_with or describe_computer(),
        "tables": [[names[i], names[j], n] for (i, j), n in evidence.table_counts.items()],
        "three_way": evidence.three_way and evidence.three_way.mean_square,
    }


def _describe_moments(evidence: TableCounts, names: Sequence[str]) -> dict[str, Any]:
    """Describe the noisy sums; an empty dict if there are none."""
    if not evidence.moments:
        return {}
    described = {
        names[i]: {
            "model": moments.model,
            "shape": list(moments.shape),
            "bound": moments.bound,
            "deviations": list(moments.deviations),
        }
        for i, moments in evidence.moments.items()
    }
    return {"fitted_with": evidence.fitted_with or describe_computer(), "moments": described}


@cache  # libraries are searched in all mapped files of the process, which takes milliseconds
def describe_computer() -> str:
    """Describe what determines the last digits of a fit: libraries, SIMD extensions and kernels."""
    import scipy  # noqa: PLC0415 - not needed to read or write anything else

    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    libraries = f"numpy {np.__version__}, scipy {scipy.__version__}"
    # OpenBLAS chooses its kernels by the processor, or by an environment variable.
    kernels = sorted({info["architecture"] for info in threadpool_info() if "architecture" in info})
    processor = " ".join([platform.machine(), *found])
    return ", ".join([libraries, processor, *(f"BLAS {kernel}" for kernel in kernels)])


def evidence_arrays(evidence: Evidence, network: Network) -> Arrays:
    """Collect the noisy counts as named arrays; for pairs, also the groups of parents' values."""
    if isinstance(evidence, TableCounts):
        return _table_arrays(evidence)
    arrays: Arrays = {}
    for i, counts in enumerate(evidence.values):
        arrays[f"values_{i}"] = counts
        arrays[f"bins_{i}"] = evidence.bins[i]
        arrays[f"grouping_{i}"] = evidence.groups[i]
        for parent, groups in zip(network.graph.parents[i], network.groups[i], strict=True):
            arrays[f"groups_{i}_{parent}"] = groups
    # One array for all pairs: a thousand columns have half a million of them.
    for name, tables in (("interactions", evidence.interactions), ("tables", evidence.tables)):
        flat = [table.ravel() for table in tables.values()]
        arrays[name] = np.concatenate([np.empty(0, dtype=np.int64), *flat])
    sigmas = list(evidence.interaction_sigmas.values())
    arrays["sigmas"] = np.array(sigmas, dtype=np.float64)
    if evidence.three_way:
        arrays |= _three_way_arrays(evidence.three_way)
    return arrays


def _three_way_arrays(three_way: ThreeWayInteractions) -> Arrays:
    flat = [table.ravel() for table in three_way.interactions.values()]
    arrays: Arrays = {"triples": np.concatenate([np.empty(0, dtype=np.int64), *flat])}
    arrays["triplesigmas"] = np.array(list(three_way.sigmas.values()), dtype=np.float64)
    return arrays | {f"triplegrouping_{i}": own for i, own in enumerate(three_way.groups)}


def _table_arrays(evidence: TableCounts) -> Arrays:
    arrays: Arrays = {}
    for i, noisy in enumerate(evidence.tables):
        if isinstance(noisy, Moments):
            arrays |= {f"{kind}_{i}": getattr(noisy, kind) for kind in _MOMENT_ARRAYS}
        else:
            arrays[f"counts_{i}"] = noisy
    return arrays


def read_evidence(described: Mapping[str, Any], names: Sequence[str], take: TakeArray) -> Evidence:
    """Read the noisy counts of an artefact.

    Raises:
        ArtefactError: Their kind is unknown, or a number of them is impossible.
        InvariantError: Their shapes do not match.
    """
    if described["kind"] == "tables":
        return _read_tables(described, names, take)
    if described["kind"] != "pairs":
        raise ArtefactError("artefact.json has noisy counts of an unknown kind")
    every = range(len(names))
    bins = [_take_groups(f"bins_{i}", take) for i in every]
    groups = [_take_groups(f"grouping_{i}", take) for i in every]
    values = tuple(take(f"values_{i}", np.int64) for i in every)
    if any(own.ndim != 1 for own in values):
        raise ArtefactError("a one-way table has more than one dimension")
    counts = _read_table_counts(described["tables"], names)
    sigmas = take("sigmas", np.float64)
    pairs = _list_divided(groups, 2, len(sigmas)) if len(sigmas) else []
    _require_deviations(sigmas, described)
    return PairwiseMeasurements(
        values=values,
        bins=tuple(bins),
        groups=tuple(groups),
        interactions=_split_tables(take("interactions", np.int64), pairs, groups),
        tables=_split_tables(take("tables", np.int64), list(counts), bins),
        table_counts=counts,
        value_sigmas=tuple(float(sigma) for sigma in described["sigmas"]),
        interaction_sigmas=dict(zip(pairs, sigmas.tolist(), strict=True)),
        table_sigma=float(described["table_sigma"]),
        fitted_with=str(described["fitted_with"]),
        three_way=None if described["three_way"] is None else _read_three_way(len(names), take),
    )


def _read_three_way(attributes: int, take: TakeArray) -> ThreeWayInteractions:
    """Read three-way interactions."""
    groups = [_take_groups(f"triplegrouping_{i}", take) for i in range(attributes)]
    sigmas = take("triplesigmas", np.float64)
    triples = _list_divided(groups, 3, len(sigmas))
    if not (np.isfinite(sigmas).all() and (sigmas > 0).all()):
        raise ArtefactError("the noise of the three-way interactions is impossible")
    return ThreeWayInteractions(
        groups=tuple(groups),
        interactions=_split_tables(take("triples", np.int64), triples, groups),
        sigmas=dict(zip(triples, sigmas.tolist(), strict=True)),
    )


def _take_groups(name: str, take: TakeArray) -> NDArray[Any]:
    """Take an array that numbers groups from 0, without gaps."""
    groups = take(name, np.intp)
    is_list = groups.ndim == 1 and groups.size > 0
    # The bounds come first: they bound the memory of the count.
    if not (is_list and 0 <= groups.min() <= groups.max() < groups.size):
        raise ArtefactError("bins or groups are not numbered from 0")
    if not np.bincount(groups).all():
        raise ArtefactError("bins or groups are not numbered without gaps")
    return groups


def _read_table_counts(listed: Any, names: Sequence[str]) -> dict[tuple[int, int], int]:
    """Read how many two-way tables each measured pair has."""
    number = {name: i for i, name in enumerate(names)}
    counts = {(number[one], number[two]): int(times) for one, two, times in listed}
    if not all(i < j and times > 0 for (i, j), times in counts.items()):
        raise ArtefactError("artefact.json lists a pair of attributes that was not measured")
    return counts


def _list_divided(groups: Sequence[NDArray[Any]], order: int, sigmas: int) -> list[Any]:
    """List the pairs or triples whose interactions were measured: all of attributes in groups.

    Their number is compared before they are listed: a short file can declare very many.
    """
    divided = [i for i, own in enumerate(groups) if int(own.max()) > 0]
    if sigmas != math.comb(len(divided), order):
        raise ArtefactError("the interactions have noise of another number of pairs or triples")
    return list(combinations(divided, order))


def _require_deviations(sigmas: NDArray[Any], described: Mapping[str, Any]) -> None:
    """Refuse standard deviations that are not finite, or below what is possible."""
    known = [float(described["table_sigma"]), *map(float, described["sigmas"])]
    deviations = np.concatenate([sigmas, known])
    possible = np.isfinite(deviations).all() and (deviations >= 0).all()
    if not (possible and (sigmas > 0).all()):
        raise ArtefactError("the noise of the noisy counts is impossible")


def _split_tables(
    flat: NDArray[Any], pairs: Sequence[Subset], groups: Sequence[NDArray[Any]]
) -> dict[Subset, NDArray[Any]]:
    """Split one array into the tables of pairs or triples between groups."""
    numbers = [int(own.max()) + 1 for own in groups]
    shapes = [tuple(numbers[i] for i in pair) for pair in pairs]
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=np.int64)
    if flat.ndim != 1 or len(flat) != (ends[-1] if len(ends) else 0):
        raise ArtefactError("the tables of pairs have another number of cells than their groups")
    parts = np.split(flat, ends[:-1]) if pairs else []
    shaped = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    return dict(zip(pairs, shaped, strict=True))


def _read_tables(
    described: Mapping[str, Any], names: Sequence[str], take: TakeArray
) -> TableCounts:
    """Read the noisy counts and sums of the tables of a graph."""
    by_name = described.get("moments", {})
    tables: list[Statistics] = []
    for i, name in enumerate(names):
        if name not in by_name:
            tables.append(take(f"counts_{i}", np.int64))
            continue
        configurations, size = map(int, by_name[name]["shape"])
        records, sums, squares = (float(each) for each in by_name[name]["deviations"])
        moments = Moments(
            model=by_name[name]["model"],
            shape=(configurations, size),
            bound=int(by_name[name]["bound"]),
            deviations=(records, sums, squares),
            **{kind: take(f"{kind}_{i}", np.int64) for kind in _MOMENT_ARRAYS},
        )
        tables.append(moments)
    return TableCounts(tuple(tables), fitted_with=str(described.get("fitted_with", "")))


def read_groups(
    evidence: Evidence, parents: Sequence[Sequence[int]], take: TakeArray
) -> tuple[tuple[NDArray[Any], ...], ...]:
    """Read the groups of parents' values of each table; empty if tables use parents' buckets."""
    if isinstance(evidence, TableCounts):
        return ()
    return tuple(
        tuple(_take_groups(f"groups_{i}_{parent}", take) for parent in chosen)
        for i, chosen in enumerate(parents)
    )


def conditional_arrays(network: Network) -> Arrays:
    """Collect the conditional distributions as named arrays."""
    arrays: Arrays = {}
    for i, table in enumerate(network.tables):
        if isinstance(table, LogLinearConditional):
            flat: list[NDArray[Any]] = [effect.ravel() for effect in table.effects]
            arrays[f"base_{i}"] = table.base
            arrays[f"effects_{i}"] = np.concatenate([np.empty(0, dtype=np.int32), *flat])
            arrays[f"within_{i}"] = table.within
            arrays |= _joint_arrays(i, table.joint)
        else:
            arrays[f"probabilities_{i}"] = table.probabilities
    return arrays


def _joint_arrays(i: int, joint: Sequence[JointEffect]) -> Arrays:
    """Collect the effects of pairs of parents: which parents, their coarser groups, effects."""
    parents = [number for each in joint for number in (each.first, each.second)]
    groups = [own for each in joint for own in (each.first_groups, each.second_groups)]
    effects: list[NDArray[Any]] = [each.effects.ravel() for each in joint]
    return {
        f"jointparents_{i}": np.array(parents, dtype=np.intp),
        f"jointgroups_{i}": np.concatenate([np.empty(0, dtype=np.intp), *groups]),
        f"jointeffects_{i}": np.concatenate([np.empty(0, dtype=np.int32), *effects]),
    }


def _read_joint(
    i: int, sizes: Sequence[int], bins: int, take: TakeArray
) -> tuple[JointEffect, ...]:
    """Read the effects of pairs of parents, given the parents' numbers of groups."""
    parents = take(f"jointparents_{i}", np.intp)
    groups, flat = take(f"jointgroups_{i}", np.intp), take(f"jointeffects_{i}", np.int32)
    fits = parents.ndim == groups.ndim == flat.ndim == 1 and len(parents) % 2 == 0
    if not fits or (parents.size and not 0 <= parents.min() <= parents.max() < len(sizes)):
        raise ArtefactError(_WRONG_JOINT)
    ends = np.cumsum([sizes[parent] for parent in parents], dtype=np.int64)
    if len(groups) != (ends[-1] if len(ends) else 0):
        raise ArtefactError(_WRONG_JOINT)
    maps = np.split(groups, ends[:-1]) if len(ends) else []
    if any(not 0 <= own.min() <= own.max() < len(own) for own in maps):
        raise ArtefactError(_WRONG_JOINT)
    numbers = [int(own.max()) + 1 for own in maps]
    pairs = [one * two for one, two in zip(numbers[::2], numbers[1::2], strict=True)]
    ends = np.cumsum([pair * bins for pair in pairs], dtype=np.int64)
    if len(flat) != (ends[-1] if len(ends) else 0):
        raise ArtefactError(_WRONG_JOINT)
    parts = np.split(flat, ends[:-1]) if pairs else []
    return tuple(
        JointEffect(
            first=int(parents[2 * at]),
            second=int(parents[2 * at + 1]),
            first_groups=maps[2 * at],
            second_groups=maps[2 * at + 1],
            effects=part.reshape(pair, bins),
        )
        for at, (part, pair) in enumerate(zip(parts, pairs, strict=True))
    )


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
    return LogLinearConditional(
        base=base,
        effects=tuple(effects),
        bins=bins,
        within=take(f"within_{i}", np.int64),
        joint=_read_joint(i, numbers, len(base), take),
    )


def log_linear_names(schema: Schema, facts: Mapping[str, Any]) -> set[str]:
    """List the columns whose distributions are log-linear, not tables; only pairs have any."""
    names = set(facts["log_linear"])
    if not names <= set(schema.names) or (names and facts["evidence"]["kind"] != "pairs"):
        raise ArtefactError("artefact.json names a log-linear distribution that cannot exist")
    return names


def require_fit(schema: Schema, order: tuple[int, ...], kept: KeptPrefixes) -> None:
    """Refuse prefixes that hold a code outside its attribute's domain."""
    sizes = [schema.sizes[i] for i in order[: kept.length]]
    if (kept.prefixes >= np.array(sizes)).any():
        raise ArtefactError("a kept prefix does not fit the schema")
    if max(kept.counts.sum(dtype=np.float64), abs(kept.records)) > _MAX_SEEDS:
        raise ArtefactError("the noisy number of seeds is too large")
