"""The report of a mechanism audit: verdicts in words, documents that are JSON."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from deniable.audit.attack_bounds import AreaEstimate
from deniable.audit.audit_report import render_audit
from deniable.audit.case_results import promise_of, summarize_case
from deniable.audit.mechanism_report import case_document, mechanism_report
from deniable.audit.neighbours import find_case
from deniable.config import Config
from deniable.errors import VerificationError

OPTIONS = {"epsilon": 1.0, "delta": 1e-2}


def result_of(name, *, mu, runs=400):
    """A case with made-up scores of a Gaussian mechanism."""
    case = find_case(name, OPTIONS)
    rng = np.random.default_rng(2)
    shape = (runs, len(case.targets))
    present = np.broadcast_to((np.arange(runs) % 2 == 1)[:, None], shape)
    scores = mu * (rng.standard_normal(shape) + mu * present)
    # Noise of a stage as claimed, or draws of a split; modes that release records show none.
    stages = {"values of column_1": [400.0, 0.0, 400.0, 1_200.0, 0.001]}
    if name == "random split":
        stages = {"split: rows that serve seeds": [400.0, 0.0, 400.0, 1_200.0, 0.0]}
    block = {
        "present": present.astype(int).tolist(),
        "scores": scores.tolist(),
        "first": [],
        "facts": {str(i): {"x": float(i % 3)} for i in range(runs)},
        "stages": stages if case.mode in ("seedless", "one-shot") else {},
        "undeniable": 0,
    }
    return summarize_case(case, [block], confidence=0.9999)


def report_of(*results, fault=None, needed=None):
    config = Config.assemble({**OPTIONS, "accept_large_delta": True})
    return mechanism_report(results, config=config, fault=fault, needed=needed, options=OPTIONS)


CHARGED = promise_of(find_case("many targets", OPTIONS)).mu or 0.0
WITHIN = {
    name: result_of(name, mu=CHARGED)
    for name in ("many targets", "kept prefix", "random split", "tested seeds", "private draft")
}


def test_a_kept_promise_has_a_ratio_for_each_case():
    report = report_of(*WITHIN.values())
    assert report.within
    report.require()
    assert report.headline.startswith("No attack exceeded the promise, in 2,000 runs")
    assert len(report.findings) >= len(WITHIN)


def test_an_exceeded_promise_is_named():
    report = report_of(result_of("many targets", mu=2 * CHARGED))
    assert report.headline == "The promise is exceeded: many targets."
    with pytest.raises(VerificationError, match="many targets"):
        report.require()


def area_of(ratio, error):
    """The area of an attack that finds this multiple of μ charged; ``error`` of the same unit."""
    low, middle = (float(ndtr(each * CHARGED / math.sqrt(2))) for each in (ratio - error, ratio))
    return AreaEstimate(middle, middle - low)


@pytest.mark.parametrize(
    ("ratio", "error", "decision"),
    [
        (0.9, 0.1, "Kept: seedless, many targets."),
        (1.519, 0.372, "Kept, as far as these runs can tell: seedless, many targets. The estimate"),
        (1.519, 0.1, "Not decided: seedless, many targets. With a confidence of 95 %"),
    ],
)
def test_a_decision_comes_first_and_says_why_an_estimate_above_the_promise_passes(
    ratio, error, decision
):
    result = replace(WITHIN["many targets"], area=area_of(ratio, error))
    report = report_of(result)
    [finding] = report.findings
    assert finding.startswith(decision)
    assert not re.search(r"\d\.\d", finding)
    assert report.sections[0].words[0] == finding
    assert f"μ measured is {ratio:.3f} of μ charged" in report.sections[0].words[1]
    report.require()


def test_a_planted_fault_is_found_or_the_runs_are_named():
    found = report_of(result_of("many targets", mu=2 * CHARGED), fault="half-noise", needed=25)
    assert "the planted fault was found here" in found.sections[0].fault
    assert "25 runs each way" in found.headline
    missed = report_of(WITHIN["many targets"], fault="shared-noise")
    assert "It was not found in 400 runs" in missed.headline
    assert "times as many runs" in missed.headline
    assert "--runs" in report_of(WITHIN["random split"], fault="shared-noise").headline


@pytest.mark.parametrize("name", WITHIN)
def test_a_document_is_json_and_a_page_has_its_noise(name):
    result = WITHIN[name]
    document = json.loads(json.dumps(case_document(result), allow_nan=False))
    assert document["runs"] == 400
    assert document["exceeded"] == []
    page = render_audit(report_of(result))
    assert page.count("How to read this page") == 1
    assert ("Noise of each stage" in page) == bool(result.stages)
