"""From parts of the data to a model, with noise: structure, order, parameters, what to keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from deniable.arrays import Codes, Counts
from deniable.config import Config
from deniable.data.attributes import Attribute
from deniable.data.schema import Schema
from deniable.engine.local import count, remember
from deniable.errors import ConfigError, InvariantError
from deniable.model.cells import Count
from deniable.model.correlation import (
    StructureNoise,
    learn_correlations,
    learn_correlations_of_paper,
)
from deniable.model.graph import Graph, check_order, drawing_order, learn_graph
from deniable.model.moments import Moments
from deniable.model.network import ConditionalTable, Network
from deniable.model.pairs import Measured, learn_pairs, look_again
from deniable.model.parameters import (
    Statistics,
    TableCounts,
    count_variance,
    estimate_table,
    learn_counts,
    posterior_draw,
    posterior_weights,
)
from deniable.model.shrinkage import strengths
from deniable.model.tables import fit_network
from deniable.privacy.ledger import Spend
from deniable.randomness import Randomness, Rng
from deniable.release.omega import choose_omega
from deniable.spending import RunPlan, settle
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
        evidence: The noisy counts it was estimated from.
        omegas: How many attributes are drawn, one of these for each record.
        seeds: The noisy number of seeds.
        spends: The bill.
    """

    network: Network
    evidence: TableCounts | Measured = field(repr=False)
    omegas: tuple[int, ...]
    seeds: int
    spends: tuple[Spend, ...]


def learn_model(
    parts: Mapping[str, Codes], schema: Schema, config: Config, run: RunPlan, noise: Randomness
) -> Learnt:
    """Learn a model: of values and pairs, or of a graph and its tables (Sec. 3.3 and 3.4)."""
    if run.noise.pairs is not None:
        model = _learn_from_pairs(parts, schema, config, run, noise)
    else:
        model = _learn_from_graph(parts, schema, config, run, noise)
    threshold = config.k + (run.noise.seeds.r if run.noise.seeds is not None else 0)
    if run.omegas:
        return replace(model, omegas=run.omegas)
    omega = choose_omega(model.network, records=model.seeds, threshold=threshold)
    return replace(model, omegas=(omega,))


def _learn_from_pairs(
    parts: Mapping[str, Codes], schema: Schema, config: Config, run: RunPlan, noise: Randomness
) -> Learnt:
    """Count values in D_T, then pairs in D_P; all else follows from those noisy counts."""
    laws = run.noise.pairs
    if laws is None:
        raise InvariantError("values and pairs have no noise: they were not planned")
    workers = config.workers or all_cores()
    rng = noise.at("noise")
    counters: list[Count] = []

    def count_pairs(binned: Sequence[Attribute]) -> Count:
        # Whoever looks again gets the same counts under new noise: they are counted once.
        counters.append(remember(partial(count, binned, parts["parameters"], workers=workers)))
        return counters[-1]

    measured, spends = learn_pairs(
        rng,
        partial(count, schema.attributes, parts["structure"], workers=workers),
        count_pairs,
        schema.attributes,
        laws,
        ratio=_ratio(run, "parameters", "structure"),
    )
    if laws.looks:
        weights = strengths(measured, schema.attributes)
        measured, more = look_again(rng, counters[-1], measured, weights, laws)
        spends += more
    return Learnt(
        network=fit_network(measured, schema.attributes, max_cost=config.most_configurations),
        evidence=measured,
        omegas=(),
        seeds=round(measured.records * _ratio(run, "seeds", "structure")),
        spends=tuple(spends),
    )


def _learn_from_graph(
    parts: Mapping[str, Codes], schema: Schema, config: Config, run: RunPlan, noise: Randomness
) -> Learnt:
    """Learn structure from D_T, then parameters from D_P: the paper's way."""
    config = settle(config, schema)
    workers = config.workers or all_cores()
    attributes, rng = schema.attributes, noise.at("noise")
    count_t = partial(count, attributes, parts["structure"], workers=workers)
    count_p = partial(count, attributes, parts["parameters"], workers=workers)

    structure = learn_structure(rng, count_t, schema, config, run)
    counts, spent = learn_counts(rng, count_p, attributes, structure.graph, run.noise.counts)
    tables = estimate_tables(
        counts,
        schema,
        structure.graph,
        config,
        noise.at("parameters"),
        variance=count_variance(run.noise.counts.name, dict(run.noise.counts.parameters)),
    )
    numbers = [table.records if isinstance(table, Moments) else table for table in counts]
    return Learnt(
        network=Network(attributes, structure.graph, structure.order, tables),
        evidence=TableCounts(tuple(counts)),
        omegas=(),
        seeds=_number_of_seeds(structure, numbers, run),
        spends=(*structure.spends, *spent),
    )


def _ratio(run: RunPlan, part: str, other: str) -> float:
    """Return how many records one part has for each of another, by public shares."""
    if run.fractions is None:
        return 1.0
    shares = {str(name): share for name, share in run.fractions.items()}
    return shares.get(part, shares[other]) / shares[other]


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
    graph = learn_graph(correlations, attributes, max_cost=config.most_configurations)
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


def estimate_tables(
    statistics: list[Statistics],
    schema: Schema,
    graph: Graph,
    config: Config,
    rng: Rng,
    *,
    variance: float,
) -> tuple[ConditionalTable, ...]:
    """Return the conditional tables that the noisy counts and sums give: post-processing."""
    estimator, alpha = str(config.chosen_estimator), config.alpha
    how = {"alpha": alpha, "variance": variance}
    tables = []
    for i, noisy in enumerate(statistics):
        if config.parameters == "drawn" and not isinstance(noisy, Moments):
            weights = posterior_weights(noisy, estimator=estimator, alpha=alpha)
            tables.append(posterior_draw(weights, rng))
            continue
        tables.append(
            estimate_table(noisy, schema.attributes, graph, i, estimator=estimator, **how)
        )
    return tuple(map(ConditionalTable, tables))


def _number_of_seeds(structure: Structure, counts: list[Counts], run: RunPlan) -> int:
    """Return the noisy number of seeds, from numbers that were paid for (guarantee.md, Theorem 7).

    The noisy number of records, or the noisy total of the table with the fewest cells.
    """
    if structure.records is not None:
        return round(structure.records * _ratio(run, "seeds", "structure"))
    known = int(min(counts, key=lambda table: table.size).sum())
    return round(known * _ratio(run, "seeds", "parameters"))
