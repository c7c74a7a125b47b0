"""Samplers of log-linear distributions draw what the distributions draw, to the last record."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model import effect_tables, packed_indices
from deniable.model import frequent_configurations as frequent
from deniable.model import loglinear_sampler as module
from deniable.model.loglinear_sampler import LogLinearSampler
from deniable.randomness import Keyed
from worlds import draw_by_words, loglinear_conditionals, property_test


@st.composite
def conditionals(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=0, max_size=4))
    return draw(loglinear_conditionals(values=draw(st.integers(1, 12)), groups=sizes))


def random_groups(conditional, key, records):
    rng = np.random.default_rng(key)
    sizes = [len(effect) for effect in conditional.effects]
    return [np.minimum(rng.geometric(0.4, records) - 1, size - 1) for size in sizes]


def keys_of(sampler, groups, records):
    keys = []
    for of_key in sampler.key_offsets():
        key = np.zeros(records, dtype=sampler._layout.dtype)
        for parent, offsets in of_key:
            key += offsets[groups[parent]]
        keys.append(key)
    return keys


def words_of(key, records):
    """Random words, some of them the first and the last ones."""
    words = Keyed(key).at("records").half_words(2 * records).reshape(records, 2).copy()
    words[: records // 4] = [[0, 2**32 - 1]]
    words[records // 4 : records // 2, 0] = 2**32 - 1 - words[records // 4 : records // 2, 1] % 3
    return words


def draws_alike(conditional, key, records=600):
    sampler, groups = LogLinearSampler(conditional), random_groups(conditional, key, records)
    words, keys = words_of(key, records), keys_of(sampler, groups, records)
    expected = draw_by_words(conditional, groups, words).tolist()
    return [sampler.draw(keys, words).tolist() == expected for _ in range(2)]


@property_test
@given(conditionals(), st.integers(0, 2**32))
def test_a_sampler_draws_what_the_distribution_draws(conditional, key):
    assert draws_alike(conditional, key) == [True, True]


@property_test
@given(conditionals(), st.integers(0, 2**32))
def test_with_tables_of_frequent_configurations_too(conditional, key):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frequent, "_MIN_SAMPLE_RECORDS", 300)
        patch.setattr(frequent, "_LOG2_CONFIGURATIONS", 2)
        patch.setattr(frequent, "_MIN_COVERAGE", 0.0)
        assert draws_alike(conditional, key) == [True, True]


@property_test
@given(conditionals(), st.integers(0, 2**32), st.sampled_from([1, 7, 100]))
@pytest.mark.slow
def test_batches_tables_and_keys_do_not_matter(conditional, key, batch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RECORDS_PER_BATCH", batch)
        patch.setattr(module, "_LOOK_UPS_PER_BATCH", 3 * batch)
        patch.setattr(effect_tables, "_MAX_CONFIGURATIONS", batch)
        patch.setattr(packed_indices, "_KEY_BITS", 4)
        patch.setattr(frequent, "_MIN_SAMPLE_RECORDS", 300)
        assert draws_alike(conditional, key, records=400) == [True, True]


def test_no_records_are_drawn_from_no_keys(monkeypatch):
    monkeypatch.setattr(frequent, "_MIN_SAMPLE_RECORDS", 0)
    conditional = _fixed()
    sampler = LogLinearSampler(conditional)
    keys = keys_of(sampler, random_groups(conditional, 1, 0), 0)
    assert sampler.draw(keys, words_of(1, 0)).tolist() == []


def test_a_sampler_can_be_sent_to_another_process():
    conditional = _fixed()
    sampler, groups = LogLinearSampler(conditional), random_groups(conditional, 2, 50)
    words = words_of(3, 50)
    first = sampler.draw(keys_of(sampler, groups, 50), words)
    again = pickle.loads(pickle.dumps(sampler))  # noqa: S301 - our own
    assert again.draw(keys_of(again, groups, 50), words).tolist() == first.tolist()


def _fixed():
    rng = np.random.default_rng(4)
    effects = tuple(rng.integers(-9_000, 9_000, (size, 5)).astype(np.int32) for size in (3, 4))
    return module.LogLinearConditional(
        np.zeros(5, dtype=np.int32), effects, np.arange(5), np.full(5, 2**32)
    )
