"""Limits that do not depend on the machine's mood: ratios of processor time, and counts.

    python benchmarks/guard.py

Ends with exit code 1 if one is broken. Needs no table: it simulates one. Wall time is measured by
the other benchmarks; here threads and busy neighbours do not count.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from common import OMEGA, K, Limits, simulate, tile, timed
from scan import SLOWER, by_scan_and_by_hand, cases, demo_seeds
from speed import candidates_kernel, learn_exactly, learning, run_blocks, scan

from deniable.counting.local import LocalRows
from deniable.data.codec import Codec
from deniable.model.seed_based import NetworkModel
from deniable.randomness import Keyed
from deniable.release.deniability_test import ScanLimits
from deniable.release.generation import BLOCK, GeneratedRecords
from deniable.release.seed_mechanism import SCAN_BLOCK, own_omega_kernel

COLUMNS, ROWS, SEEDS, BLOCKS = 11, 1_300_000, 300_000, 60
HEAVY = (
    *("dp_accounting", "numpy", "pandas", "polars", "pyarrow", "rich", "scipy.sparse"),
    *("scipy.special", "sklearn"),
)
SHOWN = f"""
import sys
from deniable.__main__ import run
sys.argv = ["deniable", *sys.argv[1:]]
code = run()
print(*sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@dataclass
class Tallied:
    """Randomness that counts the numbers it is asked for."""

    numbers: int = 0
    keyed: Keyed = field(default_factory=lambda: Keyed(7))
    is_secret = False

    def at(self, stage, block=0):
        """Return a stream that tells how much of it is used."""
        return _Stream(self, self.keyed.at(stage, block))


class _Stream:
    def __init__(self, tally, rng) -> None:
        self.tally, self.rng = tally, rng

    def __getattr__(self, name):
        """Count what any of the methods is asked for: its last argument."""
        draw = getattr(self.rng, name)

        def tallied(*arguments):
            self.tally.numbers += arguments[-1]
            return draw(*arguments)

        return tallied


def imports(limits):
    """Libraries that take long to load: none for help, NumPy for a plan.

    A run loads polars and scipy.sparse, too; to verify, also scipy.special.
    """
    schema, codes = simulate(3, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "schema.toml").write_text(schema.text(), encoding="utf-8")
        Codec(schema).decode(codes).write_csv(here / "table.csv")
        options = ("--schema", here / "schema.toml", "--quiet")
        run = ("synthesize", here / "table.csv", *options, "--records", "9", "--out", here / "out")
        check = ("verify", here / "out", "--quiet")
        plan = ("plan", *options, "--records", "9")
        commands = ((0, "--help"), (1, *plan), (3, *run), (4, *check))
        for allowed, *arguments in commands:
            shown = subprocess.run(
                [sys.executable, "-c", SHOWN, *arguments],
                check=True,
                capture_output=True,
                text=True,
            )
            loaded = shown.stderr.split()
            if len(loaded) > allowed:
                print(f"  loaded: {' '.join(loaded)}")
            limits.at_most(f"heavy libraries that {arguments[0]} loads", len(loaded), allowed)


def draws(network, seeds, limits):
    """A candidate costs one number for its seed, one an attribute drawn; no more."""
    drawn, tested = Tallied(), Tallied()
    records = GeneratedRecords(
        network=network,
        randomness=drawn,
        number=100 * BLOCK,
    )
    records.draw_block(99)
    limits.at_most("numbers drawn a record, per attribute", drawn.numbers / BLOCK / COLUMNS, 1)
    own_omega_kernel(LocalRows(seeds), NetworkModel(network, (OMEGA,)), tested, k=K)(0)
    limits.at_most("numbers drawn a candidate, needed = 1", tested.numbers / BLOCK / (1 + OMEGA), 1)


def testing(network, seeds, limits):
    """The cost of a candidate does not grow with the seeds; a scan's does."""
    few, many = (candidates_kernel(network, each) for each in (seeds, tile(seeds, 10 * len(seeds))))
    one, ten, scanned = timed(
        run_blocks(few, BLOCKS, 1),
        run_blocks(many, BLOCKS, 1),
        scan(network, seeds, ScanLimits()),
        clock=time.process_time,
    )
    limits.at_least(f"candidates a second, {10 * len(seeds):,} seeds, a tenth = 1", one / ten, 0.8)
    ratio = (scanned / SCAN_BLOCK) / (one / BLOCKS / BLOCK)
    limits.at_least(f"exact test at {len(seeds):,} seeds, a scan of them = 1", ratio, 1000)


def scans(limits):
    schema, seeds = demo_seeds(20_000)
    for name, model, kernel in cases(schema, seeds):
        ours, by_hand = by_scan_and_by_hand(model, kernel, seeds, clock=time.process_time)
        limits.at_most(f"{name}: the scan, by hand = 1", ours / by_hand, SLOWER)


def main():
    limits = Limits()
    print("limits: counts, and ratios of processor time")
    imports(limits)
    schema, codes = simulate(COLUMNS, ROWS)
    network, seeds = learn_exactly(schema, codes), tile(codes, SEEDS)
    draws(network, seeds, limits)
    testing(network, seeds, limits)
    scans(limits)
    learning(schema, codes, limits, clock=time.process_time)
    limits.exit()


if __name__ == "__main__":
    main()
