"""metrics.json: the keys that other programs read."""

import json


def test_metrics_have_the_keys_that_other_programs_read(internal):
    metrics, out = internal
    found = json.loads((out / "metrics.json").read_text())
    assert found == json.loads(json.dumps(metrics.document()))
    for width in ("attributes", "pairs"):
        assert 0 <= found["distances"][width]["mean"] <= found["distances"][width]["max"] <= 1
        assert set(found["distances"][width]["baselines"]) == {"marginals", "reals"}
    assert found["learning"]["target"] == "home"  # the most associated column
    assert found["learning"]["runs"] == 2
    assert 0 <= found["learning"]["forest"]["released"]["accuracy"] <= 1
    assert 0 <= found["game"]["forest"]["released"]["accuracy"] <= 1
    assert found["guarantee"]["verified"] is True
    assert found["verdict"]["grade"] in ("good", "fair", "poor")
    assert found["verdict"]["measures"]["relations"]["grade"] in ("good", "fair", "poor")


def test_an_internal_edition_has_the_disclosure_warning(internal):
    document = internal[0].document()
    assert "Confidential" in document["disclosure"]
    assert document["rows"] == {"real": 2_000}
