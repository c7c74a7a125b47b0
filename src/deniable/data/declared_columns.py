"""Compare the columns of a table with those that a schema declares."""

import difflib
import re
from collections.abc import Sequence

from deniable.errors import DataError
from deniable.schema.attribute import format_value, summarize_values
from deniable.schema.unmodelled_columns import Computed, Identifier, SchemaColumn

# Columns or faults listed in one error message.
MAX_ITEMS_IN_MESSAGE = 20
# pandas stores the index of a frame as a column of a Parquet file if rows were left out or sorted.
PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def require_columns(
    columns: Sequence[SchemaColumn], names: Sequence[str], *, table_name: str
) -> None:
    """Raise an error unless a table has the columns of the schema, in any order.

    Computed columns and identifiers that are not released may be absent. A stored index of pandas
    needs no description.
    """
    declared = [column.name for column in columns]
    if not set(declared) & set(names):
        # The first line of a file without a header is a record, so its cells are not shown.
        raise DataError(
            f"{table_name} has none of the schema's {len(declared)} columns. Is its header line "
            "missing, are its cells separated by something other than commas, or is this the "
            "schema of another table?"
        )
    required = [column.name for column in columns if not _may_be_absent(column)]
    undeclared = [name for name in names if name not in set(declared)]
    unknown = [name for name in undeclared if not PANDAS_INDEX.fullmatch(name)]
    if absent := [name for name in required if name not in set(names)]:
        listed = summarize_values(absent, limit=MAX_ITEMS_IN_MESSAGE)
        others = summarize_values(unknown, limit=MAX_ITEMS_IN_MESSAGE)
        known = f" It has {others}, which the schema does not describe." if unknown else ""
        raise DataError(
            f"{table_name} has no column {listed}.{known}{_suggest_names(unknown, absent)} Correct "
            "the header, or remove the attribute from the schema."
        )
    if unknown:
        listed = summarize_values(unknown, limit=MAX_ITEMS_IN_MESSAGE)
        raise DataError(
            f"the schema does not describe column {listed} of {table_name}."
            f"{_suggest_names(unknown, declared)} Add an [[attribute]] for it, or remove the "
            "column from the table."
        )


def _suggest_names(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Name the known column that is nearest to each unknown one, for the first few."""
    folded = {name.casefold().strip(): name for name in known}
    hints = []
    for name in unknown[:MAX_ITEMS_IN_MESSAGE]:
        near = difflib.get_close_matches(name.casefold().strip(), list(folded), n=1)
        hints += [f"{format_value(name)} is like {format_value(folded[each])}" for each in near]
    return f" ({', '.join(hints)}: renamed?)" if hints else ""


def _may_be_absent(column: SchemaColumn) -> bool:
    is_omitted = isinstance(column, Identifier) and column.release == "omit"
    return is_omitted or isinstance(column, Computed)
