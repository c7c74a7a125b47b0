"""Given rows: a table with some cells filled, read in blocks; the other cells are to be drawn.

An empty cell is not filled, whatever the schema's texts for a missing value are; another text that
means missing fills its cell with a missing value. Columns may be absent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from deniable.answers.given_column import GivenColumn, given_column
from deniable.arrays import CODE, Codes, Counts, Mask
from deniable.data.batches import iter_batches
from deniable.data.cell_faults import count_affected
from deniable.data.codec import CellSource
from deniable.data.csv_reader import CsvFile
from deniable.data.dataframes import UNNAMED_TABLE, import_frame
from deniable.data.declared_columns import MAX_ITEMS_IN_MESSAGE, require_columns
from deniable.data.polars_errors import polars_errors_as
from deniable.data.table_io import infer_format
from deniable.errors import DataError
from deniable.files import require_regular_file
from deniable.schema.schema import Schema

_UNREADABLE = "The message is not shown, as it may quote cells. Check that the table is complete."


@dataclass(frozen=True, eq=False)
class GivenBlock:
    """Some given rows.

    Attributes:
        first_row: The index of the first row.
        codes: The code of each filled cell: one column per modelled attribute.
        positions: The position of each filled cell of a numeric attribute on its grid.
        filled: Whether each cell is filled, by modelled attribute. Roundness never is.
        copied: Cells that are copied without a code, by column; null where not filled.
    """

    first_row: int
    codes: Codes = field(repr=False)
    positions: Counts = field(repr=False)
    filled: Mask = field(repr=False)
    copied: pl.DataFrame = field(repr=False)

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class GivenRows:
    """A table of given rows that fits its schema.

    Attributes:
        schema: The schema of complete records.
        columns: The columns of the table.
        number: The number of rows.
        source: Where cells come from, for messages.
    """

    schema: Schema
    columns: tuple[GivenColumn, ...] = field(repr=False)
    number: int
    source: CellSource = field(repr=False)
    _frame: pl.LazyFrame = field(repr=False)

    @classmethod
    def read(cls, source: object, schema: Schema) -> "GivenRows":
        """Open a table and check all its cells.

        Args:
            source: The path of a .csv, .csv.gz or .parquet file, or a data frame.
            schema: The schema; the table has some of its columns, in any order.

        Raises:
            DataError: The table cannot be read, has no rows, or has a column or a cell that the
                schema does not describe. The message shows no cell.
        """
        frame, cells = _open(source, schema)
        dtypes = frame.collect_schema()
        columns = tuple(
            given_column(column, dtypes, cells.origin, schema)
            for column in schema.columns
            if column.name in dtypes.names()
        )
        with polars_errors_as(DataError, f"{cells.table_name} cannot be read", fix=_UNREADABLE):
            number = _require_cells(frame, columns, cells)
        return cls(schema, columns, number, cells, frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the schema's order."""
        return tuple(column.name for column in self.columns)

    def row_text(self, row: int) -> str:
        """Describe the place of a row, for messages."""
        [number] = self.source.record_numbers([row])
        return f"{self.source.record_noun} {number:,} of {self.source.table_name}"

    def blocks(self, rows: int) -> Iterator[GivenBlock]:
        """Yield the rows in blocks of ``rows``; only the last may be smaller."""
        expressions = [each for column in self.columns for each in column.expressions()]
        held: list[pl.DataFrame] = []
        first = 0
        with polars_errors_as(
            DataError, f"{self.source.table_name} cannot be read", fix=_UNREADABLE
        ):
            for batch in iter_batches(self._frame, expressions):
                held.append(batch)
                if sum(map(len, held)) < rows:
                    continue
                joined = pl.concat(held)
                whole = len(joined) - len(joined) % rows
                for start in range(0, whole, rows):
                    yield self._block(joined.slice(start, rows), first + start)
                first += whole
                held = [joined.slice(whole)]
        rest = pl.concat(held) if held else pl.DataFrame()
        if len(rest):
            yield self._block(rest, first)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema.names)}

    def _block(self, frame: pl.DataFrame, first_row: int) -> GivenBlock:
        shape = len(frame), len(self.schema.attributes)
        codes = np.zeros(shape, dtype=CODE, order="F")
        positions = np.zeros(shape, dtype=np.int64, order="F")
        filled = np.zeros(shape, dtype=bool, order="F")
        copied = []
        for column in self.columns:
            if column.is_copied:
                copied.append(frame[column.copied_name].alias(column.name))
            if column.name not in self._indices:
                continue
            i = self._indices[column.name]
            filled[:, i] = frame[column.filled_name].to_numpy()
            codes[:, i] = np.where(filled[:, i], frame[column.code_name].to_numpy(), 0)
            if column.has_positions:
                positions[:, i] = frame[column.position_name].to_numpy()
        return GivenBlock(first_row, codes, positions, filled, pl.DataFrame(copied))


