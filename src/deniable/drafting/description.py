"""Draft of one column: TOML fields, where each comes from, and notes for the user."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from deniable.arrays import Reals
from deniable.schema.attribute import Confirmed

# TOML values. A Decimal is written exactly: 0.1 stays 0.1.
TomlScalar: TypeAlias = str | bool | int | Decimal | date | datetime
TomlPairs: TypeAlias = tuple[tuple[TomlScalar, TomlScalar], ...]
TomlValue: TypeAlias = (
    TomlScalar | list[TomlScalar] | TomlPairs | Mapping[str, TomlScalar | list[TomlScalar]]
)

Kind = Literal[
    "categorical",
    "ordered",
    "integer",
    "real",
    "boolean",
    "date",
    "datetime",
    "text",
    "identifier",
    "constant",
    "computed",
]
# Columns are compared only if they have the same scale.
Scale = Literal["number", "date", "datetime"]

FROM_DATA = "read from the data"
FROM_DATA_ROUNDED = "read from the data, rounded outward"
DRAFTED_PRIVATELY = "drafted with differential privacy"
# Kinds that the model does not learn.
_UNMODELLED_KINDS: tuple[Kind, ...] = ("identifier", "constant", "computed")
# Priority of a note without one; a smaller number is more important.
_DEFAULT_PRIORITY = 5


class Note(str):
    """Text of a note, with a priority: 0 is the most important.

    0 concerns the whole table, 1 the unit of privacy, 2 columns or rows that are left out, 3
    relationships between columns, 4 what counts as missing, 5 and more single descriptions.
    """

    __slots__ = ("priority",)
    priority: int

    def __new__(cls, text: str, *, priority: int = _DEFAULT_PRIORITY) -> "Note":
        """Create a note."""
        note = super().__new__(cls, text)
        note.priority = priority
        return note


def note_priority(note: str) -> int:
    """Return the priority of a note; a plain text has the default one."""
    return note.priority if isinstance(note, Note) else _DEFAULT_PRIORITY


@dataclass(frozen=True)
class DraftField:
    """One key of an ``[[attribute]]``: name, value, and a comment on where the value comes from."""

    key: str
    value: TomlValue
    comment: str = ""


@dataclass(frozen=True, kw_only=True)
class ColumnDraft:
    """Drafted description of one column.

    Attributes:
        name: The column's header.
        kind: Its type.
        fields: Further TOML keys, in order.
        remarks: Comments below the fields: other ways to describe the column.
        notes: Decisions left to the user.
        origin: Comment on ``confirmed``: where the description comes from.
        confirmed: False if it was read from the data; "draft" if only with noise, by a draft.
        may_be_unit: Whether the column may identify persons with several rows each.
    """

    name: str
    kind: Kind
    fields: tuple[DraftField, ...] = ()
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str = FROM_DATA
    confirmed: Confirmed = False
    may_be_unit: bool = False

    @property
    def is_modelled(self) -> bool:
        """Whether the model learns the column."""
        return self.kind not in _UNMODELLED_KINDS

    def plus(self, *, remarks: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> "ColumnDraft":
        """Add remarks and notes."""
        return replace(self, remarks=self.remarks + remarks, notes=self.notes + notes)


@dataclass(frozen=True, kw_only=True)
class ColumnGuess:
    """Drafted column, with numbers to compare it with other columns.

    Attributes:
        draft: The description.
        scale: Which columns it can be compared with; None: no other column.
        numbers: Each distinct value as a number; NaN if missing. None without a scale.
            Confidential.
        decimals: Decimals of these numbers.
    """

    draft: ColumnDraft
    scale: Scale | None = None
    numbers: Reals | None = None
    decimals: int = 0
