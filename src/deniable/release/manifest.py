"""manifest.json: the public certificate of a release.

Everything in it is public or noisy: no row counts, no pass rates, no run times.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from deniable.errors import ArtefactError
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend
from deniable.privacy.wording import (
    caution,
    neighbouring_relation,
    protected_unit,
    round_up,
    rows_named,
)
from deniable.schema.schema import DEFAULT_ROWS_MAX, Schema

FORMAT = "deniable manifest 1"

ACCOUNTANT = "privacy loss distributions"

ASSUMPTIONS = (
    "the schema is public knowledge: it was not read off this table, or it was confirmed",
    "the options were fixed before the table was looked at",
    "the noise came from the operating system's CSPRNG, as integers, and stayed secret",
)

_SEVERAL_ROWS = "several rows of one person: the unit is a row"
_TOO_FEW_SEEDS = (
    "that a run is refused because the table gave no seeds, or too few candidates passed the test"
)
_NOT_COVERED = (
    "what the schema reveals, where it was read off the data",
    "any other use of the same table, evaluations included: costs add up",
    "that a table is refused because a cell or a column type does not fit the schema; correct the "
    "schema from public knowledge only",
    "side channels such as run times, and the computer that holds the table",
)
# A stranger wrote it, and an error repeats it: at most 32 characters, of ASCII.
_VERSION = re.compile(r"(?!.{33})\d+(\.\d+)+((a|b|rc|\.dev|\.post)\d+)*(\+[a-z0-9.]+)?", re.ASCII)

_GIVEN_CELLS = "given cells, which are copied as they are, and given rows taken from the table"


def not_covered(unit: str | None, mode: str, *, given: bool = False) -> list[str]:
    """List what the guarantee of a mode does not cover; without a unit, also several rows of one.

    For completed rows, also what was ``given``.

    A mode that claims differential privacy for its records refuses a table for no other reason:
    not because it has few rows, or none.
    """
    several = [_SEVERAL_ROWS] if unit is None else []
    copied = [_GIVEN_CELLS] if given else []
    return [*copied, *several, *_NOT_COVERED, *([_TOO_FEW_SEEDS] if mode == "tested" else [])]


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
    def summary(self) -> str:
        """Mode, ε and δ, for a one-line representation."""
        return f"mode={self.mode!r}, epsilon={self.cost.epsilon:g}, delta={self.cost.delta:g}"

    @property
    def facts(self) -> dict[str, str]:
        """Mode, ε, δ and k, for a notebook."""
        found = {"mode": self.mode, "ε": f"{self.cost.epsilon:g}", "δ": f"{self.cost.delta:g}"}
        return found | ({"k": str(self.parameters["k"])} if "k" in self.parameters else {})

    @property
    def claims_privacy(self) -> bool:
        """Whether a finite ε is claimed."""
        return self.cost.epsilon < math.inf

    @property
    def caution(self) -> str:
        """Warn of an ε or a δ that promises little or nothing; "" for usual ones."""
        stated = self.parameters.get("rows_max", DEFAULT_ROWS_MAX)
        return caution(
            self.cost,
            rows=max(stated, rows_named(self.sentence)),
            unit=self.parameters.get("unit"),
            of_model=self.mode == "tested",
        )

    def document(self, schema: Schema, hashes: Mapping[str, str]) -> dict[str, Any]:
        """Build the manifest of a release with these file hashes, ready for JSON."""
        from importlib.metadata import version  # noqa: PLC0415 - slow to import; not for a plan

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
            "not_covered": not_covered(schema.unit, self.mode, given="given" in self.parameters),
            "files": dict(hashes),
            "schema": {
                "sha256": hashlib.sha256(schema.text().encode()).hexdigest(),
                "drafted": list(schema.drafted),
            },
        }
        return add_checksum(document)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Take the certificate from a manifest, unverified: ``verify`` checks it.

        Raises:
            ArtefactError: Its number of rows is none.
        """
        claimed = document["guarantee"]
        rows = document["parameters"].get("rows_max", DEFAULT_ROWS_MAX)
        if type(rows) is not int or not 1 <= rows <= 2**53:
            raise ArtefactError("rows_max of the manifest is no whole number from 1 to 2^53")
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


def of_another_series(document: Mapping[str, Any]) -> str | None:
    """Return the version that wrote a manifest, if it is of another series, such as 0.3 for 0.4.

    Raises:
        ArtefactError: It states no version.
    """
    from importlib.metadata import version  # noqa: PLC0415 - slow to import; not for a plan

    stated = document.get("version")
    if not isinstance(stated, str) or not _VERSION.fullmatch(stated):
        raise ArtefactError("the manifest states no version of deniable")
    series = [each.split(".")[:2] for each in (stated, version("deniable"))]
    return stated if series[0] != series[1] else None


def add_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Add a manifest's own checksum, which detects accidental changes. It is not a signature."""
    rest = {name: value for name, value in document.items() if name != "checksum"}
    text = json.dumps(rest, ensure_ascii=False, allow_nan=False)
    return {**rest, "checksum": hashlib.sha256(text.encode()).hexdigest()}


def json_number(value: Any) -> Any:
    """Convert a value to JSON: infinity becomes the text "inf"."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def ledger_entry(spend: Spend, alone: Guarantee) -> dict[str, Any]:
    """Describe a privacy spend as a manifest's ledger does, with its cost if it were alone."""
    return {
        "what": spend.what,
        "part": spend.part,
        "law": {"name": spend.law.name, **dict(spend.law.parameters)},
        "sensitivity": spend.sensitivity,
        "moved": spend.l0_sensitivity,
        "times": spend.times,
        "each": _cost_fields(spend.each) if spend.each is not None else None,
        **_cost_fields(alone),
    }


def _cost_fields(cost: Guarantee) -> dict[str, Any]:
    return {"epsilon": json_number(round_up(cost.epsilon)), "delta": round_up(cost.delta)}
