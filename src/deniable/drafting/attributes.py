"""Described: what a draft says about one column, with a reason beside everything that was read."""

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from deniable.arrays import Reals

# What a TOML file can hold. A Decimal is written as it is: 0.1 stays 0.1.
Plain: TypeAlias = str | bool | int | Decimal | date | datetime
Toml: TypeAlias = Plain | list[Plain] | dict[str, Plain | list[Plain]]

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
]
# What can be compared with what: numbers among themselves, days with days, moments with moments.
Scale = Literal["number", "date", "datetime"]

READ = "read off the data"
ROUNDED = "read off the data, rounded outward"
PRIVATE = "drafted with differential privacy"
# Kinds that no model learns.
UNLEARNT: tuple[Kind, ...] = ("identifier", "constant")


@dataclass(frozen=True)
class Field:
    """One line of an attribute: a key, its value, and why it is so."""

    key: str
    value: Toml
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Described:
    """One column, as a draft describes it.

    Attributes:
        name: The column's header.
        kind: Its type.
        fields: What else is said about it, in the order of the lines.
        remarks: Comments that follow: other ways to describe it.
        notes: What a human has to decide about it.
        why: The comment beside ``confirmed``.
        confirmed: Whether nothing in it was read off the data without noise.
    """

    name: str
    kind: Kind
    fields: tuple[Field, ...] = ()
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    why: str = READ
    confirmed: bool = False

    @property
    def is_learnt(self) -> bool:
        """Whether a model would learn the column."""
        return self.kind not in UNLEARNT

    def plus(self, *, remarks: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> "Described":
        """Return the same with more to say."""
        return replace(self, remarks=self.remarks + remarks, notes=self.notes + notes)


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A described column, and what comparing it with others needs.

    Attributes:
        described: What the draft says.
        scale: What its values can be compared with; None: with nothing.
        numbers: The number that each distinct value stands for; NaN where it is missing. Empty
            without a scale. Confidential.
        decimals: How many decimals these numbers have.
    """

    described: Described
    scale: Scale | None = None
    numbers: Reals | None = None
    decimals: int = 0
