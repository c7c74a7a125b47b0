"""Size of an evaluation: runs, training rows, trees. A larger one gives narrower intervals."""

from dataclasses import dataclass
from typing import Self

from deniable.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sizes and key of an evaluation.

    Attributes:
        runs: Number of times each learner is trained. Each run has its own key and, if a table has
            more than ``rows`` rows, its own sample.
        rows: Maximum number of training rows of a learner.
        trees: Number of trees in a random forest.
        game: Maximum number of training records per side when real and released records are
            classified.
        key: Key of all random draws.
    """

    runs: int = 3
    rows: int = 100_000
    trees: int = 100
    game: int = 50_000
    key: int = 0

    def __post_init__(self) -> None:
        if min(self.runs, self.rows, self.trees, self.game) < 1:
            raise ConfigError("runs, rows, trees and game must each be at least 1")

    @classmethod
    def quick(cls) -> Self:
        """Return small sizes for a first impression; runs in seconds."""
        return cls(runs=1, rows=10_000, trees=30, game=5_000)
