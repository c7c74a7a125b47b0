"""Records given a condition, with shares of a column's values, or completed from given rows.

Records are drawn in numbered blocks. A block depends on its number, the key and its given rows, so
any number of workers draws the same records.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

import numpy as np
import polars as pl

from deniable.answers.balance import Balance
from deniable.answers.case_evidence import CaseEvidence
from deniable.answers.conditional_draw import ConditionalDraw
from deniable.answers.inference import Posterior, infer
from deniable.arrays import CODE
from deniable.data.complete_records import add_unmodelled_columns
from deniable.errors import ConfigError, InputError
from deniable.randomness import Randomness
from deniable.workers import Progress, count_cores, map_in_order

# Records per block: each block selects its own states where inference is approximate.
_RECORDS_PER_BLOCK = 2**16


def _probability(posterior: Posterior) -> str:
    """Name a probability that was found to be 0: a selection of states may miss what is rare."""
    return "probability 0" if posterior.is_exact else "little or no probability"


class ConditionalSource(Protocol):
    """Records that can be drawn block by block, as frames; every reading yields the same."""

    @property
    def number(self) -> int:
        """The number of records."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What the records were drawn given, for a manifest."""

    def frames(self, tally: "InferenceTally", progress: Progress) -> Iterator[pl.DataFrame]:
        """Yield all records, and add up the errors of inference."""


