"""Small random worlds for Hypothesis: schemas, tables, graphs with their orders, networks.

A ``World`` holds the same model twice: as the paper writes it (``definitions.Model``, exact
fractions) and as the package holds it (``Network``, arrays of floats).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import definitions
from deniable.arrays import CODE, Codes
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network
from deniable.model.effect_tables import JointEffect
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional, invert_weights
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.schema.attribute import Attribute

# Same examples in every run: a failure can be repeated. No deadline: a busy machine is no fault.
property_test = settings(deadline=None, derandomize=True, max_examples=50, database=None)

# Exact values of γ: some that meet probabilities of a model exactly, some that hardly can.
gammas = st.sampled_from(
    [Fraction(g) for g in ("11/10", "13/10", "3/2", "2", "29/10", "4", "17/3", "53")]
)


@dataclass(frozen=True)
class World:
    """A schema, a table, and a model of it; some attributes' conditionals may be log-linear."""

    attributes: tuple[Attribute, ...]
    table: definitions.Table
    model: definitions.Model
    loglinear: Mapping[int, LogLinearConditional] = field(default_factory=dict)

    @property
    def m(self) -> int:
        return len(self.attributes)

    @cached_property
    def codes(self) -> Codes:
        """The table as the package holds it."""
        return codes_of(self.table, self.m)

    @cached_property
    def universe(self) -> Codes:
        """Every possible record."""
        return codes_of(self.model.universe(), self.m)

    @cached_property
    def network(self) -> Network:
        """The model as the package holds it."""
        return network_of(self.attributes, self.model, self.loglinear)


def codes_of(table: definitions.Table, m: int) -> Codes:
    """Return records as the package holds them: columns contiguous."""
    return np.asfortranarray(np.array(table, dtype=CODE).reshape(len(table), m))


def records_of(codes: Codes) -> definitions.Table:
    """Return records as the definitions hold them."""
    return [tuple(row) for row in codes.tolist()]


def count_records(codes: Codes) -> Counter[definitions.Record]:
    """Count how often each record occurs: as a counter of ``records_of``, for many of few."""
    if not len(codes):
        return Counter()
    shape = tuple((codes.max(axis=0) + 1).tolist())
    counts = np.bincount(np.ravel_multi_index(tuple(codes.T), shape))
    present = np.flatnonzero(counts)
    records = np.stack(np.unravel_index(present, shape), axis=1)
    return Counter(dict(zip(records_of(records), counts[present].tolist(), strict=True)))


def network_of(
    attributes: Sequence[Attribute],
    model: definitions.Model,
    loglinear: Mapping[int, LogLinearConditional] | None = None,
) -> Network:
    """Return the network; rows are configurations, the last parent's bucket runs fastest."""
    tables: list[Conditional] = []
    for i, conditional in enumerate(model.tables):
        if i in (loglinear or {}):
            tables.append((loglinear or {})[i])
            continue
        configurations = product(*[range(attributes[j].buckets) for j in model.parents[i]])
        rows = [[float(p) for p in conditional[c]] for c in configurations]
        tables.append(ConditionalTable(np.array(rows)))
    return Network(tuple(attributes), Graph(model.parents), model.order, tuple(tables))


def plain_attribute(name: str, size: int) -> Attribute:
    """Return a categorical attribute without buckets."""
    return Attribute(name=name, kind="categorical", values=[f"{name}{v}" for v in range(size)])


@st.composite
def attributes(draw: st.DrawFn, *, name: str = "x", most: int = 4) -> Attribute:
    """An attribute of a few values: text or numbers, with buckets or not, missing or not."""
    size = draw(st.integers(1, most))
    missing = ("?",) if draw(st.booleans()) else ()
    if draw(st.booleans()):
        attribute = Attribute(name=name, kind="integer", values=range(5, 5 + size), missing=missing)
        return attribute.with_bucket_width(draw(st.integers(1, size)))
    values = [f"{name}{v}" for v in range(size)]
    attribute = Attribute(name=name, kind="categorical", values=values, missing=missing)
    labels = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
    groups = [[v for v, at in zip(values, labels, strict=True) if at == g] for g in set(labels)]
    return attribute.with_bucket_groups(groups) if draw(st.booleans()) else attribute


