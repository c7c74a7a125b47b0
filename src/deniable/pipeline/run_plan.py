"""The plan of a run: the noise and the cost of every stage, before a row is read.

It is the single source of the privacy cost for ``plan``, ``synthesize`` and the certificate.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from deniable.config import Config, Mode, parse_omega
from deniable.errors import BudgetError, ConfigError, SchemaError
from deniable.html import notebook_summary
from deniable.model.graph import Graph, drawing_order
from deniable.model.paper.correlation import entropy_queries
from deniable.privacy.calibration import PublicFacts
from deniable.privacy.composition import Guarantee, row_limit, sequential_composition, unit_cost
from deniable.privacy.draft_mechanism import DraftMechanism
from deniable.privacy.ledger import Part
from deniable.privacy.moment_budget import TableModel
from deniable.privacy.plan import (
    Plan,
    composes_with_draft,
    make_plan,
    require_record_count,
    split_fractions,
)
from deniable.privacy.randomized_test import RandomizedTest, cheapest_test, plan_randomized_test
from deniable.privacy.wording import protected_unit
from deniable.randomness import Randomness
from deniable.release.seed_histogram import require_listed
from deniable.schema.schema import Schema, find_target_fault
from deniable.workers import Progress, no_progress

# The share of ε and δ for the randomized test of the records; the model has the rest.
TEST_SHARE = 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class RunPlan:
    """The stages of a run with their noise and cost.

    Attributes:
        mode: The use of the seeds.
        omegas: The numbers of drawn attributes, one in mode ``one-shot``; None: chosen later, from
            noisy values.
        fractions: The probability of each part; None: all rows serve every stage.
        privacy: The noise and the cost of every stage.
        test: The randomized test, where the mode has one.
        unit: The column that identifies the person.
        rows_per_unit: The largest number of rows of one unit that are used.
        draft: The cost of a private draft of the schema.
    """

    mode: Mode
    omegas: tuple[int, ...] | None
    fractions: Mapping[Part, float] | None
    privacy: Plan
    test: RandomizedTest | None = None
    unit: str | None = None
    rows_per_unit: int = 1
    draft: Guarantee | None = None

    def __repr__(self) -> str:
        cost = self.cost
        return f"RunPlan(mode={self.mode!r}, epsilon={cost.epsilon:g}, delta={cost.delta:g})"

    def _repr_html_(self) -> str:
        """Show the plan in a notebook."""
        omegas = "chosen from noisy values" if self.omegas is None else self.omegas
        facts = {
            "mode": self.mode,
            "ε of the whole run": f"{self.cost.epsilon:g}",
            "δ of the whole run": f"{self.cost.delta:g}",
            "protected": protected_unit(self.unit),
            "drawn attributes": omegas if isinstance(omegas, str) else ", ".join(map(str, omegas)),
            "stages with noise": len(self.privacy.entries),
        }
        return notebook_summary("Plan: no row was read", facts)

    @property
    def cost(self) -> Guarantee:
        """(ε, δ) of the whole run for one unit, the draft of the schema included."""
        run = unit_cost(self.privacy.cost, rows=self.rows_per_unit)
        if self.draft is None or self.privacy.draft is not None:
            return run
        return sequential_composition([run, self.draft])

    def ratio(self, part: str, other: str) -> float:
        """The expected size of a part relative to another, from public fractions."""
        if self.fractions is None:
            return 1.0
        shares = {str(name): share for name, share in self.fractions.items()}
        return shares.get(part, shares[other]) / shares[other]


def resolve_options(config: Config, schema: Schema) -> Config:
    """Resolve the estimator and the targets by the schema; refuse options that do not fit.

    If no estimator is given, choose one that can learn the schema. Targets among the options
    replace the schema's; an empty list removes them. Options that are resolved already stay as
    they are.

    Raises:
        ConfigError: A target is not a learnt column, the model has no pairs, or a data split has.
    """
    if config.estimator is None and any(a.model != "histogram" for a in schema.attributes):
        config = replace(config, estimator="norm-sub")
    if config.data_use == "split" and config.uses_pairs:
        raise ConfigError(
            "data_use = split needs one of the paper's estimators, and this run has pairs, which "
            "are counted in all rows: use --estimator norm-sub or --estimator clip, or leave "
            "--data-use split out"
        )
    if config.target is None:
        return replace(config, target=schema.target) if config.uses_pairs else config
    if config.target and (fault := find_target_fault(schema.columns, config.target)):
        raise ConfigError(fault)
    if config.target and not config.uses_pairs:
        raise ConfigError(
            f"target needs estimator = pairs, and this run has {config.chosen_estimator}: leave "
            "--target out, or use --estimator pairs"
        )
    return replace(config, target=tuple(dict.fromkeys(config.target)))


def plan_run(schema: Schema, config: Config, *, records: int | None = None) -> RunPlan:
    """Plan a run within the requested ε and δ.

    Args:
        schema: The schema of the table.
        config: The options.
        records: The number of records; the cost depends on it in mode ``randomized`` only.

    Raises:
        ConfigError: Options contradict each other or the schema.
        BudgetError: The requested guarantee cannot be met.
        SchemaError: A private draft has lost the section that states its cost.
    """
    if records is not None:
        require_record_count(records)
    config = resolve_options(config, schema)
    mode = _mode(config)
    omegas = _omegas(schema, config, mode)
    fractions = _fractions(config, mode)
    draft, mechanism = _draft(schema, config), _composed_draft(schema, config, mode)
    limit = _limit_after_draft(config, draft)
    if mechanism is not None:
        limit = Guarantee(epsilon=config.epsilon, delta=config.delta)
    limit = row_limit(limit, rows=schema.max_rows_per_unit)
    test = None
    if mode == "randomized" and config.epsilon < math.inf:
        test = _plan_randomized_test(limit, config, omegas, records)
    facts = PublicFacts(
        limit=limit,
        names=schema.names,
        queries=_count_entropies(schema, config),
        sizes=schema.sizes if config.uses_pairs else (),
        models=_models(schema, config),
        rows_max=config.rows_max or schema.rows_max,
        seeds=mode == "one-shot" and omegas != (len(schema.names),),
        fractions=fractions,
        test=test.spend if test else None,
        of_paper=config.profile == "paper",
        draft=mechanism,
    )
    return RunPlan(
        mode=mode,
        omegas=omegas,
        fractions=fractions,
        privacy=make_plan(facts),
        test=test,
        unit=schema.unit,
        rows_per_unit=schema.max_rows_per_unit,
        draft=draft,
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: its schema, options, plan and source of noise.

    Attributes:
        schema: The schema of the table.
        config: The options, with the estimator resolved.
        plan: The noise and the cost of every stage.
        randomness: The source of the noise: the operating system, except in tests.
        progress: Called with a stage, the work done and the total.
    """

    schema: Schema
    config: Config
    plan: RunPlan
    randomness: Randomness = field(repr=False)
    progress: Progress = field(default=no_progress, repr=False)


