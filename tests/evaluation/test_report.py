"""The HTML report: self-contained, safe against markup in names, and with the right permissions."""

import stat
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.report import render
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema


class Reader(HTMLParser):
    """Collects what a browser would run or fetch, and whether tags match."""

    def __init__(self):
        super().__init__()
        self.open, self.foreign, self.policy = [], [], ""

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag in ("script", "img", "iframe", "object", "embed"):
            self.foreign.append(tag)
        for name, value in attrs:
            fetches = name in ("src", "href") and value != "data:,"
            if fetches or name.startswith("on"):
                self.foreign.append((tag, name, value))
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("edition", ["internal", "public"])
def test_a_report_is_self_contained(edition, request):
    _, out = request.getfixturevalue(edition)
    reader = Reader()
    text = (out / "report.html").read_text()
    reader.feed(text)
    assert reader.open == []
    assert reader.foreign == []
    assert reader.policy.startswith("default-src 'none'")
    assert "url(" not in text
    assert "@import" not in text


def test_an_attribute_named_like_markup_stays_text():
    evil = '<script>alert("x")</script>'
    schema = Schema(
        (
            Attribute(name=evil, kind="categorical", values=("<b>", "a&b")),
            Attribute(name="n", kind="integer", values=range(12)),
        )
    )
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {evil: rng.choice(["<b>", "a&b"], 300).tolist(), "n": rng.integers(0, 12, 300)}
    )
    effort = Effort(runs=1, rows=100, trees=2, game=50)
    text = render(evaluate(frame, frame, schema, target="n", effort=effort))
    reader = Reader()
    reader.feed(text)
    assert reader.foreign == []
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


def test_an_internal_edition_is_accessible_to_its_owner_only(internal):
    _, out = internal
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    assert "disclose something" in (out / "report.html").read_text()


def test_a_failed_verification_is_a_warning(internal):
    metrics, _ = internal
    assert "Verification passed" in render(metrics)
    failed = replace(metrics, claim=replace(metrics.claim, failures=("cost: ε is too small",)))
    text = render(failed)
    assert "Verification passed" not in text
    assert "<li>cost: ε is too small</li>" in text


def test_records_without_a_manifest_are_treated_as_confidential(internal):
    text = render(replace(internal[0], claim=None))
    assert "no privacy guarantee is known" in text
