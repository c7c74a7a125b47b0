"""Small released laws for tests of inference, and their probabilities by enumeration."""

from itertools import product

import numpy as np

from deniable.answers.released_law import ReleasedLaw
from deniable.arrays import CODE
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.randomness import Keyed
from deniable.release.generation import GeneratedRecords
from deniable.release.prefix_distribution import PrefixDistribution
from worlds import plain_attribute

SIZES = (2, 3, 2, 3, 4)
ORDER = (2, 0, 4, 1, 3)
PARENTS = ((2,), (0, 4), (), (1, 4), (0, 2))
# The parent 4 of attribute 1 enters in two groups, so that some states are equal.
GROUPS = (
    (np.array([0, 1]),),
    (np.array([0, 1]), np.array([0, 0, 1, 1])),
    (),
    (np.array([0, 1, 1]), np.array([0, 1, 2, 2])),
    (np.array([0, 1]), np.array([0, 1])),
)
MASK = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1]], dtype=bool)
UNIVERSE = np.array(list(product(*map(range, SIZES))), dtype=CODE)


def small_network(*, log_linear: bool) -> Network:
    rng = np.random.default_rng(5)
    tables = []
    for i, size in enumerate(SIZES):
        groups = [int(group.max()) + 1 for group in GROUPS[i]]
        if log_linear and i in (1, 3):
            effects = [rng.normal(size=(number, size)) for number in groups]
            shares = np.ones(size)
            tables.append(
                LogLinearConditional.of(rng.normal(size=size), effects, np.arange(size), shares)
            )
            continue
        rows = rng.dirichlet(np.ones(size), size=int(np.prod(groups, dtype=int)))
        rows[0] = np.eye(size)[0] * 0.5 + 0.5 / size
        tables.append(ConditionalTable(rows))
    attributes = tuple(plain_attribute(f"x{i}", size) for i, size in enumerate(SIZES))
    return Network(attributes, Graph(PARENTS), ORDER, tuple(tables), GROUPS)


def small_law(kind: str) -> ReleasedLaw:
    """A law: seedless, with prefixes, log-linear, or with pair masks."""
    network = small_network(log_linear=kind == "log-linear")
    combined = PrefixDistribution(
        prefixes=np.array([[0, 0, 1], [0, 1, 3], [1, 0, 2], [1, 1, 0], [1, 1, 3]], dtype=CODE),
        weights=np.array([3, 5, 4, 7, 1]),
        distance=0.1,
    )
    records = GeneratedRecords(
        network=network,
        randomness=Keyed(1),
        number=1,
        pair_masks={(1, 4): MASK, (0, 3): MASK[:2, :3]} if kind == "masked" else {},
        prefixes=combined if kind == "combined" else None,
    )
    return ReleasedLaw(records)


KINDS = ("seedless", "log-linear", "combined", "masked")


def enumerated(law: ReleasedLaw) -> np.ndarray:
    """The probability of each record of UNIVERSE, by the definition of generation."""
    terms = np.stack([_term(law, position) for position in range(len(ORDER))], axis=1)
    length = 0 if law.records.prefixes is None else law.records.prefixes.length
    total = _prefix_law(law, length) * terms[:, length:].prod(axis=1)
    assert np.isclose(total.sum(), 1) or law.pair_masks
    return total / total.sum()


def _term(law, position):
    i = ORDER[position]
    distribution = law.network.distribution(UNIVERSE, i)
    for (a, b), mask in law.pair_masks.items():
        other = b if i == a else a
        if i in (a, b) and other in ORDER[:position]:
            allowed = mask.T if i == a else mask
            distribution = distribution * allowed[UNIVERSE[:, other]]
    total = distribution.sum(axis=1)
    assert (total > 0).all()
    return distribution[np.arange(len(UNIVERSE)), UNIVERSE[:, i]] / total


def _prefix_law(law, length):
    listed = law.records.prefixes
    if listed is None:
        return np.ones(len(UNIVERSE))
    own = UNIVERSE[:, list(ORDER[:length])]
    return _look_up(own, listed.prefixes, listed.weights / listed.weights.sum())


def _look_up(own, prefixes, values):
    same = (own[:, None, :] == prefixes[None, :, :]).all(axis=2)
    return same @ values
