"""The story, one stage a line: this is the Python API."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from deniable.arrays import Codes
from deniable.candidates import built_in_road, own_road, release_from
from deniable.certificates import certify
from deniable.config import Config
from deniable.data.frames import Kind
from deniable.data.schema import Schema
from deniable.data.split import split_records
from deniable.data.tables import read_table
from deniable.data.units import bound_rows
from deniable.engine.local import count_prefixes
from deniable.errors import BudgetError, ConfigError, SchemaError
from deniable.learning import Learnt, learn_model
from deniable.model.generative import GenerativeModel
from deniable.privacy.ledger import PARTS, Ledger, Spend
from deniable.randomness import Keyed, Randomness, Secret
from deniable.release.histogram import SeedHistogram, learn_histogram
from deniable.release.storage import Artefact
from deniable.release.whole import Release
from deniable.spending import RunPlan, plan_run

# Told how far a stage has come: its name, how much is done, of how much.
Watch = Callable[[str, int, int], None]

_SECRET = Secret()


def unwatched(stage: str, done: int, of: int) -> None:
    """Tell nobody how far a stage has come."""


def plan(schema: Schema, *, records: int | None = None, **options: Any) -> RunPlan:
    """Return what a run would cost and the noise it means. No row is read.

    Args:
        schema: What the table's columns may hold.
        records: How many records; only mode ``randomized`` costs more for more.
        options: As in ``Config``.
    """
    return plan_run(schema, Config.assemble(options), records=records)


def learn(
    source: object,
    schema: Schema,
    *,
    noise: Randomness = _SECRET,
    watch: Watch = unwatched,
    **options: Any,
) -> Artefact:
    """Return what was learnt of a confidential table, with noise: safe to generate from.

    Args:
        source: A path, or a pandas, polars or Arrow table.
        schema: What its columns may hold.
        noise: For tests; of anything but the system's randomness nothing is claimed.
        watch: Told how far it has come.
        options: As in ``Config``.

    Raises:
        DeniableError: See ``deniable.errors``; nothing was learnt.
    """
    return _learn(source, schema, Config.assemble(options), noise, watch)[0]


def synthesize(
    source: object,
    schema: Schema,
    *,
    records: int,
    key: int | None = None,
    model: GenerativeModel | None = None,
    noise: Randomness = _SECRET,
    watch: Watch = unwatched,
    **options: Any,
) -> Release:
    """Turn a confidential table into records that may leave, and say what that cost.

    What a run costs follows from the schema and the options alone. So the plan is made before
    the first row is read, and what was spent must equal it after the last.

    Args:
        source: A path, or a pandas, polars or Arrow table.
        schema: What its columns may hold.
        records: How many records to release. Not the number of rows, unless that is public.
        key: Addresses generation from an artefact; a mode that draws real seeds has none.
        model: A generative model of your own, for mode ``tested``.
        noise: For tests; of anything but the system's randomness nothing is claimed.
        watch: Told how far it has come.
        options: As in ``Config``.

    Raises:
        DeniableError: See ``deniable.errors``; nothing was released.
    """
    config = Config.assemble(options)
    if records < 1:
        raise ConfigError(f"records = {records}: ask for at least 1")
    mode = config.mode or "one-shot"
    if model is not None and mode != "tested":
        raise ConfigError("a model of your own needs mode = tested: its cost is not known here")
    if mode in ("one-shot", "seedless"):
        artefact, internal = _learn(source, schema, config, noise, watch)
        release = generate(artefact, records, key=key, workers=config.workers, watch=watch)
        return replace(release, internal=internal)
    if key is not None:
        raise ConfigError(
            f"--mode {mode} draws real records as seeds: its randomness is secret and has no key"
        )
    return _tested(
        source, schema, records=records, model=model, config=config, noise=noise, watch=watch
    )


def _learn(
    source: object, schema: Schema, config: Config, noise: Randomness, watch: Watch
) -> tuple[Artefact, dict[str, int]]:
    """Return the artefact, and what only the data holder may know of its making."""
    if (config.mode or "one-shot") not in ("one-shot", "seedless"):
        raise ConfigError(
            f"--mode {config.mode} needs the table while it generates, so there is no artefact to "
            "keep; use deniable synthesize"
        )
    run = plan_run(schema, config)
    watch("read the table", 0, 1)
    codes, kind = _read(source, schema, config, noise)
    parts = _parts(codes, run, noise)
    watch("learn the model", 0, 1)
    learnt = learn_model(parts, schema, config, run, noise)
    histogram, spent = _histogram(learnt, parts["seeds"], config, run, noise)
    Ledger((*learnt.spends, *spent)).require_equal(run.noise.spends)
    watch("learn the model", 1, 1)
    artefact = Artefact(
        schema=schema,
        network=learnt.network,
        evidence=learnt.evidence,
        omegas=learnt.omegas,
        histogram=histogram,
        certificate=certify(
            run,
            config,
            omegas=learnt.omegas,
            is_secret=noise.is_secret,
            schema=schema,
            extra={},
        ),
        kind=kind,
    )
    return artefact, {"rows": len(codes), "seeds": len(parts["seeds"])}


def generate(
    artefact: Artefact,
    records: int,
    *,
    key: int | None = None,
    workers: int | None = None,
    watch: Watch = unwatched,
) -> Release:
    """Return records generated from an artefact, with their certificate.

    Args:
        artefact: What was learnt; the table is not needed.
        records: How many.
        key: Same key, same records; None: a fresh one. It is public, and in the manifest.
        workers: Threads; None: one for each core.
        watch: Told how far it has come.
    """
    keyed = Keyed.fresh() if key is None else Keyed(key)
    blocks = artefact.blocks(records, keyed, workers=workers)
    certificate = artefact.certificate
    told = {**certificate.parameters, "records": records, "key": keyed.key}
    return Release(
        schema=artefact.schema,
        certificate=replace(certificate, parameters=told),
        blocks=_watched(blocks, records, watch),
        randomness=keyed,
        artefact=artefact,
        kind=artefact.kind,
        internal={},
    )


def _read(source: object, schema: Schema, config: Config, noise: Randomness) -> tuple[Codes, Kind]:
    """Return the table's codes, if its description may be used; of each unit as many as count."""
    if schema.drafted and not config.accept_drafted_schema:
        raise SchemaError(
            f"{len(schema.drafted)} descriptions were read off the data and nobody has confirmed "
            f'them, "{schema.drafted[-1]}" for one: look at each and set confirmed = true (for '
            "rows_max, rows_max_confirmed), or say --accept-drafted-schema (the manifest will tell)"
        )
    table = read_table(source, schema)
    if table.units is None:
        return table.codes, table.kind
    most = schema.max_rows_per_unit
    return bound_rows(table.codes, table.units, noise.at("units"), most=most), table.kind


