"""A real browser and a real studio, for the walks through the whole workflow."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("DENIABLE_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
AXE = Path(__file__).parent / "browser" / "node_modules" / "axe-core" / "axe.min.js"
# Where pictures for the documents go; none are taken unless this is set.
PICTURES = os.environ.get("DENIABLE_PICTURES", "")
# For a picture, playwright adds a style to the page, which is refused.
OF_PICTURES = ("Applying inline style",) if PICTURES else ()
# Milliseconds that a page may take: far more than it does, as the tests share the computer.
PATIENCE = 120_000


def require_browser() -> None:
    """Skip a test where there is no browser, or no axe-core."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium here: install the package chromium")
    if not AXE.exists():
        pytest.skip("there is no axe-core here: run npm install in tests/browser")


@contextmanager
def running_studio(*arguments: str, folder: Path) -> Iterator[str]:
    """Start the studio as a user does; yield its link."""
    command = [sys.executable, "-m", "deniable", "studio", *arguments, "--no-browser"]
    with (folder / "studio.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        text = "".join(process.stdout.readline() for _ in range(3))
        found = re.search(r"http://\S+", text)
        assert found is not None, (folder / "studio.log").read_text()
        yield found[0]
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=30)
        process.kill()
        process.communicate()


@contextmanager
def open_page(playwright: Any, **settings: Any) -> Iterator[Any]:
    """Open a page that records what a browser complains about, and every address it asks for."""
    browser = playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    )
    context = browser.new_context(
        **{"viewport": {"width": 1100, "height": 800}, "accept_downloads": True, **settings}
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.complaints, page.asked = [], []
    page.on(
        "console",
        lambda said: (
            page.complaints.append(said.text) if said.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda fault: page.complaints.append(str(fault)))
    page.on("request", lambda request: page.asked.append(request.url))
    try:
        yield page
    finally:
        browser.close()


def serious_faults(page: Any, *rules: str) -> list[str]:
    """What axe-core finds on a page, of serious and critical impact; by all rules, or by some."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    options: dict[str, Any] = {"iframes": False, "resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    found = page.evaluate(
        "async (options) => (await axe.run(document, options)).violations", options
    )
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def take_picture(page: Any, name: str) -> None:
    """Take a picture for docs/studio.md, if pictures are wanted."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"studio-{name}.png", scale="css")
