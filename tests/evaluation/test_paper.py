"""The paper's own experiments: model accuracy, pass shares, pace, and all of it together."""

import csv
import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import OutputError
from deniable.evaluation import reproduction
from deniable.evaluation.effort import Effort
from deniable.evaluation.guesses import (
    measure_guesses,
    measure_models,
    model_accuracy,
)
from deniable.evaluation.pace import measure_pace
from deniable.evaluation.passing import pass_shares
from deniable.evaluation.recipes import OMEGAS, Setup, omega_text, options_of, plain_table, times
from deniable.evaluation.recorded import HEAD, paper_numbers
from deniable.evaluation.reproduction import reproduce
from deniable.model.synthesis import NetworkModel
from deniable.pipeline import learn, plan

SMALL = Setup(
    runs=1,
    models=2,
    records=300,
    candidates=500,
    instances=2,
    paced=300,
    scanned=60,
    k=5,
    effort=Effort(runs=1, rows=300, trees=3, game=100),
)


@pytest.fixture(scope="module")
def network(small_table, small_schema):
    return learn(small_table, small_schema, mode="seedless", epsilon=math.inf).network


def test_the_models_guess_is_its_most_likely_value(network, small_schema, small_codes):
    """By definition: try every value, ask the model for the whole record's probability."""
    records = small_codes[:60]
    expected = []
    for i, attribute in enumerate(small_schema.attributes):
        tried = []
        for code in range(attribute.size):
            changed = records.copy(order="F")
            changed[:, i] = code
            tried.append(network.log_probability(changed))
        expected.append(np.mean(np.argmax(tried, axis=0) == records[:, i]))
    assert model_accuracy(network, records) == pytest.approx(expected)


def test_noisy_models_are_averaged(network, small_codes):
    found = measure_models(lambda _at: network, small_codes[:50], models=3)
    assert found.models == 3
    assert found.mean == pytest.approx(model_accuracy(network, small_codes[:50]))
    assert all(low == high for low, high in found.spread)


def test_the_model_beats_the_commonest_value_where_attributes_depend(
    network, small_schema, small_codes
):
    guesses = measure_guesses(
        small_schema.attributes, small_codes[:1_000], small_codes[1_000:], Effort(trees=5)
    )
    home = guesses[2]
    assert home.guessing == 0.5
    assert home.marginals == pytest.approx(
        np.mean(small_codes[1_000:, 2] == np.bincount(small_codes[:1_000, 2]).argmax())
    )
    found = measure_models(lambda _at: network, small_codes[1_000:], models=1)
    assert found.mean[2] > home.marginals + 0.1
    better = found.improvement(guesses)[2]
    assert better == pytest.approx(1 - (1 - found.mean[2]) / (1 - home.marginals))


def test_pass_shares_count_the_seeds_that_share_what_was_kept(network, small_codes):
    """Golden: of a fixed ω, k' is how often the seed's kept values occur; any γ gives the same."""
    model = NetworkModel(network, (2,))
    kept = list(network.order[:3])
    groups = np.unique(small_codes[:, kept], axis=0, return_inverse=True, return_counts=True)
    of_seed = groups[2][groups[1].ravel()]
    arguments = {"ks": (1, 10, 50), "candidates": 4_000}
    own = pass_shares(model, small_codes, gamma=None, **arguments)
    hidden = pass_shares(model, small_codes, gamma=2.0, **arguments)
    assert own == hidden
    for share in own:
        assert share.passed == pytest.approx(np.mean(of_seed >= share.k), abs=0.05)
    assert own[0].passed == 1
    assert own[0].passed >= own[1].passed >= own[2].passed


def test_seeds_that_are_not_looked_at_do_not_count(network, small_codes):
    model = NetworkModel(network, (1, 2, 3))
    arguments = {"ks": (20,), "candidates": 2_000, "gamma": None}
    (every,) = pass_shares(model, small_codes, **arguments)
    (some,) = pass_shares(model, small_codes, checked=500, **arguments)
    assert some.passed < every.passed
    (nobody,) = pass_shares(model, small_codes, checked=19, **arguments)
    assert nobody.passed == 0


def test_both_halves_of_a_run_are_timed(small_table, small_schema):
    found = measure_pace(small_table, small_schema, records=[10, 20], mode="seedless")
    assert [one.records for one in found] == [10, 20]
    assert all(one.learning > 0 and one.generation > 0 for one in found)


def test_a_test_by_scan_is_timed_too(small_table, small_schema, network):
    found = measure_pace(
        small_table,
        small_schema,
        records=[10],
        learn=lambda: NetworkModel(network, (2,)),
        mode="tested",
        k=5,
        max_plausible=100,
        max_check_plausible=500,
    )
    assert [one.records for one in found] == [10]
    assert found[0].generation > 0


def test_timed_runs_make_as_many_records_as_asked_for():
    assert sum(times(24, total=1_000_000)) >= 1_000_000
    assert times(1, total=5) == [5]


