"""Questions and answers: coverage over many artefacts, planted faults, bands, bad input."""

import inspect
import json
import math
from dataclasses import replace
from typing import get_type_hints

import numpy as np
import polars as pl
import pytest
from scipy import stats

import deniable
from chance import assert_rate
from deniable.answers.cell_bands import make_bands
from deniable.answers.conditional_release import generate_conditional
from deniable.answers.fresh_counts import PairwiseCounts, measured_tables
from deniable.answers.measured_cells import MeasuredCells
from deniable.answers.model_answer import MODEL_ONLY, draw_model, model_cells, own_allowed
from deniable.answers.number_summaries import QUANTILES
from deniable.answers.query import ask_question, choose_cells, query, summarize_question
from deniable.answers.table_estimate import MarginEstimate
from deniable.data.codec import Codec
from deniable.data.table_io import read_codes
from deniable.errors import ConfigError
from deniable.release.artefact import Artefact, ConditionalRequest, load
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from toy_artefacts import SCHEMA, artefact_of, many, measure, toy_artefact, toy_codes, true_table

QUESTIONS = ["colour", "size", ["colour", "sold"], ["size", "price"], ["price", "colour"]]
RUNS = 300


def answer(artefact, columns, **more):
    question = ask_question(artefact, columns, **more)
    cells = choose_cells(question)[1]
    return question, cells


def assert_near(interval, truth):
    """Fail if an error exceeds three half intervals, 5.9 standard deviations; false alarm 1e-8."""
    assert abs(interval.estimate - truth) <= 1.5 * (interval.high - interval.low) + 1


def errors_of(columns, change=lambda cells: cells, **more):
    """Standardised errors, and hits, of one cell of each artefact: a different one each time."""
    errors, hits = [], []
    for run, artefact in enumerate(many(RUNS)):
        question, cells = answer(artefact, columns, **more)
        if cells is None:
            continue
        cells = change(cells)
        truth = true_table(question.columns, [own.bands for own in cells.selections])
        at = np.unravel_index(run % truth.size, truth.shape)
        found = cells.table.estimate.weighted_sum(cells.weights(at))
        errors.append((found.value - truth[at]) / math.sqrt(found.variance))
        hits.append(cells.count(at).low <= truth[at] <= cells.count(at).high)
    return np.array(errors), np.array(hits)


def require_valid(errors, hits):
    """Fail unless errors are standard normal and 95 % hit; false alarm 3e-6."""
    assert len(errors) > 0.8 * RUNS
    assert_rate(int(hits.sum()), len(hits), 0.95)
    squares = stats.chi2(len(errors))
    assert 1e-6 < squares.cdf((errors**2).sum()) < 1 - 1e-6
    assert abs(errors.sum()) / math.sqrt(len(errors)) < stats.norm.ppf(1 - 1e-6)


@pytest.mark.untraced
@pytest.mark.slow
@pytest.mark.parametrize("columns", QUESTIONS, ids=str)
def test_intervals_of_counts_cover_as_often_as_stated(columns):
    errors, hits = errors_of(columns)
    # Counts near 0 are covered more often: the interval ends at 0.
    require_valid(errors, np.abs(errors) <= stats.norm.ppf(0.975))
    assert hits.mean() >= 0.92


@pytest.mark.slow
def test_bins_that_noise_formed_are_covered_by_fresh_counts():
    require_valid(*errors_of("size", by={"size": "bins"}))


@pytest.mark.slow
def test_a_variance_that_is_off_by_a_factor_of_two_is_caught():
    def halve(cells: MeasuredCells) -> MeasuredCells:
        own = cells.table.estimate
        wrong = replace(
            own,
            interaction_variance=own.interaction_variance / 2,
            rows=replace(own.rows, variance=own.rows.variance / 2),
            columns=replace(own.columns, variance=own.columns.variance / 2),
            total=replace(own.total, variance=own.total.variance / 2),
        )
        return replace(cells, table=replace(cells.table, estimate=wrong))

    with pytest.raises(AssertionError):
        require_valid(*errors_of(["colour", "sold"], halve))


def narrowest_bin_errors(source):
    """Errors of the bin with the fewest values: one-way counts made it narrow."""
    errors = []
    for artefact in many(RUNS):
        bins = artefact.evidence.bins[0]
        chosen = int(np.argmin(np.bincount(bins)))
        table = next(t for t in measured_tables(artefact, [0]) if t.source == source)
        weights = np.zeros(table.estimate.shape)
        weights[np.unique(table.parts[0][bins == chosen])] = 1
        found = table.estimate.weighted_sum(weights)
        truth = np.count_nonzero(bins[toy_codes()[:, 0]] == chosen)
        errors.append((found.value - truth) / math.sqrt(found.variance))
    return np.array(errors)


