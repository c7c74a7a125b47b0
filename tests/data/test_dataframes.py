import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.codec import Codec
from deniable.data.table_io import read_codes
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

SCHEMA = Schema(
    (
        Attribute(name="n", kind="integer", values=range(100)),
        Attribute(name="t", kind="categorical", values=("a", "b", "c")),
        Attribute(name="m", kind="integer", values=range(100), missing=("",)),
        Attribute(name="u", kind="categorical", values=("x", "y"), missing=("?",)),
    )
)
CODES = np.array([[99, 2, 100, 2], [0, 0, 5, 0]], dtype=np.uint16)


def restored(frame, schema=SCHEMA, codes=CODES):
    _, kind = read_codes(frame, schema)
    return kind.restore(Codec(schema).decode(codes))


def test_importing_the_package_imports_neither_pandas_nor_pyarrow():
    code = (
        "import sys, deniable.data.table_io as t, deniable.schema.schema as s, polars as pl;"
        "x = s.Attribute(name='n', kind='integer', values=range(3));"
        "t.read_codes(pl.DataFrame({'n': [1]}), s.Schema((x,)));"
        "sys.exit('pandas' in sys.modules or 'pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_polars_frame_comes_back_in_its_order():
    frame = pl.DataFrame(
        {"u": ["x"], "t": ["a"], "m": [1], "n": [2]},
        schema={"u": pl.Categorical, "t": pl.Enum(["b", "a"]), "m": pl.UInt8, "n": pl.Int32},
    )
    assert read_codes(frame, SCHEMA)[0].tolist() == [[2, 0, 1, 0]]
    result = restored(frame)
    assert isinstance(result, pl.DataFrame)
    assert result.columns == ["u", "t", "m", "n"]
    assert result.dtypes == [pl.String, pl.String, pl.Int64, pl.Int64]
    assert result.rows() == [(None, "c", None, 99), ("x", "a", 5, 0)]


def test_a_lazy_frame_comes_back_lazy():
    result = restored(pl.LazyFrame({"n": [1], "t": ["a"], "m": [1], "u": ["x"]}))
    assert isinstance(result, pl.LazyFrame)
    assert result.collect().equals(Codec(SCHEMA).decode(CODES))


@pytest.mark.parametrize("numbers", ["int64", "int16", "Int64", "Int8", "int64[pyarrow]", "uint8"])
@pytest.mark.parametrize("texts", ["str", "object", "string", "string[pyarrow]", "category"])
def test_a_pandas_frame_comes_back_in_its_order(numbers, texts):
    frame = pd.DataFrame({"t": ["a", "b"], "n": [1, 2], "u": ["x", "?"], "m": [1, 2]})
    frame = frame.astype({"t": texts, "u": texts, "n": numbers, "m": numbers})
    frame.index = [7, 8]
    frame.attrs["rows"] = 2
    codes, _ = read_codes(frame, SCHEMA)
    assert codes.tolist() == [[1, 0, 1, 0], [2, 1, 2, 2]]
    result = restored(frame)
    assert list(result.columns) == ["t", "n", "u", "m"]
    assert list(result.index) == [0, 1]
    assert result.attrs == {}
    assert result.dtypes.equals(restored(pd.DataFrame(columns=["t", "n", "u", "m"])).dtypes)
    assert result["t"].tolist() == ["c", "a"]
    assert result["n"].tolist() == [99, 0]
    assert result["m"].isna().tolist() == [True, False]
    assert result["u"].isna().tolist() == [True, False]


def test_missing_cells_of_pandas_are_missing_of_every_sort():
    texts = pd.Series(["x", None, np.nan, "?"], dtype=object)
    frame = pd.DataFrame({"n": 1, "t": "a", "m": [1, np.nan, 3, None], "u": texts})
    assert read_codes(frame, SCHEMA)[0][:, 2:].tolist() == [[1, 0], [100, 2], [3, 2], [100, 2]]


def test_labels_other_than_text_are_kept():
    schema = Schema((Attribute(name="0", kind="integer", values=range(3)),))
    assert restored(pd.DataFrame([[1]]), schema, np.array([[2]], np.uint16)).columns.tolist() == [0]


def test_an_arrow_table_comes_back_in_its_order():
    table = pa.table(
        {
            "t": pa.array(["b", "a"]).dictionary_encode(),
            "m": pa.array([1, None], pa.int16()),
            "u": pa.array(["x", None], pa.large_string()),
            "n": pa.array([1.0, 2.0]),
        }
    ).replace_schema_metadata({"pandas": "rows: 2"})
    assert read_codes(table, SCHEMA)[0].tolist() == [[1, 1, 1, 0], [2, 0, 100, 2]]
    result = restored(table)
    assert result.schema.names == ["t", "m", "u", "n"]
    text = pa.large_string()
    assert result.schema.types == [text, pa.int64(), text, pa.int64()]
    assert result.schema.metadata is None
    assert result.to_pylist() == [
        {"t": "c", "m": None, "u": None, "n": 99},
        {"t": "a", "m": 5, "u": "x", "n": 0},
    ]
    result.validate(full=True)


def test_frames_with_two_columns_of_one_name_are_refused():
    with pytest.raises(DataError, match="have the same name"):
        read_codes(pd.DataFrame([[1, 2]], columns=["n", "n"]), SCHEMA)
    with pytest.raises(DataError, match="have the same name"):
        read_codes(pa.table([[1], [2]], names=["n", "n"]), SCHEMA)


def test_a_cell_of_another_type_is_refused_and_not_shown():
    mixed = pd.Series([1, "SECRET"], dtype=object)
    frame = pd.DataFrame({"n": mixed, "t": "a", "m": 1, "u": "x"})
    with pytest.raises(
        DataError, match=r'column "n", row 2 of the table: .* not a whole'
    ) as caught:
        read_codes(frame, SCHEMA)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("cell", [b"SECRET", ["SECRET"], 1j, {"SECRET": 1}])
def test_objects_that_are_no_cells_are_refused_and_not_shown(cell):
    frame = pd.DataFrame({"n": pd.Series([1, cell], dtype=object), "t": "a", "m": 1, "u": "x"})
    with pytest.raises(DataError, match='column "n" of the table holds values that') as caught:
        read_codes(frame, SCHEMA)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_faults_of_a_frame_are_found_by_row():
    frame = pd.DataFrame({"n": [1, 777], "t": "a", "m": 1, "u": "x"})
    with pytest.raises(
        DataError, match=r'column "n", row 2 of the table.*outside 0\.\.99'
    ) as caught:
        read_codes(frame, SCHEMA)
    assert "777" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "says"), [([True], "Boolean"), (pd.to_datetime(["2020-01-01"]), "Datetime")]
)
def test_a_column_of_another_type_is_refused(column, says):
    frame = pd.DataFrame({"n": column, "t": "a", "m": 1, "u": "x"})
    with pytest.raises(DataError, match=f'column "n" is of type {says}'):
        read_codes(frame, SCHEMA)


