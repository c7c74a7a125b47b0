"""Invalid cells: summarized by kind, and described without showing a cell."""

import polars as pl
import pytest

from deniable.data.cell_faults import FAULT_KINDS, CellFault, find_faults
from deniable.schema.attribute import Attribute

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
