"""Evaluate a release: measure it against real rows and write metrics.json and an HTML report."""

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl

from deniable.arrays import Codes
from deniable.data.part_files import read_parts
from deniable.data.table_io import file_reader, read_codes, read_table
from deniable.errors import ConfigError, DataError
from deniable.evaluation.classifiers import require_scikit_learn
from deniable.evaluation.distances import Distances, compare_tables
from deniable.evaluation.distinguishability import measure_distinguishability
from deniable.evaluation.effort import Effort
from deniable.evaluation.estimates import find_estimates
from deniable.evaluation.marginals import measure_marginals
from deniable.evaluation.metrics import Edition, Findings, Metrics
from deniable.evaluation.ml_efficacy import measure_ml_efficacy, target_column
from deniable.evaluation.reference_tables import (
    AdjustedColumn,
    EvaluationTables,
    adjusted_columns,
    raw_schema,
)
from deniable.evaluation.relations import Relations, measure_relations
from deniable.evaluation.release_claim import ReleaseClaim, find_released, read_claim
from deniable.evaluation.report import write_report
from deniable.evaluation.subgroups import measure_subgroups
from deniable.evaluation.verdict import judge
from deniable.pipeline.api import SchemaSource
from deniable.release.atomic_files import require_free
from deniable.release.release import Release
from deniable.schema.schema import Schema
from deniable.workers import Progress, no_progress

# Progress of the whole report: the stages of an evaluation, and about how much of its time each
# takes, of 100. Learning takes most of the time, above all for a target with many classes.
WHOLE_REPORT = "whole report"
_STAGE_SHARES = {
    "read the tables": 5,
    "verify the release": 20,
    "relations": 7,
    "distances": 3,
    "learning": 42,
    "distinguishability": 20,
    "small groups": 3,
}
_FIRST_REPORT = Effort.quick()


def evaluate(
    real: object,
    synthetic: object,
    schema: SchemaSource,
    *,
    holdout: object | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    edition: Edition = "internal",
    effort: Effort = _FIRST_REPORT,
    progress: Progress = no_progress,
) -> Metrics:
    """Measure the utility of released records, and optionally write a report.

    Args:
        real: The confidential table: a path or a data frame. A public edition does not read it,
            nor the schema.
        synthetic: The records to evaluate: a ``Release``, a path or a data frame. If this is a
            path, the manifest next to it is read and verified. The folder of a release stands for
            its table, or for all of its parts.
        schema: The schema of all tables, or the path of its TOML file.
        holdout: Real rows that the release was not learnt from, used as the reference. Without
            them the reference is ``real``, and the metrics state so.
        target: The attribute that learners predict; None: the first target of the release or of
            the schema, or else the one with the largest mean association with the others.
        out: A new folder for report.html and metrics.json; None: write nothing.
        edition: "internal" for people who may see the real table. "public" for everyone: it uses
            only the manifest and the artefact.
        effort: Number of runs and their sizes: by default those of a first report, in seconds.
            ``Effort()`` is a thorough evaluation, in minutes.
        progress: Called with a stage, the work done and the total.

    Raises:
        DeniableError: A table does not fit the schema, an option is invalid, or a public edition
            was requested for records without a verified guarantee.
    """
    if edition not in ("internal", "public"):
        raise ConfigError(f'edition = "{edition}": must be internal or public')
    schema = schema if isinstance(schema, Schema) else Schema.read(schema)
    if out is not None:
        require_free(Path(out))
    if edition == "public":
        metrics = _evaluate_public(synthetic, progress)
    else:
        require_scikit_learn()
        if len(schema.names) > 1:
            target_column(schema, target)  # fail before reading any table
        metrics = _evaluate_internal(
            real,
            synthetic,
            schema,
            holdout=holdout,
            target=target,
            effort=effort,
            progress=_with_whole_report(progress),
        )
    if out is not None:
        write_report(metrics, Path(out))
    return metrics


def _evaluate_public(synthetic: object, progress: Progress) -> Metrics:
    """Collect what may be published: the verified claim, and what the artefact says."""
    progress("verify the release", 0, 1)
    claim = read_claim(synthetic)
    if claim is None or not claim.holds:
        reason = "there is no manifest next to them"
        if claim is not None:
            reason = claim.doubt
        raise ConfigError(
            "a public report needs records with a verified privacy guarantee; these have none: "
            f"{reason}. Give the path of the records in a release that `deniable verify` accepts."
        )
    progress("verify the release", 1, 1)
    return Metrics(edition="public", claim=claim, estimates=find_estimates(synthetic, claim))


