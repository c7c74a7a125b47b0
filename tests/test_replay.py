"""Replays: the same noisy answers on another table give the same artefact, byte for byte.

Noise is the only way from the rows to a release. So the answers of ``add_noise`` that were recorded
on one table are fed back to a run on an unrelated one, of another size, and nothing may differ:
bins, groups, interactions, pairs, order, ω, tables, kept prefixes, certificate, records. A fault
that uses an exact number anywhere after the noise makes some of them differ.
"""

import contextlib
import io
import math
import os
import sys
from collections.abc import Callable
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from chance import assert_rate
from deniable.__main__ import run
from deniable.drafting.draft import draft_schema
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise import measure
from deniable.model.pairwise.measure import FURTHER_TABLES, PairwiseMeasurements
from deniable.pipeline import api
from deniable.pipeline.api import generate, learn, plan, synthesize
from deniable.privacy.noise_laws import Law, rounded_gaussian
from deniable.privacy.pairwise_budget import (
    INTERACTIONS_SPEND,
    THREE_WAY_SPEND,
    gaussian_sigma,
)
from deniable.randomness import Secret, SystemRng
from deniable.release.generation import KeptRecords
from noise_replay import ClaimedSecret, recording, replaying, users_of_noise
from replay_cases import LEARNT, TESTED, WORLDS

pytestmark = pytest.mark.slow

RECORDED_ROWS = 3_000
# Sizes of the other tables: one row, fewer and more than the recorded ones. 0 has its own test.
OTHER_ROWS = (1, 700, 20_000)


def synthesized(source, schema, **options):
    """The artefact of a release, whose records and certificate are those of ``generate``."""
    release = synthesize(source, schema, records=50, key=3, **options)
    again = generate(release.artefact, 50, key=3)
    assert release.certificate == again.certificate
    one, two = (
        each.collect() if isinstance(each, pl.LazyFrame) else pl.DataFrame(each)
        for each in (release.records, again.records)
    )
    assert one.equals(two)
    return release.artefact


# What is recorded is learnt; what is replayed is learnt or synthesized, by the number of its rows.
# So a fault in either of the two ways is noticed, also by tables of very different sizes.
WAYS = {0: learn, 1: synthesized, 700: learn, 20_000: synthesized}


def test_every_module_that_adds_noise_is_replayed():
    assert users_of_noise() == [
        "deniable.drafting.noisy_histograms",
        "deniable.model.pairwise.measure",
        "deniable.model.paper.correlation",
        "deniable.model.paper.moments",
        "deniable.model.paper.parameters",
        "deniable.release.seed_histogram",
    ]


def parts_of(table):
    """All numbers of a conditional distribution: a table's, or those of a log-linear one."""
    if isinstance(table, LogLinearConditional):
        parts: list[np.ndarray] = [table.base, *table.effects, table.bins, table.within]
        for each in table.joint:
            parts += [np.array([each.first, each.second]), each.first_groups, each.second_groups]
            parts.append(each.effects)
        return [(part.shape, part.tobytes()) for part in parts]
    return [table.probabilities.tobytes()]


def described(artefact, folder):
    """Everything that an artefact discloses: parts by name, for a telling failure, then files."""
    evidence, found = artefact.evidence, {"ω": artefact.omega, "order": artefact.network.order}
    if isinstance(evidence, PairwiseMeasurements):
        found |= {
            "bins": [groups.tolist() for groups in evidence.bins],
            "groups": [groups.tolist() for groups in evidence.groups],
            "noise of interactions": evidence.interaction_sigmas,
            "interactions": {pair: q.tobytes() for pair, q in evidence.interactions.items()},
            "pairs": evidence.table_counts,
            "two-way tables": {pair: table.tobytes() for pair, table in evidence.tables.items()},
            "three-way": evidence.three_way is not None,
        }
        if evidence.three_way is not None:
            found |= {
                "groups of triples": [groups.tolist() for groups in evidence.three_way.groups],
                "noise of triples": evidence.three_way.sigmas,
                "triples": {t: q.tobytes() for t, q in evidence.three_way.interactions.items()},
            }
    found["graph"] = artefact.network.graph.parents
    found["tables"] = [parts_of(table) for table in artefact.network.tables]
    kept = artefact.histogram
    found["seeds"] = (
        None if kept is None else (kept.records, kept.prefixes.tolist(), kept.counts.tolist())
    )
    found["certificate"] = artefact.certificate
    frame = artefact.generate(200, key=3)
    found["records"] = (frame.schema, frame.rows())
    artefact.save(folder)
    files = sorted(folder.iterdir())
    found["files"] = {path.name: (path.stat().st_mode, path.read_bytes()) for path in files}
    return found


