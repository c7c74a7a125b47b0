"""Evidence about encoded records: given codes, and factors that weigh the codes of an attribute.

A case is one combination of given codes. Many records may be drawn for one case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from deniable.arrays import Codes, Indices, Reals
from deniable.errors import InvariantError


@dataclass(frozen=True, kw_only=True, eq=False)
class Factor:
    """Likelihood of each code of one attribute.

    Attributes:
        attribute: The attribute, as a column of the codes.
        table: Likelihoods, at least 0: rows by codes.
        by: The attribute whose code selects the row of the table; None: ``rows`` does.
        rows: The row of the table of each case; None: the first row for all.
    """

    attribute: int
    table: Reals = field(repr=False)
    by: int | None = None
    rows: Indices | None = field(default=None, repr=False)

    def likelihoods(self, codes: Codes, cases: Indices) -> Reals:
        """Look up the likelihoods of all codes: states by codes, or one row for all states.

        Args:
            codes: The records so far, of each state.
            cases: The case of each state.
        """
        if self.by is not None:
            return self.table[codes[:, self.by]]
        return self.table[:1] if self.rows is None else self.table[self.rows[cases]]


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseEvidence:
    """Evidence of several cases that all have the same columns given.

    Attributes:
        codes: The given codes: one row per case, one column per attribute. Other columns are 0.
        given: The attributes that are given.
        factors: Likelihoods of codes, such as those of a condition.
    """

    codes: Codes = field(repr=False)
    given: frozenset[int] = frozenset()
    factors: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        for factor in self.factors:
            if factor.rows is not None and len(factor.rows) != len(self.codes):
                raise InvariantError("a factor needs one row of its table for each case")

    @property
    def cases(self) -> int:
        """The number of cases."""
        return len(self.codes)

    @property
    def attributes(self) -> frozenset[int]:
        """The attributes that the evidence is about."""
        return self.given | {factor.attribute for factor in self.factors}

    def end(self, order: Sequence[int]) -> int:
        """Find the end of the evidence in the order σ: attributes from there on are free."""
        return max((order.index(i) + 1 for i in self.attributes), default=0)

    def take(self, cases: Indices | slice) -> "CaseEvidence":
        """Select cases."""
        factors = tuple(
            factor if factor.rows is None else replace(factor, rows=factor.rows[cases])
            for factor in self.factors
        )
        return replace(self, codes=self.codes[cases], factors=factors)
