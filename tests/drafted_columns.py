"""Draft a single column from its cells, and look at the result."""

import numpy as np
import polars as pl

from deniable.drafting.column_profile import open_table
from deniable.drafting.description import ColumnDraft
from deniable.drafting.toml_text import write_attribute
from deniable.drafting.type_inference import guess_column
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema


def draft_column(cells, name="column", dtype=None) -> ColumnDraft:
    """Draft one column of a table."""
    frame = pl.DataFrame({name: pl.Series(cells, dtype=dtype)})
    return guess_column(open_table(frame).read()[0]).draft


def fields_of(draft: ColumnDraft) -> dict:
    """The drafted TOML keys."""
    return {field.key: field.value for field in draft.fields}


def notes_of(draft: ColumnDraft) -> str:
    """All notes in one text."""
    return " ".join(draft.notes)


def parse_column(draft: ColumnDraft) -> Attribute:
    """The attribute that the drafted TOML describes."""
    [attribute] = Schema.parse(f"format = 1\n{write_attribute(draft)}").attributes
    return attribute


def single_position_bins(attribute: Attribute) -> set[int]:
    """Positions that are a bin of their own."""
    return {attribute.positions(code)[0] for code in np.flatnonzero(attribute.widths == 1)}
