"""What columns have to do with each other: one follows from another, sums, orders.

Each question is asked of a few rows first. What they refute is false; only what they do not is
asked of all rows.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices, Mask, Reals
from deniable.drafting.attributes import Guess
from deniable.drafting.columns import Column

_HEAD = 1_000
_VERY_FEW = 64
# So many rows, or this share of them, must speak for a rule; and so improbable must it be that
# it holds by chance, as a logarithm.
_SUPPORT = 30
_BY_CHANCE = 30.0
_MOST_RULES = 20
_MOST_ASKED = 400


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What was found, by column.

    Attributes:
        remarks: Comments to put below a column's description.
        notes: What a human has to decide, by column.
        orders: Pairs of columns of which the first is never above the second; and whether the
            two are never equal.
    """

    remarks: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    orders: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, name: str, *, remarks: Sequence[str] = (), note: str = "") -> None:
        """Add what concerns one column."""
        self.remarks.setdefault(name, []).extend(remarks)
        if note:
            self.notes.setdefault(name, []).append(note)


def find_hints(columns: Sequence[Column], guesses: Sequence[Guess]) -> Hints:
    """Return what the columns of a table have to do with each other."""
    hints = Hints()
    learnt = [j for j, guess in enumerate(guesses) if guess.described.is_learnt]
    explained = _find_formulas(hints, columns, guesses, learnt)
    _find_dependences(hints, columns, [j for j in learnt if j not in explained])
    _find_orders(hints, columns, guesses, [j for j in learnt if j not in explained])
    return hints


def quoted(name: str) -> str:
    """Return a column's name as a formula writes it."""
    plain = name.isidentifier() and name.isascii()
    return name if plain else f"`{name}`"


# One column follows from another


def _find_dependences(hints: Hints, columns: Sequence[Column], learnt: Sequence[int]) -> None:
    sizes = {j: len(columns[j].values) + bool(columns[j].nulls) for j in learnt}
    follows: dict[int, list[int]] = {}
    for one, other in _survivors(columns, sizes):
        order = np.argsort(columns[one].places, kind="stable")
        if _depends(columns[one].places[order], columns[other].places[order]):
            follows.setdefault(other, []).append(one)
    told: set[frozenset[int]] = set()
    for other, by in follows.items():
        one = min(by, key=lambda j: (sizes[j], j))
        both = other in follows.get(one, [])
        if frozenset((one, other)) in told:
            continue
        told.add(frozenset((one, other)))
        hints.add(columns[other].name, note=_dependence_note(columns[one].name, both=both))


def _dependence_note(by: str, *, both: bool) -> str:
    if both:
        return (
            f'it and "{by}" say the same in other words: each follows from the other. Leave one '
            "out of the table and derive it afterwards, or records may contradict themselves"
        )
    return (
        f'it follows from "{by}" in every row. Leave it out of the table and derive it '
        "afterwards, or say with a [[constraint]] which combinations there are"
    )


