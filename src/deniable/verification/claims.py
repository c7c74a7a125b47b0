"""Claims of a manifest, parsed without trusting it, and the result type of a check.

``ManifestClaims`` gives typed access to a manifest. Where the schema or a theorem determines a
number, that number is used instead of the manifest's. ``run_check`` runs one check and turns any
failure into a failed ``Check``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import polars as pl

from deniable.errors import DeniableError
from deniable.privacy.composition import Guarantee
from deniable.schema.schema import Schema
from deniable.verification.manifest_spend import ManifestSpend, require
from deniable.verification.second_accountant import (
    randomized_test_cost,
    subtract_draft_errors,
)

# What a manifest describes: a release, an artefact, or one file of generated records.
Subject = Literal["release", "artefact", "file"]

# Ledger names of the counts of one attribute, by estimator.
VALUES_OF, COUNTS_OF = "values of ", "counts of "
# Ledger names of the sums of an attribute modelled as Normal or by regression.
RECORDS_OF, SUMS_OF, SQUARES_OF = "records of ", "sums of ", "squares of "
# Ledger names of the pair stages: interactions of all pairs, and two-way tables.
PAIR_SPENDS = ("interactions of pairs", "pairs of attributes")
THREE_WAY_SPEND = "three-way interactions"
# Ledger name of a private draft that the total composes with the run.
DRAFT_SPEND = "schema draft"
# How many numbers the ledger's entries of interactions count for each pair, and each triple.
NUMBERS_PER_PAIR = 4096
NUMBERS_PER_TRIPLE = 5488
# Three-way interactions of at most this many triples are measured, in place of this percentage of
# the two-way tables.
_MAX_TRIPLES, _RESERVED_PERCENT = 4096, 15
# Number of sums of values, and of sums of products, that one record changes.
MOMENT_L0_SENSITIVITIES = {"normal": (1, 1), "regression": (4, 10)}
# Largest relative error of a cost printed with six digits, rounded up.
_MAX_ROUNDING = 1.1e-5


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of one check of a release.

    Attributes:
        name: What was checked.
        passed: Whether the check passed.
        explanation: One sentence about the result. No cell of a table, no exact count.
        exact: Whether every digit and byte was compared. If not, because the release was made on
            another platform, a forgery within the tolerance goes undetected.
    """

    name: str
    passed: bool
    explanation: str
    exact: bool = True


@dataclass(frozen=True)
class Inexact:
    """Explanation of a check that passed within a tolerance for another platform."""

    explanation: str


def run_check(name: str, body: Callable[[], str | Inexact]) -> Check:
    """Run a check: ``body`` returns an explanation, or raises an error if the check fails.

    An untrusted release can hold anything, so every exception is a failed check.
    """
    try:
        found = body()
        if isinstance(found, Inexact):
            return Check(name=name, passed=True, explanation=found.explanation, exact=False)
        return Check(name=name, passed=True, explanation=found)
    except DeniableError as fault:
        return Check(name=name, passed=False, explanation=" ".join(str(fault).split()))
    except (Exception, pl.exceptions.PanicException) as fault:  # noqa: BLE001, RUF100 - fail closed
        why = f"not in the format that deniable writes ({type(fault).__name__})"
        return Check(name=name, passed=False, explanation=why)


