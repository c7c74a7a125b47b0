"""Sums and squares: same cost as a table of counts, sensitivities by enumeration.

The constants are recomputed by enumerating records, or by adding up the charged costs.
"""

import itertools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from deniable.counting.local import count
from deniable.errors import BudgetError, InvariantError
from deniable.model.graph import Graph
from deniable.model.paper import parameters
from deniable.model.paper.moments import Moments, make_design
from deniable.model.paper.parameters import learn_counts
from deniable.pipeline import learn_paper_model
from deniable.pipeline.api import generate, learn, synthesize
from deniable.privacy import noise_laws
from deniable.privacy.calibration import PublicFacts
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Spend, compose_spends
from deniable.privacy.moment_budget import (
    VALUE_BOUNDS,
    laplace_excess,
    moment_l0_sensitivities,
    moment_noise,
    noise_deviation,
    table_spends,
)
from deniable.privacy.plan import SPLIT_SEEDLESS, make_plan
from deniable.randomness import Keyed
from deniable.release.atomic_files import encode_json, file_hash, pack_npz
from deniable.release.manifest import add_checksum, ledger_entry
from deniable.schema.schema import Schema
from deniable.verification import second_accountant
from deniable.verification.manifest_spend import ManifestSpend
from deniable.verification.verify import verify

pytestmark = pytest.mark.slow

MODELS = ("normal", "regression")
COUNTS = [noise_laws.rounded_gaussian(3.7), noise_laws.discrete_laplace(0.8)]


# What is charged


def shares(model, counts):
    """What each kind of number costs, as a share of one table: Σ of squares, or of ε."""
    spends = moment_noise(counts, model).spends("x")
    scale = counts.parameters[0][1]
    for spend in spends:
        own = spend.law.parameters[0][1]
        if counts.name == "rounded_gaussian":
            yield spend.l0_sensitivity * (spend.sensitivity / own) ** 2 * scale**2
        else:
            yield spend.l0_sensitivity * spend.sensitivity * own / scale


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_each_kind_has_a_third_of_the_cost_of_a_table(model, counts):
    assert list(shares(model, counts)) == pytest.approx([1 / 3] * 3, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-9, 1e-4])
@pytest.mark.parametrize("model", MODELS)
def test_with_gaussian_noise_all_three_cost_exactly_what_a_table_costs(model, delta):
    """By both accountants; an eighth of a percent is their grid."""
    counts = COUNTS[0]
    table = (Spend(what="counts of x", part="parameters", law=counts),)
    sums = tuple(table_spends("x", model, counts))
    near = {"rel": 1.25e-3, "abs": 2e-4}
    whole = compose_spends(table, delta=delta).epsilon
    assert compose_spends(sums, delta=delta).epsilon == pytest.approx(whole, **near)
    entries = [ledger_entry(spend, compose_spends(spend.alone, delta=delta)) for spend in sums]
    uses = [ManifestSpend.parse(entry) for entry in entries]
    assert second_accountant.compute_epsilon(uses, delta=delta) == pytest.approx(whole, **near)


@pytest.mark.parametrize("model", MODELS)
def test_with_laplace_noise_they_cost_no_more_and_at_a_small_delta_as_much(model):
    counts = COUNTS[1]
    sums = tuple(table_spends("x", model, counts))
    assert compose_spends(sums, delta=1e-2).epsilon <= 0.8
    assert compose_spends(sums[:1], delta=1e-9).epsilon == pytest.approx(0.8 / 3, rel=1e-3)
    if model == "normal":  # three losses of ε/3: at once with a chance of about one in eight
        assert compose_spends(sums, delta=1e-9).epsilon == pytest.approx(0.8, rel=1e-3)


def test_half_the_noise_would_cost_twice_as_much():
    """So that the equalities above are worth something."""
    sums = table_spends("x", "regression", COUNTS[0])
    law = noise_laws.rounded_gaussian(dict(sums[2].law.parameters)["sigma"] / 2)
    cheat = (*sums[:2], replace(sums[2], law=law))
    honest = compose_spends(tuple(sums), delta=1e-9).epsilon
    assert compose_spends(cheat, delta=1e-9).epsilon > 1.3 * honest


