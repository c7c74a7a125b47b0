"""The learnt artefact: all that generation needs. On disk plain JSON and arrays, no pickles.

ARTEFACT/
├── artefact.json     format, graph, order, and what the arrays are
├── schema.toml       the attributes, as they were given
└── tables.npz        noisy counts and conditional tables, one pair an attribute
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.data.schema import Schema
from deniable.errors import ArtefactError, DeniableError
from deniable.model.graph import Graph
from deniable.model.network import ConditionalTable, Network

FORMAT = "deniable artefact"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class LearntModel:
    """A network, the noisy counts it was estimated from, and the schema of both."""

    schema: Schema
    network: Network
    counts: tuple[Counts, ...] = field(repr=False)

    def files(self, facts: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the files of the artefact: the same bytes for the same content, always."""
        names = self.schema.names
        described = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            **facts,
            "graph": {
                names[i]: [names[j] for j in parents]
                for i, parents in enumerate(self.network.graph.parents)
            },
            "order": [names[i] for i in self.network.order],
        }
        arrays: dict[str, NDArray[Any]] = {}
        for i, (table, counts) in enumerate(zip(self.network.tables, self.counts, strict=True)):
            arrays[f"counts_{i}"] = counts
            arrays[f"probabilities_{i}"] = table.probabilities
        return {
            "artefact.json": as_json(described),
            "schema.toml": self.schema.text().encode(),
            "tables.npz": pack(arrays),
        }

    @classmethod
    def read(cls, folder: Path) -> tuple[Self, dict[str, Any]]:
        """Return the model and the facts of a saved artefact.

        Raises:
            ArtefactError: The folder is no artefact, or one that was changed or cut off.
        """
        facts = _read_facts(folder)
        try:
            schema = Schema.read(folder / "schema.toml")
            graph = Graph.from_names(schema.names, facts.pop("graph"))
            number = {name: i for i, name in enumerate(schema.names)}
            order = tuple(number[name] for name in facts.pop("order"))
            counts, tables = _read_tables(folder / "tables.npz", len(schema.names))
            network = Network(schema.attributes, graph, order, tables)
        except (KeyError, TypeError, AttributeError, ValueError, OSError, EOFError) as fault:
            raise _broken(folder, type(fault).__name__) from None
        except zipfile.BadZipFile:
            raise _broken(folder, "tables.npz is not readable") from None
        except DeniableError as fault:
            raise _broken(folder, str(fault)) from None
        return cls(schema=schema, network=network, counts=counts), facts


def as_json(content: Mapping[str, Any]) -> bytes:
    """Return JSON as every file of ours writes it: readable, one way only, and strict."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the arrays as NumPy's .npz: the same bytes for the same arrays, never a pickle."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return packed.getvalue()


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
    if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
        raise ArtefactError(f"{path} was not written by deniable: it does not say so")
    version = facts.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise ArtefactError(
            f"{folder} has format version {version}; this program reads {FORMAT_VERSION}. "
            "Learn it again, or use the version of deniable that wrote it."
        )
    return facts


def _read_tables(
    path: Path, attributes: int
) -> tuple[tuple[Counts, ...], tuple[ConditionalTable, ...]]:
    """Return the arrays. Nothing is ever unpickled: an array of objects is refused."""
    with np.load(path, allow_pickle=False) as arrays:
        counts = tuple(arrays[f"counts_{i}"] for i in range(attributes))
        tables = tuple(arrays[f"probabilities_{i}"] for i in range(attributes))
    for count, table in zip(counts, tables, strict=True):
        if count.dtype != np.int64 or table.dtype != np.float64 or count.shape != table.shape:
            raise ArtefactError("tables.npz holds arrays of another kind")
    return counts, tuple(ConditionalTable(table) for table in tables)


def _broken(folder: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"{folder} is a broken artefact ({why}). Learn it again, or copy it again."
    )
