"""Learn a model from the parts of the data, with noise: the default, or the paper's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from deniable.arrays import Codes
from deniable.counting.contingency import CountQueries
from deniable.counting.rows import Rows
from deniable.model.learnt_model import LearntModel
from deniable.model.pairwise.denoise import table_weights
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import (
    PairwiseMeasurements,
    measure_pairwise,
    measure_tables,
    measure_three_way,
    with_bins,
)
from deniable.pipeline.learn_paper_model import learn_paper_model
from deniable.pipeline.run_plan import Run
from deniable.privacy.ledger import Spend
from deniable.privacy.pairwise_budget import PairNoise
from deniable.schema.attribute import Attribute
from deniable.schema.pair_masks import NO_MASKS, PairMasks


def learn_model(parts: Mapping[str, Rows], run: Run) -> LearntModel:
    """Learn the model of the plan: the default, or the paper's graph and tables.

    The default counts single columns and pairs of columns in all rows, with noise, and fits a
    network to the noisy counts.

    Args:
        parts: The rows of D_T ("structure"), D_P ("parameters") and D_S ("seeds"). Confidential.
        run: The run: its schema, options, plan and source of noise.
    """
    laws = run.plan.privacy.pairs
    if laws is None:
        return learn_paper_model(parts, run)
    measured, spends = measure_counts(parts["parameters"], run, laws)
    attributes, max_cost = run.schema.attributes, run.config.max_configurations
    return LearntModel(
        network=fit_network(measured, attributes, max_cost=max_cost, pair_masks=_masks_of(run)),
        evidence=measured,
        seed_count=round(measured.records),
        spends=tuple(spends),
    )


def fit_to_prefixes(learnt: LearntModel, prefixes: Codes | None, run: Run) -> LearntModel:
    """Refit the attributes after the prefix, given the prefixes that released records will have.

    Before, they were fitted to prefixes drawn from the model itself. This is post-processing and
    costs nothing. Without prefixes, the model is returned as it is; so is the paper's, whose tables
    are counted and not fitted.
    """
    if prefixes is None or not isinstance(learnt.evidence, PairwiseMeasurements):
        return learnt
    network = fit_network(
        learnt.evidence,
        run.schema.attributes,
        max_cost=run.config.max_configurations,
        prefixes=prefixes,
        pair_masks=_masks_of(run),
    )
    return replace(learnt, network=network)


def _masks_of(run: Run) -> PairMasks:
    """The combinations of two values that records are drawn with, which a fit takes into account.

    Candidates that are tested are drawn without them: one that breaks a constraint fails.
    """
    return run.schema.pair_masks if run.plan.mode in ("one-shot", "seedless") else NO_MASKS


def measure_counts(
    rows: Rows, run: Run, laws: PairNoise
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure all noisy counts of the default model; later, only the seed histogram reads rows.

    Args:
        rows: The rows. Confidential.
        run: The run.
        laws: The noise of each stage.
    """
    attributes = run.schema.attributes
    rng = run.randomness.at("noise")
    targets = [run.schema.names.index(name) for name in run.config.target or ()]

    run.progress("count single columns", 0, 1)

    def count_pairs(grouped: Sequence[Attribute]) -> CountQueries:
        run.progress("count single columns", 1, 1)
        return partial(rows.count, grouped)

    measured, spends = measure_pairwise(
        rng, partial(rows.count, attributes), count_pairs, attributes, laws, targets=targets
    )
    run.progress("count pairs of columns", 1, 1)
    if laws.table_count:
        measured, more = measure_three_way(
            rng, count_pairs, attributes, measured, laws, targets=targets
        )
        spends += more
        weights = table_weights(measured, attributes, laws, targets=targets)
        count_bins = count_pairs(with_bins(attributes, measured.bins))
        measured, more = measure_tables(rng, count_bins, measured, weights, laws)
        spends += more
        run.progress("count pairs in detail", 1, 1)
    return measured, spends
