"""Releases of a small table of four attributes, and helpers that verify and forge them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from deniable.config import Config
from deniable.data.codec import Codec
from deniable.pipeline.api import synthesize
from deniable.pipeline.certificate import certify
from deniable.pipeline.run_plan import Run, plan_run
from deniable.randomness import Secret
from deniable.release.atomic_files import encode_json
from deniable.release.manifest import add_checksum
from deniable.schema.schema import Schema
from deniable.verification.claims import ManifestClaims
from deniable.verification.manifest_checks import run_manifest_checks
from deniable.verification.verify import VerificationReport
from worlds import plain_attribute

SCHEMA = Schema.parse(
    """
format = 1
rows_max = 5_000

[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "fletcher", "wainwright", "chandler", "thatcher", "turner"]

[[attribute]]
name = "years"
type = "integer"
min = 0
max = 11
buckets = { width = 4 }
outside = "clip"

[[attribute]]
name = "home"
type = "categorical"
values = ["barge, moored", "yurt", "mill", "tower", "cave"]
missing = ["?", ""]

[[attribute]]
name = "boats"
type = "integer"
min = 1
max = 6
outside = "drop"
confirmed = false
"""
)


ROWS = 3_000


# Probability of the rare values of each attribute, whose prefixes are never kept.
RARE = 0.02


def table(key: int = 1, rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(key)

    def column(size: int, shift: np.ndarray) -> np.ndarray:
        common = np.full(size, RARE)
        common[:3] += (1 - common.sum()) / 3
        return (rng.choice(size, rows, p=common) + shift) % size

    trade = column(6, np.zeros(rows, int))
    years = column(12, trade)
    home = column(6, trade // 3)
    boats = column(6, np.zeros(rows, int))
    columns = [np.asarray(c, dtype=np.uint16) for c in (trade, years, home, boats)]
    return Codec(SCHEMA).decode(np.asfortranarray(np.stack(columns, axis=1)))


TABLE = table()


USUAL = {"epsilon": 2.0, "delta": 1e-6, "k": 100, "accept_drafted_schema": True}


def make(folder: Path, *, records: int = 300, file_format: str = "csv", **options: Any) -> Path:
    release = synthesize(TABLE, SCHEMA, records=records, **{**USUAL, **options})
    release.write(folder / "out", file_format=file_format)
    return folder / "out"


def failing(report: VerificationReport) -> list[str]:
    return [check.name for check in report.failed]


FEW = {"mode": "randomized", "records": 2, "k": 300, "delta": 1e-5}


def failed_checks(claims: ManifestClaims) -> list[str]:
    return [check.name for check in run_manifest_checks(claims) if not check.passed]


def refused(document: dict[str, Any], schema: Schema = SCHEMA) -> list[str]:
    return failed_checks(
        ManifestClaims(document=add_checksum(document), subject="release", schema=schema)
    )


def cheaper(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """Scale the claimed ε consistently: claim, accountant's total and sentence."""
    text = json.dumps(document, ensure_ascii=False)
    epsilon = document["guarantee"]["epsilon"]
    return json.loads(text.replace(repr(epsilon), repr(round(epsilon * factor, 5))))


def forged(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the manifest, and write it with a correct checksum."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_bytes(encode_json(add_checksum(document)))
    return folder


def plan_manifest(
    m: int, rows_max: int, epsilon: float, /, **options: Any
) -> tuple[dict, Schema, int]:
    """Return the manifest of a planned run, its schema, and the number of tables of pairs."""
    attributes = tuple(plain_attribute(f"x{i}", 3) for i in range(m))
    schema = Schema(attributes, rows_max=rows_max)
    config = Config.assemble(
        {"epsilon": epsilon, "omega": str(min(m, 2)), "mode": "tested", **options}
    )
    run = plan_run(schema, config, records=5)
    made = certify(
        Run(schema=schema, config=config, plan=run, randomness=Secret()),
        omegas=(min(m, 2),),
        extra={"records": 5, "order": []},
    )
    return made.document(schema, {}), schema, run.privacy.pairs.table_count