@pytest.mark.slow
def test_counts_that_formed_the_bins_would_not_cover():
    """Selection reused is caught; counts that were drawn later are right."""
    limit = stats.norm.ppf(0.975)
    fresh = narrowest_bin_errors("two-way tables")
    require_valid(fresh, np.abs(fresh) <= limit)
    reused = narrowest_bin_errors("one-way counts")
    with pytest.raises(AssertionError):
        require_valid(reused, np.abs(reused) <= limit)


@pytest.mark.slow
def test_a_margin_that_is_counted_twice_would_not_cover():
    def twice(cells: MeasuredCells) -> MeasuredCells:
        own = cells.table.estimate
        rows = MarginEstimate.combine([own.rows.effects] * 3, [own.rows.variance] * 3)
        total = replace(own.total, variance=own.total.variance / 3)
        wrong = replace(own, rows=rows, total=total)
        return replace(cells, table=replace(cells.table, estimate=wrong))

    with pytest.raises(AssertionError):
        require_valid(*errors_of("size", twice, by={"size": "bins"}))


@pytest.mark.untraced
@pytest.mark.slow
def test_with_sampling_error_a_population_is_covered():
    """The rows are drawn with replacement from a population, the toy table."""
    rng = np.random.default_rng(8)
    hits = 0
    for key in range(200):
        drawn = np.asfortranarray(toy_codes()[rng.integers(len(toy_codes()), size=200)])
        artefact = artefact_of(measure(50_000 + key, drawn))
        _, cells = answer(artefact, "sold", sampling_error=True)
        (_, yes) = cells.cells(asked=[0])
        hits += yes.share.low <= toy_codes()[:, 2].mean() <= yes.share.high
    assert_rate(hits, 200, 0.95)


def test_one_column_has_its_values_and_their_shares():
    found = toy_artefact().query("colour")
    assert found.measured
    assert [cell.labels for cell in found.cells] == [("red",), ("green",), ("blue",), ("grey",)]
    assert sum(cell.share.estimate for cell in found.cells) == pytest.approx(1, abs=0.2)
    assert_near(found.rows, 800)


def test_two_columns_have_shares_within_the_first():
    found = toy_artefact(epsilon=8.0).query(["colour", "sold"], by={"colour": "values"})
    assert found.measured
    assert found.frame().columns[:3] == ["colour", "sold", "count"]


def test_a_condition_on_another_column_needs_a_table_of_both():
    artefact = toy_artefact(epsilon=8.0)
    found = artefact.query("sold", where='colour = "green"', by={"sold": "values"})
    assert found.measured
    green = toy_codes()[:, 1] == 1
    assert_near(found.rows, green.sum())
    assert [cell.labels for cell in found.cells] == [("no",), ("yes",)]


def test_three_columns_are_the_models():
    found = toy_artefact().query(["colour", "sold", "price"], by={"price": [7]})
    assert not found.measured
    assert found.basis.startswith("Model only, no interval")
    assert {cell.note for cell in found.cells} == {"model only, no interval"}
    assert found.frame()["count_low"].null_count() == len(found.cells)
    where = toy_artefact().query("sold", where='colour = "red" and price > 3')
    assert not where.measured


def test_for_the_paper_s_estimators_the_model_answers():
    frame = Codec(SCHEMA).decode(toy_codes())
    graph = {"size": [], "colour": ["size"], "sold": [], "price": []}
    paper = deniable.learn(frame, SCHEMA, epsilon=8.0, mode="seedless", graph=graph)
    for columns in ("price", ["size", "colour"]):
        found = paper.query(columns)
        assert not found.measured
        assert "counts of the default estimator" in found.basis
        assert 700 < found.rows.estimate < 900


def test_interactions_are_no_last_resort():
    """Whether they would be is decided by their own noise: the model answers for finer cells."""
    measured = measure(11)
    pair = next(pair for pair in measured.interactions if 0 in pair)
    tables = {own: table for own, table in measured.tables.items() if own != pair}
    counts = {own: measured.table_counts[own] for own in tables}
    without = artefact_of(replace(measured, tables=tables, table_counts=counts))
    names = [SCHEMA.names[i] for i in pair]
    if PairwiseCounts(without.evidence).groups_of(pair) is None:
        pytest.skip("a column of the pair is in no other table")
    assert without.query(names).measured
    found = without.query(names, by=dict.fromkeys(names, "values"))
    assert not found.measured
    assert "coarser groups" in found.basis


