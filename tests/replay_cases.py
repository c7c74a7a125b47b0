"""Schemas, unrelated tables and options for replays: see ``noise_replay``."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from deniable.schema.schema import Schema

Draws = np.random.Generator
Columns = dict[str, Any]

FEW_VALUES = """
format = 1
rows_max = 4_000

[[attribute]]
name = "trade"
type = "categorical"
values = ["kelpfarmer", "wheelwright", "tinsmith", "lacemaker"]
missing = ["?"]

[[attribute]]
name = "home"
type = "categorical"
values = ["houseboat", "windmill"]

[[attribute]]
name = "boats"
type = "integer"
min = 0
max = 5

[[attribute]]
name = "rank"
type = "ordered"
values = [1, 2, 3, 4, 5, 6]
buckets = { width = 2 }

[[attribute]]
name = "smoker"
type = "boolean"
"""

NUMBERS = """
format = 1
rows_max = 4_000

[[attribute]]
name = "income"
type = "integer"
min = 0
max = 9_999
bins = { digits = 2 }
heaps = [10, 100]
missing = ["", "NA"]

[[attribute]]
name = "weight"
type = "real"
min = 30
max = 130
decimals = 1
bins = { width = 5 }
outside = "clip"

[[attribute]]
name = "admitted"
type = "date"
min = 2020-01-01
max = 2020-12-31
bins = { width = 30 }
outside = "drop"

[[attribute]]
name = "ward"
type = "text"
values = ["A", "B"]
other = "C"
"""

MANY_COLUMNS = "format = 1\nrows_max = 1_000\n" + "".join(
    f'[[attribute]]\nname = "c{i}"\ntype = "integer"\nmin = 0\nmax = {3 + i % 5}\n'
    for i in range(14)
)

UNITS = """
format = 1
rows_max = 4_000
unit = "person"
max_rows_per_unit = 2

[[attribute]]
name = "person"
type = "identifier"
format = "P{:06d}"

[[attribute]]
name = "wave"
type = "constant"
value = 3

[[attribute]]
name = "years"
type = "integer"
min = 10
max = 69
outside = "drop"

[[attribute]]
name = "schooling"
type = "ordered"
values = ["none", "primary", "doctorate"]

[[attribute]]
name = "pay"
type = "integer"
min = 0
max = 9

[[attribute]]
name = "double pay"
type = "computed"
formula = "pay * 2"

[[constraint]]
forbid = { years = { below = 22 }, schooling = ["doctorate"] }
"""

SUMS = """
format = 1
rows_max = 4_000

[[attribute]]
name = "weight"
type = "real"
min = 30
max = 130
decimals = 1
bins = { width = 5 }
model = "regression"

[[attribute]]
name = "height"
type = "integer"
min = 100
max = 219
bins = { width = 10 }
model = "normal"
missing = ["NA"]

