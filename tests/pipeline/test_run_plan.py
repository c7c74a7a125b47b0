"""Plans of runs: privacy units of several rows, and the cost of a private draft."""

import json
import math
import re
from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.config import Config
from deniable.errors import BudgetError, ConfigError
from deniable.model.pairwise.table_layout import apportion
from deniable.pipeline import forecast as module
from deniable.pipeline.forecast import MOSTLY_NOISE, forecast_run
from deniable.pipeline.run_plan import plan_run, resolve_options
from deniable.privacy.composition import Guarantee, sequential_composition
from deniable.privacy.draft_mechanism import DraftMechanism
from deniable.schema.attribute import Attribute
from deniable.schema.draft_cost import DraftCost, StatedDraftNoise
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from deniable.verification.verify import verify
from small_runs import NOISE, synthesize
from worlds import plain_attribute


def schema(*, rows=1, draft=None):
    attributes = tuple(plain_attribute(name, 3) for name in ("who", "a", "b"))
    unit = {"unit": "who", "max_rows_per_unit": rows} if rows > 1 else {}
    return Schema(attributes, rows_max=1_000, draft=draft, **unit)


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "tested"])
@pytest.mark.parametrize("estimator", ["pairs", "norm-sub"])
def test_a_run_for_units_is_within_what_was_asked_for_a_unit(mode, estimator):
    options = {"mode": mode, "estimator": estimator, "epsilon": 2.0, "delta": 1e-6}
    alone = deniable.plan(schema(), **options)
    three = deniable.plan(schema(rows=3), **options)
    assert three.cost.within(Guarantee(epsilon=2.0, delta=1e-6))
    assert three.cost.epsilon > 0.9 * 2.0
    assert three.privacy.cost.epsilon <= 2.0 / 3
    assert three.cost.epsilon == pytest.approx(3 * three.privacy.cost.epsilon)
    for one, two in zip(alone.privacy.spends, three.privacy.spends, strict=True):
        assert one.what == two.what
        assert two.law.variance > 2 * one.law.variance


def test_what_a_draft_has_cost_is_part_of_the_total():
    draft = DraftCost(epsilon=0.4, delta=1e-7)
    run = deniable.plan(schema(draft=draft), epsilon=1.0, delta=1e-6)
    assert run.cost.within(Guarantee(epsilon=1.0, delta=1e-6))
    assert run.privacy.cost.within(Guarantee(epsilon=0.6, delta=9e-7))
    bought = Guarantee(epsilon=0.4, delta=1e-7)
    assert run.cost == sequential_composition([run.privacy.cost, bought])
    assert run.cost.epsilon > 0.95


def test_a_draft_and_units_together_stay_within_the_limit():
    """What a draft cost is of a unit already: it is not multiplied by its rows."""
    draft = DraftCost(epsilon=0.5, delta=1e-7, unit="who")
    run = deniable.plan(schema(rows=4, draft=draft), epsilon=2.0, delta=1e-6)
    assert run.cost.within(Guarantee(epsilon=2.0, delta=1e-6))
    assert run.privacy.cost.epsilon <= 1.5 / 4


@pytest.mark.parametrize(
    "draft",
    [
        DraftCost(epsilon=1.0, delta=1e-9),
        DraftCost(epsilon=7.0, delta=1e-9),
        DraftCost(epsilon=0.1, delta=1e-6),
        DraftCost(epsilon=0.1, delta=1e-3),
    ],
)
def test_a_draft_that_leaves_nothing_is_refused(draft):
    with pytest.raises(BudgetError, match=r"draft of the schema costs.*Use a larger ε"):
        deniable.plan(schema(draft=draft), epsilon=1.0, delta=1e-6)


# A draft that is composed with the run


# A draft of ε = 0.25 with its noise, as ``deniable init`` states it.
DRAFT_NOISE = StatedDraftNoise(
    **asdict(DraftMechanism.of(Guarantee(epsilon=0.25, delta=1e-7), columns=3))
)
DRAFT = DraftCost(epsilon=0.25, delta=1e-7, noise=DRAFT_NOISE)


