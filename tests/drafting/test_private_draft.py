"""Private drafts: useful, within their limit, and changed by one row in one count only."""

import datetime as dt
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.data.table_io import read_codes
from deniable.drafting import noisy_histograms, private_draft
from deniable.drafting.column_profile import open_table
from deniable.drafting.draft import draft_schema
from deniable.drafting.noisy_histograms import calibrate_noise
from deniable.drafting.private_draft import draft_privately
from deniable.errors import BudgetError, ConfigError, DataError
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend, compose_spends
from deniable.randomness import Keyed, Secret
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow

LIMIT = Guarantee(epsilon=1.0, delta=1e-9)


def big_table(n: int = 20_000) -> pl.DataFrame:
    draws = np.random.default_rng(5)
    day = dt.date(1950, 1, 1)
    return pl.DataFrame(
        {
            "user_id": [f"u{x}" for x in range(n)],
            "years": draws.integers(18, 95, n),
            "code": draws.integers(1, 9, n),
            "mixed": draws.choice(["N", *map(str, range(1, 40))], n, p=[0.22, *[0.02] * 39]),
            "trade": draws.choice(["tinsmith", "lacemaker", "", "wheelwright"], n),
            "smokes": draws.choice(["yes", "no"], n),
            "born": [day + dt.timedelta(days=int(x)) for x in draws.integers(0, 20_000, n)],
            "weight": draws.normal(70, 12, n).round(1),
            "pay": np.round(draws.lognormal(8, 1.5, n)).astype(int),
            "rare": ["common"] * (n - 1) + ["axolotl"],
        }
    )


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return big_table()


