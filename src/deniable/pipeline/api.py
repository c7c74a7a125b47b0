"""The Python API, and the order of a run: plan, read, learn, certify, generate, hand over."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, get_args

from deniable.config import Config, EngineName, MoreOptions
from deniable.counting.local import LocalRows
from deniable.counting.rows import Rows, TableRows
from deniable.data.batches import moved_columns
from deniable.data.dataframes import FrameKind
from deniable.data.table_io import read_table
from deniable.errors import BudgetError, ConfigError, SchemaError
from deniable.model.bayesian_network import Network
from deniable.model.learnt_model import LearntModel
from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.certificate import certify
from deniable.pipeline.learn_model import fit_to_prefixes, learn_model
from deniable.pipeline.run_plan import Run, RunPlan, plan_run, resolve_options
from deniable.pipeline.seed_modes import builtin_source, own_model_source, release_candidates
from deniable.privacy.ledger import PARTS, Ledger, Spend
from deniable.privacy.plan import require_record_count
from deniable.randomness import Keyed, Randomness, Secret
from deniable.release.artefact import Artefact, load
from deniable.release.prefix_distribution import draw_prefix_pool
from deniable.release.release import Release
from deniable.release.seed_histogram import (
    KeptPrefixes,
    choose_omega,
    learn_histogram,
    longest_listed,
)
from deniable.schema.schema import Schema
from deniable.workers import Progress, no_progress

if TYPE_CHECKING:
    from deniable.counting.spark.spark_engine import SparkEngine

SchemaSource = Schema | str | Path

_SYSTEM_NOISE = Secret()


def plan(
    schema: SchemaSource,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    k: int = 50,
    records: int | None = None,
    **options: Unpack[MoreOptions],
) -> RunPlan:
    """Plan a run: the noise and the cost of every stage. No row is read.

    Args:
        schema: The schema, or the path of its TOML file.
        epsilon: ε of the whole release (tested: of its model); inf: no noise, no guarantee.
        delta: δ of the whole release (tested: of its model).
        k: Least number of rows behind every copied combination of values.
        records: The number of records; the cost depends on it in mode ``randomized`` only.
        options: The other options: see ``Config``.
    """
    schema = schema if isinstance(schema, Schema) else Schema.read(schema)
    config = Config.assemble({"epsilon": epsilon, "delta": delta, "k": k, **options})
    return plan_run(schema, config, records=records)


def learn(
    source: object,
    schema: SchemaSource,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    k: int = 50,
    noise: Randomness = _SYSTEM_NOISE,
    progress: Progress = no_progress,
    **options: Unpack[MoreOptions],
) -> Artefact:
    """Learn an artefact from a confidential table, with noise.

    Args:
        source: A path of a file or a folder of parts; a pandas, polars or Arrow table; or a Spark
            DataFrame.
        schema: The schema, or the path of its TOML file.
        epsilon: ε of the whole release (tested: of its model); inf: no noise, no guarantee.
        delta: δ of the whole release (tested: of its model).
        k: Least number of rows behind every copied combination of values.
        noise: For tests only; nothing is guaranteed unless it is the system's randomness.
        progress: Called with a stage, the work done and the total.
        options: The other options: see ``Config``.

    Raises:
        DeniableError: See ``deniable.errors``; nothing was learnt.
    """
    config = Config.assemble({"epsilon": epsilon, "delta": delta, "k": k, **options})
    if config.mode in ("tested", "randomized"):
        raise ConfigError(
            f"--mode {config.mode} needs the table while it generates, so there is no artefact to "
            "keep; use deniable synthesize"
        )
    schema = schema if isinstance(schema, Schema) else Schema.read(schema)
    config = resolve_options(_with_engine(config, source), schema)
    planned = plan_run(schema, config)
    run = Run(schema=schema, config=config, plan=planned, randomness=noise, progress=progress)
    _require_confirmed(run)
    table = read_rows(source, run)
    run.progress("learn the model", 0, 1)
    with closing(table.rows):
        parts = partition_rows(table.rows, run)
        learnt = learn_model(parts, run)
        (omega,) = resolve_omegas(learnt, run)
        return make_artefact(learnt, omega, parts["seeds"], table.kind, run)


def generate(
    artefact: Artefact | str | Path,
    records: int,
    *,
    key: int | None = None,
    workers: int | None = None,
    engine: EngineName = "local",
    master: str | None = None,
    accept_open_cluster: bool = False,
) -> Release:
    """Generate records from an artefact, with their certificate. The table is not needed.

    Args:
        artefact: The artefact, or the path of its folder.
        records: The number of records.
        key: Same key, same records; None: a fresh key. It is public, and in the manifest.
        workers: Threads; None: one for each core.
        engine: ``spark``: tasks of a cluster generate the records, in parts.
        master: The URL of the Spark cluster; None: the active session.
        accept_open_cluster: Whether to use a session without encryption, with a UI or an event log.
    """
    if isinstance(artefact, str | Path):
        artefact = load(artefact)
    if not isinstance(artefact, Artefact):
        raise ConfigError(
            f"artefact is a {type(artefact).__name__}: give a deniable.Artefact, or the path of "
            "the folder that deniable learn wrote"
        )
    if engine not in get_args(EngineName):
        raise ConfigError(f'engine = "{engine}": must be one of {", ".join(get_args(EngineName))}')
    if engine == "local":
        _require_no_cluster(master, accept_open_cluster)
    keyed = Keyed.fresh() if key is None else Keyed(key)
    opened = open_engine(master, accept_open=accept_open_cluster) if engine == "spark" else None
    generated = artefact.records(records, keyed, workers=workers)
    certificate = artefact.certificate
    parameters = {**certificate.parameters, "records": records, "key": keyed.key}
    return Release(
        schema=artefact.schema,
        certificate=replace(certificate, parameters=parameters),
        encoded=generated,
        randomness=keyed,
        artefact=artefact,
        kind=artefact.kind,
        internal={},
        engine=opened,
    )


def synthesize(
    source: object,
    schema: SchemaSource,
    *,
    records: int,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    k: int = 50,
    key: int | None = None,
    model: GenerativeModel | None = None,
    noise: Randomness = _SYSTEM_NOISE,
    progress: Progress = no_progress,
    **options: Unpack[MoreOptions],
) -> Release:
    """Turn a confidential table into synthetic records with a privacy guarantee.

    The cost of a run follows from the schema and the options alone. So it is planned before the
    first row is read, and the recorded costs must equal the plan after the last.

    Args:
        source: A path of a file or a folder of parts; a pandas, polars or Arrow table; or a Spark
            DataFrame.
        schema: The schema, or the path of its TOML file.
        records: The number of records. Not the number of rows, unless that is public.
        epsilon: ε of the whole release (tested: of its model); inf: no noise, no guarantee.
        delta: δ of the whole release (tested: of its model).
        k: Least number of rows behind every copied combination of values.
        key: Same artefact and key, same records. Not accepted in modes ``tested`` and
            ``randomized``, whose randomness is secret.
        model: A generative model of your own, for mode ``tested``.
        noise: For tests only; nothing is guaranteed unless it is the system's randomness.
        progress: Called with a stage, the work done and the total.
        options: The other options: see ``Config``.

    Raises:
        DeniableError: See ``deniable.errors``; nothing was released.
    """
    config = Config.assemble({"epsilon": epsilon, "delta": delta, "k": k, **options})
    _require_request(config, records=records, key=key, model=model)
    config = _with_engine(config, source, own_model=model is not None)
    schema = schema if isinstance(schema, Schema) else Schema.read(schema)
    config = resolve_options(config, schema)
    planned = plan_run(schema, config, records=records)
    run = Run(schema=schema, config=config, plan=planned, randomness=noise, progress=progress)
    _require_confirmed(run)
    table = read_rows(source, run)
    run.progress("learn the model", 0, 1)
    with closing(table.rows):
        parts = partition_rows(table.rows, run)
        if run.plan.mode in ("tested", "randomized"):
            return _test_candidates(table, parts, run, records=records, model=model)
        internal = _confidential_counts(table)
        learnt = learn_model(parts, run)
        (omega,) = resolve_omegas(learnt, run)
        artefact = make_artefact(learnt, omega, parts["seeds"], table.kind, run)
    release = generate(artefact, records, key=key, workers=config.workers)
    return replace(release, internal=internal, engine=table.engine)


def _require_no_cluster(master: str | None, accept_open_cluster: bool) -> None:
    """Refuse options of a cluster that would have no effect."""
    if master is not None or accept_open_cluster:
        raise ConfigError("--master and --accept-open-cluster need --engine spark")


def _with_engine(config: Config, source: object, *, own_model: bool = False) -> Config:
    """Choose Spark for a Spark DataFrame; refuse what Spark does not support, before reading."""
    modules = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if config.engine == "local" and "pyspark" not in modules:
        _require_no_cluster(config.master, config.accept_open_cluster)
        return config
    if own_model:
        raise ConfigError(
            "a model of your own is not available on Spark: its test reads all rows one by one. "
            "Use engine local"
        )
    return replace(config, engine="spark")


def _require_confirmed(run: Run) -> None:
    """Refuse a schema that was read off the data and is not confirmed."""
    drafted = run.schema.drafted
    if drafted and not run.config.accept_drafted_schema:
        raise SchemaError(
            f"entries of the schema that are not confirmed: {len(drafted)}, for example "
            f'"{drafted[-1]}". Check each against public knowledge and set its confirmed = '
            "true (for rows_max, rows_max_confirmed), or pass --accept-drafted-schema (in Python, "
            "accept_drafted_schema=True); the manifest then lists them"
        )


def read_rows(source: object, run: Run) -> TableRows:
    """Read and encode the table; of each unit, keep at most ``max_rows_per_unit`` rows."""
    run.progress("read the table", 0, 1)
    if run.config.engine == "spark":
        table = _engine_of(source, run.config).read(source, run.schema)
    else:
        encoded = read_table(source, run.schema)
        rows = LocalRows(encoded.codes, run.config.workers, encoded.units)
        table = TableRows(rows, encoded.kind, encoded.adjusted)
    run.progress("read the table", 1, 1)
    table = replace(table, moved=moved_columns(table.adjusted, table.rows.number))
    if run.schema.unit is None:
        return table
    most = run.schema.max_rows_per_unit
    return replace(table, rows=table.rows.limit_per_unit(run.randomness, max_rows=most))


def _engine_of(source: object, config: Config) -> "SparkEngine":
    """Open the Spark engine for a source: on the session of a DataFrame; for a path, any."""
    if isinstance(source, str | Path):
        return open_engine(config.master, accept_open=config.accept_open_cluster)
    from deniable.counting.spark.spark_session import require_pyspark  # noqa: PLC0415 - an extra

    require_pyspark()
    from deniable.counting.spark.spark_engine import engine_of  # noqa: PLC0415

    return engine_of(source, accept_open=config.accept_open_cluster)


def open_engine(master: str | None, *, accept_open: bool) -> "SparkEngine":
    """Open the Spark engine on the active session, or on a new one."""
    from deniable.counting.spark.spark_session import open_session  # noqa: PLC0415 - an extra

    session = open_session(master, accept_open=accept_open)
    from deniable.counting.spark.spark_engine import SparkEngine  # noqa: PLC0415

    return SparkEngine(session)


def _confidential_counts(table: TableRows) -> dict[str, object]:
    """Return exact counts of the table, for the internal folder of a release."""
    return {
        "rows": table.rows.number,
        "adjusted_cells": table.adjusted,
        "moved_columns": list(table.moved),
    }


def partition_rows(rows: Rows, run: Run) -> dict[str, Rows]:
    """Divide the rows into D_T, D_P and D_S, each row in at most one; by default, all in each."""
    fractions = run.plan.fractions
    if fractions is None:
        return dict.fromkeys(map(str, PARTS), rows)
    empty = {str(part): rows.empty() for part in PARTS}
    shares = {str(part): share for part, share in fractions.items()}
    return {**empty, **rows.split(shares, run.randomness)}


def make_artefact(
    learnt: LearntModel, omega: int, seeds: Rows, kind: FrameKind, run: Run
) -> Artefact:
    """Complete a learnt model to an artefact: seed histogram, ledger check, refit, certificate.

    Args:
        learnt: The model.
        omega: The number of drawn attributes, by ``resolve_omegas``.
        seeds: The rows of D_S. Confidential.
        kind: The kind of data frame that the table came in.
        run: The run.
    """
    histogram, spent = _learn_seeds(seeds, learnt, omega, run)
    Ledger((*learnt.spends, *spent)).require_equal(run.plan.privacy.spends)
    prefixes = draw_prefix_pool(learnt.network, histogram, run.schema.pair_masks)
    learnt = fit_to_prefixes(learnt, prefixes, run)
    copies = histogram is not None and histogram.is_copied
    certificate = certify(run, omegas=(omega,), extra={}, copies_prefixes=copies)
    run.progress("learn the model", 1, 1)
    return Artefact(
        schema=run.schema,
        network=learnt.network,
        evidence=learnt.evidence,
        omega=omega,
        histogram=histogram,
        certificate=certificate,
        kind=kind,
    )


def resolve_omegas(learnt: LearntModel, run: Run) -> tuple[int, ...]:
    """Take the planned values of ω, or choose one from the noisy model.

    In mode one-shot, a planned ω is raised if the noisy order begins with attributes of so many
    values that their combinations cannot be listed: a run whose budget is spent is not refused.
    """
    law, network = run.plan.privacy.seeds, learnt.network
    is_listed = run.plan.mode == "one-shot"
    listed = longest_listed(_ordered_sizes(network)) if is_listed else None
    if run.plan.omegas:
        least = 0 if listed is None else len(network.order) - listed
        return tuple(max(omega, least) for omega in run.plan.omegas)
    threshold = run.config.k + (law.radius if law is not None else 0)
    chosen = choose_omega(
        network, records=learnt.seed_count, threshold=threshold, max_length=listed
    )
    return (chosen,)


def _ordered_sizes(network: Network) -> list[int]:
    return [network.attributes[i].size for i in network.order]


def _learn_seeds(
    rows: Rows, learnt: LearntModel, omega: int, run: Run
) -> tuple[KeptPrefixes | None, tuple[Spend, ...]]:
    """Learn the one-shot histogram of seed prefixes; none if all attributes are drawn."""
    law, network = run.plan.privacy.seeds, learnt.network
    if law is None:
        return None, ()
    length = len(network.order) - omega
    sizes = [attribute.size for attribute in network.attributes]
    (counted,) = rows.frequent_prefixes(network.order, [length], sizes, floor=run.config.k)
    # Drawn after the rows were counted: an engine that counts again draws no second time.
    rng = run.randomness.at("noise", 1)
    histogram, spent = learn_histogram(
        rng, counted, k=run.config.k, law=law, records=learnt.seed_count
    )
    run.progress("count shared combinations", 1, 1)
    return histogram, (spent,)


def _test_candidates(
    table: TableRows,
    parts: Mapping[str, Rows],
    run: Run,
    *,
    records: int,
    model: GenerativeModel | None,
) -> Release:
    """Release records that each passed a deniability test against the table: the paper's modes."""
    seeds = parts["seeds"]
    if run.plan.mode == "tested" and not seeds.number:
        raise BudgetError("no record went to the seeds: use --data-use whole, or a larger table")
    if model is None:
        learnt = learn_model(parts, run)
        built_in = NetworkModel(learnt.network, resolve_omegas(learnt, run))
        candidates = builtin_source(built_in, seeds, run, records=records)
        Ledger((*learnt.spends, *candidates.spends)).require_equal(run.plan.privacy.spends)
    else:
        candidates = own_model_source(model, seeds, run)
    run.progress("learn the model", 1, 1)
    released, attempts = release_candidates(candidates, run, records=records)
    certificate = certify(
        run,
        omegas=candidates.omegas,
        extra={"records": records, **candidates.parameters},
        own_model=model is not None,
    )
    return Release(
        schema=run.schema,
        certificate=certificate,
        encoded=released,
        # Draws values within public bins, the same at every reading; never stored or printed.
        randomness=Keyed.derived(run.randomness.at("values")),
        artefact=None,
        kind=table.kind,
        internal={**_confidential_counts(table), "seeds": seeds.number, **attempts},
        engine=table.engine,
    )


def _require_request(
    config: Config, *, records: int, key: int | None, model: GenerativeModel | None
) -> None:
    """Refuse a number of records, a key or a model that is invalid, or unfit for the mode."""
    mode = config.mode or "one-shot"
    require_record_count(records)
    if key is not None:
        Keyed(key)  # refuse a bad key before a row is read
    if model is not None and mode != "tested":
        raise ConfigError("a model of your own needs mode = tested: its cost is not known here")
    if key is not None and mode in ("tested", "randomized"):
        raise ConfigError(
            f"--mode {mode} draws real records as seeds: its randomness is secret and has no key"
        )
