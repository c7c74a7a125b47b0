"""Encode a table in batches; collect dropped rows, row owners, adjusted and invalid cells."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import Full, Queue
from threading import Event, Thread
from typing import Literal

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.data.cell_faults import FAULT_KINDS, CellFault, find_faults
from deniable.data.column_encoder import NO_CODE, ColumnEncoder, parse_cells, parse_exactly
from deniable.data.typed_texts import has_text
from deniable.errors import DataError, InvariantError
from deniable.schema.grid import Grid
from deniable.schema.unmodelled_columns import Identifier

# Name of the row number column; no column of a table has it.
_ROW_INDEX = "\0row"

# What became of a cell: the fallback, the nearest number of the step, the nearest bound, "other",
# or the first of several texts that mean missing.
Adjustment = Literal["replaced", "rounded", "clipped", "other", "missing"]
_ADJUSTMENTS: tuple[Adjustment, ...] = ("replaced", "rounded", "clipped", "other", "missing")
# Adjustments that move a cell: its value, decoded, is another one.
_MOVES: tuple[Adjustment, ...] = ("replaced", "clipped", "other")
# Share of moved cells from which a column is named.
MIN_MOVED_SHARE = 0.005
# Numbers closer than this to one of the step, in steps, are that one as a float.
_STEP_TOLERANCE = 1e-6

AdjustedCounts = dict[str, dict[Adjustment, int]]


def moved_shares(adjusted: AdjustedCounts, rows: int) -> dict[str, float]:
    """Compute the share of moved cells of each column: the schema has not their value.

    Rounding to the step does not move a cell, nor does another text that means missing.
    """
    moved = {name: sum(counts.get(m, 0) for m in _MOVES) for name, counts in adjusted.items()}
    return {name: number / max(1, rows) for name, number in moved.items() if number}


def moved_columns(adjusted: AdjustedCounts, rows: int) -> tuple[str, ...]:
    """Name the columns of which the schema moves at least ``MIN_MOVED_SHARE``, the worst first."""
    shares = moved_shares(adjusted, rows)
    named = [name for name, share in shares.items() if share >= MIN_MOVED_SHARE]
    return tuple(sorted(named, key=lambda name: -shares[name]))


# Batches that wait to be encoded, which bounds the memory; how often, in seconds, a full queue is
# tried again; and how long polars may take to stop.
_QUEUED_BATCHES = 2
_POLL_SECONDS = 0.2
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded rows of a table.

    Attributes:
        codes: One column per encoded column, constants last; ``NO_CODE`` for an invalid cell.
        owners: The owner of each row, null if unknown; None if the owner is no separate column.
        keep: Mask of the rows to keep, false where a column drops its row; None to keep all.
    """

    codes: Codes = field(repr=False)
    owners: pl.Series | None = field(repr=False)
    keep: Mask | None = field(repr=False)

    @classmethod
    def of(
        cls, coded: pl.DataFrame, columns: Sequence[ColumnEncoder], owner: Identifier | None
    ) -> "EncodedBatch":
        """Convert a batch computed by polars: the codes of ``columns``, then the owners, if any."""
        codes = coded[:, : len(columns)].to_numpy(order="fortran")
        owners = coded.to_series(len(columns)) if owner is not None else None
        keep: Mask | None = None
        for j, column in enumerate(columns):
            if column.attribute.outside == "drop" and (invalid := codes[:, j] == NO_CODE).any():
                keep = ~invalid if keep is None else keep & ~invalid
        if owner is not None and owners is not None and owner.outside == "drop":
            known = owners.is_not_null().to_numpy()
            keep = known if keep is None else keep & known
        return cls(codes, owners, keep)

    @property
    def has_faults(self) -> bool:
        """Whether a row to keep has an invalid cell."""
        no_code = self.codes == NO_CODE
        return bool(no_code.any()) and bool(no_code[self.rows].any())

    @property
    def rows(self) -> Indices:
        """Indices of the rows to keep."""
        return np.arange(len(self.codes)) if self.keep is None else np.flatnonzero(self.keep)

    def records(self, columns: int) -> Codes:
        """Return the first ``columns`` columns of the rows to keep."""
        codes = self.codes[:, :columns]
        return codes if self.keep is None else codes[self.keep]