@dataclass(frozen=True, kw_only=True)
class ManifestClaims:
    """The claims of an untrusted manifest.

    Attributes:
        document: The manifest's JSON object.
        subject: What the manifest describes.
        schema: The schema of the release; None for a single file of records.
    """

    document: Mapping[str, Any]
    subject: Subject
    schema: Schema | None = None

    @property
    def mode(self) -> str:
        """Release mode: how seeds were used."""
        return str(self.document["mode"])

    @property
    def parameters(self) -> dict[str, Any]:
        """Options of the run."""
        return dict(self.document["parameters"])

    @property
    def cost(self) -> Guarantee:
        """The claimed (ε, δ); ε is infinite if no privacy is claimed."""
        claimed = self.document["guarantee"]
        return Guarantee(
            epsilon=_parse_real(claimed["epsilon"]), delta=_parse_real(claimed["delta"])
        )

    @property
    def has_own_model(self) -> bool:
        """Whether the user supplied the model: then no privacy spend is known."""
        return self.mode == "tested" and self.document["spends"] == []

    @property
    def claims_nothing(self) -> bool:
        """Whether the manifest claims no guarantee at all."""
        return self.cost.epsilon == math.inf and not self.has_own_model

    @cached_property
    def spends(self) -> tuple[ManifestSpend, ...]:
        """All privacy spends; stated costs are recomputed from their theorems, unrounded."""
        listed = [ManifestSpend.parse(entry) for entry in self.document["spends"]]
        return tuple(self._with_exact_cost(spend) for spend in listed)

    def _with_exact_cost(self, spend: ManifestSpend) -> ManifestSpend:
        if spend.each is None:
            return spend
        if spend.what == "deniability tests":
            names = ("k", "epsilon0", "t", "gamma", "dummies")
            exact = randomized_test_cost(**{name: self.parameters[name] for name in names})
        else:
            exact = (spend.scale[0], 0.5 * self.parameters["delta"])  # β of the paper's profile
        for claimed, true in zip(spend.each, exact, strict=True):
            near = true * (1 - 1e-12) <= claimed <= true * (1 + _MAX_ROUNDING)
            require(near, f"{spend.what}: the stated cost differs from its theorem")
        return replace(spend, each=exact)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Attribute names: the schema's, or those with counts or sums in the ledger."""
        if self.schema is not None:
            return self.schema.names
        whats = [str(entry["what"]) for entry in self.document["spends"]]
        starts = (VALUES_OF, COUNTS_OF, RECORDS_OF)
        found = [(what, start) for what in whats for start in starts if what.startswith(start)]
        return tuple(what.removeprefix(start) for what, start in found)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Model kind of each attribute, from the schema; without a schema, from the ledger."""
        if self.schema is not None:
            return tuple(attribute.model for attribute in self.schema.attributes)
        sums = {spend.what: spend.moved for spend in self.spends if spend.what.startswith(SUMS_OF)}
        known = {moved: model for model, (moved, _) in MOMENT_L0_SENSITIVITIES.items()}
        moved = [sums.get(f"{SUMS_OF}{name}", 0) for name in self.names]
        return tuple(known.get(number, "histogram") for number in moved)

    @property
    def pair_stages(self) -> dict[str, int]:
        """The stages that measure pairs, in order, and how many numbers of each a record changes.

        The interactions of all pairs, counted 4,096 times each, unless their noise would be too
        large; three-way interactions, or the tables in their place; and four two-way tables for
        each pair, of at most 700 pairs or 7 per attribute, less those. Without noise, one table
        for each pair.
        """
        m = len(self.names)
        every = m * (m - 1) // 2
        tables = 4 * min(every, max(700, 7 * m))
        if not every:
            return {}
        if any(spend.law == "exact" for spend in self.spends if spend.what in PAIR_SPENDS):
            return {PAIR_SPENDS[1]: every}
        if all(spend.what != PAIR_SPENDS[0] for spend in self.spends):
            return {PAIR_SPENDS[1]: tables}
        stages = {PAIR_SPENDS[0]: NUMBERS_PER_PAIR * every}
        if any(spend.what == THREE_WAY_SPEND for spend in self.spends) and self.reserved_tables:
            stages[THREE_WAY_SPEND] = NUMBERS_PER_TRIPLE * math.comb(m, 3)
            tables -= self.reserved_tables
        return {**stages, PAIR_SPENDS[1]: tables}

    @property
    def reserved_tables(self) -> int:
        """The number of two-way tables that three-way interactions can replace, by the schema."""
        m = len(self.names)
        if not 0 < math.comb(m, 3) <= _MAX_TRIPLES:
            return 0
        return round(_RESERVED_PERCENT * 4 * min(m * (m - 1) // 2, max(700, 7 * m)) / 100)

    @property
    def is_pairwise(self) -> bool:
        """Whether the model is pairwise: fitted to values and pairs, not to tables of a graph."""
        return bool(self.parameters["estimator"] == "pairs")

    @property
    def unit(self) -> str | None:
        """Column that identifies the person of a row; None if every row is its own person."""
        unit = self.parameters.get("unit")
        return None if unit is None else str(unit)

    @property
    def rows_per_unit(self) -> int:
        """Largest number of rows used per unit."""
        return int(self.parameters.get("rows_per_unit", 1))

    @property
    def has_unit(self) -> bool:
        """Whether a person can have several rows, by the schema; without one, by the manifest."""
        if self.schema is None:
            return "unit" in self.parameters
        return self.schema.unit is not None

    @property
    def has_draft(self) -> bool:
        """Whether the schema is a private draft; without a schema, by the manifest."""
        if self.schema is None:
            return "draft" in self.parameters
        return self.schema.draft is not None

    @property
    def draft_cost(self) -> Guarantee | None:
        """Claimed cost of the private draft of the schema."""
        draft = self.parameters.get("draft")
        if draft is None:
            return None
        return Guarantee(epsilon=draft["epsilon"], delta=draft["delta"])

    @property
    def composed_draft(self) -> dict[str, Any] | None:
        """The private draft with its noise, if the total composes it with the run's; or None."""
        draft = self.parameters.get("draft")
        return dict(draft) if draft is not None and "mu" in draft else None

    @property
    def cost_per_row(self) -> Guarantee:
        """Claimed cost of all spends for one row, and for one row of a unit.

        Without a draft whose cost was added. Claims are rounded up, so this is not below the exact
        cost.
        """
        cost, draft = self.cost, self.draft_cost
        if self.composed_draft is not None:
            require(self.rows_per_unit == 1, "a draft is composed with a run for single rows only")
            # Texts of a single row, and the tables of the draft's noise, are not in its spend.
            epsilon, delta = subtract_draft_errors(cost.epsilon, cost.delta, self.composed_draft)
            return Guarantee(epsilon=epsilon, delta=delta)
        if draft is not None:
            left = (cost.epsilon - draft.epsilon, cost.delta - draft.delta)
            require(min(left) > 0, "the draft of the schema costs more than the total")
            cost = Guarantee(epsilon=left[0], delta=left[1])
        rows = self.rows_per_unit
        if rows == 1:
            return cost
        each = cost.epsilon / rows
        require(rows * each < 700, f"{rows:,} rows per unit are too many to certify")
        steps = math.expm1(rows * each) / math.expm1(each)
        return Guarantee(epsilon=each, delta=cost.delta / steps)

    @property
    def has_seed_histogram(self) -> bool:
        """Whether prefixes of seeds were counted: in mode ``one-shot``, unless ω = m."""
        return self.mode == "one-shot" and self.parameters["omega"] != [len(self.names)]

    @property
    def copies_prefixes(self) -> bool:
        """Whether records copy prefixes of seeds: whether any prefix was kept."""
        return self.has_seed_histogram and self.parameters["copies_prefixes"] is True


def _parse_real(value: Any) -> float:
    require(type(value) is float or value == "inf", "ε and δ must be decimal numbers")
    return float(value)
