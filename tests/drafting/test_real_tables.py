"""Drafts of real tables parse and describe their table."""

import pytest

from deniable.data.table_io import read_codes
from deniable.drafting.draft import draft_schema
from deniable.schema.schema import Schema

pytestmark = pytest.mark.shared

TABLES = {
    "adult/adult.csv.gz": (48_842, 15),
    "bank_marketing/bank_marketing.csv.gz": (41_188, 21),
    "german_credit/german_credit.csv": (1_000, 21),
    "sd2011/sd2011.csv": (5_000, 35),
    "sdnist/national2019.csv": (27_253, 24),
    "acs13/acs13_train.csv": (70_000, 11),
    "acs24/acs24_table1.csv.gz": (1_326_858, 11),
}

COMPUTED = {
    "adult/adult.csv.gz": ["education"],
    "sdnist/national2019.csv": ["DENSITY", "INDP_CAT"],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_plain_draft_describes_every_row_and_learns_every_column(shared, name):
    path = shared / name
    schema = Schema.parse(draft_schema(path).text)
    codes, _ = read_codes(path, schema)
    # Roundness of a heaped column is an extra attribute; computed columns have none.
    computed = [column.name for column in schema.columns if column.kind == "computed"]
    assert computed == COMPUTED.get(name, [])
    learnt = TABLES[name][1] - len(computed)
    assert codes.shape == (TABLES[name][0], learnt + len(schema.heaping))
    assert len(schema.heaping) == (2 if name.startswith("sdnist") else 0)
    assert schema.drafted[0] == "rows_max"
    assert TABLES[name][0] <= schema.rows_max <= 3 * TABLES[name][0]
    assert len(schema.drafted) == 1 + TABLES[name][1] + len(schema.constraints)
    if schema.constraints:
        assert schema.constraint_solver.feasible(codes).all(), "no row breaks a drafted constraint"
    assert max(schema.sizes) <= 1_002  # a thousand bins, the upper end, and missing


@pytest.mark.parametrize("name", TABLES)
def test_a_private_draft_describes_nearly_every_row(shared, name):
    """With ε = 2 rare values are not described: they are clipped or merged."""
    path = shared / name
    draft = draft_schema(path, draft_epsilon=2.0)
    schema = Schema.parse(draft.text)
    codes, _ = read_codes(path, schema)
    rows, columns = TABLES[name]
    assert len(codes) >= 0.95 * rows
    assert len(schema.columns) == columns
    assert len(schema.attributes) >= 0.7 * columns
    assert schema.draft is not None


def test_indices_of_the_economy_are_amounts_and_determine_no_month(shared):
    """In these rows, the month follows from the price index; no data dictionary says so."""
    schema = Schema.parse(draft_schema(shared / "bank_marketing" / "bank_marketing.csv.gz").text)
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds["month"] == "categorical"
    rates = ("emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed")
    assert {kinds[name] for name in rates} == {"real"}


def test_equivalent_columns_are_found(shared):
    notes = draft_schema(shared / "adult" / "adult.csv.gz").notes
    assert any('"education-num"' in note and '"education"' in note for note in notes)


def test_not_applicable_below_15_is_a_constraint(shared):
    schema = Schema.parse(draft_schema(shared / "sdnist" / "national2019.csv").text)
    written = [constraint.to_toml() for constraint in schema.constraints]
    assert {
        "forbid": {"MSP": {"missing": False}, "AGEP": {"below": 15}},
        "confirmed": False,
    } in written
    assert {"less": ["NOC", "NPF"], "confirmed": False} in written


def test_the_codes_for_missing_are_found(shared):
    schema = Schema.parse(draft_schema(shared / "sd2011" / "sd2011.csv").text)
    missing = {attribute.name: attribute.missing for attribute in schema.attributes}
    assert "-8" in missing["unempdur"]
    assert "-8" in missing["income"]
    assert missing["sport"] == ("",)
    bank = draft_schema(shared / "bank_marketing" / "bank_marketing.csv.gz")
    assert 'missing = ["999"]' in bank.text
