"""Artefact, records and table: whether each is what the manifest beside it says.

Tables follow from noisy counts, records from the artefact and its key, every file from what it
holds: all of it is made again and compared. What concerns the confidential table is for its
holder; no cell and no count of it is ever in an answer.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise, starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts
from deniable.data.attributes import Attribute
from deniable.data.beside import Computed, Described, Identifier
from deniable.data.bin_heaps import aside_of
from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import VerificationError
from deniable.model.graph import cost
from deniable.model.moments import Moments
from deniable.model.network import empty_codes
from deniable.model.pairs import Measured, cut_bins, share_out, shares_of_values
from deniable.model.parameters import TableCounts, count_variance, estimate_table
from deniable.model.shrinkage import strengths
from deniable.model.tables import fit_network
from deniable.privacy.audit import LAWS, require
from deniable.privacy.moments import deviation
from deniable.randomness import Keyed
from deniable.release.claims import (
    OF_COUNTS,
    OF_RECORDS,
    OF_SQUARES,
    OF_SUMS,
    OF_VALUES,
    Claims,
)
from deniable.release.counts import PrefixCounts
from deniable.release.evidence import computer
from deniable.release.histogram import KeptPrefixes
from deniable.release.manifest import sealed
from deniable.release.questions import Check, check
from deniable.release.records import as_json, file_hash, write_records, writer
from deniable.release.storage import Artefact, load

MANIFEST = "manifest.json"
TABLES = ("synthetic.csv", "synthetic.parquet")
ARTEFACT_FILES = ("artefact.json", "schema.toml", "tables.npz")
_SLICE = 2**15
# Parameters that speak of generated records, not of the artefact.
_OF_FILES = ("records", "key", "writer")
# Fitted on another kind of computer, probabilities may differ in their last digits.
_SAME_MODEL = 1e-4


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
        name: value
        for name, value in outer["parameters"].items()
        if name not in ("records", "key", "writer")
    }
    outer["files"] = inner["files"]
    require(sealed(inner) == inner, "something in it was changed after it was written")
    require(sealed(inner) == sealed(outer), "the two manifests contradict each other")
    same = (home / "schema.toml").read_bytes() == (home.parent / "schema.toml").read_bytes()
    require(same, "the artefact has another schema")
    return "The artefact's own manifest says the same as the release's."


def _ask_model(artefact: Artefact, claims: Claims) -> str:
    """Graph, order and ω as the parameters say; the tables are those of the noisy counts."""
    said, network = claims.parameters, artefact.network
    require(
        list(artefact.omegas) == said["omega"], "the artefact draws other numbers of attributes"
    )
    if said["graph"] == "learnt" and not claims.of_pairs:
        costs = [cost(parents, network.attributes) for parents in network.graph.parents]
        require(max(costs) <= said["max_cost"], "an attribute has more configurations than allowed")
    if isinstance(artefact.evidence, Measured):
        return _ask_fitted(artefact, artefact.evidence, claims)
    if said["parameters"] == "drawn":
        return "Graph and order fit; the tables were drawn at random, and cannot be computed again."
    return _ask_tables(artefact, artefact.evidence, claims)


def _ask_tables(artefact: Artefact, evidence: TableCounts, claims: Claims) -> str:
    """Every table is the one that its noisy counts, or sums, give."""
    said, network = claims.parameters, artefact.network
    how = {"estimator": said["estimator"], "alpha": said["alpha"], "variance": 0.0}
    for use in claims.uses:
        if use.what.startswith(OF_COUNTS):
            known = dict(zip(LAWS[use.law], use.scale, strict=True))
            how["variance"] = count_variance(use.law, known)
    here = not evidence.moments or evidence.fitted_with == computer()
    learnt = tuple(attribute.model for attribute in network.attributes)
    sums = {i for i, model in enumerate(learnt) if model != "histogram"}
    require(set(evidence.moments) == sums, "sums are kept of other attributes than were learnt so")
    for i, (table, noisy) in enumerate(zip(network.tables, evidence.tables, strict=True)):
        if isinstance(noisy, Moments):
            _require_paid(noisy, network.attributes[i], claims)
        again = estimate_table(noisy, network.attributes, network.graph, i, **how)
        far = float(np.abs(again - table.probabilities).max())
        near = far == 0 or (far <= _SAME_MODEL and i in sums and not here)
        require(near, "a conditional table does not follow from its noisy counts")
    exactly = "exactly" if here else "but for last digits: another kind of computer fitted them"
    number = len(network.tables)
    return f"Graph and order fit; all {number} tables follow from their noisy counts {exactly}."


def _require_paid(moments: Moments, attribute: Attribute, claims: Claims) -> None:
    """Refuse noisy sums of another model, bound or noise than the ledger has for the attribute."""
    require(moments.model == attribute.model, "sums are of another model than the schema says")
    uses = {use.what: use for use in claims.uses}
    kinds = (OF_RECORDS, OF_SUMS, OF_SQUARES)
    records, sums, squares = (uses[f"{kind}{attribute.name}"] for kind in kinds)
    require(moments.bound == sums.sensitivity, "sums are of values of another size than paid for")
    known = tuple(deviation(use.law, use.scale) for use in (records, sums, squares))
    require(moments.deviations == known, "sums have other noise than was paid for")


def _ask_fitted(artefact: Artefact, measured: Measured, claims: Claims) -> str:
    """The noise is that of the ledger; the network is the one fitted to the noisy counts."""
    scales = {use.what: use.scale for use in claims.uses}
    known = [scales[f"{OF_VALUES}{name}"] for name in claims.names]
    require(known == [(sigma,) for sigma in measured.sigmas], "values have other noise than paid")
    looked = (
        ("pairs of attributes", measured.sigma),
        ("second look at pairs", measured.sigma_again),
    )
    if len(claims.names) > 1:
        same = all(scales[what] == (sigma,) for what, sigma in looked)
        require(same, "pairs have other noise than was paid for")
    counted = claims.pairs[1]
    paid = len(measured.pairs) == counted and sum(measured.looks.values()) == 4 * counted
    require(paid, "other pairs were counted than paid for, or more often")
    shares = claims.parameters.get("fractions", {"structure": 1.0, "parameters": 1.0})
    ratio = shares["parameters"] / shares["structure"]
    require(measured.ratio == ratio, "pairs and values come from other shares of the table")
    here = measured.fitted_with == computer()
    if here:
        _require_chosen(measured, artefact.schema)
    again = fit_network(
        measured, artefact.schema.attributes, max_cost=claims.parameters["max_cost"]
    )
    mine = artefact.network
    same = again.graph == mine.graph and again.order == mine.order
    require(same, "graph or order do not follow from the noisy counts")
    groups = zip(chain(*again.groups), chain(*mine.groups), strict=True)
    grouped = all(starmap(np.array_equal, groups))
    require(grouped, "values of parents are grouped otherwise than the noisy counts say")
    for one, other in zip(again.tables, mine.tables, strict=True):
        far = float(np.abs(one.probabilities - other.probabilities).max())
        near = far == 0 or (far <= _SAME_MODEL and not here)
        require(near, "a conditional table does not follow from the noisy counts")
    how = "exactly" if here else "but for the last digits: another kind of computer fitted them"
    return f"Graph, order and all {len(mine.tables)} tables follow from the noisy counts, {how}."


def _require_chosen(measured: Measured, schema: Schema) -> None:
    """Refuse bins, or a choice of what to look at again, that do not follow from noisy counts."""
    attributes = schema.attributes
    shares = shares_of_values(attributes, measured.values, measured.sigmas)
    usual = 0.0
    if measured.looks:
        usual = (measured.sigma**-2 + 4 * measured.sigma_again**-2) ** -0.5
    records = measured.ratio * measured.records
    bins = cut_bins(attributes, shares, records=records, usual=usual)
    same = all(map(np.array_equal, bins, measured.bins))
    require(same, "the bins do not follow from the noisy values")
    looks = share_out(4 * len(measured.pairs), strengths(measured, attributes))
    require(looks == measured.looks, "the second look went elsewhere than the first one says")


def _ask_prefixes(artefact: Artefact, claims: Claims) -> str:
    """One level for each length; noisy counts at the threshold or above; prefixes ascending."""
    m, levels = len(claims.names), artefact.histogram.levels
    lengths = sorted(m - omega for omega in artefact.omegas if omega < m)
    lengths = lengths if claims.mode == "one-shot" else []
    require([level.length for level in levels] == lengths, "prefixes of other lengths are kept")
    require(len({level.records for level in levels}) <= 1, "the noisy totals differ")
    if levels and isinstance(artefact.evidence, Measured):
        shares = claims.parameters.get("fractions", {"structure": 1.0, "seeds": 1.0})
        total = round(artefact.evidence.records * (shares["seeds"] / shares["structure"]))
        require(levels[0].records == total, "the noisy number of seeds is not that of the values")
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
        _require_listed(file, claims)
        codes, _ = read_codes(file, _strict(schema))
        require(len(codes) == claims.parameters["records"], "their number is not the one said")
        found.append(codes)
        _require_form(file, codes, schema)
        return f"All {len(codes):,} fit the schema, and are written as the product writes them."

    checks.append(check("records", ask))
    return found[0] if found else None


def _require_listed(file: Path, claims: Claims) -> None:
    """Refuse to open a file that was changed: a damaged Parquet file can end the whole process."""
    listed = claims.document["files"].get(file.name)
    require(listed == file_hash(file), "the file was changed: it was not read")


def _strict(schema: Schema) -> Schema:
    """Return a schema that neither drops nor moves what it does not describe."""
    columns = [
        column if isinstance(column, Computed) else replace(column, outside="error")
        for column in schema.columns
    ]
    return replace(schema, columns=tuple(columns), unit=None, max_rows_per_unit=1)


def _require_form(file: Path, codes: Codes, schema: Schema) -> None:
    """Refuse a file that the product would have written otherwise.

    Where codes say all there is to say, the file is written again and compared. Parquet files
    differ between versions of the library that writes them: there the columns and their types
    must be right, and the cells were looked at already.
    """
    if file.suffix == ".parquet":
        same = list(pl.read_parquet_schema(file).items()) == list(schema.dtypes.items())
        require(same, "the columns of the file are of other types, or in another order")
        return
    names = pl.scan_csv(file, infer_schema=False, glob=False).collect_schema().names()
    require(names == list(schema.dtypes), "its columns are others, or in another order")
    if schema.codec.draws or any(_is_salted(column) for column in schema.columns):
        return
    with TemporaryDirectory() as folder:
        again = Path(folder) / file.name
        write_records(again, _blocks(codes), schema, Keyed(0))
        require(file_hash(again) == file_hash(file), "its bytes are not those the product writes")


def _is_salted(column: Described) -> bool:
    """Return whether a column's cells follow from something that only their maker knew."""
    return isinstance(column, Identifier) and column.format == "uuid"


