"""Tables in parts: a folder of CSV or Parquet files with the same columns, read in name order."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from deniable.data.batches import AdjustedCounts, RowOwners
from deniable.data.codec import EncodedTable
from deniable.data.spooled_codes import CodeSpool, row_batches
from deniable.errors import DataError

PART_SUFFIXES = (".csv", ".csv.gz", ".parquet")
# Markers of other programs, such as _SUCCESS, and hidden files, such as checksums.
_IGNORED = ("_", ".")
# Faulty parts that one message describes.
_MAX_PARTS_IN_MESSAGE = 5


def list_parts(folder: Path) -> tuple[Path, ...]:
    """List the parts of a table, in name order; names that begin with "_" or "." are left out.

    Raises:
        DataError: The folder has no parts, or something else than parts of one format.
    """
    try:
        found = sorted(path for path in folder.iterdir() if not path.name.startswith(_IGNORED))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from None
    formats = {_format_of(path, folder) for path in found}
    if not formats:
        raise DataError(f"{folder} has no parts of a table: it needs .csv or .parquet files")
    if len(formats) > 1:
        listed = " and ".join(sorted(formats))
        raise DataError(f"{folder} has {listed} files: all parts must have one format")
    return tuple(found)


def _format_of(path: Path, folder: Path) -> str:
    suffix = next((each for each in PART_SUFFIXES if path.name.lower().endswith(each)), None)
    if suffix is None or path.is_dir():
        raise DataError(
            f"{folder} has an entry that is not part of a table: {path.name}. A folder of parts "
            "has .csv, .csv.gz or .parquet files only; give the folder with the parts, or move "
            "the rest away"
        )
    return suffix


def read_parts(
    parts: Sequence[Path], read: Callable[[Path], EncodedTable], *, columns: int
) -> EncodedTable:
    """Read all parts of a table as one.

    Args:
        parts: The files.
        read: Reads one file.
        columns: The number of columns of codes.

    Raises:
        DataError: Some parts do not fit the schema; the message describes the first few.
    """
    spool, owners, adjusted = CodeSpool(columns), list[RowOwners](), AdjustedCounts()
    faults: list[tuple[str, str]] = []
    for path in parts:
        try:
            table = read(path)
        except DataError as error:
            faults.append((path.name, str(error)))
            continue
        if faults:
            continue
        for batch in row_batches(table.codes):
            spool.add(batch)
        if table.owners is not None:
            owners.append(table.owners)
        add_adjusted(adjusted, table.adjusted)
    if faults:
        raise faulty_parts_error(faults)
    return EncodedTable(spool.codes(), RowOwners.merge(owners) if owners else None, adjusted)


def add_adjusted(total: AdjustedCounts, more: AdjustedCounts) -> None:
    """Add the numbers of adjusted cells of one part to those of all."""
    for name, counts in more.items():
        own = total.setdefault(name, {})
        for adjustment, number in counts.items():
            own[adjustment] = own.get(adjustment, 0) + number


def faulty_parts_error(faults: Iterable[tuple[str, str]]) -> DataError:
    """Build the error for parts that do not fit the schema: the messages of the first few."""
    listed = list(faults)
    lines = [
        message if name in message else f"{name}: {message}"
        for name, message in listed[:_MAX_PARTS_IN_MESSAGE]
    ]
    if (others := len(listed) - _MAX_PARTS_IN_MESSAGE) > 0:
        lines.append(f"and {others:,} more parts with faults.")
    return DataError("\n  ".join(lines))
