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
import compileall
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common import DENIABLE, OMEGA, SCHEMA, TABLE, Limits, read_or_simulate, tile, timed

import deniable as dn
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
    """The programs to compare, on one table, in one format."""

    def __init__(self, here, table, schema, records) -> None:
        self.here, self.table, self.schema, self.records = here, table, schema, str(records)

    def bare(self):
        """Read the table, and write as many records as we do."""
        target = self.here / f"bare{self.table.suffix}"
        self._run(sys.executable, "-c", BARE, self.table, target, self.records)

    def plan(self, mode):
        """Plan alone."""
        return lambda: self._run(DENIABLE, "plan", *self._options(mode))

    def synthesize(self, mode):
        """All of it, into a folder that does not exist yet."""

        def run():
            out = self.here / "release"
            for folder in (out, self.here / "release.internal"):
                shutil.rmtree(folder, ignore_errors=True)
            file_format = self.table.suffix.removeprefix(".")
            self._run(
                DENIABLE, "synthesize", self.table, *self._options(mode),
                "--format", file_format, "--out", out,
            )  # fmt: skip

        return run

    def _options(self, mode):
        return (
            "--schema", self.schema, "--records", self.records, "--omega", str(OMEGA),
            "--mode", mode, "--quiet",
        )  # fmt: skip

    def _run(self, *command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def compare(runs, size, repeats, limits):
    rows, records = SIZES[size]
    bare, *seconds = timed(
        runs.bare, *map(runs.plan, MODES), *map(runs.synthesize, MODES), repeats=repeats
    )
    kind = runs.table.suffix.removeprefix(".")
    print(f"{rows:,} rows in, {records:,} records out, {kind}, with process start, seconds")
    print(f"  bare polars: read, write as much   {bare:8.2f}")
    pairs = zip(MODES, seconds[: len(MODES)], seconds[len(MODES) :], strict=True)
    for mode, plan, ours in pairs:
        print(f"  deniable synthesize --mode {mode:8} {ours:8.2f}   of which plan {plan:.2f}")
        limits.at_most(f"{size} {kind}, {mode}: bare = 1", ours / bare, SLOWER[size, kind])


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
    # As an installation leaves it, whether or not this machine may write bytecode when it runs.
    compileall.compile_dir(Path(dn.__file__).parent, quiet=1)
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
