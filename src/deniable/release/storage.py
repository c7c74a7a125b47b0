"""The artefact: all that was learnt, with its noise; generates any number of records.

On disk it is plain JSON and arrays, and nothing is ever unpickled:

    ARTEFACT/
    ├── artefact.json     format, graph, order, ω, and what the arrays are
    ├── manifest.json     what was promised, and the hashes of the other files
    ├── schema.toml       the attributes, as they were given
    └── tables.npz        noisy counts, conditional tables, kept prefixes of seeds
"""

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import CODE, Codes
from deniable.data.frames import Foreign, Kind, PolarsKind
from deniable.data.schema import Schema
from deniable.errors import ArtefactError, ConfigError, DeniableError, InvariantError
from deniable.model.graph import Graph
from deniable.model.network import ConditionalTable, Network
from deniable.model.parameters import TableCounts
from deniable.randomness import Keyed, Randomness
from deniable.release.evidence import Evidence, arrays_of, describe, read_evidence, read_groups
from deniable.release.histogram import KeptPrefixes, SeedHistogram
from deniable.release.manifest import Certificate
from deniable.release.mechanism import BLOCK, anything, artefact_kernel
from deniable.release.records import (
    as_json,
    decode_blocks,
    file_hash,
    hashes_of,
    pack,
    staged_folder,
    write_files,
    write_json,
)
from deniable.workers import all_cores, in_order

