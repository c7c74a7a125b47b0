"""Seeds on a large table: one-shot and seedless releases of ACS-24, against held-out rows.

    python benchmarks/seeds.py [--shared ../shared] [--runs 4] [--epsilon 1]

Learns from all rows but 200,000, which are drawn once, and releases 200,000 records. Mean total
variation of all pairs of columns, and of 60 sets of three and of four columns, which are the same
for all runs. The training rows themselves are compared first: nothing can be expected to be closer.
Means of the runs, with the standard error.
"""

import argparse
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

import deniable as dn

ROOT = Path(__file__).parents[1]
TABLE = "acs24/acs24_table1.csv.gz"
SCHEMA = ROOT / "examples" / "acs24" / "schema.toml"
HELD_OUT = RECORDS = 200_000
SETS = 60
SPLIT_KEY, SETS_KEY = 11, 12


def choose_sets(columns):
    """List all pairs, then random triples and quadruples."""
    draws = np.random.default_rng(SETS_KEY)
    found = [list(combinations(range(columns), 2))]
    for size in (3, 4):
        every = list(combinations(range(columns), size))
        chosen = draws.choice(len(every), min(SETS, len(every)), replace=False)
        found.append([every[i] for i in sorted(chosen)])
    return found


def distance(one, other, sets):
    """Mean total variation of the columns in each set."""
    distances = []
    for columns in sets:
        names = [one.columns[i] for i in columns]
        shares = [
            frame.group_by(names).agg((pl.len() / frame.height).alias(name))
            for name, frame in (("p", one), ("q", other))
        ]
        both = shares[0].join(shares[1], on=names, how="full", coalesce=True).fill_null(0.0)
        distances.append(float((both["p"] - both["q"]).abs().sum()) / 2)
    return float(np.mean(distances))


def main():
    """Print a line for the training rows, and one for each mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=4)
    options = parser.parse_args()
    rows = pl.read_csv(options.shared / "data" / TABLE)
    order = np.random.default_rng(SPLIT_KEY).permutation(len(rows))
    test, train = rows[order[:HELD_OUT]], rows[order[HELD_OUT:]]
    sets = choose_sets(rows.width)
    print(f"{'':24}{'pairs':>20}{'triples':>20}{'quadruples':>20}")
    own = [distance(train, test, each) for each in sets]
    print(f"{'training rows':24}" + "".join(f"{found:20.5f}" for found in own), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "train.parquet"
        train.write_parquet(table)
        for mode in ("seedless", "one-shot"):
            found = np.empty((options.runs, len(sets)))
            for run in range(options.runs):
                release = dn.synthesize(
                    table, SCHEMA, records=RECORDS, epsilon=options.epsilon, mode=mode, key=run
                )
                records = pl.DataFrame(release.frame()).select(rows.columns)
                found[run] = [distance(records, test, each) for each in sets]
            errors = found.std(axis=0, ddof=min(1, options.runs - 1)) / np.sqrt(options.runs)
            numbers = (f"{m:.5f} ±{e:.5f}" for m, e in zip(found.mean(axis=0), errors, strict=True))
            print(f"{mode:24}" + "".join(f"{each:>20}" for each in numbers), flush=True)


if __name__ == "__main__":
    main()