def assert_same(one, other):
    for name, value in one.items():
        assert other[name] == value, f"{name} depends on the rows"


def replay_on_tables_of(sizes, case, folder):
    """Record a run; replay its noisy answers on other tables and compare."""
    name, options = LEARNT[case]
    world = WORLDS[name]

    def learn_from(key, rows, way=learn):
        """Learn; also return the reports of progress, which show their numbers to anyone."""
        told: list[tuple[Any, ...]] = []
        table = world.table(key, rows)
        noise = ClaimedSecret()
        learnt = way(table, world.schema, noise=noise, progress=_teller(told), **options)
        return learnt, told

    with recording() as answers:
        recorded, told = learn_from(1, RECORDED_ROWS)
    expected = described(recorded, folder / "recorded")
    kinds = {type(table) for table in recorded.network.tables}
    assert LogLinearConditional in kinds or not case.startswith("log-linear")
    assert expected.get("three-way") or not case.startswith("three-way")
    for rows in sizes:
        with replaying(answers):
            again, told_again = learn_from(2 + rows, rows, WAYS[rows])
        assert_same(expected, described(again, folder / f"{rows}"))
        assert told_again == told != []


def _teller(told):
    return lambda *said: told.append(said)


@pytest.mark.parametrize("case", LEARNT)
def test_an_artefact_follows_from_its_noisy_answers(case, tmp_path):
    replay_on_tables_of(OTHER_ROWS, case, tmp_path)


@pytest.mark.parametrize("case", LEARNT)
def test_an_artefact_of_no_rows_follows_from_its_noisy_answers(case, tmp_path):
    replay_on_tables_of([0], case, tmp_path)


def every_combination(world, times):
    """A table with each combination of values so many times: no cell is below ``times``."""
    domain = pl.DataFrame({"trade": ["kelpfarmer", "wheelwright", "tinsmith", "lacemaker", None]})
    others = {
        "home": ["houseboat", "windmill"],
        "boats": list(range(6)),
        "rank": list(range(1, 7)),
        "smoker": [False, True],
    }
    for name, values in others.items():
        domain = domain.join(pl.DataFrame({name: values}), how="cross")
    return pl.concat([domain] * times).cast(world.table(0, 1).schema)


def test_kept_prefixes_follow_from_their_noisy_counts(tmp_path):
    """As above, with the cells that the product counts: those of k seeds, here all of them."""
    world, k = WORLDS["few values"], 3
    options = {"k": k, "omega": "1", "epsilon": 40.0, "noise": ClaimedSecret()}

    def learn_from(key, rows, way=learn):
        table = pl.concat([every_combination(world, k), world.table(key, rows)])
        return way(table, world.schema, **options)

    with recording(dense=False) as answers:
        expected = described(learn_from(1, RECORDED_ROWS), tmp_path / "recorded")
    _, _, kept = expected["seeds"]
    assert 0 < len(kept) < answers[-1].noisy.size, "some prefixes are kept, and some are not"
    for key, way in ((2, learn), (3, synthesized)):
        with replaying(answers, dense=False):
            assert_same(expected, described(learn_from(key, 900, way), tmp_path / f"{key}"))


@pytest.mark.parametrize(
    ("case", "outside"),
    [
        ("numbers", pl.date(2030, 1, 1).alias("admitted")),
        ("units", pl.lit(99, pl.Int64).alias("years")),
    ],
)
def test_rows_that_are_dropped_leave_no_trace(case, outside, tmp_path):
    """None is dropped, or some, or all: the same noisy answers give the same artefact."""
    name, options = LEARNT[case]
    world = WORLDS[name]
    table = world.table(1, RECORDED_ROWS)
    dropped = table.with_columns(outside)
    others = [pl.concat([table.head(5), dropped]), pl.concat([dropped, table]), dropped]
    with recording() as answers:
        recorded = learn(table, world.schema, noise=ClaimedSecret(), **options)
    expected = described(recorded, tmp_path / "recorded")
    ways = (synthesized, learn, synthesized)
    for number, (other, way) in enumerate(zip(others, ways, strict=True)):
        with replaying(answers):
            again = way(other, world.schema, noise=ClaimedSecret(), **options)
        assert_same(expected, described(again, tmp_path / f"{number}"))


