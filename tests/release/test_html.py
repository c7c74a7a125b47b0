"""What notebooks show of the objects that users hold: escaped, short, and nothing confidential."""

import math
import re
from html.parser import HTMLParser

import polars as pl
import pytest

import deniable as dn
from deniable.evaluation.effort import Effort

NAME, VALUE = "<script>alert(1)</script>", "<img src=x onerror=alert(2)>"
ROWS = 1_237  # an exact count that nothing may show
SCHEMA = dn.Schema.parse(f"""
format = 1
rows_max = 2_000
[[attribute]]
name = "{NAME}"
type = "categorical"
values = ["{VALUE}", "b"]
[[attribute]]
name = "&<b>"
type = "boolean"
""")


class Tags(HTMLParser):
    """The tags and the attributes of a page, which must be closed in order."""

    def __init__(self, page):
        super().__init__()
        self.found, self.open = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.found |= {tag, *(name for name, _ in attrs)}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def table():
    return pl.DataFrame(
        {NAME: [VALUE] * 1_000 + ["b"] * 237, "&<b>": [True, False, False] * 412 + [True]}
    )


@pytest.fixture(scope="module")
def held(table, tmp_path_factory):
    """Every object that a user holds, and what its page must say."""
    folder = tmp_path_factory.mktemp("html") / "out"
    release = dn.synthesize(table, SCHEMA, records=60, k=20, epsilon=2.0)
    release.write(folder)
    fitted = dn.Synthesizer(schema=SCHEMA, k=20, epsilon=2.0).fit(table)
    effort = Effort(runs=1, rows=50, trees=2, game=20)
    asked = {"where": f'"{NAME}" = "b"'}
    return {
        "plan": (dn.plan(SCHEMA, epsilon=2.0), "no row was read"),
        "artefact": (release.artefact, "differentially private"),
        "fitted": (fitted, "differentially private"),
        "release": (release, "<td>60</td>"),
        "answer": (release.artefact.query([NAME, "&<b>"]), "count"),
        "model's answer": (release.artefact.query("&<b>", **asked), "count"),
        "report": (dn.verify(folder), "Verification passed"),
        "metrics": (dn.evaluate(table, folder, SCHEMA, effort=effort), "guarantee verified"),
        "schema": (SCHEMA, "categorical"),
        "draft": (dn.draft_schema(table), "as confidential as the table"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "plan",
        "artefact",
        "fitted",
        "release",
        "answer",
        "model's answer",
        "report",
        "metrics",
        "schema",
        "draft",
    ],
)
def test_what_a_notebook_shows_is_short_and_escaped(held, name):
    shown, words = held[name]
    page = shown._repr_html_()
    assert words in page
    tags = Tags(page)
    assert not tags.open
    assert tags.found <= {
        "div",
        "p",
        "b",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "class",
    }
    assert len(page) < 10_000
    assert not re.search(r"\b1,?237\b", page)
    assert "color" not in page
    if name not in ("plan", "report", "metrics"):
        assert "&lt;script&gt;" in page or name == "model's answer"


def test_no_result_on_real_rows_is_shown(held):
    metrics, _ = held["metrics"]
    page = metrics._repr_html_()
    assert "They are not shown here" in page
    assert metrics.findings.verdict.headline not in page
    assert metrics.findings.verdict.grade not in page.lower().split()


def test_an_answer_without_a_guarantee_shows_no_cell(table):
    exact = dn.learn(table, SCHEMA, epsilon=math.inf)
    answer = exact.query(NAME)
    assert {round(cell.count.estimate) for cell in answer.cells} == {1_000, 237}
    page = answer._repr_html_()
    assert "confidential" in page
    assert not re.search(r"1,?000|237|img", page)


def test_a_failed_check_comes_first(held, tmp_path):
    release, _ = held["release"]
    release.write(tmp_path / "out")
    with (tmp_path / "out" / "synthetic.csv").open("a") as file:
        file.write(f"{VALUE},true\n")
    page = dn.verify(tmp_path / "out")._repr_html_()
    assert "Verification failed" in page
    assert page.index("FAILED:") < page.index("passed:")
    assert "img" not in page
