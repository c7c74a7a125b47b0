"""Candidates made of real seeds, each tested before it may leave: the paper's way (Sec. 2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count as endless
from typing import Any

from deniable.arrays import Codes, Counts, Mask
from deniable.config import Config
from deniable.data.schema import Schema
from deniable.learning import learn_model
from deniable.model.generative import GenerativeModel
from deniable.model.synthesis import NetworkModel
from deniable.privacy.laws import Law, exact
from deniable.privacy.ledger import Ledger
from deniable.randomness import Randomness
from deniable.release.deniability import (
    ScanLimits,
    pass_deterministic_test,
    pass_randomized_test,
)
from deniable.release.mechanism import (
    BLOCK,
    SCAN_BLOCK,
    Kernel,
    Mechanism,
    Possible,
    Test,
    anything,
    collect,
    hidden_omega_kernel,
    own_omega_kernel,
    randomized_kernel,
    scan_kernel,
)
from deniable.spending import RunPlan
from deniable.workers import all_cores, in_order

# However few records are asked for, so many candidates are tried before giving up.
_FEWEST_ATTEMPTS = 2**22


@dataclass(frozen=True, kw_only=True)
class Road:
    """How candidates are made and tested, and what the manifest tells of it."""

    kernel: Kernel
    block_size: int
    omegas: tuple[int, ...]
    told: Mapping[str, Any]


def built_in_road(
    parts: dict[str, Codes],
    schema: Schema,
    config: Config,
    run: RunPlan,
    noise: Randomness,
    *,
    records: int,
) -> Road:
    """Return the road of the built-in model: learn it, then test against prefixes."""
    learnt = learn_model(parts, schema, config, run, noise)
    model = NetworkModel(learnt.network, learnt.omegas)
    law = run.test.law if run.test is not None else exact()
    mechanism = Mechanism(
        seeds=parts["seeds"],
        randomness=noise,
        passes=_test(config, run, noise, law),
        possible=_possible(schema),
    )
    kernel = _kernel(model, mechanism, config, run)
    # The bill of the tests is made of what the kernel was given: its k, its law, so many records.
    tests = [run.test.bill(law, k=config.k, records=records)] if run.test is not None else []
    Ledger((*learnt.spends, *tests)).require_equal(run.noise.spends)
    return Road(
        kernel=kernel,
        block_size=BLOCK,
        omegas=learnt.omegas,
        # σ follows from noisy values; with it the data holder can test every record again.
        told={"order": [schema.names[i] for i in learnt.network.order]},
    )


def own_road(
    model: GenerativeModel, seeds: Codes, schema: Schema, config: Config, noise: Randomness
) -> Road:
    """Return the road of a user's model: nothing is learnt, the test is a scan."""
    mechanism = Mechanism(
        seeds=seeds, randomness=noise, passes=_test_1(config), possible=_possible(schema)
    )
    limits = ScanLimits(
        max_plausible=config.max_plausible, max_check_plausible=config.max_check_plausible
    )
    return Road(
        kernel=scan_kernel(mechanism, model, gamma=config.gamma, limits=limits),
        block_size=SCAN_BLOCK,
        omegas=(len(schema.names),),
        told={},
    )


def release_from(
    road: Road, records: int, config: Config, internal: dict[str, int]
) -> Iterator[Codes]:
    """Yield what passes, block by block, on every core, until there is enough of it."""
    proposed = in_order(road.kernel, endless(), workers=config.workers or all_cores())
    return collect(
        _tallied(proposed, road.block_size, internal),
        records=records,
        block_size=road.block_size,
        max_attempts=max(_FEWEST_ATTEMPTS, config.max_attempts * records),
    )


def _tallied(blocks: Iterator[Codes], block_size: int, internal: dict[str, int]) -> Iterator[Codes]:
    """Pass blocks on, and note for the data holder how many candidates there were and passed."""
    internal |= {"candidates": 0, "passed": 0}
    for block in blocks:
        internal["candidates"] += block_size
        internal["passed"] += len(block)
        yield block


def _kernel(model: NetworkModel, mechanism: Mechanism, config: Config, run: RunPlan) -> Kernel:
    """Return Mechanism 1 for the built-in model, with the test of this mode."""
    hidden = not (config.omega_known or len(model.omegas) == 1)
    if run.mode == "randomized":
        # Without noise nothing is promised, but there must be somebody to draw.
        dummies = run.test.dummies if run.test is not None else int(not len(mechanism.seeds))
        gamma = config.gamma if hidden else None
        return randomized_kernel(mechanism, model, dummies=dummies, gamma=gamma)
    if hidden:
        return hidden_omega_kernel(mechanism, model, gamma=config.gamma)
    return own_omega_kernel(mechanism, model)


def _test(config: Config, run: RunPlan, noise: Randomness, law: Law) -> Test:
    """Return the deniability test of this mode."""
    if run.mode != "randomized":
        return _test_1(config)

    def passes(plausible: Counts, block: int) -> Mask:
        rng = noise.at("threshold", block)
        return pass_randomized_test(plausible, rng, k=config.k, law=law)

    return passes


def _test_1(config: Config) -> Test:
    return lambda plausible, _: pass_deterministic_test(plausible, k=config.k)


def _possible(schema: Schema) -> Possible:
    return schema.rules.possible if schema.rules else anything
