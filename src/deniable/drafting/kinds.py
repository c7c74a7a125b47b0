"""What kind of column is this? From its distinct values, all of them, to a description."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import polars as pl

from deniable.arrays import Counts, Mask, Reals
from deniable.drafting.attributes import READ, Described, Field, Guess, Plain
from deniable.drafting.categories import describe_texts
from deniable.drafting.cells import (
    CLASS,
    MISSING,
    NAMES,
    PAIRS,
    Classes,
    are_reasons,
    classes_of,
    stripped,
)
from deniable.drafting.columns import Column, is_foreign
from deniable.drafting.dates import Moments, describe_moments, read_moments
from deniable.drafting.figures import LARGEST_REAL, Numbers, decimals_of, describe_numbers
from deniable.drafting.identity import describe_identifier, release_fields, uniqueness

# Beyond it a whole number does not fit a schema.
_LARGEST = 2**62
# That so many rows agree is no chance.
_ENOUGH = 20

_TOO_LARGE = "its numbers are too large to be kept apart"
_NEARLY_UNIQUE = (
    "hardly two rows have the same value: it is learnt as a measurement. If it names somebody, "
    "make it an identifier; if nobody needs it so fine, bring it to a coarser grid"
)

_NUMBERS = ("bit", "point", "decimals", "long")
_NUMERIC = [n for n, name in enumerate(NAMES) if name.startswith(_NUMBERS)]
_MOMENTS = [n for n, name in enumerate(NAMES) if name.startswith("date")]


def guess(column: Column) -> Guess:
    """Return what a column holds, as far as its cells tell."""
    dtype = column.dtype
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return _guess_texts(column)
    if is_foreign(dtype):
        why = f"a column of type {dtype} has no description here"
        return Guess(described=_left_out(column.name, why))
    missing = [""] if column.nulls else []
    if not len(column.values):
        return _guess_constant(column, "")
    if len(column.values) == 1 and not missing and column.rows >= _ENOUGH:
        return _guess_constant(column, column.values[0])
    return _guess_typed(column, missing)


def _guess_typed(column: Column, missing: list[str]) -> Guess:
    """Return what a column holds that has a type of its own."""
    dtype = column.dtype
    if dtype == pl.Boolean:
        return Guess(
            described=Described(name=column.name, kind="boolean", fields=_missing(missing))
        )
    if isinstance(dtype, pl.Date | pl.Datetime):
        moments = Moments(kind="date" if dtype == pl.Date else "datetime", values=column.values)
        return _guess_moments(column, moments, missing, np.ones(len(column.values), dtype=bool))
    return _guess_typed_numbers(column, missing)


def guess_unit(column: Column) -> Guess:
    """Return the description of the column that was said to name the person."""
    missing = [""] if column.nulls else []
    texts: list[str] = []
    if column.values.dtype == pl.String:
        known = classes_of(column.values) >= len(MISSING)
        missing = _missing_texts(column.values, column.counts, known, nulls=column.nulls)
        texts = column.values.filter(pl.Series(known)).head(1_000).to_list()
    fields = (*release_fields(texts), *_missing(missing))
    return Guess(described=Described(name=column.name, kind="identifier", fields=fields))


def _guess_texts(column: Column) -> Guess:
    """Return what a column of text holds."""
    texts = column.values if column.values.dtype == pl.String else column.values.cast(pl.String)
    classes = classes_of(texts)
    known = _is_known(classes)
    if not known.any():
        return _guess_nothing(column, texts)
    held, counts = texts.filter(pl.Series(known)), column.counts[known]
    missing = _missing_texts(texts, column.counts, known, nulls=column.nulls)
    if len(held) == 1 and not missing and column.rows >= _ENOUGH:
        return _guess_constant(column, held[0])
    if pair := _pair_of(held):
        fields = (Field("values", [*pair], READ), *_missing(missing))
        return Guess(described=Described(name=column.name, kind="boolean", fields=fields))
    if np.isin(classes[known], _MOMENTS).all() and (moments := read_moments(held)):
        return _guess_moments(column, moments, missing, known)
    numeric = np.isin(classes, _NUMERIC) & known
    if strays := _strays_among(held, numeric[known]):
        known, missing = numeric, [*missing, *strays]
    if numeric[known].all():
        found = _guess_written_numbers(column, texts, classes, known, missing)
        if strays:
            found = replace(found, described=found.described.plus(notes=(_stray_note(strays),)))
        return found
    few = held.head(1_000).to_list()
    named = describe_identifier(column.name, uniqueness(counts), rows=column.rows, texts=few)
    return Guess(described=named or describe_texts(column.name, held.to_list(), counts, missing))


def _guess_nothing(column: Column, texts: pl.Series) -> Guess:
    """Return a column in which every cell is missing."""
    if len(texts) + bool(column.nulls) == 1:
        return _guess_constant(column, texts[0] if len(texts) else "")
    return Guess(described=_left_out(column.name, "every cell is missing"))


def _is_known(classes: Classes) -> Mask:
    """Return which texts do not mean missing.

    Where something else says missing, "None" among other words is a value: no debtor, no pet.
    """
    known: Mask = classes >= len(MISSING)
    words = np.isin(classes[known], [CLASS["text"]]).any()
    none = classes == CLASS["missing None"]
    if words and (~known & ~none).any():
        known |= none
    return known


def _missing_texts(texts: pl.Series, counts: Counts, known: Mask, *, nulls: int) -> list[str]:
    """Return the texts that mean missing, the most frequent first; null is written as ""."""
    found = {texts[int(i)]: int(counts[i]) for i in np.flatnonzero(~known)}
    if nulls:
        found[""] = found.get("", 0) + nulls
    return sorted(found, key=lambda text: (-found[text], text))


def _pair_of(held: pl.Series) -> tuple[str, str] | None:
    """Return the texts of false and true, where a column holds these two and no other."""
    if len(held) != 2:
        return None
    both = set(held)
    return next((pair for pair in (*PAIRS, ("0", "1")) if set(pair) == both), None)


def _strays_among(held: pl.Series, numeric: Mask) -> list[str]:
    """Return the few short texts among many numbers; none if it is another mixture."""
    strays = held.filter(pl.Series(~numeric)).to_list()
    return strays if are_reasons(strays, numbers=int(numeric.sum())) else []


def _stray_note(strays: Sequence[str]) -> str:
    many = "one text" if len(strays) == 1 else f"{len(strays)} texts"
    return (
        f"{many} among its numbers {'is' if len(strays) == 1 else 'are'} taken to mean missing "
        "(see missing): check"
    )


def _guess_written_numbers(
    column: Column, texts: pl.Series, classes: Classes, known: Mask, missing: list[str]
) -> Guess:
    """Return what a column of numbers written as text holds."""
    held, counts = stripped(texts.filter(pl.Series(known))), column.counts[known]
    kinds = classes[known]
    is_long = bool((kinds == CLASS["long"]).any())
    most = int((kinds.astype(int) - CLASS["decimals 0"]).max(initial=0))
    if not is_long and most == 0:
        # By way of doubles only where it must be: these cut whole numbers beyond 2^53.
        whole = pl.coalesce(held.cast(pl.Int64, strict=False), held.cast(pl.Float64).cast(pl.Int64))
        positions = pl.select(whole).to_series().to_numpy()
        numbers = Numbers.merged(positions, counts, 0)
    else:
        values = held.cast(pl.Float64).to_numpy()
        if not np.abs(values).max() < LARGEST_REAL:
            return Guess(described=_left_out(column.name, _TOO_LARGE))
        numbers = Numbers.of(values, counts, decimals=decimals_of(values) if is_long else most)
        numbers = replace(numbers, whole=False)  # its texts have points, even if nothing follows
    written = [text for _, text in sorted(zip(held.cast(pl.Float64), held, strict=True))]
    if not texts.filter(pl.Series(known)).equals(held):
        written = []  # a list of texts knows no blanks around them
    every = np.full(len(texts), np.nan)
    every[known] = held.cast(pl.Float64).to_numpy()
    return _guess_numbers(column, numbers, every, missing, texts=written)


def _guess_typed_numbers(column: Column, missing: list[str]) -> Guess:
    """Return what a column of numbers holds."""
    values = column.values.cast(pl.Float64).to_numpy()
    finite = np.isfinite(values)
    whole = bool((values[finite] == np.floor(values[finite])).all())
    largest = _LARGEST if whole else LARGEST_REAL
    if not finite.any() or np.abs(values[finite]).max() >= largest:
        return Guess(described=_left_out(column.name, _TOO_LARGE))
    counts = column.counts[finite]
    if column.dtype.is_integer():
        positions = column.values.cast(pl.Int64).to_numpy()
        numbers = Numbers(positions=positions, counts=counts, decimals=0, whole=True)
    else:
        numbers = Numbers.of(values[finite], counts, decimals=decimals_of(values[finite]))
    found = _guess_numbers(column, numbers, np.where(finite, values, np.nan), missing)
    if not finite.all():
        note = "some of its numbers are infinite: their rows will be left out"
        field = Field("outside", "drop", "infinite numbers leave their row out")
        described = found.described.plus(notes=(note,))
        found = replace(found, described=replace(described, fields=(*described.fields, field)))
    return found


def _guess_numbers(
    column: Column, numbers: Numbers, every: Reals, missing: list[str], *, texts: Sequence[str] = ()
) -> Guess:
    """Return numbers as an identifier or as what they measure."""
    if numbers.whole:
        ends, seen = (numbers.low, numbers.high), uniqueness(numbers.counts)
        if named := describe_identifier(column.name, seen, rows=column.rows, ends=ends):
            return Guess(described=named)
    described, codes = describe_numbers(column.name, numbers, missing, texts=texts)
    if numbers.whole and uniqueness(numbers.counts).is_near:
        described = described.plus(notes=(_NEARLY_UNIQUE,))
    every = np.where(np.isin(every, codes), np.nan, every)
    if described.kind == "ordered" and not numbers.whole:
        return Guess(described=described)  # numbers as texts are no numbers to a constraint
    return Guess(described=described, scale="number", numbers=every, decimals=numbers.decimals)


def _guess_moments(column: Column, moments: Moments, missing: list[str], known: Mask) -> Guess:
    described = describe_moments(column.name, moments, missing)
    if uniqueness(column.counts[known]).is_near:
        described = described.plus(notes=(_NEARLY_UNIQUE,))
    numbers = np.full(len(column.values), np.nan)
    numbers[known] = moments.values.cast(pl.Datetime("us")).dt.epoch("s").to_numpy()
    return Guess(described=described, scale=moments.kind, numbers=numbers)


def _guess_constant(column: Column, value: object) -> Guess:
    """Return a column that holds one value in every row."""
    plain: Plain
    if isinstance(value, date | datetime):
        moments = Moments(
            kind="datetime" if isinstance(value, datetime) else "date", values=column.values
        )
        return _guess_moments(column, moments, [], np.ones(1, dtype=bool))
    if isinstance(value, float | Decimal):
        plain = Decimal(str(value))
    elif isinstance(value, str) and re.fullmatch(r"0|-?[1-9]\d{0,17}", value):
        plain = int(value)
    elif isinstance(value, bool | int | str):
        plain = value
    else:
        return Guess(described=_left_out(column.name, "its one value has no description here"))
    note = "it has the same value in every row, and so has every record: check that this is meant"
    fields = (Field("value", plain, READ),)
    described = Described(name=column.name, kind="constant", fields=fields, notes=(note,))
    return Guess(described=described)


def _left_out(name: str, why: str) -> Described:
    field = Field("release", "omit", "left out")
    note = f"{why}: it is left out. Remove the column, or describe it yourself"
    return Described(name=name, kind="identifier", fields=(field,), notes=(note,))


def _missing(texts: Sequence[str]) -> tuple[Field, ...]:
    return (Field("missing", [*texts], READ),) if texts else ()
