"""Libraries are imported later, in part, or faster: none of it changes what they are."""

import gc
import subprocess
import sys

import pytest

from deniable.library_imports import load_compiled, pl, without_collection

SHOWN = """
import sys
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.config import Config
from deniable.schema.schema import Schema
schema = Schema.parse('''
format = 1
rows_max = 1000
[[attribute]]
name = "n"
type = "integer"
min = 0
max = 9
[[attribute]]
name = "c"
type = "categorical"
values = ["x", "y"]
''')
config = Config()
report_plan(plan_run(schema, config), schema, config, compares_modes=False)
heavy = {"dp_accounting", "pandas", "polars", "pyarrow", "scipy", "sklearn"}
print(*sorted(heavy & set(sys.modules)))
"""


def test_an_attribute_is_that_of_polars():
    import polars  # noqa: PLC0415 - what the lazy module stands for

    assert pl.Series is polars.Series
    assert pl.exceptions.PolarsError is polars.exceptions.PolarsError


@pytest.mark.slow
def test_a_plan_loads_no_heavy_library_but_numpy():
    shown = subprocess.run(
        [sys.executable, "-c", SHOWN], check=True, capture_output=True, text=True
    )
    assert shown.stdout.strip() == ""


def test_a_compiled_module_is_loaded_without_its_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "scipy.sparse", raising=False)
    assert hasattr(load_compiled("sparse", "_sparsetools"), "csr_matvecs")
    assert "scipy.sparse" not in sys.modules


@pytest.mark.parametrize("name", ["_sparsetools", "_no_such_module"])
def test_a_package_that_is_imported_already_is_to_be_used(name):
    import scipy.sparse  # noqa: F401, PLC0415 - what the test is about

    assert load_compiled("sparse", name) is None


def test_a_compiled_module_that_does_not_exist_is_not_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "scipy.sparse", raising=False)
    assert load_compiled("sparse", "_no_such_module") is None
    assert load_compiled("no_such_package", "_sparsetools") is None


def test_garbage_is_collected_again_after_imports():
    with without_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), without_collection():
        raise ImportError
    assert gc.isenabled()


def test_a_caller_that_has_switched_the_search_for_garbage_off_keeps_it_off():
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
