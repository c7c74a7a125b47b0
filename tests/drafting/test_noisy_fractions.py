"""Columns of fractions in a private draft: decimals, bounds and frequent numbers."""

from decimal import Decimal

import numpy as np
import pytest

from deniable.drafting.noisy_fractions import draft_fractions
from drafted_columns import parse_column
from noisy_columns import measured_column, values_of


def drafted(cells):
    draft = draft_fractions(measured_column(cells))
    parse_column(draft)
    return draft.kind, values_of(draft)


@pytest.mark.parametrize(
    ("cells", "decimals"),
    [
        (np.random.default_rng(1).normal(50, 9, 3_000).round(1), 1),
        (np.random.default_rng(1).normal(50, 9, 3_000).round(3), 3),
        (np.random.default_rng(1).random(3_000) * 50, 2),
    ],
)
def test_fractions_have_the_decimals_of_most(cells, decimals):
    kind, found = drafted(cells)
    assert (kind, found["decimals"]) == ("real", decimals)
    assert found["min"] <= min(cells) + 20
    assert found["max"] >= np.quantile(cells, 0.98)
    assert found["min"] <= found["fallback"] <= found["max"]


def test_frequent_fractions_have_bins_of_their_own():
    draws = np.random.default_rng(1)
    rates = draws.choice([92.893, 93.444, 93.994], 2_000).tolist()
    _, found = drafted([*rates, *draws.uniform(90, 95, 300).round(3).tolist()])
    edges = set(found["bins"]["edges"])
    assert {Decimal("93.444"), Decimal("93.445"), Decimal("93.994")} <= edges


def test_missing_cells_and_texts_among_fractions_are_declared():
    cells = np.random.default_rng(1).normal(50, 9, 3_000).round(1).astype(str).tolist()
    _, found = drafted([*cells, *[None] * 200, *["N"] * 300])
    assert (found["missing"], found["fallback"]) == (["N", ""], "N")


def test_a_grid_that_doubles_cannot_tell_apart_is_coarsened():
    _, found = drafted(["0.25"] * 300 + ["90000000000000.25"] * 300)
    assert found["decimals"] < 2
