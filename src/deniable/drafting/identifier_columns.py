"""Find identifier columns: unique keys of rows, and keys of persons with several rows."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import CODE_WORDS, split_name
from deniable.drafting.description import FROM_DATA, ColumnDraft, DraftField, Note
from deniable.drafting.numeric_profile import NumericProfile

# A column of fewer rows may be unique by chance.
_MIN_ROWS_FOR_UNIQUE = 20
_MIN_UNIQUE_SHARE = 0.9
# Repeated values identify persons only if there are at least this many.
_MIN_PERSONS = 40
# More rows per value than this, on average, belong to a place or a group.
_MAX_MEAN_ROWS_PER_PERSON = 100
# Bounds for person keys that are found by an even distribution rather than by name.
_MIN_EVEN_PERSONS = 200
_MAX_MEAN_ROWS_PER_EVEN_PERSON = 20
_MAX_TO_MEAN_ROWS_OF_EVEN_PERSONS = 10
# The same for integers without a name: the numbers in this many parts, by size, have about the same
# number of rows.
_EVEN_PARTS = 10
_MAX_RATIO_OF_EVEN_PARTS = 1.5
# Numbers of a measurement would have at least this many pairs of equal ones, and ten times as many
# as they have: they are unique by design.
_MIN_EXPECTED_PAIRS = 10
_MAX_SHARE_OF_EXPECTED_PAIRS = 0.1
# References are numbers of which this share are in another column of keys, which has at most this
# share of all numbers between them: small numbers are in a column of row numbers by chance.
_MIN_REFERENCES = 20
_MIN_REFERENCE_SHARE = 0.9
_MAX_CHANCE_SHARE = 0.5
# Share of generated keys that have the same length, or the same pattern of letters and digits.
_MIN_SAME_SHAPE_SHARE = 0.9
# A smaller share of missing cells gets no note.
_MIN_MISSING_SHARE_NOTED = 0.05
_MAX_KEY_LENGTH = 40

_IDENTIFIER_WORDS = {
    *("id", "ids", "identifier", "uuid", "guid", "pid", "uid", "ssn", "nin", "mrn", "pesel"),
    *("iban", "passport", "email", "mail", "phone", "telephone", "mobile", "userid", "username"),
    *("serial", "rownumber", "index"),
}
# Words for a person: they count only if the values repeat evenly.
_PERSON_WORDS = {
    *("patient", "person", "customer", "client", "member", "household", "student", "employee"),
    *("user", "account", "subject", "respondent", "participant", "donor", "card", "policyholder"),
}
_UUID = re.compile(r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
_PREFIXED_NUMBER = re.compile(r"^([^\d\s{}]{0,12})(\d{2,15})$")


@dataclass(frozen=True, kw_only=True)
class Uniqueness:
    """How often the values of a column repeat.

    Attributes:
        rows: Number of rows with a value.
        distinct: Number of distinct values.
        max_rows: Number of rows of the most frequent value.
    """

    rows: int
    distinct: int
    max_rows: int

    @property
    def is_nearly_unique(self) -> bool:
        """Whether almost every row has its own value, in enough rows to rule out chance."""
        return self.rows >= _MIN_ROWS_FOR_UNIQUE and self.distinct >= _MIN_UNIQUE_SHARE * self.rows

    @property
    def is_even(self) -> bool:
        """Whether there are many values of a few rows each, about equally frequent."""
        return (
            self.distinct >= _MIN_EVEN_PERSONS
            and self.rows <= _MAX_MEAN_ROWS_PER_EVEN_PERSON * self.distinct
            and self.max_rows * self.distinct <= _MAX_TO_MEAN_ROWS_OF_EVEN_PERSONS * self.rows
        )

    @property
    def repeats(self) -> bool:
        """Whether many values have several rows each, as persons may have."""
        return (
            not self.is_nearly_unique
            and self.distinct >= _MIN_PERSONS
            and self.rows <= _MAX_MEAN_ROWS_PER_PERSON * self.distinct
        )


def measure_uniqueness(counts: Counts) -> Uniqueness:
    """Measure how often values repeat, given the rows of each."""
    return Uniqueness(
        rows=int(counts.sum()), distinct=len(counts), max_rows=int(counts.max(initial=0))
    )


def has_identifier_name(name: str) -> bool:
    """Whether a column has the name of an identifier."""
    return bool(split_name(name) & _IDENTIFIER_WORDS)


def describe_identifier(
    name: str,
    seen: Uniqueness,
    *,
    rows: int,
    texts: Sequence[str] = (),
    numbers: NumericProfile | None = None,
) -> ColumnDraft | None:
    """Describe an identifier of persons or rows; None if the column is not one.

    Args:
        name: The column's header.
        seen: How often its values repeat, without those that mean missing.
        rows: Number of rows, including those without a value.
        texts: Some of its values, if they are text.
        numbers: Its values, if they are integers.
    """
    named = has_identifier_name(name)
    is_code = bool(split_name(name) & CODE_WORDS)
    generated = _look_generated(texts) if numbers is None else _look_assigned(numbers)
    if seen.is_nearly_unique and (named or (generated and not is_code)):
        return _describe_unique(name, seen, texts).plus(notes=_missing_cells_note(seen, rows))
    even = seen.is_even or (3 * seen.distinct > seen.rows and _share_one_shape(texts))
    person_key = numbers is None and generated and even and not is_code
    person_name = bool(split_name(name) & _PERSON_WORDS) and seen.is_even
    if seen.repeats and (named or person_key or person_name):
        return _describe_repeated(name, seen, texts).plus(notes=_missing_cells_note(seen, rows))
    return None


def identifier_fields(texts: Sequence[str]) -> tuple[DraftField, ...]:
    """Write release and format of new identifiers, in the format of the old ones if it is known."""
    fresh = DraftField("release", "fresh", 'new identifiers; "omit" leaves the column out')
    if not texts:
        return (fresh, DraftField("format", "number", "1, 2, 3, …"))
    if all(_UUID.match(text) for text in texts):
        return (fresh, DraftField("format", "uuid", FROM_DATA))
    matches = [_PREFIXED_NUMBER.match(text) for text in texts]
    parts = {(match[1], len(match[2])) for match in matches if match}
    if len(parts) == 1 and all(matches):
        prefix, width = parts.pop()
        return (fresh, DraftField("format", f"{prefix}{{:0{width}d}}", FROM_DATA))
    return (fresh, DraftField("format", "number", "1, 2, 3, …"))


def _missing_cells_note(seen: Uniqueness, rows: int) -> tuple[str, ...]:
    """Note that new identifiers have no missing cells, if the old ones have many."""
    if rows - seen.rows < _MIN_MISSING_SHARE_NOTED * rows:
        return ()
    return (
        f"{1 - seen.rows / rows:.0%} of its cells are empty, but every record will have one. If it "
        "matters which are empty, add a column to the table that marks them, and leave this one "
        'out with release = "omit"',
    )


def _describe_unique(name: str, seen: Uniqueness, texts: Sequence[str]) -> ColumnDraft:
    all_unique = seen.distinct == seen.rows
    reason = "every row has its own value" if all_unique else "almost no value repeats"
    return ColumnDraft(
        name=name,
        kind="identifier",
        fields=identifier_fields(texts),
        notes=(
            Note(
                f"taken for an identifier ({reason}): it is not learnt, and records get new ones. "
                "If it is a measurement, describe it as one; if it is not needed, set release = "
                '"omit"',
                priority=2,
            ),
        ),
    )


def _describe_repeated(name: str, seen: Uniqueness, texts: Sequence[str]) -> ColumnDraft:
    return ColumnDraft(
        name=name,
        kind="identifier",
        fields=identifier_fields(texts),
        notes=(_unit_note(seen),),
        may_be_unit=True,
    )


def _unit_note(seen: Uniqueness) -> Note:
    return Note(
        f"does it identify persons with several rows (up to {seen.max_rows:,} each)? If so, set "
        "unit and max_rows_per_unit at the top: without them the guarantee is for one row, and "
        "much weaker for a person with many. If not, describe it as a value",
        priority=1,
    )


def ask_for_unit(draft: ColumnDraft, counts: Counts) -> ColumnDraft:
    """Ask whether learnt integers identify persons, if they repeat as numbers of persons do.

    Such numbers are about equally frequent from the smallest to the largest; those of a
    measurement are not.

    Args:
        draft: The description of the column.
        counts: The rows of each number, by ascending number.
    """
    seen = measure_uniqueness(counts)
    if not seen.is_even or seen.is_nearly_unique or seen.rows < 2 * seen.distinct:
        return draft
    means = [float(part.mean()) for part in np.array_split(counts, _EVEN_PARTS)]
    if max(means) > _MAX_RATIO_OF_EVEN_PARTS * min(means):
        return draft
    return replace(draft.plus(notes=(_unit_note(seen),)), may_be_unit=True)


def describe_references(
    name: str, numbers: NumericProfile, keys: Counts, rows: int
) -> ColumnDraft | None:
    """Describe integers that are keys of another column; None if they may be so by chance.

    Args:
        name: The column's header.
        numbers: Its integers.
        keys: The integers of the column of keys, ascending.
        rows: Number of rows, including those without a value.
    """
    found = numbers.positions
    between = int(np.searchsorted(keys, numbers.high, "right") - np.searchsorted(keys, numbers.low))
    by_chance = between / (numbers.high - numbers.low + 1)
    share = np.isin(found, keys).mean()
    if (
        len(found) < _MIN_REFERENCES
        or share < _MIN_REFERENCE_SHARE
        or by_chance > _MAX_CHANCE_SHARE
    ):
        return None
    seen = measure_uniqueness(numbers.counts)
    describe = _describe_unique if seen.is_nearly_unique else _describe_repeated
    return describe(name, seen, ()).plus(notes=_missing_cells_note(seen, rows))


def _look_assigned(numbers: NumericProfile) -> bool:
    """Whether integers are assigned keys: nearly consecutive, long, or unique by design.

    Numbers of a measurement are equal at least as often as numbers spread evenly over their range,
    and half as often as two of them are next to each other.
    """
    low, high, rows = numbers.low, numbers.high, numbers.rows
    is_long = len(str(abs(low))) == len(str(abs(high))) and abs(high) >= 10**8
    if is_long or high - low < 2 * rows:
        return True
    counts = numbers.counts.astype(float)
    neighbours = float((counts[1:] * counts[:-1])[np.diff(numbers.positions) == 1].sum())
    expected = max(rows * (rows - 1) / (2 * (high - low + 1)), neighbours / 2)
    equal = float((counts * (counts - 1)).sum()) / 2
    return expected >= _MIN_EXPECTED_PAIRS and equal <= _MAX_SHARE_OF_EXPECTED_PAIRS * expected


def _look_generated(texts: Sequence[str]) -> bool:
    """Whether texts look like generated keys: short, with digits and no blanks."""
    return bool(texts) and all(
        len(text) <= _MAX_KEY_LENGTH and not re.search(r"\s", text) and re.search(r"\d", text)
        for text in texts
    )


def _share_one_shape(texts: Sequence[str]) -> bool:
    """Whether nearly all texts have one length, or one pattern of letters and digits.

    Generated keys do; course numbers, some with a letter at the end, do not.
    """
    lengths = Counter(map(len, texts))
    patterns = Counter(re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "A", text)) for text in texts)
    largest = max((*lengths.values(), *patterns.values()), default=0)
    return largest >= _MIN_SAME_SHAPE_SHARE * len(texts)
