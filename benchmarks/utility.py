"""Utility: our releases scored on real tables, by the shared scoring program.

    python benchmarks/utility.py [--shared ../shared] [--tables acs13 adult ...] [--epsilons 1 ...]
        [--releases one-shot ...] [--runs 5] [--held-out] [--fast]

Every release is learnt from training rows and scored against others. With --held-out both are
taken from the training rows, 7 in 10 to learn from: that is for tuning, and never sees the test
rows. The schema of the ACS sample is written by hand; those of the other tables are drafted from
the training rows, as a steward would start. Columns: mean total variation of attributes, pairs and
triples; accuracy on real rows of a forest and a logistic regression trained on the release;
accuracy of a forest telling real from released (0.5 is best); seconds from table to file.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import deniable as dn
from deniable.drafting.draft import draft_schema

ROOT = Path(__file__).parents[1]
COLUMNS = ("tv1_mean", "tv2_mean", "tv3_mean", "acc_rf", "acc_lr", "dist_rf")
# By name: the file, and the column that learners are asked for.
TABLES = {
    "acs13": ("acs13/acs13_train.csv", "incc"),
    "adult": ("adult/adult.csv.gz", "income"),
    "bank_marketing": ("bank_marketing/bank_marketing.csv.gz", "y"),
    "sd2011": ("sd2011/sd2011.csv", "smoke"),
    "sdnist": ("sdnist/national2019.csv", "PINCP_DECILE"),
    "german_credit": ("german_credit/german_credit.csv", "credit"),
}


def releases(names):
    """Return the releases to compare, by name."""
    nobody = {name: [] for name in names}
    return {
        "one-shot": {"mode": "one-shot"},
        "seedless": {"mode": "seedless"},
        "tested": {"mode": "tested"},
        "split": {"mode": "one-shot", "estimator": "norm-sub", "data_use": "split"},
        "norm-sub": {"mode": "seedless", "estimator": "norm-sub"},
        "clip": {"mode": "seedless", "estimator": "clip"},
        "paper": {"mode": "seedless", "profile": "paper"},
        "no edges": {"mode": "seedless", "graph": nobody},
    }


def prepare(folder, shared, table, *, held_out):
    """Write the rows to learn from and the rows to score against; return the schema."""
    path = shared / "data" / TABLES[table][0]
    whole = pl.read_csv(path, infer_schema=False)
    if table == "acs13":
        schema = dn.Schema.read(ROOT / "examples/acs13/schema.toml")
        train, test = whole, pl.read_csv(path.with_name("acs13_test.csv"), infer_schema=False)
    else:
        train, test = split(whole, seed=0)
    if held_out:
        train, test = split(train, seed=1)
    train.write_csv(folder / "train.csv")
    test.write_csv(folder / "test.csv")
    if table != "acs13":
        schema = dn.Schema.parse(draft_schema(folder / "train.csv").text)
    return schema, len(train)


def split(rows, *, seed):
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = int(0.7 * len(rows))
    return rows[order[:cut]], rows[order[cut:]]


def score(program, folder, target, *, fast):
    command = [
        sys.executable, program, folder / "train.csv", folder / "test.csv", folder / "records.csv",
        "--target", target, "--cache", folder, *(["--fast"] if fast else []),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure(options, table, epsilons):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema, rows = prepare(folder, options.shared, table, held_out=options.held_out)
        for release, setting in releases(schema.names).items():
            if release not in options.releases:
                continue
            for epsilon in epsilons:
                found, seconds = [], []
                for _ in range(options.runs):
                    start = time.perf_counter()
                    made = dn.synthesize(
                        folder / "train.csv", schema, records=rows, epsilon=epsilon,
                        accept_drafted_schema=True, **setting,
                    )  # fmt: skip
                    made.write_file(folder / "records.csv")
                    seconds.append(time.perf_counter() - start)
                    row = score(
                        options.shared / "tools/score.py", folder, TABLES[table][1],
                        fast=options.fast,
                    )  # fmt: skip
                    found.append([row.get(column, math.nan) for column in COLUMNS])
                    (folder / "records.csv").unlink()
                    (folder / "records.csv.manifest.json").unlink()
                tell(table, f"{release}, eps {epsilon:g}", np.array(found), seconds)


def tell(table, name, found, seconds):
    shown = "".join(
        f"{mean:9.4f}" + (f" ±{spread:.4f}" if len(found) > 1 else "")
        for mean, spread in zip(found.mean(axis=0), found.std(axis=0), strict=True)
    )
    print(f"{table:16}{name:22}{shown}{np.mean(seconds):9.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--tables", nargs="*", default=["acs13"], choices=TABLES)
    parser.add_argument("--epsilons", nargs="*", type=float, default=[1.0])
    parser.add_argument("--releases", nargs="*", default=["one-shot", "seedless"])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--fast", action="store_true", help="distances only")
    options = parser.parse_args()
    print(f"{'table':16}{'release':22}" + "".join(f"{name:>9}" for name in COLUMNS) + "  seconds")
    for table in options.tables:
        measure(options, table, options.epsilons)


if __name__ == "__main__":
    main()
