"""Golden hashes: what the product makes from fixed tables and fixed noise, one hash a line.

    python tools/golden.py [--write] [--tables demo adult national2019]

A change that is meant to alter nothing alters no hash. One that alters some is written with --write,
and the changelog says which and why. The schemas of Adult and of national2019 stand in tools/golden;
their tables are read from ../shared/data, and left out, with a word, where they are not there. The
version is no part of a hash. Hashes are those of one platform: on another, records may differ.
"""

import argparse
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import deniable as dn
from deniable.demo import demo_schema, demo_table
from deniable.drafting.draft import draft_schema
from deniable.pipeline.plan_report import report_plan
from deniable.randomness import Keyed, Rng, Stage

ROOT = Path(__file__).parents[1]
HASHES = Path(__file__).parent / "golden" / "hashes.json"
SHARED = ROOT.parent / "shared" / "data"
TABLES = {
    "demo": demo_table(),
    "adult": SHARED / "adult" / "adult.csv.gz",
    "national2019": SHARED / "sdnist" / "national2019.csv",
}
RECORDS, KEYS = 1000, (1, 2, 3)
# By name: the options of a run; "copied" is the number of attributes that records copy. Those of the
# first four are run with each key.
RUNS: dict[str, dict[str, Any]] = {
    "one-shot": {"mode": "one-shot"},
    "seedless": {"mode": "seedless"},
    "tested": {"mode": "tested", "omega": "3-5", "k": 20},
    "randomized": {
        "mode": "randomized",
        "omega": 4,
        "k": 60,
        "epsilon": 20.0,
        "delta": 1e-3,
        "accept_large_delta": True,
    },
    "split": {"mode": "one-shot", "estimator": "norm-sub", "data_use": "split", "epsilon": 2.0},
    "clip": {"mode": "one-shot", "estimator": "clip", "copied": 3},
    "paper": {"mode": "seedless", "profile": "paper", "epsilon": 4.0},
    "no noise": {"epsilon": math.inf, "copied": 3},
}
# The randomized test costs by the record.
FEW_RECORDS = 5


@dataclass(frozen=True)
class ClaimedNoise:
    """Keyed noise that passes for the system's, so that a run certifies what users would see."""

    key: int = 1
    is_secret: ClassVar[bool] = True

    def at(self, stage: Stage, block: int = 0) -> Rng:
        """Return the generator of a stage."""
        return Keyed(self.key).at(stage, block)


def digest(value: object) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def read_schema(table: str) -> dn.Schema:
    return demo_schema() if table == "demo" else dn.Schema.read(HASHES.parent / f"{table}.toml")


def options_of(run: str, schema: dn.Schema) -> dict[str, Any]:
    options = {"accept_drafted_schema": True, **RUNS[run]}
    if "copied" in options:
        options["omega"] = len(schema.names) - options.pop("copied")
    return options


def records_of(run: str) -> int:
    return FEW_RECORDS if RUNS[run].get("mode") == "randomized" else RECORDS


def hash_drafts(table: str) -> Iterator[tuple[str, str]]:
    for name, epsilon in (("plain", None), ("private", 1.0)):
        draft = draft_schema(TABLES[table], draft_epsilon=epsilon, noise=ClaimedNoise())
        yield f"draft {name}", digest(draft.text)
        yield f"draft {name} notes", digest(draft.notes)


def hash_plans(table: str) -> Iterator[tuple[str, str]]:
    schema = read_schema(table)
    for run in RUNS:
        config = dn.Config.assemble(options_of(run, schema))
        planned = dn.plan(schema, records=records_of(run), **options_of(run, schema))
        report = report_plan(planned, schema, config, records=records_of(run))
        yield f"plan {run}", digest(json.dumps(report, sort_keys=True))


def hash_release(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of a release; of its manifest, the claims, the options and the rest."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            yield path.relative_to(folder).as_posix(), digest(path.read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name in ("version", "checksum", "files"):
        manifest.pop(name)
    claims = {name: manifest.pop(name) for name in ("guarantee", "spends", "accountants")}
    yield "manifest: claims", digest(claims)
    yield "manifest: parameters", digest(manifest.pop("parameters"))
    yield "manifest: the rest", digest(manifest)


def hash_run(table: str, run: str, key: int, folder: Path) -> Iterator[tuple[str, str]]:
    schema = read_schema(table)
    options = options_of(run, schema)
    keyed = {} if RUNS[run].get("mode") in ("tested", "randomized") else {"key": key}
    release = dn.synthesize(
        TABLES[table], schema, records=records_of(run), noise=ClaimedNoise(key), **keyed, **options
    )
    release.write(folder / run)
    yield from hash_release(folder / run)
    report = dn.verify(folder / run)
    checks = [[each.name, each.passed, each.exact] for each in report.checks]
    yield "verify", digest([checks, list(report.unknown)])


def all_hashes(tables: list[str]) -> Iterator[tuple[str, str]]:
    for table in tables:
        if not TABLES[table].exists():
            sys.stderr.write(f"{table}: {TABLES[table]} is not there; left out\n")
            continue
        yield from ((f"{table}, {what}", found) for what, found in hash_drafts(table))
        yield from ((f"{table}, {what}", found) for what, found in hash_plans(table))
        for at, run in enumerate(RUNS):
            for key in KEYS if at < 4 else KEYS[:1]:
                with tempfile.TemporaryDirectory() as name:
                    for what, found in hash_run(table, run, key, Path(name)):
                        yield f"{table}, {run}, {key}: {what}", found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the hashes that changed")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    given = parser.parse_args()
    now = dict(all_hashes(given.tables))
    read = {name.partition(",")[0] for name in now}
    known = json.loads(HASHES.read_text(encoding="utf-8")) if HASHES.exists() else {}
    before = {name: known[name] for name in known if name.partition(",")[0] in read}
    for name in sorted(before.keys() | now.keys()) if before else ():
        if before.get(name) != now.get(name):
            what = "new" if name not in before else "gone" if name not in now else "changed"
            sys.stdout.write(f"{what:8} {name}\n")
    changed = now != before
    if changed and given.write:
        written = {**{name: known[name] for name in known if name not in before}, **now}
        HASHES.write_text(json.dumps(written, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(now)} hashes, {'some changed' if changed else 'as before'}\n")
    return 1 if changed and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
