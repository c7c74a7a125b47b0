"""Check an artefact: its files, its manifest, its model refitted from noisy counts, its prefixes.

Conditional tables are estimated again from the noisy counts in the artefact and compared.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import cost
from deniable.model.pairwise.denoise import table_weights
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import (
    PairwiseMeasurements,
    count_paid_tables,
    three_way_layout,
)
from deniable.model.pairwise.one_way import value_distributions
from deniable.model.pairwise.table_layout import apportion, choose_layout
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import TableCounts, estimate_table
from deniable.privacy.moment_budget import noise_deviation
from deniable.privacy.noise_laws import exact, rounded_gaussian
from deniable.privacy.pairwise_budget import PairNoise
from deniable.release.artefact import Artefact, load
from deniable.release.atomic_files import encode_json, file_hash
from deniable.release.manifest import add_checksum
from deniable.release.prefix_distribution import draw_prefix_pool
from deniable.release.seed_histogram import (
    MIN_SHARED_FRACTION,
    KeptPrefixes,
    choose_omega,
    longest_listed,
)
from deniable.release.untrusted_files import read_json
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.verification.claims import (
    PAIR_SPENDS,
    RECORDS_OF,
    SQUARES_OF,
    SUMS_OF,
    THREE_WAY_SPEND,
    VALUES_OF,
    Check,
    Inexact,
    ManifestClaims,
    run_check,
)
from deniable.verification.manifest_spend import require
from deniable.verification.refit import compare_fit, compare_tables, is_this_platform

MANIFEST_FILE = "manifest.json"
ARTEFACT_FILES = ("artefact.json", "schema.toml", "tables.npz")
# Parameters in a release's manifest that its artefact's manifest does not have.
_GENERATION_PARAMETERS = ("records", "key", "writer")
# Largest difference, between two platforms, of the share of records with a frequent prefix: the
# average difference of two fitted tables (``refit``), in total variation.
_OMEGA_TOLERANCE = 0.02
_OTHER_PLATFORM = (
    "another kind of computer fitted them, so their last digits, and what follows from these, "
    "cannot be compared"
)


def list_unknown_model(claims: ManifestClaims) -> list[str]:
    """List what an artefact cannot show about its model."""
    parameters = claims.parameters
    unknown = []
    if not claims.is_pairwise and parameters["graph"] == "learnt":
        unknown.append("whether the graph follows from the noisy entropies: they are not kept")
    if parameters.get("parameters") == "drawn":
        unknown.append(
            "whether the conditional tables follow from the noisy counts: they were drawn"
        )
    return unknown


def check_hashes(document: Mapping[str, Any], found: Mapping[str, Path]) -> str:
    """Check that the files found are those in the manifest, with the same SHA-256 hashes."""
    listed = document["files"]
    require(list(listed) == sorted(found), "the manifest lists other files than those found")
    changed = [name for name, path in found.items() if file_hash(path) != listed[name]]
    require(not changed, f"changed since the manifest was written: {', '.join(changed)}")
    return f"Files with the SHA-256 hash in the manifest: all {len(found)}."


def read_artefact(home: Path, claims: ManifestClaims) -> tuple[Artefact | None, list[Check]]:
    """Load and check an artefact; it is None if it cannot be read."""
    loaded: list[Artefact] = []

    def check_readable() -> str:
        loaded.append(load(home))
        for name, content in loaded[0].files().items():
            same = (home / name).read_bytes() == content
            require(same, f"{name} is not in the exact form that deniable writes")
        return "It is readable, and writing it again gives identical bytes."

    checks = [run_check("artefact", check_readable)]
    if claims.subject == "release":
        checks.append(run_check("artefact's manifest", lambda: _check_manifests(home, claims)))
    if not loaded:
        return None, checks
    checks.append(run_check("model", lambda: _check_model(loaded[0], claims)))
    checks.append(run_check("kept prefixes", lambda: _check_prefixes(loaded[0], claims)))
    return loaded[0], checks


def _check_manifests(home: Path, claims: ManifestClaims) -> str:
    """Compare the artefact's manifest with the release's, except for files and generation."""
    inner = read_json(home / MANIFEST_FILE)
    raw = (home / MANIFEST_FILE).read_bytes()
    require(encode_json(inner) == raw, "it is not in the exact form that deniable writes")
    check_hashes(inner, {name: home / name for name in ARTEFACT_FILES})
    outer = dict(claims.document)
    outer["parameters"] = {
        name: value
        for name, value in outer["parameters"].items()
        if name not in _GENERATION_PARAMETERS
    }
    outer["files"] = inner["files"]
    require(add_checksum(inner) == inner, "its checksum does not match its content")
    require(add_checksum(inner) == add_checksum(outer), "it differs from the release's manifest")
    same = (home / "schema.toml").read_bytes() == (home.parent / "schema.toml").read_bytes()
    require(same, "the artefact's schema differs from the release's")
    return "The artefact's manifest matches the release's."


def _check_model(artefact: Artefact, claims: ManifestClaims) -> str | Inexact:
    """Check ω and the graph against the parameters, and the tables against the noisy counts."""
    parameters, network = claims.parameters, artefact.network
    same = parameters["omega"] == [artefact.omega]
    require(same, "ω in the artefact differs from the manifest")
    if parameters["graph"] == "learnt" and not claims.is_pairwise:
        costs = [cost(parents, network.attributes) for parents in network.graph.parents]
        require(max(costs) <= parameters["max_cost"], "an attribute's parents exceed max_cost")
    if isinstance(artefact.evidence, PairwiseMeasurements):
        return _check_fit(artefact, artefact.evidence, claims)
    _require_chosen_omega(artefact, network, claims)
    if parameters["parameters"] == "drawn":
        return "The graph is valid; the tables were drawn at random and cannot be recomputed."
    return _check_tables(artefact, artefact.evidence, claims)


def _require_chosen_omega(
    artefact: Artefact, network: Network, claims: ManifestClaims, *, tolerance: float = 0.0
) -> None:
    """Require the ω that is chosen automatically, if it was, by model and noisy number of seeds.

    Args:
        artefact: The artefact.
        network: The model as it was before there were kept prefixes.
        claims: The manifest's claims.
        tolerance: The largest difference of a share of records, if another platform fitted it.
    """
    if claims.parameters.get("omega_requested") != "auto":
        return
    kept = artefact.histogram
    chosen = [
        choose_omega(
            network,
            records=0 if kept is None else kept.records,
            threshold=claims.parameters.get("threshold", 1),
            min_shared=MIN_SHARED_FRACTION + difference,
            max_length=longest_listed([network.attributes[i].size for i in network.order]),
        )
        for difference in {-tolerance, tolerance}
    ]
    same = min(chosen) <= artefact.omega <= max(chosen)
    require(same, "ω is not the one that is chosen automatically for this model")


def _check_tables(
    artefact: Artefact, evidence: TableCounts, claims: ManifestClaims
) -> str | Inexact:
    """Recompute every conditional table from its noisy counts or sums, and compare."""
    network = artefact.network
    options = {name: claims.parameters[name] for name in ("estimator", "alpha")}
    here = not evidence.moments or is_this_platform(evidence.fitted_with)
    same = True
    learnt = tuple(attribute.model for attribute in network.attributes)
    sums = {i for i, model in enumerate(learnt) if model != "histogram"}
    require(set(evidence.moments) == sums, "noisy sums are missing or unexpected")
    for i, (table, noisy) in enumerate(zip(network.tables, evidence.tables, strict=True)):
        if isinstance(noisy, Moments):
            _require_moments_match(noisy, network.attributes[i], claims)
        again = estimate_table(noisy, network.attributes, network.graph, i, **options)
        require(isinstance(table, ConditionalTable), "a conditional table is missing")
        own = table.probabilities if isinstance(table, ConditionalTable) else np.empty(0)
        same &= compare_tables(again, own, exact=here or i not in sums)
    number = len(network.tables)
    return _describe_match(f"The graph is valid; all {number} tables follow", exact=same)


def _describe_match(what: str, *, exact: bool) -> str | Inexact:
    if exact:
        return f"{what} from their noisy counts, exactly."
    return Inexact(f"{what} from their noisy counts, but only nearly: {_OTHER_PLATFORM}.")


def _require_moments_match(moments: Moments, attribute: Attribute, claims: ManifestClaims) -> None:
    """Require that noisy sums have the schema's model, and the ledger's bound and noise."""
    require(moments.model == attribute.model, "noisy sums have another model than the schema")
    spends = {spend.what: spend for spend in claims.spends}
    kinds = (RECORDS_OF, SUMS_OF, SQUARES_OF)
    of_attribute = [spends[f"{kind}{attribute.name}"] for kind in kinds]
    same = moments.bound == of_attribute[1].sensitivity
    require(same, "noisy sums have another bound than in the ledger")
    known = tuple(noise_deviation(spend.law, spend.scale) for spend in of_attribute)
    require(moments.deviations == known, "noisy sums have other noise than in the ledger")


def _check_fit(
    artefact: Artefact, measured: PairwiseMeasurements, claims: ManifestClaims
) -> str | Inexact:
    """Check a pairwise model: the ledger's noise, and the network refitted to the noisy counts."""
    _require_ledger_noise(measured, claims)
    _require_layout_and_tables(measured, artefact.schema, claims)
    network, max_cost = artefact.network, claims.parameters["max_cost"]
    masks = artefact.schema.pair_masks
    prefixes = draw_prefix_pool(network, artefact.histogram, masks)
    exact = compare_fit(measured, network, max_cost=max_cost, prefixes=prefixes, pair_masks=masks)
    first, tolerance = network, 0.0
    if prefixes is not None:
        first = fit_network(measured, network.attributes, max_cost=max_cost, pair_masks=masks)
        tolerance = 0.0 if exact else _OMEGA_TOLERANCE
    _require_chosen_omega(artefact, first, claims, tolerance=tolerance)
    return _describe_match(f"Graph, order and all {len(network.tables)} tables follow", exact=exact)