[[attribute]]
name = "sex"
type = "categorical"
values = ["f", "m"]
"""


def few_values(draws: Draws, n: int) -> Columns:
    trade = draws.choice(5, n, p=draws.dirichlet([1] * 5))
    home = (trade + draws.integers(0, 2, n)) % 2
    return {
        "trade": [["kelpfarmer", "wheelwright", "tinsmith", "lacemaker", None][i] for i in trade],
        "home": [["houseboat", "windmill"][i] for i in home],
        "boats": draws.binomial(5, draws.random(), n),
        "rank": 1 + draws.choice(6, n, p=draws.dirichlet([1] * 6)),
        "smoker": (home + draws.integers(0, 3, n)) > 1,
    }


def numbers(draws: Draws, n: int) -> Columns:
    """Incomes that heap or not, and some dates that the schema drops."""
    first = dt.date(2020, 1, 1)
    to_tens = draws.random(n) < draws.random()
    income = np.clip(draws.lognormal(draws.uniform(4, 8), 1, n), 0, 9_999).astype(int)
    income = np.where(to_tens, income // 10 * 10, income)
    known = draws.random(n) < draws.random()
    days = draws.integers(0, draws.integers(300, 600), n)
    return {
        "income": [int(x) if at else None for x, at in zip(income, known, strict=True)],
        "weight": draws.normal(draws.uniform(50, 110), draws.uniform(5, 40), n),
        "admitted": [first + dt.timedelta(days=int(day)) for day in days],
        "ward": draws.choice(["A", "B", "X", "Y"], n, p=draws.dirichlet([1] * 4)),
    }


def many_columns(draws: Draws, n: int) -> Columns:
    common = draws.integers(0, 4, n)
    shares = draws.random(14)
    return {
        f"c{i}": np.where(draws.random(n) < shares[i], common, draws.integers(0, 4 + i % 5, n))
        for i in range(14)
    }


def units(draws: Draws, n: int) -> Columns:
    """Several rows of some people; some rows that the schema drops."""
    return {
        "person": [f"P{i:06d}" for i in draws.integers(0, max(1, n // 2), n)],
        "wave": [3] * n,
        "years": draws.integers(0, draws.integers(30, 90), n),
        "schooling": draws.choice(["none", "primary", "doctorate"], n, p=draws.dirichlet([1] * 3)),
        "pay": draws.binomial(9, draws.random(), n),
    }


def sums(draws: Draws, n: int) -> Columns:
    height = draws.integers(100, draws.integers(120, 220), n)
    known = draws.random(n) < draws.random()
    return {
        "weight": np.clip(height * draws.random() + draws.normal(0, 9, n), 30, 130).round(1),
        "height": [int(x) if at else None for x, at in zip(height, known, strict=True)],
        "sex": draws.choice(["f", "m"], n),
    }


@dataclass(frozen=True)
class World:
    """A schema, and a way to draw unrelated tables of it."""

    schema: Schema
    columns: Callable[[Draws, int], Columns]

    def table(self, key: int, rows: int) -> pl.DataFrame:
        """Draw a table: its distribution differs from key to key, its types do not."""
        draws = np.random.default_rng(key)
        dtypes = pl.DataFrame(self.columns(np.random.default_rng(0), 40)).schema
        return pl.DataFrame(self.columns(draws, rows), schema=dtypes)


WORLDS = {
    "few values": World(Schema.parse(FEW_VALUES), few_values),
    "numbers": World(Schema.parse(NUMBERS), numbers),
    "many columns": World(Schema.parse(MANY_COLUMNS), many_columns),
    "units": World(Schema.parse(UNITS), units),
    "sums": World(Schema.parse(SUMS), sums),
}

# World and options of each replay of a learnt artefact.
LEARNT: dict[str, tuple[str, dict[str, Any]]] = {
    "omega chosen": ("few values", {"k": 20}),
    "omega chosen, split": (
        "few values",
        {"k": 20, "epsilon": 4.0, "data_use": "split", "estimator": "norm-sub"},
    ),
    "omega given": ("few values", {"k": 20, "omega": "2", "epsilon": 3.0}),
    "seedless": ("few values", {"mode": "seedless"}),
    "numbers": ("numbers", {"k": 10, "epsilon": 3.0}),
    "numbers, seedless, split": (
        "numbers",
        {"mode": "seedless", "data_use": "split", "estimator": "clip"},
    ),
    "three-way interactions": ("few values", {"mode": "seedless", "epsilon": 30.0}),
    "pairs are chosen": ("many columns", {"mode": "seedless", "epsilon": 0.3}),
    "log-linear, a target": (
        "many columns",
        {"mode": "seedless", "epsilon": 3.0, "max_cost": 4, "target": ["c3"]},
    ),
    "pairs are chosen, omega given": ("many columns", {"omega": "12", "k": 5, "epsilon": 0.5}),
    "units": ("units", {"k": 10, "epsilon": 4.0, "delta": 1e-6}),
    "norm-sub": ("few values", {"estimator": "norm-sub", "omega": "2", "k": 20}),
    "clip, drawn": ("units", {"estimator": "clip", "mode": "seedless", "parameters": "drawn"}),
    "norm-sub, omega chosen": ("numbers", {"estimator": "norm-sub", "k": 10, "epsilon": 3.0}),
    "a given graph": (
        "few values",
        {
            "graph": {"trade": [], "home": ["trade"], "boats": ["home"], "rank": [], "smoker": []},
            "k": 20,
            "data_use": "split",
        },
    ),
    "sums": ("sums", {"k": 10, "epsilon": 3.0, "omega": "1"}),
    "the paper's model": ("few values", {"profile": "paper", "mode": "seedless"}),
}

# The paper's modes test real seeds; their model is learnt from noisy answers like any other.
TESTED: dict[str, tuple[str, dict[str, Any]]] = {
    "tested": ("few values", {"mode": "tested", "k": 5}),
    "tested, split": (
        "numbers",
        {"mode": "tested", "k": 5, "data_use": "split", "estimator": "norm-sub"},
    ),
    "tested, the paper's": ("few values", {"mode": "tested", "profile": "paper", "omega": "2-4"}),
    "randomized": ("few values", {"mode": "randomized", "k": 300, "delta": 1e-5, "epsilon": 2.0}),
    "randomized, the paper's": (
        "units",
        {"mode": "randomized", "profile": "paper", "k": 300, "delta": 1e-5, "omega": "2"},
    ),
}
