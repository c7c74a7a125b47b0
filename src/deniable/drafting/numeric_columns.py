"""Numeric columns of a draft: bounds, grid, bins, and numeric codes for missing."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import CODE_WORDS, split_name
from deniable.drafting.description import (
    FROM_DATA,
    FROM_DATA_ROUNDED,
    ColumnDraft,
    DraftField,
    Kind,
    Note,
    TomlScalar,
)
from deniable.drafting.numeric_profile import NumericProfile
from deniable.drafting.round_numbers import nice_near, round_outward
from deniable.drafting.text_columns import MAX_LISTED_TEXTS, MIN_FREQUENT_ROWS, describe_frequent
from deniable.schema.bins import MAX_UNBINNED_POSITIONS, leading_digit_starts

# Surveys write these numbers where there is no answer. Nines may also be a top code: "99 or more".
_NEGATIVE_MISSING_CODES = (-7, -8, -9, -77, -88, -99, -777, -888, -999, -9999)
_NINES_AS_MISSING = (99, 999, 9999)
_NINES_AS_TOP_CODES = (*_NINES_AS_MISSING, 99_999, 999_999)

# Largest integer that a schema accepts.
_MAX_SCHEMA_INTEGER = 2**62 - 1
# At most this many whole numbers, far apart, are a list of values rather than a range.
_MAX_LISTED_NUMBERS = 50
_MAX_RARE_SHARE = 0.25
# More numbers are codes if they are far apart or the header says so, and if this share of the rows
# has frequent ones. Most counts and amounts are rare.
_MIN_FREQUENT_CODES_SHARE = 0.9
# Fewer numbers are a step apart by chance.
_MIN_GRID_NUMBERS = 5
# At most this many integers, each in at least this many rows, are a list if others between them are
# missing: -1 and 1, or 1, 2, 3 and 9.
_MAX_CODES_WITH_GAPS = 20
_MIN_ROWS_OF_CODE = 20
# A spike is a number with at least this many rows, such as a monthly rate or a tariff. Spikes get
# bins of their own if they hold this share of the rows in wide bins, and if this share of those
# rows exceeds an even spread within the bins. A number with fewer rows is never named.
_MIN_SPIKE_ROWS = 20
_MIN_SPIKE_SHARE = 0.5
_MIN_UNEVEN_SHARE = 0.2
# Else a number gets one if it holds these shares of all rows and of the rows in its bin.
_MIN_FREQUENT_SHARE = 0.02
_MIN_SHARE_OF_BIN = 0.5
# Heaping is modelled only in tables of at least this many rows, with this share of them in wide
# bins: in smaller ones the extra attribute costs the others more than it gains.
_MIN_ROWS_FOR_HEAPING = 10_000
_MIN_WIDE_BIN_SHARE = 0.1
# Share of all rows that a heaping step must attract, and share of the rows not there by chance.
_MIN_HEAP_SHARE = 0.02
_MIN_HEAP_EXCESS = 0.2

_ONLY_THESE = "only these numbers occur: if others may occur, make it a range (min, max)"
_CODES = (
    "its numbers look like codes, so each is a value of its own: if they are amounts, make it an "
    "integer (min, max); if they are codes, take the values from the official list"
)


def describe_numbers(
    name: str, numbers: NumericProfile, missing: Sequence[str], *, texts: Sequence[str] = ()
) -> tuple[ColumnDraft, list[int]]:
    """Describe a numeric column; also return the numbers taken as codes for missing.

    Args:
        name: The column's header.
        numbers: The column's numbers. Confidential.
        missing: Texts that mean missing in this column.
        texts: The numbers as written, if the column is text.
    """
    numbers, codes, notes = _split_missing_codes(numbers)
    missing = [*missing, *map(str, codes)]
    missing_field = [DraftField("missing", [*missing], FROM_DATA)] if missing else []
    if codes:
        are = "is" if len(codes) == 1 else "are"
        notes.append(
            Note(
                f"{' and '.join(map(str, codes))} {are} taken to mean missing: please check. All "
                "missing cells are written as the first text under missing",
                priority=4,
            )
        )
    if listed := _list_fields(name, numbers, texts) or _code_fields(name, numbers, missing, texts):
        kind, fields, more_notes = listed
    else:
        kind, fields, more_notes = _range_fields(numbers, codes, is_text=bool(texts))
        if kind == "integer" and _have_points(texts):
            # Integers in a column that once held floats.
            step = DraftField("step", Decimal("1.0"), "integers written with a decimal point")
            kind, fields = "real", [*fields[:2], step, *fields[2:]]
    if numbers.is_rounded:
        notes.append(
            f"its numbers have many decimals and are rounded to {numbers.decimals}: choose decimals"
        )
    draft = ColumnDraft(
        name=name,
        kind=kind,
        fields=(*fields, *missing_field),
        remarks=_clip_remark(numbers) if kind in ("real", "integer") else (),
        notes=(*more_notes, *notes),
    )
    return draft, codes


def _have_points(texts: Sequence[str]) -> bool:
    """Whether all integers are written with a decimal point, such as 162000.0."""
    return bool(texts) and all(text.endswith(".0") for text in texts)


def _split_missing_codes(numbers: NumericProfile) -> tuple[NumericProfile, list[int], list[str]]:
    """Separate codes for missing from the numbers; add notes on doubtful codes."""
    unit = 10**numbers.decimals
    codes: list[int] = []
    integers = {int(p) // unit for p in numbers.positions if int(p) % unit == 0}
    for code in (*_NEGATIVE_MISSING_CODES, *sorted(_NINES_AS_MISSING, reverse=True)):
        if code in integers and _is_missing_code(numbers, code * unit):
            codes.append(code)
            numbers = numbers.select(numbers.positions != code * unit)
    notes = []
    top_codes = [nines for nines in _NINES_AS_TOP_CODES if nines * unit == numbers.high]
    if top_codes and numbers.counts[-1] > 2 * np.median(numbers.counts):
        notes.append(
            f"many rows have {top_codes[0]}: if it means missing, add it to missing and lower max; "
            f'if it means "{top_codes[0]} or more", leave it'
        )
    return numbers, codes, notes


def _is_missing_code(numbers: NumericProfile, code: int) -> bool:
    """Whether a code stands out: negative where only codes are, or far above all other numbers."""
    others = numbers.positions[numbers.positions != code]
    if len(others) < 2:
        return False
    if code < 0:
        negative_codes = [c * 10**numbers.decimals for c in _NEGATIVE_MISSING_CODES]
        return bool(np.isin(others[others < 0], negative_codes).all())
    return bool(code > others[-1] and code - others[-1] > others[-1] - others[0])


def _list_fields(
    name: str, numbers: NumericProfile, texts: Sequence[str]
) -> tuple[Kind, list[DraftField], list[str]] | None:
    """Describe a few whole numbers as a list of values; None if they are not one.

    Numbers with decimals are measurements, however few of them a table has. By its header alone a
    column is a list only if none of its numbers is rare; by its shape, if few are.
    """
    distinct = len(numbers.positions)
    if not numbers.is_integral or distinct > _MAX_LISTED_NUMBERS:
        return None
    rare = int((numbers.counts < MIN_FREQUENT_ROWS).sum())
    is_coarse = _coarse_step(numbers, origin=numbers.low, most=_MAX_LISTED_NUMBERS) > 1
    is_list = is_coarse or _are_far_apart(numbers) or _has_gaps(numbers)
    is_list = is_list and rare <= _MAX_RARE_SHARE * distinct
    if not (is_list and numbers.rows >= 10 * distinct) and (rare or not _has_code_name(name)):
        return None
    as_written = _have_points(texts)
    if as_written and len(texts) != distinct:
        return None
    values: list[TomlScalar] = [*texts] if as_written else [int(p) for p in numbers.positions]
    notes = [_ONLY_THESE]
    if rare:
        notes.append(
            f"{rare:,} of its {distinct:,} listed numbers {'is' if rare == 1 else 'are'} rare "
            f"(fewer than {MIN_FREQUENT_ROWS} rows), and the list discloses that they occur"
        )
    return "ordered", [DraftField("values", values, FROM_DATA)], notes


def _code_fields(
    name: str, numbers: NumericProfile, missing: Sequence[str], texts: Sequence[str]
) -> tuple[Kind, list[DraftField], list[str]] | None:
    """Describe many whole numbers as codes; None if they are amounts, or cannot be told from them.

    A list has no rare codes. With them, or with too many, a column whose header says that it has
    codes is text, where all rare ones become one; any other is a range.
    """
    distinct = len(numbers.positions)
    if not numbers.is_integral or distinct <= _MAX_LISTED_NUMBERS:
        return None
    named = _has_code_name(name) and numbers.high - numbers.low >= 2 * distinct
    if not named and (numbers.is_skewed or not _are_sparse_codes(numbers)):
        return None
    frequent = numbers.counts >= MIN_FREQUENT_ROWS
    if frequent.all() and distinct <= MAX_LISTED_TEXTS and not _have_points(texts):
        fields = [DraftField("values", [int(p) for p in numbers.positions], FROM_DATA)]
        note = f"{_ONLY_THESE}; if they are codes without an order, make it categorical"
        return ("categorical", fields, [_CODES]) if named else ("ordered", fields, [note])
    if not named:
        return None  # as a range, what follows from the number still can
    written = {int(float(text)): text for text in texts}
    values = [written.get(int(p), "") for p in numbers.positions]
    is_exact = len(written) == len(texts) and "" not in values
    share = int(numbers.counts[frequent].sum()) / numbers.rows
    if not is_exact or share < _MIN_FREQUENT_CODES_SHARE:
        return None
    draft = describe_frequent(name, values, numbers.counts, missing)
    fields = [field for field in draft.fields if field.key != "missing"]
    return draft.kind, fields, [*draft.notes]


def _are_sparse_codes(numbers: NumericProfile) -> bool:
    """Whether numbers are far apart, have several rows each, and are not on a grid."""
    distinct = len(numbers.positions)
    is_even = _coarse_step(numbers, origin=numbers.low, most=distinct) > 1
    return numbers.rows >= 10 * distinct and _are_far_apart(numbers) and not is_even


def _has_code_name(name: str) -> bool:
    """Whether a column has the name of one with codes."""
    return bool(split_name(name) & CODE_WORDS)


def _are_far_apart(numbers: NumericProfile) -> bool:
    """Whether there are many more positions than numbers."""
    span = numbers.high - numbers.low
    return span >= 10 * len(numbers.positions) and span >= MAX_UNBINNED_POSITIONS


def _coarse_step(numbers: NumericProfile, *, origin: int, most: float) -> int:
    """The step of numbers far apart: 0, 10, 20, …, or every other year; else 1.

    As a range with a step of 1, the numbers between them would occur in records, too.

    Args:
        numbers: The numbers.
        origin: The position from which steps are counted.
        most: More numbers have no step.
    """
    distinct = len(numbers.positions)
    few = _MIN_GRID_NUMBERS <= distinct <= min(most, numbers.rows / 10)
    step = math.gcd(*(int(p) - origin for p in numbers.positions)) if few else 1
    return step if numbers.high - numbers.low < 2 * step * distinct else 1


def _range_step(numbers: NumericProfile, *, is_text: bool) -> int:
    """The step of which all numbers are multiples, if a range should have it; else 1.

    With one, records of a typed column of integers would have floats.
    """
    if not numbers.is_integral:
        return _coarse_step(numbers, origin=0, most=_MAX_LISTED_NUMBERS)
    if not is_text or len(numbers.positions) <= _MAX_LISTED_NUMBERS:
        return 1
    step = math.gcd(*numbers.positions.tolist())
    return step if numbers.high - numbers.low < step * MAX_UNBINNED_POSITIONS else 1


def _step_fields(numbers: NumericProfile, codes: Sequence[int], step: int) -> list[DraftField]:
    """Describe numbers as a range of multiples of a step."""
    found = numbers.low // step, numbers.high // step
    low, high = round_outward(*found)
    for code in (code * 10**numbers.decimals for code in codes):
        if code < numbers.low:
            low = max(low, code // step + 1)
        else:
            high = min(high, -(-code // step) - 1)
    ends = [
        DraftField(
            key,
            _to_number(end * step, numbers.decimals),
            FROM_DATA if end == own else FROM_DATA_ROUNDED,
        )
        for key, end, own in zip(("min", "max"), (low, high), found, strict=True)
    ]
    size = _to_number(step, numbers.decimals)
    return [*ends, DraftField("step", size, "all numbers are multiples of it")]


def _has_gaps(numbers: NumericProfile) -> bool:
    """Whether the numbers are a few frequent codes with gaps between them.

    As a range, the codes between them would occur in some records, too. One record of a third value
    is enough to change the degrees of freedom of a two-way table.
    """
    distinct = len(numbers.positions)
    return (
        2 <= distinct <= _MAX_CODES_WITH_GAPS
        and distinct <= numbers.high - numbers.low
        and int(numbers.counts.min()) >= _MIN_ROWS_OF_CODE
    )


def _range_fields(
    numbers: NumericProfile, codes: Sequence[int], *, is_text: bool
) -> tuple[Kind, list[DraftField], list[str]]:
    """Describe the numbers as a range with bounds and, if it is wide, bins."""
    if (common := _range_step(numbers, is_text=is_text)) > 1:
        return "real", _step_fields(numbers, codes, common), []
    low, high = _round_bounds(numbers, codes)
    decimals = None if numbers.is_integral else numbers.decimals
    comments = (
        FROM_DATA if low == numbers.low else FROM_DATA_ROUNDED,
        FROM_DATA if high == numbers.high else FROM_DATA_ROUNDED,
    )
    fields = number_range_fields(
        low, high, decimals=decimals, skewed=numbers.is_skewed, comments=comments
    )
    has_bins = "bins" in (field.key for field in fields)
    # Few numbers are multiples of a step by chance.
    are_many = len(numbers.positions) > _MAX_LISTED_NUMBERS
    if has_bins and are_many and (steps := _find_heaping_steps(numbers)):
        heaps: list[TomlScalar] = [_to_number(step, decimals) for step in steps]
        fields.append(DraftField("heaps", heaps, "many numbers are multiples of these"))
    elif has_bins and (edges := _spike_edges(numbers, low, high)):
        bins = DraftField(
            "bins",
            {"edges": [_to_number(edge, decimals) for edge in edges]},
            f"a number with at least {_MIN_SPIKE_ROWS} rows has its own bin",
        )
        fields = [bins if field.key == "bins" else field for field in fields]
    elif has_bins and (frequent := _frequent_numbers(numbers)):
        fields = [_with_alone(field, frequent, decimals) for field in fields]
    notes = []
    if 20 < high - low <= 30 and numbers.is_integral:
        notes.append("if its numbers are codes without an order, make it categorical")
    return "integer" if numbers.is_integral else "real", fields, notes


def _with_alone(field: DraftField, numbers: Sequence[int], decimals: int | None) -> DraftField:
    """Give numbers bins of their own, if the field is that of the bins."""
    if field.key != "bins" or not isinstance(field.value, dict):
        return field
    alone: list[TomlScalar] = [_to_number(number, decimals) for number in numbers]
    return replace(field, value={**field.value, "alone": alone})


def _round_bounds(numbers: NumericProfile, codes: Sequence[int]) -> tuple[int, int]:
    """Round the bounds outward, but not as far as a code for missing."""
    low, high = (
        max(-_MAX_SCHEMA_INTEGER, min(end, _MAX_SCHEMA_INTEGER))
        for end in round_outward(numbers.low, numbers.high)
    )
    for code in (code * 10**numbers.decimals for code in codes):
        if code < numbers.low:
            low = max(low, code + 1)
        else:
            high = min(high, code - 1)
    return low, high


def number_range_fields(
    low: int,
    high: int,
    *,
    decimals: int | None,
    skewed: bool,
    comments: tuple[str, str],
) -> list[DraftField]:
    """Write bounds as TOML fields, with bins if the range is wide.

    Args:
        low: Lower bound, on a grid of 10^-decimals.
        high: Upper bound.
        decimals: Decimals of the grid; None for integers.
        skewed: Whether larger numbers have fewer rows.
        comments: Where each bound comes from.
    """
    fields = [
        DraftField("min", _to_number(low, decimals), comments[0]),
        DraftField("max", _to_number(high, decimals), comments[1]),
    ]
    if decimals is not None:
        comment = FROM_DATA if FROM_DATA in comments[0] else comments[0]
        fields.append(DraftField("decimals", decimals, comment))
    span = high - low + 1
    if span > MAX_UNBINNED_POSITIONS and skewed:
        comment = "numbers with the same two leading digits"
        return [*fields, DraftField("bins", {"digits": 2}, comment)]
    if span > MAX_UNBINNED_POSITIONS:
        bins = {"width": _to_number(nice_near(span / 1_000), decimals)}
        fields.append(DraftField("bins", bins, "numbers in a bin are equally likely"))
    return fields


def _to_number(position: int, decimals: int | None) -> int | Decimal:
    """Convert a position on a grid of 10^-decimals to its number."""
    return position if decimals is None else Decimal(position).scaleb(-decimals)


def _find_heaping_steps(numbers: NumericProfile) -> list[int]:
    """Find heaping: steps 5, 10, 50, 100, … whose multiples have more rows than expected.

    A step is tested on the rows whose bin is at least as wide. Under no heaping, a multiple of the
    previous step is a multiple of this one with probability previous/step. Steps with few rows of
    their own are dropped.
    """
    positions, counts = numbers.positions, numbers.counts
    if numbers.rows < _MIN_ROWS_FOR_HEAPING:
        return []
    widths = _bin_widths(numbers)
    found: list[int] = []
    last = 1
    for step in (factor * 10**power for power in range(18) for factor in (5, 10)):
        wide = widths >= step
        if counts[wide].sum() < _MIN_WIDE_BIN_SHARE * numbers.rows:
            break
        before, after = (counts[wide & (positions % each == 0)].sum() for each in (last, step))
        expected = before * last / step
        excess = max(_MIN_HEAP_EXCESS * (before - expected), 4 * math.sqrt(expected))
        if after > expected + excess:
            found, last = [*found, step], step
    level = sum((positions % step == 0).astype(np.int64) for step in found)
    heaps = np.bincount(np.where(widths > 1, level, 0), counts, minlength=len(found) + 1)
    min_rows = _MIN_HEAP_SHARE * numbers.rows
    return [step for step, rows in zip(found, heaps[1:], strict=True) if rows > min_rows]


def _spike_edges(numbers: NumericProfile, low: int, high: int) -> list[int]:
    """Lower bin edges that give each spike a bin of its own; empty if there are no spikes."""
    positions, counts, widths = numbers.positions, numbers.counts, _bin_widths(numbers)
    wide = widths > 1
    spikes, rows = wide & (counts >= _MIN_SPIKE_ROWS), int(counts[wide].sum())
    if not 0 < spikes.sum() <= MAX_UNBINNED_POSITIONS:
        return []
    if counts[spikes].sum() < _MIN_SPIKE_SHARE * rows:
        return []
    # Rows of each number in excess of an even spread within its bin.
    evenly = _rows_of_bins(numbers) / widths
    if np.maximum(counts - evenly, 0.0)[wide].sum() < _MIN_UNEVEN_SHARE * rows:
        return []
    alone = positions[spikes].tolist()
    if numbers.is_skewed:
        between = [*leading_digit_starts(range(low, high + 1), 1)]
    else:
        between = [*range(low, high + 1, nice_near((high - low + 1) / 100))]
    edges = {*between, *alone, *(number + 1 for number in alone)}
    return sorted(edge for edge in edges if low < edge <= high)


def _frequent_numbers(numbers: NumericProfile) -> list[int]:
    """Numbers that hold much of their bin and of all rows: the zeros of an amount few people have.

    Spread over a wide bin, most of them would become numbers that are nearly the same.
    """
    is_wide = _bin_widths(numbers) > 1
    is_frequent = numbers.counts >= max(_MIN_SPIKE_ROWS, _MIN_FREQUENT_SHARE * numbers.rows)
    fills_bin = numbers.counts >= _MIN_SHARE_OF_BIN * _rows_of_bins(numbers)
    found: list[int] = numbers.positions[is_wide & is_frequent & fills_bin].tolist()
    return found


def _rows_of_bins(numbers: NumericProfile) -> Counts:
    """The rows in the bin of each number."""
    widths = _bin_widths(numbers)
    bins = np.stack([widths, numbers.positions // widths])
    _, of_bin = np.unique(bins, axis=1, return_inverse=True)
    rows: Counts = np.bincount(of_bin, numbers.counts)[of_bin].astype(np.int64)
    return rows


def _bin_widths(numbers: NumericProfile) -> Counts:
    """Width of each number's bin, as ``number_range_fields`` drafts it."""
    positions = numbers.positions
    if not numbers.is_skewed:
        return np.full(len(positions), nice_near((numbers.high - numbers.low + 1) / 1_000))
    digits = np.char.str_len(np.abs(positions).astype(np.str_))
    widths: Counts = 10 ** np.maximum(digits - 2, 0)
    return widths


def _clip_remark(numbers: NumericProfile) -> tuple[str, ...]:
    if numbers.high - numbers.low < MAX_UNBINNED_POSITIONS or not numbers.is_skewed:
        return ()
    return (
        "A few rows are far above the rest. If you know a lower max from another source, set it",
        'with outside = "clip": larger numbers are then set to max.',
    )
