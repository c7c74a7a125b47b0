"""How much work an evaluation may be: more of it gives narrower intervals."""

from dataclasses import dataclass
from typing import Self

from deniable.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The sizes of an evaluation.

    Attributes:
        runs: How often every learner is trained, each time by another key and, where there are
            more rows than it may have, on other rows.
        rows: The most rows a learner is trained on.
        trees: The size of a forest.
        game: The most records of each side that the distinguishing game trains on.
        key: Addresses everything that is drawn.
    """

    runs: int = 3
    rows: int = 100_000
    trees: int = 100
    game: int = 50_000
    key: int = 0

    def __post_init__(self) -> None:
        if min(self.runs, self.rows, self.trees, self.game) < 1:
            raise ConfigError("an evaluation needs at least one run, row, tree and record")

    @classmethod
    def quick(cls) -> Self:
        """Return what suffices for a first look, in seconds."""
        return cls(runs=1, rows=10_000, trees=30, game=5_000)