def _parts(codes: Codes, run: RunPlan, noise: Randomness) -> dict[str, Codes]:
    """Return D_T, D_P and D_S: all records each, or each record in at most one."""
    if run.fractions is None:
        return dict.fromkeys(map(str, PARTS), codes)
    nobody = {str(part): codes[:0] for part in PARTS}
    shares = {str(part): share for part, share in run.fractions.items()}
    return nobody | split_records(codes, shares, noise.at("split"))


def _histogram(
    learnt: Learnt, seeds: Codes, config: Config, run: RunPlan, noise: Randomness
) -> tuple[SeedHistogram, tuple[Spend, ...]]:
    """Return what is kept of the seeds, once and for all; nothing in mode ``seedless``."""
    if run.noise.seeds is None:
        return SeedHistogram(), ()
    network = learnt.network
    m = len(network.order)
    lengths = [m - omega for omega in reversed(learnt.omegas) if omega < m]
    sizes = [attribute.size for attribute in network.attributes]
    shown, counts = count_prefixes(seeds, network.order, lengths, sizes)
    histogram, spent = learn_histogram(
        noise.at("noise", 1),
        shown,
        counts,
        k=config.k,
        law=run.noise.seeds,
        records=learnt.seeds,
    )
    return histogram, (spent,)


def _tested(
    source: object,
    schema: Schema,
    *,
    records: int,
    model: GenerativeModel | None,
    config: Config,
    noise: Randomness,
    watch: Watch,
) -> Release:
    """Return records that each passed a deniability test against the table: the paper's way."""
    run = plan_run(schema, config, records=records)
    watch("read the table", 0, 1)
    codes, kind = _read(source, schema, config, noise)
    parts = _parts(codes, run, noise)
    internal = {"rows": len(codes), "seeds": len(parts["seeds"])}
    if run.mode == "tested" and not internal["seeds"]:
        raise BudgetError("no record went to the seeds: use --data-use whole, or a larger table")
    watch("learn the model", 0, 1)
    if model is None:
        road = built_in_road(parts, schema, config, run, noise, records=records)
    else:
        road = own_road(model, parts["seeds"], schema, config, noise)
    watch("learn the model", 1, 1)
    return Release(
        schema=schema,
        certificate=certify(
            run,
            config,
            omegas=road.omegas,
            is_secret=noise.is_secret,
            schema=schema,
            extra={"records": records, **road.told},
            own_model=model is not None,
        ),
        blocks=_watched(release_from(road, records, config, internal), records, watch),
        randomness=noise,
        artefact=None,
        kind=kind,
        internal=internal,
    )


def _watched(blocks: Iterator[Codes], records: int, watch: Watch) -> Iterator[Codes]:
    """Pass blocks on, and tell how many records there are."""
    done = 0
    watch("records", 0, records)
    for block in blocks:
        done += len(block)
        yield block
        watch("records", done, records)