@pytest.mark.parametrize(
    ("sigma", "normal", "regression"),
    [(1.0, 64, 64), (200.0, 64, 64), (300.0, 64, 32), (1_000.0, 32, 16), (4_000.0, 16, 8)],
)
def test_the_bound_is_the_largest_whose_noise_fits_a_table(sigma, normal, regression):
    """B² · σ · √(3 n) · 12.5 is at most 2^26; worked out by hand."""
    counts = noise_laws.rounded_gaussian(sigma)
    found = [moment_noise(counts, model) for model in MODELS]
    assert [noise.bound for noise in found] == [normal, regression]
    for noise in found:
        assert max(law.radius for law in noise.laws) <= noise_laws.MAX_RADIUS
        larger = 4 * dict(noise.squares.parameters)["sigma"]
        assert (
            noise.bound == max(VALUE_BOUNDS)
            or noise_laws.gaussian_radius(larger) > noise_laws.MAX_RADIUS
        )


@pytest.mark.parametrize(
    "counts", [noise_laws.rounded_gaussian(16_000.0), noise_laws.discrete_laplace(1e-3)]
)
def test_where_no_bound_fits_it_says_what_to_do(counts):
    with pytest.raises(BudgetError, match=r'larger ε.*model = "histogram"'):
        moment_noise(counts, "regression")


def test_without_noise_there_is_none_and_other_laws_have_no_third():
    noise = moment_noise(noise_laws.exact(), "normal")
    assert {law.name for law in noise.laws} == {"exact"}
    assert noise.deviations == (0.0, 0.0, 0.0)
    with pytest.raises(InvariantError, match="a third of the cost"):
        moment_noise(noise_laws.truncated_geometric(1.0, 9), "normal")


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_deviations_are_those_of_the_tables(counts):
    noise = moment_noise(counts, "normal")
    for law, known in zip(noise.laws, noise.deviations, strict=True):
        # Rounding a normal variable adds a twelfth to its variance.
        rounding = 1 / 12 if law.name == "rounded_gaussian" else 0.0
        assert known**2 + rounding == pytest.approx(law.variance, rel=1e-6)
    assert noise_deviation("exact", ()) == 0.0


# What one record moves

TINY = """
format = 1
rows_max = 10
[[attribute]]
name = "trade"
type = "categorical"
values = ["cooper", "turner"]
[[attribute]]
name = "years"
type = "integer"
min = 10
max = 12
missing = ["?"]
[[attribute]]
name = "far"
type = "integer"
min = -1
max = 1
[[attribute]]
name = "wide"
type = "real"
min = 0
max = 3
decimals = 0
bins = { width = 2 }
[[attribute]]
name = "wage"
type = "integer"
min = 0
max = 3
missing = ["?"]
model = "MODEL"
"""
PARENTS = ((), (), (), (), (0, 1, 2, 3))


def exact_sums(schema, codes, law=None):
    """Noisy sums of the last attribute, by the way that a run takes; no noise unless a law."""
    rows = np.asfortranarray(np.array(codes, dtype=np.uint16).reshape(-1, 5))

    def answer(queries):
        return count(schema.attributes, rows, queries, workers=1)

    rng = Keyed(5).at("noise")
    found, _ = learn_counts(
        rng, answer, schema.attributes, Graph(PARENTS), law or noise_laws.exact()
    )
    return found[-1]


def arrays(moments):
    return moments.records, moments.sums, moments.squares