def test_bins_of_a_pair_are_answered_by_its_two_way_table():
    """A pair with a table was chosen by its interactions, which no longer answer for it then."""
    measured = measure(11)
    pair = next(pair for pair in measured.tables if pair in measured.interactions)
    names = [SCHEMA.names[i] for i in pair]
    _, cells = answer(artefact_of(measured), names, by=dict.fromkeys(names, "bins"))
    assert cells.table.source == "two-way tables"
    _, cells = answer(artefact_of(measured), names)
    assert cells.table.source == "interactions"


def test_means_of_bins_are_answered_by_the_two_way_table_alone():
    """Other interactions, of a pair that they chose, change nothing."""
    measured = measure(11)
    pair = next(pair for pair in measured.tables if pair in measured.interactions and 3 in pair)
    names = [SCHEMA.names[i] for i in pair]
    other = {
        own: table + 40 * np.eye(*table.shape, dtype=np.int64) if own == pair else table
        for own, table in measured.interactions.items()
    }
    one, two = (
        artefact_of(each).query(names, by=dict.fromkeys(names, "bins"))
        for each in (measured, replace(measured, interactions=other))
    )
    assert one.numbers
    assert list(map(repr, one.numbers)) == list(map(repr, two.numbers))


def test_the_basis_says_what_was_counted():
    assert toy_artefact().query("sold").basis.startswith("Computed from noisy counts")
    exact = toy_artefact(epsilon=math.inf)
    for columns in ("sold", ["colour", "sold"]):
        assert "nois" not in exact.query(columns).basis
    # Interactions of three columns may have been measured; they answer no question by themselves.
    three = toy_artefact().query(["colour", "sold", "price"]).basis
    assert three.endswith("no noisy table of three or more columns answers it.")


def test_a_model_answer_knows_round_numbers():
    """Half of the pay is a multiple of 500: a condition on one is not spread over its bin."""
    rng = np.random.default_rng(3)
    rounded = rng.random(2_000) < 0.5
    pay = np.where(rounded, 500 * rng.integers(1, 10, size=2_000), rng.integers(5_000, size=2_000))
    attributes = (
        Attribute(
            name="pay", kind="integer", values=range(5_000), starts=(0, 2_000, 3_000), heaps=(500,)
        ),
        Attribute(name="sex", kind="categorical", values=("f", "m")),
        Attribute(name="score", kind="integer", values=range(4)),
    )
    frame = pl.DataFrame(
        {"pay": pay, "sex": rng.choice(["f", "m"], 2_000), "score": rng.integers(4, size=2_000)}
    )
    schema = Schema(attributes, rows_max=2_000)
    artefact = deniable.learn(frame, schema, mode="seedless", epsilon=20.0)
    found = artefact.query(["pay", "sex", "score"], where="pay = 2500")
    assert not found.measured
    truth = np.count_nonzero(pay == 2_500)
    assert 0.6 * truth < found.rows.estimate < 1.6 * truth


