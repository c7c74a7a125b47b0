"""The third screen: consequences before a row is read, and a run that starts as planned."""

import html
import re
import shlex
import shutil
from types import SimpleNamespace

import pytest

from conftest import HOMES, PETS
from deniable.config import options
from deniable.studio.plan_screen import release_path
from deniable.studio.run_store import RunRecord
from studio_client import end_step, record_release, text_of

GIVEN = {"table": "table.csv", "schema": "schema.toml"}


def command_lines(page):
    found = re.search(r'id="command-title".*?<code>(.*?)</code>', page, re.DOTALL)
    assert found is not None
    return [shlex.split(line) for line in html.unescape(found[1]).split("\n")]


def test_the_plan_shows_costs_noise_sentence_and_words(studio):
    words = text_of(studio.get("/plan", **GIVEN))
    assert "values of years how often each value occurs Gaussian" in words
    assert "differentially private with respect to" in words
    assert "73.1 % of the time" in words
    assert "random sample" in words


def test_many_columns_share_a_row_with_the_smallest_and_the_largest_number(studio, folder):
    """Their costs differ, so one of them must not stand for all."""
    lines = ["format = 1", "rows_max = 10_000"]
    for at in range(21):
        values = [f"v{value}" for value in range(30 if at == 20 else 2)]
        lines += ["[[attribute]]", f'name = "c{at}"', 'type = "categorical"', f"values = {values}"]
    (folder / "wide.toml").write_text("\n".join(lines))
    words = text_of(studio.get("/plan", table="wide.csv", schema="wide.toml"))
    found = re.search(
        r"21 tables of values .*? ([\d.]+) to ([\d.]+) ([\d.]+) to ([\d.]+) each", words
    )
    assert found is not None
    assert float(found[1]) < float(found[2])
    assert float(found[3]) < float(found[4])


def test_no_row_is_read_for_a_plan(studio, folder):
    (folder / "table.csv").unlink()
    page = studio.get("/plan", **GIVEN)
    assert not any(cell in page for cell in (*HOMES, *PETS))


def test_the_commands_are_those_of_the_form(studio):
    sent = {"epsilon": "0.5", "records": "70", "mode": "seedless", "rows": "9000", "measures": "on"}
    change, plan, make, check, measure = command_lines(studio.get("/plan", **GIVEN, **sent))
    assert change == ["cd", str(studio.space.root.path)]
    assert plan[:4] == ["deniable", "plan", "--schema", "schema.toml"]
    assert plan[plan.index("--rows") + 1] == "9000"
    assert make == [
        *("deniable", "synthesize", "table.csv", "--schema", "schema.toml", "--records", "70"),
        *("--epsilon", "0.5", "--mode", "seedless", "--out", "table-release-1"),
    ]
    assert check == ["deniable", "verify", "table-release-1"]
    assert measure[:2] == ["deniable", "evaluate"]


def test_a_moved_slider_changes_its_field_and_the_consequences(studio):
    headers = {"HX-Request": "true", "HX-Trigger-Name": "epsilon_slider"}
    sent = {**GIVEN, "epsilon": "1", "epsilon_slider": "3", "records": "100"}
    reply = studio.client.get("/plan", params=sent, headers=headers)
    assert "<html" not in reply.text
    assert re.search(r'id="epsilon"[^>]*value="0.5"', reply.text)
    assert "62.3 %" in text_of("<main" + reply.text)


def test_an_impossible_choice_says_why(studio):
    sent = {**GIVEN, "mode": "randomized", "records": "100000"}
    words = text_of(studio.get("/plan", **sent))
    assert "This plan is not possible." in words
    assert "a larger k or a larger ε" in words
    reply = studio.client.post("/start", data=sent)
    assert reply.status_code == 422
    assert "Not started." in reply.text
    assert studio.space.store.all() == []


@pytest.mark.parametrize(
    "sent", [{"mode": "randomized", "records": "100000"}, {"epsilon": "x"}, {"records": "0"}]
)
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "part"])
def test_an_impossible_plan_cannot_be_started_and_promises_nothing(studio, sent, headers):
    for fields, is_possible in (({}, True), (sent, False), ({}, True)):
        page = studio.client.get("/plan", params={**GIVEN, **fields}, headers=headers).text
        [button] = re.findall(r'<button[^>]* id="start"[^>]*>', page)
        assert (" disabled" in button) is not is_possible
        [note] = re.findall(r'id="start-note">(.*?)</span>', page)
        assert note.startswith("This plan is not possible: ") is not is_possible
        for title in ("What is promised", "What it costs", "The same in a terminal"):
            assert (title in page) is is_possible
        assert ("hx-swap-oob" in page) is bool(headers)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"out": "../elsewhere"}, "hidden names and parent folders"),
        ({"out": "/elsewhere"}, "must lie in"),
        ({"out": "x.internal"}, "must not be named .internal"),
        ({"out": "table.csv"}, "exists"),
        ({"out": "x.Internal/y"}, "must not be named .internal"),
        ({"epsilon": "x"}, "write a number"),
        ({"records": "0"}, "write a whole number"),
    ],
)
def test_a_run_that_cannot_start_shows_the_form_with_what_was_typed(studio, sent, words):
    reply = studio.client.post("/start", data={**GIVEN, "k": "33", **sent})
    assert reply.status_code == 422
    assert words in text_of(reply.text)
    assert re.search(r'id="k"[^>]*value="33"', reply.text)
    assert studio.space.store.all() == []


