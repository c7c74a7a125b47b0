"""Metrics of a release: the result of an evaluation and its JSON form, metrics.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Literal

from deniable.evaluation.distinguishability import Distinguishability
from deniable.evaluation.effort import Effort
from deniable.evaluation.marginals import Marginal
from deniable.evaluation.ml_efficacy import MlEfficacy
from deniable.evaluation.relations import Relations
from deniable.evaluation.release_claim import ReleaseClaim
from deniable.evaluation.subgroups import SubgroupFindings
from deniable.evaluation.verdict import DistancesByWidth, Verdict
from deniable.release.query_answer import QueryAnswer

FORMAT = "deniable metrics 1"

Edition = Literal["internal", "public"]

DISCLOSURE = (
    "Confidential: these results were measured on real rows and disclose something about them. No "
    "privacy guarantee covers them. Store this report with the real table, and give other people "
    "the public edition."
)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results measured on real rows. All of them are confidential.

    Attributes:
        rows: Number of rows of each real table.
        held_out: Whether the reference rows were held out from the release.
        distances: By width ("attributes", "pairs", "triples"), then by compared table.
        relations: Relations between columns; None if fewer than two columns have groups.
        learning: Machine learning efficacy; None if there is only one attribute.
        game: Distinguishability of released and real records.
        groups: Rare combinations and small subgroups.
        verdict: Grade and findings in words.
        effort: Sizes of the evaluation.
    """

    rows: Mapping[str, int]
    held_out: bool
    distances: DistancesByWidth
    relations: Relations | None
    learning: MlEfficacy | None
    game: Distinguishability
    groups: SubgroupFindings
    verdict: Verdict
    effort: Effort

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
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
            "effort": {**asdict(self.effort), "thorough": self.effort.is_thorough},
            "relations": None if self.relations is None else self.relations.document(),
            "distances": distances,
            "learning": None if self.learning is None else self.learning.document(),
            "game": self.game.document(),
            "groups": self.groups.document(),
        }


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Result of an evaluation.

    Attributes:
        edition: "internal" (confidential) or "public".
        records: Number of released records.
        claim: The privacy claim of the manifest, if there is one.
        marginals: The distribution of every column; a public edition has released records only.
        strongest: The strong associations within the released records: two columns, Cramér's V.
        findings: Results measured on real rows; None in a public edition.
        estimates: The table of each column of the artefact, with intervals; none without one.
    """

    edition: Edition
    records: int
    claim: ReleaseClaim | None
    marginals: tuple[Marginal, ...] = field(repr=False)
    strongest: tuple[tuple[tuple[str, str], float], ...] = field(repr=False)
    findings: Findings | None = field(repr=False)
    estimates: tuple[QueryAnswer, ...] = field(default=(), repr=False)

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        found: dict[str, object] = {
            "format": FORMAT,
            "version": version("deniable"),
            "edition": self.edition,
            "records": self.records,
            "guarantee": None if self.claim is None else self.claim.document(),
            "marginals": [marginal.document() for marginal in self.marginals],
            "strongest_associations": [
                {"attributes": list(names), "released": strength}
                for names, strength in self.strongest
            ],
        }
        if self.estimates:
            found["estimates"] = [answer.document() for answer in self.estimates]
        if self.findings is None:
            return found
        return found | {"disclosure": DISCLOSURE} | self.findings.document()
