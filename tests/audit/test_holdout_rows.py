"""Control rows: an overlap is refused, rows that are equal by chance are not."""

import numpy as np
import pytest

from audited_tables import HOLDOUT, TABLE, codes_of, people
from deniable.audit.holdout_rows import packed_rows, require_disjoint, set_aside
from deniable.errors import DataError
from deniable.randomness import Keyed

pytestmark = pytest.mark.slow


def wide(rows, key):
    """Rows that nearly all differ."""
    return np.random.default_rng(key).integers(0, 50, (rows, 6)).astype(np.uint16)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_holdout_with_rows_of_the_table_is_refused(share):
    table, other = wide(2_000, 1), wide(1_000, 2)
    taken = int(share * len(other))
    other[:taken] = table[:taken]
    with pytest.raises(DataError, match="holdout has rows of the table"):
        require_disjoint(table, other, Keyed(1).at("split"))


def test_a_copy_of_the_table_is_refused_even_if_nearly_all_rows_have_equals():
    table = codes_of(TABLE)
    with pytest.raises(DataError, match="holdout has rows of the table"):
        require_disjoint(table, table[::-1], Keyed(1).at("split"))


@pytest.mark.parametrize("rows", [300, 3_000])
def test_samples_of_one_population_are_never_too_alike(rows):
    """Of 60 fresh pairs of samples, none is refused."""
    for key in range(60):
        table, other = codes_of(people(900, 2 * key)), codes_of(people(rows, 2 * key + 1))
        require_disjoint(table, other, Keyed(key).at("split"))


def test_rows_that_are_equal_by_chance_are_no_overlap():
    table, other = codes_of(people(3_000, 1)), codes_of(people(3_000, 2))
    assert len(np.unique(table, axis=0)) < 400  # nearly every row has equals
    require_disjoint(table, other, Keyed(1).at("split"))
    require_disjoint(codes_of(TABLE), codes_of(HOLDOUT), Keyed(1).at("split"))


def test_a_fifth_of_the_rows_is_set_aside():
    codes = wide(1_000, 3)
    kept, aside = set_aside(codes, Keyed(1).at("split"))
    assert (len(kept), len(aside)) == (800, 200)
    together = np.concatenate([kept, aside])
    assert sorted(map(tuple, together.tolist())) == sorted(map(tuple, codes.tolist()))


def test_packed_rows_are_equal_where_the_rows_are():
    rows = np.array([[1, 256], [0, 1], [1, 256]], dtype=np.uint16, order="F")
    packed = packed_rows(rows)
    assert packed[0] == packed[2] != packed[1]
    assert len(np.unique(packed_rows(rows[:, :0]))) == 1  # without columns, all are alike
