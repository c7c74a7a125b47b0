"""Check that a file of records is exactly as deniable writes it: every column, every byte.

The records are written again from what was read, and the two files are compared. Codes determine
the values without bins, constants, computed columns and numbered identifiers. Values within bins
and UUIDs are taken from the file: any value of a bin, and any distinct UUIDs, are accepted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from deniable.arrays import Codes, Counts
from deniable.data.batches import iter_batches
from deniable.data.codec import Codec, position
from deniable.data.complete_records import (
    add_unmodelled_columns,
    record_dtypes,
    released_columns,
)
from deniable.data.csv_reader import CsvFile
from deniable.data.table_io import write_table
from deniable.errors import VerificationError
from deniable.randomness import Keyed
from deniable.release.atomic_files import file_hash, parquet_writer
from deniable.schema.attribute import Attribute, summarize_values
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from deniable.verification.manifest_spend import require

# A UUID of version 8 (RFC 9562), in lower case, as deniable generates them.
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
# A Parquet file of another version of polars may be larger than ours by this factor, and by this
# many bytes. It bounds what could be hidden in parts of the file that hold no value.
_MAX_GROWTH, _MAX_MORE_BYTES = 2, 4_096
_REPEATED = '"{name}": an identifier is repeated'
_OTHER_FORM = "not in the exact form that deniable writes"


def undetermined_cells(schema: Schema) -> tuple[str, ...]:
    """List the released columns whose cells are drawn with a key: values in bins, and UUIDs."""
    drawn = {attribute.name for attribute in _binned(schema)} | set(_uuids(schema))
    return tuple(column.name for column in released_columns(schema.columns) if column.name in drawn)


def check_written_form(
    file: Path, codes: Codes, schema: Schema, *, writer: str | None, first_record: int = 1
) -> bool:
    """Require the exact form that deniable writes; return whether all bytes were compared.

    Args:
        file: The file of records.
        codes: The records in it.
        schema: Their schema.
        writer: The writer of a Parquet file according to the manifest.
        first_record: The number of the first record in it, among those of all parts.
    """
    dtypes = record_dtypes(schema.columns)
    if file.suffix == ".parquet":
        same = list(pl.read_parquet_schema(file).items()) == list(dtypes.items())
        require(same, "unexpected columns, column types or column order")
        source = pl.scan_parquet(file, glob=False)
    else:
        csv = CsvFile.open_described(file, schema)
        require(csv.names == tuple(dtypes), "unexpected columns or column order")
        source = csv.scan({name: pl.String() for name in csv.names})
    with TemporaryDirectory() as folder:
        again = Path(folder) / file.name
        write_table(again, _written_again(source, codes, schema, first_record), schema)
        return require_same_file(file, again, schema, writer=writer)


def require_distinct_uuids(files: Sequence[Path], schema: Schema) -> None:
    """Require that no UUID is repeated in several files of one release."""
    if uuids := _uuids(schema):
        cells = pl.concat(_read_cells(file, schema, uuids[:1]) for file in files)
        require(cells.is_unique().all(), _REPEATED.format(name=uuids[0]))


def require_same_file(file: Path, again: Path, schema: Schema, *, writer: str | None) -> bool:
    """Require that a file equals the one written again; return whether its bytes are equal.

    The bytes of a Parquet file depend on the version of polars. For a file of another version,
    columns, values and metadata are compared, and its size is bounded.
    """
    if file_hash(file) == file_hash(again):
        return True
    is_other_writer = file.suffix == ".parquet" and writer not in (None, parquet_writer())
    different = _differing_columns(file, again, schema)
    if different:
        listed = summarize_values(different)
        raise VerificationError(f"{_OTHER_FORM}: cells of {listed} differ")
    require(is_other_writer, _OTHER_FORM)
    require_known_metadata(file)
    limit = _MAX_GROWTH * again.stat().st_size + _MAX_MORE_BYTES
    require(file.stat().st_size <= limit, "the file is much larger than its values need")
    return False


def require_known_metadata(file: Path) -> None:
    """Refuse a Parquet file whose footer has other metadata than the types of its columns."""
    metadata = pl.read_parquet_metadata(file)
    require(set(metadata) <= {"ARROW:schema"}, "the file's footer has unknown metadata")
    size = len(metadata.get("ARROW:schema", ""))
    columns = pl.read_parquet_schema(file)
    # The type of one column needs about 150 characters, and a third more than its name.
    most = 1_024 + sum(256 + 2 * len(name.encode()) for name in columns)
    require(size <= most, "the file's footer has unknown metadata")


def _differing_columns(file: Path, again: Path, schema: Schema) -> list[str]:
    """List the columns in which two files with the same columns have different cells."""
    one, two = (_read_cells(path, schema) for path in (file, again))
    if one.columns != two.columns or one.height != two.height:
        return []
    return [name for name in one.columns if not one[name].equals(two[name], null_equal=True)]


def _read_cells(path: Path, schema: Schema, columns: list[str] | None = None) -> pl.DataFrame:
    """Read some columns of a file, or all."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path, glob=False, columns=columns)
    csv = CsvFile.open_described(path, schema)
    scanned = csv.scan({name: pl.String() for name in csv.names})
    return scanned.select(columns or csv.names).collect()


