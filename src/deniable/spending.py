"""From the options of a run and its schema to its plan: what it will cost, before a row is read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from deniable.config import Config, Mode, parse_omega
from deniable.data.schema import Schema
from deniable.errors import BudgetError, ConfigError
from deniable.model.correlation import entropy_queries
from deniable.privacy.composition import Guarantee, sequential
from deniable.privacy.ledger import Part
from deniable.privacy.moments import TableModel
from deniable.privacy.parts import Facts
from deniable.privacy.plan import Plan, make_plan, split_of
from deniable.privacy.threshold import RandomizedTest, best_test, plan_test
from deniable.privacy.units import of_unit, per_row

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
        unit: The column that says whose row it is.
        rows: The most rows of one unit that are used.
        draft: What the schema has cost already.
    """

    mode: Mode
    omegas: tuple[int, ...] | None
    fractions: Mapping[Part, float] | None
    noise: Plan
    test: RandomizedTest | None = None
    unit: str | None = None
    rows: int = 1
    draft: Guarantee | None = None

    @property
    def cost(self) -> Guarantee:
        """(ε, δ) of all that is done to the data, for one unit, the schema's draft included."""
        run = of_unit(self.noise.cost, rows=self.rows)
        return run if self.draft is None else sequential([run, self.draft])


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
    config = settle(config, schema)
    mode = config.mode or "one-shot"
    if config.profile == "paper" and mode == "one-shot":
        raise ConfigError(
            "the paper has no one-shot release: leave --profile paper out, or say --mode "
            "randomized, tested or seedless"
        )
    omegas = _omegas(schema, config, mode)
    fractions = _fractions(config, mode)
    draft = _draft(schema)
    limit = per_row(_left(config, draft), rows=schema.max_rows_per_unit)
    test = None
    if mode == "randomized" and config.epsilon < float("inf"):
        test = _test(limit, config, omegas, records)
    facts = Facts(
        limit=limit,
        names=schema.names,
        queries=_queries(schema, config),
        sizes=schema.sizes if config.uses_pairs else (),
        seeds_share=config.seeds_share,
        values_share=config.values_share,
        models=_models(schema, config),
        rows_max=config.rows_max or schema.rows_max,
        lengths=_lengths(schema, omegas) if mode == "one-shot" else 0,
        fractions=fractions,
        test=test.spend if test else None,
        of_paper=config.profile == "paper",
    )
    return RunPlan(
        mode=mode,
        omegas=omegas,
        fractions=fractions,
        noise=make_plan(facts),
        test=test,
        unit=schema.unit,
        rows=schema.max_rows_per_unit,
        draft=draft,
    )


def settle(config: Config, schema: Schema) -> Config:
    """Return the options with an estimator that can learn the schema, where none was given."""
    summed = any(attribute.model != "histogram" for attribute in schema.attributes)
    if not summed or config.estimator is not None:
        return config
    return replace(config, estimator="norm-sub")


def _lengths(schema: Schema, omegas: tuple[int, ...] | None) -> int:
    """Return how many prefix lengths are kept of seeds; one where ω is chosen later."""
    return 1 if omegas is None else sum(omega < len(schema.names) for omega in omegas)


def _draft(schema: Schema) -> Guarantee | None:
    """Return what the schema has cost already."""
    if schema.draft is None:
        return None
    return Guarantee(epsilon=float(schema.draft.epsilon), delta=float(schema.draft.delta))


def _left(config: Config, draft: Guarantee | None) -> Guarantee:
    """Return what a bought draft of the schema leaves of what was asked for."""
    limit = Guarantee(epsilon=config.epsilon, delta=config.delta)
    if draft is None or config.epsilon == math.inf:
        return limit
    if draft.epsilon >= limit.epsilon or draft.delta >= limit.delta:
        raise BudgetError(
            f"the draft of the schema has cost ε = {draft.epsilon:g}, δ = {draft.delta:g} already, "
            "and nothing is left for the run. Ask for a larger ε and δ: they are the total."
        )
    left = Guarantee(epsilon=limit.epsilon - draft.epsilon, delta=limit.delta - draft.delta)
    return Guarantee(epsilon=left.epsilon * (1 - 1e-9), delta=left.delta * (1 - 1e-9))


def _models(schema: Schema, config: Config) -> tuple[TableModel, ...]:
    """Return how each attribute is learnt; refuse options that are for counts of values only."""
    summed = [attribute for attribute in schema.attributes if attribute.model != "histogram"]
    if not summed:
        return ()
    which = f'attribute "{summed[0].name}" has model = {summed[0].model}'
    if config.uses_pairs:
        raise ConfigError(
            f"{which}, which is not learnt from pairs: say --estimator norm-sub, or set model = "
            '"histogram" in the schema'
        )
    if config.parameters == "drawn":
        raise ConfigError(
            f"{which}, whose parameters are not drawn: leave parameters = drawn out, or set "
            'model = "histogram" in the schema'
        )
    return tuple(attribute.model for attribute in schema.attributes)


def _queries(schema: Schema, config: Config) -> int:
    """Return how many entropies structure learning asks for: none if the graph is not learnt."""
    if config.graph is not None or config.uses_pairs:
        return 0
    return len(entropy_queries(schema.attributes))


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
