"""What people wait for: start-up, the first report, verification.

    python benchmarks/waiting.py [--tables small wide large] [--repeats 3]

Every command is a fresh process. People wait for wall time, so that of a plan and of a report has
limits, for two quiet cores: on a busy machine they say nothing. Limits on processor time, as ratios
in one run, hold on a busy machine too. Needs no table: it simulates one. The files take up to about
0.1 GB on disk; all are removed.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from common import DENIABLE, SCHEMA, Limits, compile_installed, simulate, spent

from deniable.data.codec import Codec

# Columns, rows, and the most wall seconds of a first report.
TABLES = {"small": (11, 70_000, 15), "wide": (24, 21_000, 25), "large": (42, 200_000, 25)}
# The most processor seconds of a first report: those of two busy cores.
CORES = 2
# Most processor time of a plan, in imports of NumPy: 0.35 s where that takes 0.07 s; and of a plan
# whose seed histogram has noise from a table of millions of weights.
PLAN, TINY_EPSILON = 5, 30
# Most wall seconds of a plan, and of help.
PLAN_WALL, HELP_WALL = 0.35, 0.3


def best(repeats, *commands):
    """Return the fewest seconds of each command; they take turns."""
    rounds = [[spent(*command) for command in commands] for _ in range(repeats)]
    return [tuple(map(min, zip(*runs, strict=True))) for runs in zip(*rounds, strict=True)]


def start_up(limits, repeats):
    plan = (DENIABLE, "plan", "--schema", SCHEMA, "--quiet")
    bare, numpy, package, shown, planned, tiny = best(
        repeats,
        (sys.executable, "-c", ""),
        (sys.executable, "-c", "import numpy"),
        (sys.executable, "-c", "import deniable"),
        (DENIABLE, "--help"),
        plan,
        (*plan, "--epsilon", "1e-4"),
    )
    print("start-up, processor seconds (wall)")
    for what, (used, wall) in (
        ("an empty Python program", bare),
        ("import numpy", numpy),
        ("import deniable", package),
        ("deniable --help", shown),
        ("deniable plan", planned),
        ("deniable plan --epsilon 1e-4", tiny),
    ):
        print(f"  {what:28} {used:8.3f} ({wall:.3f})")
    limits.at_most("deniable --help, wall seconds", shown[1], HELP_WALL)
    limits.at_most("deniable plan, wall seconds", planned[1], PLAN_WALL)
    limits.at_most("import deniable, import numpy = 1", package[0] / numpy[0], 1)
    limits.at_most("deniable --help, import numpy = 1", shown[0] / numpy[0], 2)
    limits.at_most("deniable plan, import numpy = 1", planned[0] / numpy[0], PLAN)
    limits.at_most("plan --epsilon 1e-4, import numpy = 1", tiny[0] / numpy[0], TINY_EPSILON)


def report_and_verify(name, limits, repeats):
    columns, rows, most = TABLES[name]
    schema, codes = simulate(columns, rows)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "schema.toml").write_text(schema.text(), encoding="utf-8")
        Codec(schema).decode(codes).write_csv(here / "table.csv")
        options = ("--schema", here / "schema.toml", "--quiet")
        runs = []
        for _ in range(repeats):
            for made in ("release", "release.internal", "report"):
                shutil.rmtree(here / made, ignore_errors=True)
            runs.append([
                spent(DENIABLE, "synthesize", here / "table.csv", *options,
                      "--records", str(rows), "--out", here / "release"),
                spent(DENIABLE, "verify", here / "release", "--quiet"),
                spent(DENIABLE, "evaluate", here / "table.csv", here / "release" / "synthetic.csv",
                      *options, "--out", here / "report"),
            ])  # fmt: skip
    made, verified, reported = (
        tuple(map(min, zip(*each, strict=True))) for each in zip(*runs, strict=True)
    )
    print(f"{rows:,} rows x {columns} columns, as many records, processor seconds (wall)")
    for what, (used, wall) in (("synthesize", made), ("verify", verified), ("evaluate", reported)):
        print(f"  {what:12} {used:8.1f} ({wall:.1f})")
    limits.at_most("first report, wall seconds", reported[1], most)
    limits.at_most("first report, processor seconds", reported[0], CORES * most)
    # The aim is 1. A single run of each varies by a tenth on a machine with other users.
    limits.at_most("verify, synthesize = 1", verified[0] / made[0], 1.2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--repeats", type=int, default=1, help="of a run, a report; start-up: 5")
    options = parser.parse_args()
    limits = Limits()
    compile_installed()
    start_up(limits, 5)
    for name in options.tables:
        report_and_verify(name, limits, options.repeats)
    limits.exit()


if __name__ == "__main__":
    main()