def _mode(config: Config) -> Mode:
    mode = config.mode or "one-shot"
    if config.profile == "paper" and mode == "one-shot":
        raise ConfigError(
            "the paper has no one-shot release: leave --profile paper out, or use --mode "
            "randomized, tested or seedless"
        )
    if config.engine == "spark":
        _require_counting_only(config, mode)
    return mode


def _require_counting_only(config: Config, mode: Mode) -> None:
    """Refuse what looks up single rows, which a cluster does not."""
    if mode == "randomized":
        what, other = "--mode randomized", "use --mode tested or one-shot"
    elif mode == "tested" and not config.omega_known:
        what, other = "a hidden ω (omega_known = false)", "leave omega_known out"
    else:
        return
    raise ConfigError(
        f"{what} is not available on Spark: its test needs the number of rows behind every "
        "candidate, also of combinations that few rows share, and these stay on the cluster. "
        f"Use --engine local, or {other}"
    )


def _draft(schema: Schema, config: Config) -> Guarantee | None:
    """The cost of a private draft of the schema.

    Raises:
        SchemaError: The schema was drafted privately, but no longer says at what cost.
    """
    if schema.draft is None:
        if schema.drafted_privately and not config.accept_drafted_schema:
            raise SchemaError(
                f"{len(schema.drafted_privately)} entries of the schema are of a private draft, "
                f'for example "{schema.drafted_privately[-1]}" (confirmed = "draft"), but the '
                "section [draft], which states what it cost, is missing. Restore the section as "
                "deniable init wrote it; or replace these entries by public knowledge and set "
                "confirmed = true; or pass --accept-drafted-schema (in Python, "
                "accept_drafted_schema=True); the manifest then lists them"
            )
        return None
    return Guarantee(epsilon=float(schema.draft.epsilon), delta=float(schema.draft.delta))


def _composed_draft(schema: Schema, config: Config, mode: Mode) -> DraftMechanism | None:
    """The noise of a private draft, if the run is composed with it (guarantee.md, Theorem 14).

    That needs a run of Gaussian noise on all rows, apart from a small share for the seed histogram,
    and a draft for single rows. Otherwise the cost of the draft is added.

    Raises:
        ConfigError: The schema states noise that is not that of the draft's own ε and δ.
    """
    draft = schema.draft
    if draft is None or draft.noise is None or not config.epsilon < math.inf:
        return None
    mechanism = DraftMechanism(**asdict(draft.noise))
    if not mechanism.is_that_of(Guarantee(epsilon=draft.epsilon, delta=draft.delta)):
        raise ConfigError(
            "mu, columns and text_delta under [draft] are not those of its epsilon and delta: "
            "restore the section as deniable init wrote it"
        )
    if not (config.uses_pairs and mode != "randomized" and schema.unit is None):
        return None
    fits = composes_with_draft(mechanism, attributes=len(schema.names), epsilon=config.epsilon)
    return mechanism if fits else None


