"""Artefact, records and table: whether each is what the manifest beside it says.

Tables follow from noisy counts, records from the artefact and its key, every file from what it
holds: all of it is made again and compared. What concerns the confidential table is for its
holder; no cell and no count of it is ever in an answer.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts
from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import VerificationError
from deniable.model.graph import cost
from deniable.model.network import empty_codes
from deniable.model.parameters import posterior_mean, posterior_weights
from deniable.privacy.audit import require
from deniable.randomness import Keyed
from deniable.release.counts import PrefixCounts
from deniable.release.histogram import KeptPrefixes
from deniable.release.questions import Check, check
from deniable.release.records import as_json, file_hash, write_records
from deniable.release.statements import Claims
from deniable.release.storage import Artefact, load

MANIFEST = "manifest.json"
TABLES = ("synthetic.csv", "synthetic.parquet")
ARTEFACT_FILES = ("artefact.json", "schema.toml", "tables.npz")
_SLICE = 2**15


def ask_hashes(document: Mapping[str, Any], found: Mapping[str, Path]) -> str:
    """The files that are there are those that a manifest lists, and have its hashes."""
    listed = document["files"]
    require(list(listed) == sorted(found), "the files listed are not the files that are there")
    changed = [name for name, path in found.items() if file_hash(path) != listed[name]]
    require(not changed, f"changed since the manifest was written: {', '.join(changed)}")
    return f"{len(found)} of {len(found)} files have the SHA-256 that the manifest gives."


# The artefact


def read_artefact(home: Path, claims: Claims, checks: list[Check]) -> Artefact | None:
    """Return the artefact if it can be read; what is asked about it goes to ``checks``."""
    found: list[Artefact] = []

    def ask() -> str:
        found.append(load(home))
        for name, content in found[0].files().items():
            same = (home / name).read_bytes() == content
            require(same, f"{name} holds other bytes than the product would write for it")
        return "It can be read, and written again it is the same, byte for byte."

    checks.append(check("artefact", ask))
    if claims.place == "release":
        checks.append(check("artefact's manifest", lambda: _ask_manifests(home, claims)))
    if not found:
        return None
    checks.append(check("model", lambda: _ask_model(found[0], claims)))
    checks.append(check("kept prefixes", lambda: _ask_prefixes(found[0], claims)))
    return found[0]


def _ask_manifests(home: Path, claims: Claims) -> str:
    """The artefact's manifest says the same, but for what was generated, and its own files."""
    raw = (home / MANIFEST).read_bytes()
    inner = json.loads(raw)
    require(as_json(inner) == raw, "its bytes are not those that the product writes")
    ask_hashes(inner, {name: home / name for name in ARTEFACT_FILES})
    outer = dict(claims.document)
    outer["parameters"] = {
        name: value for name, value in outer["parameters"].items() if name not in ("records", "key")
    }
    outer["files"] = inner["files"]
    require(as_json(inner) == as_json(outer), "the two manifests contradict each other")
    same = (home / "schema.toml").read_bytes() == (home.parent / "schema.toml").read_bytes()
    require(same, "the artefact has another schema")
    return "The artefact's own manifest says the same as the release's."


def _ask_model(artefact: Artefact, claims: Claims) -> str:
    """Graph, order and ω as the parameters say; the tables are those of the noisy counts."""
    said, network = claims.parameters, artefact.network
    require(
        list(artefact.omegas) == said["omega"], "the artefact draws other numbers of attributes"
    )
    if said["graph"] == "learnt":
        costs = [cost(parents, network.attributes) for parents in network.graph.parents]
        require(max(costs) <= said["max_cost"], "an attribute has more configurations than allowed")
    shapes = [table.probabilities.shape for table in network.tables]
    require([counts.shape for counts in artefact.counts] == shapes, "counts of another shape")
    if said["parameters"] == "drawn":
        return "Graph and order fit; the tables were drawn at random, and cannot be computed again."
    for counts, table in zip(artefact.counts, network.tables, strict=True):
        weights = posterior_weights(counts, estimator=said["estimator"], alpha=said["alpha"])
        same = np.array_equal(posterior_mean(weights), table.probabilities)
        require(same, "a conditional table does not follow from its noisy counts")
    return f"Graph and order fit; all {len(shapes)} tables follow from their noisy counts exactly."


def _ask_prefixes(artefact: Artefact, claims: Claims) -> str:
    """One level for each length; noisy counts at the threshold or above; prefixes ascending."""
    m, levels = len(claims.names), artefact.histogram.levels
    lengths = sorted(m - omega for omega in artefact.omegas if omega < m)
    lengths = lengths if claims.mode == "one-shot" else []
    require([level.length for level in levels] == lengths, "prefixes of other lengths are kept")
    require(len({level.records for level in levels}) <= 1, "the noisy totals differ")
    for level in levels:
        low = (level.counts < claims.parameters["threshold"]).any()
        require(not low, "a kept prefix has a noisy count below k + r")
        rows = level.prefixes.tolist()
        ascending = all(one < two for one, two in pairwise(rows))
        require(ascending, "prefixes are not in ascending order, each once")
    kept = sum(len(level.counts) for level in levels)
    return f"All {kept:,} kept prefixes have noisy counts of k + r or more, and are in order."


# The records


