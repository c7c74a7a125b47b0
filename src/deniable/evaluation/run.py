"""deniable evaluate: from tables to metrics and a report."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from deniable.arrays import Codes
from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import ConfigError, DataError
from deniable.evaluation.baselines import Tables
from deniable.evaluation.distances import Distances, measure_distances
from deniable.evaluation.effort import Effort
from deniable.evaluation.game import play_game
from deniable.evaluation.groups import measure_groups
from deniable.evaluation.guarantee import read_claim
from deniable.evaluation.learning import measure_learning, target_column
from deniable.evaluation.likeness import judge
from deniable.evaluation.marginals import measure_marginals
from deniable.evaluation.metrics import Edition, Findings, Metrics
from deniable.evaluation.report import write_report
from deniable.pipeline import Watch, unwatched
from deniable.release.records import require_free

# By name, how many attributes are looked at together, and the most choices of them.
_WIDTHS = {"attributes": (1, 10**9), "pairs": (2, 10**9), "triples": (3, 50)}
_USUAL = Effort()


def evaluate(
    real: object,
    synthetic: object,
    schema: Schema,
    *,
    holdout: object | None = None,
    target: str | None = None,
    out: Path | None = None,
    edition: Edition = "internal",
    effort: Effort = _USUAL,
    watch: Watch = unwatched,
) -> Metrics:
    """Measure what released records are worth, and write a report about it.

    Args:
        real: The confidential table: a path or a frame. A public edition does not read it.
        synthetic: The records to evaluate. Where it is a path, the manifest beside it is read.
        schema: What the columns of all tables hold.
        holdout: Real rows that the release was not learnt from, to measure against; without them
            it is measured against ``real``, and the metrics say so.
        target: The attribute that learners are asked for; None: the schema's last.
        out: A new folder for report.html and metrics.json; None: nothing is written.
        edition: "internal" for those who may see the real table; "public" for everybody: it has
            nothing in it but the manifest and the records themselves.
        effort: How many runs, of what size.
        watch: Told how far it has come.

    Raises:
        DeniableError: A table does not fit the schema, an option makes no sense, or a public
            edition is asked for of records that no checked guarantee covers.
    """
    if edition not in ("internal", "public"):
        raise ConfigError(f'edition = "{edition}": must be internal or public')
    if out is not None:
        require_free(Path(out))
    if edition == "public":
        metrics = _measure_public(synthetic, schema, watch)
    else:
        if len(schema.names) > 1:
            target_column(schema, target)  # a wrong name is told at once
        metrics = _measure(
            real, synthetic, schema, holdout=holdout, target=target, effort=effort, watch=watch
        )
    if out is not None:
        write_report(metrics, Path(out))
    return metrics


def _measure_public(synthetic: object, schema: Schema, watch: Watch) -> Metrics:
    """Return what everybody may know: the claim, and the records that came with it."""
    watch("read the records", 0, 1)
    claim = read_claim(synthetic)
    if claim is None or not claim.holds:
        why = "there is no manifest beside them"
        if claim is not None:
            why = claim.failures[0].rstrip(".") if claim.failures else "it claims no privacy"
        raise ConfigError(
            "a public report is about records that may leave, and these may not: "
            f"{why}. Give the path of the records in a release that `deniable verify` accepts."
        )
    if hashlib.sha256(schema.text().encode()).hexdigest() != claim.schema:
        raise ConfigError(
            "a public report shows what the schema says, and this is not that of the release: give "
            "the schema.toml beside its manifest"
        )
    released = _read(synthetic, schema)
    watch("read the records", 1, 1)
    return Metrics(
        edition="public",
        records=len(released),
        claim=claim,
        marginals=measure_marginals(schema.attributes, released, None),
        findings=None,
    )


def _measure(
    real: object,
    synthetic: object,
    schema: Schema,
    *,
    holdout: object | None,
    target: str | None,
    effort: Effort,
    watch: Watch,
) -> Metrics:
    """Return all that can be measured, on real rows."""
    watch("read the tables", 0, 1)
    codes, released = _read(real, schema), _read(synthetic, schema)
    other = None if holdout is None else _read(holdout, schema)
    tables = Tables.of(codes, released, other, key=effort.key)
    watch("read the tables", 1, 1)
    distances = compare(schema, tables, key=effort.key, watch=_stage(watch, "distances"))
    learning = None
    if len(schema.names) > 1:
        told = _stage(watch, "learning")
        learning = measure_learning(tables, schema, effort, target=target, watch=told)
    game = play_game(tables, effort, watch=_stage(watch, "game"))
    groups = measure_groups(schema.attributes, tables)
    findings = Findings(
        rows={"real": len(codes), **({} if other is None else {"holdout": len(other)})},
        held_out=tables.held_out,
        distances=distances,
        learning=learning,
        game=game,
        groups=groups,
        verdict=judge(distances, learning, game, groups),
        effort=effort,
    )
    return Metrics(
        edition="internal",
        records=len(released),
        claim=read_claim(synthetic),
        marginals=measure_marginals(schema.attributes, released, tables.reference),
        findings=findings,
    )


def compare(
    schema: Schema,
    tables: Tables,
    *,
    key: int,
    watch: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, dict[str, Distances]]:
    """Return the distances of released records, independent columns and reals from real rows."""
    sides = {
        "released": (tables.released, tables.reference),
        "marginals": (tables.marginals, tables.reference),
        "reals": tables.ceiling,
    }
    widths = {
        name: (width, most)
        for name, (width, most) in _WIDTHS.items()
        if width <= len(schema.attributes)
    }
    found: dict[str, dict[str, Distances]] = {}
    for at, (name, (width, most)) in enumerate(widths.items()):
        found[name] = {}
        for place, (side, (first, second)) in enumerate(sides.items()):
            watch(len(sides) * at + place, len(sides) * len(widths))
            found[name][side] = measure_distances(
                schema.attributes, first, second, width=width, most=most, key=key
            )
    watch(1, 1)
    return found


def _read(source: object, schema: Schema) -> Codes:
    """Return the codes of a table that has rows."""
    codes, _ = read_codes(source, schema)
    if len(codes) < 2:
        raise DataError("a table of the evaluation has fewer than two rows that fit the schema")
    return np.asfortranarray(codes)


def _stage(watch: Watch, name: str) -> Callable[[int, int], None]:
    return lambda done, of: watch(name, done, of)