@dataclass
class RowOwners:
    """Owners of the kept rows, collected over batches. An owner is a unit, such as a person.

    Attributes:
        unit_column: The column of codes that identifies the owner, if it is an attribute.
        rows: The number of rows read, dropped ones included.
        first_unknown: The first kept row without an owner.
        unknown: The number of such rows.
    """

    unit_column: int | None
    rows: int = 0
    first_unknown: int | None = None
    unknown: int = 0
    _collected: list[pl.Series] = field(default_factory=list, repr=False)

    def add(self, batch: EncodedBatch) -> None:
        """Add the owners of the next batch."""
        owners = batch.owners
        if owners is None and self.unit_column is not None:
            owners = pl.Series(batch.codes[:, self.unit_column])
        if owners is not None:
            kept = owners if batch.keep is None else owners.filter(pl.Series(batch.keep))
            if missing := kept.null_count():
                if self.first_unknown is None:
                    null = kept.is_null().arg_true()
                    self.first_unknown = self.rows + int(batch.rows[null[0]])
                self.unknown += missing
            self._collected.append(kept)
        self.rows += len(batch.codes)

    @classmethod
    def merge(cls, parts: "Sequence[RowOwners]") -> "RowOwners":
        """Join the owners of several parts of a table, in their order.

        Raises:
            DataError: The column has another type in some parts, so that the same owner might look
                like two.
        """
        merged = cls(parts[0].unit_column, rows=sum(part.rows for part in parts))
        merged._collected = [series for part in parts for series in part._collected]
        require_one_type({str(part.dtype) for part in parts if part.rows})
        return merged

    @property
    def dtype(self) -> pl.DataType:
        """The type of the column of owners."""
        return self._joined().dtype

    def keys(self) -> pl.Series:
        """Return a text for each row that names its owner; the same owner has the same text."""
        owners = self._joined()
        if owners.dtype.is_float():
            owners = owners + 0.0  # so that -0 is 0
        return owners.cast(pl.String)

    def labels(self) -> Counts:
        """Number the owners: rows of the same owner get the same number.

        If the owner is an attribute, its codes are used. Two owners in the same bin then count as
        one, which only bounds their rows more tightly.
        """
        owners = self._joined()
        self._collected.clear()
        if self.unit_column is None:
            owners = owners.rank("dense")
        return owners.cast(pl.Int64).to_numpy().copy()

    def _joined(self) -> pl.Series:
        return pl.concat(self._collected) if self._collected else pl.Series([], dtype=pl.Int64)


def require_one_type(types: Collection[str]) -> None:
    """Refuse a unit whose column has several types: the same unit might look like two."""
    if len(types) > 1:
        raise DataError(
            "the column of the unit has different types in different parts: write all parts with "
            "the same type"
        )


@dataclass
class AdjustedCells:
    """Numbers of cells in the kept rows that the schema adjusted, collected over batches.

    They are exact, hence confidential: they go to the internal folder of a release, and to internal
    reports, only.

    Attributes:
        columns: The columns with cells that may be adjusted, by their place among the codes.
        counts: By column name and adjustment; only those that occur.
    """

    columns: dict[int, ColumnEncoder] = field(repr=False)
    counts: AdjustedCounts = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Sequence[ColumnEncoder]) -> "AdjustedCells":
        """Prepare to count in those columns that may adjust a cell."""
        return cls({at: each for at, each in enumerate(columns) if _may_adjust(each)})

    def expressions(self) -> list[pl.Expr]:
        """What became of each cell: a 1-based index in ``_ADJUSTMENTS``, 0 for nothing."""
        return [
            _find_adjustments(each).alias(f"\0adjusted {at}") for at, each in self.columns.items()
        ]

    def add(self, batch: pl.DataFrame, keep: Mask | None) -> None:
        """Count the cells of the next batch, whose last columns are those of ``expressions``."""
        for at, column in self.columns.items():
            found = batch[f"\0adjusted {at}"].to_numpy()
            kept = found if keep is None else found[keep]
            cells = np.bincount(kept, minlength=1 + len(_ADJUSTMENTS))[1:].tolist()
            for adjustment, number in zip(_ADJUSTMENTS, cells, strict=True):
                if number:
                    counts = self.counts.setdefault(column.attribute.name, {})
                    counts[adjustment] = counts.get(adjustment, 0) + number

    def mark(self, batch: pl.DataFrame, codes: Codes) -> Codes:
        """Give moved cells of a batch the code after all codes of their attribute."""
        marked = codes.copy(order="F")
        moves = [1 + _ADJUSTMENTS.index(each) for each in _MOVES]
        for at, column in self.columns.items():
            moved = np.isin(batch[f"\0adjusted {at}"].to_numpy(), moves)
            marked[moved, at] = column.attribute.size
        return marked


def _may_adjust(column: ColumnEncoder) -> bool:
    """Whether some cell of a column may be adjusted; constants and roundness have one meaning."""
    attribute = column.attribute
    if column.heaping is not None or column.required_code is not None:
        return False
    changes = column.is_lenient or attribute.outside == "clip" or attribute.kind in ("text", "real")
    return changes or len(attribute.missing) > 1


def _find_adjustments(column: ColumnEncoder) -> pl.Expr:
    attribute, code = column.attribute, column.code(use_fallback=False)
    cell = pl.col(attribute.name)
    found = [_index("replaced", code == NO_CODE)]
    if attribute.missing_code is not None:
        is_missing = code == attribute.missing_code
        # A null is missing without a text of its own.
        is_other = cell.is_not_null() & ~has_text(cell, column.dtype, attribute.missing[:1])
        if len(attribute.missing) > 1 and not (
            column.dtype.is_float() or column.dtype.is_temporal()
        ):
            found.append(_index("missing", is_missing & is_other))
        found.append(pl.when(is_missing).then(0))
    if column.grid is not None and column.is_parsed:
        found += _number_adjustments(column, column.grid)
    if attribute.kind == "text":
        other = list(attribute.values).index(attribute.other)
        is_named = has_text(cell, column.dtype, [attribute.other])
        if column.is_text:
            is_named = cell.cast(pl.String) == attribute.other
        found.append(_index("other", (code == other) & ~is_named.fill_null(value=False)))
    return pl.coalesce([*found, pl.lit(0)]).cast(pl.UInt8)


