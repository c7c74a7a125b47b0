"""Privacy cost of a private draft: the section [draft] of a schema."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from deniable.errors import SchemaError
from deniable.schema.toml_writer import write_value

# More columns than any table has.
_MAX_COLUMNS = 10**6


@dataclass(frozen=True, kw_only=True)
class StatedDraftNoise:
    """Noise of a private draft, as a schema states it; each unit is one row.

    Attributes:
        mu: μ of all Gaussian noise together.
        columns: The number of drafted columns.
        text_delta: The largest probability that the draft shows a text of a single row.
    """

    mu: float
    columns: int
    text_delta: float

    def __post_init__(self) -> None:
        types = tuple(map(type, asdict(self).values()))
        if not (
            types == (float, int, float)
            and 0 < self.mu < math.inf
            and 1 <= self.columns <= _MAX_COLUMNS
            and 0 <= self.text_delta < 1
        ):
            raise SchemaError(
                "mu, columns and text_delta of [draft] must be as deniable init wrote them: "
                f"0 < mu, 1 <= columns <= {_MAX_COLUMNS}, 0 <= text_delta < 1"
            )


_NOISE_KEYS = tuple(each.name for each in fields(StatedDraftNoise))


@dataclass(frozen=True, kw_only=True)
class DraftCost:
    """Privacy cost of drafting a schema from the data.

    Attributes:
        epsilon: ε.
        delta: δ.
        unit: The column that identifies the protected unit; None if the unit is one row.
        noise: The noise behind ε and δ; None if the schema does not state it. Then the cost of a
            run is added to them, instead of composed with the noise.
    """

    epsilon: float
    delta: float
    unit: str | None = None
    noise: StatedDraftNoise | None = None

    def __post_init__(self) -> None:
        numbers = all(type(number) in (int, float) for number in (self.epsilon, self.delta))
        if not (numbers and 0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise SchemaError("draft needs a finite epsilon above 0, and 0 <= delta < 1")
        if self.unit is not None and not (type(self.unit) is str and self.unit):
            raise SchemaError("the unit of [draft] must be the name of a column")
        if self.unit is not None and self.noise is not None:
            raise SchemaError("[draft] has the noise of single rows: remove mu, or unit")

    @property
    def stated(self) -> dict[str, Any]:
        """The cost and the noise by their keys in the schema, without ``unit``."""
        noise = {} if self.noise is None else asdict(self.noise)
        return {"epsilon": float(self.epsilon), "delta": float(self.delta), **noise}

    def lines(self) -> list[str]:
        """Write the section as TOML lines."""
        keys = self.stated | ({} if self.unit is None else {"unit": self.unit})
        return ["[draft]", *(f"{key} = {write_value(value)}" for key, value in keys.items())]


def parse_draft(table: object) -> DraftCost:
    """Parse the section."""
    known = isinstance(table, Mapping) and set(table) - {"unit", *_NOISE_KEYS}
    if not (isinstance(table, Mapping) and known == {"epsilon", "delta"}):
        raise SchemaError(
            "[draft] must have epsilon and delta, optionally unit, or mu, columns and text_delta, "
            "and no other key"
        )
    found = {key: table[key] for key in _NOISE_KEYS if key in table}
    if found and len(found) < len(_NOISE_KEYS):
        raise SchemaError("[draft] must have all of mu, columns and text_delta, or none of them")
    return DraftCost(
        epsilon=table["epsilon"],
        delta=table["delta"],
        unit=table.get("unit"),
        noise=StatedDraftNoise(**found) if found else None,
    )