def _survivors(columns: Sequence[Column], sizes: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of which the second may follow from the first, by the first rows and sizes."""
    rows = columns[0].rows
    head = _spread(rows, _HEAD)
    learnt = list(sizes)
    cells = np.stack([columns[j].places[head] for j in learnt], axis=1) if learnt else None
    asked = 0
    for one in learnt:
        if not 2 <= sizes[one] <= rows / 10 or cells is None:
            continue
        own = columns[one].places[head]
        order = np.argsort(own, kind="stable")
        same = own[order][1:] == own[order][:-1]
        sorted_cells = cells[order]
        refuted = ((sorted_cells[1:] != sorted_cells[:-1]) & same[:, None]).any(axis=0)
        for at in np.flatnonzero(~refuted):
            other = learnt[at]
            if other == one or not 2 <= sizes[other] <= sizes[one]:
                continue
            if _is_chance(columns[other], rows - sizes[one]) or asked >= _MOST_ASKED:
                continue
            asked += 1
            yield one, other


def _is_chance(column: Column, repeats: int) -> bool:
    """Whether so many rows may well agree with an earlier one because most rows do."""
    most = max(int(column.counts.max()), column.nulls) / column.rows
    return -repeats * math.log(most) < _BY_CHANCE


def _depends(by: NDArray[np.uint32], other: NDArray[np.uint32]) -> bool:
    """Whether rows that are equal in ``by``, which is sorted, are equal in the other too."""
    return not np.any((by[1:] == by[:-1]) & (other[1:] != other[:-1]))


# Sums and products


def _find_formulas(
    hints: Hints, columns: Sequence[Column], guesses: Sequence[Guess], learnt: Sequence[int]
) -> set[int]:
    """Add the columns that are a sum or a product of two others, or a multiple of one."""
    usable = [j for j in learnt if guesses[j].scale == "number" and len(columns[j].values) > 2]
    few = _spread(columns[0].rows, _VERY_FEW)
    table = {j: _numbers(columns[j], guesses[j], few) for j in usable}
    usable = [j for j in usable if np.isfinite(table[j]).sum() >= 8]
    if len(usable) < 2:
        return set()
    head = np.stack([table[j] for j in usable], axis=1)
    margins = np.array([_margin(guesses[j].decimals) for j in usable])
    explained: set[int] = set()
    asked = 0
    for target, terms, sign in _suspects(head, margins):
        a, parts = usable[target], [usable[term] for term in terms]
        if a in explained or explained & set(parts) or asked >= _MOST_ASKED:
            continue
        asked += 1
        if _holds(columns, guesses, a, parts, sign):
            explained.add(a)
            _tell_formula(hints, columns[a].name, [columns[j].name for j in parts], sign)
    return explained


def _suspects(head: Reals, margins: Reals) -> Iterator[tuple[int, tuple[int, ...], str]]:
    """Yield columns that equal another, or a sum or product of two, in the first few rows."""
    many = head.shape[1]
    for b in range(many):
        for a in np.flatnonzero(_agree(head[:, [b]], head, margins)):
            if a > b:
                yield int(a), (b,), "="
    for b, c in combinations(range(many), 2):
        for sign, made in (("+", head[:, b] + head[:, c]), ("*", head[:, b] * head[:, c])):
            for a in np.flatnonzero(_agree(made[:, None], head, margins)):
                if a not in (b, c):
                    yield int(a), (b, c), sign


def _agree(made: Reals, head: Reals, margins: Reals) -> Mask:
    """Return which columns equal ``made`` wherever both are there, in enough rows."""
    off = np.abs(made - head)
    there = np.isfinite(off)
    with np.errstate(invalid="ignore"):
        agree: Mask = ((off <= margins) | ~there).all(axis=0) & (there.sum(axis=0) >= 8)
    return agree


def _holds(
    columns: Sequence[Column], guesses: Sequence[Guess], a: int, parts: Sequence[int], sign: str
) -> bool:
    """Whether a formula holds in all rows, and in enough that mean something."""
    own = _numbers(columns[a], guesses[a])
    terms = [_numbers(columns[j], guesses[j]) for j in parts]
    made = math.prod(terms) if sign == "*" else sum(terms)
    off = np.abs(made - own)
    there = np.isfinite(off)
    telling = there.copy()
    for term in terms:
        # Adding zero, or multiplying by zero or one, shows nothing.
        telling &= term != 0 if sign != "*" else (term != 0) & (term != 1)
    enough = telling.sum() >= max(_SUPPORT, 0.01 * there.sum())
    return bool(enough and (off[there] <= _margin(guesses[a].decimals)).all())


def _tell_formula(hints: Hints, name: str, parts: Sequence[str], sign: str) -> None:
    formula = f" {sign} ".join(map(quoted, parts))
    hints.add(
        name,
        remarks=(
            f"It equals {formula} in every row. If that is what it means, say instead of the above",
            'type = "computed"',
            f"formula = {json.dumps(formula, ensure_ascii=False)}",
        ),
        note=f"it equals {formula} in every row: make it computed, if that is what it means",
    )


def _margin(decimals: int) -> float:
    return 0.51 * 10.0**-decimals


# Orders


def _find_orders(
    hints: Hints, columns: Sequence[Column], guesses: Sequence[Guess], learnt: Sequence[int]
) -> None:
    """Add pairs of dates, moments or numbers of which one is never above the other."""
    usable = [j for j in learnt if guesses[j].scale is not None and len(columns[j].values) >= 10]
    few = _spread(columns[0].rows, _HEAD) if columns else np.zeros(0, dtype=np.intp)
    head = {j: _numbers(columns[j], guesses[j], few) for j in usable}
    for a, b in combinations(usable, 2):
        if guesses[a].scale != guesses[b].scale:
            continue
        for low, high in ((a, b), (b, a)):
            if len(hints.orders) >= _MOST_RULES or (head[low] > head[high]).any():
                continue
            ends = [_numbers(columns[j], guesses[j]) for j in (low, high)]
            strict = _is_order(*ends)
            if strict is None:
                continue
            if not strict and np.array_equal(ends[0], ends[1], equal_nan=True):
                hints.add(columns[b].name, note=_dependence_note(columns[a].name, both=True))
                break
            hints.orders.append((columns[low].name, columns[high].name, strict))


def _is_order(low: Reals, high: Reals) -> bool | None:
    """Return whether ``low`` is below ``high``, strictly or not, in every row; None if it is not.

    Nor is it a rule if it would hold as well between the numbers of different rows.
    """
    there = np.isfinite(low) & np.isfinite(high)
    low, high = low[there], high[there]
    if len(low) < _SUPPORT or (low > high).any():
        return None
    others = np.roll(high, len(high) // 2 + 1)
    if (low > others).sum() < max(_SUPPORT / 3, 0.05 * len(low)):
        return None
    return bool((low < high).all())


def _numbers(column: Column, guess: Guess, rows: Indices | slice = slice(None)) -> Reals:
    """Return the number in each of the rows; NaN where it is missing."""
    if guess.numbers is None:
        return np.full(len(column.places[rows]), np.nan)
    return np.append(guess.numbers, np.nan)[column.places[rows]]


def _spread(rows: int, most: int) -> Indices:
    """Return some rows, evenly over the table."""
    chosen: Indices = np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.intp))
    return chosen
