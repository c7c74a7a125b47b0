"""The learnt distribution over records: a graph, an order, a conditional table an attribute.

Pr{x_1, …, x_m} = Π_i Pr{x_i | bkt(x_j), j ∈ P_G(i)}        (Eq. 2 and 7, ``eq:gm:model``)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Indices, Reals
from deniable.data.attributes import Attribute
from deniable.errors import InvariantError
from deniable.model.cells import Axis, Query
from deniable.model.draws import AliasTables, alias_tables, shuffled, sort_by, spread_evenly
from deniable.model.filling import Bundle, Filling, Steps, make_filling
from deniable.model.graph import Graph, check_order
from deniable.randomness import Rng
from deniable.workers import in_order

# How many rows times values are held at once when the best of all values is looked for.
_AT_ONCE = 2**22

# How values are drawn: each apart; shared out evenly among records that draw from one distribution;
# or each apart and as finely as floats go.
Manner = Literal["apart", "evenly", "finely"]


# Attributes are drawn together while so many combinations of them, given so many of those before,
# fit one table that stays in the cache.
_MOST_TOGETHER = 2**12
_MOST_CELLS = 2**16


@dataclass(frozen=True)
class ConditionalTable:
    """Pr{x_i = l | configuration c of the parents}: one row a configuration, one column a value."""

    probabilities: Reals

    def __post_init__(self) -> None:
        p = self.probabilities
        if p.ndim != 2 or not (p >= 0).all() or not np.allclose(p.sum(axis=1), 1, atol=1e-9):
            raise InvariantError("a conditional table holds one distribution a row")

    @cached_property
    def alias(self) -> AliasTables:
        """The rows, prepared for drawing."""
        return alias_tables(self.probabilities)

    @cached_property
    def logarithms(self) -> Reals:
        """The natural logarithms; minus infinity where a value cannot occur."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)