@pytest.mark.parametrize("model", MODELS)
def test_one_record_moves_what_is_charged_and_no_more(model):
    """Every record, added to no record and to some: how many numbers, and how far."""
    schema = Schema.parse(TINY.replace("MODEL", model))
    every = list(itertools.product(*[range(size) for size in schema.sizes]))
    bound = moment_noise(noise_laws.exact(), model).bound
    most_moved, furthest = [0, 0, 0], [0, 0, 0]
    for table in ([], every[::31]):
        before = arrays(exact_sums(schema, table))
        for record in every:
            after = arrays(exact_sums(schema, [*table, record]))
            for kind, (one, two) in enumerate(zip(before, after, strict=True)):
                change = np.abs(two - one)
                most_moved[kind] = max(most_moved[kind], int(np.count_nonzero(change)))
                furthest[kind] = max(furthest[kind], change.max())
    assert tuple(most_moved) == moment_l0_sensitivities(model)
    assert tuple(furthest) == (1, bound, bound * bound)


@pytest.mark.parametrize("model", MODELS)
def test_noise_does_not_depend_on_the_data(model):
    """Under the same noise, neighbours differ by what they differ by without noise."""
    schema = Schema.parse(TINY.replace("MODEL", model))
    few, law = [(0, 1, 2, 0, 3), (1, 0, 0, 1, 4)], noise_laws.rounded_gaussian(1.5)
    quiet = [arrays(exact_sums(schema, rows)) for rows in (few, few[:1])]
    noisy = [arrays(exact_sums(schema, rows, law)) for rows in (few, few[:1])]
    for kind in range(3):
        differ = quiet[0][kind] - quiet[1][kind]
        np.testing.assert_array_equal(noisy[0][kind] - noisy[1][kind], differ)
    assert all((one != two).mean() > 0.5 for one, two in zip(noisy[0], quiet[0], strict=True))


def test_values_never_count_for_more_than_the_bound():
    """Bins as unequal as can be, at the ends of what fits 64 bits."""
    schema = Schema.parse(
        f"""
        format = 1
        rows_max = 10
        [[attribute]]
        name = "x"
        type = "integer"
        min = {-(2**61)}
        max = {2**61}
        bins = {{ edges = [{1 - 2**61}, 0, {2**61}] }}
        model = "normal"
        """
    )
    design = make_design(schema.attributes, (), 0, model="normal", bound=64)
    assert design.values.tolist() == [-64, -32, 32, 64]


# The plan


def facts(models, *, epsilon=1.0, split=False, graph=True):
    m = len(models)
    return PublicFacts(
        limit=Guarantee(epsilon=epsilon, delta=1e-6),
        names=tuple(f"x{i}" for i in range(m)),
        queries=0 if graph else m * (m + 1) // 2,
        rows_max=10_000,
        fractions=SPLIT_SEEDLESS if split else None,
        models=tuple(models),
    )


@pytest.mark.parametrize("split", [False, True])
def test_a_plan_with_sums_costs_what_it_would_with_counts(split):
    """With 30 attributes both plans use the same Gaussian noise."""
    plain = make_plan(facts(["histogram"] * 30, split=split, graph=False))
    mixed = make_plan(facts(["histogram", "normal", "regression"] * 10, split=split, graph=False))
    assert mixed.counts == plain.counts
    assert mixed.counts.name == "rounded_gaussian"
    assert mixed.cost.epsilon == pytest.approx(plain.cost.epsilon, rel=1e-3)
    assert len(mixed.spends) == len(plain.spends) + 2 * 20


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("models", [("normal",), ("histogram", "regression"), ("normal",) * 4])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_what_is_asked_for_is_met_and_used(models, epsilon, split):
    asked = facts(models, epsilon=epsilon, split=split)
    plan = make_plan(asked)
    assert plan.cost.within(asked.limit)
    assert plan.cost.epsilon >= 0.66 * epsilon


@pytest.mark.parametrize("split", [False, True])
def test_noise_is_of_the_law_that_gives_sums_the_smaller_noise(split):
    """Laplace noise suits three tables of counts, and not thirty numbers that share one's cost."""
    of_counts, of_sums = (
        make_plan(facts(models, split=split)).counts
        for models in (("histogram",) * 3, ("histogram", "histogram", "regression"))
    )
    assert (of_counts.name, of_sums.name) == ("discrete_laplace", "rounded_gaussian")
    if_laplace, chosen = (moment_noise(law, "regression") for law in (of_counts, of_sums))
    assert chosen.deviations[2] < if_laplace.deviations[2]
    assert laplace_excess(()) == 1.0