def _number_adjustments(column: ColumnEncoder, grid: Grid) -> list[pl.Expr]:
    """Find numbers outside the bounds, and those that are rounded."""
    attribute, found = column.attribute, []
    parsed = (parse_cells if column.is_lenient else parse_exactly)(column, grid)
    if attribute.is_numeric and attribute.outside == "clip":
        position, low, high = grid.positions(parsed), attribute.values[0], attribute.values[-1]
        found.append(_index("clipped", ~position.is_between(pl.lit(low), pl.lit(high))))
    if grid.kind == "integer" and column.is_lenient:
        is_exact = parse_exactly(column, grid).is_not_null()
        found.append(_index("rounded", parsed.is_not_null() & ~is_exact))
    if grid.kind == "real":
        steps = parsed / float(grid.step)
        found.append(_index("rounded", (steps - steps.round()).abs() > _STEP_TOLERANCE))
    return found


def _index(adjustment: Adjustment, where: pl.Expr) -> pl.Expr:
    return pl.when(where).then(1 + _ADJUSTMENTS.index(adjustment))


def iter_batches(frame: pl.LazyFrame, expressions: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
    """Evaluate expressions on a table in batches, in row order.

    polars promises row order but does not always keep it (seen with 2.1, for a few percent of the
    batches of tiny tables on a busy machine). So each batch carries its row numbers, and a batch
    that comes early is held back.
    """
    early: dict[int, pl.DataFrame] = {}
    next_row = 0
    numbered = frame.with_row_index(_ROW_INDEX).select(pl.col(_ROW_INDEX), *expressions)
    for batch in _compute_batches(numbered):
        if not batch.height:
            continue
        first, last = batch.item(0, 0), batch.item(-1, 0)
        if last - first + 1 != batch.height:
            raise InvariantError("polars returned a batch of rows that are not consecutive")
        early[first] = batch.drop(_ROW_INDEX)
        while next_row in early:
            ready = early.pop(next_row)
            next_row += ready.height
            yield ready
    if early:
        raise InvariantError("polars left out some rows of the table")


def _compute_batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Compute a frame in batches; raise what stopped polars, a panic included.

    ``LazyFrame.collect_batches`` would end as if there were no more rows where a thread of polars
    panics. ``sink_batches`` reports a panic. It has a thread of its own, because in the main
    thread an interrupt would be raised twice.
    """
    batches: Queue[pl.DataFrame | None] = Queue(_QUEUED_BATCHES)
    outcome: Future[None] = Future()
    stopped = Event()

    def queue(batch: pl.DataFrame | None) -> bool:
        """Queue a batch, or None for the end; return True if no more are wanted."""
        while not stopped.is_set():
            try:
                batches.put(batch, timeout=_POLL_SECONDS)
            except Full:
                continue
            return False
        return True

    def run() -> None:
        try:
            frame.sink_batches(queue, engine="streaming")
            outcome.set_result(None)
        except BaseException as error:
            outcome.set_exception(error)
        queue(None)

    thread = Thread(target=run, name="batches", daemon=True)
    thread.start()
    try:
        while (batch := batches.get()) is not None:
            yield batch
    finally:
        stopped.set()
        thread.join(timeout=_STOP_SECONDS)
    outcome.result()


def find_all_faults(
    frame: pl.LazyFrame,
    columns: Sequence[ColumnEncoder],
    expressions: Sequence[pl.Expr],
    owner: Identifier | None,
) -> list[CellFault]:
    """Find the faults of all columns in the rows to keep, in a second pass over the table.

    Args:
        frame: The table.
        columns: The encoders of its columns.
        expressions: The codes of these columns; then the owner of each row, if ``owner`` is given.
        owner: The column that identifies the owner of a row.
    """
    encoded = [cell.alias(f"{j}") for j, cell in enumerate(expressions)]
    kinds = [column.fault().alias(f"fault {j}") for j, column in enumerate(columns)]
    faults: dict[tuple[int, str], CellFault] = {}
    start = 0
    for batch in iter_batches(frame, [*encoded, *kinds]):
        rows = EncodedBatch.of(batch, columns, owner).rows
        for j, column in enumerate(columns):
            for fault in find_faults(column.attribute, batch[f"fault {j}"].gather(rows)):
                located = replace(fault, row=start + int(rows[fault.row]))
                total = faults.setdefault((j, fault.kind), replace(located, count=0))
                faults[j, fault.kind] = replace(total, count=total.count + fault.count)
        start += len(batch)
    ordered = ((j, kind) for j in range(len(columns)) for kind in FAULT_KINDS)
    return [faults[key] for key in ordered if key in faults]