@dataclass(frozen=True)
class Network:
    """A Bayesian network over encoded records.

    Attributes:
        attributes: What each column of the codes may hold.
        graph: Who depends on whom.
        order: σ, a linear extension of the graph: attributes in the order they are drawn.
        tables: The conditional table of each attribute, in the schema's order.
        groups: For each attribute, the group of every code of each of its parents. Left out, a
            parent enters by its buckets.
    """

    attributes: tuple[Attribute, ...]
    graph: Graph
    order: tuple[int, ...]
    tables: tuple[ConditionalTable, ...] = field(repr=False)
    groups: tuple[tuple[Indices, ...], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_order(self.graph, self.order)
        if not len(self.attributes) == len(self.tables) == len(self.order):
            raise InvariantError("a network has one table an attribute")
        if not self.groups:
            own = [tuple(self.attributes[j].bucket_of for j in p) for p in self.graph.parents]
            object.__setattr__(self, "groups", tuple(own))
        self._require_groups()
        for i, table in enumerate(self.tables):
            expected = (self._configurations(i), self.attributes[i].size)
            if table.probabilities.shape != expected:
                raise InvariantError(f"table {i} has another shape than its graph gives it")

    def _require_groups(self) -> None:
        for i, parents in enumerate(self.graph.parents):
            sizes = [len(groups) for groups in self.groups[i]]
            below = any(int(groups.min()) < 0 for groups in self.groups[i])
            if below or sizes != [self.attributes[j].size for j in parents]:
                raise InvariantError(f"table {i} groups other codes than its parents have")

    def _configurations(self, i: int) -> int:
        return int(np.prod([groups.max() + 1 for groups in self.groups[i]], dtype=int))

    @cached_property
    def _strides(self) -> tuple[tuple[tuple[int, Indices], ...], ...]:
        """For each attribute, its parents and what each of their codes adds to a configuration."""
        steps = []
        for parents, groups in zip(self.graph.parents, self.groups, strict=True):
            sizes = [int(own.max()) + 1 for own in groups]
            widths = [int(np.prod(sizes[at + 1 :], dtype=int)) for at in range(len(sizes))]
            added = [np.multiply(*pair, dtype=np.intp) for pair in zip(groups, widths, strict=True)]
            steps.append(tuple(zip(parents, added, strict=True)))
        return tuple(steps)

    def configuration(self, codes: Codes, i: int) -> Counts:
        """Return, for each record, the configuration of the parents of attribute ``i``."""
        wide = {j: codes[:, j].astype(np.intp) for j in self.graph.parents[i]}
        return self._configuration(wide, i, len(codes))

    def _configuration(self, wide: Mapping[int, Indices], i: int, records: int) -> Counts:
        """Return the same from the columns of the parents, widened once for all look-ups."""
        steps = self._strides[i]
        if not steps:
            return np.zeros(records, dtype=np.int64)
        numbers = steps[0][1].take(wide[steps[0][0]])
        for j, added in steps[1:]:
            numbers += added.take(wide[j])
        return numbers

    def log_terms(self, codes: Codes) -> Reals:
        """Return ln Pr{x_σ(i) | its parents}, one column an attribute **in the order σ**."""
        terms = np.empty(codes.shape, order="F")
        for place, i in enumerate(self.order):
            row = self.configuration(codes, i)
            terms[:, place] = self.tables[i].logarithms[row, codes[:, i]]
        return terms

    def log_probability(self, codes: Codes) -> Reals:
        """Return ln Pr{x} of each record under the model (Eq. 2, ``eq:gm:model``)."""
        total: Reals = self.log_terms(codes).sum(axis=1)
        return total

    def draw(
        self,
        codes: Codes,
        rng: Rng,
        *,
        kept: int,
        until: int | None = None,
        manner: Manner = "finely",
    ) -> None:
        """Draw, in place, every attribute after the first ``kept`` of σ (Eq. 3).

        ``eq:gm:seedbased_synthesis``: a value depends on kept attributes of the seed and on
        those drawn before it, which is what the record holds at that moment.

        Args:
            codes: The records.
            rng: Where the draws come from.
            kept: How many attributes stay as they are.
            until: How many of σ there are afterwards; None: all.
            manner: Drawn ``evenly``, each has the same law as ever, but they are not independent:
                not for candidates that are tested one by one. ``finely`` is for candidates whose
                probability a test asks for.
        """
        if manner == "apart":
            self._filling(kept, until).fill(codes, rng)
            return
        drawn = self.order[kept:until]
        wide = {i: codes[:, i].astype(np.intp) for i in self.order[:kept]}
        draw = self._draw_evenly if manner == "evenly" else self._draw_finely
        draw(wide, drawn, rng, len(codes))
        for i in drawn:
            codes[:, i] = wide[i]

    def _draw_finely(
        self, wide: dict[int, Indices], drawn: Sequence[int], rng: Rng, records: int
    ) -> None:
        for i in drawn:
            rows = self._configuration(wide, i, records)
            wide[i] = self.tables[i].alias.draw_finely(rows, rng.random(records))

    def _draw_evenly(
        self, wide: dict[int, Indices], drawn: Sequence[int], rng: Rng, records: int
    ) -> None:
        """Draw so that records which are alike in what was drawn last share values out evenly."""
        # At random among those that are the same: a record must not tell of the next in the file.
        alike = shuffled(records, rng)
        for kept in wide.values():
            alike = sort_by(kept, alike)
        for i in drawn:
            rows, alias = self._configuration(wide, i, records), self.tables[i].alias
            words = spread_evenly(rows, alike, rng)
            wide[i] = alias.draw(rows * alias.values, words)
            alike = sort_by(wide[i], alike)

    def _filling(self, kept: int, until: int | None) -> Filling:
        """Return how attributes are drawn in bundles, made when it is first asked for."""
        if (kept, until) not in self._fillings:
            before = [self._bundle(group) for group in self._grouped(self.order[:kept])]
            drawn = [self._drawn(group) for group in self._grouped(self.order[kept:until])]
            self._fillings[kept, until] = make_filling(before, drawn)
        return self._fillings[kept, until]

    @cached_property
    def _fillings(self) -> dict[tuple[int, int | None], Filling]:
        return {}

    def _grouped(self, attributes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return attributes that follow each other in groups that are small enough to be one."""
        groups: list[tuple[int, ...]] = []
        for i in attributes:
            longer = (*groups[-1], i) if groups else (i,)
            together, given = self._number_of(longer), self._number_of(self._given(longer))
            if groups and together <= _MOST_TOGETHER and together * given <= _MOST_CELLS:
                groups[-1] = longer
            else:
                groups.append((i,))
        return tuple(groups)

    def _given(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """Return the attributes before a group that it depends on, in the order σ."""
        parents = set().union(*(self.graph.parents[i] for i in group))
        return tuple(j for j in self.order if j in parents and j not in group)

    def _number_of(self, attributes: tuple[int, ...]) -> int:
        """Return how many combinations of codes some attributes have."""
        return math.prod(self.attributes[i].size for i in attributes)

    def _bundle(self, group: tuple[int, ...]) -> Bundle:
        return Bundle(attributes=group, sizes=tuple(self.attributes[i].size for i in group))

    def _drawn(self, group: tuple[int, ...]) -> tuple[Bundle, Steps, AliasTables]:
        """Return a bundle, its distributions, and what codes before it add to the row of one."""
        bundle = self._bundle(group)
        if len(group) == 1:
            return bundle, self._strides[group[0]], self.tables[group[0]].alias
        given = self._bundle(self._given(group))
        return bundle, given.steps(), self._join(given, bundle)

    def _join(self, given: Bundle, group: Bundle) -> AliasTables:
        """Return the product of conditional tables: Eq. 2 for some attributes alone."""
        every = self._bundle((*given.attributes, *group.attributes))
        codes = empty_codes(len(every.codes[0]), self.attributes)
        for i, own in zip(every.attributes, every.codes, strict=True):
            codes[:, i] = own
        chance = np.ones(len(codes))
        for i in group.attributes:
            chance *= self.tables[i].probabilities[self.configuration(codes, i), codes[:, i]]
        return alias_tables(chance.reshape(-1, len(group.codes[0])))

    def prepare(self, workers: int) -> None:
        """Prepare all tables for drawing, the largest first; else the first block would, alone."""
        largest = sorted(self.tables, key=lambda table: -table.probabilities.size)
        for _ in in_order(lambda table: table.alias.prepare(), largest, workers=workers):
            pass

    def most_likely(self, codes: Codes, i: int) -> Codes:
        """Return the most likely value of attribute ``i`` given all others (Sec. 6.2).

            argmax_l Pr{x_i = l | parents of i} · Π_{children c} Pr{x_c | parents of c, x_i = l}

        Other factors do not depend on l. Ties go to the first value.
        """
        block = max(1, _AT_ONCE // self.attributes[i].size)
        blocks = [codes[at : at + block] for at in range(0, len(codes), block)]
        best = [self._log_likelihood(part, i).argmax(axis=1).astype(CODE) for part in blocks]
        return np.concatenate(best) if best else np.empty(0, dtype=CODE)

    def _log_likelihood(self, codes: Codes, i: int) -> Reals:
        """Return the logarithm of the product above: one row a record, one column a value."""
        score = self.tables[i].logarithms[self.configuration(codes, i)].copy()
        other = codes.copy(order="F")
        for child in [c for c, parents in enumerate(self.graph.parents) if i in parents]:
            group_of = self.groups[child][self.graph.parents[child].index(i)]
            by_group = np.empty((len(codes), int(group_of.max()) + 1))
            for group in range(by_group.shape[1]):
                other[:, i] = np.flatnonzero(group_of == group)[0]
                row = self.configuration(other, child)
                by_group[:, group] = self.tables[child].logarithms[row, codes[:, child]]
            score += by_group[:, group_of]
        return score


def parents_query(graph: Graph, i: int) -> Query:
    """Return the query of the configurations of attribute ``i``: its parents, bucketed."""
    return tuple(Axis(j, bucketed=True) for j in graph.parents[i])


def table_query(graph: Graph, i: int) -> Query:
    """Return the query of the counts n_{i,l}^c: configuration by value."""
    return (*parents_query(graph, i), Axis(i))


def empty_codes(records: int, attributes: Sequence[Attribute]) -> Codes:
    """Return room for so many records, columns contiguous."""
    return np.zeros((records, len(attributes)), dtype=CODE, order="F")