@pytest.fixture(scope="module")
def drafted(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("private") / "table.csv"
    table.write_csv(path)
    return path, draft_schema(path, draft_epsilon=1.0)


def test_a_private_draft_describes_its_table(drafted, table):
    path, draft = drafted
    schema = Schema.parse(draft.text)
    found = {column.name: column for column in schema.columns}
    kinds = {name: column.kind for name, column in found.items()}
    assert kinds == {
        "user_id": "identifier",
        "years": "integer",
        "code": "categorical",
        "mixed": "integer",
        "trade": "categorical",
        "smokes": "boolean",
        "born": "date",
        "weight": "real",
        "pay": "integer",
        "rare": "text",
    }
    assert found["code"].values == tuple(range(1, 9))
    assert "N" in found["mixed"].missing
    assert found["trade"].missing == ("",)
    assert found["trade"].values == ("lacemaker", "tinsmith", "wheelwright")
    complete = ("years", "code", "smokes", "born", "weight", "pay", "rare")
    assert [found[name].missing for name in complete] == [()] * len(complete)
    assert all(column.fallback is not None for column in schema.attributes)
    codes, _ = read_codes(path, schema)
    assert len(codes) == len(table)


@pytest.mark.parametrize("kind", ["parquet", "polars", "pandas", "arrow"])
def test_a_private_draft_of_typed_columns_describes_them(table, tmp_path, kind):
    typed = table.with_columns(smokes=pl.col("smokes") == "yes", weight=pl.col("weight") + 0.05)
    typed = typed.with_columns(seen=pl.col("born").cast(pl.Datetime("us")).dt.offset_by("90m"))
    typed.write_parquet(tmp_path / "table.parquet")
    source = {"polars": typed, "pandas": typed.to_pandas(), "arrow": typed.to_arrow()}.get(
        kind, tmp_path / "table.parquet"
    )
    schema = Schema.parse(draft_schema(source, draft_epsilon=1.0).text)
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds["smokes"] == "boolean"
    assert kinds["born"] == ("datetime" if kind == "pandas" else "date")
    assert (kinds["seen"], kinds["weight"], kinds["years"]) == ("datetime", "real", "integer")
    codes, _ = read_codes(source, schema)
    assert len(codes) == len(typed)


def test_ranges_among_numbers_are_values_and_do_not_mean_missing(tmp_path):
    """Counts of birds: 0, 1, 2-10, and two ranges that are too rare to be released."""
    cells = ["1"] * 20_000 + ["2-10"] * 6_000 + ["11-100"] * 40 + ["Over 100"] * 10 + ["0"] * 20
    path = tmp_path / "table.csv"
    pl.DataFrame({"struck": cells}).write_csv(path)
    schema = Schema.parse(draft_schema(path, draft_epsilon=0.1).text)
    [attribute] = schema.attributes
    assert attribute.kind == "text"
    assert set(attribute.values) == {"1", "2-10", "other"}
    assert "2-10" not in attribute.missing
    codes, _ = read_codes(path, schema)
    assert np.bincount(codes[:, 0]).tolist() == [20_000, 6_000, 70]


def nearly_whole(share: float, n: int = 5_000) -> np.ndarray:
    """Floats, nearly all of them whole."""
    draws = np.random.default_rng(2)
    return np.where(draws.random(n) < share, draws.uniform(10, 44, n).round(2), 45.0)


@pytest.mark.parametrize(("share", "step"), [(0.01, "1.0"), (0.3, "0.01")])
def test_a_fraction_too_rare_to_be_seen_is_rounded_and_does_not_stop_a_run(tmp_path, share, step):
    """The decimal points of a CSV file are part of its cells: 45.0 is drafted as a real."""
    path = tmp_path / "table.csv"
    pl.DataFrame({"result": nearly_whole(share)}).write_csv(path)
    schema = Schema.parse(draft_schema(path, draft_epsilon=0.3).text)
    codes, _ = read_codes(path, schema)
    assert len(codes) == 5_000
    [attribute] = schema.attributes
    assert (attribute.kind, str(attribute.grid.step)) == ("real", step)


def test_whole_floats_of_a_frame_are_integers():
    """One missing cell makes integers floats, so that they are floats means nothing."""
    kinds = []
    for share in (0.0, 0.01, 0.3):
        cells = pl.DataFrame({"result": nearly_whole(share)})
        [column] = Schema.parse(draft_schema(cells, draft_epsilon=0.3).text).columns
        kinds.append(column.kind)
    # A few whole numbers are a category.
    assert set(kinds[:2]) <= {"integer", "categorical"}
    assert kinds[2] == "real"


@pytest.mark.parametrize("gap", [None, float("nan"), "NA", 2.5, True])
def test_the_type_of_a_pandas_column_does_not_hang_on_one_row(gap):
    """Issue: integer without the row, real with it, ten times in ten."""
    cells = [1, 5, 9, 35] * 1_000
    for frame in (pd.DataFrame({"x": cells}), pd.DataFrame({"x": [*cells, gap]})):
        [column] = Schema.parse(draft_schema(frame, draft_epsilon=1.0).text).columns
        assert column.kind == "integer"


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars"])
def test_a_rare_fraction_among_whole_numbers_is_rounded(tmp_path, kind):
    """Whole numbers are drafted. In frames the few fractions make the column one of floats."""
    path = tmp_path / "table.csv"
    cells = [35.0, 60.0] * 2_000 + [38.4] * 5
    pl.DataFrame({"hours": [f"{cell:g}" for cell in cells]}).write_csv(path)
    frames = {"csv": path, "pandas": pd.DataFrame({"hours": cells})}
    source = frames.get(kind, pl.DataFrame({"hours": cells}))
    schema = Schema.parse(draft_schema(source, draft_epsilon=1.0).text)
    [attribute] = schema.attributes
    assert attribute.kind == "integer"
    codes, _ = read_codes(source, schema)
    rounded = [35, 60] * 2_000 + [38] * 5
    assert (codes[:, 0] + int(attribute.values[0])).tolist() == rounded


def test_integers_too_large_for_doubles_stay_integers():
    cells = [f"{x}.0" for x in np.random.default_rng(2).integers(2**55, 2**56, 5_000)]
    schema = Schema.parse(draft_schema(pl.DataFrame({"x": cells}), draft_epsilon=1.0).text)
    assert [column.kind for column in schema.columns] == ["integer"]


def test_it_records_its_cost_and_marks_nothing_as_read_from_the_data(drafted):
    _, draft = drafted
    schema = Schema.parse(draft.text)
    assert (schema.draft.epsilon, schema.draft.delta) == (1.0, 1e-10)
    assert draft.cost == replace(LIMIT, delta=1e-10)
    assert schema.drafted == ()
    assert "read from the data" not in draft.text
    assert draft.text.count("drafted with differential privacy") > len(schema.columns)


def test_a_text_of_one_row_is_not_released(drafted):
    """It would be with the probability of the largest noise: below 10^-9."""
    assert "axolotl" not in drafted[1].text


def test_every_entry_is_confirmed_by_the_draft(drafted):
    schema = Schema.parse(drafted[1].text)
    assert schema.drafted == ()
    assert schema.drafted_privately == ("rows_max", *(column.name for column in schema.columns))


def test_reproducible_noise_claims_no_privacy():
    draft = draft_schema(big_table(2_000), draft_epsilon=1.0, noise=Keyed(1))
    schema = Schema.parse(draft.text)
    assert schema.draft is None
    assert draft.cost is None
    assert schema.drafted == ("rows_max", *(column.name for column in schema.columns))
    assert "No privacy is claimed" in draft.text


def test_what_is_spent_is_at_most_what_was_planned(table):
    """Every noisy histogram has a ledger entry, and the total is within the limit."""
    spends: list[Spend] = []
    real = noisy_histograms.add_noise

    def spy(*args, **options):
        noisy, spend = real(*args, **options)
        spends.append(spend)
        return noisy, spend

    planned = []

    def planning(limit, **numbers):
        planned.append(numbers)
        return calibrate_noise(limit, **numbers)

    with (
        patch.object(noisy_histograms, "add_noise", spy),
        patch.object(private_draft, "calibrate_noise", planning),
    ):
        draft_schema(table, draft_epsilon=1.0, draft_delta=1e-9)
    # Each of the ten columns may list texts twice.
    assert planned == [{"histograms": 51, "lists": 20}]
    assert 1 + 3 * 10 <= len(spends) <= 1 + 5 * 10
    assert all(spend.law.name == "rounded_gaussian" for spend in spends)
    assert all((spend.l0_sensitivity, spend.sensitivity) == (1, 1) for spend in spends)
    gaussian = compose_spends(tuple(spends), delta=0.75e-9)
    noise = calibrate_noise(LIMIT, histograms=51, lists=20)
    delta = gaussian.delta + 20 * noise.text_delta
    assert 0.9 < gaussian.epsilon <= 1.0
    assert delta <= LIMIT.delta


def exact_histograms(source: object, **options) -> list[np.ndarray]:
    """The exact counts of every histogram, with the planned law but without noise."""
    histograms: list[np.ndarray] = []

    def silent(_rng, counts, law, **_):
        histograms.append(counts)
        return counts + law.radius, Spend(what="x", part="structure", law=law)

    with patch.object(noisy_histograms, "add_noise", silent):
        draft_privately(
            open_table(source, private=True),
            LIMIT,
            **{"unit": None, "rows_per_unit": None, "noise": Secret()} | options,
        )
    return histograms


ROW = st.fixed_dictionaries(
    {
        "a": st.sampled_from(["", "1", "2", "31", "450"]),
        "b": st.sampled_from(["oak", "elm", "NA", "x"]),
        "c": st.sampled_from(["2020-01-01", "1999-05-05", "1/2/2020"]),
    }
)


@settings(max_examples=25, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), ROW)
def test_another_row_moves_one_count_by_one_in_every_histogram(rows, more):
    """For the same sequence of noisy answers; counts by text are compared as multisets."""
    rows = [*rows, *rows, more, more]  # the new row adds no new cell, so the answers stay
    before = exact_histograms(pl.DataFrame(rows))
    after = exact_histograms(pl.DataFrame([*rows, more]))
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert len(one) == len(other)
        assert np.abs(other - one).sum() <= 1