def _blocks(codes: Codes) -> Iterator[Codes]:
    return (codes[at : at + _SLICE] for at in range(0, len(codes), _SLICE))


def ask_generated(artefact: Artefact, claims: Claims, folder: Path) -> str:
    """The artefact gives this very file under the key that the manifest names."""
    number, key = claims.parameters["records"], Keyed(claims.parameters["key"])
    file = next(folder / name for name in TABLES if (folder / name).is_file())
    with TemporaryDirectory() as temporary:
        again = Path(temporary) / file.name
        write_records(again, artefact.blocks(number, key), artefact.schema, key)
        same = file_hash(again) == file_hash(file)
        elsewhere = claims.parameters.get("writer", writer()) != writer()
        if elsewhere and not same:
            same = pl.read_parquet(again).equals(pl.read_parquet(file))
    require(same, "the artefact generates another file under this key")
    how = ", as values: another version of polars wrote them" if elsewhere else ", byte for byte"
    return f"The artefact gives the same {number:,} records under the key in the manifest{how}."


def ask_columns(claims: Claims, file: Path) -> str:
    """Without a schema: the columns are those whose counts were paid for, and all records there."""
    _require_listed(file, claims)
    if file.suffix == ".parquet":
        frame = pl.scan_parquet(file, glob=False)
    else:
        frame = pl.scan_csv(file, infer_schema=False, glob=False)
    hidden = {one for one, two in pairwise(claims.names) if one == aside_of(two)}
    names = tuple(name for name in claims.names if name not in hidden)
    columns = [name for name in frame.collect_schema() if name in set(names)]
    require(tuple(columns) == names, "its columns are not the attributes")
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
        if claims.document["data_use"] == "whole" and artefact.schema.unit is None:
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
    asides = schema.codec.asides if schema is not None else frozenset()
    kept = said["order"][: len(said["order"]) - said["omega"][-1]]
    # How round a number is need not be read off the record: its bin may have none so round.
    columns = [claims.names.index(name) for name in kept if name not in asides]
    sizes = schema.sizes if schema is not None else ()
    shared = PrefixCounts.of(rows, columns, [len(columns)], sizes).look_up(records)[:, 0]
    few = int((shared < said["k"]).sum())
    require(not few, f"{few:,} of {len(records):,} records have fewer than k plausible seeds")
    return f"All {len(records):,} records pass the deniability test again."
