"""Column of the unit: which cells name a unit, and which are missing."""

import polars as pl

from deniable.data.typed_texts import TEXT_TYPES, decimal_texts, has_text
from deniable.errors import DataError
from deniable.schema.grid import FLOAT_INTEGER_LIMIT
from deniable.schema.unmodelled_columns import Identifier


def owner_expression(owner: Identifier, schema: pl.Schema, *, table_name: str) -> pl.Expr:
    """Select the owner of each record; null if the cell is missing or not a finite number.

    Raises:
        DataError: The table has no such column, or it is of a type without equality.

    Privacy:
        Neighbours: add or remove one row of the table, whatever type that gives to the column.
        Covers: whether two other rows have the same owner, or none, follows from their cells.
        Assumes: the cells are those of the table: a conversion of integers to floats has kept
            each number. ``require_exact_owners`` refuses floats that may have been rounded.
    """
    if owner.name not in schema:
        raise DataError(
            f'{table_name} has no column "{owner.name}", the unit that records belong to. '
            "Correct the header, or the unit in the schema."
        )
    cell, dtype = pl.col(owner.name), schema[owner.name]
    if dtype.is_nested() or dtype == pl.Object:
        raise DataError(
            f'column "{owner.name}" is the unit that records belong to, but has type {dtype}. '
            "Convert it to text or whole numbers."
        )
    named = cell
    if isinstance(dtype, TEXT_TYPES):
        named = cell.cast(pl.String)
    elif dtype.is_decimal():
        named = decimal_texts(cell, dtype)
    elif dtype.is_float():
        named = pl.when(cell.is_finite()).then(cell)
    missing = has_text(cell, dtype, ["", *owner.missing])
    return pl.when(~missing).then(named).alias(owner.name)


def require_exact_owners(owners: pl.Series) -> None:
    """Raise an error if a unit is a float so large that it may have been another whole number.

    pandas converts a column of integers to floats if a single cell is missing. Different units
    above 2^53 may then become equal.
    """
    if owners.dtype.is_float() and (owners.abs() >= FLOAT_INTEGER_LIMIT).any():
        raise DataError(
            f'column "{owners.name}" is the unit that records belong to, but holds floats of 2^53 '
            "or more, which do not tell all whole numbers apart. Read the column as text, or as "
            'whole numbers (in pandas: dtype = "Int64").'
        )
