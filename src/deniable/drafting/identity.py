"""Columns that name a person or a row: identifiers, unique or with several rows each."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.arrays import Counts
from deniable.drafting.attributes import READ, Described, Field
from deniable.drafting.categories import are_times
from deniable.drafting.cells import CODE_WORDS, words_of

# A unique column of fewer rows may be so by chance.
_ENOUGH = 20
_NEARLY = 0.9
# So many empty cells are no oversight.
_OFTEN = 0.05
# A unit with more rows than this on average is a place or a group, no person.
_MOST_PER_UNIT = 100

_WORDS = {
    *("id", "ids", "identifier", "uuid", "guid", "pid", "uid", "ssn", "nin", "mrn", "pesel"),
    *("iban", "passport", "email", "mail", "phone", "telephone", "mobile", "userid", "username"),
    *("serial", "rownumber", "index"),
}
# Whose row it may be: only where values repeat, as nobody else does.
_PERSONS = {
    *("patient", "person", "customer", "client", "member", "household", "student", "employee"),
    *("user", "account", "subject", "respondent", "participant", "donor", "card", "policyholder"),
}
_UUID = re.compile(r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
_PREFIXED = re.compile(r"^([^\d\s{}]{0,12})(\d{2,15})$")


@dataclass(frozen=True, kw_only=True)
class Uniqueness:
    """How often the values of a column repeat.

    Attributes:
        rows: How many rows have one.
        distinct: How many there are.
        most: How many rows the most frequent has.
    """

    rows: int
    distinct: int
    most: int

    @property
    def is_near(self) -> bool:
        """Whether hardly two rows share a value, among enough rows to say so."""
        return self.rows >= _ENOUGH and self.distinct >= _NEARLY * self.rows

    @property
    def is_even(self) -> bool:
        """Whether many values have about as many rows each, few, as codes of persons have."""
        few = self.rows <= 20 * self.distinct
        return self.distinct >= 10 * _ENOUGH and few and self.most * self.distinct <= 10 * self.rows

    @property
    def repeats(self) -> bool:
        """Whether there are many values of a few rows each, as persons with several rows."""
        return (
            not self.is_near
            and self.distinct >= 2 * _ENOUGH
            and self.rows <= _MOST_PER_UNIT * self.distinct
        )


def uniqueness(counts: Counts) -> Uniqueness:
    """Return how often the values repeat of which so many rows have each."""
    return Uniqueness(rows=int(counts.sum()), distinct=len(counts), most=int(counts.max(initial=0)))


def says_identifier(name: str) -> bool:
    """Return whether a column's name says that it names somebody."""
    return bool(words_of(name) & _WORDS)


def describe_identifier(
    name: str,
    seen: Uniqueness,
    *,
    rows: int,
    texts: Sequence[str] = (),
    ends: tuple[int, int] | None = None,
) -> Described | None:
    """Return the description of a column that names persons or rows; None if it does not.

    Args:
        name: Its header.
        seen: How often its values repeat, those that mean missing apart.
        rows: How many rows there are, those without a value too.
        texts: Some of its values, where they are text.
        ends: The least and the largest, where they are whole numbers.
    """
    named = says_identifier(name)
    is_code = bool(words_of(name) & CODE_WORDS)
    code_like = _look_like_codes(texts) if ends is None else _are_given_out(seen, *ends)
    if seen.is_near and (named or (code_like and not is_code)):
        return _unique(name, seen, texts).plus(notes=_gaps(seen, rows))
    rare = seen.is_even or (3 * seen.distinct > seen.rows and _are_of_one_make(texts))
    fine = ends is None and code_like and rare and not is_code
    person = bool(words_of(name) & _PERSONS) and seen.is_even
    if seen.repeats and (named or fine or person):
        return _repeated(name, seen, texts).plus(notes=_gaps(seen, rows))
    return None


def release_fields(texts: Sequence[str]) -> tuple[Field, ...]:
    """Return how fresh identifiers are to look: like these, as far as that can be said."""
    fresh = Field("release", "fresh", 'new ones; "omit" leaves the column out')
    if not texts:
        return (fresh, Field("format", "number", "1, 2, 3, …"))
    if all(_UUID.match(text) for text in texts):
        return (fresh, Field("format", "uuid", READ))
    matches = [_PREFIXED.match(text) for text in texts]
    parts = {(match[1], len(match[2])) for match in matches if match}
    if len(parts) == 1 and all(matches):
        prefix, width = parts.pop()
        return (fresh, Field("format", f"{prefix}{{:0{width}d}}", READ))
    return (fresh, Field("format", "number", "1, 2, 3, …"))


def _gaps(seen: Uniqueness, rows: int) -> tuple[str, ...]:
    """Say that fresh identifiers know no missing cells, where there are many."""
    if rows - seen.rows < _OFTEN * rows:
        return ()
    return (
        f"{1 - seen.rows / rows:.0%} of its cells are empty, and every record will have one: that "
        "it is empty is not learnt. If that matters, add a column to the table that says whether "
        'there is one, and leave this one out with release = "omit"',
    )


def _unique(name: str, seen: Uniqueness, texts: Sequence[str]) -> Described:
    how = (
        "every row has its own value" if seen.distinct == seen.rows else "hardly any value repeats"
    )
    return Described(
        name=name,
        kind="identifier",
        fields=release_fields(texts),
        notes=(
            f"taken for an identifier ({how}): it is not learnt, and records get new ones. If it "
            'is a measurement, describe it as one; if nobody needs it, say release = "omit"',
        ),
    )


def _repeated(name: str, seen: Uniqueness, texts: Sequence[str]) -> Described:
    return Described(
        name=name,
        kind="identifier",
        fields=release_fields(texts),
        notes=(
            f"it looks like a person with several rows (up to {seen.most:,} each). If so, one row "
            'is not one person: say unit = "…" above, with the most rows a person may have',
        ),
    )


def _are_given_out(seen: Uniqueness, low: int, high: int) -> bool:
    """Whether whole numbers were given out one after the other, or are all long."""
    dense = high - low < 2 * seen.rows
    return dense or (len(str(abs(low))) == len(str(abs(high))) and abs(high) >= 10**8)


def _look_like_codes(texts: Sequence[str]) -> bool:
    """Whether texts are short, without blanks, and hold digits: what a machine gives out.

    So are times of day, which name nobody.
    """
    if are_times(texts):
        return False
    return bool(texts) and all(
        len(text) <= 40 and not re.search(r"\s", text) and re.search(r"\d", text) for text in texts
    )


def _are_of_one_make(texts: Sequence[str]) -> bool:
    """Whether nearly all texts are of one length, or have letters and digits in one order.

    What a machine gives out is; numbers of courses, some with a letter behind, are not.
    """
    lengths = Counter(map(len, texts))
    makes = Counter(re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "A", text)) for text in texts)
    most = max((*lengths.values(), *makes.values()), default=0)
    return most >= _NEARLY * len(texts)
