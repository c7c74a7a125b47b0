"""Indices into several look-up tables, packed into 64-bit keys.

An index is a sum of offsets, such as one for each parent. As bit fields of one integer, the indices
of all tables are summed by the same few additions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Indices, Keys

# Keys are positive as signed integers.
_KEY_BITS = 63


@dataclass(frozen=True)
class BitField:
    """Where the index into one table is: the number of its key, the lowest bit, and how many."""

    key: int
    shift: int
    bits: int


@dataclass(frozen=True)
class PackedIndices:
    """The bit field of each table."""

    fields: tuple[BitField, ...]

    @classmethod
    def of(cls, sizes: Sequence[int]) -> "PackedIndices":
        """Lay out indices into tables of these numbers of rows, in as few keys as hold them."""
        fields: list[BitField] = []
        key, shift = 0, 0
        for rows in sizes:
            bits = (rows - 1).bit_length()
            if shift + bits > _KEY_BITS:
                key, shift = key + 1, 0
            fields.append(BitField(key, shift, bits))
            shift += bits
        return cls(tuple(fields))

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.fields[-1].key + 1 if self.fields else 0

    @property
    def bits(self) -> int:
        """The number of bits of the largest key."""
        return max((each.shift + each.bits for each in self.fields), default=0)

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The type of keys: the smallest that holds all of them."""
        return np.uint32 if self.bits <= 32 else np.uint64

    def pack(self, table: int, offsets: Indices) -> tuple[int, Keys]:
        """The number of the key of a table, and offsets of an index as offsets of that key."""
        own = self.fields[table]
        packed: Keys = offsets.astype(self.dtype)
        packed <<= own.shift
        return own.key, packed

    def unpack(self, keys: Sequence[Keys]) -> list[Indices]:
        """Split the keys of records into the index into each table."""
        found = []
        for field in self.fields:
            index = keys[field.key] >> field.shift
            index &= (1 << field.bits) - 1
            found.append(index.astype(np.intp))
        return found
