"""Conflict: which parts of impossible evidence exclude each other."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.inference import infer
from deniable.answers.released_law import ReleasedLaw
from deniable.randomness import Keyed

# Likelihoods are computed with a public key: where they are approximate, that decides a message.
_CONFLICT_KEY = 5


def find_conflict(law: ReleasedLaw, evidence: CaseEvidence) -> tuple[int, ...]:
    """Find few attributes whose evidence has probability 0 together.

    One attribute, or a pair, where that is enough; otherwise all up to the first, in the order σ,
    that makes the evidence impossible.

    Args:
        law: The distribution of records.
        evidence: A single case that has probability 0.
    """
    attributes = sorted(evidence.attributes, key=law.order.index)
    number = next(
        (n for n in range(1, len(attributes)) if _is_impossible(law, evidence, attributes[:n])),
        len(attributes),
    )
    *earlier, last = attributes[:number]
    if _is_impossible(law, evidence, [last]):
        return (last,)
    for other in earlier:
        if _is_impossible(law, evidence, [other, last]):
            return (other, last)
    return tuple(attributes[:number])


def _is_impossible(law: ReleasedLaw, evidence: CaseEvidence, among: Collection[int]) -> bool:
    part = replace(
        evidence,
        given=evidence.given & set(among),
        factors=tuple(factor for factor in evidence.factors if factor.attribute in among),
    )
    found = infer(law, part, Keyed(_CONFLICT_KEY).at("candidates"))
    return bool(found.log_likelihoods[0] == -np.inf)
