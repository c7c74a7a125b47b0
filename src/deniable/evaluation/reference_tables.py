"""Reference tables of an evaluation: other real rows, and records with independent columns.

Other real rows are the upper baseline: a release is not expected to be closer to the real rows than
they are to each other. Independent columns (the paper's *marginals*) are the lower baseline: they
keep each column's distribution and no dependence between columns.

Real rows are raw: a cell that the schema clips, replaces or calls ``other`` is none of its values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from deniable.arrays import Codes, Indices
from deniable.data.batches import MIN_MOVED_SHARE, AdjustedCounts, Adjustment, moved_shares
from deniable.randomness import Keyed, Rng
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

# Share of the real rows that is set aside for testing if there is no held-out table.
TEST_SHARE = 0.3
# Random streams of the key.
_HALVES_STREAM, _TEST_STREAM, _MARGINALS_STREAM = 0, 1, 2


class RawAttribute(Attribute):
    """An attribute of raw rows: its last code is a value that the schema has not.

    No released record has it, so it counts as distance.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "size", self.size + 1)


def raw_schema(schema: Schema, tables: Sequence[Codes]) -> Schema:
    """Widen the attributes of which some raw cell has the code after all codes."""
    moved = {
        attribute.name
        for column, attribute in enumerate(schema.attributes)
        if any(len(codes) and codes[:, column].max() >= attribute.size for codes in tables)
    }
    columns = [
        RawAttribute(
            **{each.name: getattr(column, each.name) for each in fields(column) if each.init}
        )
        if isinstance(column, Attribute) and column.name in moved
        else column
        for column in schema.columns
    ]
    return replace(schema, columns=tuple(columns)) if moved else schema


@dataclass(frozen=True, kw_only=True)
class AdjustedColumn:
    """Cells of one column whose value the schema has not. Confidential.

    Attributes:
        name: Name of the column.
        moved: Share of cells with another value in records: clipped, replaced, or ``other``.
        rounded: Share of numbers that are rounded to the step.
        missing: Share of cells with another text that means missing than the first.
        counts: Number of cells, by what became of them.
    """

    name: str
    moved: float
    rounded: float
    missing: float
    counts: Mapping[Adjustment, int]

    @property
    def is_named(self) -> bool:
        """Whether so many cells are moved that a report begins with it."""
        return self.moved >= MIN_MOVED_SHARE


def adjusted_columns(adjusted: AdjustedCounts, rows: int) -> tuple[AdjustedColumn, ...]:
    """Describe what became of the cells of each column, the most moved first."""
    shares = moved_shares(adjusted, rows)
    found = [
        AdjustedColumn(
            name=name,
            moved=shares.get(name, 0.0),
            rounded=counts.get("rounded", 0) / max(1, rows),
            missing=counts.get("missing", 0) / max(1, rows),
            counts=counts,
        )
        for name, counts in adjusted.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.moved))


@dataclass(frozen=True, kw_only=True)
class EvaluationTables:
    """Encoded tables of an evaluation. All but the released records are confidential.

    Attributes:
        released: The records under evaluation.
        reference: Real rows that released records are compared with.
        ceiling: Two disjoint tables of real rows, compared with each other as the upper baseline.
        marginals: As many records as were released, with every column drawn independently.
        train: Real rows to train learners on.
        test: Real rows to test learners on; disjoint from ``train``.
        held_out: Whether ``reference`` and ``test`` were held out from the release.
    """

    released: Codes = field(repr=False)
    reference: Codes = field(repr=False)
    ceiling: tuple[Codes, Codes] = field(repr=False)
    marginals: Codes = field(repr=False)
    train: Codes = field(repr=False)
    test: Codes = field(repr=False)
    held_out: bool

    @classmethod
    def of(
        cls,
        real: Codes,
        released: Codes,
        holdout: Codes | None,
        *,
        key: int,
        sizes: Sequence[int] | None = None,
    ) -> "EvaluationTables":
        """Build the tables; split ``real`` into training and test rows if there is no holdout.

        ``sizes`` are the numbers of codes that a record can have: no record with independent
        columns has others. None: all codes of ``real``.
        """
        randomness = Keyed(key)
        marginals = independent_columns(
            real, len(released), randomness.at("records", _MARGINALS_STREAM), sizes=sizes
        )
        if holdout is not None:
            return cls(
                released=released,
                reference=holdout,
                ceiling=(real, holdout),
                marginals=marginals,
                train=real,
                test=holdout,
                held_out=True,
            )
        train, test = split_rows(real, 1 - TEST_SHARE, randomness.at("records", _TEST_STREAM))
        return cls(
            released=released,
            reference=real,
            ceiling=split_rows(real, 0.5, randomness.at("records", _HALVES_STREAM)),
            marginals=marginals,
            train=train,
            test=test,
            held_out=False,
        )


def shuffled_indices(rows: int, rng: Rng) -> Indices:
    """Return the indices 0 to ``rows`` - 1 in random order."""
    return np.argsort(rng.words(rows), kind="stable")


def split_rows(codes: Codes, share: float, rng: Rng) -> tuple[Codes, Codes]:
    """Split rows at random into a given share and the rest; neither is empty if rows allow."""
    order = shuffled_indices(len(codes), rng)
    first = min(max(1, round(share * len(codes))), max(1, len(codes) - 1))
    return take_rows(codes, order[:first]), take_rows(codes, order[first:])


def sample_rows(codes: Codes, limit: int, rng: Rng) -> Codes:
    """Sample ``limit`` rows without replacement, in their order; all rows if there are fewer."""
    if len(codes) <= limit:
        return codes
    return take_rows(codes, np.sort(shuffled_indices(len(codes), rng)[:limit]))


def disjoint_samples(codes: Codes, limit: int, rng: Rng) -> tuple[Codes, Codes]:
    """Sample two disjoint tables of ``limit`` rows each; two halves if there are fewer rows.

    If there are enough rows, the first equals ``sample_rows`` with the same random stream.
    """
    size = min(limit, len(codes) // 2)
    order = shuffled_indices(len(codes), rng)
    first, second = (take_rows(codes, np.sort(order[at : at + size])) for at in (0, size))
    return first, second


def independent_columns(
    codes: Codes, records: int, rng: Rng, *, sizes: Sequence[int] | None = None
) -> Codes:
    """Draw records whose columns are sampled independently from the columns of ``codes``.

    Of each column, cells with a code of ``sizes`` or more are left out, unless no other is there.
    """
    drawn = np.empty((records, codes.shape[1]), dtype=codes.dtype, order="F")
    for column in range(codes.shape[1]):
        cells = codes[:, column]
        if sizes is not None and (valid := cells < sizes[column]).any():
            cells = cells[valid]
        drawn[:, column] = cells[rng.integers(len(cells), records)]
    return drawn


def take_rows(codes: Codes, rows: Indices) -> Codes:
    """Select rows by index, in column-major order."""
    return np.asfortranarray(codes[rows])