def gaussian_mu_of(run) -> float:
    return math.hypot(*(s.mu for s in run.privacy.spends if s.law.name == "rounded_gaussian"))


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "tested"])
def test_a_run_is_composed_with_the_noise_of_its_draft(mode):
    draft, limit = DRAFT, {"epsilon": 1.0, "delta": 1e-6}
    composed = deniable.plan(schema(draft=draft), mode=mode, **limit)
    added = deniable.plan(schema(draft=replace(draft, noise=None)), mode=mode, **limit)
    alone = deniable.plan(schema(), mode=mode, **limit)
    assert composed.cost == Guarantee(**limit)
    assert composed.privacy.draft.what == "schema draft"
    assert added.privacy.draft is None
    assert gaussian_mu_of(added) < 1.2 * gaussian_mu_of(added) < gaussian_mu_of(composed)
    assert gaussian_mu_of(composed) < gaussian_mu_of(alone)
    both = math.hypot(gaussian_mu_of(composed), DRAFT_NOISE.mu)
    assert both == pytest.approx(gaussian_mu_of(alone), rel=0.03)


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": "norm-sub"},
        {"data_use": "split", "estimator": "clip"},
        {"mode": "randomized", "records": 3, "k": 300},
        {"epsilon": 17.0},
    ],
)
def test_where_noise_is_not_gaussian_or_too_large_the_draft_is_added(options):
    run = deniable.plan(schema(draft=DRAFT), **({"epsilon": 1.0, "delta": 1e-6} | options))
    assert run.privacy.draft is None
    own = Guarantee(epsilon=DRAFT.epsilon, delta=DRAFT.delta)
    assert run.cost == sequential_composition([run.privacy.cost, own])


def test_noise_that_does_not_meet_the_drafts_own_cost_is_refused():
    draft = DRAFT
    for wrong in ({"mu": 0.06}, {"mu": 0.04}, {"text_delta": 1e-7}, {"text_delta": 0.0}):
        forged = replace(draft, noise=replace(DRAFT_NOISE, **wrong))
        with pytest.raises(ConfigError, match=r"\[draft\] are not those of its epsilon"):
            deniable.plan(schema(draft=forged), epsilon=1.0, delta=1e-6)


def test_neither_schema_nor_options_change_the_noise_after_a_draft():
    """Both may follow from the draft: they must not decide how ε is divided."""
    limit = {"epsilon": 1.0, "delta": 1e-6}
    named = tuple(plain_attribute(f"x{i}", 3) for i in range(4))
    large = Schema(named, rows_max=10**7, draft=DRAFT)
    one = Schema(named[:1], rows_max=100, draft=DRAFT)
    runs = [deniable.plan(each, **limit) for each in (schema(draft=DRAFT), large, one)]
    options = [{"mode": "seedless"}, {"mode": "tested"}, {"omega": "2"}]
    runs += [deniable.plan(large, **limit, **each) for each in options]
    assert all(run.privacy.draft is not None for run in runs)
    assert len({round(gaussian_mu_of(run), 12) for run in runs}) == 1


def test_without_noise_a_draft_is_no_matter():
    run = deniable.plan(schema(draft=DraftCost(epsilon=3.0, delta=0.1)), epsilon=math.inf)
    assert run.cost.epsilon == math.inf


# Options that depend on the schema


def with_target(schema, *names):
    return replace(schema, target=names)


@pytest.mark.parametrize(
    ("in_schema", "option", "chosen"),
    [
        ((), None, ()),
        (("pet",), None, ("pet",)),
        (("pet",), ["home"], ("home",)),
        (("pet",), [], ()),
        ((), ["home", "pet", "home"], ("home", "pet")),
    ],
)
def test_a_target_of_the_options_replaces_that_of_the_schema(
    small_schema, in_schema, option, chosen
):
    schema = with_target(small_schema, *in_schema)
    resolved = resolve_options(Config.assemble({"target": option}), schema)
    assert resolved.target == chosen
    assert resolve_options(resolved, schema) == resolved


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pets", 'target "pets": the schema has no such column; did you mean "pet"?'),
        ("zzz", 'target "zzz": the schema has no such column; name a column that is learnt'),
        ("id", 'target "id": this column is not learnt (type = "identifier")'),
    ],
)
def test_a_target_must_be_a_learnt_column_before_a_row_is_read(small_schema, name, words):
    """There is no table to read: the fault comes first."""
    schema = Schema((*small_schema.columns, Identifier(name="id")))
    for run in (
        lambda target: deniable.learn("no-such-table.csv", schema, target=target),
        lambda target: synthesize("no-such-table.csv", schema, "seedless", target=target),
        lambda target: deniable.plan(schema, target=target),
    ):
        with pytest.raises(ConfigError, match=re.escape(words)):
            run([name])


def test_a_target_needs_pairs(small_schema):
    """The schema's is ignored where the model has none: it is a description, not a request."""
    with pytest.raises(ConfigError, match="target needs estimator = pairs, and this run has clip"):
        deniable.plan(small_schema, target=["pet"], estimator="clip")
    schema = with_target(small_schema, "pet")
    assert resolve_options(Config.assemble({"estimator": "clip"}), schema).target is None


