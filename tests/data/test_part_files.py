"""A table in parts reads as the same table in one file: rows, units, adjusted cells and faults."""

import polars as pl
import pytest

from deniable.data.part_files import faulty_parts_error, list_parts
from deniable.data.table_io import read_table
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

CELL = "heliotrope"
SCHEMA = Schema(
    (
        Identifier(name="who"),
        Attribute(name="n", kind="integer", values=range(5), outside="clip"),
        Attribute(name="c", kind="categorical", values=("a", "b")),
    ),
    unit="who",
    max_rows_per_unit=2,
)
ROWS = pl.DataFrame(
    {"who": ["x", "y", "x", "z", "y", "x"], "n": [0, 1, 2, 3, 4, 0], "c": [*"abbaab"]}
)


def write_parts(folder, suffix, *frames):
    folder.mkdir()
    for at, frame in enumerate(frames):
        path = folder / f"part-{at}{suffix}"
        frame.write_parquet(path) if suffix == ".parquet" else frame.write_csv(path)
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_parts_read_as_one_file(tmp_path, suffix):
    """Units are the same across parts; markers of other programs are no parts."""
    folder = write_parts(tmp_path / "t", suffix, ROWS[:2], ROWS[2:2], ROWS[2:])
    (folder / "_SUCCESS").touch()
    (folder / f".part-0{suffix}.crc").touch()
    parts, whole = read_table(folder, SCHEMA), read_table(ROWS, SCHEMA)
    assert parts.codes.tolist() == whole.codes.tolist()
    assert parts.units is not None
    assert parts.units.tolist() == [1, 2, 1, 3, 2, 1]


def test_adjusted_cells_of_parts_add_up(tmp_path):
    schema = Schema(tuple(c for c in SCHEMA.columns if c.name == "n"))
    lenient = Schema.parse(
        schema.text().replace('outside = "clip"', 'outside = "clip"\nfallback = 0')
    )
    frames = [pl.DataFrame({"n": ["7", "?"]}), pl.DataFrame({"n": ["?", "9"]})]
    table = read_table(write_parts(tmp_path / "t", ".csv", *frames), lenient)
    assert table.adjusted == {"n": {"replaced": 2, "clipped": 2}}


def test_all_faulty_parts_are_named_and_no_cell_is_shown(tmp_path):
    wrong = ROWS.with_columns(c=pl.lit(CELL))
    folder = write_parts(tmp_path / "t", ".csv", ROWS, wrong, ROWS, wrong[:1])
    with pytest.raises(DataError) as caught:
        read_table(folder, SCHEMA)
    message = str(caught.value)
    assert "line 2 of part-1.csv" in message
    assert "6 lines have this fault" in message
    assert "line 2 of part-3.csv" in message
    assert CELL not in message


def test_a_message_has_the_first_faulty_parts():
    message = str(faulty_parts_error((f"p{i}", "is odd") for i in range(8)))
    assert message.startswith("p0: is odd\n  p1: is odd")
    assert message.endswith("and 3 more parts with faults.")
    assert "p5" not in message


def test_a_unit_of_two_types_is_refused(tmp_path):
    """1 and 1.0 may be the same person, and would look like two."""
    numbers = [ROWS.with_columns(who=pl.lit(1)), ROWS.with_columns(who=pl.lit(1.0))]
    with pytest.raises(DataError, match="different types in different parts"):
        read_table(write_parts(tmp_path / "t", ".parquet", *numbers), SCHEMA)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], "has no parts of a table"),
        (["_SUCCESS"], "has no parts of a table"),
        (["a.csv", "b.parquet"], "all parts must have one format"),
        (["a.csv", "manifest.json"], "is not part of a table: manifest.json"),
        (["a.csv", "year=2020/a.csv"], "is not part of a table: year=2020"),
    ],
)
def test_a_folder_with_something_else_is_refused(tmp_path, names, expected):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=expected):
        list_parts(tmp_path)
