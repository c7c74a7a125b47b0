"""The exact form of released records: every column of every kind, in modes without an artefact."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from deniable.pipeline.api import synthesize
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Constant, Identifier
from deniable.verification.verify import verify
from tampering import Release

pytestmark = pytest.mark.slow

# A column of every kind: with bins and a UUID, codes do not determine the file.
SCHEMA = Schema.parse(
    """
format = 1
rows_max = 5_000

[[attribute]]
name = "number"
type = "identifier"

[[attribute]]
name = "token"
type = "identifier"
format = "uuid"

[[attribute]]
name = "badge"
type = "identifier"
format = "B{:04d}"

[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "fletcher", "thatcher"]
missing = ["?", ""]

[[attribute]]
name = "wage"
type = "integer"
min = 0
max = 999
bins = { width = 100 }
missing = ["NA"]

[[attribute]]
name = "height"
type = "real"
min = 0.5
max = 2.5
decimals = 2
bins = { width = 0.5 }

[[attribute]]
name = "hired"
type = "date"
min = 2000-01-01
max = 2003-12-31
format = "%d.%m.%Y"
bins = { width = 400 }

[[attribute]]
name = "guild"
type = "boolean"
values = ["n", "y"]

[[attribute]]
name = "town"
type = "text"
values = ["Ely", "Wells", "elsewhere"]
other = "elsewhere"

[[attribute]]
name = "survey"
type = "constant"
value = "spring"

