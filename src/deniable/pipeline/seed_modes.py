"""Modes ``tested`` and ``randomized``: candidates made of real seeds, each tested (Sec. 2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count as count_up
from typing import Any

from deniable.arrays import Codes, Counts, Mask
from deniable.config import Config
from deniable.counting.rows import Rows
from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.run_plan import Run
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import Law, exact
from deniable.release.deniability_test import (
    ScanLimits,
    pass_deterministic_test,
    pass_randomized_test,
)
from deniable.release.generation import (
    BLOCK,
    Feasible,
    KeptRecords,
    Kernel,
    always_feasible,
)
from deniable.release.seed_mechanism import (
    SCAN_BLOCK,
    DeniabilityTest,
    SeedMechanism,
    collect,
    hidden_omega_kernel,
    own_omega_kernel,
    randomized_kernel,
    scan_kernel,
)
from deniable.schema.schema import Schema
from deniable.workers import count_cores, map_in_order

# Candidates that are tried for each record before giving up; and at least, however few there are.
_ATTEMPTS_PER_RECORD = 1000
_MIN_ATTEMPTS = 2**22
# Of fewer records, a percent tells the exact number of candidates that passed.
_MIN_RECORDS_OF_PERCENTS = 1000


@dataclass(frozen=True, kw_only=True)
class CandidateSource:
    """The kernel that proposes and tests candidates, and its parameters in the manifest."""

    kernel: Kernel
    block_size: int
    omegas: tuple[int, ...]
    parameters: Mapping[str, Any]
    spends: tuple[Spend, ...] = ()


def builtin_source(model: NetworkModel, seeds: Rows, run: Run, *, records: int) -> CandidateSource:
    """Make the kernel of the built-in model: candidates are tested by their prefixes.

    Privacy:
        Covers: as the mode's own kernel.
    """
    test = run.plan.test
    law = test.law if test is not None else exact()
    mechanism = SeedMechanism(
        seeds=seeds,
        randomness=run.randomness,
        passes=_deniability_test(run, law),
        feasible=_feasible(run.schema),
    )
    kernel = _kernel(model, mechanism, run)
    # The cost of the tests is computed from what the kernel was given: its k, law and records.
    spends = () if test is None else (test.spend_for(law, k=run.config.k, records=records),)
    return CandidateSource(
        kernel=kernel,
        block_size=BLOCK,
        omegas=model.omegas,
        # σ follows from noisy values; with it the data holder can test every record again.
        parameters={"order": [run.schema.names[i] for i in model.network.order]},
        spends=spends,
    )


def own_model_source(model: GenerativeModel, seeds: Rows, run: Run) -> CandidateSource:
    """Make the kernel of a user's model: nothing is learnt, the test scans the seeds."""
    config = run.config
    mechanism = SeedMechanism(
        seeds=seeds,
        randomness=run.randomness,
        passes=_deterministic_test(config),
        feasible=_feasible(run.schema),
    )
    limits = ScanLimits(
        max_plausible=config.max_plausible, max_check_plausible=config.max_check_plausible
    )
    return CandidateSource(
        kernel=scan_kernel(mechanism, model, gamma=config.gamma, limits=limits),
        block_size=SCAN_BLOCK,
        omegas=(len(run.schema.names),),
        parameters={},
    )


def release_candidates(
    source: CandidateSource, run: Run, *, records: int
) -> tuple[KeptRecords, dict[str, int]]:
    """Draw and test candidates until enough have passed; keep those.

    Args:
        source: Proposes and tests candidates.
        run: The run.
        records: The number of records.

    Returns:
        The records, and the confidential numbers of candidates and of those that passed. Progress
        may be kept in a file or a log, so it shows whole percents of many records, and of few
        only the end.
    """
    limit = max(_MIN_ATTEMPTS, _ATTEMPTS_PER_RECORD * records)
    tally = {"candidates": 0, "passed": 0}
    shown = -1

    def counted(blocks: Iterator[Codes]) -> Iterator[Codes]:
        nonlocal shown
        for block in blocks:
            tally["candidates"] += source.block_size
            tally["passed"] += len(block)
            percent = min(100 * tally["passed"] // records, 100)
            percent = percent if records >= _MIN_RECORDS_OF_PERCENTS or percent == 100 else 0
            if percent > shown:
                shown = percent
                run.progress("candidates that passed", percent, 100)
            yield block

    workers = run.config.workers or count_cores()
    proposed = map_in_order(source.kernel, count_up(), workers=workers)
    kept = collect(
        counted(proposed), records=records, block_size=source.block_size, max_attempts=limit
    )
    return KeptRecords.collect(kept, columns=len(run.schema.names)), tally


def _kernel(model: NetworkModel, mechanism: SeedMechanism, run: Run) -> Kernel:
    """Choose the kernel of the mode for the built-in model."""
    config, test = run.config, run.plan.test
    hidden = not (config.omega_known or len(model.omegas) == 1)
    if run.plan.mode == "randomized":
        # Without noise nothing is guaranteed, but an empty table still needs a seed to draw.
        dummies = test.dummies if test is not None else int(not mechanism.seeds.number)
        gamma = config.gamma if hidden else None
        return randomized_kernel(mechanism, model, dummies=dummies, gamma=gamma)
    if hidden:
        return hidden_omega_kernel(mechanism, model, gamma=config.gamma)
    return own_omega_kernel(
        mechanism.seeds, model, run.randomness, k=config.k, feasible=mechanism.feasible
    )


def _deniability_test(run: Run, law: Law) -> DeniabilityTest:
    """Choose the deniability test of the mode."""
    if run.plan.mode != "randomized":
        return _deterministic_test(run.config)

    def passes(plausible: Counts, block: int) -> Mask:
        rng = run.randomness.at("threshold", block)
        return pass_randomized_test(plausible, rng, k=run.config.k, law=law)

    return passes


def _deterministic_test(config: Config) -> DeniabilityTest:
    return lambda plausible, _: pass_deterministic_test(plausible, k=config.k)


def _feasible(schema: Schema) -> Feasible:
    return schema.constraint_solver.feasible if schema.constraint_solver else always_feasible
