"""Learn a model from the parts of the data, with noise: the default, or the paper's."""

from collections.abc import Mapping, Sequence
from functools import partial

from deniable.arrays import Codes
from deniable.counting.contingency import CountQueries
from deniable.counting.local import count
from deniable.model.learnt_model import LearntModel
from deniable.model.pairwise.denoise import table_weights
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import measure_pairwise, measure_tables, with_bins
from deniable.pipeline.learn_paper_model import learn_paper_model
from deniable.pipeline.run_plan import Run
from deniable.schema.attribute import Attribute
from deniable.workers import count_cores


def learn_model(parts: Mapping[str, Codes], run: Run) -> LearntModel:
    """Learn the model of the plan: the default, or the paper's graph and tables.

    The default counts single columns in D_T and pairs of columns in D_P, with noise, and fits a
    network to the noisy counts.

    Args:
        parts: The rows of D_T ("structure"), D_P ("parameters") and D_S ("seeds"). Confidential.
        run: The run: its schema, options, plan and source of noise.
    """
    laws, attributes = run.plan.privacy.pairs, run.schema.attributes
    if laws is None:
        return learn_paper_model(parts, run)
    workers = run.config.workers or count_cores()
    rng = run.randomness.at("noise")
    count_values = partial(count, attributes, parts["structure"], workers=workers)
    targets = [run.schema.names.index(name) for name in run.config.target or ()]

    def count_pairs(grouped: Sequence[Attribute]) -> CountQueries:
        return partial(count, grouped, parts["parameters"], workers=workers)

    measured, spends = measure_pairwise(
        rng,
        count_values,
        count_pairs,
        attributes,
        laws,
        ratio=run.plan.ratio("parameters", "structure"),
        targets=targets,
    )
    if laws.table_count:
        weights = table_weights(measured, attributes, laws, targets=targets)
        count_bins = count_pairs(with_bins(attributes, measured.bins))
        measured, more = measure_tables(rng, count_bins, measured, weights, laws)
        spends += more
    return LearntModel(
        network=fit_network(measured, attributes, max_cost=run.config.max_configurations),
        evidence=measured,
        seeds=round(measured.records * run.plan.ratio("seeds", "structure")),
        spends=tuple(spends),
    )
