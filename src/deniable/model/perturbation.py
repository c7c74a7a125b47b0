"""Another seed-based model, unlike the first: change every attribute of the seed a little.

Nothing is learnt, so nothing of the data is in the model; and every seed can produce every
record, with a probability that falls with their distance. So a deniability test by scan has real
work to do: it shows that the test serves any ``GenerativeModel``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Reals
from deniable.data.attributes import Attribute
from deniable.errors import ConfigError
from deniable.model.network import ConditionalTable, empty_codes
from deniable.randomness import Rng

# The model holds a square table an attribute.
_MOST_VALUES = 4096


@dataclass(frozen=True)
class PerturbationModel:
    """Moves each number of a seed by a few steps; keeps each category, or draws it anew.

    Attributes:
        attributes: What each column of the codes may hold.
        tables: Pr{value → value'} of each attribute, one row a value of the seed.
    """

    attributes: tuple[Attribute, ...]
    tables: tuple[ConditionalTable, ...]

    @classmethod
    def of(
        cls, attributes: Sequence[Attribute], *, stay: float, step: float
    ) -> "PerturbationModel":
        """Return the model for these attributes.

        Args:
            attributes: What each column of the codes may hold.
            stay: How likely a category is kept; else it is drawn uniformly, 0 ≤ stay < 1.
            step: A number moves from a to b with probability ∝ exp(-|a - b| / step), step > 0.
        """
        if not (0 <= stay < 1 and 0 < step < np.inf):
            raise ConfigError(f"need 0 ≤ stay < 1 and step > 0; got {stay} and {step}")
        large = [a.name for a in attributes if a.size > _MOST_VALUES]
        if large:
            raise ConfigError(f'"{large[0]}" has more than {_MOST_VALUES} values')
        tables = [ConditionalTable(_transition(a, stay, step)) for a in attributes]
        return cls(tuple(attributes), tuple(tables))

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Return one candidate for each seed."""
        candidates = empty_codes(len(seeds), self.attributes)
        for i, table in enumerate(self.tables):
            candidates[:, i] = table.alias.draw_finely(
                seeds[:, i].astype(np.intp), rng.random(len(seeds))
            )
        return candidates

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Return ln Pr{y = M(d)}: attributes move independently, so logarithms add."""
        # One row a seed, turned at the end: to copy whole rows is faster than cell by cell.
        total = np.zeros((len(seeds), len(candidates)))
        for i, table in enumerate(self.tables):
            of_candidates = table.logarithms.take(candidates[:, i], axis=1)
            total += of_candidates.take(seeds[:, i], axis=0)
        return total.T


def _transition(attribute: Attribute, stay: float, step: float) -> Reals:
    """Return Pr{value → value'} of one attribute, one row a value of the seed."""
    keep_or_flip = np.full((attribute.size, attribute.size), (1 - stay) / attribute.size)
    np.fill_diagonal(keep_or_flip, keep_or_flip[0, 0] + stay)
    if attribute.kind != "integer":
        return keep_or_flip
    numbers = attribute.bins
    places = np.arange(numbers)
    moves = np.exp(-np.abs(places[:, None] - places) / step)
    # What is missing stays missing, or not, as a category does; a number does not get lost.
    table = keep_or_flip
    table[:numbers] = 0
    table[:numbers, :numbers] = moves / moves.sum(axis=1, keepdims=True)
    return table
