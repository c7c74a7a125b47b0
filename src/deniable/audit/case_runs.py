"""Runs of the shipped mechanism on neighbouring tables: what each run released, as scores.

A run reads a table, learns from it with the system's noise, and scores what was released. Most runs
of some cases stop at the noisy counts: there the rows are read for the last time, and what follows
(the fit of the model) depends on those counts alone. Beyond the default number, such runs start at
the codes of the rows: what comes before maps each cell by itself, without noise.
"""

from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Mask, Reals
from deniable.audit.likelihood_ratio import MAX_LOG_RATIO, NoisyTable, noisy_tables
from deniable.audit.membership import (
    KnownRows,
    conditional_ratios,
    gaussian_ratios,
    known_rows,
    prefix_ratios,
)
from deniable.audit.neighbours import NeighbourCase
from deniable.audit.planted_faults import (
    Fault,
    planted_artefact,
    planted_plan,
    planted_randomness,
)
from deniable.audit.released_facts import artefact_facts, draft_facts, record_facts
from deniable.audit.split_counts import part_counts, split_numbers
from deniable.config import Config
from deniable.counting.local import LocalRows
from deniable.counting.rows import Rows
from deniable.drafting.draft import draft_schema
from deniable.errors import InvariantError
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.pipeline.api import (
    learn,
    make_artefact,
    partition_rows,
    read_rows,
    resolve_omegas,
    synthesize,
)
from deniable.pipeline.learn_model import learn_model, measure_counts
from deniable.pipeline.run_plan import Run, RunPlan, resolve_options
from deniable.privacy.pairwise_budget import PairNoise
from deniable.randomness import Keyed, Randomness, Secret
from deniable.release.artefact import Artefact

# Runs of a block: the unit of work of a process, and of a checkpoint.
BLOCK_RUNS = 20
# Share of complete runs beyond the default number, where the mode allows others.
_LATER_COMPLETE_SHARE = 0.02
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

    def add_noise(self, name: str, scaled: Reals, information: float = 0.0) -> None:
        """Add noise values of a stage in one run, in units of σ, and the μ² of a target."""
        powers = [len(scaled), scaled.sum(), (scaled**2).sum(), (scaled**4).sum()]
        sums = self.stages.setdefault(name, [0.0] * 5)
        for at, value in enumerate([*powers, information]):
            sums[at] += float(value)


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
            # Which rows of a person are used is a part of the mechanism.
            reads_cells = number < 2 * case.runs or case.copies > 1
            one = _ArtefactRun(case, plan, present, noise, fault, reads_cells)
            scores = one.score(found, at, is_complete=is_complete)
        found.present.append(present.astype(int).tolist())
        found.scores.append([round(float(score), 5) for score in scores])
    return found


def _is_complete(case: NeighbourCase, number: int) -> bool:
    """Whether a run goes all the way: by pairs of runs; fewer in runs beyond the default number."""
    share = case.complete if number < 2 * case.runs else min(case.complete, _LATER_COMPLETE_SHARE)
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
    reads_cells: bool = True

    def score(self, found: RunBlock, at: int, *, is_complete: bool) -> Reals:
        """Run, add what is found to the block, and return the score of each target."""
        rows = self.case.rows(self.present)
        if not is_complete and self.plan.mode == "seedless" and self.plan.privacy.pairs is not None:
            ratios = self._pair_ratios(found, self._counts(rows))
        else:
            artefact = planted_artefact(self.fault, self._artefact(), len(rows))
            found.facts[str(at)] = dict(artefact_facts(artefact))
            ratios = self._score_artefact(found, artefact)
        return np.clip(ratios, -MAX_LOG_RATIO, MAX_LOG_RATIO)

    def _run(self) -> Run:
        return Run(
            schema=self.case.schema,
            config=resolve_options(Config.assemble(dict(self.case.options)), self.case.schema),
            plan=planted_plan(self.fault, self.plan),
            randomness=self.noise,
        )

    def _counts(self, rows: Codes) -> PairwiseMeasurements:
        """Read the table and measure its counts: the shipped path, up to the fit."""
        run = self._run()
        present: Rows = LocalRows(rows)
        if self.reads_cells:
            present = read_rows(self.case.frame(self.present), run).rows
        return measure_counts(present, run, _laws_of_pairs(run.plan))[0]

    def _artefact(self) -> Artefact:
        """Learn the artefact: by the API, or with a planted fault by its steps."""
        frame = self.case.frame(self.present)
        if self.fault is None:
            return learn(frame, self.case.schema, noise=self.noise, **self.case.options)
        run = self._run()
        table = read_rows(frame, run)
        parts = partition_rows(table.rows, run)
        learnt = learn_model(parts, run)
        (omega,) = resolve_omegas(learnt, run)
        return make_artefact(learnt, omega, parts["seeds"], table.kind, run)

    def _known(self) -> KnownRows:
        """What the attacker knows: all rows but the target."""
        case, number = self.case, len(self.case.targets)
        weights = np.ones(len(case.base) + number)
        weights[len(case.base) :] = case.used * self.present
        return known_rows(
            np.concatenate([case.base, case.targets]),
            weights,
            len(case.base) + np.arange(number),
            self.plan,
            copies=case.used,
        )

    def _pair_ratios(self, found: RunBlock, evidence: PairwiseMeasurements) -> Reals:
        """Log ratios of the noisy counts; add their noise to the block."""
        ratios, first, known = np.zeros(len(self.present)), list[float](), self._known()
        for table in noisy_tables(evidence, self.case.schema.names, _laws_of_pairs(self.plan)):
            own, noise = gaussian_ratios(table, known)
            ratios += own
            scaled = noise / np.sqrt(table.variance)
            first.append(round(float(scaled[0]), 4))
            found.add_noise(table.name, scaled, _information(table, known))
        found.first.append(first)
        return ratios

    def _score_artefact(self, found: RunBlock, artefact: Artefact) -> Reals:
        noise, known = self.plan.privacy, self._known()
        if isinstance(artefact.evidence, PairwiseMeasurements):
            ratios = self._pair_ratios(found, artefact.evidence)
        else:
            ratios = conditional_ratios(
                artefact.evidence,
                artefact.network.graph,
                artefact.schema.attributes,
                known,
                law=noise.counts,
            )
        if self.plan.fractions is not None:
            for name, number in split_numbers(part_counts(artefact, known, noise)):
                found.add_noise(name, np.array([number]))
        kept = artefact.histogram
        if kept is not None and noise.seeds is not None:
            k = Config.assemble(dict(self.case.options)).k
            own, errors = prefix_ratios(kept, artefact.network.order, known, k=k, law=noise.seeds)
            ratios += own
            if len(errors) and noise.seeds.variance > 0:  # not Gaussian: it has no μ
                found.add_noise(SEEDS_STAGE, errors / np.sqrt(noise.seeds.variance))
        return ratios


def _information(table: NoisyTable, known: KnownRows) -> float:
    """μ² of a target in one table: its squared shift in units of the noise."""
    return known.copies**2 * table.squared_shift / table.variance


def _laws_of_pairs(plan: RunPlan) -> PairNoise:
    """The noise of the default model."""
    if plan.privacy.pairs is None:
        raise InvariantError("the run does not measure pairs")
    return plan.privacy.pairs


def _draft_run(case: NeighbourCase, present: Mask, noise: Randomness) -> dict[str, float | str]:
    """Draft a schema with differential privacy, and list its facts."""
    draft = draft_schema(
        case.frame(present),
        draft_epsilon=case.options["epsilon"],
        draft_delta=case.options["delta"],
        accept_large_delta=True,
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
