"""Generate records of an artefact given a condition, shares of a column, or rows to complete.

All of it is computed from the artefact and the request: nothing more is learnt from the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from deniable.answers.balance import Balance
from deniable.answers.completed_records import CompletedRecords
from deniable.answers.condition import RecordCondition
from deniable.answers.conditional_draw import ConditionalDraw
from deniable.answers.conditional_records import (
    ConditionalSource,
    InferenceTally,
    SelectedRecords,
)
from deniable.answers.given_rows import GivenRows
from deniable.answers.released_law import ReleasedLaw
from deniable.data.dataframes import Foreign
from deniable.data.table_io import infer_format, write_table
from deniable.errors import ConfigError, OutputError
from deniable.privacy import wording
from deniable.privacy.plan import require_record_count
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.release.atomic_files import (
    Target,
    file_hash,
    new_file,
    parquet_writer,
    require_free,
    staged,
    write_json,
)
from deniable.release.generation import collect_records
from deniable.release.manifest import Certificate
from deniable.workers import Progress, no_progress

# The end of the name of a file that must not leave.
INTERNAL = ".internal"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ConditionalRelease:
    """Records drawn given a condition, shares or rows, with their certificate.

    Attributes:
        artefact: The artefact they are drawn from.
        source: The records.
        key: The key that addresses their randomness.
        is_internal: Whether the records must not leave: they copy rows not declared public.
    """

    artefact: Artefact
    source: ConditionalSource = field(repr=False)
    key: int
    is_internal: bool

    @cached_property
    def tally(self) -> InferenceTally:
        """The errors of inference, known once all records were drawn."""
        return InferenceTally()

    @property
    def certificate(self) -> Certificate:
        """The artefact's certificate, with what was given; complete once all were drawn.

        Privacy:
            Covers: where a condition or shares select records, each record of a copied prefix
                still has k input rows with that prefix, which would have produced it, under the
                same condition, with equal probability. So the artefact's sentence stays.
            Does not cover: given cells. For completed rows the sentence about k rows is left out.
            Assumes: the condition and the shares do not depend on the input table.
        """
        certificate = self.artefact.certificate
        parameters = {
            **certificate.parameters,
            "records": self.source.number,
            "key": self.key,
            **self.source.parameters,
            "inference": self.tally.document(),
        }
        sentence = certificate.sentence
        if certificate.claims_privacy:
            sentence = _sentence_of_given(certificate, self.artefact.schema.max_rows_per_unit)
            if "given" not in parameters:
                sentence = certificate.sentence + wording.condition_claim()
        return replace(certificate, parameters=parameters, sentence=sentence)

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence."""
        return self.certificate.sentence

    def frame(self, *, progress: Progress = no_progress) -> Foreign:
        """Return the records, in the kind of data frame that the artefact's table came in."""
        frames, artefact = self._frames(progress), self.artefact
        return collect_records(frames, self.source.number, artefact.schema, artefact.kind)

    def path_of(self, path: str | Path) -> Path:
        """The path that is written: what must not leave has a name that ends in .internal."""
        target = Path(path)
        internal = self.is_internal and not target.name.endswith(INTERNAL)
        return target.with_name(f"{target.name}{INTERNAL}") if internal else target

    def write_file(self, path: str | Path, *, progress: Progress = no_progress) -> Path:
        """Write the records to a new file and their manifest next to it: both, or neither.

        Records that must not leave are readable by their owner only. Return the path written.
        """
        target = self.path_of(path)
        file_format = infer_format(Path(target.name.removesuffix(INTERNAL)), OutputError)
        manifest = target.with_name(f"{target.name}.manifest.json")
        require_free(target, manifest)
        confidential = self.is_internal or not self.artefact.certificate.claims_privacy
        with staged(
            Target(path=manifest, confidential=confidential),
            Target(path=target, confidential=confidential),
        ) as (document, table):
            with new_file(table):
                frames = self._frames(progress)
                write_table(table, frames, self.artefact.schema, file_format=file_format)
            certificate = self.certificate
            if file_format == ".parquet":
                written = {**certificate.parameters, "writer": parquet_writer()}
                certificate = replace(certificate, parameters=written)
            hashes = {target.name: file_hash(table)}
            write_json(document, certificate.document(self.artefact.schema, hashes))
        return target

    def _frames(self, progress: Progress) -> Iterator[pl.DataFrame]:
        found = InferenceTally()
        yield from self.source.frames(found, progress)
        self.__dict__["tally"] = found  # known only now, and the same at every reading


def _sentence_of_given(certificate: Certificate, rows: int) -> str:
    """The artefact's sentence without its claims about k rows, and what holds for given rows."""
    sentence, parameters = certificate.sentence, certificate.parameters
    if "k" in parameters:
        sentence = wording.without_prefix_claim(sentence, parameters["k"])
        if "unit" in parameters:
            claim = wording.units_claim(parameters["unit"], rows=rows, k=parameters["k"])
            sentence = sentence.replace(claim, "")
    return sentence + wording.given_claim()


def generate_conditional(
    artefact: Artefact,
    records: int | None = None,
    *,
    given: object = None,
    records_each: int = 1,
    given_is_public: bool = False,
    where: str | None = None,
    balance: str | None = None,
    key: int | None = None,
    workers: int | None = None,
) -> ConditionalRelease:
    """Generate records given a condition, shares of a column, or rows to complete.

    Args:
        artefact: The artefact.
        records: The number of records; not with ``given``, whose rows decide it.
        given: Rows with some cells filled: a path, or a data frame.
        records_each: How often each given row is completed.
        given_is_public: Whether the given rows are public.
        where: A condition on the records; see ``RecordCondition``.
        balance: Shares of the values of one column; see ``Balance``.
        key: Same key and request, same records; None: a fresh key.
        workers: Threads; None: one for each core.

    Privacy:
        Neighbours: those of the artefact.
        Covers: what is drawn is a function of the artefact, the key and the request, so ε and δ
            are those of the artefact.
        Does not cover: given cells, which are copied.
        Assumes: the request does not depend on the input table.

    Raises:
        ConfigError: The request contradicts itself, or the model gives it probability 0.
        DataError: The given rows do not fit the schema, or the model gives one probability 0.
    """
    keyed = Keyed.fresh() if key is None else Keyed(key)
    law = ReleasedLaw(artefact.records(1, keyed))
    condition = None if where is None else RecordCondition.parse(where, artefact.schema)
    draw = ConditionalDraw(law, artefact.schema, condition)
    source: ConditionalSource
    if given is not None:
        _require_given_alone(records, balance)
        source = CompletedRecords(
            draw=draw,
            given=GivenRows.read(given, artefact.schema),
            records_each=records_each,
            is_public=given_is_public,
            randomness=keyed,
            workers=workers,
        )
    else:
        _require_plain(records, records_each != 1 or given_is_public)
        source = SelectedRecords(
            draw=draw,
            balance=None if balance is None else Balance.parse(balance, artefact.schema),
            number=records or 0,
            randomness=keyed,
            workers=workers,
        )
    internal = given is not None and not given_is_public
    return ConditionalRelease(artefact=artefact, source=source, key=keyed.key, is_internal=internal)


def _require_plain(records: Any, of_given: bool) -> None:
    if of_given:
        raise ConfigError("records_each and given_is_public need given: rows to complete")
    require_record_count(records)


def _require_given_alone(records: Any, balance: Any) -> None:
    if records is not None:
        raise ConfigError(
            "records and given exclude each other: each given row is completed records_each times"
        )
    if balance is not None:
        raise ConfigError("balance and given exclude each other: given cells are not changed")
