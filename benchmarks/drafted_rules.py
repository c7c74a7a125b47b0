"""What fewer drafted rules would cost: paired releases, with all rules and with the first ones.

    python benchmarks/drafted_rules.py [--shared ../shared] [--tables births sd2011 hotel]
        [--limit 60] [--epsilon 1] [--splits 2] [--keys 4]

Each split drafts a schema from 7 training rows in 10, and learns from them twice with the same
noise: with all drafted rules, and with the most surprising ones, which come first in a draft. The
shared program for relations compares with the test rows (of a table without a file of them: the
other 3 in 10). A line for each figure: with all rules, the harm of the limit (what it is worse by),
its standard error over the runs, and the smallest harm that would have been seen, at two standard
errors, with a power of 80 %. The last line of a table is the mean harm of its figures. A split with
no more rules than the limit is left out.
"""

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
from relations import ROOT, load_program

import deniable as dn
from deniable.drafting.draft import draft_schema
from deniable.randomness import Keyed

TABLES = {
    "births": "births/births_train.csv.gz",
    "sd2011": "sd2011/sd2011.csv",
    "hotel": "hotel/hotel_train.csv.gz",
}
KEPT = ("v_kept", "rho_kept", "gap_kept")
FIGURES = (*KEPT, "v_err", "rho_err", "gap_err", "tvb2", "tvb3", "impossible")
# A harm of this many standard errors exceeds two of them with probability 80 %.
POWER = 2.84


@dataclass(frozen=True)
class SameNoise:
    """Noise of a key, which claims to be secret, so that a run chooses what users' runs do."""

    key: int
    is_secret: ClassVar[bool] = True

    def at(self, stage, block=0):
        """Return the generator of a stage."""
        return Keyed(self.key).at(stage, block)


def split_rows(path, seed):
    """7 training rows in 10, and rows to compare with."""
    rows = pl.read_csv(path, infer_schema=False)
    order = np.random.default_rng(seed).permutation(len(rows))
    limit = int(0.7 * len(rows))
    other = path.with_name(path.name.replace("_train", "_test"))
    compared = pl.read_csv(other, infer_schema=False) if other != path else rows[order[limit:]]
    return rows[order[:limit]], compared


def harm_of(figure, before, after):
    """How much worse a figure is; None where the table has no such figure."""
    if before.get(figure) is None or after.get(figure) is None:
        return None
    return before[figure] - after[figure] if figure in KEPT else after[figure] - before[figure]


def measure(program, folder, schema, records, *, epsilon, key):
    """The figures of one release."""
    made = dn.synthesize(
        folder / "train.csv",
        schema,
        records=records,
        epsilon=epsilon,
        noise=SameNoise(key),
        key=key,
        accept_drafted_schema=True,
    )
    out = folder / f"{key} {len(schema.constraints)}"
    made.write(out)
    return program.main(folder / "train.csv", folder / "test.csv", out / "synthetic.csv")


def run_table(program, path, options):
    """Yield the figures with all rules and with fewer, for each split and key."""
    for seed in range(options.splits):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            train, test = split_rows(path, seed)
            train.write_csv(folder / "train.csv")
            test.write_csv(folder / "test.csv")
            found = dn.Schema.parse(draft_schema(folder / "train.csv").text)
            rules = found.constraints
            print(f"  split {seed}: {len(train):,} rows, {len(rules)} rules", flush=True)
            if len(rules) <= options.limit:
                continue
            fewer = replace(found, constraints=rules[: options.limit])
            for key in range(options.keys):
                yield tuple(
                    measure(program, folder, schema, len(train), epsilon=options.epsilon, key=key)
                    for schema in (found, fewer)
                )


def print_line(name, before, harms):
    error = float(np.std(harms, ddof=1)) / len(harms) ** 0.5
    print(
        f"  {name:11}{before:9.4f}{np.mean(harms):+10.4f} ± {error:.4f}"
        f"{np.mean(harms) / (error or np.inf):+7.1f} s.e., seen from {POWER * error:.4f}",
        flush=True,
    )


def main():
    """Print the lines of each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--keys", type=int, default=4)
    options = parser.parse_args()
    program = load_program(options.shared)
    for table in options.tables:
        print(table)
        pairs = list(run_table(program, options.shared / "data" / TABLES[table], options))
        if not pairs:
            continue
        figures = [each for each in FIGURES if harm_of(each, *pairs[0]) is not None]
        for figure in figures:
            harms = [harm_of(figure, *pair) for pair in pairs]
            print_line(figure, np.mean([pair[0][figure] for pair in pairs]), harms)
        means = [np.mean([harm_of(each, *pair) for each in figures]) for pair in pairs]
        print_line("all figures", np.nan, means)


if __name__ == "__main__":
    main()
