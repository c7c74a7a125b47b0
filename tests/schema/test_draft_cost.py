"""The section [draft] of a schema: cost and noise of a private draft, parsed and written."""

import pytest

from deniable.errors import SchemaError
from deniable.schema.draft_cost import DraftCost, StatedDraftNoise, parse_draft

NOISE = {"mu": 0.03, "columns": 7, "text_delta": 1e-11}
COST = {"epsilon": 0.2, "delta": 1e-10}


@pytest.mark.parametrize("more", [{}, {"unit": "patient"}, NOISE])
def test_what_is_parsed_is_written_again(more):
    draft = parse_draft(COST | more)
    lines = draft.lines()
    assert lines[0] == "[draft]"
    written = dict(line.split(" = ", 1) for line in lines[1:])
    assert set(written) == set(COST | more)
    assert written["epsilon"] == "0.2"
    assert draft.stated == COST | (more if "mu" in more else {})


def test_whole_numbers_are_stated_as_decimals():
    """A manifest has decimals only."""
    assert repr(DraftCost(epsilon=1, delta=0).stated) == "{'epsilon': 1.0, 'delta': 0.0}"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("x", "must have epsilon and delta"),
        (COST | {"sigma": 1.0}, "no other key"),
        (COST | {"mu": 0.03}, "all of mu, columns and text_delta"),
        (COST | NOISE | {"mu": 0}, "as deniable init wrote them"),
        (COST | NOISE | {"mu": float("nan")}, "as deniable init wrote them"),
        (COST | NOISE | {"columns": 7.0}, "as deniable init wrote them"),
        (COST | NOISE | {"columns": 0}, "as deniable init wrote them"),
        (COST | NOISE | {"columns": 10**401}, "as deniable init wrote them"),
        (COST | NOISE | {"text_delta": 1.0}, "as deniable init wrote them"),
        (COST | NOISE | {"unit": "patient"}, "noise of single rows"),
    ],
)
def test_an_invalid_section_is_refused(table, message):
    with pytest.raises(SchemaError, match=message):
        parse_draft(table)


def test_noise_is_checked_wherever_it_comes_from():
    with pytest.raises(SchemaError, match="0 < mu"):
        StatedDraftNoise(mu=-1.0, columns=1, text_delta=0.0)
