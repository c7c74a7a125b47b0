"""Every stage of every plan is explained; only the noise of counts is in rows."""

import pytest

from deniable.studio.plan_consequences import consequences
from deniable.studio.plan_form import PlanForm
from deniable.studio.stage_words import findings, is_in_rows


@pytest.mark.parametrize(
    "sent", [{}, {"mode": "seedless"}, {"mode": "tested"}, {"estimator": "norm-sub"}]
)
def test_every_stage_has_words(small_schema, sent):
    stages = consequences(PlanForm.sent(sent), small_schema).report["stages"]
    assert stages
    assert [each["what"] for each in stages if not findings(each["what"])] == []
    assert findings("something else") == ""


def test_scaled_sums_are_not_in_rows(small_schema):
    stages = consequences(PlanForm.sent({}), small_schema).report["stages"]
    counts = {each["what"].split(" of ")[0] for each in stages if is_in_rows(each["what"])}
    assert counts == {"values", "pairs", "seed prefixes"}
