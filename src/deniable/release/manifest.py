"""manifest.json: the public certificate of a release, in plain words and numbers.

Nothing in it depends on the data without noise: no row counts, pass rates, run times.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from deniable.data.schema import Schema
from deniable.privacy.ledger import Spend

FORMAT = "deniable manifest 1"
UNIT = "one input row"
NEIGHBOURS = "add or remove one input row"

NOT_COVERED = (
    "several rows of one person: the unit is a row",
    "what the schema says: it must be public knowledge, not read off the data",
    "anything else made from the same table, an evaluation against it included",
    "side channels such as run times, and the computer the table was on",
)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Everything a manifest says, but for the files it is about.

    Attributes:
        mode: What happened to the seeds.
        profile: Where options came from.
        data_use: Whether all records served every stage.
        parameters: The options that shaped the release.
        sentence: What is claimed.
        epsilon: ε of the claim, rounded up; inf where nothing is claimed.
        delta: δ of the claim, rounded up.
        assumptions: What the claim rests on.
        spends: Every use of the data.
    """

    mode: str
    profile: str
    data_use: str
    parameters: Mapping[str, Any]
    sentence: str
    epsilon: float
    delta: float
    assumptions: Sequence[str]
    spends: Sequence[Spend]

    def document(self, schema: Schema, hashes: Mapping[str, str]) -> dict[str, Any]:
        """Return the manifest of a release of these files, ready for JSON."""
        return {
            "format": FORMAT,
            "version": version("deniable"),
            "mode": self.mode,
            "profile": self.profile,
            "data_use": self.data_use,
            "parameters": {name: number(value) for name, value in self.parameters.items()},
            "guarantee": {
                "sentence": self.sentence,
                "epsilon": number(self.epsilon),
                "delta": number(self.delta),
                "unit": UNIT,
                "neighbours": NEIGHBOURS,
                "assumptions": list(self.assumptions),
            },
            "spends": [_entry(spend) for spend in self.spends],
            "not_covered": list(NOT_COVERED),
            "files": dict(hashes),
            "schema": {
                "sha256": sha256(schema.text().encode()),
                "drafted": [a.name for a in schema.attributes if not a.confirmed],
            },
        }


def number(value: Any) -> Any:  # noqa: ANN401 - JSON values of any kind pass through
    """Return a value as JSON can say it: infinity is the text "inf"."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def sha256(content: bytes) -> str:
    """Return the hash that a manifest lists for a file."""
    return hashlib.sha256(content).hexdigest()


def _entry(spend: Spend) -> dict[str, Any]:
    return {
        "what": spend.what,
        "part": spend.part,
        "law": {"name": spend.law.name, **dict(spend.law.parameters)},
        "sensitivity": spend.sensitivity,
        "moved": spend.moved,
    }
