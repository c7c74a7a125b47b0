"""A generative model that perturbs every attribute of a seed, released with plausible deniability.

    .venv/bin/python examples/perturbation_model.py

Nothing is learnt, so the model contains no information about the table. Every seed can produce any
record, with a probability that decreases with their distance, so the deniability test is a scan of
all seeds.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import deniable as dn
from deniable.arrays import Codes, Reals
from deniable.demo import demo_schema, demo_table
from deniable.errors import ConfigError
from deniable.model.bayesian_network import ConditionalTable, empty_codes
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

# Each attribute has a transition matrix of its size squared.
MAX_VALUES = 4096


@dataclass(frozen=True)
class PerturbationModel:
    """Moves each integer of a seed by a few steps; keeps each category, or draws it uniformly.

    Attributes:
        attributes: The domain of each column of the codes.
        tables: The transition matrix Pr{value → value'} of each attribute.
    """

    attributes: tuple[Attribute, ...]
    tables: tuple[ConditionalTable, ...]

    @classmethod
    def of(
        cls, attributes: Sequence[Attribute], *, stay: float, step: float
    ) -> "PerturbationModel":
        """Create the model for these attributes.

        Args:
            attributes: The domain of each column of the codes.
            stay: The probability that a category is kept; else it is drawn uniformly, 0 ≤ stay < 1.
            step: An integer moves from a to b with probability ∝ exp(-|a - b| / step), step > 0.
        """
        if not (0 <= stay < 1 and 0 < step < np.inf):
            raise ConfigError(f"need 0 ≤ stay < 1 and step > 0; got {stay} and {step}")
        large = [a.name for a in attributes if a.size > MAX_VALUES]
        if large:
            raise ConfigError(f'"{large[0]}" has more than {MAX_VALUES} values')
        tables = [ConditionalTable(_transition(a, stay, step)) for a in attributes]
        return cls(tuple(attributes), tuple(tables))

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Draw one candidate for each seed."""
        candidates = empty_codes(len(seeds), self.attributes)
        for i, table in enumerate(self.tables):
            candidates[:, i] = table.alias.draw_precise(
                seeds[:, i].astype(np.intp), rng.random(len(seeds))
            )
        return candidates

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Compute ln Pr{y = M(d)}: attributes move independently, so logarithms add."""
        # One row per seed, transposed at the end: copying rows is faster than copying cells.
        total = np.zeros((len(seeds), len(candidates)))
        for i, table in enumerate(self.tables):
            of_candidates = table.logarithms.take(candidates[:, i], axis=1)
            total += of_candidates.take(seeds[:, i], axis=0)
        return total.T


def _transition(attribute: Attribute, stay: float, step: float) -> Reals:
    """Compute the transition matrix of one attribute: one row per value of the seed."""
    keep_or_flip = np.full((attribute.size, attribute.size), (1 - stay) / attribute.size)
    np.fill_diagonal(keep_or_flip, keep_or_flip[0, 0] + stay)
    if attribute.kind != "integer":
        return keep_or_flip
    numbers = attribute.bins
    places = np.arange(numbers)
    moves = np.exp(-np.abs(places[:, None] - places) / step)
    # A missing cell behaves as a category; a number never becomes missing.
    table = keep_or_flip
    table[:numbers] = 0
    table[:numbers, :numbers] = moves / moves.sum(axis=1, keepdims=True)
    return table


def main() -> None:
    """Release 10 records of the demonstration table."""
    table, schema = demo_table(), demo_schema()
    release = dn.synthesize(
        table,
        schema,
        records=10,
        mode="tested",
        model=PerturbationModel.of(schema.attributes, stay=0.2, step=20),
        k=20,
        gamma=16,
        max_check_plausible=5_000,
    )
    sys.stdout.write(f"{release.guarantee}\n\n{release.frame()}\n")


if __name__ == "__main__":
    main()
