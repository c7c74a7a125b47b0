"""Memory: learning from a table larger than memory, and generating more records than it holds.

    python benchmarks/memory.py [--size-gb 10] [--records 100000000] [--folder /tmp]
                                [--table ../shared/data/acs24/acs24_table1.csv.gz]

Tiles a table to a CSV file of the given size, and prints the peak of resident memory of each
process, as the system counts it, beside that of a bare polars program that streams the same file.
The file, the codes and the records need about three times the size on disk; all is removed.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT.parent / "shared" / "data" / "acs24" / "acs24_table1.csv.gz"
DENIABLE = Path(sys.executable).parent / "deniable"
BARE = (
    "import polars as pl, sys;"
    "pl.scan_csv(sys.argv[1]).select(pl.all().sum()).collect(engine='streaming')"
)
MB = 2**20


def tile(table, target, size):
    """Write the table again and again, its header once; return the number of rows."""
    with gzip.open(table) as source:
        header, body = source.readline(), source.read()
    times = max(1, round((size - len(header)) / len(body)))
    with target.open("wb") as file:
        file.write(header)
        for _ in range(times):
            file.write(body)
    return times * body.count(b"\n")


def run(*command):
    """Return the seconds that a command took, and the most memory it had, in bytes."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} ended with exit code {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def show(what, seconds, peak, base=None):
    ratio = "" if base is None else f"{peak / base:.2f} x"
    print(f"| {what} | {seconds:,.0f} | {peak / MB:,.0f} | {ratio} |", flush=True)


def learning(here, options):
    table = here / "table.csv"
    rows = tile(options.table, table, options.size_gb * 1e9)
    size = table.stat().st_size
    print(f"\n| a CSV file of {size / 1e9:.1f} GB, {rows:,} rows | seconds | peak MiB | ratio |")
    print("|---|---|---|---|")
    seconds, base = run(sys.executable, "-c", BARE, table)
    show("bare polars: stream it, sum every column", seconds, base)
    for mode in ("one-shot", "tested"):
        out = here / mode
        command = (
            DENIABLE, "synthesize", table, "--schema", options.schema, "--mode", mode,
            "--records", 100_000, "--format", "parquet", "--quiet", "--out", out,
        )  # fmt: skip
        show(f"`deniable synthesize --mode {mode} --records 100000`", *run(*command), base)
    table.unlink()


def generating(here, options):
    artefact = here / "one-shot" / "artefact"
    print("\n| records from the artefact, Parquet | seconds | peak MiB | above one record, MiB |")
    print("|---|---|---|---|")
    base = None
    for records in (1, options.records):
        out = here / f"{records}.parquet"
        command = (
            DENIABLE, "generate", artefact, "--records", records, "--key", 7, "--quiet",
            "--out", out,
        )  # fmt: skip
        seconds, peak = run(*command)
        base = peak if base is None else base
        above = (peak - base) / MB
        print(f"| {records:,} | {seconds:,.0f} | {peak / MB:,.0f} | {above:,.0f} |", flush=True)
        out.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size-gb", type=float, default=10)
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--schema", type=Path, default=ROOT / "examples/acs24/schema.toml")
    options = parser.parse_args()
    free, needed = shutil.disk_usage(options.folder).free, 3e9 * options.size_gb
    if free < needed:
        sys.exit(f"{options.folder} has {free / 1e9:.0f} GB free; {needed / 1e9:.0f} are needed")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        os.environ["TMPDIR"] = folder
        learning(Path(folder), options)
        generating(Path(folder), options)


if __name__ == "__main__":
    main()
