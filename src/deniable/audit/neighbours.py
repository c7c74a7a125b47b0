"""Worst-case neighbouring tables of each mode: what an attacker would choose to see one row.

Nothing here is confidential: the tables are made up, from public options alone. A case has a base
table, known to the attacker, and targets whose presence is in question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from deniable.arrays import CODE, Codes
from deniable.config import Config
from deniable.errors import BudgetError, ConfigError
from deniable.pipeline.run_plan import RunPlan, plan_run
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

CaseMode = Literal["seedless", "one-shot", "tested", "randomized", "draft"]

# Made-up number of rows of the schema: it steers noise, never the guarantee.
_ROWS_MAX = 1_000
# Rows of the base table behind each value, so that noise does not merge values into one bin.
_ROWS_PER_VALUE = 330
# Rows of a base table of two values a column: enough for three-way interactions at the default ε
# and δ.
_ROWS_WITH_TRIPLES = 16_000
# Equal rows of a split table, whose number in each part shows how they were drawn.
_EQUAL_ROWS = 5_000
# Targets, and values of each column, of the case with many targets.
_MANY_TARGETS = 24
# Rows that a unit may have, and has at most, in its case.
_UNIT_ROWS, _UNIT_ROWS_GIVEN = 3, 5
# Records that the modes with real seeds release in a run, and their smallest k.
_TESTED_RECORDS, _RANDOMIZED_RECORDS, _RANDOMIZED_K = 60, 1, 200
# Rows of the table that is drafted.
_DRAFTED_ROWS = 2_000
UNIT_COLUMN = "person"


@dataclass(frozen=True, kw_only=True)
class NeighbourCase:
    """A pair of neighbouring tables, or one of each of several targets, and how they are used.

    Attributes:
        name: Name of the case, as in audit.json.
        mode: Release mode; "draft" for private drafts of a schema.
        words: What is compared, in a sentence.
        schema: The schema of the tables.
        options: The options of every run.
        base: The rows that are in every table.
        targets: The rows whose presence is in question; each is present or not.
        copies: Rows that a target adds: more than one if the unit is a person.
        used: Rows of those that a run may use.
        runs: Default number of runs with and without the target, each.
        complete: Share of runs that go all the way to the artefact; the others stop at the noisy
            counts, which is where the rows are read for the last time.
        records: Records that a run releases, in the modes with real seeds.
    """

    name: str
    mode: CaseMode
    words: str
    schema: Schema = field(repr=False)
    options: Mapping[str, Any]
    base: Codes = field(repr=False)
    targets: Codes = field(repr=False)
    copies: int = 1
    used: int = 1
    runs: int
    complete: float = 1.0
    records: int | None = None

    @property
    def plan(self) -> RunPlan:
        """The plan of every run: its noise, and its cost."""
        return plan_run(self.schema, Config.assemble(dict(self.options)), records=self.records)

    def rows(self, present: np.ndarray) -> Codes:
        """The rows of the table with some of the targets; without a unit's unused rows."""
        chosen = np.repeat(self.targets[present], self.used, axis=0)
        return np.concatenate([self.base, chosen]).astype(CODE)

    def frame(self, present: np.ndarray) -> pl.DataFrame:
        """The table with some of the targets, as a data frame of texts."""
        chosen = np.repeat(self.targets[present], self.copies, axis=0)
        codes = np.concatenate([self.base, chosen])
        columns = {
            attribute.name: pl.Series(attribute.values, dtype=pl.String).gather(codes[:, i])
            for i, attribute in enumerate(self.schema.attributes)
        }
        if self.schema.unit is not None:
            people = np.concatenate(
                [
                    np.arange(len(self.base)),
                    len(self.base) + np.repeat(np.flatnonzero(present), self.copies),
                ]
            )
            columns = {self.schema.unit: pl.Series(people).cast(pl.String), **columns}
        return pl.DataFrame(columns)


def make_schema(columns: int, values: int, *, unit: str | None = None) -> Schema:
    """A schema of categorical columns with as many values each."""
    names = tuple(f"v{i}" for i in range(values))
    attributes = tuple(
        Attribute(name=f"column_{i + 1}", kind="categorical", values=names) for i in range(columns)
    )
    if unit is None:
        return Schema(attributes, rows_max=_ROWS_MAX)
    return Schema(
        (Identifier(name=unit), *attributes),
        rows_max=_ROWS_MAX,
        unit=unit,
        max_rows_per_unit=_UNIT_ROWS,
    )


def diagonal_rows(number: int, columns: int) -> Codes:
    """Rows no two of which share a value in any column: row j has the value j + i in column i."""
    rows = np.arange(number)[:, None] + np.arange(columns)[None, :]
    return (rows % number).astype(CODE)


