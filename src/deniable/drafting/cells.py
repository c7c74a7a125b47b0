"""What a cell of text looks like: one class each, so that a row moves one count of a column.

Both drafts, the plain and the private one, know a column by how many of its cells are in which
class. Blanks around a cell do not count.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Mask

Classes: TypeAlias = NDArray[np.uint8]
Moment: TypeAlias = pl.Date | pl.Datetime

# What means missing wherever it stands; which number does depends on the other numbers.
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT"),
    *("null", "NULL", "None", "?", "."),
)
# The texts of false and true.
PAIRS = (
    *(("false", "true"), ("False", "True"), ("FALSE", "TRUE")),
    *(("no", "yes"), ("No", "Yes"), ("NO", "YES")),
    *(("n", "y"), ("N", "Y"), ("f", "t"), ("F", "T")),
)
BITS = ("0", "1")
MOST_DECIMALS = 9

_DAY_FIRST = ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y")
_MONTH_FIRST = ("%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y")
DATES = ("%Y-%m-%d", "%Y/%m/%d", *_DAY_FIRST, *_MONTH_FIRST)
# Several formats read the same text: 1/2/2020 is a day in January or in February.
EITHER = tuple(zip(_DAY_FIRST, _MONTH_FIRST, strict=True))
_CLOCKS = (" %H:%M:%S", " %H:%M")
DATETIMES = (
    *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M"),
    *(day + clock for day in DATES for clock in _CLOCKS),
    *("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f"),
)
EITHER_MOMENT = tuple((one + clock, other + clock) for one, other in EITHER for clock in _CLOCKS)

NAMES: tuple[str, ...] = (
    *(f"missing {text}" for text in MISSING),
    *(f"pair {no}/{yes}" for no, yes in PAIRS),
    "bit",
    "point",
    *(f"decimals {d}" for d in range(MOST_DECIMALS + 1)),
    "long",
    "zeros",
    *(f"date {form}" for form in DATES),
    *(f"date {one} or {other}" for one, other in EITHER),
    *(f"datetime {form}" for form in DATETIMES),
    *(f"datetime {one} or {other}" for one, other in EITHER_MOMENT),
    "text",
)
CLASS = {name: number for number, name in enumerate(NAMES)}

# A few short texts among numbers are reasons why there is no number.
_MOST_STRAYS = 3
_STRAY_LENGTH = 8
_PER_STRAY = 5

# Words in the name of a column whose numbers are labels: nobody adds them up.
CODE_WORDS = {
    *("code", "codes", "cd", "zip", "zipcode", "postcode", "postal", "plz"),
    *("icd", "naics", "nace", "sic", "isco", "isic"),
}

_WHOLE = r"^[+-]?\d{1,18}$"
_REAL = r"^[+-]?(\d{1,18}\.\d*|\.\d+)$"
_POINT = r"\.0*$"
_LONG = r"^[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d{1,2}$"
_ZEROS = r"^[+-]?0\d"
_LIKE_DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}$"
_LIKE_MOMENT = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[T ]\d{1,2}:\d{2}"


def stripped(texts: pl.Series) -> pl.Series:
    """Return the texts without the blanks around them."""
    return texts.str.strip_chars(" \t")


def classes_of(texts: pl.Series) -> Classes:
    """Return the class of each text, as a place in ``NAMES``. Each has exactly one."""
    cells = stripped(texts)
    found: Classes = np.full(len(cells), CLASS["text"], dtype=np.uint8)
    for name, members in _masks(cells):
        found[members] = CLASS[name]
    return found


def _masks(cells: pl.Series) -> Iterator[tuple[str, Mask]]:
    """Yield classes with their members; where two claim a cell, the later has it."""
    yield from _dates(cells, _LIKE_DATE, DATES, "date", pl.Date())
    yield from _dates(cells, _LIKE_MOMENT, DATETIMES, "datetime", pl.Datetime("us"))
    decimals = cells.str.extract(r"\.(\d*)$", 1).str.strip_chars_end("0").str.len_chars()
    decimals = decimals.fill_null(0)
    whole, real = _matches(cells, _WHOLE), _matches(cells, _REAL)
    for d in range(MOST_DECIMALS + 1):
        yield f"decimals {d}", (whole | real) & (decimals == d).to_numpy()
    # Whole, but a number like 7.5 may be rare beside 7.0: beside 7 nobody expects one.
    yield "point", (whole | real) & (decimals == 0).to_numpy() & _matches(cells, _POINT)
    yield "long", (real & (decimals > MOST_DECIMALS).to_numpy()) | _matches(cells, _LONG)
    yield "zeros", _matches(cells, _ZEROS) & (whole | real)
    yield "bit", _among(cells, BITS)
    for no, yes in PAIRS:
        yield f"pair {no}/{yes}", _among(cells, (no, yes))
    for text in MISSING:
        yield f"missing {text}", _among(cells, (text,))


def _dates(
    cells: pl.Series, like: str, forms: tuple[str, ...], word: str, dtype: Moment
) -> Iterator[tuple[str, Mask]]:
    alike = _matches(cells, like)
    if not alike.any():
        return
    suspects = cells.filter(pl.Series(alike))
    reads: dict[str, Mask] = {}
    for form in forms:
        reads[form] = alike.copy()
        reads[form][alike] = parsed(suspects, form, dtype).is_not_null().to_numpy()
        yield f"{word} {form}", reads[form]
    for one, other in EITHER if word == "date" else EITHER_MOMENT:
        yield f"{word} {one} or {other}", reads[one] & reads[other]


def parsed(texts: pl.Series, form: str, dtype: Moment) -> pl.Series:
    """Return the days or moments that texts say in this format; null where they do not.

    A year is of this era: of four digits.
    """
    # polars counts nanoseconds where Python counts microseconds.
    moments = stripped(texts).str.strptime(dtype, form.replace("%f", "%6f"), strict=False)
    sensible = moments.dt.year().is_between(1000, 9999).fill_null(value=False)
    return moments.set(~sensible, None) if len(moments) else moments


def _matches(cells: pl.Series, pattern: str) -> Mask:
    mask: Mask = cells.str.contains(pattern).to_numpy()
    return mask


def _among(cells: pl.Series, texts: tuple[str, ...]) -> Mask:
    mask: Mask = cells.is_in(list(texts)).to_numpy()
    return mask


def are_reasons(texts: Sequence[str], *, numbers: int) -> bool:
    """Return whether a few words among so many different numbers say why there is no number.

    "N" among ages does; "2-10" beside 0 and 1 is a value like these.
    """
    few = 0 < len(texts) <= _MOST_STRAYS
    short = all(len(text) <= _STRAY_LENGTH and text == text.strip() for text in texts)
    letters = all(not text[:1].isdigit() for text in texts)
    return few and short and letters and numbers >= _PER_STRAY * len(texts)


def words_of(name: str) -> set[str]:
    """Return the words that a column's name is made of, in small letters."""
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return set(re.findall(r"[^\W\d_]+", parted.lower()))
