"""Days and moments: each way to write them is drafted, read, and written so again."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.schema import Schema
from deniable.data.tables import read_codes, write_table
from deniable.drafting.cells import DATES, DATETIMES
from deniable.drafting.schemas import draft_schema
from deniable.randomness import Keyed

FIRST = dt.datetime(2015, 1, 1)


def written(form: str, rows: int) -> list[str]:
    """Moments of six years in a format, days beyond the twelfth among them."""
    seconds = np.random.default_rng(8).integers(0, 6 * 365 * 86_400, rows)
    return [(FIRST + dt.timedelta(seconds=int(x))).strftime(form) for x in seconds]


@pytest.mark.parametrize("options", [{}, {"draft_epsilon": 1.0}], ids=["plain", "private"])
@pytest.mark.parametrize("form", [*DATES, *DATETIMES])
def test_every_format_is_drafted_read_and_written_again(form, options, tmp_path):
    rows = 2_000
    path, copy = tmp_path / "moments.csv", tmp_path / "copy.csv"
    pl.DataFrame({"when": written(form, rows)}).write_csv(path)

    text = draft_schema(path, **options).text
    schema = Schema.parse(text)
    codes, _ = read_codes(path, schema)
    write_table(copy, [Codec(schema.attributes).decode(codes, Keyed(3).at("values"))], schema)

    [attribute] = schema.attributes
    assert attribute.kind == ("date" if form in DATES else "datetime")
    assert attribute.unit.format == form
    again, _ = read_codes(copy, schema)
    assert np.array_equal(again, codes)
    assert len(np.unique(codes)) > 20
    assert ("read off the data" in text) == (not options)


@pytest.mark.parametrize("clock", ["", " 10:15", " 10:15:30"])
@pytest.mark.parametrize("mark", "/.-")
def test_a_moment_that_fits_two_formats_is_left_to_decide(mark, clock):
    days = [f"{a:02d}{mark}{b:02d}{mark}2020{clock}" for a in range(1, 13) for b in range(1, 13)]
    notes = " ".join(draft_schema(pl.DataFrame({"when": days})).notes)
    assert f'"%d{mark}%m{mark}%Y' in notes
    assert f'"%m{mark}%d{mark}%Y' in notes