def _written_again(
    source: pl.LazyFrame, codes: Codes, schema: Schema, first_record: int
) -> Iterator[pl.DataFrame]:
    """Yield the records as deniable writes them; values in bins and UUIDs are those of the file."""
    codec, dtypes, binned = Codec(schema), source.collect_schema(), _binned(schema)
    cells = [position(attribute, dtypes[attribute.name]) for attribute in binned]
    uuids = _uuids(schema)
    seen: list[pl.Series] = []
    done = 0
    for batch in iter_batches(source, [*cells, *map(pl.col, uuids), pl.lit(0).alias("\0cells")]):
        block = codes[done : done + batch.height]
        positions = _positions_in_bins(codec, block, batch)
        frame = codec.values(block, positions)
        frame = add_unmodelled_columns(frame, schema, first_record=first_record + done)
        if uuids:
            seen.append(_require_uuids(batch, uuids))
        yield frame.with_columns(batch.get_column(name) for name in uuids)
        done += batch.height
    require(done == len(codes), "the number of records differs between two readings")
    if seen:
        require(pl.concat(seen).is_unique().all(), _REPEATED.format(name=uuids[0]))


def _binned(schema: Schema) -> list[Attribute]:
    return [attribute for attribute in schema.attributes if attribute.is_binned]


def _uuids(schema: Schema) -> list[str]:
    """List the released columns of UUIDs, which the records' codes do not determine."""
    return [
        column.name
        for column in released_columns(schema.columns)
        if isinstance(column, Identifier) and column.format == "uuid"
    ]


def _positions_in_bins(codec: Codec, codes: Codes, batch: pl.DataFrame) -> Counts:
    """Combine the positions that codes determine with those in the file, moved into their bins.

    Where the file breaks a constraint, another position is drawn: then the files differ.
    """
    rng = Keyed(0).at("values")
    positions = codec.given_positions(codes, batch, rng)
    solver = codec.schema.constraint_solver
    if not solver:
        return positions
    require(solver.feasible(codes).all(), "a record violates a constraint of the schema")
    return solver.repair(codes, positions, rng)


def _require_uuids(batch: pl.DataFrame, names: list[str]) -> pl.Series:
    """Require well-formed UUIDs, the same in every such column of a record; return them."""
    first = batch.get_column(names[0])
    for name in names:
        column = batch.get_column(name)
        is_valid = column.str.contains(_UUID).fill_null(value=False).all()
        require(is_valid, f'"{name}": an identifier is not a UUID that deniable generates')
        require(column.equals(first.alias(name)), f'"{name}": identifiers of a record differ')
    return first
