"""deniable evaluate, from tables to files: both editions."""

import json
import stat
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from deniable.data.attributes import Attribute
from deniable.data.schema import Schema
from deniable.errors import ConfigError, DataError, OutputError
from deniable.evaluation.effort import Effort
from deniable.evaluation.report import render
from deniable.evaluation.run import evaluate


@pytest.fixture(scope="module")
def internal(release, small_files, small_schema, tmp_path_factory):
    """An internal edition without held-out rows, and the folder it was written to."""
    out = tmp_path_factory.mktemp("internal") / "out"
    metrics = evaluate(
        small_files / "table.csv",
        release / "synthetic.csv",
        small_schema,
        out=out,
        effort=Effort(runs=2, rows=500, trees=5, game=300),
    )
    return metrics, out


@pytest.fixture(scope="module")
def public(release, small_schema, tmp_path_factory):
    out = tmp_path_factory.mktemp("public") / "out"
    # There is no such table: a public edition cannot have read it.
    metrics = evaluate(
        "no/such/table.csv", release / "synthetic.csv", small_schema, out=out, edition="public"
    )
    return metrics, out


def test_metrics_have_the_places_that_other_programs_read(internal):
    metrics, out = internal
    found = json.loads((out / "metrics.json").read_text())
    assert found == json.loads(json.dumps(metrics.document()))
    for width in ("attributes", "pairs"):
        assert 0 <= found["distances"][width]["mean"] <= found["distances"][width]["max"] <= 1
        low, high = found["distances"][width]["interval"]
        assert low <= found["distances"][width]["mean"] <= high
        assert set(found["distances"][width]["baselines"]) == {"marginals", "reals"}
    assert found["learning"]["target"] == "pet"
    assert found["learning"]["runs"] == 2
    assert 0 <= found["learning"]["forest"]["released"]["accuracy"] <= 1
    assert 0 <= found["game"]["forest"]["released"]["accuracy"] <= 1
    assert found["guarantee"]["verified"] is True
    assert found["verdict"]["grade"] in ("good", "fair", "poor")


def test_without_a_held_out_table_it_says_so(internal):
    metrics, out = internal
    found = metrics.document()
    assert {found[part]["against"] for part in ("distances", "learning", "game")} == {"real"}
    assert "no held-out table was given" in (out / "report.html").read_text()


def test_an_internal_edition_is_for_its_owner(internal):
    _, out = internal
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert "discloses something" in (out / "report.html").read_text()


def test_a_public_edition_reads_no_real_table_and_says_why(public):
    metrics, out = public
    assert metrics.findings is None
    found = json.loads((out / "metrics.json").read_text())
    assert set(found) == {"format", "version", "edition", "records", "guarantee", "marginals"}
    assert all(set(one) == {"attribute", "labels", "released"} for one in found["marginals"])
    text = (out / "report.html").read_text()
    assert metrics.claim.sentence[:60] in text
    assert "is itself a disclosure" in text
    assert "Verdict" not in text
    assert "held-out" not in text


def test_a_public_edition_of_unproved_records_is_refused(small_files, small_schema, small_table):
    for synthetic in (small_files / "table.csv", small_table):
        with pytest.raises(ConfigError, match="there is no manifest beside them"):
            evaluate(small_table, synthetic, small_schema, edition="public")


def test_an_edition_has_one_of_two_names(small_schema, small_table):
    with pytest.raises(ConfigError, match="internal or public"):
        evaluate(small_table, small_table, small_schema, edition="secret")


def test_a_folder_that_holds_something_is_refused_at_once(small_schema, tmp_path):
    (tmp_path / "there").write_text("x")
    with pytest.raises(OutputError, match="not empty"):
        evaluate("no/table.csv", "no/table.csv", small_schema, out=tmp_path)


def test_a_wrong_target_is_told_before_a_row_is_read(small_schema):
    with pytest.raises(ConfigError, match="is no attribute"):
        evaluate("no/table.csv", "no/table.csv", small_schema, target="petz")


def test_one_row_is_too_few(small_schema, small_table):
    with pytest.raises(DataError, match="fewer than two rows"):
        evaluate(small_table, small_table.head(1), small_schema)


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
def test_a_report_needs_nothing_but_itself(edition, request):
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


def test_one_attribute_can_be_evaluated_too():
    schema = Schema((Attribute(name="c", kind="categorical", values=("x", "y")),))
    frame = pl.DataFrame({"c": ["x", "y"] * 50})
    metrics = evaluate(frame, frame, schema, effort=Effort(runs=1, rows=50, trees=2, game=20))
    found = metrics.document()
    assert found["learning"] is None
    assert found["distances"]["attributes"]["mean"] == 0
    assert "pairs" not in found["distances"]
    assert "Pairs of columns" not in render(metrics)


def test_a_copy_of_the_table_is_good_and_noise_is_poor(small_table, small_schema):
    effort = Effort(runs=1, rows=1_000, trees=10, game=500)
    copy = evaluate(small_table, small_table, small_schema, target="home", effort=effort)
    assert copy.findings.verdict.grade == "good"
    noise = small_table.select(
        pl.col(name).shuffle(seed=at) for at, name in enumerate(small_table.columns)
    )
    poor = evaluate(small_table, noise, small_schema, target="home", effort=effort)
    assert poor.findings.verdict.grade == "poor"
    assert poor.findings.verdict.kept < 0.3
    assert copy.findings.verdict.kept > 0.9


def test_a_release_that_lost_a_group_is_at_best_fair_and_names_it(small_table, small_schema):
    effort = Effort(runs=1, rows=1_000, trees=10, game=500)
    without = small_table.filter(pl.col("pet") != "pangolin")
    verdict = evaluate(
        small_table, without, small_schema, target="home", effort=effort
    ).findings.verdict
    assert verdict.grade != "good"
    assert "pet pangolin" in verdict.findings[-1]


def test_how_far_it_has_come_is_told(small_table, small_schema):
    told = []
    evaluate(
        small_table,
        small_table,
        small_schema,
        effort=Effort(runs=1, rows=100, trees=2, game=50),
        watch=lambda stage, done, of: told.append((stage, done, of)),
    )
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["read the tables", "distances", "learning", "game"]
    for stage in stages:
        _, done, of = [one for one in told if one[0] == stage][-1]
        assert done == of
