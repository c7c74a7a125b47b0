"""From a real table to records, with no code written for it: what holds there holds in them."""

import re

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.data.complete_records import record_dtypes
from deniable.data.table_io import read_table
from deniable.drafting.draft import draft_schema
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow

TABLES = [
    "acs13/acs13_train.csv",
    "acs24/acs24_table1.csv.gz",
    "adult/adult.csv.gz",
    "bank_marketing/bank_marketing.csv.gz",
    "german_credit/german_credit.csv",
    "sd2011/sd2011.csv",
    "sdnist/national2019.csv",
]
RECORDS = 4_000


@pytest.fixture(scope="module", params=TABLES, ids=lambda path: path.split("/")[0])
def journey(request, shared, tmp_path_factory):
    """The path of a table, its drafted schema, and the path of records made with it."""
    path = shared / request.param
    schema = Schema.parse(draft_schema(path).text)
    made = deniable.synthesize(
        path,
        schema,
        records=RECORDS,
        epsilon=2.0,
        noise=Keyed(5),
        key=7,
        accept_drafted_schema=True,
    )
    target = tmp_path_factory.mktemp("journey") / "records.csv"
    made.write_file(target)
    return path, schema, target


def texts(path):
    return pl.read_csv(path, infer_schema=False).fill_null("")


def missing_shares(codes, schema):
    """The share of missing cells of each attribute that can have some."""
    return {
        attribute.name: float(np.mean(codes[:, i] == attribute.missing_code))
        for i, attribute in enumerate(schema.attributes)
        if attribute.missing
    }


@pytest.mark.shared
def test_records_have_the_columns_of_the_table_in_its_order(journey):
    path, _, records = journey
    table = pl.scan_csv(path, infer_schema=False).collect_schema().names()
    assert texts(records).columns == [name for name in table if name in texts(records).columns]
    assert len(texts(records)) == RECORDS


@pytest.mark.shared
def test_records_read_back_without_a_fault_as_the_same_schema_describes(journey):
    """Types, domains, missing codes, decimals and formats: a cell that breaks one is a fault."""
    _, schema, records = journey
    assert len(read_table(records, schema).codes) == RECORDS


@pytest.mark.shared
def test_missing_cells_are_as_frequent_as_in_the_table(journey):
    """Within what the noise of this ε allows in the smallest of these tables."""
    path, schema, records = journey
    real = missing_shares(read_table(path, schema).codes, schema)
    made = missing_shares(read_table(records, schema).codes, schema)
    far = {
        name: (share, made[name]) for name, share in real.items() if abs(share - made[name]) > 0.12
    }
    assert far == {}


@pytest.mark.shared
def test_decimals_are_written_as_the_schema_says(journey):
    _, schema, records = journey
    cells = texts(records)
    for attribute in schema.attributes:
        if attribute.kind != "real" or attribute.grid is None:
            continue
        decimals = attribute.grid.decimals
        pattern = rf"-?\d+\.\d{{{decimals}}}" if decimals else r"-?\d+"
        written = [cell for cell in cells[attribute.name] if cell not in attribute.missing]
        wrong = [cell for cell in written if not re.fullmatch(pattern, cell)]
        assert not wrong, attribute.name


@pytest.mark.shared
def test_a_frame_comes_back_with_the_types_it_had(journey):
    """Never by turning everything into text: numbers are numbers, dates are dates."""
    path, schema, _ = journey
    kinds = {c.name: c.kind for c in schema.columns if isinstance(c, Attribute)}
    dtypes = record_dtypes(schema.columns)
    for name, kind in kinds.items():
        if kind == "integer":
            assert dtypes[name] == pl.Int64
        elif kind == "real":
            assert dtypes[name] == pl.Float64
        elif kind == "boolean":
            assert dtypes[name] == pl.Boolean
    numeric = sum(kind in ("integer", "real") for kind in kinds.values())
    inferred = pl.read_csv(path, n_rows=2_000).dtypes
    assert numeric >= 0.5 * sum(dtype.is_numeric() for dtype in inferred)
