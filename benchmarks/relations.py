"""Relations that survive: our releases on real tables, by the shared program for relations.

    python benchmarks/relations.py [--shared ../shared] [--tables adult titanic ...] [--epsilon 1]
        [--mode one-shot] [--splits 3]

Each split learns from 7 rows in 10, with a schema drafted from those rows, and compares with the
other 3. ACS-13 has a file of test rows; its runs differ in their noise alone. Columns: Cramér's V,
rank correlations and group gaps that are kept, as shares of what the training rows themselves keep;
records with an impossible pair; mean total variation of pairs and triples of groups; seconds from
table to file. Means over the splits.
"""

import argparse
import importlib.util
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import deniable as dn
from deniable.drafting.draft import draft_schema

ROOT = Path(__file__).parents[1]
TABLES = {
    "acs13": "acs13/acs13_train.csv",
    "adult": "adult/adult.csv.gz",
    "bank_marketing": "bank_marketing/bank_marketing.csv.gz",
    "national2019": "sdnist/national2019.csv",
    "sd2011": "sd2011/sd2011.csv",
    "titanic": "titanic/titanic.csv",
    "nltcs": "nltcs/nltcs.csv",
}
KEPT = ("v_kept", "rho_kept", "gap_kept")
COLUMNS = (*KEPT, "impossible", "tvb2", "tvb3", "seconds")


def load_program(shared):
    """Import the shared program."""
    found = importlib.util.spec_from_file_location("relations", shared / "tools" / "relations.py")
    program = importlib.util.module_from_spec(found)
    found.loader.exec_module(program)
    return program


def split_table(folder, path, seed):
    """Write 7 rows in 10 to learn from, and the others to compare with."""
    rows = pl.read_csv(path, infer_schema=False)
    other = path.with_name(path.name.replace("_train", "_test"))
    if other != path:
        rows.write_csv(folder / "train.csv")
        pl.read_csv(other, infer_schema=False).write_csv(folder / "test.csv")
        return len(rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    limit = int(0.7 * len(rows))
    rows[order[:limit]].write_csv(folder / "train.csv")
    rows[order[limit:]].write_csv(folder / "test.csv")
    return limit


def measure(program, path, seed, *, epsilon, mode, draft_epsilon=None):
    """Measure one release of one split; with ``draft_epsilon``, of a private draft."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = split_table(folder, path, seed)
        schema = folder / "schema.toml"
        schema.write_text(draft_schema(folder / "train.csv", draft_epsilon=draft_epsilon).text)
        start = time.perf_counter()
        made = dn.synthesize(
            folder / "train.csv",
            schema,
            records=records,
            epsilon=epsilon,
            mode=mode,
            accept_drafted_schema=True,
        )
        made.write(folder / "out")
        seconds = time.perf_counter() - start
        found = program.main(
            folder / "train.csv", folder / "test.csv", folder / "out" / "synthetic.csv"
        )
    row = {each: found[each] for each in ("impossible", "tvb2", "tvb3")} | {"seconds": seconds}
    for each in KEPT:
        real = found.get(f"real_{each}")
        row[each] = found[each] / real if real and found.get(each) is not None else float("nan")
    return row


def main():
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--mode", default="one-shot")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    program = load_program(options.shared)
    print(f"{'table':16}" + "".join(f"{column:>11}" for column in COLUMNS))
    for table in options.tables:
        path = options.shared / "data" / TABLES[table]
        rows = [
            measure(program, path, seed, epsilon=options.epsilon, mode=options.mode)
            for seed in range(options.splits)
        ]
        means = [float(np.mean([row[column] for row in rows])) for column in COLUMNS]
        print(f"{table:16}" + "".join(f"{mean:11.3f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
