"""From the options of a run and its schema to its plan: what it will cost, before a row is read."""

from collections.abc import Mapping
from dataclasses import dataclass

from deniable.config import Config, Mode, parse_omega
from deniable.data.schema import Schema
from deniable.errors import BudgetError, ConfigError
from deniable.model.correlation import entropy_queries
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import Part
from deniable.privacy.plan import Facts, Plan, make_plan, split_of
from deniable.privacy.threshold import RandomizedTest, best_test, plan_test

# Of ε and δ asked for, the share of N records tested one by one; the model has the rest.
TEST_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What a run will do to the data.

    Attributes:
        mode: What happens to the seeds.
        omegas: How many attributes are drawn; None: chosen later, from noisy values.
        fractions: The probability of each part; None: all rows serve every stage.
        noise: The noise and the cost of every stage.
        test: The randomized test, where the mode has one.
    """

    mode: Mode
    omegas: tuple[int, ...] | None
    fractions: Mapping[Part, float] | None
    noise: Plan
    test: RandomizedTest | None = None


def plan_run(schema: Schema, config: Config, *, records: int | None = None) -> RunPlan:
    """Return what a run will cost; refuse what cannot be met.

    Args:
        schema: The attributes.
        config: The options.
        records: How many records are asked for; only the randomized mode costs more for more.

    Raises:
        ConfigError: Options contradict each other or the schema.
        BudgetError: The guarantee asked for cannot be met.
    """
    mode = config.mode or "one-shot"
    if config.profile == "paper" and mode == "one-shot":
        raise ConfigError(
            "the paper has no one-shot release: leave --profile paper out, or say --mode "
            "randomized, tested or seedless"
        )
    omegas = _omegas(schema, config, mode)
    fractions = _fractions(config, mode)
    limit = Guarantee(epsilon=config.epsilon, delta=config.delta)
    test = None
    if mode == "randomized" and config.epsilon < float("inf"):
        test = _test(limit, config, omegas, records)
    lengths = 0
    if mode == "one-shot":
        m = len(schema.names)
        lengths = 1 if omegas is None else sum(omega < m for omega in omegas)
    facts = Facts(
        limit=limit,
        names=schema.names,
        queries=0 if config.graph is not None else len(entropy_queries(schema.attributes)),
        rows_max=config.rows_max or schema.rows_max,
        lengths=lengths,
        fractions=fractions,
        test=test.spend if test else None,
        of_paper=config.profile == "paper",
    )
    return RunPlan(mode=mode, omegas=omegas, fractions=fractions, noise=make_plan(facts), test=test)


def _omegas(schema: Schema, config: Config, mode: Mode) -> tuple[int, ...] | None:
    """Return the ω that were asked for, checked against the schema and the mode."""
    m = len(schema.names)
    omegas = parse_omega(config.omega)
    if mode == "seedless":
        if omegas not in (None, (m,)):
            raise ConfigError(
                f"--mode seedless draws all attributes: leave --omega out, or say {m}"
            )
        return (m,)
    if omegas is not None and omegas[-1] > m:
        raise ConfigError(f"--omega {config.omega}: the schema has only {m} attributes")
    if m == 1:
        return (1,)
    return omegas


def _fractions(config: Config, mode: Mode) -> Mapping[Part, float] | None:
    if config.data_use == "whole":
        return None
    return split_of(seeds=mode != "seedless", of_paper=config.profile == "paper")


def _test(
    limit: Guarantee, config: Config, omegas: tuple[int, ...] | None, records: int | None
) -> RandomizedTest:
    """Return the randomized test of every record asked for."""
    if records is None:
        raise ConfigError("--mode randomized costs more for more records: say --records")
    one_range = config.omega_known or (omegas is not None and len(omegas) == 1)
    part = limit
    if config.data_use == "whole":
        part = Guarantee(epsilon=TEST_SHARE * limit.epsilon, delta=TEST_SHARE * limit.delta)
    if config.profile == "paper":
        found = best_test(
            limit.delta,
            records=records,
            k=config.k,
            gamma=1.0 if one_range else config.gamma,
            epsilon0=config.epsilon0,
            t=config.t,
        )
        if found is None:
            raise BudgetError(
                f"k = {config.k} is too small for {records:,} records at δ = {limit.delta:g}: no t "
                "fits Theorem 1. Ask for a larger k or δ, or for fewer records."
            )
        return found
    return plan_test(
        part,
        records=records,
        k=config.k,
        gamma=1.0 if one_range else config.gamma,
        epsilon0=config.epsilon0,
        t=config.t,
    )