def all_cases(options: Mapping[str, Any]) -> list[NeighbourCase]:
    """List the cases of all modes, or of the mode and the data use among the options."""
    return possible_cases(options)[0]


def possible_cases(options: Mapping[str, Any]) -> tuple[list[NeighbourCase], list[str]]:
    """List the cases that the options allow, and why others are left out.

    Raises:
        ConfigError: No case is left, or an option names a column of another table.
        BudgetError: The options cannot meet ε and δ in the mode that they name.
    """
    wanted, data_use = options.get("mode"), options.get("data_use")
    if options.get("target"):
        raise ConfigError("--target names a column, and the tables of --mechanism are made up")
    ignored = ("mode", "data_use", "omega", "workers")
    common = {name: value for name, value in options.items() if name not in ignored}
    common |= {"workers": 1, "accept_large_delta": True}  # the tables are made up
    cases: list[NeighbourCase] = []
    left_out: list[str] = []
    for mode, makers in _OF_MODE.items():
        if wanted not in (None, mode):
            continue
        for make in makers:
            try:
                case = make(common)
                if data_use in (None, case.options.get("data_use", "whole")):
                    cases.append(_planned(case))
            except (BudgetError, ConfigError) as error:
                if wanted is not None:
                    raise
                left_out.append(f"{mode}: {error}")
    if left_out and not cases:
        raise ConfigError(f"these options allow no case. {left_out[0]}")
    if not cases:
        raise ConfigError(
            f"--mode {wanted} --data-use {data_use}: no worst-case tables; leave one of them out"
        )
    return cases, list(dict.fromkeys(left_out))


def _planned(case: NeighbourCase) -> NeighbourCase:
    """The case, if its options meet ε and δ; made-up tables have nothing to draft."""
    if case.mode != "draft":
        _ = case.plan
    return case


def _empty_and_one(common: Mapping[str, Any]) -> NeighbourCase:
    return NeighbourCase(
        name="empty and one row",
        mode="seedless",
        words="A table without rows, and the same with a single row.",
        schema=make_schema(3, 4),
        options={**common, "mode": "seedless", "data_use": "whole"},
        base=np.empty((0, 3), dtype=CODE),
        targets=np.array([[0, 1, 2]], dtype=CODE),
        runs=600,
        complete=0.5,
    )


def _alone(common: Mapping[str, Any]) -> NeighbourCase:
    # The base has the first two values of each column only.
    numbers = np.arange(_ROWS_WITH_TRIPLES)
    base = np.stack([numbers >> column & 1 for column in range(3)], axis=1).astype(CODE)
    return replace(
        _empty_and_one(common),
        name="alone in its cells",
        words="A table, and the same with a row whose values no other row has.",
        base=base,
        targets=np.array([[2, 3, 2]], dtype=CODE),
    )


