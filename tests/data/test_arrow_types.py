"""Types of Arrow columns: what polars would panic on is refused, and nothing is printed."""

from collections.abc import Iterator
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from deniable.data.arrow_types import arrow_column_of, contains_type, require_importable
from deniable.data.table_io import read_table
from deniable.drafting.draft import draft_schema
from deniable.errors import DataError
from deniable.schema.schema import Schema

MARK = "Zxqvort"
LONG = pa.array([Decimal(3), Decimal(4)], pa.decimal256(60, 3))
FLAWED = pa.array([b"\xff" + MARK.encode(), b"4"]).view(pa.string())
DAY = 86_400_000
# The last whole day of this type: no date of Python.
LATE = pa.array([2**63 // DAY * DAY, 0], pa.int64()).view(pa.date64())


def in_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays([0, 1, 2], values)


def in_dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1]), values)


NESTINGS = [
    lambda values: values,
    in_list,
    in_dictionary,
    lambda values: pa.StructArray.from_arrays([values], ["part"]),
    lambda values: pa.ExtensionArray.from_storage(pa.opaque(values.type, "kind", "owner"), values),
]


@pytest.fixture(autouse=True)
def _silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nothing is written to the file descriptors: Rust prints panics there."""
    yield
    assert capfd.readouterr() == ("", "")


def schema_of(kind: str) -> Schema:
    return Schema.parse(f'format = 1\nrows_max = 9\n[[attribute]]\nname = "x"\ntype = {kind}\n')


KINDS = ['"integer"\nmin = 0\nmax = 9', '"text"\nvalues = ["4"]\nother = "5"']


@pytest.mark.parametrize("nest", NESTINGS)
def test_a_type_is_found_in_its_parts(nest):
    assert contains_type(nest(LONG).type, pa.types.is_decimal256)
    assert not contains_type(nest(LATE).type, pa.types.is_decimal256)
    with pytest.raises(NotImplementedError):
        require_importable(nest(LONG))
    require_importable(nest(LATE))


def test_texts_that_are_not_utf8_are_invalid():
    with pytest.raises(ValueError, match="UTF"):
        require_importable(pa.chunked_array([FLAWED]))
    require_importable(pa.array([1], pa.int64()).view(pa.date64()))


def test_only_columns_of_arrow_types_have_an_arrow_column():
    typed = pd.Series([1, 2], dtype=pd.ArrowDtype(pa.int8()))
    assert arrow_column_of(typed).type == pa.int8()
    assert arrow_column_of(pd.Series([1, 2])) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nest", NESTINGS)
@pytest.mark.parametrize("values", [LONG, FLAWED], ids=["decimal256", "not UTF-8"])
def test_a_column_that_polars_would_panic_on_is_an_error_that_names_it(values, nest, kind):
    with pytest.raises(DataError, match='column "x" of the table is of an Arrow type') as caught:
        read_table(pa.table({"x": nest(values)}), schema_of(kind))
    assert MARK not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pandas_column_is_read_by_its_objects_or_refused(kind):
    def read(values):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=pd.ArrowDtype(values.type))})
        return read_table(frame, schema_of(kind)).codes

    assert read(LONG).shape == (2, 1)
    with pytest.raises(DataError, match='column "x" of the table holds values') as caught:
        read(FLAWED)
    assert MARK not in str(caught.value)


@pytest.mark.parametrize("is_pandas", [False, True])
@pytest.mark.parametrize("nest", NESTINGS[:4])
@pytest.mark.parametrize("values", [LONG, FLAWED, LATE], ids=["long", "not UTF-8", "late"])
def test_no_cell_stops_a_private_draft(values, nest, is_pandas):
    source = pa.table({"x": nest(values)})
    if is_pandas:
        source = pd.DataFrame(
            {"x": pd.Series(nest(values), dtype=pd.ArrowDtype(nest(values).type))}
        )
    assert 'name = "x"' in draft_schema(source, draft_epsilon=1.0).text
    assert (
        'name = "x"' in draft_schema(source, draft_epsilon=1.0, unit="x", max_rows_per_unit=1).text
    )