@pytest.mark.parametrize("rows", [1, 4], ids=["rows", "units"])
@pytest.mark.parametrize("more", [{}, {"estimator": "pairs"}])
def test_a_split_needs_one_of_the_paper_s_estimators(more, rows):
    """Of units, too: each row is drawn by itself, and a unit costs what its rows cost together."""
    table = schema(rows=rows)
    with pytest.raises(ConfigError, match="use --estimator norm-sub or --estimator clip, or leave"):
        deniable.plan(table, data_use="split", **more)
    for estimator in ("norm-sub", "clip"):
        run = deniable.plan(table, data_use="split", estimator=estimator, delta=1e-6)
        assert run.fractions is not None
        assert 0.66 < run.cost.epsilon <= 1.0
    graph: dict[str, list[str]] = {name: [] for name in table.names}
    assert deniable.plan(table, data_use="split", graph=graph).fractions is not None


def test_an_estimator_that_can_learn_the_schema_is_chosen():
    learnt = Attribute(name="x", kind="integer", values=range(90), model="normal")
    schema = Schema((learnt, plain_attribute("y", 3)))
    assert resolve_options(Config(), schema).chosen_estimator == "norm-sub"
    assert resolve_options(Config(estimator="clip"), schema).chosen_estimator == "clip"
    assert resolve_options(Config(), Schema((plain_attribute("y", 3),))).estimator is None


# What a target does


def test_pairs_with_a_target_have_half_the_noise_at_the_same_cost(small_schema, small_table):
    options = {"mode": "seedless", "noise": NOISE}
    plain = deniable.learn(small_table, small_schema, **options)
    named = deniable.learn(small_table, with_target(small_schema, "pet"), **options)
    assert named.certificate.spends == plain.certificate.spends
    pet = small_schema.names.index("pet")
    noise = plan_run(small_schema, Config(mode="seedless")).privacy.pairs
    for artefact, targets in ((plain, []), (named, [pet])):
        sigmas = artefact.evidence.interaction_sigmas
        with_pet = {sigma for pair, sigma in sigmas.items() if pet in pair}
        others = {sigma for pair, sigma in sigmas.items() if pet not in pair}
        assert len(with_pet) == len(others) == 1
        ratio = max(others) / max(with_pet)
        assert ratio == pytest.approx(2.0 if targets else 1.0)
        # Σ c/σ² is the μ² of the stage, whatever the targets are.
        groups = [int(own.max()) + 1 for own in artefact.evidence.groups]
        total = sum(
            (1 - 1 / groups[i]) * (1 - 1 / groups[j]) / sigma**2 for (i, j), sigma in sigmas.items()
        )
        assert total == pytest.approx(noise.mu_interactions**2)
    fewer, more = (
        [n for pair, n in artefact.evidence.table_counts.items() if pet in pair]
        for artefact in (plain, named)
    )
    assert sum(more) > sum(fewer)


@pytest.mark.parametrize("by_schema", [True, False])
def test_targets_are_in_the_manifest_and_verified(small_schema, small_table, tmp_path, by_schema):
    schema = with_target(small_schema, "pet", "home") if by_schema else small_schema
    options = {} if by_schema else {"target": ["pet", "home"]}
    release = synthesize(small_table, schema, "one-shot", 20, **options)
    release.write(tmp_path / "o")
    assert release.certificate.parameters["target"] == ["pet", "home"]
    verify(tmp_path / "o").require()
    plain = synthesize(small_table, small_schema, "one-shot", 20)
    assert "target" not in plain.certificate.parameters


def test_a_target_is_not_the_roundness_of_a_column():
    text = 'name = "pay"\ntype = "integer"\nmin = 0\nmax = 99\nbins = { width = 20 }\nheaps = [10]'
    schema = Schema.parse(f"format = 1\n[[attribute]]\n{text}\n")
    [hidden] = schema.roundness_names
    assert resolve_options(Config(target=("pay",)), schema).target == ("pay",)
    with pytest.raises(ConfigError, match="no such column"):
        resolve_options(Config(target=(hidden,)), schema)


def test_a_frame_can_be_learnt_with_a_target(small_schema, small_table):
    fitted = deniable.Synthesizer(target=["pet"], mode="seedless").fit(
        small_table, schema=small_schema
    )
    assert isinstance(fitted.sample(5), pl.DataFrame)


# Forecasts: near what the noisy counts show afterwards, and in the right order


def schema_of(columns, size=4, **more):
    return Schema(tuple(plain_attribute(f"x{i}", size) for i in range(columns)), **more)


def forecast(schema, rows=None, **options):
    config = Config.assemble(options)
    return forecast_run(plan_run(schema, config), schema, config, rows=rows)


