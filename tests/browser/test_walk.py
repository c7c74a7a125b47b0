"""The whole workflow in a real browser: with the mouse on the embedded table, by keys on Adult."""

import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from browser_studio import (
    OF_PICTURES,
    open_page,
    require_browser,
    running_studio,
    serious_faults,
    take_picture,
)
from deniable.demo import demo_table
from deniable.schema.schema import Schema
from measured_release import make_measured_release

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.system_noise]

PHONE = {"width": 390, "height": 800}
DESK = {"width": 1100, "height": 800}
# Values of the embedded table that no address may have.
CELLS = ("Householder", "Widowed", "Construction", "Bachelor")


@pytest.fixture
def playwright():
    require_browser()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not everyone has it

    with sync_playwright() as found:
        yield found


def look(page, name):
    """Look at a screen: in the light, in the dark and on a phone; take its picture."""
    take_picture(page, name)
    found = {f"{name}, light: {fault}" for fault in serious_faults(page)}
    page.emulate_media(color_scheme="dark")
    # Only colours are others in the dark.
    found |= {f"{name}, dark: {fault}" for fault in serious_faults(page, "color-contrast")}
    if name == "plan":
        take_picture(page, f"{name}-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    width = page.evaluate("document.scrollingElement.scrollWidth")
    if width > PHONE["width"]:
        found.add(f"{name}: {width} pixels wide on a phone")
    if name == "schema":
        take_picture(page, f"{name}-phone")
    page.set_viewport_size(DESK)
    assert not found, "\n".join(sorted(found))


def go_by(page, selector):
    """Click on what loads a page, and wait until it is loaded: before, its script is not ready."""
    with page.expect_navigation():
        page.click(selector)


def follow_run(page, sign):
    """Wait for the page after a run; a run that had ended before its page came has a link to it."""
    from playwright.sync_api import Error  # noqa: PLC0415 - not everyone has it

    link = ".state.done a.button.primary"
    page.wait_for_selector(f"{sign}, {link}")
    with suppress(Error):  # the page leads there by itself, if it saw the end of the run
        if not page.locator(sign).count():
            page.press(link, "Enter", timeout=2000)
    page.wait_for_selector(sign)
    page.wait_for_load_state()


def verify_download(page, folder, press):
    """Download the zip, unpack it, and verify it with the command line."""
    with page.expect_download() as caught:
        press("Download the release (zip)")
    caught.value.save_as(folder / "release.zip")
    with zipfile.ZipFile(folder / "release.zip") as archive:
        archive.extractall(folder / "unpacked")
    [release] = (folder / "unpacked").iterdir()
    command = [sys.executable, "-m", "deniable", "verify", str(release)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "PASS: all" in done.stdout


def require_silence(page, link):
    """Nothing was complained of, kept, or asked of anyone else; no cell is in an address."""
    origin = link.partition("/enter")[0]
    # A change that was not saved is answered with 422, which the browser notes. A request that a
    # later one replaces, or that is under way when the page is left, is aborted.
    expected = ("status of 422", "htmx:send", "htmx:afterRequest", "ERR_ABORTED", *OF_PICTURES)
    complaints = [c for c in page.complaints if not any(each in c for each in expected)]
    assert not complaints, "\n".join(complaints)
    assert {url for url in page.asked if not url.startswith((origin, "data:"))} == set()
    assert not [url for url in page.asked if any(cell in url for cell in CELLS)]
    assert page.evaluate("Object.keys(localStorage)") == []
    # htmx notes the address of the page, which has no cell, until the tab is closed.
    kept = page.evaluate("Object.entries(sessionStorage)")
    assert kept == [["htmx-current-path-for-history", page.url.removeprefix(origin)]]


def test_the_embedded_table_becomes_a_verified_release(tmp_path, small_files, playwright):
    folder = tmp_path / "census"
    folder.mkdir()
    shutil.copy(demo_table(), folder)
    with running_studio("census.csv.gz", folder=folder) as link, open_page(playwright) as page:
        page.goto(link)
        page.wait_for_selector("#rows:has-text('32,000 rows')")
        look(page, "table")
        page.check("input[value=private]")
        page.wait_for_selector("#command:has-text('--draft-epsilon 0.3')")
        page.check("input[value=plain]")
        go_by(page, "text=Draft the schema")
        follow_run(page, "h2:text-is('Columns')")
        look(page, "schema")
        edit_schema(page)
        plan_release(page)
        cancel_and_start_again(page, folder)
        follow_run(page, ".verdict.pass:has-text('PASS. All')")
        look(page, "result")
        verify_download(page, tmp_path, lambda label: page.click(f"text={label}"))
        go_by(page, "nav >> text=History")
        page.wait_for_selector("text=Spent on each table")
        look(page, "history")
        look_at_report(page, folder, small_files)
        second_browser(page)
        require_silence(page, link)
    assert (folder / "studio.log").read_text() == ""


def look_at_report(page, folder, small_files):
    """Open a release that was measured: its report is shown."""
    make_measured_release(folder, small_files)
    go_by(page, "nav >> text=Table")
    go_by(page, "a:text-is('out/')")
    page.wait_for_selector("text=How useful is it?")
    heading = page.frame_locator("iframe").locator("h1").inner_text()
    assert "Evaluation of released records" in heading
    assert serious_faults(page) == []


# The sentence at the end of the schema page.
CONFIRMED = ":text('Everything is confirmed.')"


def edit_schema(page):
    """Change a type, break an edit, answer the questions, confirm everything."""
    go_by(page, "[aria-label='Edit marital status']")
    page.select_option("#f-type-3", "text")
    page.wait_for_selector("input[name=shown_type-3][value=text]", state="attached")
    page.fill("#f-other-3", "")
    go_by(page, ".edit button.primary")
    page.wait_for_selector("text=Not saved.")
    page.fill("#f-other-3", "Other")
    page.check("input[name=confirmed-3]")
    go_by(page, ".edit button.primary")
    page.wait_for_selector("#c3 .kind:has-text('texts')")
    go_by(page, "text=/Confirm the \\d+ without a question/")
    while page.locator(".answers button").count():
        go_by(page, ".answers button >> nth=0")
    page.wait_for_selector(CONFIRMED)
    go_by(page, "text=Go on to the plan")


def plan_release(page):
    """Move a slider, choose an impossible mode, and go back to a possible one."""
    page.wait_for_selector("text=73.1 %")
    look(page, "plan")
    page.focus("#epsilon-slider")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#outcome:has-text('--epsilon 1.5')")
    assert page.input_value("#epsilon") == "1.5"
    page.select_option("#mode", "randomized")
    page.wait_for_selector("text=This plan is not possible.")
    page.select_option("#mode", "one-shot")
    fill_plan(page, 5_000_000)  # a run that is long enough to be cancelled


def fill_plan(page, records):
    """Ask for a number of records, without a report."""
    page.fill("#records", str(records))
    page.uncheck("input[name=measures]")
    page.wait_for_selector(
        f"#outcome:has-text('--records {records} '):not(:has-text('deniable evaluate'))"
    )


def cancel_and_start_again(page, folder):
    """Cancel the first run: nothing stays. The second one is found again after leaving it."""
    go_by(page, "#start")
    go_by(page, "text=Cancel the run")
    page.wait_for_selector("text=Nothing was written, so nothing was spent.")
    names = {path.name for path in folder.iterdir()}
    assert names == {"census.csv.gz", "census.schema.toml", ".deniable-studio", "studio.log"}
    go_by(page, "text=Back to the plan")
    fill_plan(page, 1000)
    go_by(page, "#start")
    page.wait_for_selector("#status:has-text('learn the model'), .verdict")
    take_picture(page, "run")
    go_by(page, "nav >> text=History")
    go_by(page, "nav >> text=Run")
    if not page.locator("#status").count():  # it has ended meanwhile, and is only in the history
        go_by(page, "a:text-is('census-release-2')")


def second_browser(page):
    """Another browser, without scripts: it needs a link of its own, and all forms work."""
    page.click("text=Open in another browser")
    link = page.locator("pre.line").inner_text()
    browser = page.context.browser
    other = browser.new_context(java_script_enabled=False).new_page()
    assert other.goto(link.partition("/enter")[0] + "/history").status == 403
    other.goto(link)
    other.wait_for_selector("text=First rows")
    other.click("nav >> text=History")
    # The first name is that of the cancelled run, and is not used again.
    other.click("a:text-is('census-release-2')")
    other.click("nav >> text=Plan")
    other.wait_for_selector("#epsilon-slider", state="hidden")
    other.fill("#epsilon", "0.5")
    other.click("text=Show the consequences")
    other.wait_for_selector("text=62.3 %")
    other.context.close()


@pytest.mark.shared
def test_adult_becomes_a_verified_release_by_the_keyboard_alone(tmp_path, shared, playwright):
    folder = tmp_path / "adult"
    folder.mkdir()
    shutil.copy(shared / "adult" / "adult.csv.gz", folder)
    with running_studio(folder=folder) as link, open_page(playwright) as page:
        page.goto(link)
        page.wait_for_selector("text=Which table?")
        keys = Keys(page)
        keys.press("adult.csv.gz")
        keys.press("Draft the schema")
        follow_run(page, "h2:text-is('Columns')")
        keys.press("Edit sex")
        keys.choose("Type", "boolean")
        # The fields of the old type have the same values: only this tells that they are new.
        page.wait_for_selector("input[name=shown_type-9][value=boolean]", state="attached")
        assert "Male" in page.input_value("#f-values-9")
        keys.hit("This is public knowledge: confirmed", "Space")
        keys.press("Save")
        page.wait_for_selector("#c9 .kind:has-text('two values')")
        confirm_by_keys(page, keys)
        keys.press("Go on to the plan")
        page.wait_for_selector("#outcome")
        keys.reach("Records to release")
        page.keyboard.press("Control+a")
        page.keyboard.type("500")
        keys.hit("Then measure how useful the records are", "Space")
        page.wait_for_selector(
            "#outcome:not(:has-text('deniable evaluate')):has-text('--records 500 ')"
        )
        keys.press("Start the run")
        follow_run(page, ".verdict.pass:has-text('PASS. All')")
        verify_download(page, tmp_path, lambda name: keys.hit(name, "Enter"))
        require_silence(page, link)
    schema = Schema.read(folder / "adult.schema.toml")
    assert not schema.drafted
    assert Path(folder / "adult-release-1" / "manifest.json").is_file()


def confirm_by_keys(page, keys):
    """Confirm the number of rows, the columns, their questions and the rules."""
    keys.press("Confirm the 10 without a question, and 50,000 rows")
    answers = ".answers button"
    rules = "#constraints button[value=confirm]"  # the first is about all of them
    outcome = page.locator(f"{answers}, {rules}, {CONFIRMED}")
    while "Everything is confirmed." not in outcome.first.inner_text():
        first = answers if page.locator(answers).count() else rules
        keys.press(page.locator(first).first.inner_text())
    page.wait_for_selector("text=Everything is confirmed.")


class Keys:
    """The Tab key, until something has the focus; then a key on it."""

    # How a user of the keyboard knows what has the focus: its label, or its own words.
    NAME = """() => {
      const found = document.activeElement;
      if (!found) return "";
      const label = found.labels && found.labels.length ? found.labels[0].innerText : "";
      return (found.getAttribute("aria-label") || label || found.innerText || "").trim();
    }"""

    # How often Tab is pressed until a name has the focus, as far as a script can tell: asking after
    # each press takes longer than the press. What then has the focus is what counts.
    DISTANCE = """(name) => {
      const kinds = "a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex]";
      const all = [...document.querySelectorAll(kinds)].filter(
        (each) => each.tabIndex >= 0 && !each.disabled && each.checkVisibility()
          && !(each.type === "radio" && !each.checked));
      const from = all.indexOf(document.activeElement);
      const label = (each) => each.labels && each.labels.length ? each.labels[0].innerText : "";
      const named = (each) =>
        (each.getAttribute("aria-label") || label(each) || each.innerText || "").trim();
      const to = all.findIndex((each, at) => at > from && (
        named(each) === name || (name.includes(" ") && named(each).startsWith(name))));
      return Math.max(0, to - from - 1);
    }"""

    def __init__(self, page):
        self.page = page

    def reach(self, name):
        """Move the focus to what has this name; several words may be its beginning."""
        for at in range(400):
            found = self.page.evaluate(self.NAME)
            if found == name or (" " in name and found.startswith(name)):
                return
            for _ in range(self.page.evaluate(self.DISTANCE, name) if at == 0 else 0):
                self.page.keyboard.press("Tab")
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the Tab key does not reach {name!r}")

    def hit(self, name, key):
        """Move the focus there, and press a key."""
        self.reach(name)
        self.page.keyboard.press(key)

    def choose(self, name, value):
        """Move the focus to a list, and go down until it has a value.

        Typing the first letters would depend on the clock: after a second a letter is a first one.
        """
        self.reach(name)
        options = self.page.evaluate("document.activeElement.options.length")
        for _ in range(options):
            if self.page.evaluate("document.activeElement.value") == value:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{name!r} cannot be {value!r}")

    def press(self, name):
        """Move the focus there, press Enter, and wait for the page that follows."""
        self.reach(name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
