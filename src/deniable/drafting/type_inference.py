"""Infer the type of a column from all its distinct values, and describe it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import polars as pl

from deniable.arrays import Counts, Mask, Reals
from deniable.data.column_encoder import is_zoned, zone_fault
from deniable.drafting.cell_patterns import (
    BOOLEAN_PAIRS,
    CLASS_INDEX,
    CLASS_NAMES,
    MISSING_TEXTS,
    CellClasses,
    are_missing_reasons,
    classify_cells,
    classify_columns,
    strip_blanks,
)
from deniable.drafting.cell_texts import are_calendar_dates
from deniable.drafting.column_profile import ColumnProfile, is_unsupported
from deniable.drafting.date_columns import DateProfile, describe_dates, parse_date_column
from deniable.drafting.description import (
    FROM_DATA,
    ColumnDraft,
    ColumnGuess,
    DraftField,
    Note,
    TomlScalar,
)
from deniable.drafting.identifier_columns import (
    ask_for_unit,
    describe_identifier,
    describe_references,
    identifier_fields,
    measure_uniqueness,
)
from deniable.drafting.numeric_columns import describe_numbers
from deniable.drafting.numeric_profile import MAX_EXACT_REAL, NumericProfile, max_decimals
from deniable.drafting.text_columns import describe_texts
from deniable.errors import DataError

# A schema accepts integers of smaller absolute value.
_INTEGER_BOUND = 2**62
# In fewer rows, a single value may be chance.
_MIN_ROWS_FOR_CONSTANT = 20
# Texts that are examined for the shape of an identifier.
_MAX_TEXTS_EXAMINED = 1_000

_TOO_LARGE = "its numbers are too large for doubles to distinguish"
_NEARLY_UNIQUE_NOTE = (
    "almost every row has its own value, and the column is learnt as a measurement. If it "
    "identifies a person, make it an identifier; if a coarser grid is enough, choose one"
)

_NUMERIC_PREFIXES = ("bit", "point", "decimals", "long")
_NUMERIC_CLASS_CODES = [
    n for n, name in enumerate(CLASS_NAMES) if name.startswith(_NUMERIC_PREFIXES)
]
_DATE_CLASS_CODES = [n for n, name in enumerate(CLASS_NAMES) if name.startswith("date")]


def guess_columns(columns: Sequence[ColumnProfile], unit: str | None = None) -> list[ColumnGuess]:
    """Infer the types of all columns and describe them; ``unit`` identifies the person.

    Raises:
        DataError: A column holds dates that a schema cannot describe, or times of a zone.
    """
    are_texts = [_is_text(column) for column in columns]
    texts = [
        _texts_of(column) for column, is_text in zip(columns, are_texts, strict=True) if is_text
    ]
    classes = iter(classify_columns(texts))
    of_column = [next(classes) if is_text else None for is_text in are_texts]
    guesses = [
        guess_unit_column(column) if column.name == unit else guess_column(column, found)
        for column, found in zip(columns, of_column, strict=True)
    ]
    keys = [
        _whole_numbers(column).positions
        for column, guess in zip(columns, guesses, strict=True)
        if guess.draft.kind == "identifier"
    ]
    return [
        _guess_references(column, guess, keys)
        for column, guess in zip(columns, guesses, strict=True)
    ]


def _guess_references(
    column: ColumnProfile, guess: ColumnGuess, keys: Sequence[Counts]
) -> ColumnGuess:
    """Describe whole numbers that are keys of another column as an identifier."""
    numbers = None if guess.scale != "number" else _whole_numbers(column)
    if numbers is None or not keys or len(numbers.positions) < len(column.values) / 2:
        return guess
    found = (describe_references(column.name, numbers, each, column.rows) for each in keys)
    draft = next((draft for draft in found if draft is not None), None)
    return guess if draft is None else ColumnGuess(draft=draft)


def _whole_numbers(column: ColumnProfile) -> NumericProfile:
    """Profile the whole numbers among the values of a column of text or numbers."""
    values = np.full(len(column.values), np.nan)
    if _is_text(column):
        values = strip_blanks(_texts_of(column)).cast(pl.Float64, strict=False).to_numpy()
    elif column.dtype.is_numeric():
        values = column.values.cast(pl.Float64).to_numpy()
    whole = (np.abs(values) < MAX_EXACT_REAL) & (values == np.floor(values))
    positions = values[whole].astype(np.int64)
    return NumericProfile.from_positions(positions, column.counts[whole], 0)


def guess_column(column: ColumnProfile, classes: CellClasses | None = None) -> ColumnGuess:
    """Infer the type of a column and describe it.

    Args:
        column: The column.
        classes: The class of each distinct text, if they are known already.

    Raises:
        DataError: It holds dates that a schema cannot describe, or times of a zone.
    """
    dtype = column.dtype
    if _is_text(column):
        return _guess_texts(column, classes)
    if is_unsupported(dtype):
        reason = f"columns of type {dtype} are not supported"
        return ColumnGuess(draft=_omit_column(column.name, reason))
    if is_zoned(dtype):
        raise DataError(zone_fault(column.name, dtype))
    if isinstance(dtype, pl.Date | pl.Datetime) and not are_calendar_dates(column.values):
        raise DataError(
            f'column "{column.name}" holds dates outside the years 1 to 9999, which a schema '
            "cannot describe. Correct them, make them missing, or remove the column"
        )
    missing = [""] if column.nulls else []
    if not len(column.values):
        return _guess_constant(column, "")
    if len(column.values) == 1 and not missing and column.rows >= _MIN_ROWS_FOR_CONSTANT:
        return _guess_constant(column, column.values[0])
    return _guess_typed(column, missing)


def _guess_typed(column: ColumnProfile, missing: list[str]) -> ColumnGuess:
    """Describe a column that has a type other than text."""
    dtype = column.dtype
    if dtype == pl.Boolean:
        return ColumnGuess(
            draft=ColumnDraft(name=column.name, kind="boolean", fields=_missing_field(missing))
        )
    if isinstance(dtype, pl.Date | pl.Datetime):
        dates = DateProfile(kind="date" if dtype == pl.Date else "datetime", values=column.values)
        return _guess_dates(column, dates, missing, np.ones(len(column.values), dtype=bool))
    return _guess_typed_numbers(column, missing)


def guess_unit_column(column: ColumnProfile) -> ColumnGuess:
    """Describe the unit column, which identifies the person."""
    missing = [""] if column.nulls else []
    texts: list[str] = []
    if column.values.dtype == pl.String:
        known = classify_cells(column.values) >= len(MISSING_TEXTS)
        missing = _missing_texts(column.values, column.counts, known, nulls=column.nulls)
        texts = column.values.filter(pl.Series(known)).head(_MAX_TEXTS_EXAMINED).to_list()
    fields = (*identifier_fields(texts), *_missing_field(missing))
    return ColumnGuess(draft=ColumnDraft(name=column.name, kind="identifier", fields=fields))


def _is_text(column: ColumnProfile) -> bool:
    return isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum)


def _texts_of(column: ColumnProfile) -> pl.Series:
    return column.values if column.values.dtype == pl.String else column.values.cast(pl.String)


def _guess_texts(column: ColumnProfile, classes: CellClasses | None) -> ColumnGuess:
    """Infer the type of a text column and describe it."""
    texts = _texts_of(column)
    classes = classify_cells(texts) if classes is None else classes
    known = _known_texts(classes)
    if not known.any():
        return _guess_all_missing(column, texts)
    held = texts.filter(pl.Series(known))
    missing = _missing_texts(texts, column.counts, known, nulls=column.nulls)
    if len(held) == 1 and not missing and column.rows >= _MIN_ROWS_FOR_CONSTANT:
        return _guess_constant(column, held[0])
    if pair := _find_boolean_pair(held):
        fields = (DraftField("values", [*pair], FROM_DATA), *_missing_field(missing))
        return ColumnGuess(draft=ColumnDraft(name=column.name, kind="boolean", fields=fields))
    if np.isin(classes[known], _DATE_CLASS_CODES).all() and (dates := parse_date_column(held)):
        return _guess_dates(column, dates, missing, known)
    numeric = np.isin(classes, _NUMERIC_CLASS_CODES) & known
    if strays := _find_strays(held, numeric[known]):
        known, missing = numeric, [*missing, *strays]
    if numeric[known].all():
        guess = _guess_number_texts(column, texts, classes, known, missing)
        if strays:
            guess = replace(guess, draft=guess.draft.plus(notes=(_stray_note(strays),)))
        return guess
    return _guess_words(column, texts, known, missing)


def _guess_words(
    column: ColumnProfile, texts: pl.Series, known: Mask, missing: list[str]
) -> ColumnGuess:
    """Describe texts that are neither numbers nor dates: identifiers or values."""
    held, counts = texts.filter(pl.Series(known)), column.counts[known]
    few = held.head(_MAX_TEXTS_EXAMINED).to_list()
    identifier = describe_identifier(
        column.name, measure_uniqueness(counts), rows=column.rows, texts=few
    )
    order = column.dtype.categories.to_list() if isinstance(column.dtype, pl.Enum) else ()
    return ColumnGuess(
        draft=identifier
        or describe_texts(column.name, held.to_list(), counts, missing, order=order)
    )


def _guess_all_missing(column: ColumnProfile, texts: pl.Series) -> ColumnGuess:
    """Describe a column in which every cell is missing."""
    if len(texts) + bool(column.nulls) == 1:
        return _guess_constant(column, texts[0] if len(texts) else "")
    return ColumnGuess(draft=_omit_column(column.name, "every cell is missing"))


def _known_texts(classes: CellClasses) -> Mask:
    """Mask of the texts that do not mean missing.

    "None" among other words is a value (no debtor, no pet) if another text means missing.
    """
    known: Mask = classes >= len(MISSING_TEXTS)
    words = np.isin(classes[known], [CLASS_INDEX["text"]]).any()
    none = classes == CLASS_INDEX["missing None"]
    if words and (~known & ~none).any():
        known |= none
    return known


def _missing_texts(texts: pl.Series, counts: Counts, known: Mask, *, nulls: int) -> list[str]:
    """List the texts that mean missing, most frequent first; null counts as ""."""
    found = {texts[int(i)]: int(counts[i]) for i in np.flatnonzero(~known)}
    if nulls:
        found[""] = found.get("", 0) + nulls
    return sorted(found, key=lambda text: (-found[text], text))


def _find_boolean_pair(held: pl.Series) -> tuple[str, str] | None:
    """Find the texts for false and true, if the column holds exactly these two."""
    if len(held) != 2:
        return None
    both = set(held)
    return next((pair for pair in (*BOOLEAN_PAIRS, ("0", "1")) if set(pair) == both), None)


def _find_strays(held: pl.Series, numeric: Mask) -> list[str]:
    """Find the few short texts among many numbers that are reasons for a missing number."""
    strays = held.filter(pl.Series(~numeric)).to_list()
    return strays if are_missing_reasons(strays, numbers=int(numeric.sum())) else []


def _stray_note(strays: Sequence[str]) -> str:
    texts, are = ("one text", "is") if len(strays) == 1 else (f"{len(strays)} texts", "are")
    return Note(
        f"{texts} among its numbers {are} taken to mean missing (see missing): please check",
        priority=4,
    )


def _guess_number_texts(
    column: ColumnProfile, texts: pl.Series, classes: CellClasses, known: Mask, missing: list[str]
) -> ColumnGuess:
    """Describe a text column of numbers."""
    held, counts = strip_blanks(texts.filter(pl.Series(known))), column.counts[known]
    kinds = classes[known]
    is_long = bool((kinds == CLASS_INDEX["long"]).any())
    decimals = int((kinds.astype(int) - CLASS_INDEX["decimals 0"]).max(initial=0))
    as_floats = held.cast(pl.Float64)
    if not is_long and decimals == 0:
        # Doubles only for texts such as 7.0: they cannot hold every integer beyond 2^53.
        integers = pl.coalesce(held.cast(pl.Int64, strict=False), as_floats.cast(pl.Int64))
        positions = pl.select(integers).to_series().to_numpy()
        numbers = NumericProfile.from_positions(positions, counts, 0)
    else:
        values = as_floats.to_numpy()
        if not np.abs(values).max() < MAX_EXACT_REAL:
            return ColumnGuess(draft=_omit_column(column.name, _TOO_LARGE))
        numbers = NumericProfile.from_floats(
            values, counts, decimals=max_decimals(values) if is_long else decimals
        )
        # The texts have decimal points, even if only zeros follow.
        numbers = replace(numbers, is_integral=False)
    written = [text for _, text in sorted(zip(as_floats, held, strict=True))]
    if not texts.filter(pl.Series(known)).equals(held):
        written = []  # texts with blanks around them cannot be listed as values
    by_value = np.full(len(texts), np.nan)
    by_value[known] = as_floats.to_numpy()
    return _guess_numbers(column, numbers, by_value, missing, texts=written)


def _guess_typed_numbers(column: ColumnProfile, missing: list[str]) -> ColumnGuess:
    """Describe a column of a numeric type."""
    values = column.values.cast(pl.Float64).to_numpy()
    finite = np.isfinite(values)
    integral = bool((values[finite] == np.floor(values[finite])).all())
    # Floats of whole numbers beyond may once have been other integers, so no run accepts them.
    bound = _INTEGER_BOUND if integral and not column.dtype.is_float() else MAX_EXACT_REAL
    if not finite.any() or np.abs(values[finite]).max() >= bound:
        return ColumnGuess(draft=_omit_column(column.name, _TOO_LARGE))
    counts = column.counts[finite]
    if column.dtype.is_integer():
        positions = column.values.cast(pl.Int64).to_numpy()
        numbers = NumericProfile(positions=positions, counts=counts, decimals=0, is_integral=True)
    else:
        numbers = NumericProfile.from_floats(
            values[finite], counts, decimals=max_decimals(values[finite])
        )
    guess = _guess_numbers(column, numbers, np.where(finite, values, np.nan), missing)
    if not finite.all():
        note = Note("some of its numbers are infinite: their rows will be dropped", priority=2)
        field = DraftField("outside", "drop", "rows with infinite numbers are dropped")
        draft = guess.draft.plus(notes=(note,))
        guess = replace(guess, draft=replace(draft, fields=(*draft.fields, field)))
    return guess


def _guess_numbers(
    column: ColumnProfile,
    numbers: NumericProfile,
    by_value: Reals,
    missing: list[str],
    *,
    texts: Sequence[str] = (),
) -> ColumnGuess:
    """Describe numbers as an identifier or as a measurement.

    Args:
        column: The column.
        numbers: Its numbers.
        by_value: The number of each distinct value of the column; NaN if it has none.
        missing: Texts that mean missing.
        texts: The numbers as written, if the column is text.
    """
    seen = measure_uniqueness(numbers.counts)
    if numbers.is_integral:
        identifier = describe_identifier(column.name, seen, rows=column.rows, numbers=numbers)
        if identifier:
            return ColumnGuess(draft=identifier)
    draft, codes = describe_numbers(column.name, numbers, missing, texts=texts)
    if numbers.is_integral and seen.is_nearly_unique:
        draft = draft.plus(notes=(_NEARLY_UNIQUE_NOTE,))
    elif numbers.is_integral:
        draft = ask_for_unit(draft, numbers.counts)
    by_value = np.where(np.isin(by_value, codes), np.nan, by_value)
    listed = next((field.value for field in draft.fields if field.key == "values"), [])
    if isinstance(listed, list) and any(isinstance(value, str) for value in listed):
        return ColumnGuess(draft=draft)  # constraints cannot compare numbers listed as texts
    return ColumnGuess(draft=draft, scale="number", numbers=by_value, decimals=numbers.decimals)


def _guess_dates(
    column: ColumnProfile, dates: DateProfile, missing: list[str], known: Mask
) -> ColumnGuess:
    draft = describe_dates(column.name, dates, missing)
    if measure_uniqueness(column.counts[known]).is_nearly_unique:
        draft = draft.plus(notes=(_NEARLY_UNIQUE_NOTE,))
    numbers = np.full(len(column.values), np.nan)
    numbers[known] = dates.values.cast(pl.Datetime("us")).dt.epoch("s").to_numpy()
    return ColumnGuess(draft=draft, scale=dates.kind, numbers=numbers)


def _guess_constant(column: ColumnProfile, value: object) -> ColumnGuess:
    """Describe a column with the same value in every row."""
    scalar: TomlScalar
    if isinstance(value, date | datetime):
        dates = DateProfile(
            kind="datetime" if isinstance(value, datetime) else "date", values=column.values
        )
        return _guess_dates(column, dates, [], np.ones(1, dtype=bool))
    if isinstance(value, float | Decimal):
        scalar = Decimal(str(value))
    elif isinstance(value, str) and re.fullmatch(r"0|-?[1-9]\d{0,17}", value):
        scalar = int(value)
    elif isinstance(value, bool | int | str):
        scalar = value
    else:
        return ColumnGuess(draft=_omit_column(column.name, "its only value is not supported"))
    note = Note(
        "every row has the same value, so every record will have it: please check", priority=6
    )
    fields = (DraftField("value", scalar, FROM_DATA),)
    draft = ColumnDraft(name=column.name, kind="constant", fields=fields, notes=(note,))
    return ColumnGuess(draft=draft)


def _omit_column(name: str, reason: str) -> ColumnDraft:
    field = DraftField("release", "omit", "left out")
    note = Note(
        f"{reason}, so the column is left out. Remove it from the table, or describe it yourself",
        priority=2,
    )
    return ColumnDraft(name=name, kind="identifier", fields=(field,), notes=(note,))


def _missing_field(texts: Sequence[str]) -> tuple[DraftField, ...]:
    return (DraftField("missing", [*texts], FROM_DATA),) if texts else ()
