"""Records given rows, a condition or shares: types of columns, keys, manifests, bad requests."""

import dataclasses
import datetime as dt
import json

import numpy as np
import polars as pl
import pytest

from deniable import Schema, verify
from deniable.answers.conditional_release import generate_conditional
from deniable.data.codec import Codec
from deniable.errors import ConfigError, DataError
from deniable.model.bayesian_network import ConditionalTable
from deniable.pipeline import api
from rich_tables import RICH_SCHEMA, rich_table

pytestmark = pytest.mark.slow

GIVEN = pl.DataFrame(
    {
        "pay": ["120", "NA", "", "455", "", "7"],
        "town": ["Jena", "", "Bonn", "Ulm", "", ""],
        "grade": ["", "?", "good", "", "", "poor"],
        "since": ["2020-03-05", "", "", "2020-12-31", "", ""],
        "weight": ["2.5", "", "0.1", "", "", "9.9"],
        "smoker": ["", "yes", "", "", "", "yes"],
        "id": ["", "", "mine", "", "", ""],
        "age": ["", "44", "", "70", "", ""],
        "months": ["", "", "", "840", "", ""],
        "country": ["", "DE", "", "", "", ""],
    }
)


def completed(artefact, frame=GIVEN, **request):
    return artefact.generate(given=frame, key=5, **request)


def test_given_cells_of_every_type_keep_their_values(rich):
    found = completed(rich, records_each=3)
    assert found.columns == [column.name for column in rich.schema.columns]
    rows = found.gather_every(3)
    for at in range(3):
        rows = found.slice(at).gather_every(3)
        assert rows["pay"].to_list()[:2] == [120, None]
        assert rows["pay"].to_list()[3] == 455
        assert rows["pay"].to_list()[5] == 7
        assert rows["town"].to_list()[:1] == ["Jena"]
        assert rows["town"].to_list()[2:4] == ["Bonn", "Ulm"]
        assert rows["grade"].to_list()[1:3] == [None, "good"]
        assert rows["since"].to_list()[0] == dt.date(2020, 3, 5)
        assert rows["since"].to_list()[3] == dt.date(2020, 12, 31)
        assert rows["weight"].to_list()[0] == 2.5
        assert rows["smoker"].to_list()[1] is True
        assert rows["age"].to_list()[1] == 44
        assert rows["months"].to_list()[3] == 840
        assert rows["id"].to_list()[2] == "mine"
    assert set(found["country"]) == {"DE"}
    assert (found["months"] == 12 * found["age"]).all()


def test_completed_records_fit_the_schema_and_its_constraints(rich):
    found = completed(rich, records_each=200)
    codes = Codec(rich.schema).encode(found)
    assert rich.schema.constraint_solver.feasible(codes).all()
    assert found.filter(pl.col("smoker"))["age"].min() >= 18
    assert not len(
        found.filter((pl.col("town") == "Bonn") & pl.col("smoker") & (pl.col("grade") == "poor"))
    )
    # An empty cell is drawn, also where the schema means missing by it: mostly present.
    assert 0 < found.filter(pl.col("town") == "Jena")["grade"].null_count() < 100


def test_the_same_key_gives_the_same_records_for_any_number_of_workers(rich):
    one = completed(rich, records_each=4, workers=1)
    assert completed(rich, records_each=4, workers=3).equals(one)
    assert not rich.generate(given=GIVEN, records_each=4, key=6).equals(one)
    condition = {"where": "age >= 30 and pay < 455", "key": 5}
    first = rich.generate(70_000, workers=1, **condition)
    assert rich.generate(70_000, workers=2, **condition).equals(first)


def test_a_condition_holds_in_every_record(rich):
    where = (
        'age > 33 and age != 40 and pay in (120, 355, 400, 77) and town != "Bonn" and '
        "since < 2020-07-04 and weight >= 0.5 and smoker = false and grade is not missing"
    )
    found = rich.generate(2_000, where=where, key=1)
    assert found["age"].min() > 33
    assert 40 not in found["age"]
    assert set(found["pay"]) <= {120, 355, 400, 77}
    assert "Bonn" not in found["town"]
    assert found["since"].max() < dt.date(2020, 7, 4)
    assert found["weight"].min() >= 0.5
    assert not found["smoker"].any()
    assert found["grade"].null_count() == 0


def test_a_condition_may_restrict_what_given_rows_are_completed_with(rich):
    found = completed(rich, records_each=50, where="age >= 43 and weight < 10")
    assert 43 <= found["age"].min() < 50