[[attribute]]
name = "double"
type = "computed"
formula = "height * 2"
decimals = 2
"""
)

# Without an artefact: nothing can be regenerated, so only the form of the records is known.
USUAL = {"mode": "tested", "k": 5, "epsilon": 5.0, "delta": 1e-6, "omega": "4", "max_cost": 8}


def table(rows: int = 2_000) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "number": np.arange(rows),
            "token": [f"secret {i}" for i in range(rows)],
            "badge": np.arange(rows),
            "trade": rng.choice(["cooper", "fletcher", "thatcher", "?"], rows),
            "wage": [None if wage > 950 else int(wage) for wage in rng.integers(0, 1_000, rows)],
            "height": rng.integers(50, 251, rows) / 100,
            "hired": pl.Series(rng.integers(10_957, 12_418, rows).astype(np.int32)).cast(pl.Date),
            "guild": rng.integers(0, 2, rows).astype(bool),
            "town": rng.choice(["Ely", "Wells", "Bath"], rows),
            "survey": ["spring"] * rows,
        }
    )


TABLE = table()


def make(folder: Path, *, records: int = 60, file_format: str = "csv", **options: Any) -> Release:
    made = synthesize(TABLE, SCHEMA, records=records, **{**USUAL, **options})
    made.write(folder / "out", file_format=file_format)
    return Release(folder / "out")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Release:
    return make(tmp_path_factory.mktemp("csv"))


@pytest.fixture(scope="module")
def parquet(tmp_path_factory) -> Release:
    return make(tmp_path_factory.mktemp("parquet"), file_format="parquet")


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_an_honest_release_with_every_kind_of_column_passes(tmp_path, file_format):
    """Of more records than one block, so that blocks are cut in the same places."""
    options = {"records": 40_000, "k": 1, "omega": "5"}
    release = make(tmp_path, file_format=file_format, **options)
    verify(release.folder, against=TABLE).require()


# Cells


def lines_of(release: Release) -> list[list[str]]:
    """Header and records; no cell of this schema needs quotes, so commas separate cells."""
    text = release.files["synthetic.csv"].decode()
    assert '"' not in text
    return [line.split(",") for line in text.splitlines()]


def with_cell(release: Release, column: str, old: str, new: str) -> dict[str, bytes]:
    """Change one cell of a column: the first that matches ``old``."""
    header, *records = lines_of(release)
    at = header.index(column)
    record = next(record for record in records if re.search(old, record[at]))
    record[at] = re.sub(old, new, record[at], count=1)
    text = "".join(",".join(line) + "\n" for line in [header, *records])
    return {"synthetic.csv": text.encode()}


# A column, a pattern of one of its cells, and what a forger would put there. The chance that none
# of 60 records has a cell of that pattern is below 1e-6.
FORGED_CELLS = [
    ("number", "^7$", "700001"),
    ("number", "^7$", "07"),
    ("token", "-", "_"),
    ("token", "-8", "-4"),
    ("badge", r"B\d{4}", "B9007"),
    ("badge", r"B\d{4}", "B007"),
    ("badge", r"B\d{4}", "John Doe"),
    ("trade", "cooper", "cooper "),
    ("trade", "cooper", "potter"),
    ("trade", r"\?", ""),
    ("trade", "cooper", '"cooper"'),
    ("wage", r"^(?=\d)", "0"),
    ("wage", r"^(?=\d)", "+"),
    ("wage", r"^(?=\d)", " "),
    ("wage", r"(?<=\d)$", ".0"),
    ("height", "$", "0"),
    ("height", "^1", "01"),
    ("height", r"^1\.", "1.0000"),
    ("hired", r"\.2001", ".02001"),
    ("hired", r"\.2001", ".1901"),
    ("guild", "y", "Y"),
    ("guild", "y", "true"),
    ("town", "elsewhere", "12 Rose Lane"),
    ("town", "elsewhere", "Bath"),
    ("survey", "spring", "autumn"),
    ("double", "$", "0"),
    ("double", "^2", "9"),
    ("double", "^2", "1"),
]


@pytest.mark.parametrize(("column", "old", "new"), FORGED_CELLS)
def test_a_cell_that_deniable_would_not_write_is_detected(written, column, old, new):
    assert written.is_detected(with_cell(written, column, old, new))


def test_the_report_names_the_column_and_shows_no_cell(written):
    (changed,) = with_cell(written, "town", "elsewhere", "12 Rose Lane").values()
    assert written.is_detected({"synthetic.csv": changed})
    report = written.report({"synthetic.csv": changed})
    (check,) = report.failed
    assert check.name == "records"
    assert '"town"' in check.explanation
    assert "Rose" not in check.explanation


def test_repeated_identifiers_are_detected(written):
    """A UUID may be any well-formed one, but none twice."""
    first, second = (record[1] for record in lines_of(written)[1:3])
    assert written.is_detected(with_cell(written, "token", first, second))
    other = first[:-1] + ("0" if first[-1] != "0" else "1")
    assert not written.is_detected(with_cell(written, "token", first, other))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n",
        lambda text: text.replace("number,token", "token,number", 1),
        lambda text: "\ufeff" + text,
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("number", '"number"', 1),
    ],
)
def test_another_way_to_write_the_file_is_detected(written, change):
    changed = change(written.files["synthetic.csv"].decode()).encode()
    assert written.is_detected({"synthetic.csv": changed})


def test_unknown_values_within_bins_and_identifiers_are_named(written, parquet):
    """Where no key is kept, any value of a bin passes: the report says so."""
    for release in (written, parquet):
        (sentence,) = (text for text in verify(release.folder).unknown if '"wage"' in text)
        assert '"token"' in sentence
        assert '"height"' in sentence
        assert '"badge"' not in sentence


def test_values_that_break_a_constraint_are_detected(tmp_path):
    """Also where both values are in their bins."""
    text = SCHEMA.text() + '\n[[constraint]]\nat_most = ["height", "reach"]\n'
    block = """