# Whole runs

SCHEMA = Schema.parse(
    """
    format = 1
    rows_max = 5_000
    [[attribute]]
    name = "trade"
    type = "categorical"
    values = ["cooper", "turner"]
    [[attribute]]
    name = "years"
    type = "integer"
    min = 0
    max = 39
    buckets = { width = 8 }
    model = "normal"
    [[attribute]]
    name = "wage"
    type = "real"
    min = 0
    max = 100
    decimals = 1
    bins = { width = 4.1 }
    missing = [""]
    model = "regression"
    """
)
GRAPH = {"years": ["trade"], "wage": ["years", "trade"]}
USUAL = {"epsilon": 6.0, "delta": 1e-5, "k": 20, "graph": GRAPH}


def people(rows=2_000):
    rng = np.random.default_rng(8)
    trade = rng.integers(0, 2, rows)
    years = np.clip(np.rint(rng.normal(12 + 8 * trade, 4)), 0, 39).astype(int)
    wage = np.round(np.clip(rng.normal(20 + 1.5 * years, 6), 0, 100), 1)
    return pl.DataFrame(
        {
            "trade": np.array(["cooper", "turner"])[trade],
            "years": years,
            "wage": pl.Series(wage).set(pl.Series(rng.random(rows) < 0.1), None),
        }
    )


TABLE = people()
RUNS = {
    "seedless": {"mode": "seedless"},
    "seedless, split": {"mode": "seedless", "data_use": "split"},
    "seedless, structure learnt": {"mode": "seedless", "graph": None, "estimator": "norm-sub"},
    "seedless, clip": {"mode": "seedless", "estimator": "clip", "alpha": 0.5},
    "seedless, without noise": {"mode": "seedless", "epsilon": float("inf")},
    "one-shot": {"omega": "2"},
    "tested": {"mode": "tested", "omega": "1-2"},
    "tested, hidden": {"mode": "tested", "omega": "1-2", "omega_known": False},
    "tested, paper": {"mode": "tested", "profile": "paper", "omega": "2", "epsilon": 20.0},
    "randomized": {"mode": "randomized", "k": 300, "records": 2},
}


def make(folder, *, records=200, **options):
    chosen = {**USUAL, **options}
    synthesize(TABLE, SCHEMA, records=records, **chosen).write(folder / "out")
    return folder / "out"


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_a_run_of_every_mode_spends_its_plan_and_passes_verify(tmp_path, options):
    """A ledger that is not the plan would stop the run; verify has the second accountant."""
    folder = make(tmp_path, **options)
    verify(folder, against=TABLE).require()
    whats = [use["what"] for use in json.loads((folder / "manifest.json").read_bytes())["spends"]]
    for name in ("years", "wage"):
        assert {f"{kind} of {name}" for kind in ("records", "sums", "squares")} <= set(whats)
        assert f"counts of {name}" not in whats


def test_laplace_noise_is_verified_too(tmp_path):
    """The paper's noise is; and so is ours where few attributes are learnt as a Normal."""
    paper = json.loads((make(tmp_path, **RUNS["tested, paper"]) / "manifest.json").read_bytes())
    normal = replace(SCHEMA, columns=SCHEMA.columns[:2])
    options = {"epsilon": 2.0, "delta": 1e-9, "mode": "seedless", "graph": {"years": ["trade"]}}
    release = synthesize(TABLE.drop("wage"), normal, records=100, **options)
    release.write(tmp_path / "normal")
    verify(tmp_path / "normal", against=TABLE.drop("wage")).require()
    ours = json.loads((tmp_path / "normal" / "manifest.json").read_bytes())
    for document, name in ((paper, "wage"), (ours, "years")):
        laws_of = {entry["what"]: entry["law"]["name"] for entry in document["spends"]}
        assert laws_of[f"squares of {name}"] == "discrete_laplace"


