"""The studio on a large table: CPU time of its pages, cost and memory of a draft and a release.

Usage: python benchmarks/studio.py [TABLE | ROWS]. TABLE is a .csv, .csv.gz or .parquet file; ROWS
of the embedded table, repeated, are used without one. Ratios have limits: a page takes at most
200 ms of CPU time after the first look at the table, and a run in the studio takes as much CPU time
and memory as the same command in a terminal.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from starlette.testclient import TestClient

from deniable.demo import demo_table
from deniable.studio.access_guard import Access
from deniable.studio.run_process import PROGRAM
from deniable.studio.run_store import RunRecord
from deniable.studio.server import open_workspace
from deniable.studio.web_app import make_app

# Seconds that a page may take, and the most that a ratio of studio to terminal may be.
LIMIT = 0.2
MAX_RATIO = 1.15
PORT = 8123
# Pages are asked for so often; the median counts.
REPEATS = 5
# One look at the page of a run after so many seconds: a browser looks once a second.
INTERVAL = 0.25


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "1000000"
    folder = Path(tempfile.mkdtemp(prefix="studio-benchmark-"))
    try:
        table = place_table(given, folder)
        Measured(folder, table).run()
    finally:
        shutil.rmtree(folder)


def place_table(given: str, folder: Path) -> str:
    """Put the table into the folder; return its name."""
    if given.isdigit():
        frame = pl.read_csv(demo_table(), infer_schema=False)
        copies = -(-int(given) // len(frame))
        pl.concat([frame] * copies).head(int(given)).write_csv(folder / "table.csv")
        return "table.csv"
    shutil.copy(given, folder)
    return Path(given).name


class Measured:
    """A studio in this process, whose pages and runs are measured."""

    def __init__(self, folder: Path, table: str) -> None:
        self.folder, self.table = folder, table
        self.space = open_workspace(None, folder, Access("127.0.0.1", PORT))
        origin = f"http://127.0.0.1:{PORT}"
        app = make_app(self.space, print, watch=False)
        self.client = TestClient(app, base_url=origin, headers={"origin": origin})
        self.client.get(self.space.access.new_link().removeprefix(origin))
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def run(self) -> None:
        """Measure the first look, the draft, the release, then all pages."""
        name = self.table
        table = f"/table?path={name}"
        self.show_page("table, first look", table, repeats=1)
        self.show_page("rows, first count", f"/table/rows?path={name}", repeats=1)
        draft = self.measure_run("draft", "/draft", {"path": name})
        schema = draft.out
        plan = f"/plan?table={name}&schema={schema}"
        self.show_page("plan, first", plan, repeats=1)
        form = {"table": name, "schema": schema, "accept_drafted_schema": "on", "measures": "on"}
        release = self.measure_run("release", "/start", {**form, "records": "10000"})
        pages = {
            "table": table,
            "rows": f"/table/rows?path={name}",
            "schema": f"/schema?table={name}&schema={schema}",
            "schema, a column": f"/schema?table={name}&schema={schema}&column=0",
            "plan": plan,
            "run": f"/run/{release.id}",
            "result": f"/result?release={release.out}",
            "history": "/history",
        }
        for title, path in pages.items():
            self.show_page(title, path)
        for epsilon in ("0.7", "0.6"):
            self.show_page(f"plan, ε = {epsilon}, new", f"{plan}&epsilon={epsilon}", repeats=1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"server: {self.before // 1024} MiB at its start, {peak // 1024} MiB at most")

    def show_page(self, title: str, path: str, *, repeats: int = REPEATS) -> None:
        """Print the CPU time of a page, as a share of the limit."""
        times = []
        for _ in range(repeats):
            before = time.process_time()
            assert self.client.get(path).status_code == 200, path  # noqa: S101 - no page, no time
            times.append(time.process_time() - before)
        spent = sorted(times)[len(times) // 2]
        broken = "   BROKEN" if spent > LIMIT and repeats > 1 else ""
        share = f"{spent / LIMIT:6.2f} of 200 ms{broken}"
        print(f"{title:<24} {1000 * spent:8.1f} ms CPU   {share}", flush=True)

    def measure_run(self, title: str, path: str, form: dict[str, str]) -> RunRecord:
        """Run something in the studio, then its commands in a terminal; print both."""
        reply = self.client.post(path, data=form)
        run = self.space.store.all()[0]
        looks: set[str] = set()
        for at, step in enumerate(run.steps):
            process = self.space.control.processes[-1]
            found = self.follow(process.pid, run, looks)
            process.returncode = 0  # it was waited for here
            status = self.space.store.status(run)[at]
            assert status.state == "done", status.errors or reply.text  # noqa: S101
            self.space.control.advance(run)
            again = run_command(self.folder, step.arguments)
            print_ratio(f"{title}: {step.name.lower()}", found, again)
        print(f"{title}: {len(looks)} different states of the progress were shown")
        return self.space.store.load(run.id)

    def follow(self, pid: int, run: RunRecord, looks: set[str]) -> tuple[float, int]:
        """Look at the page of a run until its process ends; return its CPU time and memory."""
        while True:
            ended, _, used = os.wait4(pid, os.WNOHANG)
            if ended:
                return used.ru_utime + used.ru_stime, used.ru_maxrss
            page = self.client.get(f"/run/{run.id}", headers={"hx-request": "true"})
            looks.add(page.text)
            time.sleep(INTERVAL)


def run_command(folder: Path, arguments: Sequence[str]) -> tuple[float, int]:
    """Run the same command without the studio, into another folder."""
    written = outputs(arguments)
    renamed = [again(each) if each in written else each for each in arguments]
    process = subprocess.Popen(
        [*PROGRAM, *renamed, "--json"], cwd=folder, stdout=subprocess.DEVNULL
    )
    _, code, used = os.wait4(process.pid, 0)
    assert code == 0, arguments  # noqa: S101 - a failed command has no time
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def again(path: str) -> str:
    """Another name next to a path."""
    return str(Path(path).with_name(f"again-{Path(path).name}"))


def outputs(arguments: Sequence[str]) -> list[str]:
    """What a command writes."""
    return [arguments[at + 1] for at, each in enumerate(arguments) if each == "--out"]


def print_ratio(title: str, studio: tuple[float, int], terminal: tuple[float, int]) -> None:
    ratios = [one / two for one, two in zip(studio, terminal, strict=True)]
    broken = "   BROKEN" if max(ratios) > MAX_RATIO else ""
    print(
        f"{title}: {studio[0]:.1f} s CPU, {studio[1] // 1024} MiB; in a terminal "
        f"{terminal[0]:.1f} s, {terminal[1] // 1024} MiB: ratios {ratios[0]:.2f}, "
        f"{ratios[1]:.2f}{broken}",
        flush=True,
    )


if __name__ == "__main__":
    main()
