"""Back-off: each row is shrunk toward the coarser one it refines, according to its noise."""

import numpy as np
import pytest

import deniable
from deniable.demo import demo_schema, demo_table
from deniable.model.paper.back_off import back_off
from deniable.privacy.noise import norm_sub
from deniable.randomness import Keyed

SHAPE = (4, 3)


def world(key, records=60_000, values=20):
    """True rows, similar and spiky; and their exact counts."""
    rng = np.random.default_rng(key)
    common = rng.dirichlet(np.full(values, 0.3))
    rows = np.array([0.8 * common + 0.2 * rng.dirichlet(np.full(values, 0.3)) for _ in range(12)])
    sizes = rng.multinomial(records, rng.dirichlet(np.ones(12)))
    counts = np.array([rng.multinomial(n, p) for n, p in zip(sizes, rows, strict=True)])
    return rows, counts.astype(np.int64), sizes


def noisy(counts, sigma, key):
    generator = np.random.default_rng(key)
    return counts + np.rint(sigma * generator.standard_normal(counts.shape)).astype(np.int64)


def distance(rows, truth, sizes):
    return float((np.abs(rows - truth).sum(axis=1) * sizes).sum() / 2 / sizes.sum())


def test_many_records_without_noise_are_not_shrunk():
    _, counts, sizes = world(1, records=10**7)
    found = back_off(counts, SHAPE, 0.0)
    assert distance(found, counts / sizes[:, None], sizes) < 0.002


def test_rows_are_distributions_whatever_the_noise():
    _, counts, _ = world(2)
    for sigma in (0.0, 30.0, 3_000.0):
        found = back_off(noisy(counts, sigma, 3), SHAPE, sigma**2)
        assert (found >= 0).all()
        assert found.sum(axis=1) == pytest.approx(np.ones(12))


def test_a_row_without_records_is_that_of_its_coarser_table():
    _, counts, _ = world(4)
    counts[5] = 0
    found = back_off(counts, SHAPE, 0.0)
    coarser = back_off(counts.reshape(4, 3, -1).sum(axis=1), (4,), 0.0)
    assert found[5] == pytest.approx(coarser[1])


def test_under_much_noise_all_rows_are_the_attribute_s_own():
    _, counts, _ = world(5, records=300)
    found = back_off(noisy(counts, 200.0, 6), SHAPE, 200.0**2)
    assert np.ptp(found, axis=0) == pytest.approx(np.zeros(20), abs=1e-3)


@pytest.mark.parametrize("key", range(5))
def test_it_is_nearer_to_the_truth_than_norm_sub(key):
    truth, counts, sizes = world(10 + key, records=30_000)
    seen = noisy(counts, 40.0, 20 + key)
    plain = norm_sub(seen)
    plain = plain / np.maximum(plain.sum(axis=1, keepdims=True), 1e-9)
    leaning = back_off(seen, SHAPE, 1600.0)
    assert distance(leaning, truth, sizes) < 0.95 * distance(plain, truth, sizes)


def test_a_release_by_back_off_passes_verify(tmp_path):
    options = {"estimator": "back-off", "noise": Keyed(1), "mode": "seedless"}
    known = deniable.synthesize(demo_table(), demo_schema(), records=50, **options)
    assert known.certificate.parameters["estimator"] == "back-off"
    del options["noise"]
    release = deniable.synthesize(demo_table(), demo_schema(), records=50, **options)
    release.write(tmp_path / "o")
    assert deniable.verify(tmp_path / "o").passed
