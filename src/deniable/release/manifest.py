"""manifest.json: the public certificate of a release.

Everything in it is public or noisy: no row counts, no pass rates, no run times.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend, compose_spends
from deniable.privacy.wording import neighbouring_relation, protected_unit, round_up
from deniable.schema.schema import Schema

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
    """List what the guarantee does not cover; without a unit, also several rows of one person."""
    return [*([_SEVERAL_ROWS] if unit is None else []), *_NOT_COVERED]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Content of a manifest, except for the files it lists.

    Attributes:
        mode: Release mode: how seeds were used.
        profile: Profile of default options.
        data_use: "whole" if every stage used all records, "split" if each used a part.
        parameters: Options of the run.
        sentence: The guarantee sentence.
        cost: The claimed (ε, δ); ε is infinite if no privacy is claimed.
        assumptions: Assumptions of the guarantee.
        spends: Every privacy spend, with its cost alone.
        accountants: The total cost, by accountant.
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
        """Whether a finite ε is claimed."""
        return self.cost.epsilon < math.inf

    def document(self, schema: Schema, hashes: Mapping[str, str]) -> dict[str, Any]:
        """Build the manifest of a release with these file hashes, ready for JSON."""
        document = {
            "format": FORMAT,
            "version": version("deniable"),
            "mode": self.mode,
            "profile": self.profile,
            "data_use": self.data_use,
            "parameters": {name: json_number(value) for name, value in self.parameters.items()},
            "guarantee": {
                "sentence": self.sentence,
                "epsilon": json_number(self.cost.epsilon),
                "delta": self.cost.delta,
                "unit": protected_unit(schema.unit),
                "neighbours": neighbouring_relation(schema.unit),
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
        return add_checksum(document)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the certificate in a manifest, unverified: ``verify`` checks it."""
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


def add_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Add a manifest's own checksum, which detects accidental changes. It is not a signature."""
    rest = {name: value for name, value in document.items() if name != "checksum"}
    text = json.dumps(rest, ensure_ascii=False, allow_nan=False)
    return {**rest, "checksum": hashlib.sha256(text.encode()).hexdigest()}


def json_number(value: Any) -> Any:
    """Convert a value to JSON: infinity becomes the text "inf"."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def ledger_entries(spends: Sequence[Spend], *, delta: float) -> list[dict[str, Any]]:
    """List privacy spends as a manifest's ledger does, each with its cost alone."""
    listed = []
    for spend in spends:
        # Equal noise has equal cost: without its name, the cached cost is found.
        alone = compose_spends((replace(spend, what="", part="seeds"),), delta=delta)
        listed.append(
            {
                "what": spend.what,
                "part": spend.part,
                "law": {"name": spend.law.name, **dict(spend.law.parameters)},
                "sensitivity": spend.sensitivity,
                "moved": spend.moved,
                "times": spend.times,
                "each": _cost_fields(spend.each) if spend.each is not None else None,
                **_cost_fields(alone),
            }
        )
    return listed


def _cost_fields(cost: Guarantee) -> dict[str, Any]:
    return {"epsilon": json_number(round_up(cost.epsilon)), "delta": round_up(cost.delta)}
