"""Frontier of an inference: after each attribute, the earlier attributes that still matter.

Attributes are handled in the order σ. An earlier attribute matters while a later one, up to the end
of the evidence, depends on it; and only as far as its codes are distinguished. Records that agree
in all that matters are one state. So the number of states is bounded by a product of a few sizes,
whatever the number of attributes.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.released_law import ReleasedLaw
from deniable.arrays import Indices

# Kinds of evidence whose frontiers are kept, which bounds the memory.
_MAX_FRONTIERS = 4096


@dataclass(frozen=True, eq=False)
class Frontier:
    """What matters after each attribute, for one kind of evidence.

    Attributes:
        end: The end of the evidence in the order σ.
        first: The first position that is not in the prefix.
        classes: By position: for each attribute that matters after it and is not given, the class
            of each code; codes of one class need not be distinguished.
        merges: By position: whether states may agree in all that matters after it.
        states: The largest possible number of states of one case, at any position.
        entries: The largest possible number of extensions of the states of one case.
    """

    end: int
    first: int
    classes: tuple[dict[int, Indices], ...] = field(repr=False)
    merges: tuple[bool, ...] = field(repr=False)
    states: int
    entries: int

    @classmethod
    def of(cls, law: ReleasedLaw, evidence: CaseEvidence) -> "Frontier":
        """Find what matters after each position."""
        end = evidence.end(law.order)
        first = min(law.start.length, end)
        classes = tuple(_classes_after(law, evidence, position, end) for position in range(end))
        merges = [False] * end
        before: dict[int, int] = {}
        for position in range(end):
            sizes = {i: int(own.max()) + 1 for i, own in classes[position].items()}
            drawn = law.order[position]
            known = before if drawn in evidence.given else before | {drawn: law.sizes[drawn]}
            merges[position] = sizes != known
            before = sizes
        states, entries = [_free_prefixes(law, evidence)], [0]
        for position in range(first, end):
            drawn = law.order[position]
            entries.append(states[-1] * (1 if drawn in evidence.given else law.sizes[drawn]))
            bound = math.prod(int(own.max()) + 1 for own in classes[position].values())
            states.append(min(entries[-1], bound) if merges[position] else entries[-1])
        return cls(end, first, classes, tuple(merges), max(states), max(*states, *entries))


def find_frontier(law: ReleasedLaw, evidence: CaseEvidence) -> Frontier:
    """Find what matters after each attribute; the same for evidence of the same kind."""
    factors = tuple((factor.attribute, factor.by) for factor in evidence.factors)
    kind = evidence.given, factors
    found: Frontier | None = law.frontiers.get(kind)
    if found is None:
        found = Frontier.of(law, evidence)
        if len(law.frontiers) >= _MAX_FRONTIERS:
            law.frontiers.clear()
        law.frontiers[kind] = found
    return found


def _free_prefixes(law: ReleasedLaw, evidence: CaseEvidence) -> int:
    """Bound the prefixes that agree with the given codes of a case."""
    free = [i for i in law.order[: law.start.length] if i not in evidence.given]
    return min(len(law.start.prefixes), math.prod(law.sizes[i] for i in free))


def _classes_after(
    law: ReleasedLaw, evidence: CaseEvidence, position: int, end: int
) -> dict[int, Indices]:
    """Find the classes of codes of each attribute that matters after a position."""
    found: dict[int, Indices] = {}
    for at in range(position + 1):
        i = law.order[at]
        if i in evidence.given:
            continue
        maps: list[Indices] = []
        for later in range(position + 1, end):
            maps += _uses(law, evidence, later, i)
        if maps:
            joint = np.unique(np.stack(maps), axis=1, return_inverse=True)[1].ravel()
            if joint.max() > 0:
                found[i] = joint
    return found


def _uses(law: ReleasedLaw, evidence: CaseEvidence, later: int, i: int) -> list[Indices]:
    """List how the attribute at a later position distinguishes the codes of attribute ``i``."""
    child, network = law.order[later], law.network
    maps: list[Indices] = []
    if i in network.graph.parents[child]:
        maps.append(network.groups[child][network.graph.parents[child].index(i)])
    by_code = any(f.by == i and f.attribute == child for f in evidence.factors)
    if by_code or i in law.masked_with(later):
        maps.append(np.arange(law.sizes[i]))
    return maps
