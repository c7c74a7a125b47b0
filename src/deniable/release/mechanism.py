"""Mechanism 1 over blocks: seed, candidate, deniability test, keep (Sec. 2, ``def:mechanism``).

A kernel turns the number of a block into the records that the block releases. Blocks do not
know of each other, so any number of workers may run them; ``collect`` takes records in the order
of the blocks until there are enough.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from deniable.arrays import Codes, Counts, Mask
from deniable.errors import BudgetError, SchemaError
from deniable.model.generative import GenerativeModel
from deniable.model.network import Manner, Network, empty_codes
from deniable.model.synthesis import NetworkModel
from deniable.randomness import Randomness, Rng
from deniable.release.counts import PrefixCounts, SharedSeeds
from deniable.release.deniability import (
    ScanLimits,
    count_hidden_omega,
    count_own_omega,
    scan_plausible_seeds,
)
from deniable.release.histogram import SeedHistogram

# From the number of a block to the records it releases.
Kernel = Callable[[int], Codes]

# From k' of each candidate, and the number of the block, to who passes: Privacy Test 1 or 2.
Test = Callable[[Counts, int], Mask]

# Which records satisfy the schema's constraints: asked of records alone, never of the data.
Possible = Callable[[Codes], Mask]

# Candidates in a block: many enough that threads seldom meet in Python, few enough for small runs.
BLOCK = 2**18
# The scan holds a matrix of candidates by seeds.
SCAN_BLOCK = 2**9
# How often a record without a kept prefix is drawn again because it has one.
_MOST_REDRAWN = 50
# Constraints that less than one record in so many keeps are said to leave nothing; it takes so many
# times as much without success before that is sure.
_RAREST = 1_000
_SURE = 25


def anything(records: Codes) -> Mask:
    """Return that every record is possible: there are no constraints."""
    return np.ones(len(records), dtype=bool)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """What one run of Mechanism 1 is made of. The seeds are confidential.

    Attributes:
        seeds: The records of D_S.
        randomness: Where seeds, candidates and scans are drawn from.
        passes: The deniability test.
        possible: The constraints. They look at a candidate alone, so dropping those that break
            them takes nothing from the deniability of the rest.
    """

    seeds: Codes = field(repr=False)
    randomness: Randomness
    passes: Test
    possible: Possible = anything


def own_omega_kernel(mechanism: Mechanism, model: NetworkModel) -> Kernel:
    """Return Mechanism 1 for the built-in model, each candidate tested under its own ω.

    Neither the test nor the candidate reads more of a seed than its prefix, so that all who share
    one are drawn as one, as often as they are. The test does not read what is drawn, so only
    candidates that pass are drawn at all.
    """
    _require_seeds(mechanism)
    number, randomness = len(mechanism.seeds), mechanism.randomness
    seeds = SharedSeeds.of(mechanism.seeds, model.network.order, model.kept, _sizes(model))
    levels = _level_of_omega(model)

    def kernel(block: int) -> Codes:
        rng = randomness.at("seeds", block)
        chosen = seeds.row_of(rng.integers(number, BLOCK))
        omegas = model.choose_omegas(BLOCK, rng)
        plausible = count_own_omega(seeds.counts, chosen, levels[omegas])
        passed = np.flatnonzero(mechanism.passes(plausible, block))
        drawn = model.propose_from(
            seeds.rows, chosen[passed], omegas[passed], randomness.at("candidates", block)
        )
        return _only(drawn, mechanism.possible(drawn))

    return kernel


def hidden_omega_kernel(mechanism: Mechanism, model: NetworkModel, *, gamma: float) -> Kernel:
    """Return Mechanism 1 for the built-in model when nobody is told the ω of a record."""
    _require_seeds(mechanism)
    counts = _prefix_counts(mechanism, model)

    def kernel(block: int) -> Codes:
        own, candidates = _propose(mechanism, model, block, BLOCK)
        plausible = count_hidden_omega(model, counts, candidates, own, gamma=gamma)
        return _only(
            candidates, mechanism.passes(plausible, block) & mechanism.possible(candidates)
        )

    return kernel


def scan_kernel(
    mechanism: Mechanism, model: GenerativeModel, *, gamma: float, limits: ScanLimits
) -> Kernel:
    """Return Mechanism 1 for any model: the test asks it about every seed."""
    _require_seeds(mechanism)

    def kernel(block: int) -> Codes:
        own, candidates = _propose(mechanism, model, block, SCAN_BLOCK)
        rng = mechanism.randomness.at("scan", block)
        plausible = scan_plausible_seeds(
            model, mechanism.seeds, candidates, own, rng, gamma=gamma, limits=limits
        )
        return _only(
            candidates, mechanism.passes(plausible, block) & mechanism.possible(candidates)
        )

    return kernel


def randomized_kernel(
    mechanism: Mechanism, model: NetworkModel, *, dummies: int, gamma: float | None
) -> Kernel:
    """Return Mechanism 1 with Privacy Test 2, repaired by dummy seeds (guarantee.md, Theorem 4').

    Seeds are drawn from the table and ``dummies`` beside it, whose candidates always fail; who
    fails is replaced by a record drawn without a seed. So every candidate gives a record, and
    how many failed shows nowhere, for tables of any size, empty ones too. A candidate that breaks
    a constraint counts as failed: that is a function of what the theorem already covers.

    Args:
        mechanism: Its test must be the randomized one.
        model: The built-in model.
        dummies: How many, at least t/γ for the t of the theorem.
        gamma: Width of the ranges if ω is hidden; None: each is tested under its own ω.
    """
    seeds, randomness = mechanism.seeds, mechanism.randomness
    counts = _prefix_counts(mechanism, model)
    levels = _level_of_omega(model)

    def seedless(number: int, rng: Rng) -> Codes:
        return _draw_seedless(model.network, number, rng)

    def kernel(block: int) -> Codes:
        rng = randomness.at("seeds", block)
        chosen = rng.integers(len(seeds) + dummies, BLOCK)
        omegas = model.choose_omegas(BLOCK, rng)
        real = np.flatnonzero(chosen < len(seeds))
        draw = randomness.at("candidates", block)
        candidates = model.propose_from(seeds, chosen[real], omegas[real], draw)
        if gamma is None:
            plausible = count_own_omega(counts, chosen[real], levels[omegas[real]])
        else:
            own = seeds[chosen[real]]
            plausible = count_hidden_omega(model, counts, candidates, own, gamma=gamma)
        # The test of a dummy is made too, and thrown away: thresholds do not tell how many.
        everyone = np.zeros(BLOCK, dtype=np.int64)
        everyone[real] = plausible
        passed = mechanism.passes(everyone, block)[real] & mechanism.possible(candidates)
        records = draw_possible(seedless, BLOCK, draw, mechanism.possible)
        records[real[passed]] = candidates[passed]
        return records

    return kernel


def _level_of_omega(model: NetworkModel) -> Counts:
    """Return, by ω, which of the model's levels a candidate kept."""
    level_of = {omega: at for at, omega in enumerate(reversed(model.omegas))}
    return np.array([level_of.get(omega, 0) for omega in range(max(model.omegas) + 1)])


def artefact_kernel(
    network: Network,
    histogram: SeedHistogram,
    omegas: Sequence[int],
    randomness: Randomness,
    possible: Possible = anything,
    *,
    records: int,
) -> Kernel:
    """Return generation from an artefact: kept prefixes in place of seeds, and no test.

    Each record draws its ω; then a kept prefix of length m - ω, in proportion to the noisy
    counts; then the other attributes. Where no prefix was kept for it, or ω = m, it draws all.

    Records of the first block, ``records`` if there are no more, share their distributions out
    among them. Among more than a quarter of a million the noise of drawing is far below all other
    noise.
    """
    m = len(network.order)
    choices = np.asarray(omegas)

    def draw(number: int, rng: Rng, *, manner: Manner) -> Codes:
        source = _Source(network=network, histogram=histogram, manner=manner)
        if len(choices) == 1:
            return _draw_records(source, m - omegas[0], number, rng)
        records = empty_codes(number, network.attributes)
        chosen = choices[rng.integers(len(choices), number)]
        for omega in omegas:
            which = np.flatnonzero(chosen == omega)
            records[which] = _draw_records(source, m - omega, len(which), rng)
        return records

    def kernel(block: int) -> Codes:
        rng = randomness.at("records", block)
        manner: Manner = "evenly" if block == 0 else "apart"
        number = min(BLOCK, records) if block == 0 else BLOCK
        return draw_possible(partial(draw, manner=manner), number, rng, possible)

    return kernel


def draw_possible(
    draw: Callable[[int, Rng], Codes], number: int, rng: Rng, possible: Possible
) -> Codes:
    """Return so many records that the constraints allow: others are drawn anew, whole.

    Raises:
        SchemaError: The model draws hardly any record that is allowed.
    """
    records = draw(number, rng)
    wrong = np.flatnonzero(~possible(records))
    tried, found = number, number - len(wrong)
    while len(wrong):
        if tried > _RAREST * (found + _SURE):
            raise SchemaError(
                f"the model draws a record that the constraints allow less than once in {_RAREST:,}"
                " times; check that they do not contradict each other, or relax them"
            )
        records[wrong] = draw(len(wrong), rng)
        tried += len(wrong)
        left = wrong[~possible(records[wrong])]
        found += len(wrong) - len(left)
        wrong = left
    return records


@dataclass(frozen=True, kw_only=True)
class _Source:
    """What records are drawn from, and how."""

    network: Network
    histogram: SeedHistogram
    manner: Manner


def _draw_records(source: _Source, length: int, number: int, rng: Rng) -> Codes:
    """Return records that keep a prefix of ``length`` where one was kept, and draw the rest.

    Kept prefixes have their full share already. A record without one is drawn until its prefix is
    none of them, so that the suppressed share goes to suppressed prefixes; rarely, after many
    rounds, it may have any.
    """
    network, manner = source.network, source.manner
    if length == 0:
        return _draw_seedless(network, number, rng, manner=manner)
    records = empty_codes(number, network.attributes)
    columns = list(network.order[:length])
    kept = source.histogram.of_length(length)
    prefix = kept.draw(number, rng, evenly=manner == "evenly")
    free = np.flatnonzero(prefix < 0)
    if len(kept.prefixes):
        for at, column in enumerate(columns):
            # Those of -1 have the first for a while: they are drawn below.
            kept.prefixes[:, at].take(prefix, out=records[:, column], mode="clip")
    for _ in range(_MOST_REDRAWN if len(free) else 0):
        part = empty_codes(len(free), network.attributes)
        network.draw(part, rng, kept=0, until=length, manner=manner)
        records[free] = part
        free = free[kept.holds(part[:, columns])]
        if not len(free):
            break
    network.draw(records, rng, kept=length, manner=manner)
    return records


def _draw_seedless(network: Network, number: int, rng: Rng, *, manner: Manner = "apart") -> Codes:
    """Return records that keep nothing of anybody."""
    records = empty_codes(number, network.attributes)
    network.draw(records, rng, kept=0, manner=manner)
    return records


def _only(records: Codes, wanted: Mask) -> Codes:
    """Return some records, columns contiguous; if all are wanted, without a copy."""
    return records if wanted.all() else np.asfortranarray(records[wanted])


def _require_seeds(mechanism: Mechanism) -> None:
    if not len(mechanism.seeds):
        raise BudgetError("there are no seeds to draw from: use a mode without them")


def _prefix_counts(mechanism: Mechanism, model: NetworkModel) -> PrefixCounts:
    return PrefixCounts.of(mechanism.seeds, model.network.order, model.kept, _sizes(model))


def _sizes(model: NetworkModel) -> list[int]:
    return [attribute.size for attribute in model.network.attributes]


def _propose(
    mechanism: Mechanism, model: GenerativeModel, block: int, size: int
) -> tuple[Codes, Codes]:
    """Return a block of seeds, uniform and with replacement, and a candidate for each."""
    chosen = mechanism.randomness.at("seeds", block).integers(len(mechanism.seeds), size)
    own = mechanism.seeds[chosen]
    return own, model.propose(own, mechanism.randomness.at("candidates", block))


def collect(
    blocks: Iterable[Codes], *, records: int, block_size: int, max_attempts: int
) -> Iterator[Codes]:
    """Yield released records until there are ``records`` of them, and not one more.

    Raises:
        BudgetError: ``max_attempts`` candidates did not suffice. How many passed is
            confidential, and not said.
    """
    released, attempts = 0, 0
    for block in blocks:
        attempts += block_size
        wanted = block[: records - released]
        released += len(wanted)
        yield wanted  # an empty one too: whoever takes them may want to stop
        if released == records:
            return
        if attempts >= max_attempts:
            break
    raise BudgetError(
        f"{records:,} records were asked for, and too few of {attempts:,} candidates passed the "
        "deniability test and the constraints. Ask for a smaller k, draw more attributes (a larger "
        "omega), relax the constraints, or use a mode without seeds (--mode seedless)."
    )