def test_a_given_cell_that_the_condition_excludes_is_an_error(rich):
    with pytest.raises(DataError, match=r'row 2 of the table: where excludes its "age"') as raised:
        completed(rich, where="age >= 50")
    assert "44" not in str(raised.value)


@pytest.mark.parametrize(
    ("balance", "shares"),
    [("grade", [667, 667, 666]), ("grade: 0.5, 0, 0.5", [1000, 0, 1000]), ("smoker", [1000, 1000])],
)
def test_shares_are_met(rich, balance, shares):
    found = rich.generate(2_000, balance=balance, key=2)
    name = balance.split(":")[0]
    values = [False, True] if name == "smoker" else ["poor", "fair", "good"]
    counts = [int((found[name] == value).sum()) for value in values]
    assert all(abs(count - share) <= 1 for count, share in zip(counts, shares, strict=True))
    assert sum(counts) == 2_000
    # Not sorted by value.
    assert (found[name] != found[name].shift(1)).sum() > 500


def test_shares_of_bins_and_a_condition_together(rich):
    found = rich.generate(1_000, balance="pay", where="age >= 40", key=2)
    assert found["age"].min() >= 40
    assert set((found["pay"] // 100).value_counts()["count"]) == {100}


def test_a_row_that_the_model_never_draws_is_an_error():
    """A model that excludes what no row has; nothing smooths it."""
    schema = Schema.parse(RICH_SCHEMA)
    table = rich_table().filter(pl.col("grade").ne_missing("good") | ~pl.col("smoker"))
    exact = api.learn(table, schema, epsilon=float("inf"), mode="seedless", estimator="clip")
    tables = [replace_zeros(table) for table in exact.network.tables]
    network = dataclasses.replace(exact.network, tables=tuple(tables))
    artefact = dataclasses.replace(exact, network=network)
    given = pl.DataFrame({"grade": ["poor", "good"], "smoker": ["yes", "yes"]})
    words = 'row 2 of the table: the model gives probability 0 to a record with its column "grade"'
    with pytest.raises(DataError, match=words):
        artefact.generate(given=given, key=1)


def replace_zeros(table):
    """Probabilities of less than 1 % become 0: those of combinations without a row among them."""
    p = np.where(table.probabilities < 0.01, 0, table.probabilities)
    return ConditionalTable(p / p.sum(axis=1, keepdims=True))


REFUSED = [
    ({"records": 5, "given": GIVEN}, "exclude each other"),
    ({"given": GIVEN, "balance": "grade"}, "exclude each other"),
    ({"given": GIVEN, "records_each": 0}, "records_each = 0"),
    ({"records": 5, "records_each": 2}, "need given"),
    ({"records": 0, "where": "age > 5"}, "at least 1"),
    ({"where": "age > 5"}, "must be an integer"),
    ({"records": 5, "where": "ages > 5"}, 'did you mean "age"'),
    ({"records": 5, "balance": "country"}, "no learnt column"),
    ({"records": 5, "balance": "grade: 1, 2"}, "2 shares"),
    ({"records": 5, "balance": "grade: 1, 2, 3"}, "sum to 1"),
    ({"records": 5, "balance": "grade: a, b, c"}, "must be numbers"),
    ({"records": 5, "balance": "grade", "where": 'grade = "good"'}, "which balance sets"),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED)
def test_contradictory_requests_are_refused(rich, request_, words):
    with pytest.raises(ConfigError, match=words):
        rich.generate(**request_)


def test_a_condition_that_a_constraint_excludes_says_which_values(rich):
    with pytest.raises(ConfigError) as raised:
        rich.generate(5, where="age < 10 and smoker = true")
    text = str(raised.value)
    assert "probability 0" in text
    parts = ['"age" = 0 to 9', '"smoker" = "yes"']
    assert any(" and ".join(order) in text for order in (parts, parts[::-1]))
    with pytest.raises(ConfigError, match=r'exclude nearly all .*"age" = 0 to 17 and "smoker"'):
        rich.generate(5, where="age < 18 and smoker = true")


def test_a_condition_that_a_constraint_of_three_columns_excludes_is_an_error(rich):
    with pytest.raises(ConfigError, match="constraints of the schema exclude nearly all"):
        rich.generate(5, where='town = "Bonn" and smoker = true and grade = "poor"')


BAD_ROWS = [
    ({"aeg": ["5"]}, "schema"),
    ({"age": ["5"], "more": ["x"]}, "does not describe column"),
    ({"age": ["500"]}, 'column "age", row 1 of the table: the given cell is not a value'),
    ({"age": ["5.5"]}, "is not a value"),
    ({"grade": ["", "great", "bad"]}, "row 2 of the table.*2 rows have"),
    ({"since": ["2021-01-01"]}, "is not a value"),
    ({"weight": ["2.55"]}, "is not a value"),
    ({"country": ["FR"]}, "is not a value"),
    ({"months": ["24"]}, 'without "age"'),
    ({"months": ["24"], "age": [""]}, 'without "age"'),
    ({"age": []}, "no rows"),
    (
        {"age": ["30", "7"], "smoker": ["yes", "yes"]},
        "row 2 .*probability 0.*(age.*smoker|smoker.*age)",
    ),
    (
        {"town": ["Bonn"], "smoker": ["yes"], "grade": ["poor"]},
        "row 1 .*constraints of the schema exclude",
    ),
]


@pytest.mark.parametrize(("columns", "words"), BAD_ROWS)
def test_given_rows_that_do_not_fit_are_refused_without_showing_a_cell(rich, columns, words):
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    with pytest.raises(DataError, match=f"(?s){words}") as raised:
        completed(rich, frame)
    for cells in columns.values():
        for cell in cells:
            assert len(cell) < 3 or cell not in str(raised.value)


def test_typed_frames_are_given_rows_too(rich):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [44.0, None], "smoker": [None, True], "weight": [2.5, None]})
    found = completed(rich, frame)
    assert found["age"].to_list()[0] == 44
    assert found["smoker"].to_list()[1] is True
    assert found["weight"].to_list()[0] == 2.5


