"""From the Census Bureau's raw person files to the paper's table (Sec. 4, Tables 1 and 2).

What becomes of each column is written in the file pums.toml beside this one.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from deniable.errors import DataError

_POLARS_ERRORS = (pl.exceptions.PolarsError, OSError)


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """A cleaned table, and how much of the raw files it is.

    Attributes:
        frame: The records that are whole, in the paper's encoding.
        raw: How many records the files hold.
        dropped: By column of the raw files, the records in which it is missing or out of its rule.
    """

    frame: pl.DataFrame = field(repr=False)
    raw: int
    dropped: Mapping[str, int]

    @property
    def clean(self) -> int:
        """How many records are whole."""
        return len(self.frame)


def extract_people(paths: Sequence[str | Path], *, recipe: Path | None = None) -> Extraction:
    """Return the paper's table, made of raw person files.

    Args:
        paths: One or more CSV files, unpacked or gzipped, read as one.
        recipe: A TOML file that says what becomes of each column; None: the paper's.

    Raises:
        DataError: A file cannot be read, or a column is absent. No cell is shown.
    """
    if not paths:
        raise DataError("no file was given: name the person files of the survey (CSV)")
    columns = _read_recipe(recipe)
    frames = [_read_raw(Path(path), columns) for path in paths]
    raw = pl.concat(frames)
    made = raw.select(_made(column) for column in columns)
    absent = made.null_count().row(0)
    return Extraction(
        frame=made.drop_nulls(),
        raw=len(raw),
        dropped={column["source"]: number for column, number in zip(columns, absent, strict=True)},
    )


def _read_recipe(path: Path | None) -> list[dict[str, Any]]:
    path = path or Path(__file__).with_suffix(".toml")
    columns: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["column"]
    return columns


def _read_raw(path: Path, columns: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return the columns that are needed, as text: a blank is no number."""
    wanted = [column["source"] for column in columns]
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; check the path")
    try:
        head = pl.read_csv(path, n_rows=0, infer_schema=False).columns
        if missing := [name for name in wanted if name not in head]:
            raise DataError(
                f"{path.name} has no column {', '.join(missing)}. Unpack the archive, take the "
                "person file of the 2013 survey, or describe another year's columns in a recipe."
            )
        return pl.read_csv(path, columns=wanted, infer_schema=False).select(wanted)
    except _POLARS_ERRORS as error:
        raise DataError(
            f"{path.name} cannot be read as CSV ({type(error).__name__}). Unpack it first, and "
            "check that it is whole."
        ) from None


def _made(column: Mapping[str, Any]) -> pl.Expr:
    """Return a column of the paper's table; null where a record must go."""
    number = pl.col(column["source"]).str.strip_chars().cast(pl.Int64, strict=False)
    if "values" in column:
        pairs = {int(old): new for old, new in column["values"].items()}
        made = number.replace_strict(pairs, default=None, return_dtype=pl.Int64)
    elif "edges" in column:
        made = pl.coalesce(*_grouped(number, column["edges"], column["groups"]))
    else:
        kept = pl.when(number.is_between(column["least"], column["most"])).then(number)
        made = kept - column.get("subtract", 0)
    return made.cast(pl.Int64).alias(column["name"])


def _grouped(number: pl.Expr, edges: Sequence[int], groups: Sequence[int]) -> Iterator[pl.Expr]:
    for low, beyond, group in zip(edges, edges[1:], groups, strict=False):
        yield pl.when(number.is_between(low, beyond, closed="left")).then(pl.lit(group))