def _evaluate_internal(
    real: object,
    synthetic: object,
    schema: Schema,
    *,
    holdout: object | None,
    target: str | None,
    effort: Effort,
    progress: Progress,
) -> Metrics:
    """Measure the release against real rows."""
    progress("read the tables", 0, 1)
    table = read_table(real, schema, marks_moved=True)
    codes, released = _require_rows(table.codes), _read_released(synthetic, schema)
    other = None if holdout is None else _read_raw_rows(holdout, schema)
    adjusted = adjusted_columns(table.adjusted, len(codes))
    sizes = [attribute.size for attribute in schema.attributes]
    tables = EvaluationTables.of(codes, released, other, key=effort.key, sizes=sizes)
    progress("read the tables", 1, 1)
    progress("verify the release", 0, 1)
    claim = read_claim(synthetic)
    progress("verify the release", 1, 1)
    target = target or _target_of_run(schema, claim)
    raw = raw_schema(schema, [codes] if other is None else [codes, other])
    findings = _measure_findings(
        tables, codes, raw, adjusted, target=target, effort=effort, progress=progress
    )
    return Metrics(edition="internal", claim=claim, findings=findings)


def _measure_findings(
    tables: EvaluationTables,
    real: Codes,
    schema: Schema,
    adjusted: tuple[AdjustedColumn, ...],
    *,
    target: str | None,
    effort: Effort,
    progress: Progress,
) -> Findings:
    """Measure everything that needs real rows."""
    progress("relations", 0, 1)
    relations = measure_relations(
        schema.attributes, tables, real, skipped=schema.roundness_names, key=effort.key
    )
    progress("relations", 1, 1)
    distances = distances_by_width(schema, tables, progress=_stage_progress(progress, "distances"))
    target = target or _most_associated(schema, relations)
    learning = measure_ml_efficacy(
        tables, schema, effort, target=target, progress=_stage_progress(progress, "learning")
    )
    game = measure_distinguishability(
        tables, effort, progress=_stage_progress(progress, "distinguishability")
    )
    progress("small groups", 0, 1)
    groups = measure_subgroups(schema.attributes, tables)
    progress("small groups", 1, 1)
    return Findings(
        records=len(tables.released),
        adjusted=adjusted,
        rows={"real": len(real)} | ({"holdout": len(tables.test)} if tables.held_out else {}),
        held_out=tables.held_out,
        marginals=measure_marginals(schema.attributes, tables.released, tables.reference),
        distances=distances,
        relations=relations,
        learning=learning,
        game=game,
        groups=groups,
        verdict=judge(distances, relations, learning, game, groups, adjusted=adjusted),
        effort=effort,
    )


def _target_of_run(schema: Schema, claim: ReleaseClaim | None) -> str | None:
    """Return the first target of a release, else of its schema; None if there is none."""
    targets = None if claim is None else claim.parameters.get("target")
    first = targets[0] if isinstance(targets, list) and targets else None
    return first if first in schema.names else next(iter(schema.target), None)


def _most_associated(schema: Schema, relations: Relations | None) -> str:
    """Find the column whose mean association with the others is largest in real rows."""
    found: dict[str, list[float]] = {}
    for each in () if relations is None else relations.associations:
        for name in each.names:
            found.setdefault(name, []).append(each.real)
    means = {name: fmean(found.get(name, [0.0])) for name in schema.names}
    return max(means, key=lambda name: means[name])


def distances_by_width(
    schema: Schema,
    tables: EvaluationTables,
    *,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, dict[str, Distances]]:
    """Measure distances from real rows: of the release, independent columns and other real rows."""
    compared = {
        "released": (tables.released, tables.reference),
        "marginals": (tables.marginals, tables.reference),
        "reals": tables.ceiling,
    }
    found = {"attributes": compare_tables(schema.attributes, compared, width=1)}
    if len(schema.attributes) > 1:
        found["pairs"] = compare_tables(schema.attributes, compared, width=2, progress=progress)
    progress(1, 1)
    return found


def _read_released(synthetic: object, schema: Schema) -> Codes:
    """Read the records to evaluate; of a release's folder its table, or all of its parts."""
    if isinstance(synthetic, Release):
        synthetic = pl.concat(synthetic.decoded())
    files = find_released(Path(synthetic)) if isinstance(synthetic, str | Path) else ()
    if not files:
        return _require_rows(read_codes(synthetic, schema)[0])
    read = file_reader(files[0], schema)
    return _require_rows(read_parts(files, read, columns=len(schema.attributes)).codes)


def _read_raw_rows(source: object, schema: Schema) -> Codes:
    """Read real rows as codes; a moved cell has the code after all codes."""
    return _require_rows(read_table(source, schema, marks_moved=True).codes)


def _require_rows(codes: Codes) -> Codes:
    if len(codes) < 2:
        raise DataError("an evaluated table has fewer than two rows that fit the schema")
    return np.asfortranarray(codes)


def _stage_progress(progress: Progress, name: str) -> Callable[[int, int], None]:
    return lambda done, of: progress(name, done, of)


def _with_whole_report(progress: Progress) -> Progress:
    """Report each stage, and next to it the whole report, for an estimate of the time left."""
    before = dict(zip(_STAGE_SHARES, accumulate(_STAGE_SHARES.values(), initial=0), strict=False))

    def report(stage: str, done: int, of: int) -> None:
        share = _STAGE_SHARES[stage] * done / max(1, of)
        progress(WHOLE_REPORT, round(before[stage] + share), 100)
        progress(stage, done, of)

    return report
