"""Attack releases of one table (``deniable audit TABLE``): membership, singling out, inference.

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

from deniable.arrays import Codes
from deniable.audit.audit_report import AUDIT_FORMAT, AuditReport, write_audit
from deniable.audit.exposure import AuditTargets, choose_targets, measure_exposure
from deniable.audit.holdout_rows import require_disjoint, set_aside
from deniable.audit.inference_attacks import (
    AttackComparison,
    attack_attributes,
    attack_singling_out,
)
from deniable.audit.membership_results import MembershipResults
from deniable.audit.query_attacks import QueryAttack
from deniable.audit.retraining import (
    AuditedTable,
    CoinRun,
    retrain,
    retrain_with_coins,
)
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
# Retrainings with coins.
RUNS = 50
_MIN_RUNS = 10
# Records that an attacker sees: of an artefact any number; of modes that pay for each, these.
_ARTEFACT_RECORDS, _SEED_RECORDS = 2**17, 10_000
# Fewer rows leave too few to attack, and too few aside.
MIN_ROWS, _MIN_TARGETS = 250, 20
# Numbers of the runs: each has its own noise and coins.
_COINS, _RELEASE = 1_000, 500_000
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
    """Retrain with coins many times, and attack each release."""
    audited = audit.audited
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
        # In mode tested, (ε, δ) is of the model alone.
        epsilon=math.inf if mode == "tested" else cost.epsilon,
        delta=cost.delta,
    )


def _coin_run(audited: AuditedTable, queries: QueryAttack, number: int) -> dict[str, Any]:
    return retrain_with_coins(audited, queries, number).document()


def _attack_release(
    audit: _Preparation, cells: CheckpointFolder, progress: Progress
) -> dict[str, Any]:
    """Attack one release: singling out and inference."""
    saved = _measure_all(
        cells, progress, "inference attacks", {"release": partial(_release_cell, audit)}
    )["release"]
    return {
        "guarantee": str(saved["guarantee"]),
        "comparisons": [AttackComparison.read(each) for each in saved["comparisons"]],
    }


def _release_cell(audit: _Preparation) -> dict[str, Any]:
    audited, control, rng = audit.audited, audit.control, Keyed(0).at("identifiers")
    made = retrain(audited, audited.codes, audited.run_number(_RELEASE), key=_RELEASE)
    attributes, rows = audited.run.schema.attributes, audited.codes
    comparisons = [attack_singling_out(made.records, rows, control, rng)]
    if len(attributes) > 1:
        comparisons += attack_attributes(attributes, made.records, rows, control, rng)
    return {
        "guarantee": made.guarantee,
        "comparisons": [each.document() for each in comparisons],
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
