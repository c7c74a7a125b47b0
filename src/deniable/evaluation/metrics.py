"""Metrics of a release: the result of an evaluation and its JSON form, metrics.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Literal

from deniable.evaluation.distinguishability import Distinguishability
from deniable.evaluation.effort import Effort
from deniable.evaluation.estimates import Estimates
from deniable.evaluation.marginals import Marginal
from deniable.evaluation.ml_efficacy import MlEfficacy
from deniable.evaluation.reference_tables import AdjustedColumn
from deniable.evaluation.relations import Relations
from deniable.evaluation.release_claim import ReleaseClaim
from deniable.evaluation.subgroups import SubgroupFindings
from deniable.evaluation.verdict import DistancesByWidth, Verdict
from deniable.html import Markup, notebook_summary, tag

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
        records: Number of released records.
        adjusted: Columns of the real table with cells whose value the schema has not.
        rows: Number of rows of each real table.
        held_out: Whether the reference rows were held out from the release.
        marginals: The distribution of every column.
        distances: By width ("attributes", "pairs"), then by compared table.
        relations: Relations between columns; None if fewer than two columns have groups.
        learning: Machine learning efficacy; None if there is only one attribute.
        game: Distinguishability of released and real records.
        groups: Small subgroups.
        verdict: Grade and findings in words.
        effort: Sizes of the evaluation.
    """

    records: int
    adjusted: tuple[AdjustedColumn, ...] = field(repr=False)
    rows: Mapping[str, int]
    held_out: bool
    marginals: tuple[Marginal, ...] = field(repr=False)
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
            "records": self.records,
            "moved": {
                "columns": {each.name: each.moved for each in self.adjusted if each.is_named},
                "cells": {each.name: dict(each.counts) for each in self.adjusted},
            },
            "marginals": [marginal.document() for marginal in self.marginals],
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
        claim: The privacy claim of the manifest, if there is one.
        findings: Results measured on real rows; None in a public edition.
        estimates: Estimates from the artefact; None in an internal edition, and without an
            artefact.
    """

    edition: Edition
    claim: ReleaseClaim | None
    findings: Findings | None = field(default=None, repr=False)
    estimates: Estimates | None = field(default=None, repr=False)

    def _repr_html_(self) -> str:
        """Show the claim in a notebook; no result that was measured on real rows."""
        facts: dict[str, object] = {"edition": self.edition}
        more: list[Markup] = []
        if self.claim is not None:
            verified = "yes" if self.claim.holds else f"no: {self.claim.doubt}"
            facts |= {"mode of the release": self.claim.mode, "guarantee verified": verified}
            more = [tag("p", self.claim.sentence)]
        if self.findings is not None:
            where = "metrics.findings, or the report that evaluate(…, out=…) writes"
            more.append(tag("p", f"{DISCLOSURE} They are not shown here: see {where}."))
        return notebook_summary("Metrics", facts, *more)

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        found: dict[str, object] = {
            "format": FORMAT,
            "version": version("deniable"),
            "edition": self.edition,
            "guarantee": None if self.claim is None else self.claim.document(),
        }
        if self.estimates is not None:
            found["estimates"] = self.estimates.document()
        if self.findings is None:
            return found
        return found | {"disclosure": DISCLOSURE} | self.findings.document()
