"""Frequent numbers and words of a private draft."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from deniable.drafting.description import DraftField
from deniable.drafting.frequent_numbers import (
    REASONS,
    is_skewed,
    seen_reasons,
    split_numbers,
    with_spikes,
)
from deniable.drafting.measured_column import Details
from deniable.drafting.type_histogram import WHOLE_INTERVALS
from noisy_columns import measured_column


def edges(field: DraftField) -> list[Any]:
    assert field.key == "bins"
    assert isinstance(field.value, Mapping)
    listed = field.value["edges"]
    assert isinstance(listed, list)
    return listed


def test_numbers_are_separated_from_texts():
    numbers, texts = split_numbers({"7": 3, " 2.50": 4, "oak": 5, "inf": 6, "1e300": 7})
    assert numbers == {Decimal(7): 3, Decimal("2.5"): 4}
    assert texts == {"oak": 5}


def test_words_are_seen_above_the_noise_only():
    cells = np.zeros(len(REASONS) + 5, dtype=np.int64)
    cells[REASONS.index("N")], cells[REASONS.index("x")] = 100, 30
    details = Details(missing=np.zeros(0, dtype=np.int64), cells=cells, texts={}, sigma=10.0)
    types = measured_column([1, 2, 3] * 300).types
    assert seen_reasons(details, types) == {"N": 100}
    cells[REASONS.index("N")] = 0
    assert seen_reasons(details, types) == {}


def test_a_word_needs_less_evidence_where_the_types_show_texts():
    cells = np.zeros(len(REASONS), dtype=np.int64)
    cells[REASONS.index("x")] = 30
    details = Details(missing=np.zeros(0, dtype=np.int64), cells=cells, texts={}, sigma=10.0)
    types = measured_column([*[1, 2, 3] * 300, *["x"] * 40]).types
    assert [*seen_reasons(details, types)] == ["x"]
    cells[REASONS.index("x")] = 20
    assert seen_reasons(details, types) == {}


def test_a_spike_in_a_wide_range_gets_a_bin_and_a_short_range_needs_none():
    fields = [DraftField("min", 0), DraftField("max", 9_999), DraftField("bins", {"digits": 2})]
    [*_, bins] = with_spikes(fields, [1_234, 70_000], 0, 9_999, None)
    assert {1_234, 1_235, 5_000} <= set(edges(bins))
    assert 70_000 not in edges(bins)
    assert with_spikes(fields, [], 0, 9_999, None) == fields
    assert with_spikes(fields[:2], [7], 0, 99, None) == fields[:2]
    [*_, bins] = with_spikes([DraftField("min", 0)], [150], 0, 9_999, 2)
    assert {Decimal("1.50"), Decimal("1.51")} <= set(edges(bins))


def test_the_first_ten_thousand_spikes_get_bins():
    """A schema has at most 65,535 values."""
    spikes = list(range(10, 60_000, 3))[::-1]
    [*_, bins] = with_spikes([DraftField("min", 0)], spikes, 0, 60_000, None)
    own = set(edges(bins))
    assert all({spike, spike + 1} <= own for spike in spikes[:10_000])
    assert not any({spike, spike + 1} <= own for spike in spikes[10_000:])


def test_a_long_tail_is_skewed():
    counts = np.zeros(len(WHOLE_INTERVALS), dtype=np.int64)
    first = WHOLE_INTERVALS.index((100, 199))
    counts[first : first + 5] = [500, 300, 100, 20, 5]
    assert is_skewed(counts, first, first + 4)
    counts[first + 4] = 2_000
    assert not is_skewed(counts, first, first + 4)
