"""CPU time of the studio's pages on a table of a million rows, as shares of 200 ms.

Usage: python benchmarks/studio.py [ROWS]. The table is the embedded one, repeated.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from starlette.testclient import TestClient

from deniable.demo import demo_schema, demo_table
from deniable.studio.access_guard import Access
from deniable.studio.server import open_workspace
from deniable.studio.web_app import make_app

LIMIT = 0.2
PORT = 8123


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="studio-benchmark-"))
    try:
        frame = pl.read_csv(demo_table(), infer_schema=False)
        copies = -(-rows // len(frame))
        pl.concat([frame] * copies).head(rows).write_csv(folder / "table.csv")
        demo_schema().write(folder / "schema.toml")
        measure(folder)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path) -> None:
    space = open_workspace(None, folder, Access("127.0.0.1", PORT))
    origin = f"http://127.0.0.1:{PORT}"
    client = TestClient(make_app(space, print, watch=False), base_url=origin)
    client.get(space.access.new_link().removeprefix(origin))
    plan = "/plan?table=table.csv&schema=schema.toml"
    pages = {
        "table, first look": "/table?path=table.csv",
        "rows, first count": "/table/rows?path=table.csv",
        "table": "/table?path=table.csv",
        "rows": "/table/rows?path=table.csv",
        "schema": "/schema?table=table.csv&schema=schema.toml",
        "plan, first": plan,
        "plan": plan,
        "plan, another epsilon": f"{plan}&epsilon=0.7",
        "history": "/history",
    }
    for name, path in pages.items():
        before = time.process_time()
        assert client.get(path).status_code == 200  # noqa: S101 - a failed page has no time
        spent = time.process_time() - before
        print(f"{name:<24} {1000 * spent:8.1f} ms CPU   {spent / LIMIT:6.2f} of 200 ms")


if __name__ == "__main__":
    main()