def test_units_and_missing_privacy_are_noted():
    columns = (*SCHEMA.columns, Identifier(name="id"))
    schema = Schema(columns, rows_max=1_000, unit="id", max_rows_per_unit=3)
    frame = Codec(SCHEMA).decode(toy_codes()).with_columns(id=pl.int_range(800) // 4)
    artefact = deniable.learn(frame, schema, mode="seedless", epsilon=4.0)
    found = artefact.query("sold")
    assert found.notes == ('Counted are at most 3 rows of each "id".',)
    assert_near(found.rows, 600)
    wide, narrow = artefact.query("sold", sampling_error=True), found
    assert wide.cells[0].share.high > narrow.cells[0].share.high
    exact = toy_artefact(epsilon=math.inf).query("sold")
    assert "confidential" in exact.notes[0]


def test_answers_are_json_and_frames():
    found = toy_artefact().query(["colour", "price"])
    document = json.loads(found.to_json())
    assert document == found.document()
    assert document["confidence"] == 0.95
    assert found.frame().height == len(found.cells)
    assert found.numbers_frame().columns[0] == "column"


@pytest.mark.parametrize("columns", ["price", ["colour", "sold"], ["colour", "sold", "size"]])
def test_frames_are_of_the_kind_that_was_learnt(columns, tmp_path):
    table = Codec(SCHEMA).decode(toy_codes())
    found = toy_artefact().query(columns)
    expected = (found.frame(), found.numbers_frame())
    for source in (table, table.lazy(), table.to_pandas(), table.to_arrow()):
        artefact = replace(toy_artefact(), kind=read_codes(source, SCHEMA)[1])
        answered = artefact.query(columns)
        for made, same in zip((answered.frame(), answered.numbers_frame()), expected, strict=True):
            learnt = pl.DataFrame if isinstance(source, pl.LazyFrame) else type(source)
            assert type(made) is learnt
            assert pl.DataFrame(made).equals(same, null_equal=True)
    artefact.save(tmp_path / "artefact")
    assert deniable.load(tmp_path / "artefact").query(columns).frame().equals(expected[0])


def test_the_artefact_is_all_that_is_needed(tmp_path):
    toy_artefact().save(tmp_path / "artefact")
    loaded = deniable.load(tmp_path / "artefact")
    for columns in ("size", ["colour", "sold"], ["colour", "sold", "size"]):
        assert loaded.query(columns).to_json() == toy_artefact().query(columns).to_json()


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ("colours", {}, 'did you mean "colour"'),
        ("x", {}, "the columns are"),
        ([], {}, "1 to 6 columns"),
        (["colour", "colour"], {}, "each once"),
        (list("abcdefg"), {}, "1 to 6 columns"),
        ([3], {}, "no column"),
        ("colour", {"where": "colour ="}, "condition"),
        ("colour", {"where": 'colour = "pink"'}, "not a value"),
        ("colour", {"where": 'colour = "red" and colour = "blue"'}, "no value"),
        ("colour", {"by": {"size": 10}}, "not asked for"),
        ("colour", {"by": {"colour": 10}}, "no numbers"),
    ],
)
def test_bad_questions_are_refused(columns, more, words):
    with pytest.raises(ConfigError, match=words):
        toy_artefact().query(columns, **more)


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr("deniable.answers.query._MAX_CELLS", 20)
    for columns in (["size", "price"], ["size", "colour", "sold"], "size"):
        by = dict.fromkeys([columns] if isinstance(columns, str) else columns, "values")
        with pytest.raises(ConfigError, match="wider bands"):
            toy_artefact().query(columns, by=by)


def test_an_answer_that_would_take_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("deniable.answers.query._MAX_SUMMED", 20)
    with pytest.raises(ConfigError, match="wider bands"):
        toy_artefact().query(["colour", "sold"])


def values_of(*columns):
    return [make_bands(SCHEMA.attributes[column], "values", {}) for column in columns]


def test_three_columns_are_counted_in_the_models_records():
    artefact = toy_artefact()
    total, cells = model_cells(artefact, [1, 2], values_of(1, 2), {}, rows=800.0)
    assert total.estimate == pytest.approx(800)
    codes = draw_model(artefact)
    both = np.mean((codes[:, 1] == 0) & (codes[:, 2] == 0))
    assert cells[0].share.estimate == pytest.approx(both)
    assert cells[0].count.estimate == pytest.approx(800 * both)
    assert cells[0].within.estimate == pytest.approx(both / np.mean(codes[:, 1] == 0))
    for cell in cells:
        assert cell.note == MODEL_ONLY
        assert math.isnan(cell.count.low)
        assert math.isnan(cell.share.high)


def test_a_condition_weighs_the_records():
    shares = np.zeros(SCHEMA.attributes[0].size)
    shares[:10] = 1.0
    shares[10] = 0.5
    total, cells = model_cells(toy_artefact(), [2], values_of(2), {0: shares[None, :]}, rows=800.0)
    codes = draw_model(toy_artefact())
    assert total.estimate == pytest.approx(800 * shares[codes[:, 0]].mean())
    assert sum(cell.share.estimate for cell in cells) == pytest.approx(1)
    truth = shares[toy_codes()[:, 0]].sum()
    assert 0.5 * truth < total.estimate < 2 * truth


def test_a_condition_without_records_has_no_shares():
    shares = {0: np.zeros((1, SCHEMA.attributes[0].size))}
    total, cells = model_cells(toy_artefact(), [2], values_of(2), shares, rows=800.0)
    assert total.estimate == 0
    assert all(math.isnan(cell.share.estimate) for cell in cells)


def test_bands_that_the_condition_excludes_are_left_out():
    (bands,) = values_of(1)
    assert own_allowed(bands, None) == [True] * 4
    assert own_allowed(bands, np.array([[0, 1, 0.2, 0]])) == [False, True, True, False]


