"""A release as it is shown: from files that anyone may have written."""

import json

import pytest

from deniable.errors import ArtefactError
from deniable.studio.release_view import latest_result, plot, read_release
from studio_client import end_step, record_release


def test_a_release_has_its_certificate_its_records_and_its_plots(released):
    view = read_release(released.space, "out")
    assert view.claims_privacy
    assert view.guarantee["epsilon"] <= 1
    assert view.records.columns == ("years", "trade", "home", "boats", "pet")
    assert [name for name, _ in view.plots] == ["years", "trade", "home", "boats", "pet"]
    assert view.has_artefact
    assert view.verdict == {}


def test_plots_have_no_style_that_our_pages_refuse(released):
    for _, drawn in read_release(released.space, "out").plots:
        assert "<svg" in drawn
        assert "style=" not in drawn


def test_labels_of_a_plot_are_text():
    drawn = plot({"attribute": "<b>", "labels": ['"><script>'], "released": [1.0], "real": [0.5]})
    assert "<script>" not in drawn
    assert "<b>" not in drawn


def test_the_newest_verdict_counts(released):
    for passed in (False, True):
        run = record_release(released, "", kind="check", schema="out")
        _as_verify(released, run)
        end_step(
            released, run, 0, output=json.dumps({"passed": passed, "checks": [{"passed": passed}]})
        )
    newest = released.space.store.all()[0]
    wanted = released.space.store.status(newest)[0].result["passed"]
    assert latest_result(released.space, "out", "verify")["passed"] == wanted


def _as_verify(studio, run):
    path = studio.space.store.folder(run) / "run.json"
    path.write_text(path.read_text().replace('"synthesize"', '"verify"'))


@pytest.mark.parametrize("text", ["[]", "{", "3"])
def test_a_manifest_that_is_none_is_an_error(released, folder, text):
    (folder / "out" / "manifest.json").write_text(text)
    with pytest.raises(ArtefactError):
        read_release(released.space, "out")


@pytest.mark.parametrize(
    "metrics", ["[]", "{", '{"marginals": 3}', '{"marginals": [{"attribute": "x"}]}']
)
def test_damaged_metrics_show_no_plots(released, folder, metrics):
    (folder / "out.internal" / "report" / "metrics.json").write_text(metrics)
    assert read_release(released.space, "out").plots == []


def test_an_audit_next_to_the_report_is_found(released, folder):
    audit = folder / "out.internal" / "audit"
    audit.mkdir()
    (audit / "audit.json").write_text('{"format": "deniable audit 1"}')
    assert read_release(released.space, "out").audits == ["out.internal/audit/audit.html"]