@pytest.mark.parametrize(("file_format", "fits"), [("csv", False), ("parquet", True)])
def test_a_run_that_the_disk_cannot_hold_is_not_started(studio, monkeypatch, file_format, fits):
    """A record has 72 bytes in memory here: at least 18 in a CSV file, 2 in Parquet."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000_000))
    monkeypatch.setattr(studio.space.control, "begin", lambda _: None)
    sent = {**GIVEN, "records": "1000000", "format": file_format}
    reply = studio.client.post("/start", data=sent, follow_redirects=False)
    assert (reply.status_code != 422) == fits
    assert ("records need at least" in reply.text) != fits
    assert bool(studio.space.store.all()) == fits


def test_a_schema_that_is_not_confirmed_must_be_accepted(studio, folder):
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(
        text.replace("[[attribute]]", "[[attribute]]\nconfirmed = false", 1)
    )
    reply = studio.client.post("/start", data={**GIVEN, "records": "10"})
    assert reply.status_code == 422
    assert "not confirmed" in reply.text
    sent = {"accept_drafted_schema": "on", "records": "10"}
    assert "--accept-drafted-schema" in studio.get("/plan", **GIVEN, **sent)


def test_a_second_release_warns_and_wants_a_tick(studio):
    record_release(studio, "earlier", epsilon=0.75)
    words = text_of(studio.get("/plan", **GIVEN, epsilon="0.5"))
    assert "has been released before" in words
    assert "so far ε = 0.75" in words
    assert "will have cost ε = 1.249" in words or "will have cost ε = 1.25" in words
    reply = studio.client.post("/start", data={**GIVEN, "records": "10"})
    assert reply.status_code == 422
    assert "costs add up" in reply.text
    assert len(studio.space.store.all()) == 1


def test_a_run_starts_with_the_commands_that_were_shown(studio):
    begun: list[RunRecord] = []
    object.__setattr__(studio.space.control, "begin", begun.append)
    sent = {**GIVEN, "records": "10", "k": "20", "measures": "on"}
    shown = command_lines(studio.get("/plan", **sent))
    studio.post("/start", **sent)
    [run] = begun
    assert [list(step.arguments) for step in run.steps] == [line[1:] for line in shown[2:]]
    assert run.table_hash
    assert float(run.epsilon) <= 1


def test_names_of_releases_are_free(studio, folder):
    root = studio.space.root
    assert release_path(root, "table.csv") == "table-release-1"
    (folder / "table-release-1").mkdir()
    (folder / "table-release-2.internal").mkdir()
    assert release_path(root, "table.csv") == "table-release-3"


def test_the_name_of_an_earlier_run_is_never_used_again(studio):
    end_step(studio, record_release(studio, "table-release-1"), 0, code=130)
    page = studio.get("/plan", **GIVEN)
    assert 'value="table-release-2"' in page
    for out in ("table-release-1", "./table-release-1/", "Table-Release-1"):
        reply = studio.client.post("/start", data={**GIVEN, "records": "10", "out": out})
        assert reply.status_code == 422
        assert "An earlier run had the folder" in reply.text
    assert len(studio.space.store.all()) == 1


def test_a_release_in_a_release_is_refused(released, folder):
    (folder / "out" / "deeper").mkdir()
    for out in ("out/second", "out/deeper/second"):
        sent = {**GIVEN, "records": "10", "out": out, "spend_more": "on"}
        reply = released.client.post("/start", data=sent)
        assert reply.status_code == 422
        assert "lies in another release" in reply.text
    assert len(released.space.store.all()) == 1


def test_modes_and_targets_are_offered_and_all_else_is_on_the_command_line(studio):
    page = studio.get("/plan", **GIVEN, target="pet", estimator="norm-sub", workers="2")
    for mode in options()["mode"].choices:
        assert f'<option value="{mode}"' in page
    assert re.search(r'<option value="pet" selected>', page)
    assert "--target=pet" in page
    assert "deniable synthesize --help" in page
    assert "norm-sub" not in page
    assert "--workers" not in page


def test_the_first_page_shows_the_commands_of_what_is_ticked(studio):
    page = studio.get("/plan", **GIVEN)
    assert re.search(r'name="measures" checked', page)
    assert any("evaluate" in line for line in command_lines(page))
    page = studio.get("/plan", **GIVEN, records="100")
    assert not re.search(r'name="measures" checked', page)
    assert not any("evaluate" in line for line in command_lines(page))


def test_the_schema_of_another_table_is_noticed_before_a_run(studio, folder):
    (folder / "other.csv").write_text("town,years\nA,3\n")
    (folder / "part.toml").write_text(
        (folder / "schema.toml").read_text().replace('name = "pet"', 'name = "pets"')
    )
    for given, words in (
        ({"table": "other.csv", "schema": "schema.toml"}, "other.csv has no column"),
        ({**GIVEN, "schema": "part.toml"}, ": renamed?"),
    ):
        assert words in text_of(studio.get("/schema", **given))
        page = studio.get("/plan", **given)
        assert "This plan is not possible." in text_of(page)
        assert words in text_of(page)
        reply = studio.client.post("/start", data={**given, "records": "10"})
        assert reply.status_code == 422
        assert words in text_of(reply.text)
    assert studio.space.store.all() == []
    assert "is not the schema of" not in studio.get("/schema", **GIVEN)
    assert "is not the schema of" not in studio.get("/schema", schema="schema.toml")
