"""Array types: every code of the largest attribute fits."""

import numpy as np
import pytest

from deniable.arrays import CODE, MAX_DOMAIN_SIZE
from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute


def test_every_code_of_the_largest_attribute_fits():
    assert np.iinfo(CODE).max >= MAX_DOMAIN_SIZE - 1


def test_a_missing_code_counts_as_a_value():
    values = tuple(map(str, range(MAX_DOMAIN_SIZE)))
    assert Attribute(name="x", kind="categorical", values=values).size == MAX_DOMAIN_SIZE
    with pytest.raises(SchemaError, match="65,535"):
        Attribute(name="x", kind="categorical", values=values, missing=("",))
