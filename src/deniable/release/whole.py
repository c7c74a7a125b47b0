"""A whole release: records, what was promised about them, and what they came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from deniable.arrays import Codes
from deniable.data.frames import Foreign, Kind
from deniable.data.schema import Schema
from deniable.data.tables import format_of
from deniable.errors import InvariantError, OutputError
from deniable.randomness import Randomness
from deniable.release.manifest import Certificate
from deniable.release.records import (
    decode_blocks,
    file_hash,
    hashes_of,
    require_free,
    staged_file,
    staged_folder,
    write_files,
    write_json,
    write_records,
    writer,
)
from deniable.release.storage import Artefact

Format = Literal["csv", "parquet"]


def folders(folder: str | Path) -> tuple[Path, Path]:
    """Return where a release goes, and what must not leave: both must be free.

    Raises:
        OutputError: Something is there already.
    """
    target = Path(folder).absolute().resolve()
    internal = target.with_name(f"{target.name}.internal")
    require_free(target)
    require_free(internal)
    return target, internal


@dataclass(frozen=True, kw_only=True)
class Release:
    """Records that may leave, not drawn yet: take them once, as a frame or as files.

    Attributes:
        schema: Their columns.
        certificate: What is claimed of them.
        blocks: The records, encoded, block by block.
        randomness: Where values inside bins are drawn from.
        artefact: What they are generated from, where the mode has one.
        kind: The kind of frame the table came in.
        internal: What must not leave: numbers that depend on the data without noise. Filled in
            while the records are taken.
    """

    schema: Schema
    certificate: Certificate
    blocks: Iterator[Codes] = field(repr=False)
    randomness: Randomness = field(repr=False)
    artefact: Artefact | None
    kind: Kind = field(repr=False)
    internal: Mapping[str, Any] = field(repr=False)

    @property
    def guarantee(self) -> str:
        """The sentence that says what is claimed."""
        return self.certificate.sentence

    def frame(self) -> Foreign:
        """Return the records, in the kind of frame the table came in."""
        frames = list(decode_blocks(self.blocks, self.schema, self.randomness))
        if not frames:
            raise InvariantError("the records of this release were taken already")
        return self.kind.restore(pl.concat(frames))

    def write(self, folder: str | Path, *, file_format: Format = "csv") -> None:
        """Write the release to a new folder, and what must not leave beside it.

        ``folder`` gets the records, manifest.json, schema.toml and artefact/; ``folder``.internal,
        which only its owner may read, the rest. After a crash there is all of it or nothing.
        """
        target, internal = folders(folder)
        with (
            staged_folder(target) as public,
            staged_folder(internal, mode=0o700) as private,
        ):
            table = public / f"synthetic.{file_format}"
            write_records(table, self.blocks, self.schema, self.randomness)
            write_files(public, {"schema.toml": self.schema.text().encode()})
            if self.artefact is not None:
                (public / "artefact").mkdir()
                self.artefact.write(public / "artefact")
            document = self._certificate_of(table).document(self.schema, hashes_of(public))
            write_json(public / "manifest.json", document)
            write_json(private / "run.json", self.internal)

    def write_file(self, path: str | Path) -> None:
        """Write the records to a new file, and its manifest beside it: both, or neither."""
        target = Path(path)
        format_of(target, OutputError)
        manifest = target.with_name(f"{target.name}.manifest.json")
        with staged_file(target) as stage, staged_file(manifest) as beside:
            write_records(stage, self.blocks, self.schema, self.randomness)
            hashes = {target.name: file_hash(stage)}
            document = self._certificate_of(target).document(self.schema, hashes)
            write_json(beside, document)

    def _certificate_of(self, table: Path) -> Certificate:
        """Return the certificate; for Parquet, with what decides the bytes beside the records."""
        if table.suffix != ".parquet":
            return self.certificate
        told = {**self.certificate.parameters, "writer": writer()}
        return replace(self.certificate, parameters=told)
