"""polars is imported on first use, and a plan loads no heavy library."""

import subprocess
import sys

import pytest

from deniable.library_imports import pl

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
