"""The report's section on the table itself: from a verified artefact alone, in both editions."""

import json

import pytest

import deniable
from deniable.data.codec import Codec
from deniable.evaluation.estimates_section import describe_columns, find_estimates
from deniable.evaluation.release_claim import read_claim
from toy_artefacts import SCHEMA, artefact_of, measure, toy_artefact, toy_codes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimates") / "release"
    frame = Codec(SCHEMA).decode(toy_codes())
    deniable.synthesize(frame, SCHEMA, records=300, mode="seedless", epsilon=4.0).write(folder)
    return folder / "synthetic.csv"


def test_a_public_report_shows_bars(released, tmp_path):
    out = tmp_path / "report"
    deniable.evaluate(None, released, SCHEMA, out=out, edition="public")
    page = (out / "report.html").read_text()
    assert "Estimates of the table, with error bars" in page
    document = json.loads((out / "metrics.json").read_text())
    assert [answer["columns"] for answer in document["estimates"]] == [[n] for n in SCHEMA.names]


def test_only_a_verified_release_is_described(released, tmp_path):
    claim = read_claim(released)
    assert len(find_estimates(released, claim)) == len(SCHEMA.names)
    assert find_estimates(released, None) == ()
    assert find_estimates(Codec(SCHEMA).decode(toy_codes()), claim) == ()
    # Generated records have a manifest, but no artefact next to them.
    assert find_estimates(tmp_path / "records.csv", claim) == ()


def test_what_is_shown_does_not_depend_on_noise():
    one, two = (describe_columns(artefact_of(measure(key))) for key in (1, 2))
    labels = [[[cell.labels for cell in answer.cells] for answer in found] for found in (one, two)]
    assert labels[0] == labels[1]
    # Ten bands of equally many codes, by the schema alone.
    assert labels[0][0][:2] == [("0 to 3",), ("4 to 7",)]


@pytest.mark.parametrize("epsilon", [0.05, float("inf")])
def test_little_and_no_noise_are_described_too(epsilon):
    assert len(describe_columns(toy_artefact(epsilon=epsilon))) == 4


def test_the_paper_s_model_has_no_estimates():
    frame = Codec(SCHEMA).decode(toy_codes())
    graph: dict[str, list[str]] = {name: [] for name in SCHEMA.names}
    assert describe_columns(deniable.learn(frame, SCHEMA, mode="seedless", graph=graph)) == ()
