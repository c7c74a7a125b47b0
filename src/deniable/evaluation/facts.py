"""What a table is like: rows, columns, how many records are possible and how many are different.

Tables 1 and 2 of the paper. All but the columns is confidential.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np

from deniable.arrays import Codes
from deniable.data.schema import Schema
from deniable.evaluation.erm import NUMERIC


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One table, in numbers.

    Attributes:
        records: How many rows.
        numerical: How many attributes are numbers.
        categorical: How many are not.
        possible: How many different records the schema allows.
        unique: How many different records there are.
    """

    records: int
    numerical: int
    categorical: int
    possible: int
    unique: int

    @property
    def unique_share(self) -> float:
        """Different records, as a share of all."""
        return self.unique / max(1, self.records)

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return asdict(self) | {"unique_share": self.unique_share}


def table_facts(schema: Schema, codes: Codes) -> Facts:
    """Return the facts of a table."""
    numerical = sum(attribute.kind in NUMERIC for attribute in schema.attributes)
    return Facts(
        records=len(codes),
        numerical=numerical,
        categorical=len(schema.attributes) - numerical,
        possible=math.prod(schema.sizes),
        unique=count_unique(codes),
    )


def count_unique(codes: Codes) -> int:
    """Return how many different rows there are."""
    if not len(codes):
        return 0
    group = np.zeros(len(codes), dtype=np.int64)
    for column in range(codes.shape[1]):
        # Groups are numbered anew at every column, so that no number can overflow.
        _, group = np.unique(group * 2**16 + codes[:, column], return_inverse=True)
    return int(group.max()) + 1