@pytest.mark.parametrize("case", TESTED)
def test_the_model_of_a_tested_release_follows_from_its_noisy_answers(case, monkeypatch):
    """Its records are made from real seeds; model, order, ω and certificate are not."""
    name, options = TESTED[case]
    world, models = WORLDS[name], []
    source = api.builtin_source

    def spy(model, *args, **keywords):
        models.append(model)
        return source(model, *args, **keywords)

    monkeypatch.setattr(api, "builtin_source", spy)
    nothing = KeptRecords.collect([], columns=len(world.schema.names))
    monkeypatch.setattr(api, "release_candidates", lambda *_, **__: (nothing, {}))

    def certificate(key, rows):
        table = world.table(key, rows)
        options_of_run = {"records": 2, "noise": ClaimedSecret(), **options}
        return synthesize(table, world.schema, **options_of_run).certificate

    with recording() as answers:
        expected = certificate(1, RECORDED_ROWS)
    for rows in (700, 20_000):
        with replaying(answers):
            assert certificate(2 + rows, rows) == expected
    first, *others = models
    for other in others:
        assert other.omegas == first.omegas
        assert other.network.order == first.network.order
        assert other.network.graph == first.network.graph
        for one, two in zip(first.network.tables, other.network.tables, strict=True):
            assert parts_of(one) == parts_of(two)


@pytest.mark.parametrize("case", [*LEARNT, *TESTED])
def test_the_noise_that_is_drawn_is_the_noise_of_the_plan(case, monkeypatch):
    """Law, sensitivity and number of moved counts of every call, as they were planned.

    The interactions are one entry of the plan, with several calls: their squared costs sum to it.
    So are three-way interactions, or the tables that are measured in their place.
    """
    name, options = (LEARNT | TESTED)[case]
    world = WORLDS[name]
    nothing = KeptRecords.collect([], columns=len(world.schema.names))
    monkeypatch.setattr(api, "release_candidates", lambda *_, **__: (nothing, {}))
    planned = plan(world.schema, records=2, **options).privacy.spends
    layouts: list[Any] = []
    for function in ("choose_layout", "choose_three_way"):
        choose = getattr(measure, function)

        def remember(*args, choose=choose, **keywords):
            layouts.append(choose(*args, **keywords))
            return layouts[-1]

        monkeypatch.setattr(measure, function, remember)
    with recording() as answers:
        synthesize(world.table(1, 400), world.schema, records=2, **options)
    adaptive = [answer for answer in answers if answer.what == "interactions"]
    further = [answer for answer in answers if answer.what in ("triples", FURTHER_TABLES)]
    drawn = sorted(
        str(answer.question) for answer in answers if answer not in [*adaptive, *further]
    )
    stated = ("deniability tests", INTERACTIONS_SPEND, THREE_WAY_SPEND)
    assert drawn == sorted(
        str((spend.what, spend.part, spend.law, spend.sensitivity, spend.l0_sensitivity))
        for spend in planned
        if spend.what not in stated
    )
    allowed = [spend.mu**2 for spend in planned if spend.what == INTERACTIONS_SPEND]
    assert bool(adaptive) == bool(allowed)
    if allowed:
        sigmas = layouts[0].interaction_sigmas
        assert_adaptive_cost(adaptive, layouts[0].groups, sigmas, allowed[0])
    allowed = [spend.mu**2 for spend in planned if spend.what == THREE_WAY_SPEND]
    assert bool(further) == bool(allowed)
    if allowed and layouts[1] is not None:
        assert_adaptive_cost(further, layouts[1].groups, layouts[1].sigmas, allowed[0])
    elif allowed:
        (tables,) = further
        assert tables.what == FURTHER_TABLES
        _, _, law, sensitivity, number = tables.question
        cost = number * (sensitivity / gaussian_sigma(law)) ** 2
        assert allowed[0] * (1 - 1e-9) <= cost <= allowed[0]


def assert_adaptive_cost(answers, groups, sigmas, allowed):
    """Σ ‖Δq‖² / σ² is what the entry allows, with the noise that was drawn.

    One more record moves q of an a × b table by ab(e - 1/a)(e - 1/b)ᵀ: its square is
    ab(a - 1)(b - 1) in every cell; of three attributes alike.
    """
    cells: dict[Law, int] = {}
    cost, numbers = 0.0, [int(own.max()) + 1 for own in groups]
    for attributes, sigma in sigmas.items():
        sizes = [numbers[i] for i in attributes]
        law = rounded_gaussian(math.prod(sizes) * sigma)
        cells[law] = cells.get(law, 0) + math.prod(sizes)
        cost += math.prod(size * (size - 1) for size in sizes) / gaussian_sigma(law) ** 2
    drawn: dict[Law, int] = {}
    for answer in answers:
        drawn[answer.law] = drawn.get(answer.law, 0) + answer.noisy.size
    assert drawn == cells
    assert allowed * (1 - 1e-9) <= cost <= allowed