def test_a_file_without_a_schema_beside_it_passes_and_its_attributes_are_known(tmp_path):
    artefact = learn(TABLE, SCHEMA, mode="seedless", **USUAL)
    generate(artefact, 100, key=1).write_file(tmp_path / "records.csv")
    verify(tmp_path / "records.csv").require()


def test_noise_other_than_planned_stops_everything(monkeypatch):
    def cheat(law, model):
        noise = moment_noise(law, model)
        return replace(noise, squares=noise.sums)

    monkeypatch.setattr(parameters, "moment_noise", cheat)
    with pytest.raises(InvariantError, match="ledger does not equal the plan"):
        learn(TABLE, SCHEMA, mode="seedless", **USUAL)


def test_values_on_another_scale_than_planned_stop_everything(monkeypatch):
    """A bound twice as large as what is charged: then the ledger has another sensitivity."""

    def cheat(law, model):
        noise = moment_noise(law, model)
        return replace(noise, bound=2 * noise.bound)

    monkeypatch.setattr(parameters, "moment_noise", cheat)
    with pytest.raises(InvariantError, match="ledger does not equal the plan"):
        learn(TABLE, SCHEMA, mode="seedless", **USUAL)


def test_the_number_of_seeds_comes_from_numbers_that_were_paid_for(monkeypatch):
    """With a given graph, it is the noisy total of the smallest table, or of records of sums."""
    seen = []
    original = learn_paper_model.LearntModel

    def watch(**fields):
        seen.append(fields["seed_count"])
        return original(**fields)

    monkeypatch.setattr(learn_paper_model, "LearntModel", watch)
    learn(TABLE, SCHEMA, mode="seedless", noise=Keyed(2), **{**USUAL, "epsilon": float("inf")})
    assert seen[0] == len(TABLE)


# What is changed is found


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make(tmp_path_factory.mktemp("sums"), mode="seedless", key=3)


def rewrite(folder, name, content):
    """Put other bytes in an artefact's file, and the hashes of both manifests right."""
    (folder / "artefact" / name).write_bytes(content)
    inner = folder / "artefact" / "manifest.json"
    for path, listed in ((inner, name), (folder / "manifest.json", f"artefact/{name}")):
        document = json.loads(path.read_bytes())
        if listed in document["files"]:
            document["files"][listed] = file_hash(folder / "artefact" / name)
        outer = f"artefact/{inner.name}"
        if outer in document["files"]:
            document["files"][outer] = file_hash(inner)
        path.write_bytes(encode_json(add_checksum(document)))


def copy_of(release, folder):
    for path in release.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(release)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return folder


def test_put_back_unchanged_it_passes(release, tmp_path):
    """So what is found below is the change, and not the writing."""
    folder = copy_of(release, tmp_path / "copy")
    with np.load(folder / "artefact" / "tables.npz") as arrays_:
        same = {name: arrays_[name] for name in arrays_.files}
    rewrite(folder, "tables.npz", pack_npz(same))
    verify(folder, against=TABLE).require()


@pytest.mark.parametrize("kind", ["records", "sums", "squares"])
@pytest.mark.parametrize("attribute", [1, 2])
def test_a_changed_statistic_is_found(release, tmp_path, attribute, kind):
    """One more in any of its columns: the table no longer follows from it."""
    with np.load(release / "artefact" / "tables.npz") as stored:
        held = {name: stored[name] for name in stored.files}
    name = f"{kind}_{attribute}"
    for column in range(held[name].shape[1]):
        folder = copy_of(release, tmp_path / str(column))
        other = held[name].copy()
        other[0, column] += 1
        rewrite(folder, "tables.npz", pack_npz({**held, name: other}))
        assert "model" in [check.name for check in verify(folder).failed]


