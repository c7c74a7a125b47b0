"""Releases of the paper's tables: their options, sizes and training rows."""

import pytest

from deniable.data.table_io import read_codes
from deniable.pipeline.api import plan
from deniable.reproduction.experiments import (
    OMEGA_ROWS,
    decode_modelled_columns,
    omega_text,
    release_options,
    timed_run_sizes,
)
from reproductions import SMALL_SETUP

pytestmark = pytest.mark.slow


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