@pytest.mark.parametrize("words", [["x"], ["x", "2-10"], ["007"], ["x", "12345678901234567890"]])
def test_another_row_moves_one_count_where_texts_occur_among_numbers(tmp_path, words):
    """Whether they mean missing or are values; 007 parses as a number but counts as text."""
    path = tmp_path / "table.csv"
    cells = ['""', *map(str, range(1, 31)), *words]
    path.write_text("\n".join(["d", *cells]) + "\n")
    before = exact_histograms(path)
    assert len(before) >= 4
    for cell in cells:
        path.write_text("\n".join(["d", *cells, cell]) + "\n")
        after = exact_histograms(path)
        moved = [np.abs(two - one).sum() for one, two in zip(before, after, strict=True)]
        assert max(moved) == 1


def test_further_rows_of_a_unit_are_ignored():
    frame = pl.DataFrame({"who": ["a"] * 50 + ["b"] * 2 + ["c"], "x": list(range(53))})
    options = {"unit": "who", "rows_per_unit": 2}
    histograms = exact_histograms(frame, **options)
    assert {int(counts.sum()) for counts in histograms} == {5}
    without = exact_histograms(frame.filter(pl.col("who") != "a"), **options)
    assert {int(counts.sum()) for counts in without} == {3}


def test_the_rows_of_a_unit_are_chosen_by_the_noise_of_units():
    """Not its first rows: which rows a draft reads is as secret as the noise."""
    frame = pl.DataFrame({"who": ["a"] * 6, "x": ["0", "1.5", "oak", "", "2020-01-01", "yes"]})
    options = {"unit": "who", "rows_per_unit": 1}
    seen = {exact_histograms(frame, noise=Keyed(key), **options)[2].tobytes() for key in range(60)}
    assert len(seen) == 5  # "oak" and "yes" are both text


