"""Every stage of every plan is explained; only the noise of counts is in rows."""

import pytest

from deniable.config import Config
from deniable.pipeline.plan_report import report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.studio.stage_words import findings, is_in_rows


def stages_of(schema, **given):
    config = Config.assemble(given)
    run = plan_run(schema, config, records=100)
    return report_plan(run, schema, config, compares_modes=False)["stages"]


@pytest.mark.parametrize(
    "given", [{}, {"mode": "seedless"}, {"mode": "tested"}, {"estimator": "norm-sub"}]
)
def test_every_stage_has_words(small_schema, given):
    stages = stages_of(small_schema, **given)
    assert stages
    assert [each["what"] for each in stages if not findings(each["what"])] == []
    assert findings("something else") == ""


def test_scaled_sums_are_not_in_rows(small_schema):
    stages = stages_of(small_schema)
    counts = {each["what"].split(" of ")[0] for each in stages if is_in_rows(each["what"])}
    assert counts == {"values", "pairs", "seed prefixes"}
