"""Modes tested and randomized: each record has k plausible seeds, and a hopeless run gives up."""

import numpy as np
import pytest

import deniable
from deniable.data.codec import Codec
from deniable.errors import BudgetError, ConfigError
from deniable.model.seed_based import NetworkModel
from deniable.pipeline import seed_modes
from deniable.release.generation import BLOCK
from deniable.schema.schema import Schema
from perturbation_model import PerturbationModel
from small_runs import INF, NOISE, assert_fits, row_counts, synthesize

pytestmark = pytest.mark.slow


def kept_columns(release, small_schema, omega):
    order = release.certificate.parameters.get("order") or [
        small_schema.names[i] for i in release.artefact.network.order
    ]
    return [small_schema.names.index(name) for name in order[: len(order) - omega]]


@pytest.mark.parametrize("omega", [1, 2, 3, 4])
@pytest.mark.parametrize("noise", [None, NOISE])
def test_what_a_tested_record_kept_is_shared_by_k_rows(
    small_table, small_schema, small_codes, omega, noise
):
    """Brute force: the kept values of every released record, counted in the table."""
    more = {"noise": noise} if noise else {}
    release = synthesize(small_table, small_schema, "tested", 2_000, omega=str(omega), **more)
    kept = kept_columns(release, small_schema, omega)
    shared = row_counts(small_codes, kept)
    released = row_counts(Codec(small_schema).encode(release.frame()), kept)
    assert min(shared[prefix] for prefix in released) >= 20
    if omega < 3:
        assert min(shared.values()) < 20  # so that the test had something to refuse


def test_what_a_tested_record_of_a_range_kept_is_shared_by_k_rows(
    small_table, small_schema, small_codes
):
    """Whichever ω it had, its first two attributes are shared; with ω = 2 three would be."""
    release = synthesize(small_table, small_schema, "tested", 2_000, omega="2-3")
    kept = kept_columns(release, small_schema, 3)
    shared = row_counts(small_codes, kept)
    released = row_counts(Codec(small_schema).encode(release.frame()), kept)
    assert min(shared[prefix] for prefix in released) >= 20


def test_a_tested_record_of_a_hidden_omega_has_k_plausible_seeds(small_schema, small_codes):
    """Definition 1 by its word: k rows that give it with probabilities within γ of each other."""
    schema = Schema(small_schema.attributes[2:], rows_max=10_000)
    codes = np.asfortranarray(small_codes[:300, 2:])
    graph, gamma, k = {"pet": ["home"]}, 4, 40
    release = deniable.synthesize(
        Codec(schema).decode(codes), schema, records=60, mode="tested", omega="1-2", k=k,
        gamma=gamma, omega_known=False, graph=graph, epsilon=INF, noise=NOISE,
    )  # fmt: skip
    learnt = deniable.learn(
        Codec(schema).decode(codes), schema, graph=graph, epsilon=INF, omega="1", noise=NOISE
    )
    model = NetworkModel(learnt.network, (1, 2))
    records = Codec(schema).encode(release.frame())
    logs = model.log_probability(records, codes)
    for row in logs:
        probabilities = np.exp(row[row > -np.inf])
        assert any(
            ((probabilities >= low) & (probabilities <= gamma * low * (1 + 1e-9))).sum() >= k
            for low in probabilities
        )


# A model of the user's own


def perturbation(schema):
    return PerturbationModel.of(schema.attributes, stay=0.7, step=2.0)


@pytest.mark.parametrize("data_use", ["whole", "split"])
def test_a_model_of_one_s_own_is_tested_by_scan(small_schema, small_codes, data_use):
    codes = np.asfortranarray(small_codes[:400])
    table, model = Codec(small_schema).decode(codes), perturbation(small_schema)
    release = deniable.synthesize(
        table,
        small_schema,
        records=30,
        mode="tested",
        k=8,
        gamma=4,
        model=model,
        data_use=data_use,
        estimator="norm-sub",
    )
    frame = release.frame()
    assert_fits(frame, small_schema, 30)
    logs = model.log_probability(Codec(small_schema).encode(frame), codes)
    for row in np.exp(logs):
        assert any(((row >= low) & (row <= 4 * low * (1 + 1e-9))).sum() >= 8 for low in row)
    assert release.certificate.spends == []
    assert not release.certificate.claims_privacy


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "randomized"])
def test_a_model_of_one_s_own_needs_mode_tested(small_table, small_schema, mode):
    with pytest.raises(ConfigError, match="model of your own needs mode = tested"):
        synthesize(small_table, small_schema, mode, model=perturbation(small_schema))


