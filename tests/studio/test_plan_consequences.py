"""What a plan means: the numbers of ``deniable plan``, and words that follow from them."""

import math

import pytest

from deniable.pipeline import api
from deniable.privacy.wording import prefix_claim
from deniable.release.untrusted_files import read_json
from deniable.schema.schema import Schema
from deniable.studio.plan_consequences import (
    best_guess,
    caution_words,
    certificate_words,
    consequences,
    forecast_words,
    plain_words,
    warning_words,
)
from deniable.studio.plan_form import PlanForm


def test_the_sentence_is_the_one_that_the_release_states(small_table, small_schema):
    """Planned before a row is read, word for word what the certificate says afterwards.

    Only whether any prefix was kept, and so copied, is known afterwards.
    """
    for sent in (
        {"k": "20"},
        {"k": "20", "epsilon": "4"},
        {"mode": "seedless", "epsilon": "2"},
        {"epsilon": "inf"},
    ):
        form = PlanForm.sent({**sent, "records": "50"})
        release = api.synthesize(small_table, small_schema, records=50, **form.given())
        planned = consequences(form, small_schema).sentence
        if not release.certificate.parameters.get("copies_prefixes", True):
            assert prefix_claim(20) in planned
            planned = planned.replace(prefix_claim(20), "")
        assert planned == release.certificate.sentence


def test_an_impossible_plan_says_why(small_schema):
    found = consequences(PlanForm.sent({"mode": "randomized", "records": "100000"}), small_schema)
    assert "one-shot" in found.error
    assert found.sentence == ""
    assert "k" in consequences(PlanForm.sent({"k": "zero"}), small_schema).error


def test_the_chance_of_a_guess_is_that_of_the_definition():
    """Against randomized response, which is the worst mechanism of its ε."""
    for epsilon in (0.1, 1.0, 3.0):
        truthful = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert best_guess(epsilon, 0) == pytest.approx(truthful)
    assert best_guess(0, 0.1) == pytest.approx(0.55)  # (1 + δ) / 2
    assert best_guess(1e6, 0) == 1
    assert best_guess(1.0, 1.0) == 1


def test_words_are_rounded_so_that_they_never_promise_too_much():
    report = {"cost": {"epsilon": 1.0, "delta": 1e-9}, "mode": "one-shot", "k": 50, "threshold": 99}
    words = " ".join(plain_words(report, has_unit=False))
    assert "73.2 %" in words  # 0.7310586, rounded up
    assert "factor of at most 2.8" in words  # 2.718…, rounded up
    assert "1 in 1,000,000,000" in words
    assert "at least 50 rows" in words


def test_no_guarantee_is_called_none(small_schema):
    found = consequences(PlanForm.sent({"epsilon": "inf"}), small_schema)
    [words] = found.words
    assert "Nothing is promised" in words
    tested = consequences(PlanForm.sent({"mode": "tested", "k": "7"}), small_schema)
    assert "at least 7 different rows" in tested.words[0]
    assert "weaker than differential privacy" in tested.words[1]


def test_a_person_with_several_rows_is_named(small_schema):
    text = small_schema.text().replace(
        "rows_max = 10_000\n", 'rows_max = 10_000\nunit = "person"\nmax_rows_per_unit = 3\n', 1
    )
    schema = Schema.parse(text + '\n[[attribute]]\nname = "person"\ntype = "identifier"\n')
    words = consequences(PlanForm.sent({}), schema).words
    assert "person" in words[0]
    assert "row" not in words[0]
    assert "whether one person’s rows are in the table" in words[1]


def test_a_release_is_explained_in_the_words_of_its_plan(made_release, small_schema):
    manifest = read_json(made_release / "out" / "manifest.json")
    planned = consequences(PlanForm.sent({"k": "20", "records": "300"}), small_schema)
    manifest["parameters"]["copies_prefixes"] = False
    assert certificate_words(manifest) == planned.words[:-1]
    manifest["parameters"]["copies_prefixes"] = True
    assert certificate_words(manifest) == planned.words
    assert "is copied only if at least 20 rows share it" in planned.words[-1]
    for odd in ({}, {"guarantee": 3}, {"guarantee": {"epsilon": "x", "delta": 0, "unit": "y"}}):
        assert certificate_words({"mode": "one-shot", "parameters": {}, **odd}) == []


def test_a_warning_names_the_field_and_no_flag(small_schema):
    found = consequences(PlanForm.sent({"rows": "100"}), small_schema).warnings
    assert found
    assert "--" not in " ".join(found)
    assert "under More options" in found[0]
    assert warning_words(None) == []


def test_the_forecast_is_in_words_and_may_be_missing():
    words = forecast_words({"value_error": 0.001, "visible_association": 0.02, "sample_share": 0.3})
    assert "± 0.2 percentage points" in words[0]
    assert "0.02" in words[1]
    assert "30 %" in words[2]
    assert forecast_words(None) == []
    assert forecast_words({"value_error": None}) == []


@pytest.mark.parametrize(
    ("epsilon", "likeness", "warned"),
    [
        (0.1, "almost the same", False),
        (1.0, "much the same", False),
        (2.0, "could look different", False),
        (3.0, "quite different", True),
        (10.0, "quite different", True),
        (50.0, "quite different", False),  # a danger, in words of its own
    ],
)
def test_words_are_never_stronger_than_their_epsilon(epsilon, likeness, warned):
    cost = {"epsilon": epsilon, "delta": 1e-9}
    report = {"cost": cost, "mode": "one-shot", "k": 50, "threshold": 99}
    words = plain_words(report, has_unit=False)
    assert likeness in words[0]
    assert ("almost" in " ".join(words)) == (likeness == "almost the same")
    assert bool(caution_words(report)) == warned
    assert "at most 100 %" not in " ".join(words) or epsilon > 20
    assert "at most more" not in " ".join(words)


def test_a_share_just_below_one_is_not_written_as_all():
    cost = {"epsilon": 10.0, "delta": 1e-9}
    report = {"cost": cost, "mode": "one-shot", "k": 50, "threshold": 99}
    assert "99.996 %" in " ".join(plain_words(report, has_unit=False))  # 0.9999546, rounded up


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ({"epsilon": "10"}, ""),
        ({"epsilon": "10.5"}, "is above 10 and promises next to nothing"),
        ({"epsilon": "inf"}, "nothing is promised"),
        ({"delta": "0.0000999", "rows": "10000"}, ""),
        ({"delta": "0.0001", "rows": "9999"}, "No meaningful guarantee"),
        ({"delta": "0.0001", "rows": "10000"}, "No meaningful guarantee"),
    ],
)
def test_what_promises_next_to_nothing_is_shown_in_red(studio, small_schema, sent, found):
    """With δ = 1/rows, the plan said that a release "would look much the same"."""
    meant = consequences(PlanForm.sent({"records": "50", **sent}), small_schema)
    assert found in meant.danger
    assert bool(meant.danger) == bool(found)
    assert (" look " in " ".join(meant.words)) == (not found)
    page = studio.get("/plan", table="table.csv", schema="schema.toml", records="50", **sent)
    assert ('class="warning danger"' in page) == bool(found)


def test_the_page_warns_of_a_large_epsilon(studio):
    given = {"table": "table.csv", "schema": "schema.toml"}
    assert "is large" in studio.get("/plan", **given, records="100", epsilon="5")
    assert "is large" not in studio.get("/plan", **given, records="100", epsilon="1")
