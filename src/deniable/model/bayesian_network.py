"""Bayesian network over encoded records: graph, drawing order and conditional distributions.

Pr{x_1, …, x_m} = Π_i Pr{x_i | bkt(x_j), j ∈ P_G(i)}        (Eq. 2 and 7, ``eq:gm:model``)

A conditional distribution is a table, or, for many parents, a log-linear model.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Indices, Mask, Reals
from deniable.errors import InvariantError
from deniable.model.alias_sampling import (
    AliasTables,
    alias_tables,
    random_permutation,
    stable_sort_by,
)
from deniable.model.bundled_sampling import (
    Bundle,
    KeyedDraw,
    SamplingPlan,
    TableDraw,
    make_sampling_plan,
)
from deniable.model.graph import Graph, check_order
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.loglinear_sampler import LogLinearSampler
from deniable.model.systematic_sampling import (
    draw_from_rows,
    sort_by_parents,
    strengths_of_table,
)
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute
from deniable.schema.pair_masks import restrict_to_allowed
from deniable.workers import map_in_order

# How values are drawn: independently; by systematic sampling, so that frequencies are closer to
# probabilities than those of independent draws; or independently with the full precision of floats.
DrawMethod = Literal["independent", "systematic", "precise"]
# Attributes are drawn together while their joint table fits the cache. Bounds the combinations of
# their values, and the cells: combinations times configurations of their parents.
_MAX_BUNDLE_SIZE = 2**12
_MAX_BUNDLE_CELLS = 2**16
# Largest number of records times values in memory while the most likely value is computed.
_MAX_LIKELIHOOD_CELLS = 2**22


@dataclass(frozen=True)
class ConditionalTable:
    """Pr{x_i = l | configuration c of the parents}: configurations by values."""

    probabilities: Reals

    def __post_init__(self) -> None:
        p = self.probabilities
        if p.ndim != 2 or not (p >= 0).all() or not np.allclose(p.sum(axis=1), 1, atol=1e-9):
            raise InvariantError("each row of a conditional table must be a distribution")

    @cached_property
    def alias(self) -> AliasTables:
        """Alias tables of the rows, for drawing."""
        return alias_tables(self.probabilities)

    @property
    def cells(self) -> int:
        """The number of probabilities."""
        return int(self.probabilities.size)

    def prepare(self) -> None:
        """Build the alias tables now rather than at the first draw."""
        self.alias.prepare()

    @cached_property
    def logarithms(self) -> Reals:
        """Natural logarithms; minus infinity for probability 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)


Conditional = ConditionalTable | LogLinearConditional