@pytest.mark.parametrize("days", [2**31 - 1, 2_932_897])
def test_a_date_that_no_calendar_has_does_not_stop_a_private_draft(tmp_path, days):
    """Of a valid Parquet file: polars panics on 2^31 - 1 days; year 10,000 is beyond Python."""
    good = [dt.date(1990, 1, 1) + dt.timedelta(days=x) for x in range(3_000)]
    stored = pl.Series(good).to_physical().append(pl.Series([days], dtype=pl.Int32)).cast(pl.Date)
    pl.DataFrame({"born": stored, "seen": stored}).write_parquet(tmp_path / "t.parquet")
    schema = Schema.parse(draft_schema(tmp_path / "t.parquet", draft_epsilon=2.0).text)
    assert [column.kind for column in schema.columns] == ["date", "date"]
    assert schema.columns[0].grid.value_at(schema.columns[0].values[-1]) == dt.date(1998, 12, 31)
    with pytest.raises(DataError, match='"born" holds dates outside the years 1 to 9999'):
        draft_schema(tmp_path / "t.parquet")


@pytest.mark.parametrize("cell", ["1e19", "-1e19", "9e99", "1e-99", "inf", "99999999999999999999"])
def test_numbers_of_any_size_do_not_stop_a_private_draft(tmp_path, cell):
    (tmp_path / "t.csv").write_text("x,y\n" + f"{cell},1\n" * 3_000)
    for source in (tmp_path / "t.csv", pl.DataFrame({"x": [float(cell)] * 3_000, "y": 1})):
        assert '"x"' in draft_schema(source, draft_epsilon=1.0).text


def test_more_rows_of_a_person_mean_more_noise(table):
    reach: list[float] = []

    def spy(limit, *, histograms, lists):
        found = calibrate_noise(limit, histograms=histograms, lists=lists)
        reach.append(1 / found.mu)
        return found

    with patch("deniable.drafting.private_draft.calibrate_noise", spy):
        for most in (1, 4):
            draft_schema(table, draft_epsilon=1.0, unit="user_id", max_rows_per_unit=most)
    assert reach[1] > 3 * reach[0]


def test_a_private_draft_of_units_needs_a_bound_on_their_rows(table):
    with pytest.raises(ConfigError, match="max_rows_per_unit"):
        draft_schema(table, draft_epsilon=1.0, unit="user_id")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan")])
def test_an_invalid_epsilon_is_rejected(table, epsilon):
    with pytest.raises(BudgetError):
        draft_schema(table, draft_epsilon=epsilon)


def test_a_small_table_is_left_undescribed_rather_than_disclosed():
    frame = pl.DataFrame({"trade": ["tinsmith"] * 3 + ["lacemaker"], "x": [1, 2, 3, 77]})
    draft = draft_schema(frame, draft_epsilon=1.0)
    for word in ("tinsmith", "lacemaker", "77"):
        assert word not in draft.text
    assert "too few rows" in " ".join(draft.notes)


def test_noise_is_calibrated_for_many_columns():
    frame = pl.DataFrame({f"c{i}": [1, 2, 3] for i in range(40)})
    assert "too few rows" in " ".join(draft_schema(frame, draft_epsilon=0.5).notes)
