"""A whole ``deniable synthesize``, against a bare polars program that only reads and writes.

    python benchmarks/end_to_end.py [--sizes small large] [--formats parquet csv]
                                    [--table ../shared/data/acs24/acs24_table1.csv.gz]

Small: 735,000 rows in, 1,000,000 records out. Large: ten times as much. Nothing is taken off: not
the start of the process, not the plan. The bare program reads the same file whole and writes one of
as many rows in the same format. Every run is a fresh process; they take turns, and the best of
three counts. Where there is no table, one is simulated. The files of one comparison take up to
about 0.7 GB on disk; all are removed.
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from common import (
    DENIABLE,
    OMEGA,
    SCHEMA,
    TABLE,
    Limits,
    compile_installed,
    read_or_simulate,
    spent,
    tile,
)

from deniable.data.codec import Codec

# Rows in, records out.
SIZES = {"small": (735_000, 1_000_000), "large": (7_350_000, 10_000_000)}
MODES = ("one-shot", "tested")
# The most time of a run, in that of the bare program.
SLOWER = {
    ("small", "parquet"): 2.5,
    ("small", "csv"): 2.5,
    ("large", "parquet"): 2.5,
    ("large", "csv"): 2.0,
}
ROWS_MAX = 10_000_000
BARE = """
import sys
import polars as pl
source, target, records = sys.argv[1:]
read, write = ("read_csv", "write_csv") if source.endswith("csv") else (
    "read_parquet", "write_parquet")
table = getattr(pl, read)(source)
more = pl.concat([table, table.head(int(records) - len(table))], rechunk=False)
getattr(more, write)(target)
"""


class Runs:
    """The programs to compare, on one table, in one format; each returns the seconds it took."""

    def __init__(self, here, table, schema, records) -> None:
        self.here, self.table, self.schema, self.records = here, table, schema, str(records)

    def bare(self):
        """Read the table, and write as many records as we do."""
        target = self.here / f"bare{self.table.suffix}"
        return spent(sys.executable, "-c", BARE, self.table, target, self.records)

    def plan(self, mode):
        """Plan alone."""
        return spent(DENIABLE, "plan", *self._options(mode))

    def synthesize(self, mode):
        """All of it, into a folder that does not exist yet."""
        out = self.here / "release"
        for folder in (out, self.here / "release.internal"):
            shutil.rmtree(folder, ignore_errors=True)
        file_format = self.table.suffix.removeprefix(".")
        return spent(
            DENIABLE, "synthesize", self.table, *self._options(mode),
            "--format", file_format, "--out", out,
        )  # fmt: skip

    def _options(self, mode):
        return (
            "--schema", self.schema, "--records", self.records, "--omega", str(OMEGA),
            "--mode", mode, "--quiet",
        )  # fmt: skip


def compare(runs, size, repeats, limits):
    rows, records = SIZES[size]
    bare, plan, ours = [], {mode: [] for mode in MODES}, {mode: [] for mode in MODES}
    for _ in range(repeats):
        for mode in MODES:
            bare.append(runs.bare())
            plan[mode].append(runs.plan(mode))
            ours[mode].append(runs.synthesize(mode))
    kind = runs.table.suffix.removeprefix(".")
    print(f"{rows:,} rows in, {records:,} records out, {kind}; seconds (processor seconds)")
    cpu, wall = fewest(bare)
    print(f"  bare polars: read, write as much   {wall:8.2f} ({cpu:.2f})")
    for mode in MODES:
        (plan_cpu, plan_wall), (our_cpu, our_wall) = fewest(plan[mode]), fewest(ours[mode])
        print(
            f"  deniable synthesize --mode {mode:8} {our_wall:8.2f} ({our_cpu:.2f})   "
            f"plan alone {plan_wall:.2f} ({plan_cpu:.2f}); processor time, bare = 1: "
            f"{our_cpu / cpu:.2f}"
        )
        limits.at_most(f"{size} {kind}, {mode}: bare = 1", our_wall / wall, SLOWER[size, kind])


def fewest(runs):
    """Return the fewest processor and the fewest wall seconds."""
    return tuple(map(min, zip(*runs, strict=True)))


def write_table(schema, codes, rows, path):
    table = Codec(schema).decode(tile(codes, rows))
    (table.write_csv if path.suffix == ".csv" else table.write_parquet)(path)


def write_schema(schema, path):
    """Write the schema with a guess of the number of rows that fits the largest table."""
    text, found = re.subn(r"(?m)^rows_max = [0-9_]+$", f"rows_max = {ROWS_MAX}", schema.text())
    if found != 1:
        sys.exit("the schema has no rows_max, or several")
    path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--formats", nargs="+", default=["parquet", "csv"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--schema", type=Path, default=SCHEMA)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    schema, codes = read_or_simulate(options.table, options.schema)
    limits = Limits()
    compile_installed()
    for size in options.sizes:
        rows, records = SIZES[size]
        for file_format in options.formats:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                here = Path(folder)
                write_schema(schema, here / "schema.toml")
                write_table(schema, codes, rows, here / f"table.{file_format}")
                runs = Runs(here, here / f"table.{file_format}", here / "schema.toml", records)
                compare(runs, size, options.repeats, limits)
    limits.exit()


if __name__ == "__main__":
    main()
