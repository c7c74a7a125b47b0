"""The scan test for a model of your own, against kernels written by hand for that model alone.

    python benchmarks/scan.py [--candidates 10000] [--seeds 100000]

Two models: one written here, and examples/perturbation_model.py. Each is evaluated by the
package's scan, which uses only its ``log_probability``, and by a NumPy kernel
written for the model, which keeps its buffers and works in blocks that fit the cache. Both
must count the same. Then all pairs, on every core.
"""

import argparse
import runpy
import sys
import time
from pathlib import Path

import numpy as np
from common import Limits, tile, timed

from deniable.arrays import CODE
from deniable.counting.local import LocalRows
from deniable.data.table_io import read_codes
from deniable.demo import demo_schema, demo_table
from deniable.randomness import Keyed
from deniable.release.deniability_test import (
    ScanLimits,
    pass_deterministic_test,
    scan_plausible_seeds,
)
from deniable.release.seed_mechanism import SCAN_BLOCK, SeedMechanism, scan_kernel
from deniable.workers import count_cores, map_in_order

EXAMPLE = Path(__file__).parents[1] / "examples" / "perturbation_model.py"
PerturbationModel = runpy.run_path(str(EXAMPLE))["PerturbationModel"]

GAMMA, SLOWER = 4.0, 3.0
# What the kernels by hand hold at once: 64 candidates by 1,024 seeds are half a megabyte.
CANDIDATES_AT_ONCE, SEEDS_AT_ONCE = 64, 1024


class RandomizedResponse:
    """Keeps each value of a seed with probability ``stay``, else draws it uniformly."""

    def __init__(self, sizes, stay) -> None:
        self.sizes, self.stay = sizes, stay
        self.other = [np.log((1 - stay) / size) for size in sizes]
        self.same = [np.log((1 - stay) / size + stay) for size in sizes]

    def propose(self, seeds, rng):
        """Return one candidate for each seed."""
        candidates = np.empty(seeds.shape, dtype=CODE, order="F")
        for i, size in enumerate(self.sizes):
            kept = rng.random(len(seeds)) < self.stay
            candidates[:, i] = np.where(kept, seeds[:, i], rng.integers(size, len(seeds)))
        return candidates

    def log_probability(self, candidates, seeds):
        """Return ln Pr{y = M(d)}: one row a candidate y, one column a seed d."""
        total = np.zeros((len(candidates), len(seeds)))
        for i, (same, other) in enumerate(zip(self.same, self.other, strict=True)):
            total += np.where(candidates[:, i, None] == seeds[None, :, i], same, other)
        return total


class ResponseKernel:
    """``RandomizedResponse`` by hand: the probability if nothing is the same, times what is."""

    def __init__(self, model, seeds) -> None:
        self.seeds, self.nothing_same = seeds, sum(model.other)
        self.gains = np.subtract(model.same, model.other)
        self.equal = np.empty((CANDIDATES_AT_ONCE, SEEDS_AT_ONCE), dtype=bool)
        self.term, self.total = np.empty((2, *self.equal.shape))

    def prepare(self, candidates):
        """Return what is known of candidates before a seed is looked at: themselves."""
        return candidates

    def logs(self, candidates, block):
        """Return ln Pr{y = M(d)} of some candidates and a block of seeds."""
        here = (slice(len(candidates)), slice(block.stop - block.start))
        equal, term, total = self.equal[here], self.term[here], self.total[here]
        total.fill(self.nothing_same)
        for i, gain in enumerate(self.gains):
            np.equal(candidates[:, i, None], self.seeds[None, block, i], out=equal)
            np.multiply(equal, gain, out=term)
            total += term
        return total


class PerturbationKernel:
    """``PerturbationModel`` by hand: one row a seed, so that whole rows are copied."""

    def __init__(self, model, seeds) -> None:
        self.tables = [table.logarithms for table in model.tables]
        self.columns = [seeds[:, i].astype(np.intp) for i in range(seeds.shape[1])]
        self.buffers = np.empty((2, SEEDS_AT_ONCE * CANDIDATES_AT_ONCE))

    def prepare(self, candidates):
        """Return the columns of each table that the candidates need."""
        return [table.take(candidates[:, i], axis=1) for i, table in enumerate(self.tables)]

    def logs(self, prepared, block):
        """Return ln Pr{y = M(d)} of some candidates and a block of seeds."""
        shape = (block.stop - block.start, prepared[0].shape[1])
        term, total = (np.ndarray(shape, buffer=each) for each in self.buffers)
        total.fill(0.0)
        for logs, column in zip(prepared, self.columns, strict=True):
            np.take(logs, column[block], axis=0, out=term, mode="clip")
            total += term
        return total.T


