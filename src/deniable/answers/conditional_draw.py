"""Draw complete records given filled cells and a condition: codes, and positions within bins.

The law is that of the released records, given the evidence. Constraints of two columns are part of
the inference; records that violate another one are drawn again.

Where a constraint cuts through bins, records are uniform within bins among the values that satisfy
it. The probability that a cell has a certain value of such a bin is then computed as if the other
cells left all values of the bin possible.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.answers.bin_values import BinValues
from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.answers.condition import RecordCondition
from deniable.answers.inference import Posterior
from deniable.answers.released_law import ReleasedLaw
from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.data.codec import Codec
from deniable.errors import InputError
from deniable.randomness import Rng
from deniable.schema.heaping import Heaping
from deniable.schema.schema import Schema

# Redraws of records that violate a constraint. If one record in 50 satisfies them, fewer than one
# in 10^4 is left by then.
_MAX_REDRAWS = 500


@dataclass(frozen=True, eq=False)
class ConditionalDraw:
    """Draws records of a schema under a condition.

    Attributes:
        law: The distribution of records.
        schema: Their schema.
        condition: The condition; None: no condition.
    """

    law: ReleasedLaw = field(repr=False)
    schema: Schema = field(repr=False)
    condition: RecordCondition | None = None

    @cached_property
    def codec(self) -> Codec:
        """The codec of the schema."""
        return Codec(self.schema)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema.names)}

    @cached_property
    def _bin_values(self) -> dict[int, BinValues]:
        """The allowed values of the numeric columns that the condition names."""
        allowed = self.condition.allowed if self.condition is not None else {}
        return {
            self._indices[name]: BinValues(values, self.schema.heaping.get(name))
            for name, values in allowed.items()
            if values.attribute.is_numeric
        }

    def evidence(self, codes: Codes, positions: Counts, given: frozenset[int]) -> CaseEvidence:
        """Build the evidence of rows that all have the same attributes given.

        Args:
            codes: The given codes.
            positions: The positions of given cells of numeric attributes.
            given: The given attributes, without roundness.
        """
        factors = []
        for name, i in self._indices.items():
            heaping = self.schema.heaping.get(name)
            if i in given:
                if heaping is not None:
                    factors.append(_roundness_factor(heaping, codes[:, i], positions[:, i], i - 1))
            elif self.condition is not None and name in self.condition.allowed:
                factors.append(self._condition_factor(name, i))
        return CaseEvidence(codes=codes, given=given, factors=tuple(factors))

    def _condition_factor(self, name: str, i: int) -> Factor:
        """Build the likelihood of a column's codes: the share of their values that are allowed."""
        if i not in self._bin_values:
            shares = self.condition.allowed[name].shares  # type: ignore[union-attr]
            return Factor(attribute=i, table=shares[None, :])
        shares = self._bin_values[i].shares
        if len(shares) == 1:
            return Factor(attribute=i, table=shares)
        # Roundness is the attribute before its column. The later one in σ has the factor.
        order = self.law.order
        if order.index(i) > order.index(i - 1):
            return Factor(attribute=i, by=i - 1, table=shares)
        return Factor(attribute=i - 1, by=i, table=np.ascontiguousarray(shares.T))

    def excluded(self, codes: Codes, positions: Counts, given: frozenset[int]) -> dict[str, Mask]:
        """Mark the rows whose given cell the condition excludes, by column."""
        found = {}
        for name, allowed in (self.condition.allowed if self.condition is not None else {}).items():
            i = self._indices[name]
            if i not in given:
                continue
            outside = ~allowed.codes[codes[:, i]]
            if i in self._bin_values:
                low, high = allowed.intervals.T
                at = np.searchsorted(low, positions[:, i], side="right") - 1
                inside = (at >= 0) & (positions[:, i] <= high[at]) if len(low) else at >= 0
                present = codes[:, i] < allowed.attribute.bins
                outside |= present & ~inside
            if outside.any():
                found[name] = outside
        return found

    def draw(
        self,
        posterior: Posterior,
        cases: Indices,
        fixed: Mapping[int, Counts],
        rng: Rng,
        infeasible: Callable[[int], InputError],
    ) -> tuple[Codes, Counts]:
        """Draw a record for each of some cases, and the positions of its numeric cells.

        Args:
            posterior: The distribution given the evidence of each case.
            cases: The case of each record.
            fixed: The given positions of numeric columns, one for each record.
            rng: Source of randomness.
            infeasible: Makes the error for a case that has hardly any record that satisfies the
                constraints.
        """
        solver = self.schema.constraint_solver
        codes, positions = self._draw_once(posterior, cases, fixed, rng)
        if not solver:
            return codes, positions
        kept = [*fixed, *(i for i in self._bin_values if i not in fixed)]
        wrong = np.flatnonzero(~solver.feasible(codes, {i: positions[:, i] for i in kept}))
        for _ in range(_MAX_REDRAWS):
            if not len(wrong):
                break
            own = {i: column[wrong] for i, column in fixed.items()}
            again, at = self._draw_once(posterior, cases[wrong], own, rng)
            codes[wrong], positions[wrong] = again, at
            wrong = wrong[~solver.feasible(again, {i: at[:, i] for i in kept})]
        if len(wrong):
            raise infeasible(int(cases[wrong[0]]))
        repaired = solver.repair(codes, positions, rng, {i: positions[:, i] for i in kept})
        return codes, repaired

    def _draw_once(
        self, posterior: Posterior, cases: Indices, fixed: Mapping[int, Counts], rng: Rng
    ) -> tuple[Codes, Counts]:
        codes = posterior.draw(cases, rng)
        positions = self.codec.draw_positions(codes, rng)
        for i, values in self._bin_values.items():
            if i not in fixed:
                levels = codes[:, i - 1] if values.heaping is not None else None
                positions[:, i] = values.draw(codes[:, i], levels, rng)
        for i, given in fixed.items():
            present = codes[:, i] < self.schema.attributes[i].bins
            positions[:, i] = np.where(present, given, positions[:, i])
        return codes, positions


def _roundness_factor(heaping: Heaping, codes: Codes, positions: Counts, attribute: int) -> Factor:
    """Build the likelihood of the roundness of given numbers.

    A number in a bin comes from its own roundness level, and from levels that do not occur in the
    bin and are replaced by it. A missing cell comes from any level.
    """
    nearest = heaping.nearest_levels
    bins, levels = nearest.shape
    table = np.zeros((bins * levels + 1, levels))
    for each in range(levels):
        table[np.arange(bins) * levels + each] = nearest == each
    table[-1] = 1.0
    present = codes < bins
    own = np.where(present, codes, 0).astype(np.intp)
    level = heaping.level_of(positions, own)
    rows = np.where(present, own * levels + level, bins * levels)
    return Factor(attribute=attribute, table=table, rows=rows)
