"""Learn a model from the parts of the data, with noise: the default, or the paper's."""

from collections.abc import Mapping, Sequence
from functools import partial

from deniable.arrays import Codes
from deniable.counting.contingency import CountQueries
from deniable.counting.local import cache_counts, count
from deniable.model.learnt_model import LearntModel
from deniable.model.pairwise.denoise import dependence_scores
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import measure_pairwise, remeasure
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
    counters: list[CountQueries] = []

    def count_pairs(binned: Sequence[Attribute]) -> CountQueries:
        # The second measurement adds new noise to the same counts: they are counted once.
        counters.append(cache_counts(partial(count, binned, parts["parameters"], workers=workers)))
        return counters[-1]

    measured, spends = measure_pairwise(
        rng,
        count_values,
        count_pairs,
        attributes,
        laws,
        ratio=run.plan.ratio("parameters", "structure"),
    )
    if laws.remeasurements:
        scores = dependence_scores(measured, attributes)
        measured, more = remeasure(rng, counters[-1], measured, scores, laws)
        spends += more
    return LearntModel(
        network=fit_network(measured, attributes, max_cost=run.config.max_configurations),
        evidence=measured,
        seeds=round(measured.records * run.plan.ratio("seeds", "structure")),
        spends=tuple(spends),
    )