def count_by_hand(kernel, mine, candidates, seeds):
    """Count the seeds whose probability of a candidate is in range ``mine``."""
    plausible = np.zeros(len(candidates), dtype=np.int64)
    for at in range(0, len(candidates), CANDIDATES_AT_ONCE):
        group = slice(at, at + CANDIDATES_AT_ONCE)
        prepared = kernel.prepare(candidates[group])
        for start in range(0, len(seeds), SEEDS_AT_ONCE):
            block = slice(start, min(start + SEEDS_AT_ONCE, len(seeds)))
            logs = kernel.logs(prepared, block)
            np.divide(logs, -np.log(GAMMA), out=logs)
            np.floor(logs, out=logs)
            plausible[group] += np.count_nonzero(logs == mine[group, None], axis=1)
    return plausible


def cases(schema, seeds):
    """Yield the name of each model, the model, and its kernel by hand."""
    response = RandomizedResponse([a.size for a in schema.attributes], 0.5)
    yield "randomized response", response, ResponseKernel(response, seeds)
    moves = PerturbationModel.of(schema.attributes, stay=0.5, step=5)
    yield "PerturbationModel", moves, PerturbationKernel(moves, seeds)


def by_scan_and_by_hand(model, kernel, seeds, *, clock=time.perf_counter):
    """Return the seconds of a block of candidates by our scan, and by hand."""
    own = seeds[:SCAN_BLOCK]
    rng = Keyed(7).at("candidates")
    candidates = model.propose(own, rng)
    logs = [model.log_probability(candidates[[i]], own[[i]])[0, 0] for i in range(len(own))]
    mine = np.floor(np.array(logs) / -np.log(GAMMA))

    def scan():
        return scan_plausible_seeds(
            model, seeds, candidates, own, rng, gamma=GAMMA, limits=ScanLimits()
        )

    def by_hand():
        return count_by_hand(kernel, mine, candidates, seeds)

    if not np.array_equal(scan(), by_hand()):
        sys.exit("the scan and the kernel by hand count different seeds")
    return timed(scan, by_hand, clock=clock)


def all_pairs(name, model, seeds, candidates):
    """Measure Mechanism 1 for so many candidates or a few more, each asked about every seed."""
    mechanism = SeedMechanism(
        seeds=LocalRows(seeds),
        randomness=Keyed(7),
        passes=lambda plausible, _: pass_deterministic_test(plausible, k=50),
    )
    kernel = scan_kernel(mechanism, model, gamma=GAMMA, limits=ScanLimits())
    blocks = -(-candidates // SCAN_BLOCK)
    (seconds,) = timed(
        lambda: list(map_in_order(kernel, range(blocks), workers=count_cores())), repeats=1
    )
    number = blocks * SCAN_BLOCK
    pairs = number * len(seeds)
    print(f"  {name:22} {number:,} x {len(seeds):,} pairs   {seconds:8.1f} s", end="   ")
    print(f"{number / seconds:9,.0f} candidates a second   {1e9 * seconds / pairs:.1f} ns a pair")


def demo_seeds(rows):
    schema = demo_schema()
    codes, _ = read_codes(demo_table(), schema)
    return schema, tile(np.asarray(codes), rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=100_000)
    options = parser.parse_args()
    schema, seeds = demo_seeds(options.seeds)
    limits = Limits()
    print(f"{SCAN_BLOCK} candidates x {len(seeds):,} seeds, one core: ours, by hand, the ratio")
    for name, model, kernel in cases(schema, seeds):
        ours, by_hand = by_scan_and_by_hand(model, kernel, seeds)
        print(f"  {name:22} {ours:8.3f} s {by_hand:8.3f} s")
        limits.at_most(f"{name}: the scan, by hand = 1", ours / by_hand, SLOWER)
    print(f"all pairs, {count_cores()} workers")
    for name, model, _ in cases(schema, seeds):
        all_pairs(name, model, seeds, options.candidates)
    limits.exit()


if __name__ == "__main__":
    main()
