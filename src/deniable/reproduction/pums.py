"""Extract the paper's table from the Census Bureau's raw PUMS person files (Sec. 4, Tables 1, 2).

The rule for each column is in pums.toml, next to this module.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from deniable.data.polars_errors import POLARS_ERRORS
from deniable.errors import DataError

_READ_ERRORS = (*POLARS_ERRORS, OSError)


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """A cleaned table, and the numbers of raw and dropped records.

    Attributes:
        frame: The complete records, in the paper's encoding.
        raw: Number of records in the raw files.
        dropped: Number of records with a missing or invalid value, by raw column.
    """

    frame: pl.DataFrame = field(repr=False)
    raw: int
    dropped: Mapping[str, int]

    @property
    def clean(self) -> int:
        """Number of complete records."""
        return len(self.frame)


def extract_people(paths: Sequence[str | Path], *, recipe: Path | None = None) -> Extraction:
    """Extract the paper's table from raw person files.

    Args:
        paths: CSV files, plain or gzipped; their records are concatenated.
        recipe: A TOML file with the rule for each column; None: the paper's.

    Raises:
        DataError: A file cannot be read, or a column is missing. The message shows no cell.
    """
    if not paths:
        raise DataError("no file was given: list the survey's person files (CSV)")
    columns = _read_recipe(recipe)
    frames = [_read_raw(Path(path), columns) for path in paths]
    raw = pl.concat(frames)
    recoded = raw.select(_recode(column) for column in columns)
    invalid = recoded.null_count().row(0)
    return Extraction(
        frame=recoded.drop_nulls(),
        raw=len(raw),
        dropped={column["source"]: number for column, number in zip(columns, invalid, strict=True)},
    )


def _read_recipe(path: Path | None) -> list[dict[str, Any]]:
    path = path or Path(__file__).with_suffix(".toml")
    columns: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["column"]
    return columns


def _read_raw(path: Path, columns: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Read the needed columns as text, so that blanks are kept."""
    wanted = [column["source"] for column in columns]
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    try:
        head = pl.read_csv(path, n_rows=0, infer_schema=False).columns
        if missing := [name for name in wanted if name not in head]:
            raise DataError(
                f"{path.name} has no column {', '.join(missing)}. Unpack the archive and use the "
                "person file of the 2013 survey, or pass a recipe for another year's columns."
            )
        return pl.read_csv(path, columns=wanted, infer_schema=False).select(wanted)
    except _READ_ERRORS as error:
        raise DataError(
            f"{path.name} cannot be read as CSV ({type(error).__name__}). Unpack it first, and "
            "check that it is complete."
        ) from None


def _recode(column: Mapping[str, Any]) -> pl.Expr:
    """Recode a raw column as the paper does; null means that the record is dropped."""
    number = pl.col(column["source"]).str.strip_chars().cast(pl.Int64, strict=False)
    if "values" in column:
        pairs = {int(old): new for old, new in column["values"].items()}
        recoded = number.replace_strict(pairs, default=None, return_dtype=pl.Int64)
    elif "edges" in column:
        recoded = pl.coalesce(*_group_expressions(number, column["edges"], column["groups"]))
    else:
        kept = pl.when(number.is_between(column["least"], column["most"])).then(number)
        recoded = kept - column.get("subtract", 0)
    return recoded.cast(pl.Int64).alias(column["name"])


def _group_expressions(
    number: pl.Expr, edges: Sequence[int], groups: Sequence[int]
) -> Iterator[pl.Expr]:
    for low, beyond, group in zip(edges, edges[1:], groups, strict=False):
        yield pl.when(number.is_between(low, beyond, closed="left")).then(pl.lit(group))
