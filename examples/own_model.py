"""A generative model of your own, released with plausible deniability.

    .venv/bin/python examples/own_model.py

The built-in model keeps the *first* attributes of a seed. This one keeps one of several *sets* of
attributes, which overlap and are no prefixes of each other, and draws the rest from marginals.
So the look-up that serves the built-in model does not apply, and the deniability test scans.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import deniable as dn
from deniable.arrays import CODE, Codes, Reals
from deniable.demo import demo_schema, demo_table
from deniable.randomness import Rng

# What is kept of a seed: one of these, each equally likely. Chosen without looking at the table.
KEPT = (
    ("sex", "income", "hours a week"),
    ("sex", "marital status", "relationship"),
    ("income", "schooling"),
    ("race", "born in"),
)


@dataclass(frozen=True)
class SetModel:
    """Keeps one set of attributes of a seed, drawn at random, and draws the others anew.

    Attributes:
        kept: One row a set, one column an attribute: whether the set keeps it.
        marginals: The distribution of each attribute, for those that are drawn.
    """

    kept: np.ndarray
    marginals: tuple[Reals, ...]

    @classmethod
    def of(
        cls, names: Sequence[str], sets: Sequence[Sequence[str]], marginals: Sequence[Reals]
    ) -> "SetModel":
        """Return the model that keeps one of these sets of names."""
        return cls(np.array([[name in one for name in names] for one in sets]), tuple(marginals))

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Return one candidate for each seed."""
        candidates = np.zeros(seeds.shape, dtype=CODE, order="F")
        keeps = self.kept[rng.integers(len(self.kept), len(seeds))]
        for i, marginal in enumerate(self.marginals):
            ends = np.cumsum(marginal)[:-1]
            drawn = np.searchsorted(ends, rng.random(len(seeds)), side="right")
            candidates[:, i] = np.where(keeps[:, i], seeds[:, i], drawn)
        return candidates

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Return ln Pr{y = M(d)}: the mean, over sets, of what each would give.

        A set gives y nothing unless d agrees with y on what it keeps; else the product of the
        marginals of what it draws, which is one number for all such d.
        """
        with np.errstate(divide="ignore"):
            logs = [np.log(p)[candidates[:, i]] for i, p in enumerate(self.marginals)]
        total: Reals = np.full((len(candidates), len(seeds)), -np.inf)
        for keeps in self.kept:
            drawn = np.sum([logs[i] for i in np.flatnonzero(~keeps)], axis=0)
            agrees = np.ones(total.shape, dtype=bool)
            for i in np.flatnonzero(keeps):
                agrees &= candidates[:, i, None] == seeds[None, :, i]
            total = np.logaddexp(total, np.where(agrees, drawn[:, None], -np.inf))
        total -= np.log(len(self.kept))
        return total


def main() -> None:
    """Learn marginals with noise, then release 1,000 records of the model above."""
    table, schema = demo_table(), demo_schema()

    # All that the model will ever know of the table, learnt with differential privacy: in a graph
    # without edges, each attribute's table is its marginal.
    marginals = dn.learn(table, schema, mode="seedless", graph={}, epsilon=0.5)
    tables = [each.probabilities[0] for each in marginals.network.tables]

    model = SetModel.of(schema.names, KEPT, tables)
    release = dn.synthesize(table, schema, records=1_000, mode="tested", model=model, k=50, gamma=4)
    sys.stdout.write(f"The marginals: {marginals.guarantee}\n\n")
    sys.stdout.write(f"The records: {release.guarantee}\n\n{release.frame().head()}\n")


if __name__ == "__main__":
    main()
