"""A draft with differential privacy: nothing in it depends on a row except through noise.

A column is asked at most three questions, each a histogram (``measures``): which classes its cells
are of, what it holds (a public ladder of numbers, years, or the texts themselves), and, for short
ranges, that again more finely. Everything else follows from the noisy answers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from deniable.arrays import Counts, Mask
from deniable.drafting.attributes import PRIVATE, Described, Field
from deniable.drafting.categories import describe_open_list
from deniable.drafting.cells import (
    CLASS,
    DATES,
    DATETIMES,
    EITHER,
    EITHER_MOMENT,
    MISSING,
    PAIRS,
    are_reasons,
)
from deniable.drafting.columns import Column, Opened, is_foreign
from deniable.drafting.identity import says_identifier
from deniable.drafting.lines import by_note
from deniable.drafting.measures import (
    Measurer,
    class_counts,
    classes_in,
    law_for,
    per_row,
)
from deniable.drafting.noisy_ranges import (
    MAJORITY,
    NUMERIC,
    bounds_of,
    draft_moments,
    draft_numbers,
    ladder_counts,
    left_out,
    numeric_cells,
)
from deniable.errors import ConfigError, InvariantError
from deniable.privacy.composition import Guarantee, of_a_group
from deniable.randomness import Randomness

_COMMON = ("", "NA", "N/A", "NaN", "null", "None", "?")


@dataclass(frozen=True, kw_only=True)
class Bought:
    """A private draft: what it says, and what it cost.

    Attributes:
        attributes: A description of each column.
        notes: What is left to decide.
        rows: A noisy number of rows; 0: too few to say.
        cost: What the limit was, and no more than that was spent.
    """

    attributes: tuple[Described, ...]
    notes: tuple[str, ...]
    rows: int
    cost: Guarantee


def draft_privately(
    opened: Opened,
    limit: Guarantee,
    *,
    unit: str | None,
    rows_per_unit: int | None,
    noise: Randomness,
    watch: Callable[[int, int], None] | None = None,
) -> Bought:
    """Return a draft that costs at most ``limit``.

    Args:
        opened: The table.
        limit: (ε, δ) of the whole draft.
        unit: The column that names the person, where one has several rows.
        rows_per_unit: The most rows of a person that are read.
        noise: Where the noise comes from.
        watch: Is told how many columns were read, and of how many.

    Raises:
        ConfigError: There is a unit, and no ``rows_per_unit``.
        BudgetError: The draft cannot be had for ``limit``.

    Privacy:
        Neighbours: add or remove one row; with ``unit``, all rows of one person.
        Covers: the whole draft, its notes included. How many histograms there are, and the law
            of the noise, follow from the names and types of the columns and from ``limit``.
        Does not cover: the names of the columns and the types of a Parquet file or frame, which
            are taken as public; that the table could be read, and how long that took.
        Assumes: ``noise`` is secret.
    """
    if unit is not None and rows_per_unit is None:
        raise ConfigError("a private draft with a unit needs max_rows_per_unit, a public number")
    rows = rows_per_unit or 1
    asked = {name: _questions(name, opened.dtypes[name], unit) for name in opened.names}
    most = max(1, sum(asked.values()))
    row_limit = per_row(limit, rows=rows)
    measurer = Measurer(law_for(row_limit, histograms=most), noise.at("noise"), most)
    table = opened if unit is None else opened.first_rows(unit, rows)
    columns = table.read(watch)
    drafted = [_draft(column, measurer, asked[column.name], unit) for column in columns]
    if not of_a_group(measurer.cost(delta=row_limit.delta), rows=rows).within(limit):
        raise InvariantError("the draft has cost more than was allowed: it is not shown")
    attributes = tuple(_signed(described) for described, _ in drafted)
    return Bought(
        attributes=attributes,
        notes=(*by_note(attributes), *_GENERAL),
        rows=max((count for _, count in drafted), default=0),
        cost=limit,
    )


_GENERAL = (
    "the draft did not ask which columns follow from others, which orders hold between them, and "
    "which columns name a person under another name: say so where you know it.",
    "a cell that the draft did not see often enough to describe (a text among numbers, a rare "
    "missing cell) will be reported when the table is read: then widen the description by what "
    "everybody may know. An integer that meets a fraction becomes a real with decimals = 0, which "
    "rounds it.",
)


def _questions(name: str, dtype: pl.DataType, unit: str | None) -> int:
    """Return how many histograms a column may need, from what is public."""
    if name == unit or says_identifier(name) or is_foreign(dtype):
        return 0
    if dtype == pl.Boolean:
        return 1
    return 3


def _signed(described: Described) -> Described:
    return replace(described, confirmed=True, why=PRIVATE)


def _draft(
    column: Column, measurer: Measurer, questions: int, unit: str | None
) -> tuple[Described, int]:
    """Return the description of a column, and a noisy number of rows."""
    if not questions:
        named = column.name == unit or says_identifier(column.name)
        why = "its name says that it names a person" if named else "its type is not known here"
        return left_out(column.name, why, fresh=named), 0
    classes = measurer.histogram(class_counts(column))
    known = int(classes[len(MISSING) :].sum())
    if not known:
        why = "nearly every cell is missing" if classes.any() else "too few rows to say what it is"
        return left_out(column.name, why), int(classes.sum())
    described = _by_majority(column, measurer, classes, known)
    if described.is_learnt:
        described = _with_missing(described, classes)
    return described, int(classes.sum())


def _with_missing(described: Described, classes: Counts) -> Described:
    """Return the description with what means missing: what was seen, and what commonly does.

    A rare missing cell is not seen. It must not stop a run, so the common texts are listed too.
    """
    seen = [text for text in MISSING if classes[CLASS[f"missing {text}"]]]
    seen.sort(key=lambda text: -int(classes[CLASS[f"missing {text}"]]))
    own = [field.value for field in described.fields if field.key == "missing"]
    others = own[0] if own and isinstance(own[0], list) else []
    common = [""] if described.kind == "text" else [*_COMMON]
    texts = dict.fromkeys([*seen, *others, *common])
    why = PRIVATE if seen or others else "none was seen often; what commonly means missing"
    fields = [field for field in described.fields if field.key != "missing"]
    return replace(described, fields=(*fields, Field("missing", [*texts], why)))


def _by_majority(column: Column, measurer: Measurer, classes: Counts, known: int) -> Described:
    """Return the description of the type that nearly all cells are of."""
    dtype = column.dtype
    if dtype == pl.Boolean:
        return Described(name=column.name, kind="boolean")
    if isinstance(dtype, pl.Date | pl.Datetime):
        return draft_moments(column, measurer, None, "date" if dtype == pl.Date else "datetime")
    for share, names, draft in _options(column, measurer, classes):
        if sum(int(classes[CLASS[name]]) for name in names) >= share * known:
            return draft()
    if numeric_cells(classes) > 0.5 * known:
        return _draft_mixture(column, measurer, classes)
    return _draft_texts(column, measurer)


def _options(
    column: Column, measurer: Measurer, classes: Counts
) -> Iterator[tuple[float, Sequence[str], Callable[[], Described]]]:
    """Yield classes of cells, the share they need, and what the column is: the first that fits.

    Nothing else may have been seen beside two texts, or beside numbers: a number can be clipped,
    a text cannot.
    """
    for no, yes in PAIRS:
        yield 1.0, [f"pair {no}/{yes}"], partial(_draft_boolean, column, measurer, (no, yes))
    for form in DATES:
        names = [f"date {form}", *(f"date {a} or {b}" for a, b in EITHER if form in (a, b))]
        yield MAJORITY, names, partial(draft_moments, column, measurer, form, "date")
    for form in DATETIMES:
        either = (f"datetime {a} or {b}" for a, b in EITHER_MOMENT if form in (a, b))
        names = [f"datetime {form}", *either]
        yield MAJORITY, names, partial(draft_moments, column, measurer, form, "datetime")
    yield 1.0, NUMERIC, partial(draft_numbers, column, measurer, classes)


def _draft_boolean(column: Column, measurer: Measurer, pair: tuple[str, str]) -> Described:
    """Return a column of two texts, where both are frequent; else a list with room for others."""
    kept = _frequent(column, measurer, classes_in(column) >= len(MISSING))
    if set(kept) != set(pair):
        return _open_list(column.name, kept)
    fields = (
        Field("values", [*pair], PRIVATE),
        Field("outside", "drop", "a rare other text leaves its row out"),
    )
    return Described(name=column.name, kind="boolean", fields=fields)


def _frequent(column: Column, measurer: Measurer, which: Mask) -> list[str]:
    """Return those of some distinct texts that are frequent.

    Privacy:
        Neighbours: add or remove one row, which moves the count of one text by one.
        Covers: the texts; that they occur at all is paid for by the threshold.
    """
    noisy = measurer.histogram(column.counts[which])
    kept = _texts(column).filter(pl.Series(which)).filter(pl.Series(noisy > 0)).to_list()
    return sorted(kept)


def _texts(column: Column) -> pl.Series:
    values = column.values
    return values if values.dtype == pl.String else values.cast(pl.String)


def _draft_texts(column: Column, measurer: Measurer) -> Described:
    """Return the texts that are frequent enough, and one for all others."""
    kept = _frequent(column, measurer, classes_in(column) >= len(MISSING))
    return _open_list(column.name, kept)


def _open_list(name: str, kept: list[str]) -> Described:
    if not kept:
        return left_out(name, "no text is frequent enough to be named")
    note = "other texts than the frequent ones become one: if there is a public list, use it"
    return describe_open_list(name, kept, (), why=PRIVATE, notes=(note,))


def _draft_mixture(column: Column, measurer: Measurer, classes: Counts) -> Described:
    """Return numbers among which a few texts say why there is none; or else a list of texts.

    Privacy:
        Neighbours: add or remove one row. Its cell is a number, and on one rung of the ladder,
            or a text, and one of the texts: it moves one count of the histogram by one.
        Covers: the texts that are frequent, and the bounds of the numbers.
    """
    found = classes_in(column)
    numeric = np.isin(found, [CLASS[name] for name in NUMERIC])
    words = ~numeric & (found >= len(MISSING))
    # "007" can be read as a number too: it is a text here, and must be on no rung.
    rungs = ladder_counts(_only(column, numeric), classes)
    noisy = measurer.histogram(np.concatenate([column.counts[words], rungs]))
    rows, rungs = np.split(noisy, [int(words.sum())])
    strays = sorted(_texts(column).filter(pl.Series(words)).filter(pl.Series(rows > 0)))
    others = int(classes[len(MISSING) :].sum()) - numeric_cells(classes)
    low, high, _ = bounds_of(rungs, of=0) if rungs.any() else (0, 0, ())
    if int(rows.sum()) < MAJORITY * others or not are_reasons(strays, numbers=high - low):
        kept = _frequent(column, measurer, numeric)
        return _open_list(column.name, sorted([*strays, *kept]))
    described = draft_numbers(_only(column, numeric), measurer, classes, rungs=rungs)
    if described.kind == "identifier":
        return described
    note = "a text among its numbers is taken to mean missing (see missing): check"
    fields = (*described.fields, Field("missing", [*strays], PRIVATE))
    return replace(described, fields=fields, notes=(*described.notes, note))


def _only(column: Column, which: Mask) -> Column:
    """Return a column with some of its distinct values, as far as they are counted."""
    values = column.values.filter(pl.Series(which))
    return replace(column, values=values, counts=column.counts[which])
