"""Speed, as ratios measured in one run: generate and test, learn, end to end.

    python benchmarks/speed.py [--rows 735000] [--table ../shared/data/acs24/acs24_table1.csv.gz]

Compares drawing and testing candidates with the paper's scan, in NumPy and on the same model, and a
whole ``deniable synthesize`` with a bare polars program that reads the same file and writes one of
the same size.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import deniable as dn
from deniable.data.tables import read_codes
from deniable.engine.local import count
from deniable.model.cells import Axis
from deniable.model.synthesis import NetworkModel
from deniable.randomness import Secret
from deniable.release.deniability import (
    ScanLimits,
    pass_deterministic_test,
    scan_plausible_seeds,
)
from deniable.release.mechanism import BLOCK, Mechanism, own_omega_kernel
from deniable.workers import all_cores, in_order

ROOT = Path(__file__).parents[1]
TABLE = ROOT.parent / "shared" / "data" / "acs24" / "acs24_table1.csv.gz"
OMEGA, K, BLOCKS = 9, 50, 200


def timed(action, repeats=3):
    """Return the best of a few runs, in seconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def tile(codes, rows):
    """Return so many rows: the table again and again."""
    return np.asfortranarray(codes[np.arange(rows) % len(codes)])


def candidates_per_second(network, seeds, workers):
    mechanism = Mechanism(
        seeds=seeds,
        randomness=Secret(),
        passes=lambda plausible, _: pass_deterministic_test(plausible, k=K),
    )
    kernel = own_omega_kernel(mechanism, NetworkModel(network, (OMEGA,)))
    kernel(0)
    seconds = timed(lambda: sum(len(b) for b in in_order(kernel, range(BLOCKS), workers=workers)))
    return BLOCKS * BLOCK / seconds


def scans_per_second(network, seeds, number=64):
    """The paper's test: every seed asked for its probability, at most 50,000, stop at 100."""
    model, rng = NetworkModel(network, (OMEGA,)), Secret().at("scan")
    own = seeds[rng.integers(len(seeds), number)]
    candidates = model.propose(own, rng)
    limits = ScanLimits(max_plausible=100, max_check_plausible=50_000)

    def scan():
        scan_plausible_seeds(model, seeds, candidates, own, rng, gamma=4.0, limits=limits)

    return number / timed(scan)


def generate_and_test(schema, codes, rows):
    artefact = dn.learn(schema.codec.decode(codes), schema, mode="seedless", epsilon=float("inf"))
    network = artefact.network
    few, many = tile(codes, rows), tile(codes, 10 * rows)
    one, two = (candidates_per_second(network, few, workers) for workers in (1, 2))
    large = candidates_per_second(network, many, 2)
    scan = scans_per_second(network, few)
    print(f"candidates drawn and tested a second, omega = {OMEGA}, k = {K}")
    print(f"  {rows:,} seeds, 1 worker            {one:14,.0f}")
    print(f"  {rows:,} seeds, 2 workers           {two:14,.0f}   {two / one:.2f} x of one")
    print(
        f"  {10 * rows:,} seeds, 2 workers         {large:14,.0f}   {large / two:.2f} x of a tenth"
    )
    print(f"  {rows:,} seeds, the paper's scan    {scan:14,.0f}   {two / scan:,.0f} x slower")


def learning(schema, codes):
    names = list(schema.names)
    frame = pl.DataFrame({name: codes[:, i] for i, name in enumerate(names)})
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    group_by = timed(lambda: [frame.group_by(pair).len() for pair in pairs], repeats=2)
    queries = [(Axis(i), Axis(j)) for i in range(len(names)) for j in range(i + 1, len(names))]
    ours = timed(lambda: count(schema.attributes, codes, queries, workers=all_cores()), repeats=2)
    table = schema.codec.decode(codes)
    learn = timed(lambda: dn.learn(table, schema, mode="seedless", epsilon=float("inf")), repeats=2)
    print(f"learning from {len(codes):,} rows x {len(names)} columns, seconds")
    print(f"  polars group-by, all pairs   {group_by:8.2f}")
    print(f"  our counts, all pairs        {ours:8.2f}   {ours / group_by:.2f} x")
    print(f"  encode, structure, tables    {learn:8.2f}   {learn / group_by:.2f} x")


def end_to_end(schema_file, codes, schema, rows, records):
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        schema.codec.decode(tile(codes, rows)).write_parquet(here / "in.parquet")
        schema.codec.decode(tile(codes, records)).write_parquet(here / "same.parquet")
        program = (
            "import polars as pl, sys; pl.read_parquet(sys.argv[1]);"
            "pl.read_parquet(sys.argv[2]).write_parquet(sys.argv[3])"
        )
        bare = timed(
            lambda: subprocess.run(
                [
                    sys.executable,
                    "-c",
                    program,
                    here / "in.parquet",
                    here / "same.parquet",
                    here / "o",
                ],
                check=True,
            )
        )
        print(f"end to end, {rows:,} rows in, {records:,} records out, Parquet, with process start")
        print(f"  bare polars: read, write the same   {bare:8.2f} s")
        for number, mode in enumerate(("one-shot", "tested")):
            command = [
                Path(sys.executable).parent / "deniable", "synthesize", here / "in.parquet",
                "--schema", schema_file, "--records", str(records), "--omega", str(OMEGA),
                "--mode", mode, "--format", "parquet", "--quiet", "--out", here / f"out{number}",
            ]  # fmt: skip
            ours = timed(lambda: subprocess.run(command, check=True), repeats=1)  # noqa: B023
            print(f"  deniable synthesize --mode {mode:9} {ours:8.2f} s   {ours / bare:.2f} x")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=735_000)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--schema", type=Path, default=ROOT / "examples/acs24/schema.toml")
    options = parser.parse_args()
    schema = dn.Schema.read(options.schema)
    codes, _ = read_codes(options.table, schema)
    generate_and_test(schema, codes, options.rows)
    learning(schema, codes)
    end_to_end(options.schema, codes, schema, options.rows, 1_000_000)


if __name__ == "__main__":
    main()
