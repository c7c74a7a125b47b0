"""Tables larger than memory: every mode gives to the bit what it gives of a table in memory."""

import gc
import time
from pathlib import Path

import polars as pl
import pytest

import deniable
from deniable.data import spooled_codes
from deniable.data.spooled_codes import SpooledCodes
from deniable.randomness import Keyed
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from perturbation_model import PerturbationModel

pytestmark = pytest.mark.slow

MODES: dict[str, dict] = {
    "one-shot": {"k": 20, "omega": "3", "key": 5},
    "seedless": {"key": 5},
    "tested": {"k": 20, "omega": "3"},
    "randomized": {"k": 400, "omega": "3", "delta": 1e-6, "epsilon": 4.0},
}
NUMBERS = {"randomized": 5}


@pytest.fixture
def files(monkeypatch):
    """Hold no more than 200 rows of five codes in memory; note every file that is made."""
    made = []
    of = SpooledCodes.of

    def noted(*where):
        made.append(where)
        return of(*where)

    monkeypatch.setattr(spooled_codes, "MAX_BYTES_IN_MEMORY", 2_000)
    monkeypatch.setattr(spooled_codes.row_batches, "__defaults__", (300,))
    monkeypatch.setattr(SpooledCodes, "of", noted)
    return made


def open_files():
    gc.collect()
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def run(table, schema, mode, **more):
    release = deniable.synthesize(
        table,
        schema,
        records=NUMBERS.get(mode, 500),
        mode=mode,
        noise=Keyed(17),
        **{**MODES[mode], **more},
    )
    return release, release.frame()


def kept_files(mode):
    """Records of real seeds are kept: 500 of them do not fit in memory here, 5 do."""
    return int(mode == "tested")


def assert_same(one, other):
    assert one[0].certificate == other[0].certificate
    assert one[1].equals(other[1])
    assert one[0].internal == other[0].internal
    assert (one[0].artefact is None) == (other[0].artefact is None)
    if one[0].artefact is not None:
        assert one[0].artefact.files() == other[0].artefact.files()


@pytest.mark.parametrize("data_use", ["whole", "split"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_the_same_to_the_bit(small_table, small_schema, request, mode, data_use):
    options = {"estimator": "norm-sub"} if data_use == "split" else {}
    small = run(small_table, small_schema, mode, data_use=data_use, **options)
    made = request.getfixturevalue("files")
    large = run(small_table, small_schema, mode, data_use=data_use, **options)
    of_rows = 1 if data_use == "whole" else 3 if mode == "seedless" else 4
    assert len(made) == of_rows + kept_files(mode)
    assert_same(small, large)


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        ("one-shot", {"estimator": "norm-sub"}),
        ("one-shot", {"omega": "3"}),
        ("one-shot", {"workers": 1}),
        ("seedless", {"profile": "paper", "epsilon": 3.0, "omega": None, "key": 5}),
        ("tested", {"omega": "2-4"}),
        ("tested", {"omega": "2-4", "omega_known": False}),
    ],
)
def test_every_way_to_learn_and_test_is_the_same_to_the_bit(
    small_table, small_schema, request, mode, more
):
    small = run(small_table, small_schema, mode, **more)
    made = request.getfixturevalue("files")
    large = run(small_table, small_schema, mode, **more)
    assert made
    assert_same(small, large)


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
def test_units_are_the_same_to_the_bit(small_table, small_schema, request, mode):
    columns = (Identifier(name="person"), *small_schema.attributes)
    schema = Schema(columns, rows_max=10_000, unit="person", max_rows_per_unit=3)
    table = small_table.with_columns(person=pl.int_range(0, pl.len()) % 100)
    small = run(table, schema, mode, epsilon=float("inf"), k=2)
    made = request.getfixturevalue("files")
    large = run(table, schema, mode, epsilon=float("inf"), k=2)
    assert len(made) == 2 + kept_files(mode)  # all rows, and those that count
    assert small[0].internal["rows"] == 300
    assert_same(small, large)


def test_a_model_of_one_s_own_is_the_same_to_the_bit(small_table, small_schema, request):
    model = PerturbationModel.of(small_schema.attributes, stay=0.7, step=2.0)
    more = {"k": 8, "gamma": 4, "model": model}
    small = run(small_table, small_schema, "tested", **more)
    made = request.getfixturevalue("files")
    assert_same(small, run(small_table, small_schema, "tested", **more))
    assert made


def test_after_a_release_no_file_is_open(small_table, small_schema, files):
    before = open_files()
    for mode in MODES:
        run(small_table, small_schema, mode)
    # Threads may be at a block that nobody wants any more, those of the test before this one too.
    last = time.monotonic() + 60
    while not open_files() <= before and time.monotonic() < last:
        time.sleep(0.01)
    assert open_files() <= before
    assert len(files) == len(MODES) + sum(map(kept_files, MODES))
