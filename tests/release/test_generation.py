"""Records generated from an artefact: their law, with and without constraints; read twice."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import definitions
from chance import assert_distribution
from deniable.arrays import CODE
from deniable.data.complete_records import record_bytes
from deniable.errors import ConfigError, InvariantError, OutputError, SchemaError
from deniable.model.bayesian_network import Network
from deniable.pipeline import api
from deniable.randomness import Keyed
from deniable.release import generation
from deniable.release.generation import (
    BLOCK,
    GeneratedRecords,
    KeptRecords,
    always_feasible,
    decode_blocks,
    draw_feasible,
)
from deniable.release.prefix_distribution import combine_prefixes
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.pair_masks import restrict_to_allowed
from worlds import (
    codes_of,
    constrained,
    count_records,
    impossible,
    is_possible,
    small_world,
)

pytestmark = pytest.mark.slow

KEY = 77


def kept_prefixes(omega: int) -> KeptPrefixes | None:
    """Of length 1: c = 0 or c = 1, noisily 5 and 3 of 10 seeds. Of length 2: one, 4 of 10."""
    prefixes, counts = {3: ([], []), 2: ([[0], [1]], [5, 3]), 1: ([[0, 1]], [4])}[omega]
    if omega == 3:
        return None
    return KeptPrefixes(
        prefixes=np.array(prefixes, dtype=CODE), counts=np.array(counts), records=10
    )


def _without_kept(length: int) -> dict:
    """Seedless records, given that their prefix is not kept."""
    _, model = small_world()
    drawn = {y: definitions.record_probability(model, y) for y in model.universe()}
    level = kept_prefixes(3 - length)
    columns = list(model.order[:length])
    kept = {y for y in drawn if level and [y[c] for c in columns] in level.prefixes.tolist()}
    others = 1 - sum(drawn[y] for y in kept)
    return {y: p / others for y, p in drawn.items() if y not in kept}


def artefact_law(omega) -> dict:
    """A kept prefix in proportion to its noisy count, else none; the rest is drawn."""
    _, model = small_world()
    universe = model.universe()
    total = dict.fromkeys(universe, Fraction(0))
    length, level, left = 3 - omega, kept_prefixes(omega), Fraction(1)
    listed = [] if level is None else zip(level.prefixes, level.counts, strict=True)
    for prefix, noisy in listed:
        share = Fraction(int(noisy), 10)
        left -= share
        seed = [0, 0, 0]
        for place, code in zip(model.order[:length], prefix.tolist(), strict=True):
            seed[place] = code
        for y in universe:
            total[y] += share * definitions.synthesis_probability(model, y, tuple(seed), omega)
    for y, p in _without_kept(length).items():
        total[y] += left * p
    assert sum(total.values()) == 1
    return total


def combined_law(omega: int) -> dict:
    """A prefix with its combined weight, and the rest drawn."""
    network, model = small_world()
    combined = combine_prefixes(network, kept_prefixes(omega), {})
    total = dict.fromkeys(model.universe(), Fraction(0))
    for prefix, weight in zip(combined.prefixes, combined.weights, strict=True):
        seed = [0, 0, 0]
        for place, code in zip(model.order[: 3 - omega], prefix.tolist(), strict=True):
            seed[place] = code
        share = Fraction(int(weight), int(combined.weights.sum()))
        for y in total:
            total[y] += share * definitions.synthesis_probability(model, y, tuple(seed), omega)
    assert sum(total.values()) == 1
    return total


def generated(omega, feasible=always_feasible, key=KEY, pair_masks=None, adjust=False) -> Counter:
    network, kept, masks = small_world()[0], kept_prefixes(omega), pair_masks or {}
    records = GeneratedRecords(
        network=network,
        prefixes=kept and combine_prefixes(network, kept, masks, adjust=adjust),
        randomness=Keyed(key),
        number=BLOCK,
        feasible=feasible,
        pair_masks=masks,
    )
    counts: Counter = Counter()
    for block in records.blocks():
        counts.update(count_records(block))
    assert counts.total() == BLOCK
    return counts


@pytest.mark.parametrize("omega", [1, 2, 3])
def test_an_artefact_generates_records_of_its_law(omega):
    """A single block is drawn systematically: frequencies scatter less than independent draws, but
    a wrong probability shows all the same. False-alarm rate 1e-6 each, fixed key."""
    assert_distribution(generated(omega), artefact_law(omega))


@pytest.mark.parametrize("omega", [1, 2])
def test_a_model_of_pairs_generates_records_of_the_combined_law(omega):
    """Another law than that of the noisy counts alone. False-alarm rate 1e-6, fixed key."""
    counts = generated(omega, adjust=True)
    assert_distribution(counts, combined_law(omega))
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(counts, artefact_law(omega))


@pytest.mark.parametrize("omega", [1, 2, 3])
def test_under_constraints_an_artefact_generates_records_of_its_law_among_those_that_can_be(omega):
    """Pr{y | possible}, exactly: not a record more or less likely than another."""
    law = {y: p for y, p in artefact_law(omega).items() if is_possible(y)}
    can_be = sum(law.values())
    assert 0.2 < can_be < 0.9
    counts = generated(omega, feasible=constrained)
    assert_distribution(counts, {y: p / can_be for y, p in law.items()})


def test_that_assertion_notices_records_that_are_repaired_and_not_drawn_anew():
    """As if the attribute that breaks a constraint were changed until it does not."""
    law = {y: p for y, p in artefact_law(3).items() if is_possible(y)}
    can_be = sum(law.values())
    counts: Counter = Counter()
    for y, number in generated(3).items():
        counts[y if is_possible(y) else (*y[:2], 0)] += number
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(counts, {y: p / can_be for y, p in law.items()})


# The constraint of the small world as a mask: a below 2 needs c = 0.
PAIR_MASKS = {(0, 2): np.array([[c == 0 or a >= 2 for c in range(3)] for a in range(4)])}


@pytest.mark.parametrize("redraws", [0, 1, 50])
def test_by_a_pair_mask_a_value_is_drawn_given_the_earlier_ones(monkeypatch, redraws):
    """Pr{y} = Π Pr{y_i | parents, allowed with what was drawn before}: c keeps its distribution.

    Here c is drawn first, then a among the values that c allows: by redraws, or directly.
    """
    _, model = small_world()
    law = {}
    for y in filter(is_possible, model.universe()):
        allowed = [a for a in range(4) if PAIR_MASKS[0, 2][a, y[2]]]
        share = sum(model.factor(0, a, (a, *y[1:])) for a in allowed)
        law[y] = definitions.record_probability(model, y) / share
    assert sum(law.values()) == 1
    monkeypatch.setattr(generation, "_MAX_VALUE_REDRAWS", redraws)
    counts = generated(3, feasible=constrained, pair_masks=PAIR_MASKS)
    assert_distribution(counts, law)


def test_an_allowed_value_is_found_even_if_the_model_never_draws_one(monkeypatch):
    """All allowed values are equally likely then; no record is drawn again as a whole."""
    monkeypatch.setattr(generation, "_MAX_VALUE_REDRAWS", 0)
    monkeypatch.setattr(generation, "_RECORDS_PER_BATCH", 1000)

    def of_zeros(network, codes, i, allowed):
        del network, i
        return restrict_to_allowed(np.zeros((len(codes), 4)), allowed)

    monkeypatch.setattr(Network, "distribution", of_zeros)
    drawn = []

    def is_feasible(records):
        drawn.append(len(records))
        return constrained(records)

    counts = generated(3, feasible=is_feasible, pair_masks=PAIR_MASKS)
    assert sum(drawn) == sum(counts.values())


@pytest.mark.parametrize("omega", [1, 2])
def test_with_kept_prefixes_records_obey_the_pair_masks_too(omega):
    assert all(map(is_possible, generated(omega, feasible=constrained, pair_masks=PAIR_MASKS)))


def test_a_value_that_is_never_allowed_is_left_to_the_redraw_of_the_record():
    """No a goes with c = 1, so every record with c = 1 is drawn again as a whole."""
    mask = np.ones((4, 3), dtype=bool)
    mask[:, 1] = False

    def without_one(records):
        return records[:, 2] != 1

    counts = generated(3, feasible=without_one, pair_masks={(0, 2): mask})
    assert {y[2] for y in counts} == {0, 2}


def test_constraints_that_leave_nothing_end_with_advice():
    with pytest.raises(SchemaError, match=r"constraints allow less than one in.*contradict"):
        generated(2, feasible=impossible)


def test_only_what_cannot_be_is_drawn_anew():
    """Records that can be stay; the others are drawn until they can."""
    sizes = []

    def draw(number, rng):
        sizes.append(number)
        return codes_of([(int(v),) for v in rng.integers(4, number)], 1)

    def not_zero(records):
        return records[:, 0] > 0

    first = draw(1_000, Keyed(1).at("records"))
    sizes.clear()
    records = draw_feasible(draw, 1_000, Keyed(1).at("records"), not_zero)
    stayed = first[:, 0] > 0
    np.testing.assert_array_equal(records[stayed], first[stayed])
    assert (records > 0).all()
    assert sizes[0] == 1_000
    assert sizes[1] == (~stayed).sum()
    assert sizes == sorted(sizes, reverse=True)
    assert_distribution(Counter(records[:, 0].tolist()), {1: 1 / 3, 2: 1 / 3, 3: 1 / 3})


def some_records(number: int, workers: int | None = None) -> GeneratedRecords:
    return GeneratedRecords(
        network=small_world()[0],
        prefixes=combine_prefixes(small_world()[0], kept_prefixes(2), {}),
        randomness=Keyed(KEY),
        number=number,
        workers=workers,
    )


@pytest.mark.parametrize("number", [1, 1_000, BLOCK, BLOCK + 1, 3 * BLOCK - 7])
def test_records_can_be_read_twice_on_any_number_of_workers(number):
    records = some_records(number, workers=1)
    first = np.concatenate(list(records.blocks()))
    assert len(first) == number
    np.testing.assert_array_equal(first, np.concatenate(list(records.blocks())))
    np.testing.assert_array_equal(
        first, np.concatenate(list(some_records(number, workers=3).blocks()))
    )


def test_no_records_are_refused():
    with pytest.raises(ConfigError, match="records = 0: ask for at least 1"):
        some_records(0)


# Records are read any number of times, and decoded


@dataclass(frozen=True)
class BrokenRecords:
    """One block, then an error: fewer records than announced."""

    codes: np.ndarray
    number: int
    error: Exception | None = None

    def blocks(self):
        yield self.codes
        if self.error is not None:
            raise self.error


def test_kept_records_are_the_same_at_every_reading(small_codes):
    kept = KeptRecords.collect([small_codes[:3], small_codes[3:]], columns=small_codes.shape[1])
    assert kept.number == len(small_codes)
    for _ in range(2):
        assert np.array_equal(np.concatenate(list(kept.blocks())), small_codes)


def test_fewer_records_than_announced_are_a_bug(small_schema, small_codes):
    records = BrokenRecords(small_codes, len(small_codes) + 1)
    with pytest.raises(InvariantError, match="records were generated"):
        list(decode_blocks(records, small_schema, Keyed(1)))


# Memory


MANY = 10**12


@pytest.mark.parametrize("read", ["generate", "frame", "where"])
def test_records_that_do_not_fit_into_memory_are_refused_before_one_is_drawn(
    small_table, small_schema, monkeypatch, read
):
    """The kernel killed the process that asked for a million million records."""
    artefact = api.learn(small_table, small_schema, mode="seedless")
    ways = {
        "generate": lambda: artefact.generate(MANY),
        "frame": lambda: api.generate(artefact, MANY).frame(),
        "where": lambda: artefact.generate(MANY, where=f"{small_schema.names[0]} = 30"),
    }
    monkeypatch.setattr(generation, "free_memory", lambda: 16 * 10**9)
    size = record_bytes(small_schema.columns)
    said = rf"1,000,000,000,000 records need about {size} TB of memory, and 16 GB.*write_file"
    with pytest.raises(OutputError, match=said):
        ways[read]()
    few = 100 * size
    monkeypatch.setattr(generation, "free_memory", lambda: few)
    assert len(artefact.generate(100)) == 100
    monkeypatch.setattr(generation, "free_memory", lambda: few - 1)
    with pytest.raises(OutputError):
        artefact.generate(100)
    monkeypatch.setattr(generation, "free_memory", lambda: None)
    assert len(artefact.generate(100)) == 100


def test_the_size_of_a_record_is_that_of_its_frame(small_table, small_schema):
    """Texts of up to twelve bytes are in their cells, longer ones next to them."""
    frame = api.learn(small_table, small_schema, mode="seedless").generate(10_000)
    measured = frame.estimated_size() / len(frame)
    assert 0.4 * measured < record_bytes(small_schema.columns) < 2.5 * measured


def test_another_kind_of_frame_is_a_copy_and_needs_twice_as_much(
    small_table, small_schema, monkeypatch
):
    artefact = api.learn(small_table.to_arrow(), small_schema, mode="seedless")
    size = 100 * record_bytes(small_schema.columns)
    monkeypatch.setattr(generation, "free_memory", lambda: 2 * size - 1)
    with pytest.raises(OutputError):
        artefact.generate(100)
