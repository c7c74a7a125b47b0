"""Answer a question about the columns of an artefact: a table with an interval for each number.

    which columns, bands, condition  →  which noisy counts answer it  →  cells and numbers

Reads the artefact alone: post-processing of noisy counts, at no cost.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.answers.bin_values import BinValues
from deniable.answers.cell_bands import Bands, make_bands
from deniable.answers.condition import RecordCondition
from deniable.answers.fresh_counts import (
    MeasuredTable,
    Source,
    estimate_rows,
    measured_tables,
)
from deniable.answers.measured_cells import MeasuredCells, Selection
from deniable.answers.model_answer import MODEL_ONLY, model_cells
from deniable.answers.number_summaries import NumericAxis, summarize_numbers
from deniable.arrays import Indices, Reals
from deniable.errors import ConfigError
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.release.artefact import Artefact
from deniable.release.query_answer import BandRule, NumberSummary, QueryAnswer
from deniable.schema.attribute import Attribute, summarize_values

# By default, a column with at most this many codes shows each of its values.
_MAX_VALUES_SHOWN = 100
# Bounds the cells of an answer.
_MAX_CELLS = 50_000
# Bounds its time: its cells times those of the table that they are summed from.
_MAX_SUMMED = 10**9
# Columns of an answer: three or more are the model's.
_MAX_COLUMNS = 6

_BASES = {
    "one-way counts": "counts of the column's values",
    "interactions": "interactions of the two columns and margins of two-way tables",
    "two-way tables": "two-way tables",
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question: columns, condition, and the bands of each column.

    Attributes:
        artefact: The artefact.
        asked: The columns asked for.
        rules: The rule of the bands of each column that has one.
        where: The condition; None for all rows.
        sampling_error: Whether the intervals are for a population.
    """

    artefact: Artefact
    asked: tuple[int, ...]
    rules: Mapping[int, BandRule] = field(repr=False)
    where: RecordCondition | None
    sampling_error: bool

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns asked for, then those that only the condition names."""
        named = () if self.where is None else self.where.columns
        others = [self.artefact.schema.names.index(name) for name in named]
        return tuple(dict.fromkeys((*self.asked, *others)))

    def attribute(self, column: int) -> Attribute:
        """The domain of a column."""
        return self.artefact.schema.attributes[column]

    def shares(self, column: int) -> Reals:
        """The share of the values of each code that satisfies the condition."""
        attribute = self.attribute(column)
        return np.ones(attribute.size) if self.where is None else self.where.shares(attribute)

    @property
    def shares_by_level(self) -> dict[int, Reals]:
        """The shares by roundness level too, of each column that the condition names."""
        schema, allowed = self.artefact.schema, {} if self.where is None else self.where.allowed
        return {
            schema.names.index(name): BinValues(own, schema.heaping.get(name)).shares
            for name, own in allowed.items()
        }

    @property
    def sampling(self) -> float:
        """Variance per row of the chance of a sample: 0 if the intervals are for the table.

        With a unit it is multiplied by the largest number of rows of one, a bound if they are
        alike.
        """
        schema = self.artefact.schema
        rows_per_unit = schema.max_rows_per_unit if schema.unit is not None else 1
        return float(rows_per_unit) if self.sampling_error else 0.0

    def parts(self, column: int) -> dict[str, Indices]:
        """The bin and the group of each code, if the artefact has any."""
        evidence = self.artefact.evidence
        if not isinstance(evidence, PairwiseMeasurements):
            return {}
        bins = evidence.bins[column]
        return {"bins": bins, "groups": evidence.groups[column][bins]}

    def rule(self, column: int, *, has_bins: bool) -> BandRule:
        """The rule of a column's bands; by default its values, or its bins if it has many.

        Args:
            column: The column.
            has_bins: Whether the bins of the artefact can be answered.
        """
        if column in self.rules:
            return self.rules[column]
        if self.attribute(column).size <= _MAX_VALUES_SHOWN:
            return "values"
        return "bins" if has_bins else "buckets"

    def bands(self, column: int, rule: BandRule) -> Bands:
        """The bands of a column by a rule; one band if only the condition names it."""
        attribute = self.attribute(column)
        if column not in self.asked:
            return Bands.whole(attribute)
        return make_bands(attribute, rule, self.parts(column))

    def select(self, table: MeasuredTable, bands: Sequence[Bands]) -> MeasuredCells:
        """Form the cells of the question in a table."""
        selections = tuple(
            Selection.of(own, self.shares(column), parts)
            for column, own, parts in zip(self.columns, bands, table.parts, strict=True)
        )
        return MeasuredCells(table=table, selections=selections, sampling=self.sampling)


def query(
    artefact: Artefact,
    columns: str | Sequence[str],
    *,
    where: str | None = None,
    by: Mapping[str, BandRule] | None = None,
    sampling_error: bool = False,
) -> QueryAnswer:
    """Estimate counts, shares, means and quantiles, each with a 95 % interval.

    Computed from noisy counts and the known law of their noise. Post-processing: no cost.

    Args:
        artefact: The artefact.
        columns: One column or two; for more, the model answers, without intervals.
        where: A condition on rows, as in ``age >= 65 and income = "More than 50,000"``.
        by: The cells of a column, by its name: "values", "bins" or "groups" of the artefact,
            "buckets" of the schema, a width, a list of lower edges, or lists of values by name.
        sampling_error: Whether the table is a random sample, and the intervals are for its
            population.

    Raises:
        ConfigError: A column, a value or a rule does not fit the schema.

    Privacy:
        Neighbours: those of the artefact.
        Covers: the answer, as everything computed from the artefact: it reads nothing else, and
            costs nothing.
        Does not cover: an artefact without a guarantee, whose answers are as confidential.
    """
    question = ask_question(artefact, columns, where=where, by=by, sampling_error=sampling_error)
    tables, cells = choose_cells(question)
    if cells is None:
        return _model_answer(question)
    _require_few(cells)
    return QueryAnswer(
        columns=tuple(question.attribute(column).name for column in question.asked),
        where=where or "",
        measured=True,
        basis=_measured_basis(artefact, cells.table.source),
        sampling_error=sampling_error,
        rows=cells.count([None] * len(cells.selections)),
        cells=tuple(cells.cells(asked=range(len(question.asked)))),
        numbers=tuple(summarize_question(question, tables, cells)),
        notes=tuple(_notes(question)),
        kind=artefact.kind,
        is_confidential=not artefact.certificate.claims_privacy,
    )


def _measured_basis(artefact: Artefact, source: Source) -> str:
    """Name the counts that answered, and whether they have noise."""
    if artefact.certificate.claims_privacy:
        return f"Computed from noisy {_BASES[source]}, and the law of their noise."
    return f"Computed from {_BASES[source]}."


def ask_question(
    artefact: Artefact,
    columns: str | Sequence[str],
    *,
    where: str | None = None,
    by: Mapping[str, BandRule] | None = None,
    sampling_error: bool = False,
) -> Question:
    """Parse a question; arguments as for ``query``."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names) or len(names) > _MAX_COLUMNS:
        raise ConfigError(f"ask for 1 to {_MAX_COLUMNS} columns, each once")
    asked = tuple(_find_column(artefact, name) for name in names)
    by = by or {}
    if foreign := [name for name in by if name not in names]:
        raise ConfigError(f'by names column "{foreign[0]}", which is not asked for')
    condition = None if not where else RecordCondition.parse(where, artefact.schema)
    return Question(
        artefact=artefact,
        asked=asked,
        rules={_find_column(artefact, name): rule for name, rule in by.items()},
        where=condition,
        sampling_error=sampling_error,
    )