def _require_ledger_noise(measured: PairwiseMeasurements, claims: ManifestClaims) -> None:
    """Require the noise that the ledger accounts for."""
    scales = {spend.what: spend.scale for spend in claims.spends}
    known = [scales[f"{VALUES_OF}{name}"] for name in claims.names]
    same = known == [(sigma,) for sigma in measured.value_sigmas]
    require(same, "values have other noise than in the ledger")
    if len(claims.names) > 1:
        same = scales[PAIR_SPENDS[1]] == (measured.table_sigma,)
        require(same, "pairs have other noise than in the ledger")


def _require_layout_and_tables(
    measured: PairwiseMeasurements, schema: Schema, claims: ManifestClaims
) -> None:
    """Require bins, groups, noise and a choice of pairs that follow from earlier noisy counts."""
    attributes, noise = schema.attributes, _ledger_noise(claims)
    known = claims.parameters.get("target", [])
    require(set(known) <= set(schema.names), "target names an unknown column")
    targets = [schema.names.index(name) for name in known]
    shares = value_distributions(attributes, measured.values, measured.value_sigmas)
    layout = choose_layout(attributes, shares, noise, records=measured.records, targets=targets)
    same = all(map(np.array_equal, layout.bins, measured.bins))
    same = same and all(map(np.array_equal, layout.groups, measured.groups))
    require(same, "bins or groups do not follow from the noisy values")
    is_exact = noise.interactions.name == "exact"
    sigmas = {} if is_exact else dict(layout.interaction_sigmas)
    same = sigmas == measured.interaction_sigmas
    require(same, "interactions have other noise than in the ledger")
    _require_three_way(measured, schema, noise, targets)
    weights = table_weights(measured, attributes, noise, targets=targets)
    same = apportion(count_paid_tables(measured, noise), weights) == measured.table_counts
    require(same, "the measured pairs do not follow from the interactions")


