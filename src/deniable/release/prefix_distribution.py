"""Combine kept prefixes with the model: joint frequencies of seeds, two-way tables of the model.

Kept prefixes have joint frequencies of several attributes, which two-way tables do not determine.
But rare prefixes are missing, and in a two-way table the noise of many prefixes adds up: there the
model is more accurate. So records draw their prefix from a combined distribution: the noisy counts
where a prefix was kept, the model elsewhere, adjusted to have the model's two-way tables (iterative
proportional fitting).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Indices, Reals
from deniable.model.alias_sampling import random_permutation, stratified_words
from deniable.model.bayesian_network import Network, empty_codes
from deniable.model.guided_search import GuidedSearch
from deniable.model.pairwise.record_pool import pool_records
from deniable.randomness import Keyed, Rng
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.pair_masks import PairMasks, allowed_codes, masked_with

# Adjustment ends when no two-way table is further off than this (total variation), or after this
# many rounds.
_TOLERANCE = 1e-6
_MAX_ROUNDS = 30
# Below it a probability counts as 0, so that no quotient overflows.
_MIN_PROBABILITY = 1e-200
# Prefixes that were not kept have at least this multiple of the model's probability: noisy counts
# may sum to more than the noisy number of seeds.
_MIN_REST = 0.01
# Probabilities are integers in units of 2^-40.
_WEIGHT_UNITS = 2.0**40
# Later attributes are fitted again if the prefixes differ from the model's by at least this total
# variation, except in tables of more attributes than this: they take long, and gain little.
_MIN_DISTANCE = 0.02
_MAX_FITTED_ATTRIBUTES = 60
# Prefixes that they are fitted to are drawn with a public key: a function of the artefact.
_POOL_KEY = 4


@dataclass(frozen=True, kw_only=True)
class PrefixDistribution:
    """Distribution of the first attributes of a record, in the order σ.

    Attributes:
        prefixes: The possible prefixes, one row each, ascending.
        weights: Their probabilities as positive integers, up to a factor.
        distance: Total variation distance from the model: what pairs leave unexplained.
    """

    prefixes: Codes = field(repr=False)
    weights: Counts = field(repr=False)
    distance: float

    @property
    def length(self) -> int:
        """Number of attributes in a prefix."""
        return int(self.prefixes.shape[1])

    @cached_property
    def _search(self) -> GuidedSearch:
        return GuidedSearch.of(np.cumsum(self.weights))

    def draw(self, records: int, rng: Rng, *, stratified: bool = False) -> Codes:
        """Draw a prefix for each record.

        With ``stratified``, frequencies match the weights more closely than independent draws do.
        """
        total = int(self._search.ends[-1])
        if stratified:
            one_stratum = np.zeros(records, dtype=np.intp)
            words = stratified_words(one_stratum, random_permutation(records, rng), rng)
            drawn = (words * (total * 2.0**-32)).astype(np.int64)
        else:
            drawn = rng.integers(total, records)
        place = self._search.find(drawn)
        # Twenty times as fast as brackets.
        found: Codes = self.prefixes.take(place, axis=0)
        return found


def combine_prefixes(
    network: Network, kept: KeptPrefixes, pair_masks: PairMasks, *, adjust: bool = True
) -> PrefixDistribution | None:
    """Combine kept prefixes with the model.

    The result is the same on every computer: sums, products and quotients in a fixed order.

    Args:
        network: The model.
        kept: The kept prefixes, of a length that can be listed.
        pair_masks: Combinations of two values that the constraints allow.
        adjust: Whether the model was fitted to two-way tables, so that it knows pairs better than
            the noisy counts do.

    Returns:
        The distribution; None if no prefix was kept, or if the constraints exclude all.

    Privacy:
        Covers: reads the noisy model and noisy counts only, so it costs nothing. A prefix that
            was not kept is as frequent as the model and the noisy counts of the others make it.
    """
    attributes = network.order[: kept.length]
    sizes = [network.attributes[i].size for i in attributes]
    if not len(kept.prefixes):
        return None
    grid, model = _model_probabilities(network, attributes, pair_masks)
    held = np.ravel_multi_index(tuple(kept.prefixes.T.astype(np.intp)), sizes)
    prefixes = grid[:, list(attributes)]
    combined = _mix(model, held, kept)
    if adjust:
        combined = _adjust_pairs(combined, model, prefixes, sizes)
    weights = np.rint(combined * _WEIGHT_UNITS).astype(np.int64)
    listed = np.flatnonzero(weights)
    if not len(listed):
        return None
    return PrefixDistribution(
        prefixes=prefixes[listed],
        weights=weights[listed],
        distance=math.fsum(np.abs(combined - model)) / 2,
    )


def draw_prefix_pool(
    network: Network, kept: KeptPrefixes | None, pair_masks: PairMasks
) -> Codes | None:
    """Draw a pool of prefixes, to which later attributes are fitted.

    Drawn with a public key. None if another fit is not worth it: the prefixes are nearly the
    model's, or there are many attributes.
    """
    m = len(network.order)
    if kept is None or m > _MAX_FITTED_ATTRIBUTES:
        return None
    combined = combine_prefixes(network, kept, pair_masks)
    if combined is None or combined.distance < _MIN_DISTANCE:
        return None
    return combined.draw(pool_records(m), Keyed(_POOL_KEY).at("parameters"), stratified=True)


def _model_probabilities(
    network: Network, attributes: Sequence[int], pair_masks: PairMasks
) -> tuple[Codes, Reals]:
    """List all prefixes, ascending, as records; compute their probabilities under the model.

    As records are drawn: given its earlier values, a value has the model's distribution among
    those that the pair masks allow.
    """
    codes, probability = empty_codes(1, network.attributes), np.ones(1)
    for position, i in enumerate(attributes):
        size = network.attributes[i].size
        masked = masked_with(i, attributes[:position], pair_masks)
        allowed = allowed_codes(codes, i, masked, pair_masks) if masked else None
        distribution = network.distribution(codes, i, allowed)
        probability = (probability[:, None] * distribution).ravel()
        codes = np.asfortranarray(np.repeat(codes, size, axis=0))
        codes[:, i] = np.tile(np.arange(size, dtype=CODE), len(probability) // size)
    return codes, probability


def _mix(model: Reals, held: Indices, kept: KeptPrefixes) -> Reals:
    """Give kept prefixes their noisy shares, and the others the rest in the model's proportions."""
    counted = int(kept.counts.sum())
    mixed = model.copy()
    mixed[held] = 0.0
    model_rest = math.fsum(mixed)
    if model_rest > 0:
        rest = 1 - counted / max(kept.records, counted)
        mixed *= max(rest / model_rest, _MIN_REST)
    mixed[held] = kept.counts / max(kept.records, counted)
    return mixed


def _adjust_pairs(mixed: Reals, model: Reals, prefixes: Codes, sizes: Sequence[int]) -> Reals:
    """Adjust a distribution of prefixes to the model's two-way tables; of one attribute, one-way.

    Iterative proportional fitting: the nearest such distribution, in relative entropy.
    """
    divided = [at for at, size in enumerate(sizes) if size > 1]
    tables = []
    for pair in combinations(divided, min(2, len(divided))) if divided else ():
        cells = np.ravel_multi_index(
            tuple(prefixes[:, at].astype(np.intp) for at in pair), [sizes[at] for at in pair]
        )
        tables.append((cells, np.bincount(cells, model)))
    for _ in range(_MAX_ROUNDS):
        furthest = 0.0
        for cells, target in tables:
            found = np.bincount(cells, mixed)
            furthest = max(furthest, math.fsum(np.abs(found - target)) / 2)
            factor = np.divide(
                target, found, out=np.zeros_like(found), where=found > _MIN_PROBABILITY
            )
            mixed = mixed * factor[cells]
        if furthest <= _TOLERANCE:
            break
    return mixed