FORMAT = "deniable artefact"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """What was learnt, and what may be said about it.

    Attributes:
        schema: The columns of every record.
        network: The learnt distribution.
        evidence: The noisy counts it was estimated from.
        omegas: How many attributes are drawn, one of these for each record.
        histogram: The kept prefixes of seeds, of length m - ω.
        certificate: What is claimed.
        kind: The kind of frame that records are given back in.
    """

    schema: Schema
    network: Network
    evidence: Evidence = field(repr=False)
    omegas: tuple[int, ...]
    histogram: SeedHistogram = field(repr=False)
    certificate: Certificate
    kind: Kind = field(repr=False)

    def __post_init__(self) -> None:
        m = len(self.network.order)
        ascending = list(self.omegas) == sorted(set(self.omegas))
        if not (self.omegas and ascending and self.omegas[0] > 0 and self.omegas[-1] <= m):
            raise InvariantError(f"an artefact draws between 1 and {m} attributes")
        lengths = [m - omega for omega in reversed(self.omegas) if omega < m]
        if [level.length for level in self.histogram.levels] != lengths:
            raise InvariantError("an artefact has kept prefixes of the lengths that ω leaves")
        if isinstance(self.evidence, TableCounts):
            shapes = [table.probabilities.shape for table in self.network.tables]
            if [counts.shape for counts in self.evidence.tables] != shapes:
                raise InvariantError("an artefact has counts for each of its tables")

    @property
    def guarantee(self) -> str:
        """The sentence that says what is claimed of this artefact and of its records."""
        return self.certificate.sentence

    def generate(
        self, records: int, *, key: int | None = None, workers: int | None = None
    ) -> Foreign:
        """Return so many synthetic records, in the kind of frame the table came in.

        Args:
            records: How many, at least 1.
            key: Same key, same records, whatever the number of workers; None: a fresh one.
            workers: Threads; None: one for each core.
        """
        randomness = Keyed.fresh() if key is None else Keyed(key)
        blocks = self.blocks(records, randomness, workers=workers)
        return self.kind.restore(pl.concat(decode_blocks(blocks, self.schema, randomness)))

    def blocks(
        self, records: int, randomness: Randomness, *, workers: int | None = None
    ) -> Iterator[Codes]:
        """Yield so many records, encoded, block by block."""
        if records < 1:
            raise ConfigError(f"records = {records}: ask for at least 1")
        possible = self.schema.rules.possible if self.schema.rules else anything
        kernel = artefact_kernel(
            self.network, self.histogram, self.omegas, randomness, possible, records=records
        )
        workers, left = workers or all_cores(), records
        self.network.prepare(workers)
        for block in in_order(kernel, range(-(-records // BLOCK)), workers=workers):
            yield block[:left]
            left -= len(block)

    def save(self, folder: str | Path) -> None:
        """Write the artefact to a new folder: all of it, or nothing."""
        with staged_folder(Path(folder)) as stage:
            self.write(stage)

    def write(self, folder: Path) -> None:
        """Write the artefact's files into a folder that exists."""
        write_files(folder, self.files())
        document = self.certificate.document(self.schema, hashes_of(folder))
        write_json(folder / "manifest.json", document)

    def files(self) -> dict[str, bytes]:
        """Return the files of the artefact: the same bytes for the same content, always."""
        names = self.schema.names
        parents = self.network.graph.parents
        described = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "mode": self.certificate.mode,
            "confidential": not self.certificate.claims_privacy,
            "graph": {names[i]: [names[j] for j in chosen] for i, chosen in enumerate(parents)},
            "order": [names[i] for i in self.network.order],
            "omegas": list(self.omegas),
            "evidence": describe(self.evidence, names),
            "seeds": [
                {"length": level.length, "records": level.records}
                for level in self.histogram.levels
            ],
        }
        return {
            "artefact.json": as_json(described),
            "schema.toml": self.schema.text().encode(),
            "tables.npz": pack(self._arrays()),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = arrays_of(self.evidence, self.network)
        for i, table in enumerate(self.network.tables):
            arrays[f"probabilities_{i}"] = table.probabilities
        for level in self.histogram.levels:
            arrays[f"prefixes_{level.length}"] = level.prefixes
            arrays[f"seeds_{level.length}"] = level.counts
        return arrays


def load(folder: str | Path) -> Artefact:
    """Return a saved artefact; its records come as polars frames.

    Raises:
        ArtefactError: The folder is no artefact, or one that was changed or cut off.
    """
    folder = Path(folder)
    facts = _read_facts(folder)
    try:
        return _assemble(folder, facts)
    except (KeyError, TypeError, AttributeError, ValueError, OSError, EOFError) as fault:
        raise _broken(folder, type(fault).__name__) from None
    except (zipfile.BadZipFile, StopIteration):
        raise _broken(folder, "tables.npz is not readable") from None
    except DeniableError as fault:
        raise _broken(folder, str(fault)) from None


def _assemble(folder: Path, facts: Mapping[str, Any]) -> Artefact:
    """Return the artefact of these files; anything may be wrong with them."""
    schema = Schema.read(folder / "schema.toml")
    graph = Graph.from_names(schema.names, facts["graph"])
    number = {name: i for i, name in enumerate(schema.names)}
    order = tuple(number[name] for name in facts["order"])
    with (
        (folder / "tables.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):

        def take(name: str, dtype: Any) -> NDArray[Any]:
            return _typed(arrays[name], dtype)

        evidence = read_evidence(facts["evidence"], schema.names, take)
        groups = read_groups(evidence, graph.parents, take)
        every = range(len(schema.names))
        tables = tuple(take(f"probabilities_{i}", np.float64) for i in every)
        levels = tuple(
            KeptPrefixes(
                prefixes=_typed(arrays[f"prefixes_{seeds['length']}"], CODE),
                counts=_typed(arrays[f"seeds_{seeds['length']}"], np.int64),
                records=int(seeds["records"]),
            )
            for seeds in facts["seeds"]
        )
    _require_fit(schema, order, levels)
    network = Network(schema.attributes, graph, order, tuple(map(ConditionalTable, tables)), groups)
    _require_unchanged(folder)
    return Artefact(
        schema=schema,
        network=network,
        evidence=evidence,
        omegas=tuple(int(omega) for omega in facts["omegas"]),
        histogram=SeedHistogram(levels),
        certificate=Certificate.read(folder / "manifest.json"),
        kind=PolarsKind.of_schema(schema.columns),
    )


def _require_unchanged(folder: Path) -> None:
    """Refuse files that are not those the manifest lists."""
    listed = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    for name in ("artefact.json", "schema.toml", "tables.npz"):
        if listed[name] != file_hash(folder / name):
            raise ArtefactError(f"{name} is not the file that manifest.json lists")


def _require_fit(schema: Schema, order: tuple[int, ...], levels: tuple[KeptPrefixes, ...]) -> None:
    """Refuse prefixes that hold a code outside its attribute's domain."""
    for level in levels:
        sizes = [schema.sizes[i] for i in order[: level.length]]
        if (level.prefixes >= np.array(sizes)).any():
            raise ArtefactError("a kept prefix does not fit the schema")


def _typed(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if array.dtype != dtype:
        raise ArtefactError("tables.npz holds arrays of another kind")
    return array


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / "artefact.json"
    if not path.is_file():
        raise ArtefactError(
            f"{folder} is not an artefact: it has no artefact.json. `deniable learn` makes one."
        )
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        raise _broken(folder, "artefact.json is not readable") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ArtefactError(f"{path} was not written by deniable: it does not say so")
    if facts.get("format_version") != FORMAT_VERSION:
        raise ArtefactError(
            f"{folder} has format version {facts.get('format_version')}; this program reads "
            f"{FORMAT_VERSION}. Learn it again, or use the version of deniable that wrote it."
        )
    return facts


def _broken(folder: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"{folder} is a broken artefact ({why}). Learn it again, or copy it again."
    )
