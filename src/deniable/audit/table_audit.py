"""Attack releases of one table (``deniable audit TABLE``): membership, inference, seeds.

Everything here reads real rows: the report is confidential. What was measured is kept in the
report's folder, so that an interrupted audit resumes.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from deniable.arrays import Codes, Indices
from deniable.audit.audit_report import AUDIT_FORMAT, AuditReport, write_audit
from deniable.audit.exposure import AuditTargets, choose_targets, measure_exposure
from deniable.audit.holdout_rows import require_disjoint, set_aside
from deniable.audit.inference_attacks import (
    AttackComparison,
    attack_attributes,
    attack_linkability,
    attack_singling_out,
)
from deniable.audit.known_seeds import attack_known_seeds, seed_trials
from deniable.audit.membership_results import MembershipResults, OneRunResult
from deniable.audit.query_attacks import QueryAttack
from deniable.audit.retraining import (
    AuditedTable,
    CoinRun,
    retrain,
    retrain_with_coins,
    score_canaries,
    with_and_without,
)
from deniable.audit.seed_posterior import SeedPosterior, measure_seed_posterior
from deniable.audit.table_sections import table_report
from deniable.config import Config, Options
from deniable.counting.local import local_codes
from deniable.data.dataframes import FrameKind
from deniable.errors import ConfigError, DataError
from deniable.evaluation.checkpoints import CheckpointFolder, code_fingerprint
from deniable.evaluation.classifiers import require_scikit_learn
from deniable.pipeline.api import SchemaSource, read_rows
from deniable.pipeline.run_plan import Run, plan_run, resolve_options
from deniable.privacy.plan import require_record_count
from deniable.randomness import Keyed, Randomness, Secret
from deniable.schema.schema import Schema
from deniable.workers import Progress, count_cores, map_in_order, no_progress

TARGETS = 200
# Retrainings with coins, and with and without each target while the rest is fixed.
RUNS = 50
_MIN_RUNS = 10
_REPETITIONS = 2
# Records that an attacker sees: of an artefact any number; of modes that pay for each, these.
_ARTEFACT_RECORDS, _SEED_RECORDS = 2**17, 10_000
# Fewer rows cannot fill the tenths of exposure, or leave rows aside.
MIN_ROWS, _MIN_TARGETS = 250, 20
# Canaries of the single run with coins, as a share of the rows, and at most.
_CANARY_SHARE, _MAX_CANARIES = 0.1, 1_000
# Numbers of the runs: each has its own noise and coins.
_ONE_RUN, _COINS, _RELEASE, _SEEDS, _FIXED = 1, 1_000, 500_000, 500_001, 1_000_000
_KNOWN_SEEDS = 600_000
# Targets of one checkpoint of the retrainings with the rest fixed.
_TARGETS_PER_CELL = 10
_SYSTEM_NOISE = Secret()


def audit_table(
    source: object,
    schema: SchemaSource,
    *,
    out: str | Path,
    holdout: object | None = None,
    targets: int = TARGETS,
    runs: int | None = None,
    records: int | None = None,
    noise: Randomness = _SYSTEM_NOISE,
    progress: Progress = no_progress,
    **options: Unpack[Options],
) -> AuditReport:
    """Attack releases of a table, and write audit.html and audit.json.

    Releases are learnt again and again by the shipped code, with fresh noise. An interrupted audit
    resumes when it is started again with the same folder and options.

    Args:
        source: The confidential table: a path or a data frame.
        schema: The schema, or the path of its TOML file. It need not be confirmed.
        out: Folder of the report, accessible to its owner only.
        holdout: Real rows that are not in the table, as control rows; without them, a fifth of
            the rows is set aside.
        targets: Rows to attack; half of them are the most exposed.
        runs: Retrainings with coins, at least 10.
        records: Records that the attacker sees of each release.
        noise: For tests only.
        progress: Called with a stage, the work done and the total.
        options: See ``Config``.

    Raises:
        DeniableError: A table does not fit the schema or has too few rows, the holdout overlaps,
            an option is invalid, or the folder was started with other settings.

    Privacy:
        Does not cover: the report. It is measured on real rows, without noise.
    """
    require_scikit_learn()
    audit = _prepare(
        source,
        schema,
        holdout=holdout,
        targets=targets,
        runs=RUNS if runs is None else runs,
        records=records,
        noise=noise,
        progress=progress,
        options=options,
    )
    # Kept out of the report: a hash confirms a guess of the whole table.
    hashes = {"table": audit.table, "holdout": audit.holdout, "code": code_fingerprint()}
    cells = CheckpointFolder.open(Path(out), audit.settings | hashes)
    report = table_report(
        audit.audited,
        audit.targets,
        settings=audit.settings,
        membership=_attack_membership(audit, cells, progress),
        **_attack_release(audit, cells, progress),
    )
    write_audit(report, Path(out))
    return report


@dataclass(frozen=True, kw_only=True)
class _Preparation:
    """A table that is ready to be attacked.

    Attributes:
        audited: The table, the targets and the options.
        targets: The targets with their exposure.
        control: Rows that are not in the table.
        runs: Retrainings with coins.
        settings: What an interrupted audit must have in common with its continuation.
        table: Hash of the table.
        holdout: Hash of the holdout, if there is one.
    """

    audited: AuditedTable
    targets: AuditTargets
    control: Codes
    runs: int
    settings: dict[str, Any]
    table: str
    holdout: str | None


def _prepare(
    source: object,
    schema: SchemaSource,
    *,
    holdout: object | None,
    targets: int,
    runs: int,
    records: int | None,
    noise: Randomness,
    progress: Progress,
    options: Options,
) -> _Preparation:
    """Plan the releases, read the tables and choose the targets."""
    if runs < _MIN_RUNS or targets < _MIN_TARGETS:
        raise ConfigError(
            f"an audit of a table needs runs ≥ {_MIN_RUNS} and targets ≥ {_MIN_TARGETS}"
        )
    run, records = _plan(schema, records, noise, progress, options)
    codes, kind = _read(source, run, "the table")
    held_out = None if holdout is None else _read(holdout, run, "the holdout")[0]
    chooser = Keyed(0)
    if held_out is None:
        rows, control = set_aside(codes, chooser.at("split"))
    else:
        require_disjoint(codes, held_out, chooser.at("split"))
        rows, control = codes, held_out
    progress("exposure of rows", 0, 1)
    exposure = measure_exposure(rows, chooser.at("scan"))
    chosen = choose_targets(exposure, min(targets, len(rows) // 5), chooser.at("seeds"))
    progress("exposure of rows", 1, 1)
    audited = AuditedTable(codes=rows, targets=chosen.rows, run=run, kind=kind, records=records)
    return _Preparation(
        audited=audited,
        targets=chosen,
        control=control,
        runs=runs,
        settings=_settings(audited, options) | {"runs": runs},
        table=_digest(codes),
        holdout=None if held_out is None else _digest(held_out),
    )


def _plan(
    schema: SchemaSource,
    records: int | None,
    noise: Randomness,
    progress: Progress,
    options: Options,
) -> tuple[Run, int]:
    """Plan the releases before a row is read; return the run and the number of records."""
    schema = schema if isinstance(schema, Schema) else Schema.read(schema)
    config = resolve_options(Config.assemble(options), schema)
    with_seeds = config.mode in ("tested", "randomized")
    if records is None:
        records = _SEED_RECORDS if with_seeds else _ARTEFACT_RECORDS
    require_record_count(records)
    plan = plan_run(schema, config, records=records)
    run = Run(schema=schema, config=config, plan=plan, randomness=noise, progress=progress)
    return run, records


def _settings(audited: AuditedTable, options: Options) -> dict[str, Any]:
    """Describe the releases: a continued audit must make the same ones."""
    run = audited.run
    return {
        "format": AUDIT_FORMAT,
        "version": version("deniable"),
        "mode": run.plan.mode,
        "options": {name: str(value) for name, value in sorted(options.items())},
        "schema": hashlib.sha256(run.schema.text().encode()).hexdigest(),
        "targets": len(audited.targets),
        "repetitions": _REPETITIONS,
        "records": audited.records,
        "secret_noise": run.randomness.is_secret,
    }


def _read(source: object, run: Run, what: str) -> tuple[Codes, FrameKind]:
    """Read a table as codes; refuse one with too few rows."""
    table = read_rows(source, run)
    if table.rows.number < MIN_ROWS:
        raise DataError(
            f"{what} has too few rows that fit the schema: an audit needs at least {MIN_ROWS}"
        )
    return np.asfortranarray(local_codes(table.rows, purpose="the audit")), table.kind


def _digest(codes: Codes) -> str:
    return hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()


def _attack_membership(
    audit: _Preparation, cells: CheckpointFolder, progress: Progress
) -> MembershipResults:
    """Run the membership attacks: one run with coins, the rest fixed, and many runs with coins."""
    audited, one_run, fixed = audit.audited, None, None
    if audited.has_artefact:
        canaries = _choose_canaries(audited)
        saved = _measure_all(
            cells, progress, "one run with coins", {"one_run": partial(_one_run, audited, canaries)}
        )
        one_run = OneRunResult.of(*saved["one_run"], delta=audited.run.plan.cost.delta)
        fixed = _attack_with_rest_fixed(audited, cells, progress)
    queries = QueryAttack.of(np.asarray(audited.codes[audited.targets]), Keyed(0).at("records"))
    coins = {
        f"coins_{i}": partial(_coin_run, audited, queries, _COINS + i) for i in range(audit.runs)
    }
    saved = _measure_all(cells, progress, "retrainings with coins", coins)
    cost, mode = audited.run.plan.cost, audited.run.plan.mode
    return MembershipResults.of(
        [CoinRun.read(saved[name]) for name in coins],
        queries,
        audited,
        targets=audit.targets,
        fixed=fixed,
        one_run=one_run,
        # In mode tested, (ε, δ) is of the model alone.
        epsilon=math.inf if mode == "tested" else cost.epsilon,
        delta=cost.delta,
    )


def _choose_canaries(audited: AuditedTable) -> Indices:
    """The targets, and random rows."""
    n = len(audited.codes)
    number = min(_MAX_CANARIES, int(_CANARY_SHARE * n))
    others = np.setdiff1d(np.arange(n), audited.targets)
    chosen = others[np.argsort(Keyed(0).at("candidates").random(len(others)), kind="stable")]
    return np.concatenate([audited.targets, chosen[: max(0, number - len(audited.targets))]])


def _one_run(audited: AuditedTable, canaries: Indices) -> list[Any]:
    return list(score_canaries(audited, canaries, _ONE_RUN))


def _coin_run(audited: AuditedTable, queries: QueryAttack, number: int) -> dict[str, Any]:
    return retrain_with_coins(audited, queries, number).document()


def _attack_with_rest_fixed(
    audited: AuditedTable, cells: CheckpointFolder, progress: Progress
) -> list[tuple[list[float], list[float]]]:
    """Scores of each target, with it and without it."""
    number = len(audited.targets)
    starts = {
        f"fixed_{start}": partial(_fixed_cell, audited, start)
        for start in range(0, number, _TARGETS_PER_CELL)
    }
    saved = _measure_all(cells, progress, "retrainings, rest fixed", starts)
    return [(pair[0], pair[1]) for name in starts for pair in saved[name]]


def _fixed_cell(audited: AuditedTable, start: int) -> list[Any]:
    """Measure some targets; every run has a number of its own."""
    numbers = range(start, min(start + _TARGETS_PER_CELL, len(audited.targets)))
    return [
        list(
            with_and_without(
                audited,
                int(audited.targets[at]),
                repetitions=_REPETITIONS,
                first=_FIXED + 2 * _REPETITIONS * at,
            )
        )
        for at in numbers
    ]


def _attack_release(
    audit: _Preparation, cells: CheckpointFolder, progress: Progress
) -> dict[str, Any]:
    """Attack one release: singling out, linkability, inference and, in mode tested, its seeds."""
    saved = _measure_all(
        cells, progress, "inference attacks", {"release": partial(_release_cell, audit)}
    )["release"]
    posterior = saved["posterior"]
    known_seeds = saved["known_seeds"]
    return {
        "guarantee": str(saved["guarantee"]),
        "comparisons": [AttackComparison.read(each) for each in saved["comparisons"]],
        "known_seeds": None if known_seeds is None else seed_trials(known_seeds),
        "posterior": None if posterior is None else SeedPosterior.read(posterior),
    }


def _release_cell(audit: _Preparation) -> dict[str, Any]:
    audited, control, rng = audit.audited, audit.control, Keyed(0).at("identifiers")
    made = retrain(audited, audited.codes, audited.run_number(_RELEASE), key=_RELEASE)
    attributes, rows = audited.run.schema.attributes, audited.codes
    comparisons = [attack_singling_out(made.records, rows, control, rng)]
    if len(attributes) > 1:
        comparisons.append(attack_linkability(attributes, made.records, rows, control, rng))
        comparisons += attack_attributes(attributes, made.records, rows, control, rng)
    posterior, known_seeds = None, None
    if made.model is not None:
        known_seeds = attack_known_seeds(audited, made, _KNOWN_SEEDS)
    if audited.run.plan.mode == "tested":
        posterior = measure_seed_posterior(audited, made, _SEEDS).document()
    return {
        "guarantee": made.guarantee,
        "comparisons": [each.document() for each in comparisons],
        "posterior": posterior,
        "known_seeds": known_seeds,
    }


def _measure_all(
    cells: CheckpointFolder,
    progress: Progress,
    stage: str,
    measures: Mapping[str, Callable[[], Any]],
) -> dict[str, Any]:
    """Measure cells on all cores, each saved when it is complete."""
    progress(stage, 0, len(measures))
    names = list(measures)

    def measure(name: str) -> Any:
        return cells.load_or_measure(name, measures[name])

    found = {}
    for name, cell in zip(names, map_in_order(measure, names, workers=count_cores()), strict=True):
        found[name] = cell
        progress(stage, len(found), len(names))
    return found
