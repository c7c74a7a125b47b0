"""A studio in this process, and a browser without a screen for it."""

import json
import re
import time
from pathlib import Path

from starlette.testclient import TestClient

from deniable.studio.access_guard import Access
from deniable.studio.checked_files import state_of_files
from deniable.studio.equivalent_command import verify_command
from deniable.studio.run_screen import run_state
from deniable.studio.run_store import Step
from deniable.studio.server import open_workspace
from deniable.studio.web_app import make_app
from deniable.studio.workspace import Workspace

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"


class StudioClient:
    """A studio on a folder, and a client that was let in.

    Attributes:
        space: The workspace.
        client: The client; it has the cookie.
        announced: What was printed on the terminal.
    """

    def __init__(self, root: Path, table: Path | None = None) -> None:
        self.announced: list[str] = []
        self.space: Workspace = open_workspace(table, root, Access("127.0.0.1", PORT))
        self.app = make_app(self.space, self.announced.append, watch=False)
        self.client = self.new_client()
        link = self.space.access.new_link()
        assert self.client.get(link.removeprefix(ORIGIN)).status_code == 200

    def new_client(self) -> TestClient:
        """A client that was not let in."""
        return TestClient(
            self.app, base_url=ORIGIN, headers={"origin": ORIGIN}, raise_server_exceptions=True
        )

    def get(self, path: str, /, **fields: str) -> str:
        """The page at an address, which must be there."""
        reply = self.client.get(path, params=fields)
        assert reply.status_code == 200, text_of(reply.text)
        return reply.text

    def post(self, path: str, /, **fields: str) -> str:
        """The page that a form leads to; the path may have a query, as that of a button may."""
        reply = self.client.post(path, data=fields)
        assert reply.status_code == 200, text_of(reply.text)
        return reply.text

    def follow(self) -> str:
        """Wait until the newest run has ended; return its state."""
        run = self.space.store.all()[0]
        for _ in range(2400):
            self.space.control.advance(run)
            state = run_state(self.space.store.status(run))
            if state != "running":
                return state
            time.sleep(0.05)
        raise AssertionError("the run does not end")


def text_of(page: str) -> str:
    """The words of a page."""
    body = page.partition("<main")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


def version_of(page: str) -> str:
    """The version of the schema that a page shows."""
    found = re.search(r'name="version" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


def record_release(studio: StudioClient, out: str, **facts: object) -> str:
    """Record a run as if the studio had made a release; return its name."""
    known: dict[str, object] = {
        "kind": "release",
        "table": "table.csv",
        "schema": "schema.toml",
        "out": out,
        "steps": (Step(name="Make the release", arguments=("synthesize",)),),
        "epsilon": 1.0,
        "delta": 1e-9,
        "mode": "one-shot",
    }
    run = studio.space.store.create(**{**known, **facts})
    end_step(studio, run.id, 0)
    return run.id


def end_step(
    studio: StudioClient, run: str, at: int, *, code: int = 0, output: str = "", errors: str = ""
) -> None:
    """Write the files of a step that has ended."""
    folder = studio.space.store.folder(run)
    (folder / f"{at}.lock").touch()
    (folder / f"{at}.progress").write_text(f'{{"pid": 1}}\n{{"exit": {code}}}\n')
    (folder / f"{at}.out").write_text(output)
    (folder / f"{at}.err").write_text(errors)


def record_verdict(
    studio: StudioClient, release: str, *, passed: bool = True, against: str = ""
) -> str:
    """Record a check of a release as it is now, with its verdict; return the name of the run."""
    step = Step(name="Check it", arguments=verify_command(release, against=against))
    run = record_release(studio, "", kind="check", schema=release, steps=(step,))
    check = {"name": "files", "passed": passed, "explanation": "all <b>fine</b>", "exact": True}
    verdict = {"passed": passed, "checks": [{**check, "passed": True}, check], "unknown": []}
    end_step(studio, run, 0, code=0 if passed else 1, output=json.dumps(verdict))
    state = state_of_files(studio.space.root.path / release)
    (studio.space.store.folder(run) / "0.files").write_text(json.dumps(state))
    return run