def _require_three_way(
    measured: PairwiseMeasurements, schema: Schema, noise: PairNoise, targets: Sequence[int]
) -> None:
    """Require three-way interactions if noisy counts call for them, with their groups and noise."""
    layout = three_way_layout(schema.attributes, measured, noise, targets=targets)
    found = measured.three_way
    same = (layout is None) == (found is None)
    require(same, "whether there are three-way interactions does not follow from the noisy values")
    if layout is not None and found is not None:
        same = all(map(np.array_equal, layout.groups, found.groups))
        require(same, "groups of triples do not follow from the noisy values")
        same = dict(layout.sigmas) == found.sigmas
        require(same, "three-way interactions have other noise than in the ledger")


def _ledger_noise(claims: ManifestClaims) -> PairNoise:
    """The noise of the pairwise model, as the ledger states it."""
    laws = {
        spend.what: rounded_gaussian(*spend.scale) if spend.scale else exact()
        for spend in claims.spends
        if spend.part != "seeds"
    }
    reserved = claims.reserved_tables if THREE_WAY_SPEND in laws else 0
    return PairNoise(
        values=tuple(laws[f"{VALUES_OF}{name}"] for name in claims.names),
        interactions=laws.get(PAIR_SPENDS[0], exact()),
        tables=laws.get(PAIR_SPENDS[1], exact()),
        table_count=claims.pair_stages.get(PAIR_SPENDS[1], 0) + reserved,
        three_way=laws.get(THREE_WAY_SPEND, exact()),
        reserved_count=reserved,
    )


def _check_prefixes(artefact: Artefact, claims: ManifestClaims) -> str:
    """Check the kept prefixes: sorted, of the right total, counts at the threshold or above."""
    kept, number = artefact.histogram, 0
    require((kept is not None) == claims.has_seed_histogram, "unexpected prefix length")
    if kept is not None:
        same = claims.copies_prefixes == kept.is_copied
        require(same, "the manifest says otherwise about whether any prefix was kept")
        _require_valid_prefixes(kept, artefact, claims)
        number = len(kept.counts)
    return f"Kept prefixes that are sorted, with noisy counts of at least k + r: all {number:,}."


def _require_valid_prefixes(kept: KeptPrefixes, artefact: Artefact, claims: ManifestClaims) -> None:
    if isinstance(artefact.evidence, PairwiseMeasurements):
        same = kept.records == round(artefact.evidence.records)
        require(same, "the noisy number of seeds does not follow from the noisy values")
    low = (kept.counts < claims.parameters["threshold"]).any()
    require(not low, "a kept prefix has a noisy count below k + r")
    ascending = all(one < two for one, two in pairwise(kept.prefixes.tolist()))
    require(ascending, "prefixes are duplicated or not sorted")
