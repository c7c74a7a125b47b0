"""A release as it is shown: from files that anyone may have written."""

import json

import pytest

from deniable.errors import ArtefactError
from deniable.studio.release_view import latest_verdict, read_release
from deniable.studio.run_store import Step
from studio_client import end_step, record_release, record_verdict


def test_a_release_has_its_certificate_and_its_records(released):
    view = read_release(released.space, "out")
    assert view.claims_privacy
    assert view.guarantee["epsilon"] <= 1
    assert view.records.columns == ("years", "trade", "home", "boats", "pet")
    assert view.artefact == "out/artefact"
    assert view.verdict == {}


def test_the_newest_verdict_counts(released):
    for passed in (False, True):
        record_verdict(released, "out", passed=passed)
    newest = released.space.store.all()[0]
    wanted = released.space.store.status(newest)[0].result["passed"]
    assert latest_verdict(released.space, "out")[0]["passed"] == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "tested"},
        {"mode": "other"},
        {"guarantee": {"epsilon": "inf"}},
        {"guarantee": {"epsilon": True}},
        {"guarantee": 3},
    ],
)
def test_a_pass_alone_does_not_make_it_public(released, folder, change):
    path = folder / "out" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    record_verdict(released, "out")
    view = read_release(released.space, "out")
    assert view.has_passed
    assert not view.may_publish


def test_a_verdict_without_checks_is_no_pass(released):
    run = record_verdict(released, "out")
    end_step(released, run, 0, output='{"passed": true, "checks": []}')
    assert not read_release(released.space, "out").may_publish


def test_why_a_check_or_a_measurement_failed_is_kept(released):
    view = read_release(released.space, "out")
    assert view.faults == {"verify": "", "evaluate": ""}
    for command in ("verify", "evaluate"):
        step = Step(name="x", arguments=(command, "out"))
        run = record_release(released, "", kind="check", schema="out", steps=(step,))
        end_step(released, run, 0, code=2, errors=f"DataError: {command}\n")
    view = read_release(released.space, "out")
    assert view.faults == {"verify": "DataError: verify", "evaluate": "DataError: evaluate"}


@pytest.mark.parametrize("text", ["[]", "{", "3", "{}", '{"format": "other"}'])
def test_a_manifest_that_is_none_is_an_error(released, folder, text):
    (folder / "out" / "manifest.json").write_text(text)
    with pytest.raises(ArtefactError):
        read_release(released.space, "out")


@pytest.mark.parametrize("metrics", ["[]", "{", "3"])
def test_damaged_metrics_are_shown_as_none(released, folder, metrics):
    (folder / "out.internal" / "report" / "metrics.json").write_text(metrics)
    assert read_release(released.space, "out").metrics == {}


def test_an_audit_next_to_the_report_is_found(released, folder):
    audit = folder / "out.internal" / "audit"
    audit.mkdir()
    (audit / "audit.json").write_text('{"format": "deniable audit 1"}')
    assert read_release(released.space, "out").audits == ["out.internal/audit/audit.html"]
