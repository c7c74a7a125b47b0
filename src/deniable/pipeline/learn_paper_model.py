"""Learn the paper's model: a graph from noisy entropies, then its conditional tables (Sec. 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from deniable.arrays import Counts
from deniable.config import Config
from deniable.counting.contingency import CountQueries
from deniable.counting.rows import Rows
from deniable.errors import ConfigError
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph, check_order, drawing_order, learn_graph
from deniable.model.learnt_model import LearntModel
from deniable.model.paper.correlation import (
    StructureNoise,
    learn_correlations,
    learn_paper_correlations,
)
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import (
    Statistics,
    TableCounts,
    estimate_table,
    learn_counts,
    posterior_draw,
    posterior_weights,
)
from deniable.pipeline.run_plan import Run, RunPlan
from deniable.privacy.ledger import Spend
from deniable.randomness import Rng
from deniable.schema.schema import Schema


@dataclass(frozen=True, kw_only=True)
class LearntStructure:
    """The graph, the order of drawing, and the privacy costs of learning them.

    Attributes:
        graph: P_G of every attribute.
        order: σ.
        records: The noisy number of records, where it was measured.
        spends: The privacy costs.
    """

    graph: Graph
    order: tuple[int, ...]
    records: int | None
    spends: tuple[Spend, ...]


def learn_paper_model(parts: Mapping[str, Rows], run: Run) -> LearntModel:
    """Learn the structure from D_T, then the parameters from D_P."""
    attributes, law = run.schema.attributes, run.plan.privacy.counts
    rng = run.randomness.at("noise")
    count_t = partial(parts["structure"].count, attributes)
    count_p = partial(parts["parameters"].count, attributes)

    structure = learn_structure(rng, count_t, run)
    counts, spent = learn_counts(rng, count_p, attributes, structure.graph, law)
    tables = estimate_tables(counts, structure.graph, run)
    counted = [table.records if isinstance(table, Moments) else table for table in counts]
    return LearntModel(
        network=Network(attributes, structure.graph, structure.order, tables),
        evidence=TableCounts(tuple(counts)),
        seed_count=_estimate_seeds(structure, counted, run.plan),
        spends=(*structure.spends, *spent),
    )


def learn_structure(rng: Rng, count_t: CountQueries, run: Run) -> LearntStructure:
    """Learn the graph and σ from noisy entropies, or take those that the user gave."""
    schema, config, plan = run.schema, run.config, run.plan.privacy
    attributes = schema.attributes
    if config.graph is not None:
        graph = Graph.from_names(schema.names, config.graph)
        # Nothing was measured, so the order follows from public sizes.
        order = _given_order(config, schema, graph) or drawing_order(
            graph, [attribute.size for attribute in attributes]
        )
        return LearntStructure(graph=graph, order=order, records=None, spends=())
    if plan.paper is not None:
        correlations, records, spends = learn_paper_correlations(
            rng, count_t, attributes, plan.paper.structure
        )
    else:
        noise = StructureNoise(scale=plan.scale, entropy=plan.entropy, records=plan.records)
        correlations, records, spends = learn_correlations(rng, count_t, attributes, noise)
    graph = learn_graph(correlations, attributes, max_cost=config.max_configurations)
    order = _given_order(config, schema, graph) or drawing_order(
        graph, correlations.single.tolist()
    )
    return LearntStructure(graph=graph, order=order, records=records, spends=tuple(spends))


def _given_order(config: Config, schema: Schema, graph: Graph) -> tuple[int, ...] | None:
    if config.order is None:
        return None
    number = {name: i for i, name in enumerate(schema.names)}
    unknown = [name for name in config.order if name not in number]
    if unknown:
        raise ConfigError(f'the order names "{unknown[0]}", which the schema does not describe')
    return check_order(graph, [number[name] for name in config.order])


def estimate_tables(
    statistics: list[Statistics], graph: Graph, run: Run
) -> tuple[ConditionalTable, ...]:
    """Estimate the conditional tables from noisy counts and sums: post-processing."""
    config, attributes, rng = run.config, run.schema.attributes, run.randomness.at("parameters")
    estimator, alpha = str(config.chosen_estimator), config.alpha
    tables = []
    for i, noisy in enumerate(statistics):
        if config.parameters == "drawn" and not isinstance(noisy, Moments):
            weights = posterior_weights(noisy, estimator=estimator, alpha=alpha)
            tables.append(posterior_draw(weights, rng))
            continue
        tables.append(estimate_table(noisy, attributes, graph, i, estimator=estimator, alpha=alpha))
    return tuple(map(ConditionalTable, tables))


def _estimate_seeds(structure: LearntStructure, counts: list[Counts], plan: RunPlan) -> int:
    """Estimate the number of seeds from noisy numbers (guarantee.md, Theorem 7).

    The noisy number of records, or the noisy total of the table with the fewest cells.
    """
    if structure.records is not None:
        return round(structure.records * plan.ratio("seeds", "structure"))
    known = int(min(counts, key=lambda table: table.size).sum())
    return round(known * plan.ratio("seeds", "parameters"))
