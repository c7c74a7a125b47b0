"""Draw complete records given filled cells and a condition: codes, and positions within bins.

The law is that of the released records, given the evidence. Constraints of two columns are part of
the inference; records that violate another one are drawn again.

Where a constraint cuts through bins, released values are uniform among the s of n combinations of
the bins' values that satisfy it. If the evidence cuts through these bins too and leaves r of the s,
the probability of the codes has the factor r / s. Inference only knows the share of each column on
its own, so records are accepted such that r / s results: the values must satisfy the constraint
(r), and the number of trials until plain values do, whose mean is n / s, is compared with a uniform
number.
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
from deniable.errors import InputError, InvariantError
from deniable.model.bayesian_network import empty_codes
from deniable.randomness import Rng
from deniable.schema.constraint_solver import ConstraintSolver
from deniable.schema.heaping import Heaping
from deniable.schema.schema import Schema

# Redraws of records that violate a constraint. If one record in 50 satisfies them, fewer than one
# in 10^4 is left by then.
_MAX_REDRAWS = 500
# Trials until plain values of a record's bins satisfy the constraints: more count as this number.
_MAX_TRIALS = 64
# Records whose maximum number of trials bounds that of the others.
_PILOT_RECORDS = 2**12

# Marks the records that are kept: codes, positions, given positions and a source of randomness.
_Check = Callable[[Codes, Counts, Mapping[int, Counts], Rng], Mask]


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

    @property
    def _solver(self) -> ConstraintSolver:
        solver = self.schema.constraint_solver
        if solver is None:
            raise InvariantError("a schema without constraints has nothing to check")
        return solver

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
        if not self.schema.constraint_solver:
            return self._draw_once(posterior, cases, fixed, rng)
        checks: list[_Check] = [self._repair]
        if self.cuts_constrained(frozenset(fixed)):
            some = slice(None, None, -(-len(cases) // _PILOT_RECORDS))
            own = {i: column[some] for i, column in fixed.items()}
            pilot, _ = self._draw_once(posterior, cases[some], own, rng)
            checks.insert(0, self._accept_whole(pilot, rng))
        codes = empty_codes(len(cases), self.schema.attributes)
        positions = np.zeros(codes.shape, dtype=np.int64, order="F")
        left = np.arange(len(cases))
        for check in checks:
            for _ in range(_MAX_REDRAWS + 1):
                if not len(left):
                    return codes, positions
                own = {i: column[left] for i, column in fixed.items()}
                again, at = self._draw_once(posterior, cases[left], own, rng)
                good = check(again, at, own, rng)
                codes[left[good]], positions[left[good]] = again[good], at[good]
                left = left[~good]
        if len(left):
            raise infeasible(int(cases[left[0]]))
        return codes, positions

    def cuts_constrained(self, given: frozenset[int]) -> bool:
        """Whether the evidence cuts through bins of a column that has a constraint."""
        named = {name for each in self.schema.constraints for name in each.columns}
        attributes = self.schema.attributes
        wide = [i for i in given if attributes[i].is_numeric and (attributes[i].widths > 1).any()]
        cut = [
            i
            for i, values in self._bin_values.items()
            if ((values.shares > 0) & (values.shares < 1)).any()
        ]
        return any(attributes[i].name in named for i in (*wide, *cut))

    def _accept_whole(self, codes: Codes, rng: Rng) -> _Check:
        """Build the check of records by all their positions, with the weight n / s."""
        most = int(self._count_trials(codes, rng).max())

        def accept(codes: Codes, positions: Counts, _: Mapping[int, Counts], rng: Rng) -> Mask:
            everything = {
                i: positions[:, i] for i, a in enumerate(self.schema.attributes) if a.is_numeric
            }
            good = self._solver.feasible(codes, everything)
            own = np.flatnonzero(good)
            if most > 1 and len(own):
                trials = self._count_trials(codes[own], rng, most)
                good[own] = rng.random(len(own)) * most < trials
            return good

        return accept

    def _count_trials(self, codes: Codes, rng: Rng, most: int = _MAX_TRIALS) -> Counts:
        """Draw plain positions until they satisfy the constraints; count, to at most ``most``."""
        trials = np.ones(len(codes), dtype=np.int64)
        left = np.flatnonzero(self._solver.feasible(codes))
        numeric = [i for i, a in enumerate(self.schema.attributes) if a.is_numeric]
        for _ in range(most - 1):
            if not len(left):
                break
            positions = self.codec.draw_positions(codes[left], rng)
            fixed = {i: positions[:, i] for i in numeric}
            left = left[~self._solver.feasible(codes[left], fixed)]
            trials[left] += 1
        return trials

    def _repair(
        self, codes: Codes, positions: Counts, fixed: Mapping[int, Counts], rng: Rng
    ) -> Mask:
        """Repair positions, in place, within what the evidence allows; mark where that is possible.

        A column that the condition cuts stays in the interval of allowed values it was drawn in.
        """
        solver, ranges = self._solver, dict(fixed)
        for i, values in self._bin_values.items():
            if i not in fixed:
                ranges[i] = _allowed_range(values, codes[:, i], positions[:, i])
        good = solver.feasible(codes, ranges)
        own = {i: ends[..., good] for i, ends in ranges.items()}
        positions[good] = solver.repair(codes[good], positions[good], rng, own)
        return good

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


def _allowed_range(values: BinValues, codes: Codes, positions: Counts) -> Counts:
    """The ends of the allowed interval, within its bin, that holds each position."""
    bins, low, high = values.allowed.pieces
    ends = np.stack([positions, positions])
    present = np.flatnonzero(codes < values.allowed.attribute.bins)
    if len(bins):
        at = np.searchsorted(low, positions[present], side="right") - 1
        ends[:, present] = low[at], high[at]
    return ends


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
