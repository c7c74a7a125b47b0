"""A manifest read with suspicion: what it says, in the words of the second accountant."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from deniable.data.schema import Schema
from deniable.privacy.audit import Use, cost_of_one_test, require
from deniable.privacy.composition import Guarantee

# What a manifest stands beside: a release, an artefact, or one file of generated records.
Place = Literal["release", "artefact", "file"]


# How the counts of one attribute are called in a ledger; both as long as each other.
OF_VALUES, OF_COUNTS = "values of ", "counts of "
# And its sums, where it was learnt as a Normal or by regression: all three.
OF_RECORDS, OF_SUMS, OF_SQUARES = "records of ", "sums of ", "squares of "
# How pairs of attributes are called: choosing them, counting them, counting some again.
OF_PAIRS = ("strength of pairs", "pairs of attributes", "second look at pairs")
# How many sums of values, and of products of two, one record moves.
MOVED_SUMS = {"normal": (1, 1), "regression": (4, 10)}
# What the printed six digits may add to a number.
_DIGITS = 1.1e-5


@dataclass(frozen=True, kw_only=True)
class Claims:
    """A manifest, read with suspicion.

    Attributes:
        document: What it says.
        place: What it stands beside.
        schema: The schema beside it, where there is one.
    """

    document: Mapping[str, Any]
    place: Place
    schema: Schema | None = None

    @property
    def mode(self) -> str:
        """What happened to the seeds."""
        return str(self.document["mode"])

    @property
    def parameters(self) -> dict[str, Any]:
        """The options that shaped the release."""
        return dict(self.document["parameters"])

    @property
    def cost(self) -> Guarantee:
        """(ε, δ) that is claimed; ε is infinite where it is not."""
        claimed = self.document["guarantee"]
        return Guarantee(epsilon=_real(claimed["epsilon"]), delta=_real(claimed["delta"]))

    @property
    def of_own_model(self) -> bool:
        """Whether the model was the user's: then nothing was spent that we know of."""
        return self.mode == "tested" and self.document["spends"] == []

    @property
    def nothing(self) -> bool:
        """Whether nothing at all is claimed."""
        return self.cost.epsilon == math.inf and not self.of_own_model

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Every use of the data; stated costs are those of their theorems, not rounded."""
        listed = [Use.read(entry) for entry in self.document["spends"]]
        return tuple(self._exactly(use) for use in listed)

    def _exactly(self, use: Use) -> Use:
        if use.each is None:
            return use
        if use.what == "deniability tests":
            names = ("k", "epsilon0", "t", "gamma", "dummies")
            exact = cost_of_one_test(**{name: self.parameters[name] for name in names})
        else:
            exact = (use.scale[0], 0.5 * self.parameters["delta"])  # β of the paper's profile
        for said, true in zip(use.each, exact, strict=True):
            near = true * (1 - 1e-12) <= said <= true * (1 + _DIGITS)
            require(near, f"{use.what}: one is not said to cost what its theorem says")
        return replace(use, each=exact)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes: the schema's, or those whose counts or sums are in the ledger."""
        if self.schema is not None:
            return self.schema.names
        whats = [str(entry["what"]) for entry in self.document["spends"]]
        starts = (OF_VALUES, OF_COUNTS, OF_RECORDS)
        found = [(what, start) for what in whats for start in starts if what.startswith(start)]
        return tuple(what.removeprefix(start) for what, start in found)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """How each attribute was learnt: as the schema says; without one, as the ledger does."""
        if self.schema is not None:
            return tuple(attribute.model for attribute in self.schema.attributes)
        sums = {use.what: use.moved for use in self.uses if use.what.startswith(OF_SUMS)}
        known = {moved: model for model, (moved, _) in MOVED_SUMS.items()}
        moved = [sums.get(f"{OF_SUMS}{name}", 0) for name in self.names]
        return tuple(known.get(number, "histogram") for number in moved)

    @property
    def pairs(self) -> tuple[int, int]:
        """How many pairs the attributes have, and how many of them must have been counted.

        As many as leave each a deviation of a 300th of the rows when all may cost what they did;
        a quarter of all at least, or 3 for two attributes if that is more, 5 if that is less; and
        at most 700, or 7 for each.
        """
        m, rows = len(self.names), self.parameters["rows_max"]
        every = m * (m - 1) // 2
        uses = [use for use in self.uses if use.what in OF_PAIRS]
        if any(use.law == "exact" for use in uses):
            return every, every
        mu = math.sqrt(math.fsum(use.moved / use.scale[0] ** 2 for use in uses))
        # A number that lies on the edge of two may be either, as doubles round.
        clear = [(mu * off * rows / 300) ** 2 for off in (1 - 1e-9, 1 + 1e-9)]
        fewest = max(3 * m // 2, min(every // 4, 5 * m // 2))
        least, most = (min(every, max(int(min(c, max(700, 7 * m))), fewest)) for c in clear)
        said = next((use.moved for use in uses if use.what == OF_PAIRS[1]), least)
        return every, said if least <= said <= most else least

    @property
    def of_pairs(self) -> bool:
        """Whether values and pairs were counted, not the tables of a graph."""
        return bool(self.parameters["estimator"] == "pairs")

    @property
    def unit(self) -> str | None:
        """The column that says whose row it is; None: every row is its own."""
        said = self.parameters.get("unit")
        return None if said is None else str(said)

    @property
    def rows(self) -> int:
        """The most rows of one unit that were used."""
        return int(self.parameters.get("rows_per_unit", 1))

    @property
    def has_unit(self) -> bool:
        """Whether several rows may be one person's; without a schema, as the manifest says."""
        if self.schema is None:
            return "unit" in self.parameters
        return self.schema.unit is not None

    @property
    def has_draft(self) -> bool:
        """Whether the schema was bought from the table; without a schema, as the manifest says."""
        if self.schema is None:
            return "draft" in self.parameters
        return self.schema.draft is not None

    @property
    def draft(self) -> Guarantee | None:
        """What the schema is said to have cost."""
        said = self.parameters.get("draft")
        return None if said is None else Guarantee(**said)

    @property
    def cost_of_row(self) -> Guarantee:
        """What the run is claimed to cost for one row: less the draft, and for one of its rows.

        Claims are rounded up, so that this is not below the truth.
        """
        cost, draft = self.cost, self.draft
        if draft is not None:
            left = (cost.epsilon - draft.epsilon, cost.delta - draft.delta)
            require(min(left) > 0, "the draft of the schema costs more than all together")
            cost = Guarantee(epsilon=left[0], delta=left[1])
        if self.rows == 1:
            return cost
        each = cost.epsilon / self.rows
        require(self.rows * each < 700, "so many rows of one unit cannot be certified")
        steps = math.expm1(self.rows * each) / math.expm1(each)
        return Guarantee(epsilon=each, delta=cost.delta / steps)

    @property
    def lengths(self) -> int:
        """How many prefix lengths have a histogram of seeds."""
        if self.mode != "one-shot":
            return 0
        return sum(omega < len(self.names) for omega in self.parameters["omega"])


def _real(value: Any) -> float:
    require(type(value) is float or value == "inf", "a cost is two numbers")
    return float(value)
