"""The noisy counts a model was estimated from, as an artefact stores them."""

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import ArtefactError
from deniable.model.moments import Moments
from deniable.model.network import Network
from deniable.model.pairs import Measured
from deniable.model.parameters import Statistics, TableCounts

# Every model is made of one of these, and of nothing else that was learnt.
Evidence = TableCounts | Measured
Arrays = dict[str, NDArray[Any]]
# The arrays of noisy sums.
_OF_MOMENTS = ("records", "sums", "squares")
# From the name of an array and its type to the array.
Take = Callable[[str, Any], NDArray[Any]]


def describe(evidence: Evidence, names: Sequence[str]) -> dict[str, Any]:
    """Return what artefact.json tells of the noisy counts."""
    if isinstance(evidence, TableCounts):
        return {"kind": "tables", **_describe_moments(evidence, names)}
    return {
        "kind": "pairs",
        "sigmas": list(evidence.sigmas),
        "sigma": evidence.sigma,
        "sigma_again": evidence.sigma_again,
        "ratio": evidence.ratio,
        "fitted_with": evidence.fitted_with or computer(),
        "pairs": [[names[i], names[j], evidence.looks.get((i, j), 0)] for i, j in evidence.pairs],
    }


def _describe_moments(evidence: TableCounts, names: Sequence[str]) -> dict[str, Any]:
    """Return what there is to tell of noisy sums; nothing where there are none."""
    if not evidence.moments:
        return {}
    told = {
        names[i]: {
            "model": moments.model,
            "shape": list(moments.shape),
            "bound": moments.bound,
            "deviations": list(moments.deviations),
        }
        for i, moments in evidence.moments.items()
    }
    return {"fitted_with": evidence.fitted_with or computer(), "moments": told}


def computer() -> str:
    """Return what decides the last digits of a fit: libraries, and what the processor can do."""
    import scipy  # noqa: PLC0415 - not needed to read or write anything else

    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    libraries = f"numpy {np.__version__}, scipy {scipy.__version__}"
    return f"{libraries}, {platform.machine()} {' '.join(found)}".strip()


def arrays_of(evidence: Evidence, network: Network) -> Arrays:
    """Return the noisy counts as arrays; for pairs also how tables group their parents."""
    if isinstance(evidence, TableCounts):
        return _arrays_of_tables(evidence)
    arrays: Arrays = {}
    for i, counts in enumerate(evidence.values):
        arrays[f"values_{i}"] = counts
        arrays[f"bins_{i}"] = evidence.bins[i]
        for parent, groups in zip(network.graph.parents[i], network.groups[i], strict=True):
            arrays[f"groups_{i}_{parent}"] = groups
    for (i, j), counts in evidence.pairs.items():
        arrays[f"pair_{i}_{j}"] = counts
        if (i, j) in evidence.again:
            arrays[f"again_{i}_{j}"] = evidence.again[i, j]
    return arrays


def _arrays_of_tables(evidence: TableCounts) -> Arrays:
    arrays: Arrays = {}
    for i, noisy in enumerate(evidence.tables):
        if isinstance(noisy, Moments):
            arrays |= {f"{kind}_{i}": getattr(noisy, kind) for kind in _OF_MOMENTS}
        else:
            arrays[f"counts_{i}"] = noisy
    return arrays


def read_evidence(described: Mapping[str, Any], names: Sequence[str], take: Take) -> Evidence:
    """Return the noisy counts of an artefact.

    Raises:
        ArtefactError: They are of no known kind, or do not fit each other.
    """
    every = range(len(names))
    if described["kind"] == "tables":
        return _read_tables(described, names, take)
    if described["kind"] != "pairs":
        raise ArtefactError("artefact.json has noisy counts of no known kind")
    number = {name: i for i, name in enumerate(names)}
    looks = {(number[one], number[two]): int(times) for one, two, times in described["pairs"]}
    again = {pair: times for pair, times in looks.items() if times}
    return Measured(
        values=tuple(take(f"values_{i}", np.int64) for i in every),
        bins=tuple(take(f"bins_{i}", np.intp) for i in every),
        pairs={(i, j): take(f"pair_{i}_{j}", np.int64) for i, j in looks},
        again={(i, j): take(f"again_{i}_{j}", np.int64) for i, j in again},
        looks=again,
        sigmas=tuple(float(sigma) for sigma in described["sigmas"]),
        sigma=float(described["sigma"]),
        sigma_again=float(described["sigma_again"]),
        ratio=float(described["ratio"]),
        fitted_with=str(described["fitted_with"]),
    )


def _read_tables(described: Mapping[str, Any], names: Sequence[str], take: Take) -> TableCounts:
    """Return the noisy counts and sums of the tables of a graph."""
    told = described.get("moments", {})
    tables: list[Statistics] = []
    for i, name in enumerate(names):
        if name not in told:
            tables.append(take(f"counts_{i}", np.int64))
            continue
        configurations, size = map(int, told[name]["shape"])
        records, sums, squares = (float(each) for each in told[name]["deviations"])
        moments = Moments(
            model=told[name]["model"],
            shape=(configurations, size),
            bound=int(told[name]["bound"]),
            deviations=(records, sums, squares),
            **{kind: take(f"{kind}_{i}", np.int64) for kind in _OF_MOMENTS},
        )
        tables.append(moments)
    return TableCounts(tuple(tables), fitted_with=str(described.get("fitted_with", "")))


def read_groups(
    evidence: Evidence, parents: Sequence[Sequence[int]], take: Take
) -> tuple[tuple[NDArray[Any], ...], ...]:
    """Return how each table groups its parents; nothing where that is by their buckets."""
    if isinstance(evidence, TableCounts):
        return ()
    return tuple(
        tuple(take(f"groups_{i}_{parent}", np.intp) for parent in chosen)
        for i, chosen in enumerate(parents)
    )
