"""A small table to attack, rows of its population outside it, quick audits, made-up results."""

import math
from pathlib import Path

import numpy as np
import polars as pl

from deniable.arrays import CODE
from deniable.audit import table_audit
from deniable.audit.exposure import AuditTargets
from deniable.audit.membership_results import MembershipResults
from deniable.audit.query_attacks import QueryAttack
from deniable.audit.retraining import AuditedTable, CoinRun
from deniable.config import Config
from deniable.data.codec import Codec
from deniable.data.dataframes import PolarsKind
from deniable.pipeline.run_plan import Run, plan_run, resolve_options
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

COLOURS = ("puce", "ecru", "mauve", "ochre")
PLACES = ("fen", "moor", "tarn", "scree", "skerry")
SCHEMA = Schema.parse(
    f"""
format = 1
rows_max = 1_000

[[attribute]]
name = "colour"
type = "categorical"
values = {list(COLOURS)}

[[attribute]]
name = "size"
type = "integer"
min = 0
max = 19

[[attribute]]
name = "place"
type = "categorical"
values = {list(PLACES)}
"""
)
NOISE = Keyed(5)


def people(rows, key):
    """Rows of the population: rare colours and places, and sizes that follow the colour."""
    rng = np.random.default_rng(key)
    colour = rng.choice(4, rows, p=[0.6, 0.3, 0.09, 0.01])
    size = np.clip((rng.normal(8, 4, rows) + 2 * colour).astype(int), 0, 19)
    place = rng.choice(5, rows, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    return pl.DataFrame(
        {
            "colour": np.array(COLOURS)[colour],
            "size": size,
            "place": np.array(PLACES)[place],
        }
    )


def codes_of(frame):
    return np.asfortranarray(Codec(SCHEMA).encode(frame), dtype=CODE)


TABLE, HOLDOUT = people(600, 1), people(400, 2)


def run_of(records=500, **options):
    """A run with reproducible noise."""
    config = Config.assemble({**options, "accept_large_delta": True})
    config = resolve_options(config, SCHEMA)
    plan = plan_run(SCHEMA, config, records=records)
    return Run(schema=SCHEMA, config=config, plan=plan, randomness=NOISE)


def audited_table(targets, records=500, **options):
    """The small table, with these targets, ready to be attacked."""
    return AuditedTable(
        codes=codes_of(TABLE),
        targets=np.asarray(targets),
        run=run_of(records, **options),
        kind=PolarsKind(SCHEMA.names),
        records=records,
    )


def quick_audit(out: Path, epsilon=math.inf, **options):
    """Audit the small table, quickly and reproducibly."""
    given = {"holdout": HOLDOUT, "records": 1_000, **options}
    return table_audit.audit_table(
        TABLE, SCHEMA, out=out, targets=20, runs=10, noise=NOISE, epsilon=epsilon, **given
    )


# Made-up results: targets and runs.
TARGETS, RUNS = 20, 30


def made_up_results(shift, epsilon):
    """Results of made-up scores: N(0, 1), moved by ``shift`` where the target is present."""
    rng = np.random.default_rng(4)
    audited = audited_table(range(TARGETS), mode="seedless", epsilon=math.inf)
    queries = QueryAttack.of(audited.codes[:TARGETS], Keyed(1).at("records"))
    base = queries.answers(audited.codes)
    runs = []
    for _ in range(RUNS):
        present = rng.random(TARGETS) < 0.5
        scores = rng.normal(size=TARGETS) + shift * present
        runs.append(CoinRun(present=present, ratios=scores, answers=base))
    targets = AuditTargets(rows=np.arange(TARGETS), most_exposed=np.arange(TARGETS) < 10)
    return MembershipResults.of(
        runs,
        queries,
        audited,
        targets=targets,
        epsilon=epsilon,
        delta=1e-9,
    )
