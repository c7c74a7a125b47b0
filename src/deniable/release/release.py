"""A release: the records, the certificate of their guarantee, and the artefact they came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from deniable.data.dataframes import Foreign, FrameKind
from deniable.data.table_io import infer_format, write_table
from deniable.errors import OutputError
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.release.atomic_files import (
    Target,
    file_hash,
    hash_files,
    make_folder,
    new_file,
    parquet_writer,
    require_free,
    staged,
    write_files,
    write_json,
)
from deniable.release.generation import Records, decode_blocks
from deniable.release.manifest import Certificate
from deniable.schema.schema import Schema
from deniable.workers import Progress, no_progress

Format = Literal["csv", "parquet"]


def release_folders(folder: str | Path) -> tuple[Path, Path]:
    """Return the public and the internal folder of a release; both must be free.

    Raises:
        OutputError: One of them exists and is not empty.
    """
    public = Path(folder).absolute().resolve()
    internal = public.with_name(f"{public.name}.internal")
    require_free(public, internal)
    return public, internal


@dataclass(frozen=True, kw_only=True, repr=False)
class Release:
    """Synthetic records with their guarantee. Every reading gives the same records.

    Attributes:
        schema: The columns of the records.
        certificate: The guarantee and the costs behind it.
        records: The encoded records.
        randomness: Draws values within bins.
        artefact: The artefact the records were generated from, where the mode has one.
        kind: The kind of data frame that the table came in.
        internal: Confidential: numbers that depend on the data without noise.
    """

    schema: Schema
    certificate: Certificate
    records: Records = field(repr=False)
    randomness: Keyed = field(repr=False)
    artefact: Artefact | None
    kind: FrameKind = field(repr=False)
    internal: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"Release({self.certificate.summary}, records={self.records.number})"

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence."""
        return self.certificate.sentence

    def frame(self, *, progress: Progress = no_progress) -> Foreign:
        """Return the records, in the kind of data frame that the table came in."""
        return self.kind.restore(pl.concat(self._frames(progress)))

    def write(
        self,
        folder: str | Path,
        *,
        file_format: Format = "csv",
        progress: Progress = no_progress,
    ) -> None:
        """Write the release to a new folder, and what must not leave to ``folder``.internal.

        ``folder`` gets the records, manifest.json, schema.toml and, in the modes that have one,
        artefact/. Only its owner can read ``folder``.internal and, where no
        privacy is claimed, ``folder`` itself. After a crash there is the whole release or none.
        """
        target, internal = release_folders(folder)
        confidential = not self.certificate.claims_privacy
        with staged(
            Target(path=internal, is_folder=True, confidential=True),
            Target(path=target, is_folder=True, confidential=confidential),
        ) as (private, public):
            table = public / f"synthetic.{file_format}"
            with new_file(table):
                write_table(table, self._frames(progress), self.schema)
            write_files(public, {"schema.toml": self.schema.text().encode()})
            if self.artefact is not None:
                make_folder(public / "artefact")
                self.artefact.write(public / "artefact")
            document = self._certificate_of(table).document(self.schema, hash_files(public))
            write_json(public / "manifest.json", document)
            write_json(private / "run.json", self.internal)

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
                write_table(table, self._frames(progress), self.schema)
            hashes = {target.name: file_hash(table)}
            write_json(document, self._certificate_of(target).document(self.schema, hashes))

    def _frames(self, progress: Progress) -> Iterator[pl.DataFrame]:
        """The decoded records, block by block."""
        return decode_blocks(self.records, self.schema, self.randomness, progress)

    def _certificate_of(self, table: Path) -> Certificate:
        """The certificate; for Parquet, with the writer, which decides the bytes of the file."""
        if table.suffix != ".parquet":
            return self.certificate
        parameters = {**self.certificate.parameters, "writer": parquet_writer()}
        return replace(self.certificate, parameters=parameters)
