"""Singling out and inferring: they find copies of rows, and nothing of fresh rows."""

import numpy as np
import pytest

from deniable.audit.inference_attacks import (
    AttackComparison,
    attack_attributes,
    attack_singling_out,
)
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from worlds import plain_attribute

ATTRIBUTES = [plain_attribute(f"column {i}", 12) for i in range(6)]


def wide(rows, key):
    return np.random.default_rng(key).integers(0, 12, (rows, 6)).astype(np.uint16)


def attacks(released, table, control):
    rng = Keyed(3).at("scan")
    return [
        attack_singling_out(released, table, control, rng),
        *attack_attributes(ATTRIBUTES, released, table, control, rng),
    ]


def test_a_copy_of_the_table_is_found_out():
    table, control = wide(500, 1), wide(500, 2)
    singling, inferring, *columns = attacks(table, table, control)
    assert all(found.shows_evidence for found in (singling, inferring, *columns))
    assert inferring.interval[0] > 0.1
    assert len(columns) == 6


def test_fresh_rows_of_the_population_give_no_evidence():
    """False alarms: 2.5 % each for a fixed key, so that the keys here were tried once."""
    for found in attacks(wide(500, 3), wide(500, 1), wide(500, 2))[:2]:
        assert not found.shows_evidence


@pytest.mark.parametrize(("off", "share"), [(5, 1.0), (6, 0.0)])
def test_numbers_count_as_inferred_if_they_are_close(off, share):
    """Of a range of 101 values, 5 are within 5 %."""
    number = Attribute(name="number", kind="integer", values=range(101))
    name = plain_attribute("name", 60)
    rows = np.stack([np.arange(60), np.arange(60)], axis=1).astype(np.uint16)
    released = rows.copy()
    released[:, 1] += off
    found = attack_attributes([name, number], released, rows, rows, Keyed(3).at("scan"))
    assert [each.name for each in found] == ["attribute inference", "name", "number"]
    assert found[2].table == share


def test_the_interval_is_that_of_agresti_and_caffo():
    table, control = np.repeat([1.0, 0.0], [30, 70]), np.repeat([1.0, 0.0], [20, 80])
    found = AttackComparison.of("x", table, control)
    p, q = 31 / 102, 21 / 102
    half = 1.959963984540054 * np.sqrt(p * (1 - p) / 102 + q * (1 - q) / 102)
    assert found.interval == pytest.approx((p - q - half, p - q + half))
    assert found.difference == pytest.approx(0.1)
    assert AttackComparison.read(found.document()) == found
