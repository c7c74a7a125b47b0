"""Speed, as ratios measured in one run: generate and test, learn, both cores, start-up.

    python benchmarks/speed.py [--rows 735000] [--records 4000000]
                               [--table ../shared/data/acs24/acs24_table1.csv.gz]

Compares drawing and testing candidates with the paper's scan on the same model; learning with
polars counting all pairs; two workers with one. Whole runs are in end_to_end.py.
"""

import argparse
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from common import DENIABLE, OMEGA, SCHEMA, TABLE, K, Limits, read_or_simulate, tile, timed

import deniable as dn
from deniable.counting.contingency import QueryAxis
from deniable.counting.local import LocalRows, count
from deniable.data.codec import Codec
from deniable.model.seed_based import NetworkModel
from deniable.randomness import Keyed, Secret
from deniable.release.deniability_test import ScanLimits, scan_plausible_seeds
from deniable.release.generation import BLOCK
from deniable.release.seed_mechanism import SCAN_BLOCK, own_omega_kernel
from deniable.workers import count_cores, map_in_order

# Blocks of candidates to draw and test, few enough for two minutes of the whole program.
BLOCKS = 16
# What the paper's tool allows itself (Sec. 5).
PAPER = ScanLimits(max_plausible=100, max_check_plausible=50_000)


def candidates_kernel(network, seeds):
    """Return Mechanism 1 as ``deniable synthesize --mode tested`` runs it."""
    model = NetworkModel(network, (OMEGA,))
    kernel = own_omega_kernel(LocalRows(seeds), model, Secret(), k=K)
    kernel(0)
    return kernel


def run_blocks(kernel, blocks, workers):
    return lambda: sum(
        len(records) for records in map_in_order(kernel, range(blocks), workers=workers)
    )


def scan(network, seeds, limits):
    """Return the test of a block of candidates by a scan, which asks for every probability."""
    model, rng = NetworkModel(network, (OMEGA,)), Secret().at("scan")
    own = seeds[rng.integers(len(seeds), SCAN_BLOCK)]
    candidates = model.propose(own, rng)
    return lambda: scan_plausible_seeds(
        model, seeds, candidates, own, rng, gamma=4.0, limits=limits
    )


def learn_exactly(schema, codes):
    """Return a network without noise."""
    table = Codec(schema).decode(codes)
    return dn.learn(table, schema, mode="seedless", epsilon=float("inf")).network


def generate_and_test(schema, codes, rows, limits):
    network, seeds = learn_exactly(schema, codes), tile(codes, rows)
    few = candidates_kernel(network, seeds)
    many = candidates_kernel(network, tile(codes, 10 * rows))
    drawn = [run_blocks(few, BLOCKS, 1), run_blocks(few, BLOCKS, 2), run_blocks(many, BLOCKS, 2)]
    scanned = [scan(network, seeds, each) for each in (PAPER, ScanLimits())]
    seconds = timed(*drawn, *scanned)
    numbers = [BLOCKS * BLOCK] * len(drawn) + [SCAN_BLOCK] * len(scanned)
    one, two, large, paper, whole = (n / each for n, each in zip(numbers, seconds, strict=True))
    print(f"candidates that pass, drawn a second, omega = {OMEGA}, k = {K}")
    limits.at_least(f"{rows:,} seeds, 2 workers", two, 2e6)
    limits.at_least(f"{10 * rows:,} seeds, a tenth of them = 1", large / two, 0.8)
    print(f"  {rows:,} seeds, 1 worker                      {one:14,.0f}")
    print("  tested only, by a scan of the same model, 1 worker:")
    for name, speed in (("at most 50,000 seeds, stop at 100", paper), ("every seed", whole)):
        print(f"    {name:36} {speed:18,.0f}   {one / speed:,.0f} x slower than 1 worker")


def learning(schema, codes, limits, clock=time.perf_counter):
    names = list(schema.names)
    frame = pl.DataFrame({name: codes[:, i] for i, name in enumerate(names)})
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    queries = [
        (QueryAxis(i), QueryAxis(j)) for i in range(len(names)) for j in range(i + 1, len(names))
    ]
    table = Codec(schema).decode(codes)
    group_by, ours, learn = timed(
        lambda: [frame.group_by(pair).len() for pair in pairs],
        lambda: count(schema.attributes, codes, queries, workers=count_cores()),
        lambda: dn.learn(table, schema, mode="seedless", epsilon=float("inf")),
        repeats=2,
        clock=clock,
    )
    print(f"learning from {len(codes):,} rows x {len(names)} columns, seconds")
    print(f"  polars group-by, all pairs   {group_by:8.2f}")
    print(f"  our counts, all pairs        {ours:8.2f}   {ours / group_by:.2f} x")
    print(f"  encode, structure, tables    {learn:8.2f}")
    limits.at_most("encode, structure, tables; polars group-by = 1", learn / group_by, 3)


def fingerprint(artefact, records, workers):
    """Return the SHA-256 of the codes that a key gives."""
    codes = hashlib.sha256()
    for block in artefact.records(records, Keyed(7), workers=workers).blocks():
        codes.update(block.tobytes())
    return codes.hexdigest()


def both_cores(schema, codes, records, limits):
    artefact = dn.learn(Codec(schema).decode(codes), schema, omega=OMEGA)

    def generate(workers):
        drawn = artefact.records(records, Keyed(7), workers=workers)
        return lambda: sum(len(block) for block in drawn.blocks())

    start = time.process_time()
    generate(1)()
    spent_first = time.process_time() - start
    [spent] = timed(generate(1), repeats=2, clock=time.process_time)
    one, two = timed(generate(1), generate(2), repeats=3)
    print(f"{records:,} records from an artefact, as codes, seconds")
    per_record = [1e9 * each / records for each in (spent_first, spent)]
    print(f"  processor time of a record   {per_record[0]:8.0f} ns, look-up tables included")
    print(f"                               {per_record[1]:8.0f} ns, once they are made")
    print(f"  1 worker                     {one:8.2f}")
    print(f"  2 workers                    {two:8.2f}")
    limits.at_least("2 workers, 1 worker = 1", one / two, 1.6)
    prints = [fingerprint(artefact, records, workers) for workers in (1, 2)]
    print(f"  SHA-256, 1 worker  {prints[0]}\n  SHA-256, 2 workers {prints[1]}")
    if prints[0] != prints[1]:
        sys.exit("the same key gave other records with another number of workers")


def start_up(limits):
    def run(*command):
        return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    bare, ours = timed(run(sys.executable, "-c", ""), run(DENIABLE, "--help"), repeats=5)
    print(f"start-up, seconds\n  an empty Python program      {bare:8.2f}")
    limits.at_most("deniable --help", ours, 0.3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=735_000)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--schema", type=Path, default=SCHEMA)
    options = parser.parse_args()
    schema, codes = read_or_simulate(options.table, options.schema)
    limits = Limits()
    start_up(limits)
    generate_and_test(schema, codes, options.rows, limits)
    learning(schema, codes, limits)
    both_cores(schema, codes, options.records, limits)
    limits.exit()


if __name__ == "__main__":
    main()
