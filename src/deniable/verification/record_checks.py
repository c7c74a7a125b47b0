"""Check released records: their format, their regeneration from the artefact, and the source table.

Records are generated again from the artefact and its key, and compared. Checks against the
confidential table are for its holder; no explanation has a cell or a count of it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from deniable.arrays import Codes, Counts
from deniable.counting.prefix_counts import PrefixCounts
from deniable.data.csv_reader import CsvFile
from deniable.data.part_files import read_parts
from deniable.data.table_io import file_reader, write_table
from deniable.errors import VerificationError
from deniable.model.bayesian_network import empty_codes
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.release.atomic_files import file_hash, new_file
from deniable.release.generation import BLOCK, decode_blocks
from deniable.release.record_parts import PartDecoder, by_number, count_parts, part_name
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.attribute import Attribute
from deniable.schema.heaping import roundness_name
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Computed, SchemaColumn
from deniable.verification.claims import Check, Inexact, ManifestClaims, run_check
from deniable.verification.manifest_spend import require
from deniable.verification.written_form import (
    check_written_form,
    require_distinct_uuids,
    require_known_metadata,
    require_same_file,
)

TABLE_FILES = ("synthetic.csv", "synthetic.parquet")
PART_NAME = re.compile(r"part-[0-9]{5}[0-9]*\.(csv|parquet)")
_SAME_VALUES = "values; another version of polars wrote the file, so its bytes were not compared"
_WRONG_NUMBER = "the number of records differs from the manifest"


def read_records(
    folder: Path,
    schema: Schema,
    claims: ManifestClaims,
    regenerate: Callable[[], str | Inexact] | None = None,
) -> tuple[Codes | None, list[Check]]:
    """Read and check the released records; they are None if they do not fit the schema.

    Args:
        folder: The folder of the release.
        schema: Its schema.
        claims: Its manifest.
        regenerate: Generates the file again, if there is an artefact. Where that gives the same
            bytes, the file is in the form that deniable writes and is not written a second time.
    """
    found: list[Codes] = []
    regenerated: list[Check] = []
    files = find_tables(folder)

    def check_records() -> str | Inexact:
        if not files:
            raise VerificationError("there is no table of records")
        for file in files:
            _require_unchanged(file, claims)
        read = file_reader(files[0], _strict_schema(schema))
        codes = read_parts(files, read, columns=len(schema.attributes)).codes
        require(len(codes) == claims.parameters["records"], _WRONG_NUMBER)
        found.append(codes)
        if regenerate is not None:
            regenerated.append(run_check("regenerated records", regenerate))
        exact = any(check.passed and check.exact for check in regenerated)
        if not exact:
            writer = claims.parameters.get("writer")
            exact = _check_forms(files, codes, schema, writer=writer)
        said = f"All {len(codes):,} records fit the schema; written again, they are identical"
        return f"{said} bytes." if exact else Inexact(f"{said} {_SAME_VALUES}.")

    checks = [run_check("records", check_records), *regenerated]
    return (found[0] if found else None), checks


def _check_forms(
    files: Sequence[Path], codes: Codes, schema: Schema, *, writer: str | None
) -> bool:
    """Check the written form of a single file, or of each part."""
    if not is_part(files[0]):
        return check_written_form(files[0], codes, schema, writer=writer)
    exact = True
    for at, file in enumerate(files):
        first = at * BLOCK
        part = codes[first : first + BLOCK]
        exact &= check_written_form(file, part, schema, writer=writer, first_record=first + 1)
    require_distinct_uuids(files, schema)
    return exact


def _require_unchanged(file: Path, claims: ManifestClaims) -> None:
    """Refuse to read a changed file: a damaged Parquet file can crash the process."""
    listed = claims.document["files"].get(file.name)
    require(listed == file_hash(file), "the file was changed, so it was not read")


def _strict_schema(schema: Schema) -> Schema:
    """Copy a schema so that it refuses values outside it, instead of dropping or clipping them."""
    columns = tuple(map(_strict_column, schema.columns))
    return replace(schema, columns=columns, unit=None, max_rows_per_unit=1, draft=None)


def _strict_column(column: SchemaColumn) -> SchemaColumn:
    if isinstance(column, Attribute):
        return replace(column, outside="error", fallback=None)
    return column if isinstance(column, Computed) else replace(column, outside="error")


def find_tables(folder: Path) -> tuple[Path, ...]:
    """Find the files of the records: a single one, or the parts by number."""
    whole = [folder / name for name in TABLE_FILES if (folder / name).is_file()]
    return tuple(whole[:1] or sorted(filter(is_part, folder.iterdir()), key=by_number))


def is_part(path: Path) -> bool:
    """Whether a file is named as a part of a release."""
    return PART_NAME.fullmatch(path.name) is not None


def require_all_parts(names: Collection[str], claims: ManifestClaims) -> None:
    """Require exactly the parts that this number of records has, all of one format."""
    suffix = Path(min(names)).suffix
    number = count_parts(claims.parameters["records"])
    wrong = "a part is missing, or one too many"
    require(len(names) == number, wrong)  # first: a manifest may claim any number of records
    require(set(names) == {part_name(part, suffix) for part in range(number)}, wrong)


def check_regenerated(artefact: Artefact, claims: ManifestClaims, folder: Path) -> str | Inexact:
    """Generate the file, or each part, again from the artefact and the key, and compare."""
    number, key = claims.parameters["records"], Keyed(claims.parameters["key"])
    records = artefact.records(number, key)
    decode = PartDecoder(records=records, schema=artefact.schema, randomness=key)
    exact = True
    for at, file in enumerate(find_tables(folder)):
        frames = iter([decode(at)]) if is_part(file) else None
        frames = frames or decode_blocks(records, artefact.schema, key)
        exact &= _is_written_again(file, frames, artefact.schema, claims)
    said = f"Artefact and key generate the same {number:,} records again: identical"
    return f"{said} bytes." if exact else Inexact(f"{said} {_SAME_VALUES}.")


def _is_written_again(
    file: Path, frames: Iterator[pl.DataFrame], schema: Schema, claims: ManifestClaims
) -> bool:
    """Write records to a temporary file and compare: true for the same bytes, else same values."""
    with TemporaryDirectory() as temporary:
        again = Path(temporary) / file.name
        with new_file(again):
            write_table(again, frames, schema)
        try:
            return require_same_file(file, again, schema, writer=claims.parameters.get("writer"))
        except VerificationError:
            why = "the artefact and the manifest's key generate another file"
            raise VerificationError(why) from None


def check_columns(claims: ManifestClaims, file: Path) -> str:
    """Check the columns and number of records of a file that comes without a schema."""
    _require_unchanged(file, claims)
    if file.name.endswith(".internal"):
        # The format follows from the name before it.
        with TemporaryDirectory() as temporary:
            named = Path(temporary) / file.name.removesuffix(".internal")
            named.symlink_to(file.resolve())
            return _check_columns(claims, named)
    return _check_columns(claims, file)


def _check_columns(claims: ManifestClaims, file: Path) -> str:
    if file.suffix == ".parquet":
        require_known_metadata(file)
        frame = pl.scan_parquet(file, glob=False)
    elif not claims.parameters.get("header", True):
        csv = CsvFile.open_without_header(file)
        frame = csv.scan({})
        number = frame.select(pl.len()).collect().item()
        require(number == claims.parameters["records"], _WRONG_NUMBER)
        return f"All {number:,} records are there. Their columns have no names to check."
    else:
        csv = CsvFile.open(file)
        frame = csv.scan({name: pl.String() for name in csv.names})
    roundness = {one for one, two in pairwise(claims.names) if one == roundness_name(two)}
    names = tuple(name for name in claims.names if name not in roundness)
    columns = [name for name in frame.collect_schema() if name in set(names)]
    require(tuple(columns) == names, "the columns differ from the attributes in the ledger")
    number = frame.select(pl.len()).collect().item()
    require(number == claims.parameters["records"], _WRONG_NUMBER)
    return f"All {number:,} records are there, with the attributes in the ledger."


def run_table_checks(
    rows: Codes, claims: ManifestClaims, artefact: Artefact | None, records: Codes | None
) -> list[Check]:
    """Run the checks against the confidential table; none where it has nothing to show.

    No count of its rows is shown.
    """
    kept = artefact.histogram if artefact is not None else None
    if artefact is not None and kept is not None and kept.is_copied:
        name = "kept prefixes in the table"
        return [run_check(name, lambda: _check_prefixes_in_table(rows, claims, artefact, kept))]
    if claims.mode == "tested" and records is not None and "order" in claims.parameters:
        name = "deniability test in the table"
        return [run_check(name, lambda: _check_deniability(rows, claims, records))]
    return []


def _check_prefixes_in_table(
    rows: Codes, claims: ManifestClaims, artefact: Artefact, kept: KeptPrefixes
) -> str:
    """Check that k rows share each kept prefix, and that the noise is at most r.

    The noise is known only if every row was used: no split, no unit.
    """
    parameters, number = claims.parameters, len(kept.counts)
    shared = _count_sharing_rows(kept, artefact, rows)
    rare = int((shared < parameters["k"]).sum())
    require(not rare, f"{rare:,} of {number:,} kept prefixes are shared by fewer than k rows")
    if claims.document["data_use"] == "whole" and artefact.schema.unit is None:
        r = parameters["threshold"] - parameters["k"]
        distant = int((abs(kept.counts - shared) > r).sum())
        require(
            not distant,
            f"{distant:,} of {number:,} noisy counts differ from this table by more than noise "
            "can; is it the table that the release was made from?",
        )
    return f"Kept prefixes that at least k rows of the table share: all {number:,}."


def _count_sharing_rows(kept: KeptPrefixes, artefact: Artefact, rows: Codes) -> Counts:
    """Count the rows that share each kept prefix. Confidential."""
    network = artefact.network
    cells = empty_codes(len(kept.prefixes), network.attributes)
    cells[:, list(network.order[: kept.length])] = kept.prefixes
    counts = PrefixCounts.of(rows, network.order, [kept.length], artefact.schema.sizes)
    return counts.look_up(cells)[:, 0]


def _check_deniability(rows: Codes, claims: ManifestClaims, records: Codes) -> str:
    """Check that every record passes Privacy Test 1 for the largest ω, with the shortest prefix.

    A longer prefix is shared by fewer rows, so a record that passes for any ω passes here. With a
    data split, the table holds the seeds and more rows, which can only raise the counts.
    """
    schema, parameters = claims.schema, claims.parameters
    if schema is None:
        raise VerificationError("there is no schema")
    kept = parameters["order"][: len(parameters["order"]) - parameters["omega"][-1]]
    # Roundness cannot be read from a record: its bin may have no value that round.
    columns = [claims.names.index(name) for name in kept if name not in schema.roundness_names]
    counts = PrefixCounts.of(rows, columns, [len(columns)], schema.sizes)
    rare = int((counts.look_up(records)[:, 0] < parameters["k"]).sum())
    require(not rare, f"{rare:,} of {len(records):,} records have fewer than k plausible seeds")
    return f"All {len(records):,} records pass the deniability test again."
