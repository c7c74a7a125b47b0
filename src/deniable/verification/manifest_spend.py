"""Parse the privacy spends (ledger entries) of a manifest, and refuse invalid ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deniable.errors import VerificationError

# Names of each noise law's parameters, in the manifest's order.
LAW_PARAMETERS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "rounded_gaussian": ("sigma",),
    "discrete_laplace": ("epsilon",),
    "truncated_geometric": ("epsilon", "r"),
}
_ENTRY_FIELDS = ("what", "part", "law", "sensitivity", "moved", "times", "each", "epsilon", "delta")


def require(condition: object, otherwise: str) -> None:
    """Raise ``VerificationError(otherwise)`` unless ``condition`` is true."""
    if not condition:
        raise VerificationError(otherwise)


@dataclass(frozen=True, kw_only=True)
class ManifestSpend:
    """One privacy spend (a noisy use of the data), parsed from a manifest.

    Attributes:
        what: Name of the noisy quantity.
        part: The part of the data that was used.
        law: Name of the noise law.
        scale: Parameters of the law, in the order of ``LAW_PARAMETERS``.
        sensitivity: Largest change of one number when one record is added or removed.
        moved: How many numbers one record changes.
        times: Number of repetitions of a cost stated by a theorem.
        each: The stated cost of one repetition, (ε, δ).
        claimed: The cost of this spend alone according to the manifest, (ε, δ).
    """

    what: str
    part: str
    law: str
    scale: tuple[float, ...] = ()
    sensitivity: int = 1
    moved: int = 1
    times: int = 1
    each: tuple[float, float] | None = None
    claimed: tuple[float, float] = (math.inf, 0.0)

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> "ManifestSpend":
        """Parse an entry of a manifest's ledger; refuse an invalid one."""
        require(
            tuple(entry) == _ENTRY_FIELDS, f"a ledger entry must have the fields {_ENTRY_FIELDS}"
        )
        law = dict(entry["law"])
        name = law.pop("name")
        what = entry["what"]
        known = name in LAW_PARAMETERS and tuple(law) == LAW_PARAMETERS[name]
        require(known, f"{what}: unknown noise law")
        numbers = [entry["sensitivity"], entry["moved"], entry["times"]]
        valid = all(type(number) is int and number >= 1 for number in numbers)
        require(valid, f"{what}: sensitivity, moved and times must be integers of at least 1")
        for key, value in law.items():
            valid = type(value) is (int if key == "r" else float) and 0 < value < math.inf
            require(valid and value <= 2**40, f"{what}: invalid {key} of its noise")
        each = entry["each"]
        return cls(
            what=what,
            part=entry["part"],
            law=name,
            scale=tuple(law.values()),
            sensitivity=numbers[0],
            moved=numbers[1],
            times=numbers[2],
            each=None if each is None else _parse_cost(each),
            claimed=_parse_cost({key: entry[key] for key in ("epsilon", "delta")}),
        )

    @property
    def r(self) -> int:
        """Largest absolute value of bounded noise."""
        return int(self.scale[LAW_PARAMETERS[self.law].index("r")])


def _parse_cost(cost: Mapping[str, Any]) -> tuple[float, float]:
    require(tuple(cost) == ("epsilon", "delta"), "a cost must have an epsilon and a delta")
    epsilon, delta = (math.inf if value == "inf" else value for value in cost.values())
    require(type(epsilon) is float and type(delta) is float, "ε and δ must be decimal numbers")
    require(epsilon >= 0 and 0 <= delta <= 1, "a cost needs ε ≥ 0 and 0 ≤ δ ≤ 1")
    return epsilon, delta