def give_up_after(candidates, monkeypatch):
    monkeypatch.setattr(seed_modes, "_MIN_ATTEMPTS", candidates)
    monkeypatch.setattr(seed_modes, "_ATTEMPTS_PER_RECORD", 1)


def test_the_limits_of_a_scan_are_kept(small_schema, small_codes, monkeypatch):
    """max_plausible below k: no candidate can pass, whatever the table."""
    give_up_after(2**10, monkeypatch)
    options = {"mode": "tested", "k": 5, "model": perturbation(small_schema)}
    table = Codec(small_schema).decode(small_codes[:50])
    enough = deniable.synthesize(table, small_schema, records=1, max_plausible=5, **options)
    assert enough.frame().height == 1
    for limits in ({"max_plausible": 4}, {"max_check_plausible": 4}):
        with pytest.raises(BudgetError, match="too few of"):
            deniable.synthesize(table, small_schema, records=1, **options, **limits)


# Too few records pass


def test_tested_records_that_nothing_keeps_end_with_advice(small_table, small_schema, monkeypatch):
    give_up_after(2**16, monkeypatch)
    nobody = '[[constraint]]\nforbid = { "home" = ["houseboat", "windmill"] }\n'
    schema = Schema.parse(small_schema.text() + "\n" + nobody)
    with pytest.raises(BudgetError, match="relax the constraints"):
        synthesize(small_table, schema, "tested", 5, epsilon=INF)


def test_a_hopeless_run_is_refused_and_nothing_is_written(
    small_table, small_schema, tmp_path, monkeypatch
):
    """Nobody shares four attributes with 1,999 others."""
    give_up_after(2**16, monkeypatch)
    with pytest.raises(BudgetError, match=r"too few of .* passed the deniability test"):
        synthesize(small_table, small_schema, "tested", k=1_999, omega="1", epsilon=INF).write(
            tmp_path / "out"
        )
    assert list(tmp_path.iterdir()) == []


def test_how_many_passed_is_not_said(small_table, small_schema, monkeypatch):
    """Pass rates are confidential: the message is the same whether none passed or nearly enough."""
    give_up_after(BLOCK, monkeypatch)
    options = {"omega": "2-3", "omega_known": False, "epsilon": INF, "noise": NOISE}
    some = synthesize(small_table, small_schema, "tested", 5_000, k=30, **options)
    assert some.frame().height == 5_000
    messages = set()
    for k in (1_999, 30):
        with pytest.raises(BudgetError) as refused:
            synthesize(small_table, small_schema, "tested", BLOCK, k=k, **options)
        messages.add(str(refused.value))
    assert len(messages) == 1


# On a cluster


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"mode": "randomized"}, "--mode randomized is not available on Spark: its test needs"),
        ({"profile": "paper"}, "--mode randomized is not available on Spark"),
        (
            {"mode": "tested", "omega": "2-3", "omega_known": False},
            r"a hidden ω \(omega_known = false\) is not available on Spark: .* leave omega_known",
        ),
    ],
)
def test_what_looks_up_single_seeds_is_refused_on_a_cluster_before_reading(
    small_schema, options, what
):
    with pytest.raises(ConfigError, match=what):
        deniable.synthesize("/absent", small_schema, records=5, engine="spark", **options)
    with pytest.raises(ConfigError, match=what):
        deniable.plan(small_schema, records=5, engine="spark", **options)


def test_a_model_of_one_s_own_is_refused_on_a_cluster_before_reading(small_schema):
    with pytest.raises(ConfigError, match="model of your own is not available on Spark"):
        deniable.synthesize(
            "/absent", small_schema, records=5, mode="tested", engine="spark",
            model=perturbation(small_schema),
        )  # fmt: skip
