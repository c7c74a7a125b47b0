"""Date columns: every format is drafted, read, and written back unchanged."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.table_io import read_codes, write_table
from deniable.drafting.cell_patterns import DATE_FORMATS, DATETIME_FORMATS
from deniable.drafting.draft import draft_schema
from deniable.randomness import Keyed
from deniable.schema.schema import Schema
from drafted_columns import draft_column, fields_of, notes_of

pytestmark = pytest.mark.slow

FIRST = dt.datetime(2015, 1, 1)


def formatted(form: str, rows: int) -> list[str]:
    """Random datetimes of six years in a format, some later than the 12th of the month."""
    seconds = np.random.default_rng(8).integers(0, 6 * 365 * 86_400, rows)
    return [(FIRST + dt.timedelta(seconds=int(x))).strftime(form) for x in seconds]


@pytest.mark.parametrize("options", [{}, {"draft_epsilon": 1.0}], ids=["plain", "private"])
@pytest.mark.parametrize("form", [*DATE_FORMATS, *DATETIME_FORMATS])
def test_every_format_is_drafted_read_and_written_again(form, options, tmp_path):
    rows = 2_000
    path, copy = tmp_path / "moments.csv", tmp_path / "copy.csv"
    pl.DataFrame({"when": formatted(form, rows)}).write_csv(path)

    text = draft_schema(path, **options).text
    schema = Schema.parse(text)
    codes, _ = read_codes(path, schema)
    write_table(
        copy, [Codec(Schema(schema.attributes)).decode(codes, Keyed(3).at("values"))], schema
    )

    [attribute] = schema.attributes
    assert attribute.kind == ("date" if form in DATE_FORMATS else "datetime")
    assert attribute.grid.format == form
    again, _ = read_codes(copy, schema)
    assert np.array_equal(again, codes)
    assert len(np.unique(codes)) > 20
    assert ("read from the data" in text) == (not options)


@pytest.mark.parametrize("clock", ["", " 10:15", " 10:15:30"])
@pytest.mark.parametrize("mark", "/.-")
def test_a_date_that_fits_two_formats_gets_a_note(mark, clock):
    days = [f"{a:02d}{mark}{b:02d}{mark}2020{clock}" for a in range(1, 13) for b in range(1, 13)]
    notes = " ".join(draft_schema(pl.DataFrame({"when": days})).notes)
    assert f'"%d{mark}%m{mark}%Y' in notes
    assert f'"%m{mark}%d{mark}%Y' in notes


def test_an_ambiguous_format_is_noted_and_a_clear_one_is_not():
    found = draft_column(["01/02/2020", "03/04/2021"] * 30)
    assert fields_of(found)["format"] == "%d/%m/%Y"
    assert "%m/%d/%Y" in notes_of(found)
    assert "two formats" not in notes_of(draft_column(["13/02/2020", "03/04/2021"] * 30))


def test_dates_are_rounded_to_years_or_months():
    found = fields_of(draft_column(["2001-05-03", "2019-07-04"] * 30))
    assert (found["min"], found["max"]) == (dt.date(2001, 1, 1), dt.date(2019, 12, 31))
    found = fields_of(draft_column(["2019-02-03", "2019-12-04"] * 30))
    assert (found["min"], found["max"]) == (dt.date(2019, 2, 1), dt.date(2019, 12, 31))
