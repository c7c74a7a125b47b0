"""Invalid cells: summarized by kind, and described without showing a cell."""

import polars as pl
import pytest

from deniable.answers.given_rows import GivenRows
from deniable.data.cell_faults import FAULT_KINDS, CellFault, find_faults
from deniable.data.table_io import read_table
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

AGE = Attribute(name="age", kind="integer", values=range(100))
WORD = Attribute(name="word", kind="categorical", values=("oak", "elm"), missing=("NA",))


def test_faults_are_summarized_by_kind_with_their_first_row():
    faults = pl.Series([None, 2, 0, 2, None, 2], dtype=pl.UInt8)
    found = find_faults(AGE, faults)
    assert [(fault.kind, fault.row, fault.count) for fault in found] == [
        ("missing", 2, 1),
        ("outside", 1, 3),
    ]


@pytest.mark.parametrize(
    ("attribute", "kind", "words"),
    [
        (AGE, "missing", "does not declare missing"),
        (AGE, "malformed", "not a whole number"),
        (AGE, "outside", "outside 0..99"),
        (WORD, "missing", 'only "NA" means missing'),
        (WORD, "outside", "none of the 2 in the schema"),
    ],
)
def test_a_fault_is_described_with_its_place_its_number_and_a_fix(attribute, kind, words):
    assert kind in FAULT_KINDS
    fault = CellFault(attribute=attribute, kind=kind, row=4, count=3)
    text = fault.describe(where="line 6 of t.csv", record_noun="line")
    assert text.startswith(f'column "{attribute.name}", line 6 of t.csv: ')
    assert words in text
    assert "3 lines have this fault" in text
    assert 'outside = "drop"' in text


@pytest.mark.parametrize(
    ("read", "fault"),
    [*((read_table, each) for each in ("99,a", "old,a", "1,", "1")), (GivenRows.read, "old,a")],
)
def test_an_error_is_the_same_for_101_faulty_lines_and_for_5000(tmp_path, read, fault):
    """An error ends in logs: it must not tell how many rows there are. A hundred are counted."""
    schema = Schema(
        (Attribute(name="n", kind="integer", values=range(5)), Identifier(name="who")),
        unit="who",
        max_rows_per_unit=2,
    )

    def message(number):
        table = tmp_path / "t.csv"
        table.write_text("n,who\n1,x\n" + number * f"{fault}\n", encoding="utf-8")
        with pytest.raises(DataError) as caught:
            read(table, schema)
        return str(caught.value)

    assert "100 lines have" in message(100) or "100 records do" in message(100)
    assert "More than 100 " in message(101)
    assert message(101) == message(5_000)