def read_records(folder: Path, schema: Schema, claims: Claims, checks: list[Check]) -> Codes | None:
    """Return the released records if they fit the schema; what is asked goes to ``checks``."""
    found: list[Codes] = []
    file = next((folder / name for name in TABLES if (folder / name).is_file()), None)

    def ask() -> str:
        if file is None:
            raise VerificationError("there is no table of records")
        codes, _ = read_codes(file, _strict(schema))
        require(len(codes) == claims.parameters["records"], "their number is not the one said")
        found.append(codes)
        _require_form(file, codes, schema)
        return f"All {len(codes):,} fit the schema, and are written as the product writes them."

    checks.append(check("records", ask))
    return found[0] if found else None


def _strict(schema: Schema) -> Schema:
    """Return a schema that neither drops nor moves what it does not describe."""
    attributes = tuple(replace(attribute, outside="error") for attribute in schema.attributes)
    return Schema(attributes, rows_max=schema.rows_max)


def _require_form(file: Path, codes: Codes, schema: Schema) -> None:
    """Refuse a file that the product would have written otherwise.

    Parquet files differ between versions of the library that writes them: there the columns
    and their types must be right, and the cells were looked at already.
    """
    if file.suffix == ".parquet":
        types = {a.name: pl.Int64() if a.is_numeric else pl.String() for a in schema.attributes}
        same = list(pl.read_parquet_schema(file).items()) == list(types.items())
        require(same, "the columns of the file are of other types, or in another order")
        return
    with TemporaryDirectory() as folder:
        again = Path(folder) / file.name
        write_records(again, _blocks(codes), schema)
        require(file_hash(again) == file_hash(file), "its bytes are not those the product writes")


def _blocks(codes: Codes) -> Iterator[Codes]:
    return (codes[at : at + _SLICE] for at in range(0, len(codes), _SLICE))


def ask_generated(artefact: Artefact, claims: Claims, records: Codes) -> str:
    """The artefact gives these very records under the key that the manifest names."""
    number, key = claims.parameters["records"], Keyed(claims.parameters["key"])
    at = 0
    for block in artefact.blocks(number, key):
        same = np.array_equal(block, records[at : at + len(block)])
        require(same, "the artefact generates other records under this key")
        at += len(block)
    return f"The artefact gives the same {number:,} records under the key in the manifest."


def ask_columns(claims: Claims, file: Path) -> str:
    """Without a schema: the columns are those whose counts were paid for, and all records there."""
    if file.suffix == ".parquet":
        frame = pl.scan_parquet(file, glob=False)
    else:
        frame = pl.scan_csv(file, infer_schema=False, glob=False)
    require(tuple(frame.collect_schema()) == claims.names, "its columns are not the attributes")
    number = frame.select(pl.len()).collect().item()
    require(number == claims.parameters["records"], "their number is not the one said")
    return f"All {number:,} are there, in the columns whose counts were paid for."


# The table, for its holder


def check_against(
    rows: Codes, claims: Claims, artefact: Artefact | None, records: Codes | None
) -> list[Check]:
    """Return what was promised about the rows of the table; no count of theirs is shown."""
    if artefact is not None:
        return [check("kept prefixes in the table", lambda: _ask_cells(rows, claims, artefact))]
    if claims.mode == "tested" and records is not None and "order" in claims.parameters:
        return [check("tested again", lambda: _ask_tested(rows, claims, records))]
    return []


def _ask_cells(rows: Codes, claims: Claims, artefact: Artefact) -> str:
    """Every kept prefix is shared by k rows; where all rows served, its noise is at most r."""
    said, levels = claims.parameters, artefact.histogram.levels
    few, far = 0, 0
    for level in levels:
        shared = _rows_that_share(level, artefact, rows)
        few += int((shared < said["k"]).sum())
        if claims.document["data_use"] == "whole":
            far += int((abs(level.counts - shared) > said["threshold"] - said["k"]).sum())
    kept = sum(len(level.counts) for level in levels)
    require(not few, f"{few:,} of {kept:,} kept prefixes are shared by fewer than k rows")
    require(not far, f"{far:,} of {kept:,} noisy counts are further than r from the table")
    return f"At least k rows share each of the {kept:,} kept prefixes."


def _rows_that_share(level: KeptPrefixes, artefact: Artefact, rows: Codes) -> Counts:
    """Return how many rows share each kept prefix. Confidential."""
    network = artefact.network
    cells = empty_codes(len(level.prefixes), network.attributes)
    cells[:, list(network.order[: level.length])] = level.prefixes
    counts = PrefixCounts.of(rows, network.order, [level.length], artefact.schema.sizes)
    return counts.look_up(cells)[:, 0]


def _ask_tested(rows: Codes, claims: Claims, records: Codes) -> str:
    """Every record passes Privacy Test 1 under some ω: k rows share the least that was kept.

    Fewer rows share more attributes, so the shortest prefix decides. Where rows were split, the
    table holds the seeds and more: what passed among them passes here.
    """
    schema, said = claims.schema, claims.parameters
    require(schema is not None, "there is no schema")
    order = [claims.names.index(name) for name in said["order"]]
    length = len(order) - said["omega"][-1]
    sizes = schema.sizes if schema is not None else ()
    shared = PrefixCounts.of(rows, order, [length], sizes).look_up(records)[:, 0]
    few = int((shared < said["k"]).sum())
    require(not few, f"{few:,} of {len(records):,} records have fewer than k plausible seeds")
    return f"All {len(records):,} records pass the deniability test again."