def test_the_manifest_names_columns_and_no_cell(rich, tmp_path):
    release = generate_conditional(rich, given=GIVEN, records_each=2, key=5)
    path = release.write_file(tmp_path / "rows.csv")
    assert path.name == "rows.csv.internal"
    assert path.stat().st_mode & 0o777 == 0o600
    manifest = tmp_path / "rows.csv.internal.manifest.json"
    assert manifest.stat().st_mode & 0o777 == 0o600
    document = json.loads(manifest.read_text())
    assert document["parameters"]["given"] == {
        "columns": [column.name for column in rich.schema.columns if column.name in GIVEN.columns],
        "public": False,
        "records_each": 2,
    }
    assert document["parameters"]["epsilon"] == rich.certificate.parameters["epsilon"]
    assert document["guarantee"]["epsilon"] == rich.epsilon
    assert "input rows that" not in document["guarantee"]["sentence"]
    assert "and k were" not in document["guarantee"]["sentence"]
    assert "The schema was fixed in advance; the number" in document["guarantee"]["sentence"]
    assert verify(path).passed
    assert "covered by no promise" in document["guarantee"]["sentence"]
    assert "given cells" in document["not_covered"][0]
    assert "mine" not in manifest.read_text()
    assert "Jena" not in manifest.read_text()


def test_declared_public_rows_may_leave(rich, tmp_path):
    release = generate_conditional(rich, given=GIVEN, given_is_public=True, key=5)
    path = release.write_file(tmp_path / "rows.csv")
    assert path.name == "rows.csv"
    document = json.loads((tmp_path / "rows.csv.manifest.json").read_text())
    assert document["parameters"]["given"]["rows"] == len(GIVEN)


def test_a_condition_keeps_the_sentence_about_k_rows(rich, tmp_path):
    release = generate_conditional(rich, 20, where="age >= 30", key=5)
    release.write_file(tmp_path / "r.csv")
    document = json.loads((tmp_path / "r.csv.manifest.json").read_text())
    assert "at least 10 input rows" in document["guarantee"]["sentence"]
    assert document["parameters"]["where"] == "age >= 30"
    assert document["parameters"]["inference"]["method"] == "exact"
    release = generate_conditional(rich, 20, where="age >= 33", key=5)
    path = release.write_file(tmp_path / "cut.csv")
    assert release.tally.document()["method"] == "nearly exact"
    assert verify(path).passed


def test_a_failure_leaves_no_file(rich, tmp_path):
    frame = pl.DataFrame({"age": ["30", "7"], "smoker": ["yes", "yes"]})
    release = generate_conditional(rich, given=frame, key=5)
    with pytest.raises(DataError):
        release.write_file(tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []
