"""The plan of a run, printed."""

import pytest

from deniable.cli.plan_tables import show_plan
from deniable.cli.terminal import escape
from deniable.config import Config
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.schema.schema import Schema
from worlds import plain_attribute


def plan_of(m, **options):
    return plan_of_columns([f"x{i}" for i in range(m)], **options)


def plan_of_columns(names, **options):
    schema = Schema(tuple(plain_attribute(name, 3) for name in names), rows_max=1_000)
    config = Config.assemble(options)
    return report_plan(plan_run(schema, config), schema, config)


# Names that a terminal, or the library that draws tables, would take for something else.
@pytest.mark.parametrize(
    "name",
    ["wage [/h]", "speed [m/s]", "[bold]", ":warning:", "a\\[b]", "x\x1b[2J", "n\nPASS", "ε\u202e"],
)
def test_names_of_columns_are_printed_literally(capsys, name):
    """A plan died of ``wage [/h]`` and showed ``speed [m/s]`` as ``speed``."""
    show_plan(plan_of_columns([name, "y"]), show_all=True)
    assert f"values of {escape(name)} " in capsys.readouterr().out


def test_a_long_name_is_neither_cut_nor_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    show_plan(plan_of_columns(["n" * 150, "y"]), show_all=False)
    assert capsys.readouterr().out.count("n") >= 150


def test_one_way_tables_of_many_attributes_are_one_row(capsys):
    show_plan(plan_of(20), show_all=False)
    listed = capsys.readouterr().out
    assert "values of x19" in listed
    assert "tables of values" not in listed
    show_plan(plan_of(21), show_all=False)
    combined = capsys.readouterr().out
    assert "21 tables of values" in combined
    assert "values of x" not in combined


def test_the_forecast_is_printed_in_words_with_its_warning(capsys):
    show_plan(plan_of(3, rows_max=50_000), show_all=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Forecast for 50,000 rows, a guess (rows_max)" in printed
    assert "about as good as a random sample of" in printed
    assert "WARNING" not in printed
    show_plan(plan_of(3, rows_max=2), show_all=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "no dependence stands out from the noise, however strong it is" in printed
    assert "WARNING: Most of what this run learns will be noise" in printed
    show_plan(plan_of(3, estimator="clip"), show_all=False)
    assert "Forecast" not in capsys.readouterr().out
