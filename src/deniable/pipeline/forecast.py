"""Forecast of a run: which dependences will stand out from the noise. No row is read."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable.config import Config
from deniable.errors import ConfigError
from deniable.model.pairwise.noise_level import ColumnNoise, NoiseLevel, PairNoises, noise_level
from deniable.model.pairwise.table_layout import (
    apportion,
    choose_layout,
    choose_three_way,
    count_measured_pairs,
)
from deniable.pipeline.run_plan import RunPlan, resolve_options
from deniable.privacy.pairwise_budget import PairNoise, gaussian_sigma
from deniable.schema.schema import Schema

MOSTLY_NOISE = (
    "Most of what this run learns will be noise: relations between columns will be lost, or made "
    "up by chance. Use more rows, a larger ε (up to 10), or fewer columns; or name the columns "
    "that matter most by --target."
)
_MAX_ROWS = 2**53


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a run is expected to keep, from public facts alone.

    Attributes:
        rows: The number of rows: given, or a guess.
        is_guess: Whether it is the schema's or the option's ``rows_max``.
        level: The noise level of all columns and pairs.
        targets: The columns that were named as those that matter most.
        target_level: The noise level of the pairs with these columns; None without any.
    """

    rows: int
    is_guess: bool
    level: NoiseLevel
    targets: tuple[str, ...] = ()
    target_level: NoiseLevel | None = None

    @cached_property
    def warning(self) -> str:
        """Warn that most of the run will be noise; "" otherwise."""
        return MOSTLY_NOISE if self.level.is_mostly_noise else ""

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The forecast in words."""
        source = ", a guess (rows_max); give --rows for another number" if self.is_guess else ""
        found = [f"Forecast for {self.rows:,} rows{source}:", *self.level.sentences]
        if self.target_level is not None:
            named = ", ".join(self.targets)
            pairs = (
                sentence.replace("Two columns", f"Two columns, one of them {named}").replace(
                    "All pairs together", f"All pairs with {named}"
                )
                for sentence in self.target_level.sentences_on_pairs
            )
            found += pairs
        return tuple(found)

    def document(self) -> dict[str, Any]:
        """The forecast for JSON: figures, and the same in words."""
        target = None if self.target_level is None else self.target_level.document()
        return {
            **self.level.document(),
            "rows": self.rows,
            "rows_guessed": self.is_guess,
            "with_target": target,
            "text": list(self.sentences),
            "warnings": [self.warning] if self.warning else [],
        }


def why_no_forecast(schema: Schema) -> str:
    """Say why a plan has no forecast, and what records are like; empty if it may have one."""
    if schema.unit is None:
        return ""
    most = schema.max_rows_per_unit
    those = "one row is" if most == 1 else f"{most} rows are"
    return (
        f'No forecast, because the schema names a unit: of each "{schema.unit}" at most {those} '
        "used, so the run may learn from far fewer rows than the table has, and how many is not "
        "known here. Records have one row a person: rows of one person do not come back together."
    )


def forecast_run(
    run: RunPlan, schema: Schema, config: Config, *, rows: int | None = None
) -> Forecast | None:
    """Forecast what a run will keep; None without noise, with a unit, or if there are no pairs.

    The distribution of a column's values is not public, so they are assumed to be equally frequent.
    Rare values, and values that never occur, make groups coarser than forecast, or leave some
    empty.

    Args:
        run: The plan.
        schema: The schema of the table.
        config: The options.
        rows: The number of rows; None: ``rows_max``.
    """
    if rows is not None and not 1 <= rows <= _MAX_ROWS:
        raise ConfigError(f"--rows {rows}: must lie between 1 and {_MAX_ROWS:,}")
    noise = run.privacy.pairs
    if noise is None or schema.unit is not None or any(law.name == "exact" for law in noise.values):
        return None
    config = resolve_options(config, schema)
    known = rows or config.rows_max or schema.rows_max
    targets = [schema.names.index(name) for name in config.target or ()]
    columns, pairs = _expected_noise(schema, noise, records=known, targets=targets)
    named = np.flatnonzero(np.isin(pairs.first, targets) | np.isin(pairs.second, targets))
    return Forecast(
        rows=known,
        is_guess=rows is None,
        level=noise_level(columns, pairs, records=known),
        targets=config.target or (),
        target_level=noise_level(columns, pairs.take(named), records=known) if targets else None,
    )


def _expected_noise(
    schema: Schema, noise: PairNoise, *, records: float, targets: list[int]
) -> tuple[list[ColumnNoise], PairNoises]:
    """The noise of columns and pairs, if all values of a column are equally frequent."""
    attributes = schema.attributes
    shares = [np.full(attribute.size, 1 / attribute.size) for attribute in attributes]
    layout = choose_layout(attributes, shares, noise, records=records, targets=targets)
    sigmas = map(gaussian_sigma, noise.values)
    columns = list(map(ColumnNoise.of, attributes, layout.bins, layout.groups, shares, sigmas))
    measured = {} if noise.interactions.name == "exact" else dict(layout.interaction_sigmas)
    # Which pairs will have two-way tables is not known: some of them, evenly spaced.
    number = min(count_measured_pairs(len(attributes), noise, records=records), len(measured))
    spaced = np.linspace(0, len(measured) - 1, number).astype(np.intp) if number else ()
    keys = list(measured)
    total = noise.table_count
    if choose_three_way(attributes, layout.bins, shares, noise, records=records, targets=targets):
        total -= noise.reserved_count  # three-way interactions in their place
    counts = apportion(total, dict.fromkeys([keys[at] for at in spaced], 1.0))
    sigma = gaussian_sigma(noise.tables)
    tables = {pair: sigma / math.sqrt(count) for pair, count in counts.items()}
    return columns, PairNoises.of(columns, measured, tables)
