"""Draw records given evidence: forward filtering over states, backward sampling of records.

Attributes are handled in the order σ. A state is all that later attributes need to know of the
earlier ones (see ``frontier.py``). Forward, each state is extended by every value of the next
attribute, weighted by its probability and by the evidence; equal states are merged. Backward, a
record draws its last state and then its predecessors in proportion to their weights. That is exact
(variable elimination in the order σ) while every state is kept. If there are too many, a random
selection is kept that is right on average (stratified resampling), and the result is approximate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.frontier import Frontier
from deniable.answers.released_law import PrefixStart, ReleasedLaw, joint_index
from deniable.arrays import Codes, Indices, Reals
from deniable.randomness import Rng


@dataclass(frozen=True, kw_only=True, eq=False)
class _Filter:
    """The parts of one filtering.

    Attributes:
        law: The distribution of records.
        evidence: The evidence of each case.
        frontier: What matters after each attribute.
        rng: Source of randomness; used only if states have to be selected.
        max_states: The largest number of states of a case that is kept.
    """

    law: ReleasedLaw
    evidence: CaseEvidence
    frontier: Frontier
    rng: Rng
    max_states: int


@dataclass(frozen=True, eq=False)
class _States:
    """Weighted states, ordered by case.

    Attributes:
        codes: A record of each state; only what matters later is meaningful.
        cases: The case of each state.
        weights: Their probabilities within the case, given the evidence so far.
    """

    codes: Codes
    cases: Indices
    weights: Reals

    def take(self, which: Indices) -> "_States":
        return _States(self.codes[which], self.cases[which], self.weights[which])


@dataclass(frozen=True, eq=False)
class _Step:
    """How the states after an attribute come from those before: entries, ordered by new state.

    Attributes:
        attribute: The attribute that was drawn; None if states were only dropped.
        values: Its code in each entry.
        before: The earlier state of each entry; in the first step, the index of the prefix.
        cumulative: Cumulative weights of the entries; None if each entry is a state.
        starts: The first entry of each state, and the number of entries.
    """

    attribute: int | None
    values: Indices
    before: Indices
    cumulative: Reals | None = None
    starts: Indices | None = None

    def back(self, states: Indices, rng: Rng) -> Indices:
        """Draw an entry of each state."""
        if self.cumulative is None or self.starts is None:
            return states
        low, high = self.starts[states], self.starts[states + 1] - 1
        base = np.where(low > 0, self.cumulative[low - 1], 0.0)
        aim = base + rng.random(len(states)) * (self.cumulative[high] - base)
        found = np.searchsorted(self.cumulative, aim, side="right")
        return np.clip(found, low, high)


@dataclass(frozen=True, eq=False)
class Trellis:
    """The result of forward filtering, from which records are drawn backward.

    Attributes:
        start: How the records begin.
        columns: The attributes of the prefix, where the records begin with one.
        drawn: The end, in the order σ, of the attributes that are drawn.
        steps: The steps, in the order σ.
        cases: The case of each final state.
        weights: The weights of the final states, which sum to 1 in each case.
        log_likelihoods: ln of the probability of each case's evidence; minus infinity if it is 0.
    """

    start: PrefixStart = field(repr=False)
    columns: tuple[int, ...]
    drawn: int
    steps: tuple[_Step, ...] = field(repr=False)
    cases: Indices = field(repr=False)
    weights: Reals = field(repr=False)
    log_likelihoods: Reals = field(repr=False)

    def draw(self, records: Codes, states: Indices, rng: Rng) -> None:
        """Draw, in place, the attributes up to the end of the evidence, except given ones.

        Args:
            records: The records; given codes are in place.
            states: The final state of each record.
            rng: Source of randomness.
        """
        for step in reversed(self.steps[1:]):
            entries = step.back(states, rng)
            if step.attribute is not None:
                records[:, step.attribute] = step.values[entries]
            states = step.before[entries]
        first = self.steps[0]
        prefixes = first.before[first.back(states, rng)]
        for at, column in enumerate(self.columns):
            records[:, column] = self.start.prefixes[prefixes, at]


def run_filter(
    law: ReleasedLaw,
    evidence: CaseEvidence,
    frontier: Frontier,
    rng: Rng,
    *,
    max_states: int,
) -> Trellis:
    """Filter forward through all attributes up to the end of the evidence.

    Args:
        law: The distribution of records.
        evidence: The evidence of each case.
        frontier: What matters after each attribute.
        rng: Source of randomness; used only if states have to be selected.
        max_states: The largest number of states of a case that is kept.
    """
    run = _Filter(
        law=law,
        evidence=evidence,
        frontier=frontier,
        rng=rng,
        max_states=max_states,
    )
    log_likelihoods = np.zeros(evidence.cases)
    states, step = _begin(run)
    steps = [step]
    states = _normalized(states, log_likelihoods)
    for position in range(frontier.first, frontier.end):
        states, step = _advance(run, position, states)
        steps.append(step)
        states = _normalized(states, log_likelihoods)
    start = law.start
    return Trellis(
        start,
        law.order[: start.length],
        max(start.length, frontier.end),
        tuple(steps),
        states.cases,
        states.weights,
        log_likelihoods,
    )


def _normalized(states: _States, log_likelihoods: Reals) -> _States:
    """Scale the weights of each case to sum 1; add the logarithm of the sum to its likelihood."""
    total = np.bincount(states.cases, states.weights, minlength=len(log_likelihoods))
    with np.errstate(divide="ignore"):
        log_likelihoods += np.log(total)
    return _States(states.codes, states.cases, states.weights / total[states.cases])


def _begin(run: _Filter) -> tuple[_States, _Step]:
    """List the prefixes that agree with the given codes of each case."""
    law, start, evidence = run.law, run.law.start, run.evidence
    prefixes = law.of_prefixes(start.prefixes)
    given = [i for i in law.order[: start.length] if i in evidence.given]
    order, low, high = _matching_prefixes(prefixes, evidence, given, law.sizes)
    number = high - low
    entry_cases = np.repeat(np.arange(evidence.cases), number)
    offsets = np.arange(len(entry_cases)) - np.repeat(np.cumsum(number) - number, number)
    found = order[np.repeat(low, number) + offsets]
    codes = evidence.codes[entry_cases].copy(order="F")
    for i in law.order[: start.length]:
        codes[:, i] = prefixes[found, i]
    weights = start.weights[found]
    for factor in evidence.factors:
        if law.order.index(factor.attribute) < start.length:
            own = np.broadcast_to(
                factor.likelihoods(codes, entry_cases), (len(codes), law.sizes[factor.attribute])
            )
            weights = weights * own[np.arange(len(codes)), codes[:, factor.attribute]]
    kept = np.flatnonzero(weights)
    selected, weights = _select(entry_cases[kept], weights[kept], run)
    kept = kept[selected]
    entries = _States(codes[kept], entry_cases[kept], weights)
    if start.length == 0:
        return entries, _Step(None, found[kept], found[kept])
    step = _Step(None, found[kept], found[kept])
    first = run.frontier.first
    return _merge(entries, run.frontier.classes[first - 1] if first else {}, step)


def _matching_prefixes(
    prefixes: Codes, evidence: CaseEvidence, given: list[int], sizes: tuple[int, ...]
) -> tuple[Indices, Indices, Indices]:
    """Order prefixes by the given attributes; find each case's first and last in that order."""
    if not given:
        ends = np.full(evidence.cases, len(prefixes))
        return np.arange(len(prefixes)), np.zeros_like(ends), ends
    both = np.concatenate([prefixes[:, given], evidence.codes[:, given]])
    keys = joint_index([both[:, at] for at in range(len(given))], [sizes[i] for i in given])
    own, wanted = keys[: len(prefixes)], keys[len(prefixes) :]
    order = np.argsort(own, kind="stable")
    low = np.searchsorted(own[order], wanted, side="left")
    return order, low, np.searchsorted(own[order], wanted, side="right")