def _find_column(artefact: Artefact, name: object) -> int:
    """Find a column; refuse one that the model does not learn."""
    schema = artefact.schema
    learnt = [column.name for column in schema.columns if isinstance(column, Attribute)]
    if name in learnt:
        return schema.names.index(str(name))
    if any(column.name == name for column in schema.columns):
        raise ConfigError(
            f'column "{name}" is not counted: it is an identifier, constant or computed from others'
        )
    near = difflib.get_close_matches(str(name), learnt, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"the columns are {summarize_values(learnt)}"
    raise ConfigError(f'no column "{name}"; {hint}')


def choose_cells(question: Question) -> tuple[list[MeasuredTable], MeasuredCells | None]:
    """Choose the noisy counts that answer; return all that may be used, and the cells.

    For bins of two columns, interactions answer nothing: no cell, mean or quartile. None if the
    model has to answer.
    """
    number = len(question.columns)
    tables = measured_tables(question.artefact, question.columns) if number <= 2 else []
    if number == 2 and "bins" in [rule for rule in question.rules.values() if type(rule) is str]:
        tables = [table for table in tables if table.source != "interactions"]
    cells = _one_column(question, tables) if number == 1 else _two_columns(question, tables)
    return tables, cells


def _one_column(question: Question, tables: Sequence[MeasuredTable]) -> MeasuredCells | None:
    """Choose the counts of one column: those of its values, unless noise formed its bands."""
    (column,) = question.columns
    by_source = {table.source: table for table in tables}
    rule = question.rule(column, has_bins="two-way tables" in by_source)
    is_noisy = isinstance(rule, str) and rule in ("bins", "groups")
    table = by_source.get("two-way tables" if is_noisy else "one-way counts")
    if table is None:
        return None
    return question.select(table, [question.bands(column, rule)])


def _two_columns(question: Question, tables: Sequence[MeasuredTable]) -> MeasuredCells | None:
    """Choose the table of two columns: the coarsest whose cells fit, else the finest, with bounds.

    Interactions answer only for cells that fit. As a last resort they would be used if the pair has
    no two-way table, and that was decided by their own noise. For bins they are never used, so that
    a pair that was chosen for the strength it shows has counts that were drawn later.
    """
    if not tables:
        return None
    bands = _two_way_bands(question, tables[0])
    found = [question.select(table, bands) for table in tables]
    if aligned := [cells for cells in found if cells.is_aligned]:
        return aligned[0]
    fine = [cells for cells in found if cells.table.source != "interactions"]
    return fine[-1] if fine else None


def _two_way_bands(question: Question, coarsest: MeasuredTable) -> list[Bands]:
    """The bands of two columns; by default those of the coarsest table."""
    bands = []
    for column, parts in zip(question.columns, coarsest.parts, strict=True):
        if column in question.rules or column not in question.asked:
            bands.append(question.bands(column, question.rules.get(column, "values")))
        else:
            bands.append(Bands.of_parts(question.attribute(column), parts))
    return bands


def _size(cells: MeasuredCells) -> int:
    """The cells of the table that answers."""
    return cells.table.estimate.interactions.size


def _require_few(cells: MeasuredCells) -> None:
    """Refuse a question with more cells than anyone reads."""
    number = math.prod(len(selection.bands) for selection in cells.selections)
    if number > _MAX_CELLS or number * _size(cells) > _MAX_SUMMED:
        raise ConfigError(f"the answer has {number:,} cells; ask for wider bands, with by")


def summarize_question(
    question: Question, tables: Sequence[MeasuredTable], cells: MeasuredCells
) -> list[NumberSummary]:
    """Means and quartiles of a numeric column, by the bands of the other one if two are asked."""
    numeric = [column for column in question.asked if question.attribute(column).is_numeric]
    if not numeric:
        return []
    axis = question.columns.index(numeric[-1])
    attribute = question.attribute(numeric[-1])
    bands = [selection.bands for selection in cells.selections]
    bands[axis] = Bands.whole(attribute)
    if len(bands) == 1:
        tables = [table for table in tables if table.source != "two-way tables"] or tables[:1]
    axes = [
        NumericAxis(attribute=attribute, grid=attribute.grid, cells=own, axis=axis)
        for own in (question.select(table, bands) for table in tables)
        if own.is_aligned and attribute.grid is not None
    ]
    axes = [own for own in axes if own.present.any()]
    groups: list[tuple[int | None, str]] = [(None, "")]
    if len(question.asked) == 2:
        groups = list(enumerate(bands[1 - axis].labels))
    # Quartiles are searched in every part of the column, for every group.
    axes = [own for own in axes if len(groups) * _size(own.cells) * len(own.present) <= _MAX_SUMMED]
    return summarize_numbers(axes, groups) if axes else []


def _notes(question: Question) -> list[str]:
    """What a reader must know of the whole answer."""
    artefact, notes = question.artefact, []
    if not artefact.certificate.claims_privacy:
        notes.append("No privacy is claimed for this artefact: its answers are confidential.")
    if artefact.schema.unit is not None:
        most = artefact.schema.max_rows_per_unit
        rows = "one row" if most == 1 else f"{most:,} rows"
        notes.append(f'Counted are at most {rows} of each "{artefact.schema.unit}".')
    if artefact.certificate.data_use == "split":
        notes.append(
            "A random part of the rows was counted, and the counts are scaled to the table."
        )
    return notes


def _model_answer(question: Question) -> QueryAnswer:
    """Answer by the model alone."""
    rows = estimate_rows(question.artefact)
    has_bins = bool(question.parts(question.asked[0]))
    bands = [
        question.bands(column, question.rule(column, has_bins=has_bins))
        for column in question.asked
    ]
    if (number := math.prod(map(len, bands))) > _MAX_CELLS:
        raise ConfigError(f"the answer has {number:,} cells; ask for wider bands, with by")
    total, cells = model_cells(
        question.artefact, question.asked, bands, question.shares_by_level, rows=rows
    )
    return QueryAnswer(
        columns=tuple(question.attribute(column).name for column in question.asked),
        where="" if question.where is None else question.where.text,
        measured=False,
        basis=f"{MODEL_ONLY.capitalize()}: {_why_model(question)}",
        sampling_error=question.sampling_error,
        rows=total,
        cells=tuple(cells),
        notes=tuple(_notes(question)),
        kind=question.artefact.kind,
        is_confidential=not question.artefact.certificate.claims_privacy,
    )


def _why_model(question: Question) -> str:
    """Explain why no noisy count answers a question."""
    if not isinstance(question.artefact.evidence, PairwiseMeasurements):
        return "only counts of the default estimator answer with intervals."
    if len(question.columns) > 2:
        return "no noisy table of three or more columns answers it."
    if len(question.columns) == 1:
        return "no noisy count answers for these bands; ask for values or buckets."
    if measured_tables(question.artefact, question.columns):
        return "this pair was counted between coarser groups only; ask for groups, with by."
    return "this pair of columns was not counted."
