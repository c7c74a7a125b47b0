"""Runs of the shipped mechanism on neighbouring tables: what each run released, as scores.

A run reads a table, learns from it with the system's noise, and scores what was released. Most runs
of some cases stop at the noisy counts: there the rows are read for the last time, and what follows
(the fit of the model) depends on those counts alone.
"""

from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Mask, Reals
from deniable.audit.likelihood_ratio import (
    CountStage,
    combine_parts,
    histogram_ratios,
    pairwise_stages,
    table_ratios,
)
from deniable.audit.neighbours import NeighbourCase
from deniable.audit.planted_faults import (
    Fault,
    planted_artefact,
    planted_plan,
    planted_randomness,
    planted_schema,
)
from deniable.audit.released_facts import artefact_facts, draft_facts, record_facts
from deniable.config import Config
from deniable.drafting.draft import draft_schema
from deniable.errors import InvariantError
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.pipeline.api import learn, make_artefact, partition_rows, read_rows, synthesize
from deniable.pipeline.learn_model import learn_model, measure_counts
from deniable.pipeline.run_plan import Run, RunPlan, plan_run, resolve_options
from deniable.privacy.ledger import Part
from deniable.privacy.pairwise_budget import PairNoise
from deniable.randomness import Keyed, Randomness, Secret
from deniable.release.artefact import Artefact

# Runs of a block: the unit of work of a process, and of a checkpoint.
BLOCK_RUNS = 20
# Share of complete runs beyond the default number, where the mode allows others.
_LATER_COMPLETE = 0.02
SEEDS_STAGE = "seed prefixes"


@dataclass
class RunBlock:
    """What a block of runs has shown, as JSON will have it.

    Attributes:
        present: For each run, whether each target was in the table.
        scores: For each run, the log likelihood ratio of each target.
        first: For each run, the noise of the first number of every stage, in units of its σ.
        facts: The facts of complete runs, by the number of the run in the block.
        stages: For each stage, the number of noise values, the sums of their first, second and
            fourth powers in units of σ, and the sum over runs of the mean μ² of the targets.
        undeniable: Released records with fewer than k plausible seeds, in mode ``tested``.
    """

    present: list[list[int]] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    first: list[list[float]] = field(default_factory=list)
    facts: dict[str, dict[str, float | str]] = field(default_factory=dict)
    stages: dict[str, list[float]] = field(default_factory=dict)
    undeniable: int = 0

    def add_stages(self, stages: list[CountStage]) -> None:
        """Add the noise of one run."""
        information: dict[str, float] = {}
        for stage in stages:
            noise = stage.noise / np.sqrt(stage.variance)
            powers = [len(noise), noise.sum(), (noise**2).sum(), (noise**4).sum()]
            sums = self.stages.setdefault(stage.name, [0.0] * 5)
            for at, value in enumerate(powers):
                sums[at] += float(value)
            information.setdefault(stage.name, 0.0)
            information[stage.name] += float(stage.information.mean())
        for name, value in information.items():
            self.stages[name][4] += value
        self.first.append(
            [round(float(stage.noise[0] / np.sqrt(stage.variance)), 4) for stage in stages]
        )


def measure_block(
    case: NeighbourCase,
    block: int,
    *,
    fault: Fault | None = None,
    key: int | None = None,
) -> RunBlock:
    """Make a block of runs and score them.

    Args:
        case: The tables and options.
        block: Number of the block.
        fault: A fault to plant.
        key: For tests only: reproducible noise. None: the system's.
    """
    found = RunBlock()
    plan = case.plan if case.mode != "draft" else None
    for at in range(BLOCK_RUNS):
        number = block * BLOCK_RUNS + at
        own: Randomness = Secret() if key is None else Keyed(key + number)
        present = _presence(case, number, own)
        is_complete = _is_complete(case, number)
        noise = planted_randomness(fault, own)
        if plan is None:
            found.facts[str(at)] = _draft_run(case, present, noise)
            scores = np.zeros(len(present))
        elif case.records is not None:
            scores = _record_run(found, case, present, noise, at=at)
        else:
            one = _ArtefactRun(case, plan, present, noise, fault)
            scores = one.score(found, at, is_complete=is_complete, own=own)
        found.present.append(present.astype(int).tolist())
        found.scores.append([round(float(score), 5) for score in scores])
    return found


