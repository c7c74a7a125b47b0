"""The report's section on the table itself: from a verified artefact alone, in both editions."""

import json

import pytest

import deniable
from deniable.answers.artefact_findings import describe_artefact
from deniable.data.codec import Codec
from deniable.evaluation.estimates_section import estimates_section, find_estimates
from deniable.evaluation.release_claim import read_claim
from toy_artefacts import SCHEMA, toy_artefact, toy_codes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimates") / "release"
    frame = Codec(SCHEMA).decode(toy_codes())
    deniable.synthesize(frame, SCHEMA, records=300, mode="seedless", epsilon=4.0).write(folder)
    return folder / "synthetic.csv"


def test_a_public_report_shows_bars_and_says_which_differences_are_real(released, tmp_path):
    out = tmp_path / "report"
    deniable.evaluate(None, released, SCHEMA, out=out, edition="public", target="sold")
    page = (out / "report.html").read_text()
    assert "Estimates of the table, with error bars" in page
    assert "Which differences in sold are real?" in page
    assert "Bonferroni" in page
    document = json.loads((out / "metrics.json").read_text())
    assert document["estimates"]["target"] == "sold"
    assert document["estimates"]["comparisons"] > 0


def test_only_a_verified_release_is_described(released, tmp_path):
    claim = read_claim(released)
    assert find_estimates(released, claim, target=None) is not None
    assert find_estimates(released, None, target=None) is None
    assert find_estimates(Codec(SCHEMA).decode(toy_codes()), claim, target=None) is None
    # Generated records have a manifest, but no artefact next to them.
    assert find_estimates(tmp_path / "records.csv", claim, target=None) is None


def test_groups_with_too_few_rows_say_so():
    page = estimates_section(describe_artefact(toy_artefact(epsilon=0.3)))
    assert "too few rows to say" in page
    assert "script" not in page