def _many_targets(common: Mapping[str, Any]) -> NeighbourCase:
    values = _MANY_TARGETS
    rows = np.arange(_ROWS_PER_VALUE * values)
    return NeighbourCase(
        name="many targets",
        mode="seedless",
        words=f"A table with or without each of {values} rows that share no value, by independent "
        "coins; the attacker knows all other rows, also the other targets.",
        schema=make_schema(2, values),
        options={**common, "mode": "seedless", "data_use": "whole"},
        base=np.stack([rows % values, rows // values % values], axis=1).astype(CODE),
        targets=diagonal_rows(values, 2),
        runs=2_000,
        complete=0.02,
    )


def _unit(common: Mapping[str, Any]) -> NeighbourCase:
    case = _many_targets(common)
    return replace(
        case,
        name="people with many rows",
        words=f"A table with or without each of {len(case.targets)} people, by independent coins; "
        f"each has {_UNIT_ROWS_GIVEN} equal rows, of which {_UNIT_ROWS} are used.",
        schema=make_schema(2, len(case.targets), unit=UNIT_COLUMN),
        copies=_UNIT_ROWS_GIVEN,
        used=_UNIT_ROWS,
        runs=300,
        complete=0.05,
    )


def _split(common: Mapping[str, Any]) -> NeighbourCase:
    case = _many_targets(common)
    values = len(case.targets)
    equal = np.full((_EQUAL_ROWS, 2), values, dtype=CODE)  # a value that no other row has
    return replace(
        case,
        name="random split",
        mode="one-shot",
        words=f"{case.words} Each row serves one part by a secret draw of its own.",
        schema=make_schema(2, values + 1),
        options={
            "estimator": "norm-sub",
            **common,
            "mode": "one-shot",
            "data_use": "split",
            "omega": "1",
        },
        base=np.concatenate([case.base, equal]),
        runs=200,
        complete=1.0,
    )


def _prefix_case(
    common: Mapping[str, Any], *, targets: int, unit: str | None = None
) -> NeighbourCase:
    """Tables in which every target's prefix is certainly kept: k + 2 r rows share it."""
    case = NeighbourCase(
        name="kept prefix",
        mode="one-shot",
        words=f"A table with or without each of {targets} rows, by independent coins, whose "
        "prefixes are always kept: the noisy count of each is released.",
        schema=make_schema(2, targets, unit=unit),
        options={**common, "mode": "one-shot", "data_use": "whole", "omega": "1"},
        base=np.empty((0, 2), dtype=CODE),
        targets=diagonal_rows(targets, 2),
        runs=300,
    )
    law = case.plan.privacy.seeds
    radius = 0 if law is None else law.radius
    k = Config.assemble(dict(case.options)).k
    return replace(case, base=np.repeat(case.targets, k + 2 * radius + 1, axis=0))


def _kept_prefix(common: Mapping[str, Any]) -> NeighbourCase:
    return _prefix_case(common, targets=8)


def _people_of_kept_prefixes(common: Mapping[str, Any]) -> NeighbourCase:
    case = _prefix_case(common, targets=4, unit=UNIT_COLUMN)
    return replace(
        case,
        name="people in kept prefixes",
        words=f"A table with or without each of {len(case.targets)} people, by independent coins, "
        f"whose {_UNIT_ROWS_GIVEN} equal rows, of which {_UNIT_ROWS} are used, are in prefixes "
        "that are always kept.",
        copies=_UNIT_ROWS_GIVEN,
        used=_UNIT_ROWS,
    )


def _threshold(common: Mapping[str, Any]) -> NeighbourCase:
    """A row with which k rows share its prefix: it may be kept then, and never without."""
    case = _prefix_case(common, targets=4)
    k = Config.assemble(dict(case.options)).k
    return replace(
        case,
        name="prefix at the threshold",
        words="A table in which k - 1 rows share a prefix, which is then never kept, and one in "
        "which k do.",
        base=np.repeat(case.targets[:1], k - 1, axis=0),
        targets=case.targets[:1],
        runs=150,
    )


def _tested(common: Mapping[str, Any]) -> NeighbourCase:
    options = {**common, "mode": "tested", "omega": "2"}
    k = Config.assemble(options).k
    base = np.repeat(np.array([[0, 1, 2], [1, 2, 3]], dtype=CODE), [6 * k, k - 1], axis=0)
    return NeighbourCase(
        name="tested seeds",
        mode="tested",
        words="A table in which k - 1 rows share a prefix, and one in which k do. The mode "
        "promises plausible deniability of each record, and no differential privacy of the seeds.",
        schema=make_schema(3, 4),
        options=options,
        base=base,
        targets=np.array([[1, 2, 3]], dtype=CODE),
        runs=60,
        records=_TESTED_RECORDS,
    )


def _randomized(common: Mapping[str, Any]) -> NeighbourCase:
    options = {**common, "mode": "randomized", "omega": "2"}
    options.setdefault("k", _RANDOMIZED_K)
    k = Config.assemble(options).k
    return NeighbourCase(
        name="randomized test",
        mode="randomized",
        words="A table in which k - 1 rows share a prefix, and no others, and one in which k do.",
        schema=make_schema(3, 4),
        options=options,
        base=np.repeat(np.array([[1, 2, 3]], dtype=CODE), k - 1, axis=0),
        targets=np.array([[1, 2, 3]], dtype=CODE),
        runs=100,
        records=_RANDOMIZED_RECORDS,
    )


def _draft(common: Mapping[str, Any]) -> NeighbourCase:
    config = Config.assemble(dict(common))
    rows = np.arange(_DRAFTED_ROWS)
    return NeighbourCase(
        name="private draft",
        mode="draft",
        words="A table, and the same with a row whose values no other row has: the schema is "
        "drafted with differential privacy.",
        schema=make_schema(2, 4),
        options={"epsilon": config.epsilon, "delta": config.delta, "accept_large_delta": True},
        base=np.stack([rows % 2, rows // 2 % 3], axis=1).astype(CODE),
        targets=np.array([[3, 3]], dtype=CODE),
        runs=100,  # fewer do not prove what a draft without noise shows
    )


_OF_MODE: Mapping[str, tuple[Callable[[Mapping[str, Any]], NeighbourCase], ...]] = {
    "seedless": (_empty_and_one, _alone, _many_targets, _unit),
    "one-shot": (_kept_prefix, _people_of_kept_prefixes, _threshold, _split),
    "tested": (_tested,),
    "randomized": (_randomized,),
    "draft": (_draft,),
}


def find_case(name: str, options: Mapping[str, Any]) -> NeighbourCase:
    """Make one case again, by its name: in another process."""
    for case in all_cases(options):
        if case.name == name:
            return case
    raise BudgetError(f"there is no case {name}")
