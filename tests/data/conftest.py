import pytest

from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema


@pytest.fixture
def people():
    """Three columns: a number, a text that may be missing, a number that may be missing."""
    return Schema(
        (
            Attribute(name="age", kind="integer", values=range(17, 97)).with_bucket_width(10),
            Attribute(name="job", kind="categorical", values=("cook", "", "a,b"), missing=("?",)),
            Attribute(name="kids", kind="integer", values=range(10), missing=("", "-8", "no")),
        )
    )
