"""The Spark engine against the local one: processor seconds of all processes, as ratios.

    python benchmarks/spark.py [--rows 13000000] [--records 16000000] [--folder /tmp] [--repeats 3]
                               [--table ../shared/data/acs24/acs24_table1.csv.gz]

Tiles a table to Parquet parts. Runs both engines in turn on a cluster of two executors of 1 GiB on
this machine, and prints the median of each ratio, without the start of the session. The last line
is the memory of the driver's Python: at all rows, and at a tenth of them.
"""

import argparse
import os
import resource
import shutil
import statistics
import tempfile
from pathlib import Path

import polars as pl
from common import SCHEMA, TABLE

import deniable as dn
from deniable.counting.local import LocalRows
from deniable.data.table_io import read_table
from deniable.pipeline.api import open_engine
from deniable.release.generation import BLOCK

MASTER = "local-cluster[2,1,1024]"
ROWS_PER_PART = 500_000
LIMITS = {"encode and count": 8, "parts written": 3, "DataFrame in": 16, "DataFrame out": 8}
_TICKS = os.sysconf("SC_CLK_TCK")


def tree_seconds():
    """Return the processor seconds of this process and all below it, ended ones included."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used[pid] for pid in below if pid in used)


def seconds_of(action):
    start = tree_seconds()
    action()
    return tree_seconds() - start


def ratio(name, local, cluster, repeats):
    """Print the median ratio of the two actions, which take turns."""
    pairs = [(seconds_of(local), seconds_of(cluster)) for _ in range(repeats)]
    middle = statistics.median(two / max(one, 1e-9) for one, two in pairs)
    one, two = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(f"| {name} | {one:.1f} | {two:.1f} | {middle:.1f} | {LIMITS[name]} |", flush=True)


def write_parts(table, folder, rows):
    folder.mkdir(parents=True)
    whole = pl.read_csv(table, infer_schema=False)
    for at, start in enumerate(range(0, rows, ROWS_PER_PART)):
        size = min(ROWS_PER_PART, rows - start)
        offset = start % len(whole)
        part = pl.concat([whole[offset:], *[whole] * (size // len(whole) + 1)])[:size]
        part.cast(pl.Int64, strict=False).write_parquet(folder / f"part-{at:05d}.parquet")


def count_all(rows, schema):
    """What the default model counts: all values, and all pairs."""
    from deniable.counting.contingency import QueryAxis  # noqa: PLC0415

    columns = range(len(schema.attributes))
    rows.count(schema.attributes, [(QueryAxis(i),) for i in columns])
    rows.count(
        schema.attributes,
        [
            (QueryAxis(i, bucketed=True), QueryAxis(j, bucketed=True))
            for i in columns
            for j in range(i)
        ],
    )


def release_blobs(rows):
    rows.blobs.unpersist(blocking=True)


def main(options):
    schema = dn.Schema.read(SCHEMA)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        parts, small = folder / "table", folder / "small"
        write_parts(options.table, parts, options.rows)
        write_parts(options.table, small, max(options.rows // 10, 1))
        engine = open_engine(MASTER, accept_open=False)
        artefact = dn.learn(small, schema)
        print(f"{options.rows:,} rows, {options.records:,} records; processor seconds\n")
        print("| | local | Spark | ratio | limit |\n|---|---|---|---|---|")
        compare(engine, schema, artefact, folder, options)
        print_driver_memory(engine, schema, small, parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(engine, schema, artefact, folder, options):
    session, parts = engine.session, folder / "table"

    def read_local():
        table = read_table(parts, schema)
        count_all(LocalRows(table.codes), schema)

    def read_spark(source):
        rows = engine.read(source, schema).rows
        count_all(rows, schema)
        release_blobs(rows)

    def write(name, **more):
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.rmtree(folder / f"{name}.internal", ignore_errors=True)
        release = dn.generate(artefact, options.records, key=1, **more)
        release.write(folder / name, parts=True, file_format="parquet")

    def frame_out():
        release = dn.generate(artefact, options.records, key=1, engine="spark")
        release.frame().write.format("noop").mode("overwrite").save()

    read_spark(parts)  # starts the Pythons of the executors
    ratio("encode and count", read_local, lambda: read_spark(parts), options.repeats)
    ratio(
        "parts written",
        lambda: write("local"),
        lambda: write("spark", engine="spark"),
        options.repeats,
    )
    frame = session.read.parquet(str(parts))
    ratio("DataFrame in", read_local, lambda: read_spark(frame), options.repeats)
    ratio("DataFrame out", lambda: write("local"), frame_out, options.repeats)


def print_driver_memory(engine, schema, small, parts):
    """The peak of this process's memory cannot fall: the small table comes first."""
    peaks = []
    for source in (small, parts):
        rows = engine.read(source, schema).rows
        count_all(rows, schema)
        release_blobs(rows)
        status = Path("/proc/self/status").read_text().splitlines()
        peaks.append(next(int(line.split()[1]) for line in status if line.startswith("VmRSS")))
    more = peaks[1] / peaks[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nDriver: {more:.2f} × the memory at ten times the rows; peak {peak / 1024:.0f} MiB.")
    print(f"A part has {BLOCK:,} records.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=13_000_000)
    parser.add_argument("--records", type=int, default=16_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", type=Path, default=TABLE)
    main(parser.parse_args())
