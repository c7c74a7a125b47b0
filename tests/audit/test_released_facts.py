"""Facts of releases: all leaves are there, and the most revealing one is found."""

import numpy as np
import polars as pl
import pytest

from deniable.audit.attack_bounds import Rates
from deniable.audit.neighbours import make_schema
from deniable.audit.released_facts import (
    FactTest,
    artefact_facts,
    draft_facts,
    flatten,
    most_revealing_fact,
    record_facts,
)
from deniable.pipeline.api import learn
from deniable.randomness import Keyed

PRESENT = np.array([False, True] * 20)


def test_a_document_is_flattened_to_its_leaves():
    document = {"a": {"b": [1, "x"]}, "c": True, "version": "9"}
    assert dict(flatten("m", document)) == {
        "m.a.b, length": 2.0,
        "m.a.b.0": 1.0,
        "m.a.b.1": "x",
        "m.c": "True",
    }


def test_an_exact_count_is_the_most_revealing_fact():
    rng = np.random.default_rng(1)
    runs = [{"noisy": float(rng.normal()), "rows": 10.0 + here} for here in PRESENT]
    test = most_revealing_fact(runs, PRESENT)
    assert test == FactTest("rows", 11.0, present=True)
    assert Rates.of(test.calls(runs), PRESENT) == Rates(0, 20, 20, 20)


def test_a_field_that_is_there_with_the_row_only_is_found():
    runs = [{"kept prefix [3]": 1.0} if here else {} for here in PRESENT]
    test = most_revealing_fact(runs, PRESENT)
    assert test.name == "kept prefix [3]"
    assert (test.calls(runs) == PRESENT).all()


def test_a_text_that_means_absence_is_found():
    runs = [{"shape": "(3,)" if here else "(2,)", "same": "x"} for here in PRESENT]
    test = most_revealing_fact(runs, PRESENT)
    assert (test.calls(runs) == PRESENT).all()
    assert "shape" in str(test)


def test_equal_facts_tell_nothing():
    test = most_revealing_fact([{"a": 1.0}] * 40, PRESENT)
    rates = Rates.of(test.calls([{"a": 1.0}] * 40), PRESENT)
    assert rates.true_positives == rates.false_positives


@pytest.mark.parametrize("mode", ["seedless", "one-shot"])
def test_an_artefact_has_its_manifest_shapes_and_order(mode):
    schema = make_schema(2, 3)
    rows = pl.DataFrame({name: ["v0", "v1", "v2"] * 40 for name in schema.names})
    artefact = learn(rows, schema, noise=Keyed(1), mode=mode, delta=1e-4, workers=1)
    facts = artefact_facts(artefact)
    assert facts["shape of values_0"] == "(3,)"
    assert facts["manifest.mode"] == mode
    assert "artefact.order.0" in facts
    assert not any("checksum" in name for name in facts)
    assert ("kept prefixes of length 1" in facts) == (mode == "one-shot")


def test_records_and_drafts_have_facts():
    records = pl.DataFrame({"a": ["x", "x", "y"], "b": ["1", "1", "2"]})
    facts = record_facts(records, {"k": 5})
    assert facts["records with a = x"] == 2
    assert facts["records ('x', '1')"] == 2
    assert facts["manifest.k"] == 5
    assert draft_facts("rows_max = 7", ["few rows"]) == {
        "draft.rows_max": 7.0,
        "note: few rows": 1.0,
    }
