"""Retrain on the audited table: the shipped way from rows to a release, many times.

Every retraining draws new noise from the operating system. Which targets are in the table is
decided by a coin each.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask, Reals
from deniable.audit.membership import (
    KnownRows,
    evidence_ratios,
    known_rows,
    prefix_ratios,
    released_prefix_ratios,
)
from deniable.audit.query_attacks import QueryAttack
from deniable.counting.local import LocalRows
from deniable.data.dataframes import FrameKind
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import make_artefact, partition_rows, resolve_omegas
from deniable.pipeline.certificate import certify
from deniable.pipeline.learn_model import learn_model
from deniable.pipeline.run_plan import Run
from deniable.pipeline.seed_modes import builtin_source, release_candidates
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.workers import no_progress


@dataclass(frozen=True, kw_only=True)
class AuditedTable:
    """The table under audit, its targets and the options of a release. Confidential.

    Attributes:
        codes: The rows that releases are learnt from, targets included.
        targets: Indices of the targets.
        run: The options, the plan and the source of noise.
        kind: The kind of data frame that the table came in.
        records: Records that an attacker sees of each release.
    """

    codes: Codes = field(repr=False)
    targets: Indices = field(repr=False)
    run: Run
    kind: FrameKind = field(repr=False)
    records: int

    @property
    def has_artefact(self) -> bool:
        """Whether the mode publishes an artefact with its noisy counts."""
        return self.run.plan.mode in ("one-shot", "seedless")

    def run_number(self, number: int) -> Run:
        """The run of one retraining: its own noise, and one thread.

        A test source of noise would repeat itself, so each number has a stream of its own.
        """
        noise = self.run.randomness
        if not noise.is_secret:
            noise = Keyed.derived(noise.at("scan", number))
        config = replace(self.run.config, workers=1)
        return replace(self.run, config=config, randomness=noise, progress=no_progress)

    def rows(self, present: Mask) -> Codes:
        """The table with only those of the targets that are present."""
        return np.asfortranarray(np.delete(self.codes, self.targets[~present], axis=0))

    def known(self, present: Mask) -> KnownRows:
        """What an attacker of each target knows: all other rows, the other targets included."""
        weights = np.ones(len(self.codes))
        weights[self.targets] = present
        return known_rows(self.codes, weights, self.targets, self.run.plan)


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """A release of a retraining.

    Attributes:
        artefact: The artefact; None in modes that have none.
        model: The model of modes whose records are made of real seeds; None in others.
        records: The released records, as codes.
        guarantee: What is promised, in words.
    """

    artefact: Artefact | None = field(repr=False)
    model: NetworkModel | None = field(repr=False)
    records: Codes = field(repr=False)
    guarantee: str


def retrain(audited: AuditedTable, codes: Codes, run: Run, *, key: int) -> Retrained:
    """Make a release of some rows, by the path of ``learn``, ``generate`` and ``synthesize``."""
    parts = partition_rows(LocalRows(codes, run.config.workers), run)
    learnt = learn_model(parts, run)
    if audited.has_artefact:
        (omega,) = resolve_omegas(learnt, run)
        artefact = make_artefact(learnt, omega, parts["seeds"], audited.kind, run)
        blocks = artefact.records(audited.records, Keyed(key), workers=1).blocks()
        return Retrained(
            artefact=artefact,
            model=None,
            records=np.concatenate(list(blocks)),
            guarantee=artefact.guarantee,
        )
    model = NetworkModel(learnt.network, resolve_omegas(learnt, run))
    source = builtin_source(model, parts["seeds"], run, records=audited.records)
    released, _ = release_candidates(source, run, records=audited.records)
    extra = {"records": audited.records, **source.parameters}
    return Retrained(
        artefact=None,
        model=model,
        records=np.concatenate(list(released.blocks())),
        guarantee=certify(run, omegas=source.omegas, extra=extra).sentence,
    )


def artefact_ratios(artefact: Artefact, known: KnownRows, run: Run) -> Reals:
    """Log likelihood ratio of everything noisy in an artefact, for each target."""
    ratios = evidence_ratios(artefact.evidence, artefact.network.graph, known, run)
    law, order = run.plan.privacy.seeds, artefact.network.order
    if artefact.histogram is not None and law is not None:
        own, _ = prefix_ratios(artefact.histogram, order, known, k=run.config.k, law=law)
        ratios = ratios + own
    return ratios


def pass_probability(run: Run) -> Callable[[float], float]:
    """Probability that a candidate passes the deniability test, by its number of seeds."""
    k, test = run.config.k, run.plan.test
    if test is None:
        return lambda plausible: float(plausible >= k)
    one_sided = test.law.table.probabilities()
    below = np.cumsum(np.concatenate([one_sided[:0:-1], one_sided]))
    radius = test.law.radius
    return lambda plausible: float(
        below[int(np.clip(math.floor(plausible) - k + radius, 0, 2 * radius))]
    )


@dataclass(frozen=True, kw_only=True)
class CoinRun:
    """Scores and answers of one retraining with coins.

    Attributes:
        present: Which targets were in the table.
        ratios: The log likelihood ratio of each target: of the artefact, or of released prefixes.
        answers: Answers of the released records to the queries, target by query.
    """

    present: Mask
    ratios: Reals
    answers: Counts

    def document(self) -> dict[str, Any]:
        """Return the JSON form of a checkpoint."""
        return {
            "present": "".join("01"[coin] for coin in self.present.astype(int)),
            "ratios": self.ratios.tolist(),
            "answers": [" ".join(map(str, row)) for row in self.answers.tolist()],
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> "CoinRun":
        """Read a checkpoint."""
        return cls(
            present=np.array([coin == "1" for coin in saved["present"]]),
            ratios=np.array(saved["ratios"], dtype=np.float64),
            answers=np.array([row.split() for row in saved["answers"]], dtype=np.int64),
        )


def retrain_with_coins(audited: AuditedTable, queries: QueryAttack, number: int) -> CoinRun:
    """Retrain with each target included by a fair coin; score all of them.

    The attacker knows all other rows of the retraining, the other targets' coins included.
    """
    run = audited.run_number(number)
    coins = Keyed(number).at("split").random(len(audited.targets)) < 0.5
    made = retrain(audited, audited.rows(coins), run, key=number)
    known = audited.known(coins)
    if made.artefact is not None:
        ratios = artefact_ratios(made.artefact, known, run)
    elif made.model is not None:
        ratios = released_prefix_ratios(made.records, made.model, known, pass_probability(run))
    return CoinRun(present=coins, ratios=ratios, answers=queries.answers(made.records))
