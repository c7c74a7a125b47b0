"""From parts of the data to a model, with noise: structure, order, parameters, what to keep."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from deniable.arrays import Codes, Counts
from deniable.config import Config
from deniable.data.schema import Schema
from deniable.engine.local import count
from deniable.errors import ConfigError
from deniable.model.cells import Count
from deniable.model.correlation import (
    StructureNoise,
    learn_correlations,
    learn_correlations_of_paper,
)
from deniable.model.graph import Graph, check_order, drawing_order, learn_graph
from deniable.model.network import ConditionalTable, Network
from deniable.model.parameters import (
    learn_counts,
    posterior_draw,
    posterior_mean,
    posterior_weights,
)
from deniable.privacy.ledger import Spend
from deniable.randomness import Randomness, Rng
from deniable.release.omega import choose_omega
from deniable.spending import RunPlan
from deniable.workers import all_cores


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Who depends on whom, in which order attributes are drawn, and what it cost to learn.

    Attributes:
        graph: P_G of every attribute.
        order: σ.
        records: The noisy number of records, where it was paid for.
        spends: The bill.
    """

    graph: Graph
    order: tuple[int, ...]
    records: int | None
    spends: tuple[Spend, ...]


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """A model with noise, before anything is done with seeds.

    Attributes:
        network: The distribution.
        counts: The noisy counts it was estimated from.
        omegas: How many attributes are drawn, one of these for each record.
        seeds: The noisy number of seeds.
        spends: The bill.
    """

    network: Network
    counts: tuple[Counts, ...] = field(repr=False)
    omegas: tuple[int, ...]
    seeds: int
    spends: tuple[Spend, ...]


def learn_model(
    parts: Mapping[str, Codes], schema: Schema, config: Config, run: RunPlan, noise: Randomness
) -> Learnt:
    """Learn structure from D_T, then parameters from D_P (Sec. 3.3 and 3.4)."""
    workers = config.workers or all_cores()
    attributes, rng = schema.attributes, noise.at("noise")
    count_t = partial(count, attributes, parts["structure"], workers=workers)
    count_p = partial(count, attributes, parts["parameters"], workers=workers)

    structure = learn_structure(rng, count_t, schema, config, run)
    counts, spent = learn_counts(rng, count_p, attributes, structure.graph, run.noise.counts)
    tables = estimate_tables(counts, config, noise.at("parameters"))
    network = Network(attributes, structure.graph, structure.order, tables)

    seeds = _number_of_seeds(structure, counts, run)
    threshold = config.k + (run.noise.seeds.r if run.noise.seeds is not None else 0)
    omegas = run.omegas or (choose_omega(network, records=seeds, threshold=threshold),)
    return Learnt(
        network=network,
        counts=tuple(counts),
        omegas=omegas,
        seeds=seeds,
        spends=(*structure.spends, *spent),
    )


def learn_structure(
    rng: Rng, count_t: Count, schema: Schema, config: Config, run: RunPlan
) -> Structure:
    """Return the graph and σ: learnt from noisy entropies, or as the user gave them."""
    attributes = schema.attributes
    if config.graph is not None:
        graph = Graph.from_names(schema.names, config.graph)
        # Nothing was paid for, so the order follows from public sizes.
        order = _given_order(config, schema, graph) or drawing_order(
            graph, [attribute.size for attribute in attributes]
        )
        return Structure(graph=graph, order=order, records=None, spends=())
    plan = run.noise
    if plan.paper is not None:
        correlations, records, spends = learn_correlations_of_paper(
            rng, count_t, attributes, plan.paper.structure
        )
    else:
        noise = StructureNoise(scale=plan.scale, entropy=plan.entropy, records=plan.records)
        correlations, records, spends = learn_correlations(rng, count_t, attributes, noise)
    graph = learn_graph(correlations, attributes, max_cost=config.max_cost)
    order = _given_order(config, schema, graph) or drawing_order(
        graph, correlations.single.tolist()
    )
    return Structure(graph=graph, order=order, records=records, spends=tuple(spends))


def _given_order(config: Config, schema: Schema, graph: Graph) -> tuple[int, ...] | None:
    if config.order is None:
        return None
    number = {name: i for i, name in enumerate(schema.names)}
    unknown = [name for name in config.order if name not in number]
    if unknown:
        raise ConfigError(f'the order names "{unknown[0]}", which the schema does not describe')
    return check_order(graph, [number[name] for name in config.order])


def estimate_tables(counts: list[Counts], config: Config, rng: Rng) -> tuple[ConditionalTable, ...]:
    """Return the conditional tables that the noisy counts give: post-processing."""
    weights = [
        posterior_weights(table, estimator=config.estimator, alpha=config.alpha) for table in counts
    ]
    if config.parameters == "drawn":
        return tuple(ConditionalTable(posterior_draw(table, rng)) for table in weights)
    return tuple(ConditionalTable(posterior_mean(table)) for table in weights)


def _number_of_seeds(structure: Structure, counts: list[Counts], run: RunPlan) -> int:
    """Return the noisy number of seeds, from numbers that were paid for (guarantee.md, Theorem 7).

    The noisy number of records, or the noisy total of the table with the fewest cells.
    """
    if structure.records is not None:
        known, part = structure.records, "structure"
    else:
        known, part = int(min(counts, key=lambda table: table.size).sum()), "parameters"
    if run.fractions is None:
        return known
    shares = {str(name): share for name, share in run.fractions.items()}
    return round(known * shares.get("seeds", shares[part]) / shares[part])
