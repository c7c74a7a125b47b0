"""Mechanism 1 of the paper: seed, candidate, deniability test, release (``def:mechanism``).

A kernel turns the number of a block into the records that the block releases. Blocks are
independent, so any number of workers may run them; ``collect`` takes records in the order of the
blocks until there are enough.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import CODE, Codes, Counts, Mask
from deniable.counting.local import local_codes
from deniable.counting.prefix_counts import FrequentPrefixes, PrefixCounts, SeedGroups
from deniable.counting.rows import Rows
from deniable.errors import BudgetError, InvariantError
from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
from deniable.randomness import Randomness, Rng
from deniable.release.deniability_test import (
    ScanLimits,
    count_hidden_omega,
    count_own_omega,
    pass_deterministic_test,
    scan_plausible_seeds,
)
from deniable.release.generation import (
    BLOCK,
    Feasible,
    Kernel,
    always_feasible,
    draw_feasible,
    draw_seedless,
)

# Privacy Test 1 or 2: from k' of each candidate, and the number of the block, to those that pass.
DeniabilityTest = Callable[[Counts, int], Mask]

# Candidates of a block of the scan, which holds a matrix of candidates by seeds.
SCAN_BLOCK = 2**9


@dataclass(frozen=True, kw_only=True)
class SeedMechanism:
    """The parts of Mechanism 1. The seeds are confidential.

    Attributes:
        seeds: The records of D_S.
        randomness: Draws seeds, candidates and the order of scans.
        passes: The deniability test.
        feasible: The constraints. They read a candidate alone, so filtering by them does not
            weaken the deniability of the others.
    """

    seeds: Rows = field(repr=False)
    randomness: Randomness
    passes: DeniabilityTest
    feasible: Feasible = always_feasible


def own_omega_kernel(
    seeds: Rows,
    model: NetworkModel,
    randomness: Randomness,
    *,
    k: int,
    feasible: Feasible = always_feasible,
) -> Kernel:
    """Make the kernel for the built-in model, each candidate tested under its own ω.

    A candidate passes Privacy Test 1 if at least k seeds share its prefix, whatever the rest of it
    is, and reads no more of its seed. So those that pass are drawn at once: a prefix that at least
    k seeds share, of any of the lengths, in proportion to its number of seeds. Such ω and prefix
    have the candidates that pass if ω and seed are uniform. A candidate that breaks a constraint is
    dropped, and all of it is drawn again.

    The engine counts prefixes; it needs no other access to the seeds.

    Args:
        seeds: The records of D_S.
        model: The built-in model.
        randomness: Draws prefixes and candidates.
        k: Number of seeds that must share a prefix.
        feasible: The constraints; as in ``SeedMechanism``.

    Privacy:
        Covers: each candidate that is returned: the exact number of its plausible seeds is at
            least k (guarantee.md, Theorem 6.1).
        Does not cover: whether any prefix is shared by k seeds; how many candidates break a
            constraint.
    """
    groups = _group_seeds(seeds, model, k=k)
    omegas = len(model.network.order) - groups.lengths

    def kernel(block: int) -> Codes:
        drawn = groups.draw(BLOCK, randomness.at("seeds", block))
        rng = randomness.at("candidates", block)
        candidates = model.propose_from(groups.rows, drawn, omegas[drawn], rng)
        return _select(candidates, feasible(candidates))

    return kernel


def _group_seeds(seeds: Rows, model: NetworkModel, *, k: int) -> SeedGroups:
    """Group the seeds by the prefixes that pass Privacy Test 1."""
    _require_seeds(seeds)
    order, lengths = model.network.order, [length for length in model.kept if length > 0]
    levels: list[FrequentPrefixes] = []
    if lengths:
        levels += seeds.frequent_prefixes(order, lengths, _sizes(model), floor=k)
    if model.kept[0] == 0:
        levels = [_all_seeds(seeds.number, k), *levels]
    groups = SeedGroups.of(levels, order, columns=len(order))
    if not pass_deterministic_test(groups.shared, k=k).all():
        raise InvariantError("the engine returned a prefix that fewer than k seeds share")
    return groups


def _all_seeds(number: int, floor: int) -> FrequentPrefixes:
    """The prefix of length 0, which all seeds share."""
    prefix, count = np.empty((1, 0), dtype=CODE), np.array([number], dtype=np.int64)
    return FrequentPrefixes(prefix, count).at_least(floor)


def hidden_omega_kernel(mechanism: SeedMechanism, model: NetworkModel, *, gamma: float) -> Kernel:
    """Make the kernel for the built-in model with a hidden ω: the test covers every ω."""
    _require_seeds(mechanism.seeds)
    seeds, counts = _counted(mechanism, model, purpose="a hidden ω")

    def kernel(block: int) -> Codes:
        own = seeds[mechanism.randomness.at("seeds", block).integers(len(seeds), BLOCK)]
        candidates = model.propose(own, mechanism.randomness.at("candidates", block))
        plausible = count_hidden_omega(model, counts, candidates, own, gamma=gamma)
        return _select(
            candidates, mechanism.passes(plausible, block) & mechanism.feasible(candidates)
        )

    return kernel


def scan_kernel(
    mechanism: SeedMechanism, model: GenerativeModel, *, gamma: float, limits: ScanLimits
) -> Kernel:
    """Make the kernel for any model: the test scans the seeds."""
    _require_seeds(mechanism.seeds)
    seeds = local_codes(mechanism.seeds, purpose="a model of your own")

    def kernel(block: int) -> Codes:
        own = seeds[mechanism.randomness.at("seeds", block).integers(len(seeds), SCAN_BLOCK)]
        candidates = model.propose(own, mechanism.randomness.at("candidates", block))
        rng = mechanism.randomness.at("scan", block)
        plausible = scan_plausible_seeds(
            model, seeds, candidates, own, rng, gamma=gamma, limits=limits
        )
        return _select(
            candidates, mechanism.passes(plausible, block) & mechanism.feasible(candidates)
        )

    return kernel


def randomized_kernel(
    mechanism: SeedMechanism, model: NetworkModel, *, dummies: int, gamma: float | None
) -> Kernel:
    """Make the kernel with Privacy Test 2, repaired by dummy seeds (guarantee.md, Theorem 4').

    Seeds are drawn from the table and from ``dummies`` dummy seeds, whose candidates always fail.
    A candidate that fails is replaced by a record drawn without a seed. So every candidate gives a
    record, and the number of failures is hidden, for tables of any size, empty ones included. A
    candidate that breaks a constraint counts as failed, which is post-processing.

    Args:
        mechanism: Its test must be the randomized one.
        model: The built-in model.
        dummies: The number of dummy seeds, at least t/γ for the t of the theorem.
        gamma: Width of the ranges if ω is hidden; None: each is tested under its own ω.
    """
    seeds, counts = _counted(mechanism, model, purpose="--mode randomized")
    randomness, levels = mechanism.randomness, _level_of_omega(model)

    def seedless(number: int, rng: Rng) -> Codes:
        return draw_seedless(model.network, number, rng)

    def kernel(block: int) -> Codes:
        rng = randomness.at("seeds", block)
        chosen = rng.integers(len(seeds) + dummies, BLOCK)
        omegas = model.choose_omegas(BLOCK, rng)
        real = np.flatnonzero(chosen < len(seeds))
        own = seeds[chosen[real]]
        draw = randomness.at("candidates", block)
        candidates = model.propose_from(own, np.arange(len(real)), omegas[real], draw)
        if gamma is None:
            plausible = count_own_omega(counts, own, levels[omegas[real]])
        else:
            plausible = count_hidden_omega(model, counts, candidates, own, gamma=gamma)
        # Dummies draw a threshold too, so that the number of draws does not reveal theirs.
        all_counts = np.zeros(BLOCK, dtype=np.int64)
        all_counts[real] = plausible
        passed = mechanism.passes(all_counts, block)[real] & mechanism.feasible(candidates)
        records = draw_feasible(seedless, BLOCK, draw, mechanism.feasible)
        records[real[passed]] = candidates[passed]
        return records

    return kernel


def _level_of_omega(model: NetworkModel) -> Counts:
    """Map each ω to the index of the prefix length that a candidate keeps."""
    level_of = {omega: at for at, omega in enumerate(reversed(model.omegas))}
    return np.array([level_of.get(omega, 0) for omega in range(max(model.omegas) + 1)])


def _select(records: Codes, wanted: Mask) -> Codes:
    """Select records, columns contiguous; without a copy if all are wanted."""
    return records if wanted.all() else np.asfortranarray(records[wanted])


def _require_seeds(seeds: Rows) -> None:
    if not seeds.number:
        raise BudgetError("there are no seeds to draw from: use --mode one-shot or seedless")


def _counted(
    mechanism: SeedMechanism, model: NetworkModel, *, purpose: str
) -> tuple[Codes, PrefixCounts]:
    """Return the seeds, and the exact number that shares any prefix."""
    seeds = local_codes(mechanism.seeds, purpose=purpose)
    return seeds, PrefixCounts.of(seeds, model.network.order, model.kept, _sizes(model))


def _sizes(model: NetworkModel) -> list[int]:
    return [attribute.size for attribute in model.network.attributes]


def collect(
    blocks: Iterable[Codes], *, records: int, block_size: int, max_attempts: int
) -> Iterator[Codes]:
    """Yield released records until there are ``records`` of them, and not one more.

    Raises:
        BudgetError: ``max_attempts`` candidates did not suffice. The number that passed is
            confidential and not reported.
    """
    released, attempts = 0, 0
    for block in blocks:
        attempts += block_size
        wanted = block[: records - released]
        released += len(wanted)
        yield wanted
        if released == records:
            return
        if attempts >= max_attempts:
            break
    raise BudgetError(
        f"{records:,} records were requested, and too few of {attempts:,} candidates passed the "
        "deniability test and the constraints. Use a smaller k, draw more attributes (a larger "
        "omega), relax the constraints, or use a mode without seeds (--mode seedless)."
    )
