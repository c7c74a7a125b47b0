"""A release: the records, the certificate of their guarantee, and the artefact they came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl

from deniable.counting.local import LocalEngine
from deniable.counting.rows import BlockEngine
from deniable.data.complete_records import released_columns
from deniable.data.dataframes import Foreign, FrameKind
from deniable.data.table_io import infer_format, write_table
from deniable.errors import OutputError
from deniable.html import notebook_summary, tag
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.release.atomic_files import (
    Target,
    file_hash,
    file_mode,
    hash_files,
    make_folder,
    new_file,
    new_folder,
    parquet_writer,
    require_free,
    staged,
    staged_folder,
    write_files,
    write_json,
)
from deniable.release.generation import BlockRecords, KeptRecords, collect_records, decode_blocks
from deniable.release.manifest import Certificate
from deniable.release.record_parts import PartDecoder, PartWriter, collect_parts, count_parts
from deniable.schema.schema import Schema
from deniable.workers import Progress, no_progress

Format = Literal["csv", "parquet"]


def release_folders(folder: str | Path, *, clean: bool = False) -> tuple[Path, Path]:
    """Return the public and the internal folder of a release; both must be free.

    Args:
        folder: The public one.
        clean: Whether to remove first what a killed run into the same place left.

    Raises:
        OutputError: One of them exists and is not empty.
    """
    public = Path(folder).absolute().resolve()
    internal = public.with_name(f"{public.name}.internal")
    require_free(public, internal, clean=clean)
    return public, internal


@dataclass(frozen=True, kw_only=True, repr=False)
class Release:
    """Synthetic records with their guarantee. Every reading gives the same records.

    Attributes:
        schema: The columns of the records.
        certificate: The guarantee and the costs behind it.
        encoded: The records as codes, drawn when they are read.
        randomness: Draws values within bins.
        artefact: The artefact the records were generated from, where the mode has one.
        kind: The kind of data frame that the table came in.
        internal: Confidential: numbers that depend on the data without noise.
        engine: Runs a task for each block, where the release is written in parts.
    """

    schema: Schema
    certificate: Certificate
    encoded: BlockRecords = field(repr=False)
    randomness: Keyed = field(repr=False)
    artefact: Artefact | None
    kind: FrameKind = field(repr=False)
    internal: Mapping[str, Any] = field(repr=False)
    engine: BlockEngine | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        return f"Release({self.certificate.summary}, records={self.encoded.number})"

    def _repr_html_(self) -> str:
        """Show the facts and the guarantee in a notebook; no record."""
        names = ", ".join(column.name for column in released_columns(self.schema.columns))
        facts = {
            **self.certificate.facts,
            "records": f"{self.encoded.number:,}",
            "columns": names,
        }
        return notebook_summary("Release", facts, tag("p", self.guarantee))

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence."""
        return self.certificate.sentence

    @cached_property
    def records(self) -> Foreign:
        """The records, in the kind of data frame that the table came in; as ``frame``, but kept."""
        return self.frame()

    def frame(self, *, progress: Progress = no_progress) -> Foreign:
        """Return the records, in the kind of data frame that the table came in."""
        if (
            self.engine is not None
            and (frame := self.engine.frame(*self._part_kernel())) is not None
        ):
            return frame
        return collect_records(self.decoded(progress), self.encoded.number, self.schema, self.kind)

    def write(
        self,
        folder: str | Path,
        *,
        file_format: Format = "csv",
        parts: bool = False,
        progress: Progress = no_progress,
    ) -> None:
        """Write the release to a new folder, and confidential files to ``folder``.internal.

        ``folder`` gets the records, manifest.json, schema.toml and, in the modes that have one,
        artefact/. Only its owner can read ``folder``.internal and, if no privacy is claimed,
        ``folder`` itself. After a crash there is the whole release or none.

        Args:
            folder: The folder; must not exist.
            file_format: The format of the records.
            parts: Whether to write part-00000.csv and so on instead of one file, a task for each
                block of records; on a cluster they always are. The manifest comes last: without it
                there is no release.
            progress: Called after each block.
        """
        target, internal = release_folders(folder)
        confidential = not self.certificate.claims_privacy
        if parts or self.engine is not None:
            self._write_parts(target, internal, file_format, progress)
            return
        with staged(
            Target(path=internal, is_folder=True, confidential=True),
            Target(path=target, is_folder=True, confidential=confidential),
        ) as (private, public):
            table = public / f"synthetic.{file_format}"
            with new_file(table):
                write_table(table, self.decoded(progress), self.schema)
            write_files(public, {"schema.toml": self.schema.text().encode()})
            if self.artefact is not None:
                make_folder(public / "artefact")
                self.artefact.write_into(public / "artefact")
            document = self._certificate_of(table).document(self.schema, hash_files(public))
            write_json(public / "manifest.json", document)
            write_json(private / "run.json", self.internal)

    def _write_parts(
        self, target: Path, internal: Path, file_format: Format, progress: Progress
    ) -> None:
        """Write the records as parts, then the rest, and the manifest last.

        Parts are written where they stay: an object store cannot rename a folder. After an error
        the folder is removed.
        """
        confidential = not self.certificate.claims_privacy
        decode, number = self._part_kernel()
        # Records that are kept here are not sent to tasks to be written.
        kept = isinstance(self.encoded, KeptRecords)
        engine = LocalEngine() if self.engine is None or kept else self.engine
        with (
            staged_folder(internal, confidential=True) as private,
            new_folder(target, confidential=confidential),
        ):
            mode = (target.stat().st_mode & 0o666) if confidential else file_mode()
            writer = PartWriter(decode=decode, folder=target, suffix=f".{file_format}", mode=mode)
            progress("records", 0, self.encoded.number)
            hashes = collect_parts(target, engine.run_blocks(writer, number), parts=number)
            progress("records", self.encoded.number, self.encoded.number)
            write_files(target, {"schema.toml": self.schema.text().encode()})
            if self.artefact is not None:
                make_folder(target / "artefact")
                self.artefact.write_into(target / "artefact")
            rest = hash_files(target, leave_out=hashes)
            certificate = self._certificate_of(target / next(iter(hashes)))
            files = dict(sorted({**hashes, **rest}.items()))
            write_json(private / "run.json", self.internal)
            write_json(target / "manifest.json", certificate.document(self.schema, files))

    def _part_kernel(self) -> tuple[PartDecoder, int]:
        """The kernel that makes a part's records, and the number of parts."""
        decode = PartDecoder(records=self.encoded, schema=self.schema, randomness=self.randomness)
        return decode, count_parts(self.encoded.number)

    def write_file(self, path: str | Path, *, progress: Progress = no_progress) -> None:
        """Write the records to a new file and their manifest next to it: both, or neither."""
        target = Path(path)
        infer_format(target, OutputError)
        manifest = target.with_name(f"{target.name}.manifest.json")
        require_free(target, manifest)
        confidential = not self.certificate.claims_privacy
        with staged(
            Target(path=manifest, confidential=confidential),
            Target(path=target, confidential=confidential),
        ) as (document, table):
            with new_file(table):
                write_table(table, self.decoded(progress), self.schema)
            hashes = {target.name: file_hash(table)}
            write_json(document, self._certificate_of(target).document(self.schema, hashes))

    def decoded(self, progress: Progress = no_progress) -> Iterator[pl.DataFrame]:
        """The decoded records as polars frames, block by block."""
        return decode_blocks(self.encoded, self.schema, self.randomness, progress)

    def _certificate_of(self, table: Path) -> Certificate:
        """The certificate; for Parquet, with the writer, which decides the bytes of the file."""
        if table.suffix != ".parquet":
            return self.certificate
        parameters = {**self.certificate.parameters, "writer": parquet_writer()}
        return replace(self.certificate, parameters=parameters)
