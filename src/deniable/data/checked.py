"""Coded cells, batch by batch: which rows stay, whose they are, and what is wrong with the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.data.beside import Identifier
from deniable.data.cells import FAULT_KINDS, NO_CODE, Column, Fault, find_faults
from deniable.errors import InvariantError

# No column of a table is called this.
_ROW = "\0row"


@dataclass(frozen=True)
class Batch:
    """Some rows of a table, coded.

    Attributes:
        codes: A column each of those asked for, constants last; ``NO_CODE`` where there is none.
        owners: Whose each row is, null where nobody knows; None where nobody asked.
        keep: Which rows no column asks to drop; None where that is all of them.
    """

    codes: Codes = field(repr=False)
    owners: pl.Series | None = field(repr=False)
    keep: Mask | None = field(repr=False)

    @classmethod
    def of(
        cls, coded: pl.DataFrame, columns: Sequence[Column], owner: Identifier | None
    ) -> "Batch":
        """Return what polars made of some rows: the columns' codes, then the owners."""
        codes = coded[:, : len(columns)].to_numpy(order="fortran")
        owners = coded.to_series(len(columns)) if owner is not None else None
        keep: Mask | None = None
        for j, column in enumerate(columns):
            if column.attribute.outside == "drop" and (out := codes[:, j] == NO_CODE).any():
                keep = ~out if keep is None else keep & ~out
        if owner is not None and owners is not None and owner.outside == "drop":
            known = owners.is_not_null().to_numpy()
            keep = known if keep is None else keep & known
        return cls(codes, owners, keep)

    @property
    def is_faulty(self) -> bool:
        """Whether a row that is to be kept has a cell without a code."""
        no_code = self.codes == NO_CODE
        return bool(no_code.any()) and bool(no_code[self.rows].any())

    @property
    def rows(self) -> Indices:
        """The rows to keep."""
        return np.arange(len(self.codes)) if self.keep is None else np.flatnonzero(self.keep)

    def records(self, columns: int) -> Codes:
        """Return the first columns of the rows to keep."""
        codes = self.codes[:, :columns]
        return codes if self.keep is None else codes[self.keep]


@dataclass
class Owners:
    """Whose the rows of a table are, as far as it was read.

    Attributes:
        unit: The column of codes that says it, where it is an attribute's.
        rows: How many rows were read, dropped ones included.
        first: The first that is to be kept and nobody knows whose it is.
        unknown: How many such rows there are.
    """

    unit: int | None
    rows: int = 0
    first: int | None = None
    unknown: int = 0
    _found: list[pl.Series] = field(default_factory=list, repr=False)

    def add(self, batch: Batch) -> None:
        """Take in the next rows."""
        owners = batch.owners
        if owners is None and self.unit is not None:
            owners = pl.Series(batch.codes[:, self.unit])
        if owners is not None:
            kept = owners if batch.keep is None else owners.filter(pl.Series(batch.keep))
            if missing := kept.null_count():
                if self.first is None:
                    null = kept.is_null().arg_true()
                    self.first = self.rows + int(batch.rows[null[0]])
                self.unknown += missing
            self._found.append(kept)
        self.rows += len(batch.codes)

    def labels(self) -> Counts:
        """Return equal numbers for rows of one unit.

        Of an attribute the codes serve. Two units in one bin then count as one, which only bounds
        their rows more tightly.
        """
        whole = pl.concat(self._found) if self._found else pl.Series([], dtype=pl.Int64)
        self._found.clear()
        if self.unit is None:
            whole = whole.rank("dense")
        return whole.cast(pl.Int64).to_numpy().copy()


def in_turn(frame: pl.LazyFrame, asked: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
    """Yield what is asked of a table, some rows at a time, in the order of its rows.

    polars promises that order and does not always keep it (seen with 2.1, some batches in a
    hundred of tiny tables on a busy machine): each batch brings the number of its first row, and
    waits for its turn.
    """
    waiting: dict[int, pl.DataFrame] = {}
    done = 0
    numbered = frame.with_row_index(_ROW).select(pl.col(_ROW), *asked)
    for some in numbered.collect_batches(engine="streaming"):
        if not some.height:
            continue
        first, last = some.item(0, 0), some.item(-1, 0)
        if last - first + 1 != some.height:
            raise InvariantError("polars gave rows that do not follow each other as one batch")
        waiting[first] = some.drop(_ROW)
        while done in waiting:
            turn = waiting.pop(done)
            done += turn.height
            yield turn
    if waiting:
        raise InvariantError("polars left out some rows of the table")


def find_all_faults(
    frame: pl.LazyFrame,
    columns: Sequence[Column],
    asked: Sequence[pl.Expr],
    owner: Identifier | None,
) -> list[Fault]:
    """Return every fault of some columns, in rows that are to be kept: a second pass over them.

    Args:
        frame: The table.
        columns: The columns that were coded.
        asked: Their codes; then, where there is an ``owner``, whose each row is.
        owner: The column that says whose row it is.
    """
    coded = [cell.alias(f"{at}") for at, cell in enumerate(asked)]
    kinds = [column.fault().alias(f"fault {j}") for j, column in enumerate(columns)]
    found: dict[tuple[int, str], Fault] = {}
    start = 0
    for both in in_turn(frame, [*coded, *kinds]):
        rows = Batch.of(both, columns, owner).rows
        for j, column in enumerate(columns):
            for fault in find_faults(column.attribute, both[f"fault {j}"].gather(rows)):
                here = replace(fault, row=start + int(rows[fault.row]))
                first = found.setdefault((j, fault.kind), replace(here, count=0))
                found[j, fault.kind] = replace(first, count=first.count + fault.count)
        start += len(both)
    ordered = ((j, kind) for j in range(len(columns)) for kind in FAULT_KINDS)
    return [found[place] for place in ordered if place in found]
