"""Estimates of the table in a public edition: from a verified artefact alone."""

import json
from dataclasses import replace

import pytest

import deniable
from deniable.data.codec import Codec
from deniable.evaluation.estimates import Estimates, estimates_section, find_estimates
from deniable.evaluation.release_claim import read_claim
from toy_artefacts import SCHEMA, artefact_of, measure, toy_artefact, toy_codes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimates") / "release"
    frame = Codec(SCHEMA).decode(toy_codes())
    deniable.synthesize(frame, SCHEMA, records=300, mode="seedless", epsilon=4.0).write(folder)
    return folder / "synthetic.csv"


def test_a_public_report_has_a_table_of_shares_and_says_what_noise_hides(released, tmp_path):
    out = tmp_path / "report"
    deniable.evaluate(None, released, SCHEMA, out=out, edition="public")
    page = (out / "report.html").read_text()
    assert "The table, with error bars" in page
    assert "stands out" in page
    document = json.loads((out / "metrics.json").read_text())
    answers = document["estimates"]["columns"]
    assert [answer["columns"] for answer in answers] == [[name] for name in SCHEMA.names]
    assert document["estimates"]["bounds"]
    assert page.count("<tr>") > sum(len(answer["cells"]) for answer in answers)


def test_only_a_verified_release_is_described(released, tmp_path):
    claim = read_claim(released)
    assert claim is not None
    assert find_estimates(released, claim) is not None
    assert find_estimates(released, replace(claim, failures=("hash: wrong",))) is None
    assert find_estimates(Codec(SCHEMA).decode(toy_codes()), claim) is None
    # Generated records have a manifest, but no artefact next to them.
    assert find_estimates(tmp_path / "records.csv", claim) is None


def test_what_is_shown_does_not_depend_on_noise():
    one, two = (Estimates.of(artefact_of(measure(key))).columns for key in (1, 2))
    labels = [[[cell.labels for cell in answer.cells] for answer in found] for found in (one, two)]
    assert labels[0] == labels[1]
    # Ten bands of equally many codes, by the schema alone.
    assert labels[0][0][:2] == [("0 to 3",), ("4 to 7",)]


@pytest.mark.parametrize("epsilon", [0.05, float("inf")])
def test_much_and_no_noise_are_described_too(epsilon):
    found = Estimates.of(toy_artefact(epsilon=epsilon))
    assert len(found.columns) == 4
    assert bool(found.bounds) == (epsilon < 1)
    page = estimates_section(found)
    assert "nan" not in page
    json.dumps(found.document(), allow_nan=False)


def test_the_paper_s_model_has_no_estimates():
    frame = Codec(SCHEMA).decode(toy_codes())
    graph: dict[str, list[str]] = {name: [] for name in SCHEMA.names}
    paper = deniable.learn(frame, SCHEMA, mode="seedless", graph=graph)
    assert Estimates.of(paper) == Estimates(columns=(), bounds=())