def command(folder, table, name):
    """Run a command in a folder of its own; return its code, its output and the public files."""
    (folder / name).mkdir()
    table.write_csv(folder / name / "people.csv", null_value="?")
    world = WORLDS["few values"]
    world.schema.write(folder / name / "schema.toml")
    arguments = "synthesize people.csv --schema schema.toml --records 300 --key 5 --out out --k 20"
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder / name),
        patch.object(sys, "argv", ["deniable", *arguments.split()]),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        code = run()
    out = folder / name / "out"
    files = {path.relative_to(out): path for path in sorted(out.rglob("*"))}
    public = {
        name: (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for name, path in files.items()
    }
    return code, stdout.getvalue(), stderr.getvalue(), public


@pytest.mark.parametrize("rows", [0, *OTHER_ROWS])
def test_a_release_and_what_is_printed_follow_from_the_noisy_answers(rows, tmp_path):
    """Exit code, output, names, modes and bytes of all public files."""
    world = WORLDS["few values"]
    with recording() as answers:
        expected = command(tmp_path, world.table(1, RECORDED_ROWS), "recorded")
    assert expected[0] == 0, expected[2]
    with replaying(answers):
        assert command(tmp_path, world.table(2 + rows, rows), "replayed") == expected


KINDS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "pandas": pl.DataFrame.to_pandas,
    "arrow": pl.DataFrame.to_arrow,
    "lazy": pl.DataFrame.lazy,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_returned_frame_follows_from_the_noisy_answers(kind):
    """Types included. One table has missing cells, the other none: pandas types them apart."""
    world, convert = WORLDS["numbers"], KINDS[kind]
    tables = [world.table(1, 2_000), world.table(9, 500).drop_nulls()]
    with recording() as answers:
        first = learn(convert(tables[0]), world.schema, k=10, epsilon=3.0)
    with replaying(answers):
        other = synthesized(convert(tables[1]), world.schema, k=10, epsilon=3.0)
    one, two = first.generate(100, key=3), other.generate(100, key=3)
    if kind == "lazy":
        one, two = one.collect(), two.collect()
    dtypes = "schema" if kind != "pandas" else "dtypes"
    assert list(getattr(one, dtypes)) == list(getattr(two, dtypes))
    assert one.equals(two)


# Drafts. Texts are counted where they occur, so both tables have the same texts.
TEXTS = ("axolotl", "capybara", "pangolin", "quokka")


# Frequent numbers are found by a threshold, as texts are: noise is added to those that occur, so
# both tables have the same ones, in other proportions.
YEARS = [str(years) for years in range(18, 78)]
BORN = [f"{year}-05-17" for year in range(1940, 1990)]
PRICES = [f"{cents / 100:.2f}" for cents in range(25, 5025, 125)]


def draft_table(key, rows):
    draws = np.random.default_rng(key)
    weights = draws.permutation([0.4, 0.3, 0.2, 0.1])
    pets = [*TEXTS, *draws.choice(TEXTS, rows - len(TEXTS), p=weights)]
    shares = draws.dirichlet(np.ones(len(PRICES)))
    return pl.DataFrame(
        {
            "pet": pets,
            "smokes": ["yes", "no", *draws.choice(["yes", "no"], rows - 2, p=[0.2, 0.8])],
            "years": [
                *YEARS,
                *draws.choice(YEARS, rows - len(YEARS), p=draws.dirichlet(np.ones(60))),
            ],
            "paid": [*PRICES, *draws.choice(PRICES, rows - len(PRICES), p=shares)],
            "born": [*BORN, *draws.choice(BORN, rows - len(BORN), p=draws.dirichlet(np.ones(50)))],
        }
    )


@pytest.mark.parametrize("rows", [300, 4_000, 30_000])
def test_a_private_draft_follows_from_its_noisy_answers(rows):
    """Text and notes: no order, bound or number of rows may come from exact counts."""
    with recording() as answers:
        expected = draft_schema(draft_table(1, 9_000), draft_epsilon=1.0)
    assert "axolotl" in expected.text
    with replaying(answers):
        again = draft_schema(draft_table(5, rows), draft_epsilon=1.0)
    assert again.text == expected.text
    assert again.notes == expected.notes


# Independence of the noise, and its law.


def probabilities(law):
    """The probability of each value of the noise, from -r to r."""
    one_side = law.table.probabilities()
    return np.concatenate([one_side[:0:-1], one_side])


def chance_of_equal(one, other):
    """The probability that two independent draws are equal."""
    p, q = sorted([probabilities(one), probabilities(other)], key=len)
    margin = (len(q) - len(p)) // 2
    return float(p @ q[margin : margin + len(p)])


def assert_independent(one, other, chance, *, tests):
    """Fail if noise repeats, cell by cell or shifted: too many equal draws. ``tests`` share 1e-6.

    A correct program fails with probability at most 1e-6: an exact binomial test for each shift.
    """
    n = min(len(one), len(other))
    for shift in range(n):
        equal = int((np.roll(one[:n], shift) == other[:n]).sum())
        assert_rate(equal, n, chance, false_alarm=1e-6 / tests / n)


def noise_of_two_runs():
    """The flat noise of every question with enough cells, in two runs on the same table."""
    world = WORLDS["many columns"]
    answers = []
    for _ in range(2):
        with recording() as heard:
            learn(world.table(1, 500), world.schema, omega="12", k=5, epsilon=2.0)
        answers += [answer for answer in heard if answer.noisy.size >= 4]
    return answers


def test_no_two_questions_share_their_noise():
    """Cell by cell, within a run and between two runs. False-alarm rate 1e-6."""
    pairs = list(combinations(noise_of_two_runs(), 2))
    for one, other in pairs:
        n = min(one.noisy.size, other.noisy.size)
        equal = int((one.noise.ravel()[:n] == other.noise.ravel()[:n]).sum())
        chance = chance_of_equal(one.law, other.law)
        assert_rate(equal, n, chance, false_alarm=1e-6 / len(pairs))


def test_noise_has_the_law_of_its_ledger_entry():
    """Draws below the median of their law, among all draws of that law. False-alarm rate 1e-6."""
    by_law: dict[Law, list[np.ndarray]] = {}
    for answer in noise_of_two_runs():
        by_law.setdefault(answer.law, []).append(answer.noise.ravel())
    for law, parts in by_law.items():
        noise = np.concatenate(parts)
        within = np.cumsum(2 * law.table.probabilities()) - law.table.probabilities()[0]
        median = int(np.searchsorted(within, 0.5))
        inside = int((np.abs(noise) <= median).sum())
        assert_rate(inside, len(noise), float(within[median]), false_alarm=1e-6 / len(by_law))


# The system's randomness: every number is a function of the bytes of ``os.urandom``.


class Urandom:
    """Bytes of a key in place of the system's; ``served`` are those that were handed out."""

    def __init__(self):
        self.draws = np.random.default_rng(7)
        self.served = b""

    def __call__(self, size):
        self.served += (new := self.draws.bytes(size))
        return new


@pytest.fixture
def urandom(monkeypatch):
    source = Urandom()
    monkeypatch.setattr(os, "urandom", source)
    return source


@pytest.mark.parametrize("rng", [SystemRng(), Secret().at("noise"), Secret().at("split", 5)])
def test_words_of_the_system_are_its_bytes(rng, urandom):
    words = rng.words(1_000)
    assert words.tolist() == np.frombuffer(urandom.served, "<u8").tolist()
    urandom.served = b""
    halves = rng.half_words(1_000)
    assert halves.tolist() == np.frombuffer(urandom.served, "<u4").tolist()
    urandom.served = b""
    reals = rng.random(1_000)
    assert reals.tolist() == [(int(w) >> 11) / 2**53 for w in np.frombuffer(urandom.served, "<u8")]


@pytest.mark.parametrize(
    ("high", "bits"), [(1, 32), (10, 32), (3 * 2**26, 32), (3 * 2**61, 64), (2**63, 64)]
)
def test_integers_of_the_system_follow_from_its_bytes(high, bits, urandom):
    """A word beyond the last multiple of ``high`` is replaced by the next unused one."""
    drawn = SystemRng().integers(high, 2_000).tolist()
    words = np.frombuffer(urandom.served, f"<u{bits // 8}").tolist()
    wanted, words = words[:2_000], words[2_000:]
    limit = 2**bits - 2**bits % high
    while rejected := [at for at, word in enumerate(wanted) if word >= limit]:
        for at in rejected:
            wanted[at] = words.pop(0)
    assert drawn == [word % high for word in wanted]
    assert words == []


def test_privacy_noise_follows_from_the_bytes_of_the_system(urandom):
    """The noise of a whole run is that of a second run that gets the same bytes, and no other's."""
    world, runs = WORLDS["few values"], []
    for start in (7, 7, 8):
        urandom.draws = np.random.default_rng(start)
        with recording() as answers:
            learn(world.table(1, 500), world.schema, k=20, workers=1)
        assert all(isinstance(answer.rng, SystemRng) for answer in answers)
        runs.append([answer.noise.tolist() for answer in answers])
    assert runs[0] == runs[1]
    assert all(one != other for one, other in zip(runs[0], runs[2], strict=True))