def test_an_arrow_type_that_polars_does_not_know_is_refused():
    column = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    schema = Schema(SCHEMA.attributes[:1])
    with pytest.raises(DataError, match="an Arrow type that polars does not support"):
        read_codes(pa.table({"n": column}), schema)


@pytest.mark.parametrize("source", [3, None, {"n": [1]}, pd.Series([1]), pa.array([1])])
def test_an_object_that_is_not_a_table_is_refused(source):
    with pytest.raises(DataError, match=r"is not a table\. Pass a path"):
        read_codes(source, SCHEMA)


def test_a_lazy_frame_that_cannot_be_planned_is_refused():
    with pytest.raises(DataError, match="could not be computed"):
        read_codes(pl.LazyFrame({"n": [1]}).select("absent"), SCHEMA)


EVERY_KIND = Schema.parse("""
format = 1
unit = "id"
max_rows_per_unit = 2
[[attribute]]
name = "id"
type = "identifier"
outside = "drop"
[[attribute]]
name = "job"
type = "categorical"
values = ["a"]
missing = ["?"]
[[attribute]]
name = "note"
type = "text"
other = "other"
values = ["fine"]
missing = [""]
[[attribute]]
name = "born"
type = "date"
min = 2020-01-01
max = 2020-12-31
missing = [""]
[[attribute]]
name = "smokes"
type = "boolean"
values = ["no", "yes"]
missing = [""]
[[attribute]]
name = "age"
type = "integer"
min = 0
max = 9
missing = [""]
""")
KIND_NAMES = [column.name for column in EVERY_KIND.columns]


@pytest.mark.parametrize("dtype", ["float64", "object", "Int64", "str", "bool", "datetime64[ns]"])
def test_a_table_without_rows_is_a_table_whatever_its_types(dtype):
    """pandas calls a column without cells a column of floats or objects."""
    empty = pd.DataFrame({name: pd.Series([], dtype=dtype) for name in KIND_NAMES})
    for frame in (empty, pl.from_pandas(empty), pl.from_pandas(empty).lazy()):
        assert read_codes(frame, EVERY_KIND)[0].shape == (0, 5)
    assert read_codes(pa.Table.from_pandas(empty), EVERY_KIND)[0].shape == (0, 5)


@pytest.mark.parametrize("dtype", ["float64", "object", "Int64", "datetime64[ns]"])
def test_a_column_of_missing_cells_is_missing_whatever_its_type(dtype):
    frame = pd.DataFrame({name: pd.Series([None], dtype=dtype) for name in KIND_NAMES})
    frame["id"] = [1]
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert read_codes(source, EVERY_KIND)[0].tolist() == [[1, 2, 366, 2, 10]]
    nan = pl.DataFrame(dict.fromkeys(KIND_NAMES, float("nan"))).with_columns(id=pl.lit(1))
    assert read_codes(nan, EVERY_KIND)[0].tolist() == [[1, 2, 366, 2, 10]]


def test_a_stored_index_of_pandas_needs_no_description():
    frame = pd.DataFrame({name: [None] for name in KIND_NAMES} | {"id": [1]})
    frame["__index_level_0__"] = [b"any"]
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        codes, kind = read_codes(source, EVERY_KIND)
        assert codes.tolist() == [[1, 2, 366, 2, 10]]
        assert "__index_level_0__" not in restored_names(kind)


def restored_names(kind):
    return list(getattr(kind, "labels", None) or kind.names)
