"""Inference in the released law: draw records given evidence, exactly where states are few enough.

Where they are too many, two independent filters select states at random. Their estimates of the
probability of the evidence differ, and half the mean relative difference estimates the total
variation between the law of a drawn record and the exact one: with Ẑ the estimate and Z the
probability, it is at most E|Ẑ / Z - 1| / 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.frontier import Frontier, find_frontier
from deniable.answers.released_law import ReleasedLaw
from deniable.answers.state_filter import Trellis, run_filter
from deniable.arrays import Codes, Indices, Reals
from deniable.model.bayesian_network import empty_codes
from deniable.randomness import Rng

# Bounds the extended states of all cases that are handled at once, hence the memory.
_MAX_ENTRIES = 2**22
# Where there are many cases, bounds the extended states of one that is exact.
_MAX_ENTRIES_PER_CASE = 2**16
# Otherwise each of two filters keeps this number of states: of all cases together, where a few
# serve many records each; and of each of many cases.
_SELECTED_STATES = 2**16
_SELECTED_STATES_PER_CASE = 2**7
_FILTERS = 2


@dataclass(frozen=True, eq=False)
class Posterior:
    """The distribution of records given the evidence of each case.

    Attributes:
        law: The distribution of records without evidence.
        evidence: The evidence.
        trellises: Filters, whose records are mixed.
        log_likelihoods: ln of the probability of each case's evidence.
        is_exact: Whether all states were kept.
        total_variation: Estimated error of each case's distribution; 0 where it is exact.
    """

    law: ReleasedLaw = field(repr=False)
    evidence: CaseEvidence = field(repr=False)
    trellises: tuple[Trellis, ...] = field(repr=False)
    log_likelihoods: Reals = field(repr=False)
    is_exact: bool
    total_variation: Reals = field(repr=False)
    _sources: Indices = field(repr=False)
    _states: Indices = field(repr=False)
    _cumulative: Reals = field(repr=False)
    _ends: Indices = field(repr=False)

    @property
    def effective_states(self) -> Reals:
        """The effective number of final states of each case: 1 / Σ p²."""
        shares = np.diff(self._cumulative, prepend=0.0)
        cases = np.repeat(np.arange(self.evidence.cases), np.diff(self._ends, prepend=0))
        squares = np.bincount(cases, shares**2, minlength=self.evidence.cases)
        with np.errstate(divide="ignore"):
            return 1 / squares

    def draw(self, cases: Indices, rng: Rng) -> Codes:
        """Draw a record for each of some cases, whose evidence must not have probability 0.

        Pair masks hold where they can; other constraints may be violated.
        """
        first = np.append(0, self._ends[:-1])[cases]
        aim = cases + rng.random(len(cases))
        found = np.searchsorted(self._cumulative, aim, side="right")
        found = np.clip(found, first, self._ends[cases] - 1)
        records = empty_codes(len(cases), self.law.network.attributes)
        for i in self.evidence.given:
            records[:, i] = self.evidence.codes[cases, i]
        end = self.evidence.end(self.law.order)
        for source, trellis in enumerate(self.trellises):
            own = np.flatnonzero(self._sources[found] == source)
            if len(own):
                part = np.asfortranarray(records[own])
                trellis.draw(part, self._states[found[own]], rng)
                drawn = max(trellis.drawn, end)
                self.law.records.draw_rest(part, rng, drawn, "independent")
                records[own] = part
        return records


def infer(
    law: ReleasedLaw, evidence: CaseEvidence, rng: Rng, *, shared: bool = False, times: int = 1
) -> Posterior:
    """Compute the distribution of records given evidence.

    Args:
        law: The distribution of records.
        evidence: The evidence; at most as many cases as ``split_cases`` yields at once.
        rng: Source of randomness; used only where the result is approximate.
        shared: Whether few cases serve many records each, so that more states pay.
        times: Records of each case; the number of states kept grows with it, up to a bound.
    """
    frontier = find_frontier(law, evidence)
    number = evidence.cases if shared else None
    exact = _is_exact(frontier, number)
    repeats = 1 if exact else _FILTERS
    kept = max(_SELECTED_STATES // number if number else 0, _states_of_case(times))
    most = frontier.entries if exact else kept
    trellises = [run_filter(law, evidence, frontier, rng, max_states=most) for _ in range(repeats)]
    shares = np.stack([each.log_likelihoods - np.log(repeats) for each in trellises])
    total: Reals = np.logaddexp.reduce(shares, axis=0)
    with np.errstate(invalid="ignore"):
        weights = np.exp(shares - total)
    variation = np.abs(weights[0] - weights[-1]) / 2
    return _pool(law, evidence, trellises, weights, (total, np.nan_to_num(variation)))


def _pool(
    law: ReleasedLaw,
    evidence: CaseEvidence,
    trellises: Sequence[Trellis],
    weights: Reals,
    results: tuple[Reals, Reals],
) -> Posterior:
    """Mix the final states of several filters, ordered by case."""
    cases = np.concatenate([trellis.cases for trellis in trellises])
    shares = np.concatenate(
        [
            trellis.weights * own[trellis.cases]
            for trellis, own in zip(trellises, weights, strict=True)
        ]
    )
    sources = np.repeat(np.arange(len(trellises)), [len(each.cases) for each in trellises])
    states = np.concatenate([np.arange(len(each.cases)) for each in trellises])
    order = np.argsort(cases, kind="stable")
    number = np.bincount(cases, minlength=evidence.cases)
    ends = np.cumsum(number)
    ordered = shares[order]
    # Each case with some state spans an interval of length 1, that of its own number.
    cumulative = np.append(0.0, np.cumsum(ordered))
    offset = cumulative[ends - number]
    cumulative = cumulative[1:] - np.repeat(offset, number) + cases[order]
    total, variation = results
    return Posterior(
        law,
        evidence,
        tuple(trellises),
        total,
        len(trellises) == 1,
        variation,
        sources[order],
        states[order],
        cumulative,
        ends,
    )


def _is_exact(frontier: Frontier, shared: int | None = None) -> bool:
    """Whether all states are kept: of ``shared`` cases, or of one of many."""
    most = _MAX_ENTRIES // shared if shared else _MAX_ENTRIES_PER_CASE
    return frontier.entries <= most


def _states_of_case(times: int) -> int:
    """The number of selected states of a case that serves ``times`` records."""
    return min(_SELECTED_STATES, _SELECTED_STATES_PER_CASE * times)


def split_cases(
    law: ReleasedLaw, evidence: CaseEvidence, times: int = 1
) -> Iterator[tuple[Indices, CaseEvidence]]:
    """Split cases into parts that are handled at once; yield their numbers and their evidence."""
    frontier = find_frontier(law, evidence)
    entries = frontier.entries
    if not _is_exact(frontier):
        entries = min(entries, _states_of_case(times) * max(law.sizes))
    at_once = max(1, _MAX_ENTRIES // max(entries, 1))
    for start in range(0, evidence.cases, at_once):
        numbers = np.arange(start, min(start + at_once, evidence.cases))
        yield numbers, evidence.take(numbers)