@pytest.mark.parametrize(
    ("key", "value"),
    [("bound", 32), ("deviations", [1.0, 1.0, 1.0]), ("model", "normal"), ("shape", [10, 27])],
)
def test_what_is_said_of_sums_is_checked(release, tmp_path, key, value):
    folder = copy_of(release, tmp_path / "copy")
    document = json.loads((folder / "artefact" / "artefact.json").read_bytes())
    document["evidence"]["moments"]["wage"][key] = value
    rewrite(folder, "artefact.json", encode_json(document))
    assert {"model", "artefact"} & {check.name for check in verify(folder).failed}


def test_tables_fitted_on_another_computer_may_differ_in_their_last_digits(release, tmp_path):
    folder = copy_of(release, tmp_path / "copy")
    document = json.loads((folder / "artefact" / "artefact.json").read_bytes())
    document["evidence"]["fitted_with"] = "numpy 1.0, scipy 1.0, abacus"
    rewrite(folder, "artefact.json", encode_json(document))
    verify(folder).require()
    with np.load(folder / "artefact" / "tables.npz", allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name = f"probabilities_{SCHEMA.names.index('wage')}"
    tilted = arrays[name].copy()
    tilted[0, :2] += [1e-12, -1e-12]
    rewrite(folder, "tables.npz", pack_npz({**arrays, name: tilted}))
    assert "model" in [check.name for check in verify(folder).inexact]
    verify(folder, accept_other_platform=True).require()
    tilted[0, :2] += [1e-6, -1e-6]
    rewrite(folder, "tables.npz", pack_npz({**arrays, name: tilted}))
    assert "model" in [c.name for c in verify(folder, accept_other_platform=True).failed]


def both_manifests(folder, change):
    for path in (folder / "artefact" / "manifest.json", folder / "manifest.json"):
        document = json.loads(path.read_bytes())
        change({entry["what"]: entry for entry in document["spends"]}, document)
        outer = "artefact/manifest.json"
        if outer in document["files"]:
            document["files"][outer] = file_hash(folder / outer)
        path.write_bytes(encode_json(add_checksum(document)))


LEDGERS = {
    "fewer sums moved": lambda spends: spends["sums of wage"].update(moved=1),
    "fewer squares moved": lambda spends: spends["squares of wage"].update(moved=4),
    "shorter sums": lambda spends: spends["sums of wage"].update(sensitivity=8),
    "shorter squares": lambda spends: spends["squares of wage"].update(sensitivity=64),
    "more of a number": lambda spends: spends["records of years"].update(sensitivity=2),
    "other noise": lambda spends: spends["sums of years"]["law"].update(sigma=1e3),
    "as counts": lambda spends: spends["records of wage"].update(what="counts of wage"),
}


@pytest.mark.parametrize("change", LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_that_charges_otherwise_is_found(release, tmp_path, change):
    folder = copy_of(release, tmp_path / "copy")
    both_manifests(folder, lambda spends, _: change(spends))
    failed = {check.name for check in verify(folder).failed}
    assert {"ledger", "noise"} & failed


def test_the_second_accountant_wants_three_thirds(release, tmp_path):
    """Noise moved from squares to sums, at the same total, by the same share in every place."""

    def change(spends, _document):
        for name in ("years", "wage"):
            spends[f"sums of {name}"]["law"]["sigma"] *= 1.01

    folder = copy_of(release, tmp_path / "copy")
    both_manifests(folder, change)
    failed = {check.name: check for check in verify(folder).failed}
    assert "third of a table" in str(failed["noise"])


def test_an_artefact_says_which_statistics_it_holds(release):
    document = json.loads((release / "artefact" / "artefact.json").read_bytes())
    told = document["evidence"]["moments"]
    assert {name: one["model"] for name, one in told.items()} == {
        "years": "normal",
        "wage": "regression",
    }


def test_sums_that_do_not_fit_each_other_are_refused():
    held = exact_sums(Schema.parse(TINY.replace("MODEL", "normal")), [])
    assert isinstance(held, Moments)
    with pytest.raises(InvariantError, match="one row per group"):
        replace(held, sums=held.sums[1:])
    with pytest.raises(InvariantError, match="have different shapes"):
        replace(held, squares=np.repeat(held.squares, 2, axis=1))
