"""Marginals: bars, labels and shares."""

import numpy as np
import pytest

from deniable.evaluation.marginals import OTHER_VALUES, measure_marginals
from deniable.schema.attribute import Attribute


def test_marginals_are_shares_by_the_schemas_names(small_schema, small_codes):
    years, trade, home, *_ = measure_marginals(
        small_schema.attributes, small_codes, small_codes[:500]
    )
    assert home.labels == ("houseboat", "windmill")
    assert home.real == pytest.approx(np.bincount(small_codes[:500, 2]) / 500)
    assert home.released == pytest.approx(np.bincount(small_codes[:, 2]) / 2_000)
    assert trade.labels[-1] == "missing"
    assert years.is_number
    assert years.labels[0] == "20 to 21"
    assert len(years.labels) == 30
    assert sum(years.released) == pytest.approx(1)


def test_the_rarest_of_many_values_share_a_bar(rng):
    attribute = Attribute(
        name="c", kind="categorical", values=tuple(f"v{i}" for i in range(40)), missing=("",)
    )
    codes = np.minimum(rng.geometric(0.1, 500) - 1, 40)[:, None].astype(np.uint16)
    (found,) = measure_marginals([attribute], codes, codes)
    assert len(found.labels) == 14
    assert found.labels[-1] == OTHER_VALUES
    assert sum(found.released) == pytest.approx(1)
    assert found.released[0] == np.bincount(codes[:, 0]).max() / 500