def test_the_same_artefact_gives_the_same_answer():
    assert (draw_model(toy_artefact()) == draw_model(toy_artefact())).all()


# Means and quantiles: exact without noise, bounds within bins, at least the stated coverage

PRICE = SCHEMA.attributes[3]


def prices(where=slice(None)):
    codes = toy_codes()[where, 3]
    return codes[codes < 12] + 1.0


def expected(values):
    found = {"mean": values.mean()}
    for q in QUANTILES:
        found[f"quantile {q:g}"] = np.quantile(values, q, method="inverted_cdf")
    return found


def summaries(artefact, columns, **more):
    question = ask_question(artefact, columns, **more)
    tables, cells = choose_cells(question)
    return summarize_question(question, tables, cells)


def test_without_noise_means_and_quantiles_are_those_of_the_table():
    """Missing cells are left out."""
    exact = toy_artefact(epsilon=float("inf"))
    for each in summaries(exact, "price"):
        truth = expected(prices())[each.statistic]
        assert each.value.low == pytest.approx(truth, abs=1e-3)
        assert each.value.high == pytest.approx(truth, abs=1e-3)
        assert each.note == ""


def test_by_another_column_too():
    exact = toy_artefact(epsilon=float("inf"))
    found = summaries(exact, ["sold", "price"], by={"sold": "values"})
    assert [each.group for each in found] == ["no"] * 4 + ["yes"] * 4
    for each in found:
        truth = expected(prices(toy_codes()[:, 2] == (each.group == "yes")))[each.statistic]
        assert each.value.low <= truth + 1e-3
        assert each.value.high >= truth - 1e-3
        assert each.value.high - each.value.low < 0.01


def test_a_condition_on_the_column_itself_restricts_it():
    exact = toy_artefact(epsilon=float("inf"))
    values = prices()
    (mean, *_) = summaries(exact, "price", where="price >= 4")
    assert mean.value.estimate == pytest.approx(values[values >= 4].mean(), abs=1e-3)


@pytest.mark.untraced
@pytest.mark.slow
@pytest.mark.parametrize("columns", ["size", "price", ["sold", "size"]])
def test_intervals_cover_at_least_as_often_as_stated(columns):
    """120 artefacts; a false alarm of 1e-6 for each of the statistics."""
    names = [columns] if isinstance(columns, str) else columns
    at = SCHEMA.names.index(names[-1])
    codes = toy_codes()
    hits: dict[str, int] = {}
    for artefact in many(300)[:120]:
        for each in summaries(artefact, columns)[:4]:
            rows = codes if not each.group else codes[codes[:, 2] == (each.group == "yes")]
            values = rows[:, at].astype(float)
            values = values + 1 if names[-1] == "price" else values
            values = values[values < 13] if names[-1] == "price" else values
            truth = expected(values)[each.statistic]
            hits.setdefault(each.statistic, 0)
            hits[each.statistic] += each.value.low <= truth <= each.value.high
    for covered in hits.values():
        # Fewer than 95 % is a failure, more is not: bounds within bins are wider.
        assert_rate(min(covered, 114), 120, 0.95)


def test_what_noise_swamps_says_so():
    noisy = toy_artefact(epsilon=0.01)
    notes = {each.note for each in summaries(noisy, "size")}
    assert "swamped by noise" in notes


def test_every_argument_of_a_request_is_one_of_the_answer():
    own = set(inspect.signature(generate_conditional).parameters)
    assert own == {"artefact", "records", "key", "workers", *get_type_hints(ConditionalRequest)}


def test_every_argument_of_a_question_is_one_of_the_answer():
    own = set(inspect.signature(query).parameters) - {"artefact"}
    assert own == set(inspect.signature(Artefact.query).parameters) - {"self"}


def test_a_request_is_answered(artefact):
    found = load(artefact).generate(30, where="years >= 50", key=1)
    assert found["years"].min() >= 50


def test_a_request_for_nothing_is_a_plain_call(artefact):
    plain = load(artefact).generate(30, key=1)
    assert load(artefact).generate(30, where=None, given=None, key=1).equals(plain)


def test_a_question_is_answered(artefact):
    found = load(artefact).query("years", where="years >= 50")
    assert deniable.query(load(artefact), "years", where="years >= 50") == found
    assert found.columns == ("years",)
    assert all(cell.count.low <= cell.count.estimate <= cell.count.high for cell in found.cells)


def test_plain_records_need_a_number(artefact):
    with pytest.raises(ConfigError, match="records = None"):
        load(artefact).generate()
