"""Fixtures of the reproduction tests."""

import pytest

from reproductions import made_up_cells


@pytest.fixture
def cells():
    """Measurements that make every statement of the paper true."""
    return made_up_cells()
