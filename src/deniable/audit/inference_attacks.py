"""Singling out and attribute inference: rows of the table against other rows.

A release is meant to teach facts about the population. So each attack is also run on control rows,
which were not in the table, and only the difference counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Codes, Indices, Reals
from deniable.evaluation.intervals import NORMAL_95, Interval
from deniable.model.pairwise.one_way import has_order
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

# Rows of each kind that are attacked, and released records that the attacker searches.
ATTACKED_ROWS = 1_000
_SEARCHED_RECORDS = 20_000
# Guesses of the singling-out attack, by sets of columns and the number of columns of a set.
_COLUMN_SETS, _GUESSES_PER_SET = 60, 50
_MIN_WIDTH, _MAX_WIDTH = 2, 6
# Columns that are inferred; a random sample if there are more.
_MAX_SECRETS = 24
# A number is inferred if it is this close, as a share of its range.
_MAX_INFERENCE_ERROR = 0.05
# Attacked rows per matrix of distances, which bounds the memory.
_ROWS_PER_BATCH = 100


@dataclass(frozen=True, kw_only=True)
class AttackComparison:
    """Success of one attack on rows of the table and on control rows. Confidential.

    Attributes:
        name: Name of the attack, or of the column that is inferred.
        is_column: Whether it is a single column of attribute inference.
        table: Rate of success on rows of the table.
        control: Rate of success on control rows.
        attempts: The number of attempts on either.
        interval: 95 % interval of the difference.
    """

    name: str
    is_column: bool
    table: float
    control: float
    attempts: tuple[int, int]
    interval: Interval

    @classmethod
    def of(
        cls, name: str, table: Reals, control: Reals, *, is_column: bool = False
    ) -> "AttackComparison":
        """Compare the success of each attempt, from 0 to 1.

        The interval is that of Agresti and Caffo: one success and one failure more on either side.
        """
        padded = [np.append(side, [0.0, 1.0]) for side in (table, control)]
        centre = float(padded[0].mean() - padded[1].mean())
        half = NORMAL_95 * float(np.sqrt(sum(side.var() / len(side) for side in padded)))
        return cls(
            name=name,
            is_column=is_column,
            table=float(table.mean()),
            control=float(control.mean()),
            attempts=(len(table), len(control)),
            interval=(max(-1.0, centre - half), min(1.0, centre + half)),
        )

    @property
    def difference(self) -> float:
        """Success on rows of the table less success on control rows."""
        return self.table - self.control

    @property
    def shows_evidence(self) -> bool:
        """Whether the attack succeeds more often on the table, beyond chance."""
        return self.interval[0] > 0

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "is_column": self.is_column,
            "table": self.table,
            "control": self.control,
            "attempts": list(self.attempts),
            "interval": list(self.interval),
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> "AttackComparison":
        """Read the JSON form."""
        return cls(
            name=str(saved["name"]),
            is_column=bool(saved["is_column"]),
            table=float(saved["table"]),
            control=float(saved["control"]),
            attempts=(int(saved["attempts"][0]), int(saved["attempts"][1])),
            interval=(float(saved["interval"][0]), float(saved["interval"][1])),
        )


def attack_singling_out(
    released: Codes, table: Codes, control: Codes, rng: Rng
) -> AttackComparison:
    """Guess combinations of values that exactly one row has: those that are rarest in the records.

    Both sides have the same number of rows: with more rows, fewer combinations are of one row.
    """
    rows = min(len(table), len(control))
    sides = [side[_sample(len(side), rows, rng)] for side in (table, control)]
    m = released.shape[1]
    found: list[tuple[Reals, Reals]] = []
    for _ in range(_COLUMN_SETS):
        most = min(_MAX_WIDTH, m)
        width = min(_MIN_WIDTH, m) + int(rng.integers(most - min(_MIN_WIDTH, m) + 1, 1)[0])
        columns = _sample(m, width, rng)
        numbers = _combination_numbers([released, *sides], columns)
        values, counts = np.unique(numbers[0], return_counts=True)
        rarest = np.lexsort((rng.random(len(values)), counts))
        guesses = values[rarest[:_GUESSES_PER_SET]]
        hits = [_count_of(guesses, side) == 1 for side in numbers[1:]]
        found.append((hits[0].astype(np.float64), hits[1].astype(np.float64)))
    of_table, of_control = (np.concatenate([pair[i] for pair in found]) for i in (0, 1))
    return AttackComparison.of("singling out", of_table, of_control)


def attack_attributes(
    attributes: Sequence[Attribute], released: Codes, table: Codes, control: Codes, rng: Rng
) -> list[AttackComparison]:
    """Infer each column of a row from all others: the value of the nearest released record.

    Returns:
        The mean over columns first, then each column. A number counts as inferred if it is within
        5 % of the range.
    """
    released = released[_sample(len(released), _SEARCHED_RECORDS, rng)]
    secrets = np.sort(_sample(released.shape[1], _MAX_SECRETS, rng))
    tie_break = rng.random(len(released)) * 1e-6

    def success(rows: Codes) -> Reals:
        attacked = rows[_sample(len(rows), ATTACKED_ROWS, rng)]
        return np.concatenate(
            [_infer(attributes, b, released, secrets, tie_break) for b in _batches(attacked)]
        )

    of_table, of_control = success(table), success(control)
    mean = AttackComparison.of(
        "attribute inference", of_table.mean(axis=1), of_control.mean(axis=1)
    )
    columns = [
        AttackComparison.of(
            attributes[secret].name, of_table[:, at], of_control[:, at], is_column=True
        )
        for at, secret in enumerate(secrets)
    ]
    return [mean, *columns]


def _infer(
    attributes: Sequence[Attribute],
    rows: Codes,
    released: Codes,
    secrets: Indices,
    tie_break: Reals,
) -> Reals:
    """Infer the secret columns of some rows; return 1 for a success, one column per secret."""
    every = range(rows.shape[1])
    total = tie_break + sum(_distances(attributes, rows, released, i) for i in every)
    inferred = np.zeros((len(rows), len(secrets)))
    for at, secret in enumerate(secrets):
        nearest = (total - _distances(attributes, rows, released, secret)).argmin(axis=1)
        wrong = np.abs(released[nearest, secret].astype(np.int64) - rows[:, secret])
        tolerated = 0
        if has_order(attributes[secret]):
            tolerated = int(_MAX_INFERENCE_ERROR * (attributes[secret].size - 1))
        inferred[:, at] = wrong <= tolerated
    return inferred


def _distances(attributes: Sequence[Attribute], rows: Codes, released: Codes, column: int) -> Reals:
    """Distance in one column of each row from each released record, from 0 to 1."""
    ours, theirs = rows[:, column, None], released[None, :, column]
    attribute = attributes[column]
    apart: Reals = (ours != theirs).astype(np.float64)
    if has_order(attribute):
        span = max(attribute.size - 1, 1)
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) / span
    return apart


def _batches(rows: Codes) -> Iterator[Codes]:
    for start in range(0, len(rows), _ROWS_PER_BATCH):
        yield rows[start : start + _ROWS_PER_BATCH]


def _combination_numbers(tables: Sequence[Codes], columns: Indices) -> list[Indices]:
    """Number the combinations of values in some columns, the same in every table."""
    stacked = np.concatenate([codes[:, columns] for codes in tables]).astype(np.int64)
    numbers = np.zeros(len(stacked), dtype=np.int64)
    for column in stacked.T:
        # Renumbered each time, so that the product of two sizes never overflows.
        _, numbers = np.unique(numbers * (column.max() + 1) + column, return_inverse=True)
    ends = np.cumsum([len(codes) for codes in tables])[:-1]
    return np.split(numbers, ends)


def _count_of(values: Indices, among: Indices) -> Indices:
    """Count how often each value occurs."""
    ordered = np.sort(among)
    right = np.searchsorted(ordered, values, side="right")
    counts: Indices = right - np.searchsorted(ordered, values, side="left")
    return counts


def _sample(size: int, number: int, rng: Rng) -> Indices:
    """Sample indices without replacement, in random order; all of them if there are fewer."""
    return np.argsort(rng.random(size), kind="stable")[:number]