@pytest.mark.parametrize("target", [[], ["x1"]])
def test_the_forecast_is_what_the_noisy_counts_show_afterwards(target):
    """Values are about equally frequent, as the forecast assumes; 15 % covers noisy groups."""
    schema, n = schema_of(6, rows_max=10_000), 10_000
    codes = np.random.default_rng(3).integers(0, 4, size=(n, 6))
    table = {f"x{i}": [schema.attributes[i].values[c] for c in codes[:, i]] for i in range(6)}
    options = {"target": target, "mode": "seedless"}
    found = deniable.learn(pl.DataFrame(table), schema, noise=NOISE, **options).kept.level
    level = forecast(schema, n, **options).level
    assert (level.pairs, level.groups) == (found.pairs, found.groups)
    for name in ("rows", "value_error", "visible_association", "sample_share"):
        assert getattr(found, name) == pytest.approx(getattr(level, name), rel=0.15), name


@pytest.mark.parametrize(("rows", "has_triples"), [(100_000, True), (200, False)])
def test_tables_that_are_given_up_for_triples_are_not_counted(monkeypatch, rows, has_triples):
    totals = []

    def counted(total, weights):
        totals.append(total)
        return apportion(total, weights)

    monkeypatch.setattr(module, "apportion", counted)
    schema = schema_of(6)
    noise = plan_run(schema, Config.assemble({})).privacy.pairs
    assert 0 < noise.reserved_count < noise.table_count
    forecast(schema, rows)
    assert totals == [noise.table_count - has_triples * noise.reserved_count]


def test_more_rows_and_a_larger_epsilon_show_more():
    schema = schema_of(8)
    levels = [
        forecast(schema, rows, epsilon=epsilon).level
        for rows, epsilon in ((1_000, 0.3), (1_000, 1.0), (10_000, 1.0), (10_000, 3.0))
    ]
    strengths = [level.visible_association for level in levels]
    shares = [level.sample_share for level in levels]
    assert strengths == sorted(strengths, reverse=True)
    assert shares == sorted(shares)
    assert len(set(shares)) == 4


def test_pairs_with_a_target_show_more_and_the_others_less():
    schema = schema_of(8)
    plain, named = forecast(schema, 10_000), forecast(schema, 10_000, target=["x2"])
    assert plain.target_level is None
    assert named.target_level.pairs == 7
    assert named.target_level.visible_association < plain.level.visible_association
    assert named.level.visible_association > plain.level.visible_association
    assert named.target_level.sample_share > plain.level.sample_share
    assert "Two columns, one of them x2: a dependence stands out" in " ".join(named.sentences)
    assert "All pairs with x2: about as good as a random sample" in " ".join(named.sentences)


def test_the_number_of_rows_is_given_or_guessed():
    schema = schema_of(3, rows_max=12_345)
    guessed, given = forecast(schema), forecast(schema, 777)
    assert (guessed.rows, guessed.is_guess) == (12_345, True)
    assert guessed.sentences[0] == (
        "Forecast for 12,345 rows, a guess (rows_max); give --rows for another number:"
    )
    assert forecast(schema, rows_max=99).rows == 99
    assert (given.rows, given.sentences[0]) == (777, "Forecast for 777 rows:")


@pytest.mark.parametrize("rows", [0, -3, 2**60])
def test_an_impossible_number_of_rows_is_refused(rows):
    with pytest.raises(ConfigError, match=re.escape(f"--rows {rows}: must lie between")):
        forecast(schema_of(3), rows)


@pytest.mark.parametrize(
    ("columns", "rows", "epsilon", "noisy"),
    [
        (5, 2, 1.0, True),
        pytest.param(5, 10_000, 0.0001, True, marks=pytest.mark.slow),
        (50, 500, 1.0, True),
        (1, 3, 1.0, True),
        (10, 10_000, 1.0, False),
        (1, 1_000, 1.0, False),
    ],
)
def test_a_run_of_noise_is_announced(columns, rows, epsilon, noisy):
    found = forecast(schema_of(columns), rows, epsilon=epsilon)
    assert found.warning == (MOSTLY_NOISE if noisy else "")
    assert found.document()["warnings"] == ([MOSTLY_NOISE] if noisy else [])


def test_without_noise_or_pairs_there_is_no_forecast():
    assert forecast(schema_of(3), epsilon=math.inf) is None
    assert forecast(schema_of(3), estimator="norm-sub") is None


def test_a_forecast_is_json_in_figures_and_words():
    found = forecast(schema_of(5), 5_000, target=["x0"])
    document = found.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["text"] == list(found.sentences)
    assert document["rows"] == 5_000
    assert document["rows_guessed"] is False
    assert document["with_target"]["pairs"] == 4
    assert 0 < document["sample_share"] < 1
