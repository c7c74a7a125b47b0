"""A small reproduction from a table to files; resuming it; refusing other folders."""

import csv
import json
import shutil
from dataclasses import replace

import pytest

from deniable.data.table_io import read_codes
from deniable.errors import OutputError
from deniable.pipeline.api import plan
from deniable.reproduction import reproduce as module
from deniable.reproduction.experiments import (
    OMEGA_ROWS,
    ExperimentBench,
    decode_modelled_columns,
    omega_text,
    release_options,
    timed_run_sizes,
)
from deniable.reproduction.reproduce import reproduce
from deniable.reproduction.tables import TABLE_HEADER
from deniable.schema.schema import Schema
from reproductions import SMALL_SETUP

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reproduced(small_table, small_schema, tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced") / "out"
    events = []
    reproduce(
        small_table,
        small_schema,
        out,
        target="home",
        setup=SMALL_SETUP,
        progress=lambda *event: events.append(event),
    )
    return out, events


def test_a_reproduction_writes_tables_figures_and_a_report(reproduced):
    out, events = reproduced
    for name, rows in (("table3", 8 * 6), ("table4", 10 * 2), ("table5", 8 * 2)):
        written = list(csv.reader((out / f"{name}.csv").read_text().splitlines()))
        assert tuple(written[0]) == TABLE_HEADER
        assert len(written) == 1 + rows
        ours = [row for row in written[1:] if row[0] != "default"]
        assert all(row[2] and row[3] and row[4] for row in ours)
        for row in ours:
            assert float(row[5]) == pytest.approx(float(row[4]) - float(row[2]))
    for number in (1, 2, 3, 4, 6):
        assert (out / f"figure{number}-ours.svg").read_text().startswith("<svg")
        assert (out / f"figure{number}-authors.svg").is_file()
    assert (out / "figure5.svg").is_file()
    assert (out / "table1.csv").read_text().count("\n") == 1 + 5
    assert ",2000\n" in (out / "table2.csv").read_text()
    for number in (1, 2, 3, 4, 5, 6):
        assert (out / f"figure{number}.csv").read_text().count("\n") > 3
    statements = list(csv.reader((out / "statements.csv").read_text().splitlines()))
    assert len(statements) == 1 + 19
    assert {row[4] for row in statements[1:]} <= {"yes", "no"}
    setup = dict(row[::2] for row in csv.reader((out / "setup.csv").read_text().splitlines()))
    assert (setup["independent runs"], setup["records of a release"]) == ("1", "300")
    assert (setup["records learnt from"], setup["test rows"]) == ("1,400", "600")
    assert "Table 3" in (out / "tables.md").read_text()
    assert "Table 3" in (out / "report.html").read_text()
    assert events[0][1] == 0
    assert events[-1][1] == events[-1][2]
    done = [done for _, done, _ in events]
    assert done == sorted(set(done))  # every cell makes progress
    assert len(done) == 1 + len(list((out / "cells").iterdir()))


def test_an_interrupted_reproduction_resumes(reproduced, small_table, small_schema, monkeypatch):
    out, _ = reproduced
    lost = out / "cells" / "release_m-1_ours_run_0.json"
    lost.unlink()
    measured = []
    kept = ExperimentBench.measure

    def measure(bench, released):
        measured.append(len(released))
        return kept(bench, released)

    monkeypatch.setattr(ExperimentBench, "measure", measure)
    monkeypatch.setattr(module, "measure_baselines", None)  # a cell that is there already
    reproduce(small_table, small_schema, out, target="home", setup=SMALL_SETUP)
    assert measured == [300]
    assert json.loads(lost.read_text())["cell"]["table5"]


def test_more_runs_can_be_added(reproduced, small_table, small_schema, monkeypatch, tmp_path):
    """How many runs there are changes no cell: those that are there stay as they are."""
    out = tmp_path / "copy"
    shutil.copytree(reproduced[0], out)
    saved = {
        name: json.loads((out / "cells" / f"{name}_run_0.json").read_text())["cell"]
        for name in ("reals", "release_m_ours")
    }
    before = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    monkeypatch.setattr(ExperimentBench, "release", lambda _bench, _options: None)
    monkeypatch.setattr(ExperimentBench, "measure", lambda _bench, _: saved["release_m_ours"])
    monkeypatch.setattr(ExperimentBench, "measure_reals", lambda _bench: saved["reals"])
    reproduce(small_table, small_schema, out, target="home", setup=replace(SMALL_SETUP, runs=2))
    after = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert before.items() < after.items()
    assert len(after) == len(before) + 14
    assert "2 runs" in (out / "tables.md").read_text()


def test_a_folder_with_other_files_or_settings_is_refused(reproduced, small_table, small_schema):
    out, _ = reproduced
    with pytest.raises(OutputError, match="other settings"):
        reproduce(small_table, small_schema, out, target="pet", setup=SMALL_SETUP)
    with pytest.raises(OutputError, match="other settings"):
        reproduce(small_table.reverse(), small_schema, out, target="home", setup=SMALL_SETUP)
    with pytest.raises(OutputError, match="contains other files"):
        reproduce(small_table, small_schema, out / "cells", target="home", setup=SMALL_SETUP)


def test_any_table_can_be_used(small_schema, small_table, tmp_path):
    """Three attributes, a target of three classes: fewer ω, and no private classifiers."""
    names = ("trade", "boats", "pet")
    schema = Schema(tuple(a for a in small_schema.attributes if a.name in names), rows_max=10_000)
    out = tmp_path / "out"
    reproduce(
        small_table.select(names), schema, out, setup=SMALL_SETUP, test=small_table.select(names)
    )
    assert (out / "table4.csv").read_text().count("\n") == 1
    assert "ω = 1 to 3" in (out / "report.html").read_text()


def test_timed_runs_have_at_least_the_total_records():
    assert sum(timed_run_sizes(24, total=1_000_000)) >= 1_000_000
    assert timed_run_sizes(1, total=5) == [5]


def test_every_row_has_options_that_can_be_planned(small_schema):
    for row in ("marginals", *OMEGA_ROWS, "default"):
        run = plan(small_schema, **release_options(row, "ours", small_schema, SMALL_SETUP))
        assert run.privacy.cost.epsilon <= 1
    for row in ("marginals", *OMEGA_ROWS):
        options = release_options(row, "authors", small_schema, SMALL_SETUP)
        assert options["profile"] == "paper"
        plan(small_schema, records=10, **options)
    assert [omega_text(row, 11) for row in OMEGA_ROWS] == ["11", "10", "9", "9-11", "5-11"]


def test_decoded_rows_have_the_same_codes_when_encoded_again(small_schema, small_codes):
    frame, plain = decode_modelled_columns(small_schema, small_codes)
    codes, _ = read_codes(frame, plain)
    assert (codes == small_codes).all()
