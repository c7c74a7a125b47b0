"""Invalid cells: their kind, number and first row, and messages that describe how to fix them.

No message shows a cell, and faults are counted up to a bound: an error ends in logs, and the number
of lines that have a fault may be nearly all of them.
"""

from dataclasses import dataclass
from typing import Literal, cast

import polars as pl

from deniable.schema.attribute import Attribute, format_value, summarize_values
from deniable.schema.grid import Grid

FaultKind = Literal["missing", "malformed", "outside"]
FAULT_KINDS: tuple[FaultKind, ...] = ("missing", "malformed", "outside")

# Faulty lines are counted up to here in messages.
_MAX_COUNTED = 100

_VALUE_HIDDEN = "(not shown: input records are confidential)"

_INTEGER_GRID = Grid(kind="integer")


@dataclass(frozen=True, kw_only=True)
class CellFault:
    """Invalid cells of one column and one kind of fault: their number and the first row."""

    attribute: Attribute
    kind: FaultKind
    row: int
    count: int

    def describe(self, *, where: str, record_noun: str) -> str:
        """Describe the fault, its location, its frequency and the fix, without showing a cell."""
        fault, fix = _FAULT_DESCRIPTIONS[self.kind](self.attribute)
        affected = count_affected(self.count, record_noun)
        return f'column "{self.attribute.name}", {where}: {fault}. {affected} this fault. {fix}'


def count_affected(number: int, noun: str, *, one: str = "has", several: str = "have") -> str:
    """Say how many have a fault, as the beginning of a sentence: "5 lines have"."""
    if number == 1:
        return f"1 {noun} {one}"
    counted = number if number <= _MAX_COUNTED else f"More than {_MAX_COUNTED}"
    return f"{counted} {noun}s {several}"


def find_faults(attribute: Attribute, faults: pl.Series) -> list[CellFault]:
    """Summarize the faults of one column, as computed by ``ColumnEncoder.fault``, by kind."""
    summaries = []
    for index, kind in enumerate(FAULT_KINDS):
        rows = (faults == index).fill_null(value=False).arg_true()
        if len(rows):
            fault = CellFault(attribute=attribute, kind=kind, row=rows[0], count=len(rows))
            summaries.append(fault)
    return summaries


def _describe_missing(attribute: Attribute) -> tuple[str, str]:
    if attribute.missing:
        fault = f"the cell is empty, but only {summarize_values(attribute.missing)} means missing"
        return fault, 'Add "" to the missing of this column, or set outside = "drop".'
    fix = 'Declare missing = [""] for this column, or set outside = "drop".'
    return "the cell is missing, but the schema does not declare missing", fix


def _describe_malformed(attribute: Attribute) -> tuple[str, str]:
    missing = f" ({summarize_values(attribute.missing)} means missing)" if attribute.missing else ""
    grid = attribute.grid or _INTEGER_GRID
    expected = {
        "integer": "a whole number",
        "real": "a number",
        "date": f'a date of the form "{grid.format}"',
        "datetime": f'a time of the form "{grid.format}"',
    }[grid.kind]
    fault = f"the value is not {expected}{missing} {_VALUE_HIDDEN}"
    return fault, 'Correct it, add it to missing if it means missing, or set outside = "drop".'


def _describe_outside(attribute: Attribute) -> tuple[str, str]:
    if attribute.grid is not None:
        grid, values = attribute.grid, cast("range", attribute.values)
        low, high = grid.format_position(values[0]), grid.format_position(values[-1])
        fix = (
            "Widen min or max if the data dictionary allows the value, or set "
            'outside = "drop" or "clip".'
        )
        return f"the value is outside {low}..{high} {_VALUE_HIDDEN}", fix
    count = len(attribute.values)
    if count == 1:
        fault = f"the value is not {format_value(attribute.values[0])} {_VALUE_HIDDEN}"
        return fault, 'Correct it or the schema, or set outside = "drop".'
    fault = f"the value is none of the {count:,} in the schema {_VALUE_HIDDEN}"
    fix = (
        "If the data dictionary has it, add it to values, or to missing if it means missing. "
        'Otherwise correct it, or set outside = "drop".'
    )
    return fault, fix


_FAULT_DESCRIPTIONS = {
    "missing": _describe_missing,
    "malformed": _describe_malformed,
    "outside": _describe_outside,
}
