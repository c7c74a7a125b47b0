"""Store in an artefact, and read from it, the noisy counts that its model was estimated from."""

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from deniable.errors import ArtefactError
from deniable.model.bayesian_network import Network
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import Statistics, TableCounts

# A model is estimated from one of these, and from nothing else that was learnt.
Evidence = TableCounts | PairwiseMeasurements
Arrays = dict[str, NDArray[Any]]
# Look up an array by its name and dtype.
TakeArray = Callable[[str, Any], NDArray[Any]]

# Names of the arrays of noisy sums.
_MOMENT_ARRAYS = ("records", "sums", "squares")


def describe_evidence(evidence: Evidence, names: Sequence[str]) -> dict[str, Any]:
    """Describe the noisy counts for artefact.json."""
    if isinstance(evidence, TableCounts):
        return {"kind": "tables", **_describe_moments(evidence, names)}
    return {
        "kind": "pairs",
        "sigmas": list(evidence.value_sigmas),
        "sigma": evidence.pair_sigma,
        "sigma_again": evidence.remeasured_sigma,
        "ratio": evidence.ratio,
        "fitted_with": evidence.fitted_with or describe_computer(),
        "pairs": [
            [names[i], names[j], evidence.remeasure_counts.get((i, j), 0)]
            for i, j in evidence.pairs
        ],
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
        for parent, groups in zip(network.graph.parents[i], network.groups[i], strict=True):
            arrays[f"groups_{i}_{parent}"] = groups
    for (i, j), counts in evidence.pairs.items():
        arrays[f"pair_{i}_{j}"] = counts
        if (i, j) in evidence.remeasured:
            arrays[f"again_{i}_{j}"] = evidence.remeasured[i, j]
    return arrays


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
        ArtefactError: Their kind is unknown.
        InvariantError: Their shapes do not match.
    """
    every = range(len(names))
    if described["kind"] == "tables":
        return _read_tables(described, names, take)
    if described["kind"] != "pairs":
        raise ArtefactError("artefact.json has noisy counts of an unknown kind")
    number = {name: i for i, name in enumerate(names)}
    repeats = {(number[one], number[two]): int(times) for one, two, times in described["pairs"]}
    remeasured = {pair: times for pair, times in repeats.items() if times}
    return PairwiseMeasurements(
        values=tuple(take(f"values_{i}", np.int64) for i in every),
        bins=tuple(take(f"bins_{i}", np.intp) for i in every),
        pairs={(i, j): take(f"pair_{i}_{j}", np.int64) for i, j in repeats},
        remeasured={(i, j): take(f"again_{i}_{j}", np.int64) for i, j in remeasured},
        remeasure_counts=remeasured,
        value_sigmas=tuple(float(sigma) for sigma in described["sigmas"]),
        pair_sigma=float(described["sigma"]),
        remeasured_sigma=float(described["sigma_again"]),
        ratio=float(described["ratio"]),
        fitted_with=str(described["fitted_with"]),
    )


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
        tuple(take(f"groups_{i}_{parent}", np.intp) for parent in chosen)
        for i, chosen in enumerate(parents)
    )
