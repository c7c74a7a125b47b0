"""Encode and decode the real tables, if they are available."""

import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.table_io import read_codes
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("name", ["acs13", "acs24"])
def test_the_examples_read_back_equal(examples, name):
    schema = Schema.read(examples / name / "schema.toml")
    assert Schema.parse(schema.text()) == schema
    assert all(attribute.confirmed for attribute in schema.attributes)


@pytest.mark.parametrize("part", ["train", "test"])
def test_every_record_of_acs13_is_encoded_and_decoded(shared, examples, part):
    schema = Schema.read(examples / "acs13" / "schema.toml")
    path = shared / "acs13" / f"acs13_{part}.csv"
    codes, kind = read_codes(path, schema)
    assert kind.restore(Codec(schema).decode(codes)).equals(pl.read_csv(path))


def test_every_record_of_acs24_is_encoded_and_decoded(shared, examples):
    schema = Schema.read(examples / "acs24" / "schema.toml")
    path = shared / "acs24" / "acs24_table1.csv.gz"
    codes, _ = read_codes(path, schema)
    assert codes.shape == (1_326_858, 11)
    assert Codec(schema).decode(codes).equals(pl.read_csv(path))


def test_domains_and_buckets_of_acs13_are_those_of_the_paper_s_own_tool(shared, examples):
    schema = Schema.read(examples / "acs13" / "schema.toml")
    lines = (shared / "acs13" / "acs13_attrs.csv").read_text().split()
    domains = [(name, list(map(int, values))) for name, *values in (x.split(",") for x in lines)]
    assert [(a.name, list(a.values)) for a in schema.attributes] == domains
    lines = (shared / "acs13" / "acs13_grps.csv").read_text().split()
    groups = [tuple(int(bucket) - 1 for bucket in line.split(",")) for line in lines]
    assert [a.groups for a in schema.attributes] == groups


def test_all_attributes_of_acs24_that_acs13_has_keep_their_buckets(examples):
    older = {a.name: a for a in Schema.read(examples / "acs13" / "schema.toml").attributes}
    for attribute in Schema.read(examples / "acs24" / "schema.toml").attributes:
        if attribute.name in older and attribute.name != "rel":
            size = older[attribute.name].size
            assert attribute.groups[:size] == older[attribute.name].groups


def test_adult_is_encoded_with_its_missing_cells(shared):
    """README.md of the tables: 6,465 missing cells in three columns."""
    path = shared / "adult" / "adult.csv.gz"
    frame = pl.read_csv(path)
    described = []
    for name in frame.columns:
        values = frame[name].drop_nulls().unique().sort().to_list()
        described.append(Attribute(name=name, kind="categorical", values=values, missing=("",)))
    schema = Schema(tuple(described))
    codes, _ = read_codes(path, schema)
    missing = codes == [attribute.missing_code for attribute in described]
    assert (missing.sum(), missing.any(axis=0).sum()) == (6_465, 3)
    assert Codec(schema).decode(codes).equals(frame)
