"""Given rows completed: each row comes back several times, with its other cells drawn.

Given cells keep their values. Rows are handled in blocks, in bounded memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.conditional_draw import ConditionalDraw
from deniable.answers.conditional_records import InferenceTally
from deniable.answers.given_rows import GivenBlock, GivenRows
from deniable.answers.inference import infer, split_cases
from deniable.answers.released_law import joint_index
from deniable.arrays import Codes, Counts, Indices
from deniable.data.complete_records import add_unmodelled_columns, released_columns
from deniable.errors import ConfigError, DataError, InputError
from deniable.model.bayesian_network import empty_codes
from deniable.randomness import Randomness, Rng
from deniable.schema.attribute import summarize_values
from deniable.schema.schema import Schema
from deniable.workers import Progress, count_cores, map_in_order

# Records per block, where a row has fewer; rows of more records are split into such blocks.
_RECORDS_PER_BLOCK = 2**15


class _Task(NamedTuple):
    """A block of rows, and how often each of them is completed."""

    number: int
    rows: GivenBlock
    first_record: int
    times: int


@dataclass(frozen=True, kw_only=True, eq=False)
class CompletedRecords:
    """Records completed from given rows: each row ``records_each`` times, in the rows' order.

    Attributes:
        draw: Draws records, perhaps under a condition.
        given: The given rows.
        records_each: How often each row is completed.
        is_public: Whether the user declares that the given rows are public.
        randomness: Addressed by a key.
        workers: Threads; None: one for each core.
    """

    draw: ConditionalDraw = field(repr=False)
    given: GivenRows = field(repr=False)
    records_each: int
    is_public: bool
    randomness: Randomness = field(repr=False)
    workers: int | None = None

    def __post_init__(self) -> None:
        if type(self.records_each) is not int or self.records_each < 1:
            raise ConfigError(f"records_each = {self.records_each!r}: must be an integer, above 0")

    @property
    def number(self) -> int:
        """The number of records."""
        return self.given.number * self.records_each

    @property
    def parameters(self) -> dict[str, Any]:
        """What was given, for a manifest: columns, never cells.

        With the number of records it reveals the number of rows, so it is as internal as they are.
        """
        condition = self.draw.condition
        found: dict[str, Any] = {} if condition is None else {"where": condition.text}
        rows = {"rows": self.given.number} if self.is_public else {}
        found["given"] = {
            "columns": list(self.given.names),
            "public": self.is_public,
            "records_each": self.records_each,
            **rows,
        }
        return found

    def frames(self, tally: InferenceTally, progress: Progress) -> Iterator[pl.DataFrame]:
        """Yield all records, and add up the errors of inference."""
        progress("records", 0, self.number)
        done = 0
        for frame, own in map_in_order(
            self._frame, self._tasks(), workers=self.workers or count_cores()
        ):
            tally.add(own)
            done += len(frame)
            yield frame
            progress("records", done, self.number)

    def _tasks(self) -> Iterator[_Task]:
        rows = max(1, _RECORDS_PER_BLOCK // self.records_each)
        number, first = 0, 1
        for block in self.given.blocks(rows):
            left = self.records_each
            while left:
                times = left if len(block) > 1 else min(left, _RECORDS_PER_BLOCK)
                yield _Task(number, block, first, times)
                number += 1
                first += len(block) * times
                left -= times

    def _frame(self, task: _Task) -> tuple[pl.DataFrame, InferenceTally]:
        rng, rows = self.randomness.at("records", task.number), task.rows
        records = len(rows) * task.times
        codes = empty_codes(records, self.draw.schema.attributes)
        positions = np.zeros(codes.shape, dtype=np.int64, order="F")
        tally = InferenceTally()
        patterns, of_row = np.unique(rows.filled, axis=0, return_inverse=True)
        for at, pattern in enumerate(patterns):
            own = np.flatnonzero(of_row.ravel() == at)
            given = frozenset(np.flatnonzero(pattern).tolist())
            group = _Group(self, rows, own, given)
            drawn = group.draw(task.times, rng, tally)
            where = (own[:, None] * task.times + np.arange(task.times)).ravel()
            codes[where], positions[where] = drawn
        frame = self.draw.codec.values(codes, positions)
        return self._complete(frame, task), tally

    def _complete(self, frame: pl.DataFrame, task: _Task) -> pl.DataFrame:
        """Add columns that are not modelled; copy given cells that have no code."""
        schema = self.draw.schema
        repeated = task.rows.copied.select(pl.all().repeat_by(task.times).explode())
        frame = _overlay(frame, repeated)
        salt = self.randomness.at("identifiers").words(2).tobytes()
        complete = add_unmodelled_columns(frame, schema, first_record=task.first_record, salt=salt)
        names = [column.name for column in released_columns(schema.columns)]
        return _overlay(complete, repeated).select(names)


class _Job(NamedTuple):
    """Cases that are handled at once.

    Attributes:
        evidence: Their evidence.
        numbers: Their numbers, ascending.
        rows: The first row of each.
        case_of: The number of the case of each row.
        positions: The given positions of each row.
        times: How often each row is completed.
        needs_more: Whether a usual selection of states left none.
    """

    evidence: CaseEvidence
    numbers: Indices
    rows: Indices
    case_of: Indices
    positions: Counts
    times: int
    needs_more: bool = False

    def take(self, which: Indices) -> "_Job":
        return self._replace(
            evidence=self.evidence.take(which), numbers=self.numbers[which], rows=self.rows[which]
        )


@dataclass(frozen=True, eq=False)
class _Group:
    """The rows of a block that have the same columns filled."""

    records: CompletedRecords
    rows: GivenBlock
    own: Indices
    given: frozenset[int]

    @property
    def _schema(self) -> Schema:
        return self.records.draw.schema

    def draw(self, times: int, rng: Rng, tally: InferenceTally) -> tuple[Codes, Counts]:
        """Draw the records of these rows, each row ``times`` times."""
        draw = self.records.draw
        codes, positions = self.rows.codes[self.own], self.rows.positions[self.own]
        for name, wrong in draw.excluded(codes, positions, self.given).items():
            raise self._error(int(np.flatnonzero(wrong)[0]), f'where excludes its "{name}"')
        evidence = draw.evidence(codes, positions, self.given)
        first, case_of = _distinct_cases(evidence)
        cases = evidence.take(first)
        drawn_codes = np.zeros((len(self.own) * times, codes.shape[1]), dtype=codes.dtype)
        drawn_positions = np.zeros(drawn_codes.shape, dtype=np.int64)
        drawn = drawn_codes, drawn_positions
        for numbers, part in split_cases(draw.law, cases, times):
            job = _Job(part, numbers, first[numbers], case_of, positions, times)
            self._draw_job(job, drawn, rng, tally)
        return drawn

    def _draw_job(
        self, job: "_Job", drawn: tuple[Codes, Counts], rng: Rng, tally: InferenceTally
    ) -> None:
        """Draw the records of some cases; with more states for cases without a state left."""
        law = self.records.draw.law
        posterior = infer(law, job.evidence, rng, shared=job.needs_more, times=job.times)
        is_possible = posterior.log_likelihoods > -np.inf
        if not is_possible.all():
            if posterior.is_exact or job.needs_more:
                row = int(job.rows[np.argmin(is_possible)])
                raise self._impossible(row, is_exact=posterior.is_exact)
            if is_possible.any():
                self._draw_job(job.take(np.flatnonzero(is_possible)), drawn, rng, tally)
            more = job.take(np.flatnonzero(~is_possible))._replace(needs_more=True)
            self._draw_job(more, drawn, rng, tally)
            return
        cut = self.records.draw.cuts_constrained(self.given)
        tally.add(InferenceTally.of(posterior, cuts_constrained=cut))
        which = np.flatnonzero(np.isin(job.case_of, job.numbers))
        where = (which[:, None] * job.times + np.arange(job.times)).ravel()
        repeated = np.repeat(which, job.times)
        numeric = [i for i in self.given if self._schema.attributes[i].is_numeric]
        drawn[0][where], drawn[1][where] = self.records.draw.draw(
            posterior,
            np.searchsorted(job.numbers, job.case_of[repeated]),
            {i: job.positions[repeated, i] for i in numeric},
            rng,
            partial(self._infeasible_case, job.rows),
        )

    def _impossible(self, row: int, *, is_exact: bool) -> InputError:
        gives = f"the model gives {'' if is_exact else 'little or no '}probability{' 0' * is_exact}"
        return self._error(row, f"{gives} to a record with its {self._given_columns()}")

    def _infeasible_case(self, rows: Indices, case: int) -> InputError:
        row = int(rows[case])
        return self._error(
            row,
            "the constraints of the schema exclude nearly all records with its "
            f"{self._given_columns()}",
        )

    def _given_columns(self) -> str:
        names = self._schema.names
        plain = [
            names[i + 1] if names[i] in self._schema.roundness_names else names[i]
            for i in sorted(self.given)
        ]
        return f"column {summarize_values(list(dict.fromkeys(plain)))}"

    def _error(self, row: int, what: str) -> InputError:
        place = self.records.given.row_text(self.rows.first_row + int(self.own[row]))
        return DataError(f"{place}: {what}. Correct the row, leave cells empty, or remove it")


def _distinct_cases(evidence: CaseEvidence) -> tuple[Indices, Indices]:
    """Find the first row of each distinct case, and the case of each row."""
    columns = [evidence.codes[:, i].astype(np.intp) for i in sorted(evidence.given)]
    columns += [factor.rows for factor in evidence.factors if factor.rows is not None]
    if not columns:
        return np.zeros(1, dtype=np.intp), np.zeros(evidence.cases, dtype=np.intp)
    index = joint_index(columns, [int(column.max()) + 1 for column in columns])
    _, first, case_of = np.unique(index, return_index=True, return_inverse=True)
    return first, case_of.ravel()


def _overlay(frame: pl.DataFrame, copied: pl.DataFrame) -> pl.DataFrame:
    """Replace cells by copied ones, where these are not null."""
    own = [name for name in copied.columns if name in frame.columns]
    return frame.with_columns(
        pl.coalesce(copied[name].cast(frame.schema[name], strict=False), pl.col(name)).alias(name)
        for name in own
    )