[[attribute]]
name = "reach"
type = "real"
min = 0.5
max = 2.5
decimals = 2
bins = { width = 0.5 }
"""
    schema = Schema.parse(text.replace("\n[[constraint]]", block + "\n[[constraint]]"))
    frame = TABLE.with_columns(reach=pl.col("height"))
    synthesize(frame, schema, records=60, **USUAL).write(tmp_path / "out")
    release = Release(tmp_path / "out")
    verify(release.folder).require()
    header, *records = lines_of(release)
    height, reach, double = (header.index(name) for name in ("height", "reach", "double"))
    records[0][height], records[0][double], records[0][reach] = "1.24", "2.48", "1.23"
    changed = "".join(",".join(line) + "\n" for line in [header, *records])
    assert release.is_detected({"synthetic.csv": changed.encode()})


# Parquet


def rewritten(path: Path, frame: pl.DataFrame, **options: Any) -> dict[str, bytes]:
    frame.write_parquet(path / "other.parquet", **options)
    return {"synthetic.parquet": (path / "other.parquet").read_bytes()}


def first_cell(column: str, value: object) -> pl.Expr:
    cell = pl.col(column)
    return pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(cell).alias(column)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("number", 77), ("token", "x"), ("badge", "B1"), ("trade", "potter"), ("trade", "")),
        *(("height", 1.23456), ("town", "Bath"), ("survey", "autumn"), ("double", 0.25)),
    ],
)
def test_a_parquet_cell_that_deniable_would_not_write_is_detected(parquet, tmp_path, column, value):
    """Whatever the writer claims to be, and for everyone who accepts other platforms."""
    frame = pl.read_parquet(parquet.folder / "synthetic.parquet")
    changed = rewritten(tmp_path, frame.with_columns(first_cell(column, value)))
    assert parquet.is_detected(changed)
    document = parquet.document("manifest.json")
    document["parameters"]["writer"] = "polars 0.20.1"
    report = parquet.report(changed, manifest=document, accept_other_platform=True)
    assert [check.name for check in report.failed] == ["records"]


def test_other_types_and_other_bytes_of_a_parquet_file_are_detected(parquet, tmp_path):
    frame = pl.read_parquet(parquet.folder / "synthetic.parquet")
    assert parquet.is_detected(
        rewritten(tmp_path, frame.with_columns(pl.col("wage").cast(pl.Int32)))
    )
    assert parquet.is_detected(rewritten(tmp_path, frame, metadata={"note": "a real row"}))
    assert parquet.is_detected(rewritten(tmp_path, frame, statistics="full"))
    assert not parquet.is_detected({})


# Names of columns

ODD_NAMES = [
    *('say "hi"', '"', '""', "a,b", '",', "two\nlines", "two\r\nlines", "\n", "tab\there", "'"),
    *("naïve 名前 🦆", "wage [/h]", "[bold]", "{brace}", "`tick`", "back\\slash", "$", "a=b", "#"),
    *("\ufefftrade", " before", "after ", " ", "long " * 400, "values of x", "x is a multiple of"),
]


def odd_attribute(name: str) -> Attribute:
    return Attribute(name=name, kind="categorical", values=("no", "yes"))


def odd_schema(names: list[str]) -> Schema:
    return Schema(tuple(map(odd_attribute, names)), rows_max=1_000)


def odd_table(names: list[str], rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(8)
    return pl.DataFrame({name: rng.choice(["no", "yes"], rows) for name in names})


@pytest.mark.parametrize("mode", ["one-shot", "tested"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_an_honest_release_with_odd_names_of_columns_passes(tmp_path, mode, file_format):
    """All in one table, and each as its first column."""
    options = {**USUAL, "mode": mode, "omega": "23"}
    schema = odd_schema(ODD_NAMES)
    made = synthesize(odd_table(ODD_NAMES), schema, records=20, **options)
    made.write(tmp_path / "all", file_format=file_format)
    verify(tmp_path / "all", against=odd_table(ODD_NAMES)).require()
    if mode == "one-shot":
        made.write_file(tmp_path / f"records.{file_format}")
        verify(tmp_path / f"records.{file_format}").require()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_of_the_first_column_passes(tmp_path, name):
    names = [name, "plain"]
    made = synthesize(odd_table(names), odd_schema(names), records=5, **{**USUAL, "omega": "1"})
    made.write(tmp_path / "out")
    verify(tmp_path / "out").require()


def test_an_odd_name_of_an_unmodelled_column_passes(tmp_path):
    names = ['the "key"', "of\nthe day"]
    columns = (
        Identifier(name=names[0], format="uuid"),
        Constant(name=names[1], value='a "word", two'),
        *map(odd_attribute, ("a", "b")),
    )
    schema = Schema(columns, rows_max=1_000)
    table = odd_table(["a", "b"]).with_columns(
        pl.int_range(pl.len()).alias(names[0]), pl.lit('a "word", two').alias(names[1])
    )
    for file_format in ("csv", "parquet"):
        made = synthesize(table, schema, records=5, **{**USUAL, "omega": "1"})
        made.write(tmp_path / file_format, file_format=file_format)
        verify(tmp_path / file_format).require()