def _limit_after_draft(config: Config, draft: Guarantee | None) -> Guarantee:
    """Subtract the cost of a private draft from the requested ε and δ."""
    limit = Guarantee(epsilon=config.epsilon, delta=config.delta)
    if draft is None or config.epsilon == math.inf:
        return limit
    if draft.epsilon >= limit.epsilon or draft.delta >= limit.delta:
        raise BudgetError(
            f"the private draft of the schema costs ε = {draft.epsilon:g}, δ = {draft.delta:g}, "
            "and nothing is left for the run. Use a larger ε (up to 10) and δ: they are the total."
        )
    left = Guarantee(epsilon=limit.epsilon - draft.epsilon, delta=limit.delta - draft.delta)
    # Rounded down, so that the composed total stays within the limit.
    return Guarantee(epsilon=left.epsilon * (1 - 1e-9), delta=left.delta * (1 - 1e-9))


def _models(schema: Schema, config: Config) -> tuple[TableModel, ...]:
    """The model of each attribute; refuse options that work with histograms only."""
    by_moments = [attribute for attribute in schema.attributes if attribute.model != "histogram"]
    if not by_moments:
        return ()
    which = f'attribute "{by_moments[0].name}" has model = {by_moments[0].model}'
    if config.uses_pairs:
        raise ConfigError(
            f"{which}, which is not learnt from pairs: use --estimator norm-sub, or set model = "
            '"histogram" in the schema'
        )
    if config.parameters == "drawn":
        raise ConfigError(
            f"{which}, whose parameters are not drawn: leave parameters = drawn out, or set "
            'model = "histogram" in the schema'
        )
    return tuple(attribute.model for attribute in schema.attributes)


def _count_entropies(schema: Schema, config: Config) -> int:
    """Count the entropies of structure learning: none if no graph is learnt."""
    if config.graph is not None or config.uses_pairs:
        return 0
    return len(entropy_queries(schema.attributes))


def _omegas(schema: Schema, config: Config, mode: Mode) -> tuple[int, ...] | None:
    """The requested values of ω, checked against the schema and the mode."""
    m = len(schema.names)
    omegas = parse_omega(config.omega)
    if mode == "seedless":
        if omegas not in (None, (m,)):
            raise ConfigError(
                f"--mode seedless draws all attributes: leave --omega out, or use {m}"
            )
        return (m,)
    if omegas is not None and omegas[-1] > m:
        raise ConfigError(f"--omega {config.omega}: the schema has only {m} attributes")
    if mode == "one-shot" and omegas is not None and len(omegas) > 1:
        raise ConfigError(
            f"--omega {config.omega}: a range is for --mode tested and randomized; one-shot takes "
            "one number or auto"
        )
    if m == 1:
        return (1,)
    if mode == "one-shot" and omegas is not None and omegas[0] < m:
        require_listed(m - omegas[0], _ordered_sizes(schema, config))
    return omegas


def _ordered_sizes(schema: Schema, config: Config) -> list[int]:
    """The number of values of each attribute, in the order of drawing if that is given.

    Otherwise ascending: of any order, this one has the fewest combinations at its beginning.
    """
    if config.order is not None:
        known = dict(zip(schema.names, schema.sizes, strict=True))
        return [known.get(name, 1) for name in config.order]
    if config.graph is not None:
        graph = Graph.from_names(schema.names, config.graph)
        return [schema.sizes[i] for i in drawing_order(graph, schema.sizes)]
    return sorted(schema.sizes)


def _fractions(config: Config, mode: Mode) -> Mapping[Part, float] | None:
    if config.data_use == "whole":
        return None
    return split_fractions(seeds=mode != "seedless", of_paper=config.profile == "paper")


def _plan_randomized_test(
    limit: Guarantee, config: Config, omegas: tuple[int, ...] | None, records: int | None
) -> RandomizedTest:
    """Plan the randomized test of every record."""
    if records is None:
        raise ConfigError("--mode randomized costs more for more records: give --records")
    one_range = config.omega_known or (omegas is not None and len(omegas) == 1)
    test_limit = limit
    if config.data_use == "whole":
        test_limit = Guarantee(epsilon=TEST_SHARE * limit.epsilon, delta=TEST_SHARE * limit.delta)
    if config.profile == "paper":
        found = cheapest_test(
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
                "fits Theorem 1. Use a larger k or δ, or fewer records."
            )
        return found
    return plan_randomized_test(
        test_limit,
        records=records,
        k=config.k,
        gamma=1.0 if one_range else config.gamma,
        epsilon0=config.epsilon0,
        t=config.t,
    )