def _open(source: object, schema: Schema) -> tuple[pl.LazyFrame, CellSource]:
    """Open a table as a lazy frame, with some of the schema's columns."""
    if not isinstance(source, str | Path):
        names = _frame_names(source)
        known = [column for column in schema.columns if column.name in names]
        frame, _ = import_frame(source, known or schema.columns)
        return frame, CellSource(table_name=UNNAMED_TABLE)
    path = Path(source)
    if infer_format(path, DataError) == ".parquet":
        require_regular_file(path, DataError)
        with polars_errors_as(
            DataError, f"{path.name} cannot be read as Parquet", OSError, fix=_UNREADABLE
        ):
            frame = pl.scan_parquet(path, glob=False)
            _require_known(frame.collect_schema().names(), schema, path.name)
        return frame, CellSource(table_name=path.name)
    file = CsvFile.open_described(path, schema)
    _require_known(file.names, schema, path.name)
    file.require_full_records()
    source_of_cells = CellSource(
        table_name=path.name, origin="csv", record_noun="line", record_numbers=file.line_numbers
    )
    return file.scan({}), source_of_cells


def _frame_names(source: object) -> list[str]:
    if isinstance(source, pl.LazyFrame):
        return source.collect_schema().names()
    held = "column_names" if hasattr(source, "column_names") else "columns"
    return [str(name) for name in getattr(source, held, ())]


def _require_known(names: Sequence[str], schema: Schema, table_name: str) -> None:
    known = [column for column in schema.columns if column.name in set(names)]
    require_columns(known or schema.columns, names, table_name=table_name)


def _require_cells(frame: pl.LazyFrame, columns: Sequence[GivenColumn], source: CellSource) -> int:
    """Count the rows; raise one error for all cells that do not fit."""
    faults = [fault for column in columns for fault in column.faults()]
    messages = [message for message, _ in faults]
    expressions = [condition.alias(f"{j}") for j, (_, condition) in enumerate(faults)]
    counts, firsts, rows = [0] * len(messages), [-1] * len(messages), 0
    for batch in iter_batches(frame, [*expressions, pl.lit(value=True).alias("row")]):
        for j in range(len(messages)):
            found = batch.to_series(j).arg_true()
            if len(found):
                firsts[j] = rows + found[0] if firsts[j] < 0 else firsts[j]
                counts[j] += len(found)
        rows += len(batch)
    wrong = [j for j, count in enumerate(counts) if count]
    if wrong:
        lines = []
        numbers = source.record_numbers([firsts[j] for j in wrong])
        for j, number in list(zip(wrong, numbers, strict=True))[:MAX_ITEMS_IN_MESSAGE]:
            noun = source.record_noun
            affected = count_affected(counts[j], noun)
            place = f"{noun} {number:,} of {source.table_name}"
            lines.append(messages[j].format(place=place, affected=affected))
        raise DataError("\n  ".join(lines))
    if not rows:
        raise DataError(f"{source.table_name} has no rows; give at least one")
    return rows
