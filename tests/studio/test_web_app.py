"""The application: every page, every error, many at once."""

import errno
import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import pytest

from deniable.errors import BudgetError, ConfigError, InvariantError
from deniable.studio import table_screen, web_app
from deniable.studio.root_folder import PathError
from studio_client import text_of

pytestmark = pytest.mark.slow

PAGES = [
    "/?folder=",
    "/table?path=table.csv",
    "/schema?table=table.csv&schema=schema.toml&column=0&text=1",
    "/plan?table=table.csv&schema=schema.toml",
    "/result?release=out",
    "/history",
    "/nothing",
]


class Inline(HTMLParser):
    """Collect what a strict policy refuses: scripts and styles in the page, handlers, addresses."""

    def __init__(self):
        super().__init__()
        self.faults = []
        self.ids = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in given):
            self.faults.append(tag)
        for name, value in attrs:
            if name.startswith(("on", "hx-on")) or name == "style":
                self.faults.append(f"{tag} {name}")
            if name in ("src", "href", "action") and re.match(
                r"(?i)\s*(https?:|//|javascript:)", value or ""
            ):
                self.faults.append(f"{tag} {name} {value}")
        if "id" in given:
            self.ids.append(given["id"])


def test_pages_have_nothing_that_the_policy_refuses(released):
    for path in PAGES:
        found = Inline()
        found.feed(released.client.get(path).text)
        assert found.faults == [], path
        assert len(found.ids) == len(set(found.ids)), path


def test_a_planted_inline_script_is_found():
    found = Inline()
    found.feed('<p style="x"><a href="//evil">x</a><script>1</script><b onclick="1">')
    assert len(found.faults) == 4


@pytest.mark.parametrize("path", PAGES)
def test_every_page_says_what_may_be_published_or_must_stay_and_shows_its_command(released, path):
    page = released.client.get(path).text
    if path != "/nothing":
        assert re.search("stays inside|May be published", page)
        assert "The same in a terminal" in page
        assert f"cd {released.space.root.path}" in page


def test_no_address_has_a_cell_of_the_table(released):
    """The links and forms of all pages: what they would put into an address."""
    for path in PAGES:
        for link in re.findall(r'(?:href|src|hx-get)="([^"]*)"', released.client.get(path).text):
            assert not re.search("kelpfarmer|houseboat|windmill|axolotl|capybara", link)


@pytest.mark.parametrize("path", [*web_app.GET])
def test_an_address_without_its_fields_is_no_bug(studio, path):
    reply = studio.client.get(path.replace("{id}", "x").replace("{path:path}", "x"))
    assert reply.status_code < 500
    assert "bug" not in reply.text


@pytest.mark.parametrize("path", [*web_app.POST])
def test_a_form_without_its_fields_is_no_bug(studio, path):
    reply = studio.client.post(path.replace("{id}", "x"), data={})
    assert reply.status_code < 500
    assert "bug" not in reply.text


def test_a_bug_shows_no_message_and_logs_nothing(studio, monkeypatch, capfd):
    def broken(*_):
        raise ValueError("the cell kelpfarmer")

    monkeypatch.setattr(table_screen, "table_facts", broken)
    reply = studio.client.get("/table?path=table.csv")
    assert reply.status_code == 500
    assert "ValueError in" in reply.text
    assert "kelpfarmer" not in reply.text
    printed = capfd.readouterr()
    assert printed.out == printed.err == ""


def test_a_fault_replaces_the_whole_page_where_a_part_was_asked_for(studio):
    reply = studio.client.get("/plan?schema=absent.toml", headers={"HX-Request": "true"})
    assert reply.headers["hx-retarget"] == "body"
    stranger = studio.new_client().get("/history", headers={"HX-Request": "true"})
    assert stranger.headers["hx-retarget"] == "body"


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        (OSError(errno.ENOSPC, "full"), 507, "free some space"),
        (FileNotFoundError(errno.ENOENT, "x"), 404, "moved or deleted"),
        (PermissionError(errno.EACCES, "x"), 403, "permissions"),
        (PathError("it is a link"), 403, "It is a link."),
        (BudgetError("too little"), 422, "Too little."),
        (ConfigError("no"), 422, "No."),
        (InvariantError("secret"), 500, "bug"),
        (RuntimeError("secret"), 500, "bug"),
    ],
)
def test_every_error_has_a_page(fault, status, words):
    with pytest.raises(type(fault)) as caught:
        raise fault
    page = web_app.describe_fault(caught.value)
    assert page.status == status
    assert words in page.content["words"]
    assert "secret" not in page.content["words"]


def test_a_full_disk_when_a_run_starts_is_a_clear_page(studio, monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(studio.space.store, "create", full)
    reply = studio.client.post("/draft", data={"path": "table.csv"})
    assert reply.status_code == 507
    assert "disk is full" in reply.text


def test_a_form_that_is_too_large_is_refused(studio):
    reply = studio.client.post("/schema/text", content=b"text=" + b"x" * (2**23 + 1))
    assert reply.status_code == 422
    many = "&".join(f"a{i}=1" for i in range(6000))
    assert studio.client.post("/schema/text", content=many).status_code < 500


def test_repeated_fields_and_odd_bytes_are_read(studio):
    assert web_app._fields("a=1&a=2&b=%C3%A9&c=") == {"a": "1\n2", "b": "é", "c": ""}
    assert studio.client.post("/draft", content=b"\xff\xfe=%ff&path=%00").status_code < 500


def test_a_hundred_requests_at_once_are_all_answered(released):
    paths = [PAGES[i % 6] for i in range(100)]
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda path: released.client.get(path).status_code, paths))
    assert found == [200] * 100


def test_static_files_do_not_leave_their_folder(studio):
    assert studio.client.get("/static/htmx.min.js").status_code == 200
    for path in ("/static/../web_app.py", "/static/%2e%2e/web_app.py", "/static//etc/passwd"):
        assert studio.client.get(path).status_code in (403, 404)


def test_the_pages_can_be_read_without_scripts(released):
    """Every form has an action of its own; htmx only updates parts."""
    for path in PAGES[:6]:
        page = released.client.get(path).text
        for form in re.findall("<form[^>]*>", page):
            assert "action=" in form
            assert "method=" in form
    assert "Not let in" not in text_of(released.get("/history"))
