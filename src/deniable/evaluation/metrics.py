"""Metrics: all that was measured of a release, in one value, and as metrics.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Literal

from deniable.evaluation.effort import Effort
from deniable.evaluation.game import Game
from deniable.evaluation.groups import Groups
from deniable.evaluation.guarantee import Claim
from deniable.evaluation.learning import Learning
from deniable.evaluation.likeness import Compared, Verdict
from deniable.evaluation.marginals import Marginal

FORMAT = "deniable metrics 1"

Edition = Literal["internal", "public"]

DISCLOSURE = (
    "Everything here that was measured on real rows discloses something about them, and no "
    "guarantee covers it. Keep it where the real table is kept; for everybody else there is the "
    "public edition."
)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What was measured on real rows: confidential, all of it.

    Attributes:
        rows: How many rows each real table has.
        held_out: Whether the reference is a held-out table.
        distances: By width ("attributes", "pairs", "triples"), then by what was compared.
        learning: Learners trained on the release; None where there is one attribute only.
        game: The distinguishing game.
        groups: What could not be kept.
        verdict: All of it in words.
        effort: How much work it was.
    """

    rows: Mapping[str, int]
    held_out: bool
    distances: Compared
    learning: Learning | None
    game: Game
    groups: Groups
    verdict: Verdict
    effort: Effort

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        against = "holdout" if self.held_out else "real"
        distances: dict[str, object] = {"against": against}
        for width, compared in self.distances.items():
            distances[width] = {
                **compared["released"].document(),
                "baselines": {name: compared[name].document() for name in ("marginals", "reals")},
            }
        return {
            "verdict": self.verdict.document(),
            "rows": dict(self.rows),
            "distances": distances,
            "learning": None if self.learning is None else self.learning.document(),
            "game": self.game.document(),
            "groups": self.groups.document(),
        }


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What an evaluation found.

    Attributes:
        edition: Who may read it.
        records: How many records were released.
        claim: What the manifest beside them says.
        marginals: The distribution of every column; in a public edition of the records alone.
        findings: What was measured on real rows; None in a public edition.
    """

    edition: Edition
    records: int
    claim: Claim | None
    marginals: tuple[Marginal, ...] = field(repr=False)
    findings: Findings | None = field(repr=False)

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        found: dict[str, object] = {
            "format": FORMAT,
            "version": version("deniable"),
            "edition": self.edition,
            "records": self.records,
            "guarantee": None if self.claim is None else self.claim.document(),
            "marginals": [marginal.document() for marginal in self.marginals],
        }
        if self.findings is None:
            return found
        return found | {"disclosure": DISCLOSURE} | self.findings.document()