def _is_complete(case: NeighbourCase, number: int) -> bool:
    """Whether a run goes all the way: by pairs of runs; fewer in runs beyond the default number."""
    share = case.complete if number < 2 * case.runs else min(case.complete, _LATER_COMPLETE)
    pair = number // 2
    return int(pair * share) != int((pair + 1) * share)


def _presence(case: NeighbourCase, number: int, randomness: Randomness) -> Mask:
    """Which targets a run has: in turn, or by independent coins if there are several."""
    if len(case.targets) == 1:
        return np.array([number % 2 == 1])
    return randomness.at("identifiers").integers(2, len(case.targets)).astype(bool)


@dataclass(frozen=True)
class _ArtefactRun:
    """One run of a mode that learns an artefact."""

    case: NeighbourCase
    plan: RunPlan
    present: Mask
    noise: Randomness
    fault: Fault | None

    def score(self, found: RunBlock, at: int, *, is_complete: bool, own: Randomness) -> Reals:
        """Run, add what is found to the block, and return the score of each target."""
        rows = self.case.rows(self.present)
        if not is_complete and self.plan.mode == "seedless" and self.plan.privacy.pairs is not None:
            evidence = self._counts(rows)
            if tuple(map(len, evidence.values)) != self.case.schema.sizes:
                return self._unscored()
            ratios = self._pair_ratios(found, evidence, rows)
            return combine_parts(ratios, self.plan.fractions)
        artefact = self._artefact(rows)
        artefact = planted_artefact(self.fault, artefact, len(rows), own.at("values"))
        found.facts[str(at)] = dict(artefact_facts(artefact))
        if artefact.schema.sizes != self.case.schema.sizes:
            return self._unscored()
        return self._score_artefact(found, artefact, rows)

    def _run(self, rows: Codes) -> Run:
        schema = planted_schema(self.fault, self.case.schema, rows)
        config = resolve_options(Config.assemble(dict(self.case.options)), schema)
        plan = self.plan if schema is self.case.schema else plan_run(schema, config)
        return Run(
            schema=schema,
            config=config,
            plan=planted_plan(self.fault, plan),
            randomness=self.noise,
        )

    def _counts(self, rows: Codes) -> PairwiseMeasurements:
        """Read the table and measure its counts: the shipped path, up to the fit."""
        run = self._run(rows)
        table = read_rows(self.case.frame(self.present), run)
        laws = _laws_of_pairs(run.plan)
        return measure_counts(partition_rows(table.rows, run), run, laws)[0]

    def _artefact(self, rows: Codes) -> Artefact:
        """Learn the artefact: by the API, or with a planted fault by its steps."""
        frame = self.case.frame(self.present)
        if self.fault is None:
            return learn(frame, self.case.schema, noise=self.noise, **self.case.options)
        run = self._run(rows)
        table = read_rows(frame, run)
        parts = partition_rows(table.rows, run)
        return make_artefact(learn_model(parts, run), parts["seeds"], table.kind, run)

    def _unscored(self) -> Reals:
        """No score: other domains than the schema's, and no law says how likely they are."""
        return np.zeros(len(self.present))

    def _pair_ratios(
        self, found: RunBlock, evidence: PairwiseMeasurements, rows: Codes
    ) -> dict[Part, Reals]:
        pairs = _laws_of_pairs(self.plan)
        case, ratios = self.case, dict[Part, Reals]()
        # With a split, which part a row is in is unknown: count from an empty table.
        known = rows if self.plan.fractions is None else rows[:0]
        here = self.present if self.plan.fractions is None else np.zeros_like(self.present)
        stages = list(pairwise_stages(evidence, case.schema.names, known, case.targets, pairs))
        if self.case.used > 1:
            stages = [_times(stage, self.case.used) for stage in stages]
        if self.plan.fractions is None or not self.present.any():
            found.add_stages(stages)
        for stage in stages:
            before = ratios.get(stage.part, np.zeros(len(case.targets)))
            ratios[stage.part] = before + stage.log_ratios(here)
        return ratios

    def _score_artefact(self, found: RunBlock, artefact: Artefact, rows: Codes) -> Reals:
        case, plan, ratios = self.case, self.plan, dict[Part, Reals]()
        if isinstance(artefact.evidence, PairwiseMeasurements):
            ratios = self._pair_ratios(found, artefact.evidence, rows)
        else:
            known, here = rows, self.present
            if plan.fractions is not None:
                known, here = rows[:0], np.zeros_like(self.present)
            ratios["parameters"] = table_ratios(
                artefact.network, artefact.evidence, known, case.targets, here,
                law=plan.privacy.counts,
            )  # fmt: skip
        law = plan.privacy.seeds
        if law is not None and plan.fractions is None:
            k = Config.assemble(dict(case.options)).k
            ratios["seeds"], noise = histogram_ratios(
                artefact, rows, case.targets, self.present, k=k, law=law
            )
            _add_seed_noise(found, np.array(noise), law.variance)
        return combine_parts(ratios, plan.fractions)