@dataclass(frozen=True)
class Network:
    """A Bayesian network over encoded records.

    Attributes:
        attributes: The domain of each column of the codes.
        graph: The parents of each attribute.
        order: σ, a linear extension of the graph: attributes in the order they are drawn.
        tables: The conditional distribution of each attribute, in the schema's order.
        groups: For each attribute, the group of every code of each of its parents. The default is
            the parents' buckets.
    """

    attributes: tuple[Attribute, ...]
    graph: Graph
    order: tuple[int, ...]
    tables: tuple[Conditional, ...] = field(repr=False)
    groups: tuple[tuple[Indices, ...], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_order(self.graph, self.order)
        if not len(self.attributes) == len(self.tables) == len(self.order):
            raise InvariantError("a network needs one conditional table per attribute")
        if not self.groups:
            own = [tuple(self.attributes[j].bucket_of for j in p) for p in self.graph.parents]
            object.__setattr__(self, "groups", tuple(own))
        self._check_groups()
        for i, table in enumerate(self.tables):
            if not self._has_shape_of_graph(i, table):
                raise InvariantError(f"conditional table {i} does not have the shape of its graph")

    def _has_shape_of_graph(self, i: int, table: Conditional) -> bool:
        sizes, values = [int(group.max()) + 1 for group in self.groups[i]], self.attributes[i].size
        if isinstance(table, LogLinearConditional):
            return table.values == values and [len(effect) for effect in table.effects] == sizes
        return table.probabilities.shape == (math.prod(sizes), values)

    def _check_groups(self) -> None:
        for i, parents in enumerate(self.graph.parents):
            sizes = [len(groups) for groups in self.groups[i]]
            below = any(int(groups.min()) < 0 for groups in self.groups[i])
            if below or sizes != [self.attributes[j].size for j in parents]:
                raise InvariantError(f"the groups of table {i} do not match its parents' codes")

    @cached_property
    def _code_offsets(self) -> tuple[tuple[tuple[int, Indices], ...], ...]:
        """For each attribute, its parents and the offset of each of their codes in a configuration.

        The sum of the offsets is the configuration's index.
        """
        offsets = []
        for parents, groups in zip(self.graph.parents, self.groups, strict=True):
            sizes = [int(group.max()) + 1 for group in groups]
            strides = [int(np.prod(sizes[at + 1 :], dtype=int)) for at in range(len(sizes))]
            pairs = zip(groups, strides, strict=True)
            of_codes = [np.multiply(*pair, dtype=np.intp) for pair in pairs]
            offsets.append(tuple(zip(parents, of_codes, strict=True)))
        return tuple(offsets)

    def configuration(self, codes: Codes, i: int) -> Counts:
        """Compute each record's configuration of the parents of attribute ``i``, as an index."""
        wide = {j: codes[:, j].astype(np.intp) for j in self.graph.parents[i]}
        return self._configuration(wide, i, len(codes))

    def _configuration(self, wide: Mapping[int, Indices], i: int, records: int) -> Counts:
        """Compute the configurations from columns of the parents that are already wide integers."""
        offsets = self._code_offsets[i]
        if not offsets:
            return np.zeros(records, dtype=np.int64)
        index = offsets[0][1].take(wide[offsets[0][0]])
        for j, offset in offsets[1:]:
            index += offset.take(wide[j])
        return index

    def log_terms(self, codes: Codes) -> Reals:
        """Compute ln Pr{x_σ(i) | its parents}, one column per attribute **in the order σ**."""
        terms = np.empty(codes.shape, order="F")
        for place, i in enumerate(self.order):
            terms[:, place] = self._log_term(codes, i)
        return terms

    def _log_term(self, codes: Codes, i: int) -> Reals:
        """Compute ln Pr{x_i | its parents} of each record."""
        table = self.tables[i]
        if isinstance(table, LogLinearConditional):
            own = codes[:, i].astype(np.intp)
            return table.log_probability(self._parent_groups(codes, i), own)
        found: Reals = table.logarithms[self.configuration(codes, i), codes[:, i]]
        return found

    def _parent_groups(self, codes: Codes, i: int) -> list[Indices]:
        """Look up the group of each parent of attribute ``i``, by record."""
        return self._groups_of({j: codes[:, j] for j in self.graph.parents[i]}, i)

    def _groups_of(self, columns: Mapping[int, Indices | Codes], i: int) -> list[Indices]:
        parents = zip(self.graph.parents[i], self.groups[i], strict=True)
        return [groups.take(columns[j]) for j, groups in parents]

    def log_probability(self, codes: Codes) -> Reals:
        """Compute ln Pr{x} of each record under the model (Eq. 2, ``eq:gm:model``)."""
        total: Reals = self.log_terms(codes).sum(axis=1)
        return total

    def draw(
        self,
        codes: Codes,
        rng: Rng,
        *,
        kept: int,
        until: int | None = None,
        method: DrawMethod = "precise",
    ) -> None:
        """Draw, in place, every attribute after the first ``kept`` of σ (Eq. 3).

        ``eq:gm:seedbased_synthesis``: a value depends on the kept attributes of the seed and on
        the attributes drawn before it.

        Args:
            codes: The records.
            rng: Source of randomness.
            kept: The number of attributes that stay unchanged.
            until: The end of the attributes to draw, as a position in σ; None draws all.
            method: With ``systematic``, each record has the same distribution as otherwise, but
                records depend on each other: not for candidates that are tested one by one.
                ``precise`` is for candidates whose probability a test computes.
        """
        if method == "independent":
            self._sampling_plan(kept, until).fill(codes, rng)
            return
        drawn = self.order[kept:until]
        wide = {i: codes[:, i].astype(np.intp) for i in self.order[:kept]}
        draw = self._draw_systematic if method == "systematic" else self._draw_precise
        draw(wide, drawn, rng, len(codes))
        for i in drawn:
            codes[:, i] = wide[i]

    def _first_log_linear(self, kept: int, until: int | None) -> int:
        """Find the position in σ of the first attribute to draw without a table; else the end."""
        end = len(self.order) if until is None else until
        drawn = range(kept, end)
        has_table = [isinstance(self.tables[self.order[at]], ConditionalTable) for at in drawn]
        return kept + has_table.index(False) if False in has_table else end

    @cached_property
    def _samplers(self) -> dict[int, LogLinearSampler]:
        """Samplers of log-linear distributions; they become faster during long runs."""
        found = enumerate(self.tables)
        return {i: LogLinearSampler(t) for i, t in found if isinstance(t, LogLinearConditional)}

    def _draw_precise(
        self, wide: dict[int, Indices], drawn: Sequence[int], rng: Rng, records: int
    ) -> None:
        for i in drawn:
            table, uniform = self.tables[i], rng.random(records)
            if isinstance(table, LogLinearConditional):
                groups = self._groups_of(wide, i)
                wide[i] = table.draw_precise(groups, uniform, rng.half_words(records))
            else:
                rows = self._configuration(wide, i, records)
                wide[i] = table.alias.draw_precise(rows, uniform)

    def _draw_systematic(
        self, wide: dict[int, Indices], drawn: Sequence[int], rng: Rng, records: int
    ) -> None:
        """Draw by systematic sampling; records with the same strong parents follow each other."""
        # Equal records are in random order: the order of the file must not reveal anything.
        similarity = random_permutation(records, rng)
        for kept in wide.values():
            similarity = stable_sort_by(kept, similarity)
        for i in drawn:
            table, parents = self.tables[i], [wide[j] for j in self.graph.parents[i]]
            if isinstance(table, LogLinearConditional):
                groups = self._groups_of(wide, i)
                order = sort_by_parents(similarity, parents, table.parent_strengths(groups))
                wide[i] = table.draw_systematic(groups, order, rng)
            else:
                rows = self._configuration(wide, i, records)
                sizes = [int(groups.max()) + 1 for groups in self.groups[i]]
                strengths = strengths_of_table(table.probabilities, rows, sizes)
                order = sort_by_parents(similarity, parents, strengths)
                wide[i] = draw_from_rows(table.probabilities, rows, order, rng)
            similarity = stable_sort_by(wide[i], similarity)

    def _sampling_plan(self, kept: int, until: int | None) -> SamplingPlan:
        """Plan the draws of bundles of attributes; plans are cached."""
        if (kept, until) not in self._sampling_plans:
            # Attributes with tables are drawn first, in bundles. Those with log-linear
            # distributions have many values, and mostly come last in the order.
            first = self._first_log_linear(kept, until)
            given = [self._bundle(group) for group in self._bundle_groups(self.order[:kept])]
            drawn = [
                self._bundle_draw(group) for group in self._bundle_groups(self.order[kept:first])
            ]
            drawn += [self._single_draw(i) for i in self.order[first:until]]
            self._sampling_plans[kept, until] = make_sampling_plan(given, drawn)
        return self._sampling_plans[kept, until]

    @cached_property
    def _sampling_plans(self) -> dict[tuple[int, int | None], SamplingPlan]:
        return {}

    def _bundle_groups(self, attributes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Split consecutive attributes into groups small enough to be drawn together."""
        groups: list[tuple[int, ...]] = []
        for i in attributes:
            extended = (*groups[-1], i) if groups else (i,)
            size = self._combinations(extended)
            given = self._combinations(self._outside_parents(extended))
            if groups and size <= _MAX_BUNDLE_SIZE and size * given <= _MAX_BUNDLE_CELLS:
                groups[-1] = extended
            else:
                groups.append((i,))
        return tuple(groups)

    def _outside_parents(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """List the parents of a group that are not in it, in the order σ."""
        parents = set().union(*(self.graph.parents[i] for i in group))
        return tuple(j for j in self.order if j in parents and j not in group)

    def _combinations(self, attributes: tuple[int, ...]) -> int:
        """Count the combinations of codes of these attributes."""
        return math.prod(self.attributes[i].size for i in attributes)

    def _bundle(self, group: tuple[int, ...]) -> Bundle:
        return Bundle(attributes=group, sizes=tuple(self.attributes[i].size for i in group))

    def _bundle_draw(self, group: tuple[int, ...]) -> TableDraw | KeyedDraw:
        """Prepare a group with tables to be drawn: its bundle, alias tables, parents' offsets."""
        if len(group) == 1:
            return self._single_draw(group[0])
        bundle, given = self._bundle(group), self._bundle(self._outside_parents(group))
        return TableDraw(bundle, self._joint_tables(given, bundle), given.code_offsets())

    def _single_draw(self, i: int) -> TableDraw | KeyedDraw:
        """Prepare one attribute to be drawn."""
        if i not in self._samplers:
            return TableDraw(self._bundle((i,)), self._table(i).alias, self._code_offsets[i])
        sampler, parents, groups = self._samplers[i], self.graph.parents[i], self.groups[i]
        offsets = [
            tuple((parents[place], own.take(groups[place])) for place, own in of_key)
            for of_key in sampler.key_offsets()
        ]
        return KeyedDraw(self._bundle((i,)), sampler, offsets)

    def _joint_tables(self, given: Bundle, bundle: Bundle) -> AliasTables:
        """Multiply conditional tables: the joint distribution of a bundle given its parents."""
        whole = self._bundle((*given.attributes, *bundle.attributes))
        codes = empty_codes(len(whole.codes[0]), self.attributes)
        for i, values in zip(whole.attributes, whole.codes, strict=True):
            codes[:, i] = values
        probability = np.ones(len(codes))
        for i in bundle.attributes:
            probability *= self._table(i).probabilities[self.configuration(codes, i), codes[:, i]]
        return alias_tables(probability.reshape(-1, len(bundle.codes[0])))

    def _table(self, i: int) -> ConditionalTable:
        table = self.tables[i]
        if isinstance(table, LogLinearConditional):
            raise InvariantError("a log-linear distribution has no table")
        return table

    def prepare(self, workers: int) -> None:
        """Build all look-up tables in parallel, largest first, before the first block."""
        largest = sorted(self.tables, key=lambda table: -table.cells)
        for _ in map_in_order(lambda table: table.prepare(), largest, workers=workers):
            pass

    def most_likely(self, codes: Codes, i: int) -> Codes:
        """Predict attribute ``i``: its most likely value given all others (Sec. 6.2).

            argmax_l Pr{x_i = l | parents of i} · Π_{children c} Pr{x_c | parents of c, x_i = l}

        Other factors do not depend on l. Ties go to the first value.
        """
        block = max(1, _MAX_LIKELIHOOD_CELLS // self.attributes[i].size)
        blocks = [codes[start : start + block] for start in range(0, len(codes), block)]
        modes = [self._log_likelihood(part, i).argmax(axis=1).astype(CODE) for part in blocks]
        return np.concatenate(modes) if modes else np.empty(0, dtype=CODE)

    def _log_likelihood(self, codes: Codes, i: int) -> Reals:
        """Compute the logarithm of the product in ``most_likely``: records by values."""
        score = self.log_distribution(codes, i)
        changed = codes.copy(order="F")
        for child in [c for c, parents in enumerate(self.graph.parents) if i in parents]:
            group_of = self.groups[child][self.graph.parents[child].index(i)]
            by_group = np.empty((len(codes), int(group_of.max()) + 1))
            for group in range(by_group.shape[1]):
                changed[:, i] = np.flatnonzero(group_of == group)[0]
                by_group[:, group] = self._log_term(changed, child)
            score += by_group[:, group_of]
        return score

    def distribution(self, codes: Codes, i: int, allowed: Mask | None = None) -> Reals:
        """Compute Pr{x_i = l | its parents}: records by values; given that l is ``allowed``."""
        if isinstance(table := self.tables[i], LogLinearConditional):
            found = table.distribution(self._parent_groups(codes, i), len(codes), allowed)
        else:
            found = table.probabilities[self.configuration(codes, i)]
        return found if allowed is None else restrict_to_allowed(found, allowed)

    def log_distribution(self, codes: Codes, i: int) -> Reals:
        """Compute ln Pr{x_i = l | its parents}: records by values."""
        if isinstance(table := self.tables[i], LogLinearConditional):
            return table.log_distribution(self._parent_groups(codes, i), len(codes))
        found: Reals = table.logarithms[self.configuration(codes, i)].copy()
        return found


def empty_codes(records: int, attributes: Sequence[Attribute]) -> Codes:
    """Allocate codes for n records, with contiguous columns."""
    return np.zeros((records, len(attributes)), dtype=CODE, order="F")
