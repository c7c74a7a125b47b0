"""A table with every type of column, and constraints."""

import numpy as np
import polars as pl

RICH_SCHEMA = """
format = 1
rows_max = 5_000
[[attribute]]
name = "id"
type = "identifier"
format = "P{:05d}"
[[attribute]]
name = "age"
type = "integer"
min = 0
max = 99
bins = { width = 10 }
[[attribute]]
name = "pay"
type = "integer"
min = 0
max = 999
bins = { width = 100 }
heaps = [10, 100]
missing = ["NA"]
[[attribute]]
name = "town"
type = "text"
values = ["Ulm", "Bonn"]
other = "elsewhere"
[[attribute]]
name = "grade"
type = "ordered"
values = ["poor", "fair", "good"]
missing = ["", "?"]
[[attribute]]
name = "since"
type = "date"
min = 2020-01-01
max = 2020-12-31
bins = { width = 61 }
[[attribute]]
name = "weight"
type = "real"
min = 0
max = 9.9
decimals = 1
bins = { width = 1 }
[[attribute]]
name = "smoker"
type = "boolean"
values = ["no", "yes"]
[[attribute]]
name = "country"
type = "constant"
value = "DE"
[[attribute]]
name = "months"
type = "computed"
formula = "12 * age"
[[constraint]]
forbid = { age = { below = 18 }, smoker = ["yes"] }
[[constraint]]
forbid = { town = ["Bonn"], smoker = ["yes"], grade = ["poor"] }
"""


def rich_table(rows: int = 1_500) -> pl.DataFrame:
    """Rows of the rich schema; pay depends on age and grade, most pays are round."""
    rng = np.random.default_rng(11)
    age = rng.integers(0, 100, rows)
    smoker = (rng.random(rows) < 0.4) & (age >= 18)
    grade = np.minimum(rng.integers(0, 3, rows) + (age > 60), 2)
    town = rng.choice(["Ulm", "Bonn", "Jena"], rows)
    grade = np.where((town == "Bonn") & smoker & (grade == 0), 1, grade)
    pay = np.clip(age * 6 + grade * 100 + rng.integers(0, 200, rows), 0, 999)
    pay = np.where(rng.random(rows) < 0.7, pay // 10 * 10, pay)
    since = np.datetime64("2020-01-01") + np.clip(age * 3 + rng.integers(0, 60, rows), 0, 365)
    return pl.DataFrame(
        {
            "id": [f"P{i:05d}" for i in range(rows)],
            "age": age,
            "pay": pl.Series(pay).set(pl.Series(rng.random(rows) < 0.1), None),
            "town": town,
            "grade": pl.Series([["poor", "fair", "good"][g] for g in grade]).set(
                pl.Series(rng.random(rows) < 0.1), None
            ),
            "since": since,
            "weight": np.round(np.clip(age / 12 + rng.random(rows), 0, 9.9), 1),
            "smoker": smoker,
            "country": ["DE"] * rows,
            "months": 12 * age,
        }
    )
