"""Classify text cells by pattern: missing, boolean, number, date, datetime or text.

Plain and private drafts infer a column's type from its counts per class. A cell has exactly one
class, so one row changes one count by one. Blanks around a cell are ignored.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Mask

CellClasses: TypeAlias = NDArray[np.uint8]
TemporalType: TypeAlias = pl.Date | pl.Datetime

# Texts that always mean missing. Numbers that mean missing are found by ``numeric_columns``.
MISSING_TEXTS = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT"),
    *("null", "NULL", "None", "?", "."),
)
# Texts for false and true.
BOOLEAN_PAIRS = (
    *(("false", "true"), ("False", "True"), ("FALSE", "TRUE")),
    *(("no", "yes"), ("No", "Yes"), ("NO", "YES")),
    *(("n", "y"), ("N", "Y"), ("f", "t"), ("F", "T")),
)
_ZERO_AND_ONE = ("0", "1")
# Stands for a cell that no text describes, such as a list or a date in the year 12020.
UNSUPPORTED_CELL = "\0unsupported"
MAX_CLASSIFIED_DECIMALS = 9

_DAY_FIRST = ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y")
_MONTH_FIRST = ("%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y")
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", *_DAY_FIRST, *_MONTH_FIRST)
# Pairs of formats that fit the same text: 1/2/2020 is in January or in February.
AMBIGUOUS_DATE_FORMATS = tuple(zip(_DAY_FIRST, _MONTH_FIRST, strict=True))
_CLOCK_FORMATS = (" %H:%M:%S", " %H:%M")
DATETIME_FORMATS = (
    *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M"),
    *(day + clock for day in DATE_FORMATS for clock in _CLOCK_FORMATS),
    *("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f"),
)
AMBIGUOUS_DATETIME_FORMATS = tuple(
    (one + clock, other + clock)
    for one, other in AMBIGUOUS_DATE_FORMATS
    for clock in _CLOCK_FORMATS
)

# "bit": 0 or 1. "point": an integer written with a decimal point. "long": scientific notation, or
# more decimals than are counted. "zeros": digits with a leading zero, which are codes.
CLASS_NAMES: tuple[str, ...] = (
    *(f"missing {text}" for text in MISSING_TEXTS),
    *(f"pair {no}/{yes}" for no, yes in BOOLEAN_PAIRS),
    "bit",
    "point",
    *(f"decimals {d}" for d in range(MAX_CLASSIFIED_DECIMALS + 1)),
    "long",
    "zeros",
    *(f"date {each}" for each in DATE_FORMATS),
    *(f"date {one} or {other}" for one, other in AMBIGUOUS_DATE_FORMATS),
    *(f"datetime {each}" for each in DATETIME_FORMATS),
    *(f"datetime {one} or {other}" for one, other in AMBIGUOUS_DATETIME_FORMATS),
    "text",
    "unsupported",
)
CLASS_INDEX = {name: number for number, name in enumerate(CLASS_NAMES)}

# Classes of single texts; they take precedence over patterns.
_CLASS_OF_TEXT = {
    **dict.fromkeys(_ZERO_AND_ONE, CLASS_INDEX["bit"]),
    **{text: CLASS_INDEX[f"pair {no}/{yes}"] for no, yes in BOOLEAN_PAIRS for text in (no, yes)},
    **{text: CLASS_INDEX[f"missing {text}"] for text in MISSING_TEXTS},
    UNSUPPORTED_CELL: CLASS_INDEX["unsupported"],
}
_EXACT_TEXTS = pl.Series(list(_CLASS_OF_TEXT), dtype=pl.String)
_EXACT_CLASSES = pl.Series(list(_CLASS_OF_TEXT.values()), dtype=pl.UInt8)
_NO_EXACT_CLASS = 255

# A few short texts among many numbers are reasons for a missing number.
_MAX_STRAY_TEXTS = 3
_MAX_STRAY_LENGTH = 8
_MIN_NUMBERS_PER_STRAY = 5

# Words in the name of a column whose numbers are labels, not amounts.
CODE_WORDS = {
    *("code", "codes", "cd", "zip", "zipcode", "postcode", "postal", "plz"),
    *("icd", "naics", "nace", "sic", "isco", "isic"),
}

_INTEGER = r"^[+-]?\d{1,18}$"
_DECIMAL_FRACTION = r"^[+-]?(\d{1,18}\.\d*|\.\d+)$"
_ZERO_FRACTION = r"\.0*$"
_SCIENTIFIC = r"^[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d{1,2}$"
_LEADING_ZERO = r"^[+-]?0\d"
_DATE_SHAPE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}$"
_DATETIME_SHAPE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[T ]\d{1,2}:\d{2}"


def strip_blanks(texts: pl.Series) -> pl.Series:
    """Remove spaces and tabs around each text."""
    return texts.str.strip_chars(" \t")


def classify_cells(texts: pl.Series) -> CellClasses:
    """Classify each text; a class is an index into ``CLASS_NAMES``."""
    cells = strip_blanks(texts)
    found: CellClasses = np.full(len(cells), CLASS_INDEX["text"], dtype=np.uint8)
    for name, members in _class_masks(cells):
        found[members] = CLASS_INDEX[name]
    exact = cells.replace_strict(
        _EXACT_TEXTS, _EXACT_CLASSES, default=_NO_EXACT_CLASS, return_dtype=pl.UInt8
    ).to_numpy()
    return np.where(exact == _NO_EXACT_CLASS, found, exact)


def classify_columns(columns: Sequence[pl.Series]) -> list[CellClasses]:
    """Classify the texts of several columns at once, which is faster for many short columns."""
    if not columns:
        return []
    texts = pl.concat([column.rename("") for column in columns])
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return np.split(classify_cells(texts), ends)


def is_value_class(name: str) -> bool:
    """Whether the texts of a class are numbers or dates."""
    return name.startswith(("bit", "point", "decimals", "long", "zeros", "date"))


def _class_masks(cells: pl.Series) -> Iterator[tuple[str, Mask]]:
    """Yield classes with masks of their cells; the last class that matches a cell wins."""
    yield from _date_masks(cells, _DATE_SHAPE, DATE_FORMATS, "date", pl.Date())
    yield from _date_masks(cells, _DATETIME_SHAPE, DATETIME_FORMATS, "datetime", pl.Datetime("us"))
    decimals = cells.str.extract(r"\.(\d*)$", 1).str.strip_chars_end("0").str.len_chars()
    decimals = decimals.fill_null(0)
    integer, fraction = _matches(cells, _INTEGER), _matches(cells, _DECIMAL_FRACTION)
    number = integer | fraction
    for d in range(MAX_CLASSIFIED_DECIMALS + 1):
        yield f"decimals {d}", number & (decimals == d).to_numpy()
    # Kept apart from other integers: a column with 7.0 may also hold a rare 7.5.
    yield "point", number & (decimals == 0).to_numpy() & _matches(cells, _ZERO_FRACTION)
    many_decimals = (decimals > MAX_CLASSIFIED_DECIMALS).to_numpy()
    yield "long", (fraction & many_decimals) | _matches(cells, _SCIENTIFIC)
    yield "zeros", _matches(cells, _LEADING_ZERO) & number


def _date_masks(
    cells: pl.Series, shape: str, formats: tuple[str, ...], word: str, dtype: TemporalType
) -> Iterator[tuple[str, Mask]]:
    shaped = _matches(cells, shape)
    if not shaped.any():
        return
    candidates = cells.filter(pl.Series(shaped))
    fits: dict[str, Mask] = {}
    for each in formats:
        fits[each] = shaped.copy()
        fits[each][shaped] = parse_dates(candidates, each, dtype).is_not_null().to_numpy()
        yield f"{word} {each}", fits[each]
    for one, other in AMBIGUOUS_DATE_FORMATS if word == "date" else AMBIGUOUS_DATETIME_FORMATS:
        yield f"{word} {one} or {other}", fits[one] & fits[other]


def parse_dates(texts: pl.Series, text_format: str, dtype: TemporalType) -> pl.Series:
    """Parse dates or datetimes; null if a text does not fit or its year lacks four digits."""
    # %f is nanoseconds in polars and microseconds in Python.
    polars_format = text_format.replace("%f", "%6f")
    dates = strip_blanks(texts).str.strptime(dtype, polars_format, strict=False)
    plausible = dates.dt.year().is_between(1000, 9999).fill_null(value=False)
    return dates.set(~plausible, None) if len(dates) else dates


def _matches(cells: pl.Series, pattern: str) -> Mask:
    mask: Mask = cells.str.contains(pattern).to_numpy()
    return mask


def are_missing_reasons(texts: Sequence[str], *, numbers: int) -> bool:
    """Whether texts in a numeric column are reasons for a missing number.

    "N" among ages is one; "2-10" next to 0 and 1 is a value.

    Args:
        texts: The distinct texts that are not numbers.
        numbers: How many distinct numbers the column has.
    """
    few = 0 < len(texts) <= _MAX_STRAY_TEXTS
    short = all(len(text) <= _MAX_STRAY_LENGTH and text == text.strip() for text in texts)
    letters = all(not text[:1].isdigit() for text in texts)
    return few and short and letters and numbers >= _MIN_NUMBERS_PER_STRAY * len(texts)


def split_name(name: str) -> set[str]:
    """Split a column's name into its words, in lower case."""
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return set(re.findall(r"[^\W\d_]+", words.lower()))
