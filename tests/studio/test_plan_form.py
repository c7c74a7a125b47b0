"""The form of the plan is made from the options, and gives the same flags as the command line."""

import math

import pytest

from deniable.config import Config, options
from deniable.errors import ConfigError
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.studio.plan_form import LABELS, MAIN, SLIDERS, PlanForm, nearest_position
from deniable.studio.stage_words import findings, is_in_rows


def test_an_empty_form_is_the_default():
    form = PlanForm.sent({})
    assert form.config() == Config()
    assert form.flags() == []
    assert form.records == 10_000
    assert form.rows is None


def test_a_form_that_shows_all_defaults_is_the_default():
    shown = {each.option.name: each.text for each in PlanForm.sent({}).main_fields}
    assert PlanForm.sent({**shown, "mode": "one-shot"}).given() == {}


def test_fields_have_the_words_of_the_options():
    form = PlanForm.sent({"epsilon": "0.5"})
    assert [each.option for each in form.main_fields] == [options()[name] for name in MAIN]
    assert form.main_fields[0].text == "0.5"
    assert [each.label for each in form.main_fields] == [LABELS[name] for name in MAIN]


def test_the_flags_are_those_of_the_options():
    sent = {
        "epsilon": "0.5",
        "mode": "seedless",
        "target": "a b\r\n-c",
        "format": "parquet",
        "accept_drafted_schema": "on",
        "records": "1,000",
        "rows": "20_000",
    }
    form = PlanForm.sent(sent)
    assert form.flags() == [
        *("--epsilon", "0.5", "--mode", "seedless", "--target=a b", "--target=-c"),
        *("--accept-drafted-schema", "--format", "parquet"),
    ]
    assert form.config().target == ("a b", "-c")
    assert form.records == 1000
    assert form.rows == 20_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("epsilon", "abc"),
        ("epsilon", "nan"),
        ("epsilon", "-1"),
        ("epsilon", "0"),
        ("delta", "1"),
        ("k", "1.5"),
        ("k", "0"),
        ("mode", "magic"),
    ],
)
def test_a_text_that_is_no_option_is_refused(name, text):
    with pytest.raises(ConfigError):
        PlanForm.sent({name: text}).config()


@pytest.mark.parametrize("text", ["0", "-5", "ten", "1e3", "²", str(2**41)])
def test_a_number_of_records_is_whole_and_positive(text):
    with pytest.raises(ConfigError):
        _ = PlanForm.sent({"records": text}).records


def test_infinite_epsilon_is_passed_on():
    assert PlanForm.sent({"epsilon": "inf"}).config().epsilon == math.inf
    assert PlanForm.sent({"epsilon": "inf"}).flags() == ["--epsilon", "inf"]


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_that_was_moved_wins_and_finds_its_place_again(name):
    for at, value in enumerate(SLIDERS[name]):
        sent = {name: "77", f"{name}_slider": str(at)}
        moved = PlanForm.sent(sent, moved=f"{name}_slider").texts[name]
        assert float(moved) == value
        assert nearest_position(name, moved) == at
        assert PlanForm.sent(sent).texts[name] == "77"


def test_odd_positions_are_moved_inside():
    last = len(SLIDERS["k"]) - 1
    assert nearest_position("k", "inf") == last
    assert nearest_position("k", "1e9") == last
    assert nearest_position("k", "0") == nearest_position("k", "x") == 0
    assert PlanForm.sent({"k_slider": "999"}, moved="k_slider").texts["k"] == "500"
    assert PlanForm.sent({"k_slider": "-1"}, moved="k_slider").texts["k"] == "2"


@pytest.mark.parametrize("name", ["records", "rows", "k", "epsilon"])
def test_a_number_of_thousands_of_digits_is_a_clear_page(studio, name):
    for text in ("9" * 5000, "9" * 400, "²"):
        given = {"table": "table.csv", "schema": "schema.toml", name: text}
        if name == "records":
            assert studio.client.post("/start", data=given).status_code == 422
        assert studio.client.get("/plan", params=given).status_code == 200
        moved = {**given, "k_slider": text}
        headers = {"HX-Request": "true", "HX-Trigger-Name": "k_slider"}
        assert studio.client.get("/plan", params=moved, headers=headers).status_code == 200


def stages_of(schema, **given):
    config = Config.assemble(given)
    run = plan_run(schema, config, records=100)
    return report_plan(run, schema, config, compares_modes=False)["stages"]


@pytest.mark.parametrize(
    "given", [{}, {"mode": "seedless"}, {"mode": "tested"}, {"estimator": "norm-sub"}]
)
def test_every_stage_has_words(small_schema, given):
    stages = stages_of(small_schema, **given)
    assert stages
    assert [each["what"] for each in stages if not findings(each["what"])] == []
    assert findings("something else") == ""


def test_scaled_sums_are_not_in_rows(small_schema):
    stages = stages_of(small_schema)
    counts = {each["what"].split(" of ")[0] for each in stages if is_in_rows(each["what"])}
    assert counts == {"values", "pairs", "seed prefixes"}
