"""Audit of the mechanism (``deniable audit --mechanism``): the shipped code on worst-case tables.

No table is needed, and the result may be published. Runs are independent, so they are divided into
blocks, which processes work on; each block is a checkpoint.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Unpack

from deniable.audit.audit_report import AuditReport, write_audit
from deniable.audit.case_results import FALSE_ALARM_PROBABILITY, CaseResult, summarize_case
from deniable.audit.case_runs import BLOCK_RUNS, measure_block
from deniable.audit.mechanism_report import mechanism_report
from deniable.audit.neighbours import NeighbourCase, find_case, possible_cases
from deniable.audit.planted_faults import Fault, parse_fault
from deniable.config import Config, Options
from deniable.errors import ConfigError
from deniable.evaluation.checkpoints import CheckpointFolder, code_fingerprint
from deniable.workers import Progress, count_cores, no_progress

# Runs each way of the case with many targets, which the two minutes of a default audit allow. The
# other cases have fewer, in proportion.
DEFAULT_RUNS = 2_000
# Bounds that a case compares with its promise, about: the verdict divides its error among them.
_BOUNDS_PER_CASE = 16
# Shares of the runs at which a planted fault is looked for, to say how many it takes.
_SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)

# Modes in which faults are planted.
_PLANTED_MODES = ("seedless", "one-shot")

Block = Mapping[str, Any]


@dataclass
class MechanismRuns:
    """Blocks of runs that were measured so far, by case.

    Attributes:
        cases: The cases.
        blocks: Their blocks, in order.
    """

    cases: Sequence[NeighbourCase]
    blocks: dict[str, list[Block]] = field(default_factory=dict)

    def results(self, *, share: float = 1.0) -> list[CaseResult]:
        """Statistics of all cases that have runs, or of a share of these."""
        confidence = 1 - FALSE_ALARM_PROBABILITY / (_BOUNDS_PER_CASE * len(self.cases))
        found = []
        for case in self.cases:
            blocks = self.blocks.get(case.name, [])
            some = blocks[: max(1, round(share * len(blocks)))]
            if some:
                found.append(summarize_case(case, some, confidence=confidence))
        return found

    def runs_to_find(self) -> int | None:
        """Runs each way, as a share of all, after which the promise is seen to be exceeded."""
        for share in _SHARES:
            for result in self.results(share=share):
                if result.exceeded:
                    return result.runs // 2
        return None


def audit_mechanism(
    *,
    out: str | Path | None = None,
    runs: int | None = None,
    plant: str | None = None,
    key: int | None = None,
    progress: Progress = no_progress,
    **options: Unpack[Options],
) -> AuditReport:
    """Attack the shipped mechanism on worst-case neighbouring tables.

    Args:
        out: Folder of the report and of the checkpoints; None: nothing is written.
        runs: Runs each way of the case with many targets; the others have fewer, in proportion.
        plant: A fault to plant, which the audit must find.
        key: For tests only: reproducible noise in place of the system's.
        progress: Called with a stage, the runs made and the total.
        options: See ``Config``. A mode restricts the audit to its cases; ``workers`` are processes.

    Raises:
        ConfigError: Nothing is promised, or there is no case for these options.
        OutputError: ``out`` has other contents or settings.

    Privacy:
        Covers: nothing; it reads no confidential table. All tables are made up.
    """
    fault = parse_fault(plant)
    config = Config.assemble({**options, "accept_large_delta": True})
    if not config.epsilon < float("inf"):
        raise ConfigError("--epsilon inf promises nothing: there is no promise to audit")
    known: dict[str, Any] = dict(options)
    workers = known.pop("workers", None) or count_cores()
    cases, left_out = possible_cases(known)
    if fault is not None:
        cases = _plantable(cases)
    folder = None
    settings = {"options": known, "plant": plant, "block": BLOCK_RUNS, "key": key}
    settings["code"] = code_fingerprint()  # runs of other code are other runs
    if out is not None:
        folder = CheckpointFolder.open(Path(out), settings)
    scale = (runs or DEFAULT_RUNS) / DEFAULT_RUNS
    measured = MechanismRuns(cases)
    work = _BlockWork(options=known, fault=fault, key=key)
    tasks = [
        (case.name, block)
        for case in cases
        for block in range(max(2, round(2 * scale * case.runs / BLOCK_RUNS)))
    ]
    collect_blocks(work, tasks, measured, folder, workers=workers, progress=progress)
    results = measured.results()
    needed = measured.runs_to_find() if fault is not None else None
    report = mechanism_report(
        results, config=config, fault=fault, needed=needed, options=known, left_out=left_out
    )
    if out is not None:
        write_audit(report, Path(out))
    return report


def _plantable(cases: Sequence[NeighbourCase]) -> list[NeighbourCase]:
    """The cases in which faults are planted."""
    chosen = [case for case in cases if case.mode in _PLANTED_MODES]
    if not chosen:
        raise ConfigError(f"--plant needs a mode with an artefact: {', '.join(_PLANTED_MODES)}")
    return chosen


@dataclass(frozen=True)
class _BlockWork:
    """What a process needs to make a block: everything else follows from the options."""

    options: Mapping[str, Any]
    fault: Fault | None
    key: int | None

    def __call__(self, task: tuple[str, int]) -> Block:
        name, block = task
        case = find_case(name, self.options)
        return asdict(measure_block(case, block, fault=self.fault, key=self.key))


def collect_blocks(
    work: Callable[[tuple[str, int]], Block],
    tasks: Sequence[tuple[str, int]],
    measured: MechanismRuns,
    folder: CheckpointFolder | None,
    *,
    workers: int,
    progress: Progress,
) -> None:
    """Make the blocks that no checkpoint has; save each as soon as it is there.

    An interruption loses the blocks that were being made, and no other.
    """
    done: dict[tuple[str, int], Block] = {}
    missing = []
    for task in tasks:
        if folder is not None and folder.has(_cell(task)):
            done[task] = folder.load(_cell(task))
        else:
            missing.append(task)
    runs = BLOCK_RUNS * len(tasks)
    progress("runs", BLOCK_RUNS * len(done), runs)
    for task, block in _run_tasks(work, missing, workers=workers):
        done[task] = block
        if folder is not None:
            folder.save(_cell(task), block)
        progress("runs", BLOCK_RUNS * len(done), runs)
    for task in tasks:
        measured.blocks.setdefault(task[0], []).append(done[task])


def _cell(task: tuple[str, int]) -> str:
    return f"{task[0]} {task[1]}"


def _run_tasks(
    work: Callable[[tuple[str, int]], Block], tasks: Sequence[tuple[str, int]], *, workers: int
) -> Iterator[tuple[tuple[str, int], Block]]:
    """Work on tasks in processes, or here with a single worker; yield results as they come."""
    if workers == 1 or len(tasks) <= 1:
        for task in tasks:
            yield task, work(task)
        return
    # Spawned, not forked: a fork would copy the threads of libraries in an unknown state.
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts
    ) as pool:
        left = iter(tasks)
        running: dict[Future[Block], tuple[str, int]] = {}
        try:
            for task in islice(left, 3 * workers):
                running[pool.submit(work, task)] = task
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for each in finished:
                    yield running.pop(each), each.result()
                    for task in islice(left, 1):
                        running[pool.submit(work, task)] = task
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process, which keeps what was measured."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