def test_every_row_has_options_that_can_be_planned(small_schema):
    for row in ("marginals", *OMEGAS, "default"):
        run = plan(small_schema, **options_of(row, "ours", small_schema, SMALL))
        assert run.noise.cost.epsilon <= 1
    for row in ("marginals", *OMEGAS):
        options = options_of(row, "authors", small_schema, SMALL)
        assert options["profile"] == "paper"
        plan(small_schema, records=10, **options)
    assert [omega_text(row, 11) for row in OMEGAS] == ["11", "10", "9", "9-11", "5-11"]


def test_what_the_paper_reports_has_a_value_for_every_column():
    numbers = paper_numbers()
    for name, width in (("table3", 6), ("table4", 2), ("table5", 2)):
        assert set(OMEGAS) | {"reals", "marginals"} <= set(numbers[name])
        assert {len(row) for row in numbers[name].values()} == {width}
    assert numbers["table5"]["m"] == [0.623, 0.589]
    assert numbers["table2"]["unique_share"] == pytest.approx(1_022_718 / 1_494_974, abs=5e-4)


def test_a_plain_table_has_the_same_codes_again(small_schema, small_codes):
    frame, plain = plain_table(small_schema, small_codes)
    codes, _ = read_codes(frame, plain)
    assert (codes == small_codes).all()


@pytest.fixture(scope="module")
def reproduced(small_table, small_schema, tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced") / "out"
    told = []
    reproduce(
        small_table,
        small_schema,
        out,
        target="home",
        setup=SMALL,
        watch=lambda *one: told.append(one),
    )
    return out, told


def test_a_reproduction_writes_tables_figures_and_a_report(reproduced):
    out, told = reproduced
    for name, rows in (("table3", 8 * 6), ("table4", 10 * 2), ("table5", 8 * 2)):
        written = list(csv.reader((out / f"{name}.csv").read_text().splitlines()))
        assert tuple(written[0]) == HEAD
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
    assert told[0][1] == 0
    assert told[-1][1] == told[-1][2]
    done = [one for _, one, _ in told]
    assert done == sorted(set(done))  # every cell takes it further
    assert len(done) == 1 + len(list((out / "cells").iterdir()))


def test_a_reproduction_goes_on_where_it_was(reproduced, small_table, small_schema, monkeypatch):
    out, _ = reproduced
    lost = out / "cells" / "release_m-1_ours_run_0.json"
    lost.unlink()
    measured = []
    kept = reproduction.Bench.measure

    def measure(bench, released):
        measured.append(len(released))
        return kept(bench, released)

    monkeypatch.setattr(reproduction.Bench, "measure", measure)
    monkeypatch.setattr(reproduction, "measure_guesses", None)  # a cell that is there already
    reproduce(small_table, small_schema, out, target="home", setup=SMALL)
    assert measured == [300]
    assert json.loads(lost.read_text())["cell"]["table5"]


def test_more_runs_can_follow(reproduced, small_table, small_schema, monkeypatch, tmp_path):
    """How many runs there are changes no cell: those that are there stay as they are."""
    out = tmp_path / "copy"
    shutil.copytree(reproduced[0], out)
    saved = {
        name: json.loads((out / "cells" / f"{name}_run_0.json").read_text())["cell"]
        for name in ("reals", "release_m_ours")
    }
    before = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    monkeypatch.setattr(reproduction.Bench, "release", lambda _bench, _options: None)
    monkeypatch.setattr(reproduction.Bench, "measure", lambda _bench, _: saved["release_m_ours"])
    monkeypatch.setattr(reproduction.Bench, "measure_reals", lambda _bench: saved["reals"])
    reproduce(small_table, small_schema, out, target="home", setup=replace(SMALL, runs=2))
    after = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert before.items() < after.items()
    assert len(after) == len(before) + 14
    assert "2 runs" in (out / "tables.md").read_text()


def test_a_folder_of_another_reproduction_is_refused(reproduced, small_table, small_schema):
    out, _ = reproduced
    with pytest.raises(OutputError, match="other settings"):
        reproduce(small_table, small_schema, out, target="pet", setup=SMALL)
    with pytest.raises(OutputError, match="other settings"):
        reproduce(small_table.reverse(), small_schema, out, target="home", setup=SMALL)
    with pytest.raises(OutputError, match="something else"):
        reproduce(small_table, small_schema, out / "cells", target="home", setup=SMALL)


def test_a_schema_of_other_columns_can_be_reproduced_on(small_schema, small_table, tmp_path):
    """Three attributes, a target of three classes: fewer ω, and no private classifiers."""
    names = ("trade", "boats", "pet")
    schema = Schema(tuple(a for a in small_schema.attributes if a.name in names), rows_max=10_000)
    out = tmp_path / "out"
    reproduce(small_table.select(names), schema, out, setup=SMALL, test=small_table.select(names))
    assert (out / "table4.csv").read_text().count("\n") == 1
    assert "ω = 1 to 3" in (out / "report.html").read_text()
