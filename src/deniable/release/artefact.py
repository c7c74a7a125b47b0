"""The artefact: the learnt model with its noise, from which any number of records is generated.

On disk it is JSON and arrays; nothing is ever unpickled:

    ARTEFACT/
    ├── artefact.json     format, graph, order, ω, description of the arrays
    ├── manifest.json     the guarantee, and the hashes of the other files
    ├── schema.toml       the schema, as it was given
    └── tables.npz        noisy counts, conditional tables, kept prefixes of seeds
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import CODE
from deniable.data.complete_records import record_dtypes
from deniable.data.dataframes import Foreign, FrameKind, PolarsKind
from deniable.errors import ArtefactError, DeniableError, InvariantError, OutputError
from deniable.files import as_path
from deniable.html import notebook_summary, tag
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.kept_dependences import KeptDependences, find_kept_dependences
from deniable.model.paper.parameters import TableCounts
from deniable.privacy.plan import require_record_count
from deniable.privacy.wording import format_cost
from deniable.randomness import Keyed, Randomness
from deniable.release.artefact_arrays import (
    Evidence,
    conditional_arrays,
    describe_evidence,
    evidence_arrays,
    log_linear_names,
    read_conditional,
    read_evidence,
    read_groups,
    require_fit,
)
from deniable.release.atomic_files import (
    encode_json,
    file_hash,
    hash_files,
    pack_npz,
    staged_folder,
    write_files,
    write_json,
)
from deniable.release.generation import (
    GeneratedRecords,
    always_feasible,
    collect_records,
    decode_blocks,
)
from deniable.release.manifest import (
    ACCOUNTANT,
    Certificate,
    add_checksum,
    json_number,
    of_another_series,
)
from deniable.release.manifest import FORMAT as MANIFEST_FORMAT
from deniable.release.prefix_distribution import combine_prefixes
from deniable.release.query_answer import BandRule, QueryAnswer
from deniable.release.seed_histogram import KeptPrefixes, longest_listed
from deniable.release.untrusted_files import (
    MAX_ARRAYS_BYTES,
    MAX_TEXT_BYTES,
    ArrayFile,
    read_json,
    require_small_file,
)
from deniable.schema.schema import Schema

FORMAT = "deniable artefact"
FORMAT_VERSION = 2

# The files that the manifest lists, and their largest sizes in bytes.
_FILES = {
    "artefact.json": MAX_TEXT_BYTES,
    "schema.toml": MAX_TEXT_BYTES,
    "tables.npz": MAX_ARRAYS_BYTES,
}


class ConditionalRequest(TypedDict, total=False):
    """What records are drawn given: keywords of ``Artefact.generate``, all optional.

    Attributes:
        given: Rows with some cells filled, to complete: a path, or a data frame.
        records_each: How often each given row is completed; once by default.
        given_is_public: Whether the given rows are public, so that the result may leave.
        where: A condition, such as ``age >= 65 and income = "high"``.
        balance: A column whose values get equal shares, or ``"income: 0.5, 0.5"``.
    """

    given: object
    records_each: int
    given_is_public: bool
    where: str | None
    balance: str | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Artefact:
    """A learnt model with its noise and its guarantee.

    Attributes:
        schema: The columns of every record.
        network: The learnt distribution.
        evidence: The noisy counts that the model was estimated from.
        omega: The number of drawn attributes.
        histogram: The kept prefixes of seeds, of length m - ω; None if all attributes are drawn.
        certificate: The guarantee and the costs behind it.
        kind: The kind of data frame that records are returned in.
    """

    schema: Schema
    network: Network
    evidence: Evidence = field(repr=False)
    omega: int
    histogram: KeptPrefixes | None = field(repr=False)
    certificate: Certificate
    kind: FrameKind = field(repr=False)

    def __post_init__(self) -> None:
        m = len(self.network.order)
        if not 0 < self.omega <= m:
            raise InvariantError(f"an artefact draws between 1 and {m} attributes")
        length = 0 if self.histogram is None else self.histogram.length
        if length != m - self.omega:
            raise InvariantError("an artefact has kept prefixes of the length that ω leaves")
        sizes = [self.network.attributes[i].size for i in self.network.order]
        if length > longest_listed(sizes):
            raise InvariantError("an artefact has prefixes that can be listed")
        if isinstance(self.evidence, TableCounts):
            tables = [t for t in self.network.tables if isinstance(t, ConditionalTable)]
            shapes = [table.probabilities.shape for table in tables]
            if [counts.shape for counts in self.evidence.tables] != shapes:
                raise InvariantError("an artefact has counts for each of its tables")

    def __repr__(self) -> str:
        return f"Artefact({self.certificate.summary}, columns={len(self.schema.columns)})"

    def _repr_html_(self) -> str:
        """Show the facts and the guarantee in a notebook; no count."""
        facts = {
            **self.certificate.facts,
            "columns": ", ".join(column.name for column in self.schema.columns),
            "drawn attributes": f"{self.omega} of {len(self.network.order)}",
        }
        return notebook_summary("Artefact", facts, tag("p", self.guarantee))

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence: what holds for this artefact and for its records."""
        return self.certificate.sentence

    @property
    def epsilon(self) -> float:
        """ε of the artefact and of any number of its records; inf if nothing is guaranteed."""
        return self.certificate.cost.epsilon

    @property
    def delta(self) -> float:
        """δ of the artefact and of any number of its records."""
        return self.certificate.cost.delta

    @property
    def k(self) -> int | None:
        """The least number of input records behind a kept prefix; None in mode ``seedless``."""
        return self.certificate.parameters.get("k")

    @cached_property
    def kept(self) -> KeptDependences | None:
        """Dependences that the model kept, by its noisy counts; None without noise or pairs."""
        if isinstance(self.evidence, TableCounts):
            return None
        return find_kept_dependences(self.evidence, self.schema.attributes)

    def generate(
        self,
        records: int | None = None,
        *,
        key: int | None = None,
        workers: int | None = None,
        **request: Unpack[ConditionalRequest],
    ) -> Foreign:
        """Generate records, in the kind of data frame that the table came in.

        Args:
            records: The number of records, at least 1; not with ``given``.
            key: Same key, same records, whatever the number of workers; None: a fresh key.
            workers: Threads; None: one for each core.
            request: What the records are drawn given; see ``ConditionalRequest``.

        Raises:
            OutputError: They do not fit into free memory.
        """
        if any(value is not None for value in request.values()):
            from deniable.answers.conditional_release import generate_conditional  # a higher layer

            release = generate_conditional(self, records, key=key, workers=workers, **request)
            return release.frame()
        require_record_count(records)
        randomness = Keyed.fresh() if key is None else Keyed(key)
        generated = self.records(records or 0, randomness, workers=workers)
        frames = decode_blocks(generated, self.schema, randomness)
        return collect_records(frames, generated.number, self.schema, self.kind)

    def query(
        self,
        columns: str | Sequence[str],
        *,
        where: str | None = None,
        by: Mapping[str, BandRule] | None = None,
        sampling_error: bool = False,
    ) -> QueryAnswer:
        """Estimate counts, shares, means and quantiles with intervals: ``deniable.query``."""
        from deniable.answers.query import query  # a higher layer

        return query(self, columns, where=where, by=by, sampling_error=sampling_error)

    def records(
        self, number: int, randomness: Randomness, *, workers: int | None = None
    ) -> GeneratedRecords:
        """The encoded records of a key, drawn when they are read."""
        solver, masks = self.schema.constraint_solver, self.schema.pair_masks
        prefixes = None
        if self.histogram is not None:
            of_pairs = not isinstance(self.evidence, TableCounts)
            prefixes = combine_prefixes(self.network, self.histogram, masks, adjust=of_pairs)
        return GeneratedRecords(
            network=self.network,
            randomness=randomness,
            number=number,
            feasible=solver.feasible if solver else always_feasible,
            pair_masks=masks,
            prefixes=prefixes,
            workers=workers,
        )

    def save(self, folder: str | Path) -> None:
        """Write the artefact to a new folder, atomically; private if it claims no privacy."""
        with staged_folder(Path(folder), confidential=not self.certificate.claims_privacy) as stage:
            self.write_into(stage)

    def write_into(self, folder: Path) -> None:
        """Write the artefact's files into an existing folder.

        Raises:
            OutputError: A file is larger than ``load`` accepts, or cannot be written.
        """
        files = self.files()
        for name, content in files.items():
            if len(content) > _FILES[name]:
                raise OutputError(
                    f"{name} would have {len(content):,} bytes, and no reader accepts more than "
                    f"{_FILES[name]:,}: use a larger k, a smaller max_cost or fewer columns"
                )
        write_files(folder, files)
        document = self.certificate.document(self.schema, hash_files(folder))
        write_json(folder / "manifest.json", document)

    def files(self) -> dict[str, bytes]:
        """Serialize the artefact: file contents by name, the same bytes for the same content."""
        names, seeds = self.schema.names, self.histogram
        parents = self.network.graph.parents
        described = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "mode": self.certificate.mode,
            "confidential": not self.certificate.claims_privacy,
            "graph": {names[i]: [names[j] for j in chosen] for i, chosen in enumerate(parents)},
            "order": [names[i] for i in self.network.order],
            "log_linear": [
                name
                for name, table in zip(names, self.network.tables, strict=True)
                if isinstance(table, LogLinearConditional)
            ],
            "omegas": [self.omega],
            "kept": None if self.kept is None else self.kept.document(),
            "evidence": describe_evidence(self.evidence, names),
            "seeds": [{"length": seeds.length, "records": seeds.records}] if seeds else [],
        }
        return {
            "artefact.json": encode_json(described),
            "schema.toml": self.schema.text().encode(),
            "tables.npz": pack_npz(self._arrays()),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = evidence_arrays(self.evidence, self.network)
        arrays |= conditional_arrays(self.network)
        if self.histogram is not None:
            arrays[f"prefixes_{self.histogram.length}"] = self.histogram.prefixes
            arrays[f"seeds_{self.histogram.length}"] = self.histogram.counts
        return arrays


def load(folder: str | Path) -> Artefact:
    """Load a saved artefact; its records are polars frames.

    The manifest's checksum, the hashes of the files and their sizes are checked before anything
    else is read. Nothing is signed: ``verify`` checks what the manifest claims.

    Raises:
        ArtefactError: The folder is not an artefact, or was changed or truncated.
        ConfigError: ``folder`` is not a path.
    """
    folder = as_path(folder, "the artefact")
    facts = _read_facts(folder)
    _require_own_version(folder)
    try:
        return _assemble(folder, facts, _read_sealed_manifest(folder))
    except DeniableError as fault:
        raise _broken(folder, str(fault)) from None
    except Exception as fault:  # noqa: BLE001, RUF100 - anyone may have written the files
        raise _broken(folder, type(fault).__name__) from None


def _require_own_version(folder: Path) -> None:
    """Refuse an artefact that another version learnt, before anything else of it is read."""
    try:
        manifest = read_json(folder / "manifest.json")
        made_by = of_another_series(manifest if isinstance(manifest, dict) else {})
    except ArtefactError as fault:
        raise _broken(folder, str(fault)) from None
    if made_by is not None:
        raise ArtefactError(
            f"{folder} was learnt by deniable {made_by}, which this version does not read. Learn "
            "it again from the table, or use that version"
        )


def _assemble(folder: Path, facts: Mapping[str, Any], manifest: Mapping[str, Any]) -> Artefact:
    """Build the artefact from its files, which are not trusted."""
    schema = Schema.read(folder / "schema.toml")
    graph = Graph.from_names(schema.names, facts["graph"])
    number = {name: i for i, name in enumerate(schema.names)}
    order = tuple(number[name] for name in facts["order"])
    certificate = Certificate.of_document(manifest)
    _require_consistent(certificate, manifest, facts, schema)
    with ArrayFile(folder / "tables.npz") as arrays:
        evidence = read_evidence(facts["evidence"], schema.names, arrays.take)
        groups = read_groups(evidence, graph.parents, arrays.take)
        names = log_linear_names(schema, facts)
        tables = tuple(
            read_conditional(
                i,
                bins=arrays.take(f"bins_{i}", np.intp) if is_log_linear else None,
                groups=groups[i] if is_log_linear else (),
                take=arrays.take,
            )
            for i, is_log_linear in enumerate(name in names for name in schema.names)
        )
        histogram = _read_histogram(facts["seeds"], arrays)
    if histogram is not None:
        require_fit(schema, order, histogram)
    network = Network(schema.attributes, graph, order, tables, groups)
    (omega,) = facts["omegas"]
    return Artefact(
        schema=schema,
        network=network,
        evidence=evidence,
        omega=int(omega),
        histogram=histogram,
        certificate=certificate,
        kind=PolarsKind(tuple(record_dtypes(schema.columns))),
    )


def _read_histogram(
    described: Sequence[Mapping[str, Any]], arrays: ArrayFile
) -> KeptPrefixes | None:
    """Read the kept prefixes; none if all attributes are drawn."""
    if not described:
        return None
    (seeds,) = described
    return KeptPrefixes(
        prefixes=arrays.take(f"prefixes_{seeds['length']}", CODE),
        counts=arrays.take(f"seeds_{seeds['length']}", np.int64),
        records=int(seeds["records"]),
    )


def _read_sealed_manifest(folder: Path) -> Mapping[str, Any]:
    """Read the manifest; refuse it if it was changed, or if a file is not the one it lists."""
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or manifest.get("format") != MANIFEST_FORMAT:
        raise ArtefactError("manifest.json was not written by deniable")
    if add_checksum(manifest) != manifest:
        raise ArtefactError("manifest.json was changed: its checksum does not match its content")
    if set(manifest["files"]) != set(_FILES):
        raise ArtefactError("manifest.json lists other files than those of an artefact")
    for name, max_bytes in _FILES.items():
        require_small_file(folder / name, max_bytes=max_bytes)
        if manifest["files"][name] != file_hash(folder / name):
            raise ArtefactError(f"{name} is not the file that manifest.json lists")
    return manifest


def _require_consistent(
    certificate: Certificate, manifest: Mapping[str, Any], facts: Mapping[str, Any], schema: Schema
) -> None:
    """Refuse a manifest that contradicts itself, the schema or artefact.json.

    The costs themselves are recomputed by ``verify``.
    """
    cost = certificate.cost
    total = {"name": ACCOUNTANT, "epsilon": json_number(cost.epsilon), "delta": cost.delta}
    claim = format_cost(cost) if certificate.claims_privacy else "No privacy is claimed"
    for holds, otherwise in (
        (list(certificate.accountants) == [total], "its total cost is not the one it claims"),
        (claim in certificate.sentence, "its sentence has another cost"),
        (certificate.mode == facts["mode"], "its mode is not that of artefact.json"),
        (
            certificate.claims_privacy is not facts["confidential"],
            "artefact.json says otherwise about whether it is confidential",
        ),
        (
            certificate.parameters["omega"] in ("auto", facts["omegas"]),
            "its ω is not that of artefact.json",
        ),
        (
            manifest["schema"]["sha256"] == hashlib.sha256(schema.text().encode()).hexdigest(),
            "it has the hash of another schema",
        ),
    ):
        if not holds:
            raise ArtefactError(f"manifest.json contradicts itself or the other files: {otherwise}")


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / "artefact.json"
    if not path.is_file():
        inner = folder / "artefact"
        hint = (
            f"Use {inner}." if (inner / "artefact.json").is_file() else "deniable learn makes one."
        )
        raise ArtefactError(f"{folder} is not an artefact: it has no artefact.json. {hint}")
    try:
        facts = read_json(path)
    except ArtefactError as fault:
        raise _broken(folder, str(fault)) from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ArtefactError(f"{path} was not written by deniable: it has another format")
    version = facts.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ArtefactError(
            f"{folder} has format version {str(version)[:20]}; this program reads "
            f"{FORMAT_VERSION}. Learn it again, or use the version of deniable that wrote it."
        )
    return facts


def _broken(folder: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"{folder} is a broken artefact ({why}). Learn it again, or copy it again."
    )
