"""Balance: shares of the values of one column, which generated records are to have."""

import math
from dataclasses import dataclass, field

import numpy as np

from deniable.answers.allowed_values import AllowedValues
from deniable.arrays import Counts, Indices, Reals
from deniable.errors import ConfigError
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

# Largest number of values of a balanced column: each needs a filter of its own.
_MAX_VALUES = 100
# Shares may miss 1 by this: decimals such as 0.333 are rounded.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Balance:
    """Shares of the values of one column; records have no missing cell in it.

    Attributes:
        attribute: The column.
        index: Its index among the modelled attributes.
        shares: The share of each code; they sum to 1, nearly.
    """

    attribute: Attribute
    index: int
    shares: Reals = field(repr=False)

    @classmethod
    def parse(cls, text: str, schema: Schema) -> "Balance":
        """Parse ``column``, for equal shares, or ``column: 0.5, 0.5``, in the order of its values.

        Raises:
            ConfigError: There is no such column, it has too many values, or the shares are not one
                for each value, summing to 1.
        """
        if type(text) is not str:
            raise ConfigError(f"balance = {text!r}: must be a text such as 'income: 0.5, 0.5'")
        names = {attribute.name for attribute in schema.attributes} - schema.roundness_names
        name, colon, listed = text, "", ""
        if text not in names:
            name, colon, listed = (part.strip() for part in text.rpartition(":"))
            name = name if colon else text.strip()
            if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
                name = name[1:-1]
        if name not in names:
            raise ConfigError(
                f'balance = "{text}": no learnt column has this name; write the name of a column, '
                "or the name, a colon and the shares of its values"
            )
        index = schema.names.index(name)
        attribute = schema.attributes[index]
        if attribute.bins > _MAX_VALUES:
            raise ConfigError(
                f'balance = "{text}": the column has {attribute.bins:,} values or bins, and at '
                f"most {_MAX_VALUES} can be balanced; draw records with where instead"
            )
        if not colon:
            shares = np.full(attribute.bins, 1 / attribute.bins)
        else:
            shares = _parse_shares(listed, attribute, text)
        return cls(attribute, index, shares)

    @property
    def codes(self) -> Indices:
        """The codes whose share is above 0."""
        return np.flatnonzero(self.shares)

    def value_text(self, code: int) -> str:
        """Describe the values of a code in the words of the schema, for a message."""
        own = np.arange(self.attribute.size) == code
        return AllowedValues.of_codes(self.attribute, own).text()

    def draw(self, first: int, number: int, rng: Rng) -> Indices:
        """Draw the index in ``codes`` of each record of a block.

        The numbers of the first n records, for any end n of a block, differ from their shares of n
        by less than 1 for each value; within a block they are in random order.
        """
        numbers = self._count(first + number) - self._count(first)
        drawn = np.repeat(np.arange(len(self.codes)), numbers)
        return drawn[np.argsort(rng.random(number), kind="stable")]

    def _count(self, records: int) -> Counts:
        """Count the first records by value: rounded cumulative shares, which sum to all."""
        cumulative = np.minimum(np.cumsum(self.shares[self.codes]), 1.0)
        cumulative[-1] = 1.0
        ends = np.floor(cumulative * records + 0.5).astype(np.int64)
        return np.diff(ends, prepend=0)


def _parse_shares(listed: str, attribute: Attribute, text: str) -> Reals:
    try:
        shares = [float(part) for part in listed.split(",")]
    except ValueError:
        raise ConfigError(f'balance = "{text}": shares must be numbers such as 0.5') from None
    if len(shares) != attribute.bins:
        raise ConfigError(
            f'balance = "{text}": {len(shares)} shares, but the column has {attribute.bins} '
            "values; write one share for each, in the order of the schema"
        )
    valid = all(math.isfinite(share) and share >= 0 for share in shares)
    if not valid or abs(math.fsum(shares) - 1) > _TOLERANCE:
        raise ConfigError(f'balance = "{text}": shares must not be negative, and must sum to 1')
    # Not divided by their sum: shares that a manifest states must come back bit by bit, and the
    # last rounded cumulative share takes up the difference.
    return np.array(shares)
