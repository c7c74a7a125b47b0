"""deniable evaluate, from tables to files: both editions."""

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from deniable.errors import ConfigError, DataError, OutputError
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import _STAGE_SHARES, WHOLE_REPORT, evaluate
from deniable.evaluation.report import render
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


def test_the_report_states_that_there_is_no_held_out_table(internal):
    metrics, out = internal
    found = metrics.document()
    assert {found[part]["against"] for part in ("distances", "learning", "game")} == {"real"}
    assert "no held-out table was given" in (out / "report.html").read_text()


def test_a_public_edition_does_not_read_the_real_table(public):
    metrics, out = public
    assert metrics.findings is None
    found = json.loads((out / "metrics.json").read_text())
    assert set(found) == {"format", "version", "edition", "guarantee", "estimates"}
    text = (out / "report.html").read_text()
    assert metrics.claim.sentence[:60] in text
    assert "is itself a disclosure" in text
    assert "Verdict" not in text
    assert "held-out" not in text


def test_the_metrics_and_the_report_state_the_rows_that_were_used(internal):
    metrics, out = internal
    found = json.loads((out / "metrics.json").read_text())
    assert found["effort"]["rows"] == 500
    assert not found["effort"]["thorough"]
    assert "This is a first report" in (out / "report.html").read_text()
    thorough = replace(metrics, findings=replace(metrics.findings, effort=Effort()))
    assert "This is a first report" not in render(thorough)


def test_relations_are_in_the_metrics_and_in_the_report(internal):
    metrics, out = internal
    found = json.loads((out / "metrics.json").read_text())
    assert found["relations"] == json.loads(json.dumps(metrics.findings.relations.document()))
    assert found["verdict"]["measures"]["relations"]["value"] == found["relations"]["kept"]
    text = (out / "report.html").read_text()
    assert text.index("Relations between columns") < text.index("Privacy guarantee")
    assert "Sample equivalent" in text


def test_how_round_a_number_is_is_not_a_column_with_relations():
    """The model learns it as an attribute of its own; the table has no such column."""
    pay = Attribute(
        name="pay", kind="integer", values=range(1_000), starts=range(0, 1_000, 50), heaps=(10, 50)
    )
    schema = Schema((pay, Attribute(name="c", kind="categorical", values=("x", "y"))))
    assert len(schema.attributes) == 3
    values = [50 * (i % 20) for i in range(200)] + [7 * i for i in range(100)]
    frame = pl.DataFrame({"pay": values, "c": ["x" if v < 500 else "y" for v in values]})
    metrics = evaluate(frame, frame, schema, effort=Effort(runs=1, rows=50, trees=2, game=20))
    assert [each.names for each in metrics.findings.relations.associations] == [("pay", "c")]


def test_a_public_edition_needs_a_verified_guarantee(small_files, small_schema, small_table):
    for synthetic in (small_files / "table.csv", small_table):
        with pytest.raises(ConfigError, match="there is no manifest next to them"):
            evaluate(small_table, synthetic, small_schema, edition="public")


def test_an_edition_has_one_of_two_names(small_schema, small_table):
    with pytest.raises(ConfigError, match="internal or public"):
        evaluate(small_table, small_table, small_schema, edition="secret")


def test_a_folder_with_files_is_refused_before_reading(small_schema, tmp_path):
    (tmp_path / "there").write_text("x")
    with pytest.raises(OutputError, match="not empty"):
        evaluate("no/table.csv", "no/table.csv", small_schema, out=tmp_path)


def test_an_unknown_target_fails_before_a_row_is_read(small_schema):
    with pytest.raises(ConfigError, match="is not an attribute"):
        evaluate("no/table.csv", "no/table.csv", small_schema, target="petz")


def test_one_row_is_too_few(small_schema, small_table):
    with pytest.raises(DataError, match="fewer than two rows"):
        evaluate(small_table, small_table.head(1), small_schema)


def test_one_attribute_can_be_evaluated_too():
    schema = Schema((Attribute(name="c", kind="categorical", values=("x", "y")),))
    frame = pl.DataFrame({"c": ["x", "y"] * 50})
    metrics = evaluate(frame, frame, schema, effort=Effort(runs=1, rows=50, trees=2, game=20))
    found: dict[str, Any] = metrics.document()
    assert found["learning"] is None
    assert found["distances"]["attributes"]["mean"] == 0
    assert "pairs" not in found["distances"]
    assert found["relations"] is None
    assert "Pairs of columns" not in render(metrics)
    assert "Relations between columns" not in render(metrics)


def test_progress_reaches_the_end_of_every_stage(small_table, small_schema):
    events = []
    evaluate(
        small_table,
        small_table,
        small_schema,
        effort=Effort(runs=1, rows=100, trees=2, game=50),
        progress=lambda stage, done, of: events.append((stage, done, of)),
    )
    stages = list(dict.fromkeys(stage for stage, _, _ in events))
    assert stages == [WHOLE_REPORT, *_STAGE_SHARES]
    whole = [done for stage, done, of in events if stage == WHOLE_REPORT and of == 100]
    assert whole == sorted(whole)
    assert sum(_STAGE_SHARES.values()) == 100
    for stage in stages:
        _, done, of = [one for one in events if one[0] == stage][-1]
        assert done == of
