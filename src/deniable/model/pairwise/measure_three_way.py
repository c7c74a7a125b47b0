"""Measure noisy three-way interactions, if the noisy number of records says that they are clear."""

from collections.abc import Sequence
from dataclasses import replace

from deniable.model.pairwise.measure import (
    CountBinned,
    PairwiseMeasurements,
    measure_interactions,
    with_bins,
)
from deniable.model.pairwise.one_way import value_distributions
from deniable.model.pairwise.three_way import ThreeWay, ThreeWayLayout, choose_three_way
from deniable.privacy.ledger import Spend
from deniable.privacy.pairwise_budget import PairNoise, three_way_spend
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute


def measure_three_way(
    rng: Rng,
    count_grouped: CountBinned,
    attributes: Sequence[Attribute],
    measured: PairwiseMeasurements,
    noise: PairNoise,
    *,
    targets: Sequence[int] = (),
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure the three-way interactions of all triples, or none; return all, and the spend.

    Args:
        rng: Source of the noise.
        count_grouped: Counts records of the part ``parameters``.
        attributes: The domain of each column.
        measured: What was measured before.
        noise: The noise of each stage.
        targets: Columns whose triples are measured more precisely. Public.

    Privacy:
        Neighbours: add or remove one record, which moves the interactions of a triple as Lemma 11
            states.
        Covers: all noisy numbers, and whether there are any, which noisy counts decide. If there
            are none, the entry pays for further two-way tables (``measure_tables``, Theorem 13).
        Does not cover: the domains, which must be public.
    """
    if not noise.reserved_count:
        return measured, []
    spends = [three_way_spend(len(attributes), noise.three_way)]
    layout = three_way_layout(attributes, measured, noise, targets=targets)
    if layout is None:
        return measured, spends
    grouped = [own[of] for own, of in zip(layout.groups, measured.bins, strict=True)]
    count = count_grouped(with_bins(attributes, grouped))
    interactions = measure_interactions(rng, count, layout.sigmas, what="triples")
    three_way = ThreeWay(
        groups=layout.groups, interactions=interactions, sigmas=dict(layout.sigmas)
    )
    return replace(measured, three_way=three_way), spends


def three_way_layout(
    attributes: Sequence[Attribute],
    measured: PairwiseMeasurements,
    noise: PairNoise,
    *,
    targets: Sequence[int],
) -> ThreeWayLayout | None:
    """Choose the groups between which three-way interactions are measured. Post-processing."""
    shares = value_distributions(attributes, measured.values, measured.value_sigmas)
    records = measured.ratio * measured.records
    return choose_three_way(
        attributes, measured.bins, shares, noise, records=records, targets=targets
    )