def _laws_of_pairs(plan: RunPlan) -> PairNoise:
    """The noise of the default model."""
    if plan.privacy.pairs is None:
        raise InvariantError("the run does not measure pairs")
    return plan.privacy.pairs


def _times(stage: CountStage, used: int) -> CountStage:
    """The stage of a target that adds several equal rows."""
    return CountStage(stage.name, stage.part, stage.noise, stage.shifts * used, stage.variance)


def _add_seed_noise(found: RunBlock, noise: Reals, variance: float) -> None:
    """Add the noise of kept prefixes, whose law is not Gaussian: it has no μ."""
    if len(noise) and variance > 0:
        scaled = noise / np.sqrt(variance)
        sums = found.stages.setdefault(SEEDS_STAGE, [0.0] * 5)
        for at, value in enumerate([len(scaled), scaled.sum(), (scaled**2).sum()]):
            sums[at] += float(value)
        sums[3] += float((scaled**4).sum())


def _draft_run(case: NeighbourCase, present: Mask, noise: Randomness) -> dict[str, float | str]:
    """Draft a schema with differential privacy, and list its facts."""
    draft = draft_schema(
        case.frame(present),
        draft_epsilon=case.options["epsilon"],
        draft_delta=case.options["delta"],
        noise=noise,
    )
    return dict(draft_facts(draft.text, draft.notes))


def _record_run(
    found: RunBlock, case: NeighbourCase, present: Mask, noise: Randomness, *, at: int
) -> Reals:
    """Release records of a mode with real seeds; their score is the count of the target's prefix.

    In mode ``tested``, every record must share its prefix with at least k rows.
    """
    records = case.records or 1
    release = synthesize(
        case.frame(present), case.schema, records=records, noise=noise, **case.options
    )
    frame, parameters = release.frame(), release.certificate.parameters
    found.facts[str(at)] = dict(record_facts(frame, parameters))
    length = len(case.schema.names) - int(parameters["omega"][0])
    columns = [case.schema.names.index(name) for name in parameters["order"]][:length]
    values = [{v: i for i, v in enumerate(a.values)} for a in case.schema.attributes]
    codes = np.array([[values[i][row[i]] for i in columns] for row in frame.rows()])
    rows = case.rows(present)[:, columns]
    if case.mode == "tested":
        k = Config.assemble(dict(case.options)).k
        alike = (codes[:, None, :] == rows[None, :, :]).all(axis=2).sum(axis=1)
        found.undeniable += int((alike < k).sum())
    own = case.targets[:, columns]
    hits = (codes[None, :, :] == own[:, None, :]).all(axis=2).sum(axis=1)
    scores: Reals = hits.astype(np.float64)
    return scores