@dataclass
class InferenceTally:
    """Errors of inference, added up over blocks.

    Attributes:
        cases: The number of cases.
        total_variation: The sum of the estimated errors of their distributions.
        is_exact: Whether all were exact.
        cuts_constrained: Whether the request cuts through bins of a column with a constraint, so
            that records are accepted by a number of trials, which is bounded.
    """

    cases: int = 0
    total_variation: float = 0.0
    is_exact: bool = True
    cuts_constrained: bool = False

    def add(self, other: "InferenceTally") -> None:
        """Add the errors of a block."""
        self.cases += other.cases
        self.total_variation += other.total_variation
        self.is_exact &= other.is_exact
        self.cuts_constrained |= other.cuts_constrained

    @classmethod
    def of(cls, posterior: Posterior, *, cuts_constrained: bool = False) -> "InferenceTally":
        """Take the errors of one inference."""
        found, exact = posterior.total_variation, posterior.is_exact
        return cls(
            len(found), float(found.sum()), is_exact=exact, cuts_constrained=cuts_constrained
        )

    def document(self) -> dict[str, Any]:
        """Describe the inference, for a manifest."""
        more = {"cuts_constrained_bins": True} if self.cuts_constrained else {}
        if self.is_exact:
            method = "nearly exact" if self.cuts_constrained else "exact"
            return {"method": method, **more}
        mean = float(f"{self.total_variation / max(self.cases, 1):.2g}")
        return {"method": "selected states", "total_variation": mean, **more}


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectedRecords:
    """Records given a condition, or with shares of a column's values.

    Attributes:
        draw: Draws records under the condition.
        balance: The shares; None: those of the model.
        number: The number of records.
        randomness: Addressed by a key.
        workers: Threads; None: one for each core.
    """

    draw: ConditionalDraw = field(repr=False)
    balance: Balance | None
    number: int
    randomness: Randomness = field(repr=False)
    workers: int | None = None
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        condition = self.draw.condition
        if self.balance is not None and condition is not None:
            name = self.balance.attribute.name
            if name in condition.allowed:
                raise ConfigError(
                    f'where names column "{name}", which balance sets; use shares of 0 to leave '
                    "values out"
                )

    @cached_property
    def mass(self) -> float:
        """The probability that a record of the artefact satisfies the condition; or its mean.

        Over the balanced values, where there are such. An estimate where inference is approximate.
        """
        rng = self.randomness.at("candidates")
        found = infer(self.draw.law, self._evidence, rng, shared=True)
        return float(np.exp(found.log_likelihoods).mean())

    @property
    def parameters(self) -> dict[str, Any]:
        """What the records were drawn given, for a manifest."""
        condition, balance = self.draw.condition, self.balance
        found: dict[str, Any] = {} if condition is None else {"where": condition.text}
        if balance is not None:
            found["balance"] = {balance.attribute.name: [float(x) for x in balance.shares]}
        return found

    def frames(self, tally: InferenceTally, progress: Progress) -> Iterator[pl.DataFrame]:
        """Yield all records, and add up the errors of inference."""
        blocks = range(-(-self.number // _RECORDS_PER_BLOCK))
        progress("records", 0, self.number)
        done = 0
        for frame, own in map_in_order(self._frame, blocks, workers=self.workers or count_cores()):
            tally.add(own)
            done += len(frame)
            yield frame
            progress("records", done, self.number)

    def _frame(self, block: int) -> tuple[pl.DataFrame, InferenceTally]:
        rng, first = self.randomness.at("records", block), block * _RECORDS_PER_BLOCK
        number = min(_RECORDS_PER_BLOCK, self.number - first)
        posterior = self._exact
        if posterior is None:
            posterior = self._require_possible(
                infer(self.draw.law, self._evidence, rng, shared=True)
            )
        cases = np.zeros(number, dtype=np.intp)
        if self.balance is not None:
            cases = self.balance.draw(first, number, rng)
        codes, positions = self.draw.draw(posterior, cases, {}, rng, self._infeasible)
        frame = add_unmodelled_columns(
            self.draw.codec.values(codes, positions),
            self.draw.schema,
            first_record=first + 1,
            salt=self.randomness.at("identifiers").words(2).tobytes(),
        )
        cut = self.draw.cuts_constrained(frozenset())
        return frame, InferenceTally.of(posterior, cuts_constrained=cut)

    @cached_property
    def _evidence(self) -> CaseEvidence:
        m = len(self.draw.schema.attributes)
        empty = np.zeros((1, m), dtype=CODE)
        evidence = self.draw.evidence(empty, np.zeros((1, m), dtype=np.int64), frozenset())
        if self.balance is None:
            return evidence
        codes = np.zeros((len(self.balance.codes), m), dtype=CODE, order="F")
        codes[:, self.balance.index] = self.balance.codes
        return replace(evidence, codes=codes, given=frozenset({self.balance.index}))

    @property
    def _exact(self) -> Posterior | None:
        """The distribution of all records, where it is exact; it is computed once."""
        with self._lock:
            return self._shared

    @cached_property
    def _shared(self) -> Posterior | None:
        # Without randomness for the blocks: an exact inference uses none.
        rng = self.randomness.at("candidates")
        found = infer(self.draw.law, self._evidence, rng, shared=True)
        self._require_possible(found)
        return found if found.is_exact else None

    def _require_possible(self, posterior: Posterior) -> Posterior:
        impossible = np.flatnonzero(posterior.log_likelihoods == -np.inf)
        if len(impossible):
            raise ConfigError(
                f"the model gives {_probability(posterior)} to records with "
                f"{self._describe(int(impossible[0]))}. Ask for other values"
            )
        return posterior

    def _infeasible(self, case: int) -> InputError:
        return ConfigError(
            "the constraints of the schema exclude nearly all records with "
            f"{self._describe(case)}. Ask for other values"
        )

    def _describe(self, case: int) -> str:
        """Describe what the request allows, in the words of the schema."""
        attributes = sorted(self._evidence.attributes)
        return " and ".join(dict.fromkeys(self._describe_one(i, case) for i in attributes))

    def _describe_one(self, i: int, case: int) -> str:
        schema, condition = self.draw.schema, self.draw.condition
        name = schema.names[i]
        if name in schema.roundness_names:
            name = schema.names[i + 1]
        if self.balance is not None and name == self.balance.attribute.name:
            code = int(self.balance.codes[case])
            return f'"{name}" = {self.balance.value_text(code)}'
        if condition is None:
            return f'"{name}"'
        return f'"{name}" = {condition.allowed[name].text()}'