def _advance(run: _Filter, position: int, states: _States) -> tuple[_States, _Step]:
    """Extend each state by the attribute at ``position``."""
    i = run.law.order[position]
    extended = run.law.distribution(states.codes, position)
    for factor in run.evidence.factors:
        if factor.attribute == i:
            extended = extended * factor.likelihoods(states.codes, states.cases)
    if i in run.evidence.given:
        own = extended[np.arange(len(extended)), states.codes[:, i]] * states.weights
        kept = np.flatnonzero(own)
        entries = _States(states.codes[kept], states.cases[kept], own[kept])
        step = _Step(None, kept, kept)
    else:
        # States that contradict a given value anyway would only take the place of others.
        allowed = run.law.allowed_by(states.codes, position, run.evidence.given)
        extended = extended * states.weights[:, None]
        extended = extended if allowed is None else extended * allowed
        flat = np.flatnonzero(extended)
        before, values = np.divmod(flat, extended.shape[1])
        selected, weights = _select(states.cases[before], extended.ravel()[flat], run)
        before, values = before[selected], values[selected]
        codes = states.codes[before]
        codes[:, i] = values
        entries = _States(codes, states.cases[before], weights)
        step = _Step(i, values, before)
    if not run.frontier.merges[position]:
        return entries, step
    return _merge(entries, run.frontier.classes[position], step)