@st.composite
def schemas(draw: st.DrawFn, *, least: int = 1, most: int = 4) -> tuple[Attribute, ...]:
    """A few attributes; fewer values each where there are many of them."""
    m = draw(st.integers(least, most))
    return tuple(draw(attributes(name=f"x{i}", most=4 if m <= 3 else 3)) for i in range(m))


@st.composite
def tables(
    draw: st.DrawFn, schema: Sequence[Attribute], *, least: int = 0, most: int = 16
) -> definitions.Table:
    """A table of the schema, missing cells included; some records come several times."""
    record = st.tuples(*[st.integers(0, attribute.size - 1) for attribute in schema])
    kinds = draw(st.lists(record, min_size=1, max_size=6))
    fewest = draw(st.integers(least, max(least, most // 2)))
    return draw(st.lists(st.sampled_from(kinds) | record, min_size=fewest, max_size=most))


@st.composite
def graphs(draw: st.DrawFn, m: int) -> tuple[definitions.Parents, tuple[int, ...]]:
    """A directed acyclic graph, and one of its linear extensions."""
    order = tuple(draw(st.permutations(range(m))))
    parents: list[tuple[int, ...]] = [()] * m
    for place, i in enumerate(order):
        before = st.sets(st.sampled_from(order[:place]), max_size=2) if place else st.just(set())
        parents[i] = tuple(sorted(draw(before)))
    return tuple(parents), order


@st.composite
def models(draw: st.DrawFn, schema: Sequence[Attribute], *, zeros: bool) -> definitions.Model:
    """A network over the schema with small rational probabilities; with zeros, if allowed."""
    parents, order = draw(graphs(len(schema)))
    conditionals = []
    for i, attribute in enumerate(schema):
        weight = st.integers(0 if zeros else 1, 4)
        weights = st.lists(weight, min_size=attribute.size, max_size=attribute.size).filter(any)
        configurations = product(*[range(schema[j].buckets) for j in parents[i]])
        conditional = {}
        for c in configurations:
            row = draw(weights)
            conditional[c] = [Fraction(w, sum(row)) for w in row]
        conditionals.append(conditional)
    return definitions.Model(
        sizes=tuple(attribute.size for attribute in schema),
        bucket_of=tuple(attribute.groups for attribute in schema),
        parents=parents,
        order=order,
        tables=tuple(conditionals),
    )


def draw_by_words(conditional, groups, words):
    """Draw from a log-linear distribution by its definition: integer weights, one word for the bin
    and one for the value within it. Samplers must draw the same."""
    weights = conditional.weights(groups, records=len(words))
    return conditional.draw_within(invert_weights(weights, words[:, 0]), words[:, 1])


@st.composite
def loglinear_conditionals(
    draw: st.DrawFn, *, values: int, groups: Sequence[int], zeros: bool = True
) -> LogLinearConditional:
    """A log-linear conditional; with zeros, some bins are too unlikely and some values empty."""
    bins = np.cumsum(
        [0, *draw(st.lists(st.integers(0, 1), min_size=values - 1, max_size=values - 1))]
    )
    number = int(bins[-1]) + 1
    unit = st.integers(-140_000, 140_000) if zeros else st.integers(-9_000, 9_000)
    row = st.lists(unit, min_size=number, max_size=number)
    effects = [draw(st.lists(row, min_size=size, max_size=size)) for size in groups]
    joint: tuple[JointEffect, ...] = ()
    if len(groups) > 1 and draw(st.booleans()):
        coarser = [np.arange(groups[0]), np.arange(groups[-1]) // 2]
        pairs = groups[0] * (int(coarser[1][-1]) + 1)
        added = np.array(draw(st.lists(row, min_size=pairs, max_size=pairs)), dtype=np.int32)
        joint = (JointEffect(0, len(groups) - 1, coarser[0], coarser[1], added),)
    within = np.zeros(values, dtype=np.int64)
    for own in range(number):
        inside = np.flatnonzero(bins == own)
        cut = st.integers(0 if zeros else 1, 2**31 // len(inside))
        within[inside[1:]] = [draw(cut) for _ in inside[1:]]
        within[inside[0]] = 2**32 - within[inside].sum()
    return LogLinearConditional(
        base=np.array(draw(row), dtype=np.int32),
        effects=tuple(np.array(effect, dtype=np.int32) for effect in effects),
        bins=bins,
        within=within,
        joint=joint,
    )


def _joint_row(effect: JointEffect, groups: tuple[int, ...]) -> list[int]:
    """Return what two parents together add, given the groups of all."""
    one = int(effect.first_groups[groups[effect.first]])
    two = int(effect.second_groups[groups[effect.second]])
    of_second = len(set(effect.second_groups.tolist()))
    added: list[int] = effect.effects[one * of_second + two].tolist()
    return added


def exact_rows(conditional: LogLinearConditional) -> definitions.Conditional:
    """Return the distribution given each configuration of the parents' groups, as fractions."""
    configurations = product(*[range(len(effect)) for effect in conditional.effects])
    return {
        c: definitions.loglinear_distribution(
            conditional.base.tolist(),
            [
                *(effect[g].tolist() for effect, g in zip(conditional.effects, c, strict=True)),
                *(_joint_row(each, c) for each in conditional.joint),
            ],
            conditional.bins.tolist(),
            conditional.within.tolist(),
        )
        for c in configurations
    }


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    least: int = 1,
    most: int = 4,
    records: int = 1,
    zeros: bool | None = None,
    loglinear: bool = True,
) -> World:
    """A schema, a model of it with or without impossible values, and a table of some records.

    With ``loglinear``, the conditionals of some attributes may be log-linear.
    """
    schema = draw(schemas(least=least, most=most))
    with_zeros = draw(st.booleans()) if zeros is None else zeros
    model = draw(models(schema, zeros=with_zeros))
    chosen = draw(st.sets(st.integers(0, len(schema) - 1))) if loglinear else set()
    conditionals = {}
    for i in chosen:
        groups = [schema[j].buckets for j in model.parents[i]]
        conditionals[i] = draw(
            loglinear_conditionals(values=schema[i].size, groups=groups, zeros=with_zeros)
        )
    exact = [
        exact_rows(conditionals[i]) if i in conditionals else table
        for i, table in enumerate(model.tables)
    ]
    model = replace(model, tables=tuple(exact))
    return World(schema, draw(tables(schema, least=records)), model, conditionals)


@st.composite
def omega_ranges(draw: st.DrawFn, m: int) -> tuple[int, ...]:
    """A non-empty ascending range of ω, 1 ≤ ω ≤ m."""
    first = draw(st.integers(1, m))
    return tuple(range(first, draw(st.integers(first, m)) + 1))


def small_world() -> tuple[Network, definitions.Model]:
    """Three attributes, the first bucketed; drawn in the order 2, 0, 1."""
    attributes = (
        Attribute(name="a", kind="integer", values=range(4)).with_bucket_width(2),
        plain_attribute("b", 2),
        plain_attribute("c", 3),
    )

    def row(*weights: int) -> list[Fraction]:
        return [Fraction(w, sum(weights)) for w in weights]

    model = definitions.Model(
        sizes=(4, 2, 3),
        bucket_of=tuple(a.groups for a in attributes),
        parents=((2,), (0, 2), ()),
        order=(2, 0, 1),
        tables=(
            {(0,): row(1, 2, 3, 4), (1,): row(4, 0, 1, 1), (2,): row(1, 1, 1, 1)},
            {(g, c): row(1 + g, 1 + c) for g in range(2) for c in range(3)},
            {(): row(2, 1, 1)},
        ),
    )
    return network_of(attributes, model), model


class Spy:
    """In place of ``add_noise``: records every exact number before it, and its spend."""

    def __init__(self) -> None:
        self.calls: list[tuple[Spend, np.ndarray]] = []

    def __call__(self, rng: Any, counts: Any, law: Any, **entry: Any) -> tuple[np.ndarray, Spend]:
        noisy, spend = add_noise(rng, counts, law, **entry)
        self.calls.append((spend, counts.ravel().copy()))
        return noisy, spend


# Constraints on the records of the small world


def constrained(records) -> np.ndarray:
    """a below 2 needs c = 0: neither all records nor few, and not decided by one attribute."""
    return (records[:, 0] >= 2) | (records[:, 2] == 0)


def is_possible(y) -> bool:
    return bool(constrained(codes_of([y], 3))[0])


def impossible(records) -> np.ndarray:
    return np.zeros(len(records), dtype=bool)
