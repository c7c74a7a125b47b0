"""manifest.json: the public certificate of a release, in plain words and numbers.

Nothing in it depends on the data without noise: no row counts, pass rates, run times.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from deniable.data.schema import Schema
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend, cost_of
from deniable.privacy.sentences import neighbours_of, round_up, unit_of

FORMAT = "deniable manifest 1"

ACCOUNTANT = "privacy loss distributions"

ASSUMPTIONS = (
    "the schema is public knowledge: it was not read off this table, or somebody confirmed it",
    "the options were fixed before anybody looked at the table",
    "noise came from the operating system's CSPRNG, as whole numbers, and nobody saw it",
)

_SEVERAL_ROWS = "several rows of one person: the unit is a row"
_NOT_COVERED = (
    "what the schema says, where it was read off the data",
    "anything else made from the same table, an evaluation against it included: costs add up",
    "that a table is refused because a cell does not fit its schema: then correct the schema from "
    "what everybody may know",
    "side channels such as run times, and the computer the table is on",
)


def not_covered(unit: str | None) -> list[str]:
    """Return what no claim is about; rows of one person, only where nobody said whose they are."""
    return [*([_SEVERAL_ROWS] if unit is None else []), *_NOT_COVERED]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Everything a manifest says, but for the files it is about.

    Attributes:
        mode: What happened to the seeds.
        profile: Where options came from.
        data_use: Whether all records served every stage.
        parameters: The options that shaped the release.
        sentence: What is claimed.
        cost: (ε, δ) of the claim; ε is infinite where nothing is claimed.
        assumptions: What the claim rests on.
        spends: Every use of the data, and what it costs alone.
        accountants: The total, by each accountant that was asked.
    """

    mode: str
    profile: str
    data_use: str
    parameters: Mapping[str, Any]
    sentence: str
    cost: Guarantee
    assumptions: Sequence[str]
    spends: Sequence[Mapping[str, Any]]
    accountants: Sequence[Mapping[str, Any]]

    @property
    def claims_privacy(self) -> bool:
        """Whether anything is claimed."""
        return self.cost.epsilon < math.inf

    def document(self, schema: Schema, hashes: Mapping[str, str]) -> dict[str, Any]:
        """Return the manifest of a release of these files, ready for JSON."""
        document = {
            "format": FORMAT,
            "version": version("deniable"),
            "mode": self.mode,
            "profile": self.profile,
            "data_use": self.data_use,
            "parameters": {name: number(value) for name, value in self.parameters.items()},
            "guarantee": {
                "sentence": self.sentence,
                "epsilon": number(self.cost.epsilon),
                "delta": self.cost.delta,
                "unit": unit_of(schema.unit),
                "neighbours": neighbours_of(schema.unit),
                "assumptions": list(self.assumptions),
            },
            "spends": [dict(spend) for spend in self.spends],
            "accountants": [dict(accountant) for accountant in self.accountants],
            "not_covered": not_covered(schema.unit),
            "files": dict(hashes),
            "schema": {
                "sha256": hashlib.sha256(schema.text().encode()).hexdigest(),
                "drafted": list(schema.drafted),
            },
        }
        return sealed(document)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the certificate in a manifest. Whether it is true is for ``verify`` to say."""
        document = json.loads(path.read_text(encoding="utf-8"))
        claimed = document["guarantee"]
        return cls(
            mode=document["mode"],
            profile=document["profile"],
            data_use=document["data_use"],
            parameters=document["parameters"],
            sentence=claimed["sentence"],
            cost=Guarantee(epsilon=float(claimed["epsilon"]), delta=float(claimed["delta"])),
            assumptions=claimed["assumptions"],
            spends=document["spends"],
            accountants=document["accountants"],
        )


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with its own checksum, so that nothing in it changes by accident.

    It is no signature: whoever changes the rest can put it right.
    """
    rest = {name: value for name, value in document.items() if name != "checksum"}
    text = json.dumps(rest, ensure_ascii=False, allow_nan=False)
    return {**rest, "checksum": hashlib.sha256(text.encode()).hexdigest()}


def number(value: Any) -> Any:
    """Return a value as JSON can say it: infinity is the text "inf"."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def entries(spends: Sequence[Spend], *, delta: float) -> list[dict[str, Any]]:
    """Return the uses of the data as a manifest lists them, each with its cost alone."""
    listed = []
    for spend in spends:
        # The same noise costs the same, whatever it is of: one name, and the cost is known.
        alone = cost_of((replace(spend, what="", part="seeds"),), delta=delta)
        listed.append(
            {
                "what": spend.what,
                "part": spend.part,
                "law": {"name": spend.law.name, **dict(spend.law.parameters)},
                "sensitivity": spend.sensitivity,
                "moved": spend.moved,
                "times": spend.times,
                "each": _pair(spend.each) if spend.each is not None else None,
                **_pair(alone),
            }
        )
    return listed


def _pair(cost: Guarantee) -> dict[str, Any]:
    return {"epsilon": number(round_up(cost.epsilon)), "delta": round_up(cost.delta)}
