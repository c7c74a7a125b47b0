"""The tolerance for a model of another platform: its form, its distance, and what it permits."""

import numpy as np
import pytest

from deniable.errors import VerificationError
from deniable.release.artefact_evidence import describe_computer
from deniable.verification.refit import compare_tables, is_this_platform, require_near_table

SHAPE = [2, 3]
BINS = np.array([0, 0, 1, 2])
WITHIN = np.array([0.25, 0.75, 1.0, 1.0])


def fitted(key: int, size: float = 1.0) -> np.ndarray:
    """A table of two parents' effects, with values in bins; equal keys give equal effects."""
    rng = np.random.default_rng(key)
    one, two = rng.normal(size=(2, 1, 3)), rng.normal(size=(1, 3, 3))
    logits = (size * (one + two)).reshape(6, 3)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return shares[:, BINS] * WITHIN


def test_this_platform_has_a_valid_name():
    assert is_this_platform(describe_computer())
    assert not is_this_platform("numpy 2.0.1, scipy 1.14.0, aarch64 NEON ASIMD, BLAS neoversen1")
    for text in ("an abacus", "numpy 2, scipy 1, x\n", "numpy 2, scipy 1, a;b"):
        with pytest.raises(VerificationError, match="platform"):
            is_this_platform(text)


@pytest.mark.parametrize(("far", "exact", "passes"), [(0, True, True), (1e-15, True, False)])
def test_tables_of_this_platform_are_compared_exactly(far, exact, passes):
    table = fitted(1)
    if passes:
        assert compare_tables(table, table + far, exact=exact)
        return
    with pytest.raises(VerificationError, match="noisy counts"):
        compare_tables(table, table + far, exact=exact)
    assert not compare_tables(table, table + far, exact=False)


def test_a_table_with_slightly_other_effects_passes():
    require_near_table(fitted(1), fitted(1, 1.001), shape=SHAPE, bins=BINS)


@pytest.mark.parametrize(
    "other",
    [
        fitted(2),
        fitted(1, 1.5),
        fitted(1)[:, :3],
        np.where(np.arange(4) == 0, 0.0, fitted(1)),
        np.where(np.arange(6)[:, None] == 3, fitted(2), fitted(1)),
        np.full((6, 4), np.nan),
    ],
)
def test_a_table_with_other_effects_is_refused(other):
    with pytest.raises(VerificationError, match="noisy counts"):
        require_near_table(fitted(1), other, shape=SHAPE, bins=BINS)


@pytest.mark.parametrize("cells", [(0, 1), (2, 3), (0, 2)])
@pytest.mark.parametrize("row", [0, 5])
def test_a_single_moved_cell_is_refused(row, cells):
    """Between values of a bin, and between bins: the table loses the form of the model."""
    moved = fitted(1)
    moved[row, cells[0]] += 1e-4
    moved[row, cells[1]] -= 1e-4
    with pytest.raises(VerificationError, match="noisy counts"):
        require_near_table(fitted(1), moved, shape=SHAPE, bins=BINS)


def test_an_attribute_without_parents_has_a_form_too():
    table = fitted(1)[:1]
    require_near_table(table, table, shape=[], bins=BINS)
    moved = table.copy()
    moved[0, :2] += [1e-4, -1e-4]
    with pytest.raises(VerificationError, match="noisy counts"):
        require_near_table(table, moved, shape=[], bins=BINS)
