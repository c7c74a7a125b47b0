"""Facts of a release besides its noisy counts, and the fact that reveals most about a row.

A count, a shape, a kept prefix, a line of a draft: whatever a release contains is compared between
runs with and without a row. The most revealing fact is chosen on one half of the runs and measured
on the other.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from deniable.arrays import Mask
from deniable.release.artefact import Artefact
from deniable.release.artefact_arrays import evidence_arrays

# A fact is a number or a text, by its name.
Facts = Mapping[str, float | str]

# Thresholds, or texts, of a field that are tried.
_MAX_CUTS = 20
# Fields that identify the program, not the table.
_IGNORED = ("checksum", "version", "fitted_with")
_ABSENT = "(absent)"


def artefact_facts(artefact: Artefact) -> Facts:
    """List the facts of an artefact: its description, its manifest, and the shapes of its arrays.

    The arrays themselves are left to the likelihood ratio.
    """
    files = artefact.files()
    facts = dict(flatten("artefact", json.loads(files["artefact.json"])))
    facts |= flatten("schema", tomllib.loads(files["schema.toml"].decode()))
    facts |= flatten("manifest", artefact.certificate.document(artefact.schema, {}))
    for name, array in evidence_arrays(artefact.evidence, artefact.network).items():
        facts[f"shape of {name}"] = str(array.shape)
    if artefact.histogram is not None:
        facts[f"kept prefixes of length {artefact.histogram.length}"] = float(
            len(artefact.histogram.counts)
        )
        for prefix in artefact.histogram.prefixes:
            facts[f"kept prefix {prefix.tolist()}"] = 1.0
    return facts


def draft_facts(text: str, notes: Sequence[str]) -> Facts:
    """List the facts of a drafted schema: its fields, and its notes."""
    return dict(flatten("draft", tomllib.loads(text))) | {f"note: {note}": 1.0 for note in notes}


def record_facts(records: pl.DataFrame, parameters: Mapping[str, Any]) -> Facts:
    """List the facts of released records: how often each value and each row occurs."""
    facts = dict(flatten("manifest", dict(parameters)))
    for name in records.columns:
        for value, number in Counter(records[name].to_list()).items():
            facts[f"records with {name} = {value}"] = float(number)
    for row, number in Counter(records.rows()).items():
        facts[f"records {row}"] = float(number)
    return facts


def flatten(name: str, value: Any) -> Iterator[tuple[str, float | str]]:
    """List the leaves of a document by their paths; a list also has its length."""
    if name.rpartition(".")[2] in _IGNORED:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flatten(f"{name}.{key}", inner)
    elif isinstance(value, list | tuple):
        yield f"{name}, length", float(len(value))
        for at, inner in enumerate(value):
            yield from flatten(f"{name}.{at}", inner)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        yield name, str(value)
    else:
        yield name, float(value)


@dataclass(frozen=True)
class FactTest:
    """A test for the presence of a row: one field of the release against one value.

    Attributes:
        name: The field.
        value: The text it must equal, or the number it must reach; "" if there is nothing to test.
        present: Whether that means that the row is present.
    """

    name: str
    value: float | str
    present: bool

    def calls(self, runs: Sequence[Facts]) -> Mask:
        """Decide for each run whether the row is present."""
        return np.array([self._holds(facts) == self.present for facts in runs], dtype=bool)

    def _holds(self, facts: Facts) -> bool:
        found = facts.get(self.name, _ABSENT)
        if isinstance(self.value, str) or isinstance(found, str):
            return found == self.value
        return found >= self.value

    def __str__(self) -> str:
        sign = "is" if isinstance(self.value, str) else "is at least"
        negation = "" if self.present else "not "
        return f'"{self.name}" {sign} {self.value}: the row is {negation}there'


def most_revealing_fact(runs: Sequence[Facts], present: Mask) -> FactTest:
    """Find the field and value with the largest difference of rates between the two tables."""
    best, advantage = FactTest("nothing", _ABSENT, present=True), 0.0
    for name in sorted({name for facts in runs for name in facts}):
        values = [facts.get(name, _ABSENT) for facts in runs]
        numbers = np.array([np.nan if isinstance(value, str) else value for value in values])
        for cut in _cuts(values):
            if isinstance(cut, str):
                holds = np.array([value == cut for value in values])
            else:
                holds = numbers >= cut  # false for a text
            difference = float(holds[present].mean() - holds[~present].mean())
            if abs(difference) > advantage + 1e-12:
                best, advantage = FactTest(name, cut, present=difference > 0), abs(difference)
    return best


def _cuts(values: Sequence[float | str]) -> list[float | str]:
    """Values to compare a field with; none if it is the same in all runs."""
    distinct = Counter(values)
    if len(distinct) == 1:
        return []
    texts = [value for value in distinct if isinstance(value, str)]
    numbers = np.array([value for value in values if not isinstance(value, str)])
    cuts: list[float | str] = []
    if len(numbers):
        # With texts in between, the least number tells whether there is one.
        least = numbers.min() if texts else np.inf
        quantiles = np.unique(np.quantile(numbers, np.linspace(0, 1, _MAX_CUTS)))
        cuts += [float(cut) for cut in quantiles if cut > numbers.min() or cut == least]
    return cuts + [text for text, _ in Counter(texts).most_common(_MAX_CUTS)]
