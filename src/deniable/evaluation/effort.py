"""Size of an evaluation: runs, training and test rows, trees. A larger one is more exact."""

from dataclasses import dataclass, fields
from typing import Self

from deniable.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sizes and key of an evaluation. The defaults are those of a thorough one.

    Attributes:
        runs: Number of times each learner is trained. Each run has its own key and, if a table has
            more than ``rows`` rows, its own sample.
        rows: Maximum number of training rows of a learner.
        trees: Number of trees in a random forest.
        game: Maximum number of training records per side when real and released records are
            classified.
        test_rows: Maximum number of test rows of a learner. Intervals follow from the rows used.
        key: Key of all random draws.
    """

    runs: int = 3
    rows: int = 100_000
    trees: int = 100
    game: int = 50_000
    test_rows: int = 1_000_000_000
    key: int = 0

    def __post_init__(self) -> None:
        if min(self.runs, self.rows, self.trees, self.game, self.test_rows) < 1:
            raise ConfigError("runs, rows, trees, game and test_rows must each be at least 1")

    @classmethod
    def quick(cls) -> Self:
        """Return the sizes of a first report, which takes seconds."""
        return cls(runs=1, rows=10_000, trees=30, game=5_000, test_rows=10_000)

    @property
    def is_thorough(self) -> bool:
        """Whether no size is below its default."""
        return all(
            getattr(self, each.name) >= each.default for each in fields(self) if each.name != "key"
        )