def _merge(entries: _States, classes: Mapping[int, Indices], step: _Step) -> tuple[_States, _Step]:
    """Merge entries whose codes are in the same classes."""
    columns = [own.take(entries.codes[:, i]) for i, own in classes.items()]
    cases = int(entries.cases.max(initial=0)) + 1
    sizes = [int(own.max()) + 1 for own in classes.values()]
    keys = joint_index([entries.cases, *columns], [cases, *sizes])
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    weights = entries.weights[order]
    sorted_step = _Step(
        step.attribute,
        step.values[order],
        step.before[order],
        np.cumsum(weights),
        np.append(starts, len(order)),
    )
    merged = entries.take(order[starts])
    sums = np.add.reduceat(weights, starts) if len(starts) else merged.weights
    return _States(merged.codes, merged.cases, sums), sorted_step


def _select(cases: Indices, weights: Reals, run: _Filter) -> tuple[Indices, Reals]:
    """Select at most ``max_states`` entries of each case by stratified resampling.

    A case with no more entries keeps all of them. In others, an entry with share p of the case's
    weight is drawn p n times on average, and its new weight is in proportion.
    """
    number, max_states = np.bincount(cases), run.max_states
    large = number > max_states
    if not large.any():
        return np.arange(len(cases)), weights
    total = np.bincount(cases, weights)
    share = weights / total[cases]
    last = np.cumsum(number) - 1
    which = np.flatnonzero(large)
    # A point of its own in each stratum. One offset for all would select the same quantile of
    # every state, as the weights of selected states are multiples of a stratum.
    jitter = run.rng.random(len(which) * max_states)
    points = (jitter + np.tile(np.arange(max_states), len(which))) / max_states
    cumulative = np.cumsum(share)
    before = last[which] - number[which]
    first = np.where(before >= 0, cumulative[before], 0.0)
    aim = np.repeat(first, max_states) + points
    found = np.searchsorted(cumulative, aim, side="right")
    owner = np.repeat(which, max_states)
    found = np.clip(found, (last - number + 1)[owner], last[owner])
    chosen, times = np.unique(found, return_counts=True)
    drawn = np.zeros(len(cases))
    drawn[chosen] = times / max_states
    drawn = np.where(large[cases], drawn * total[cases], weights)
    selected = np.flatnonzero(drawn)
    return selected, drawn[selected]
