"""Results of runs as printed: the guarantee, what the noise left, what may be published."""

import json
import math
from pathlib import Path

import pytest

from deniable.cli.release_summary import (
    show_artefact,
    show_release,
    summarize_claim,
    summarize_kept,
)
from deniable.pipeline.api import learn
from small_runs import synthesize

WARNING = "WARNING: Most of what was learnt is noise"


def test_a_run_reminds_that_costs_add_up(capsys, small_table, small_schema):
    """Without a guarantee there is no cost; without an artefact, more records are not free."""
    for mode, epsilon, reminds, free in (
        ("seedless", 1.0, True, True),
        ("seedless", math.inf, False, False),
        ("tested", 1.0, True, False),
    ):
        options = {"k": 5, "omega": "3"} if mode == "tested" else {}
        release = synthesize(small_table, small_schema, mode, 5, epsilon=epsilon, **options)
        show_release(release, Path("o"), 5, quiet=False, as_json=False)
        printed = " ".join(capsys.readouterr().out.split())
        assert ("Costs add up: every other run on the same table" in printed) == reminds
        assert ("More records from the same artefact cost nothing" in printed) == free


def test_only_a_private_release_is_recommended_for_publication(capsys, small_table, small_schema):
    """Without noise there is nothing that could be published."""
    for epsilon, recommended in ((1.0, True), (math.inf, False)):
        release = synthesize(small_table, small_schema, "seedless", 5, epsilon=epsilon)
        show_release(release, Path("o"), 5, quiet=False, as_json=False)
        printed = capsys.readouterr().out
        assert printed.startswith("5 records in o\n")
        assert ("Publish o/" in printed) == recommended
        claim = summarize_claim(release.certificate)
        assert claim["epsilon"] == (
            "inf" if epsilon == math.inf else release.certificate.cost.epsilon
        )
        json.dumps(claim, allow_nan=False)


@pytest.mark.parametrize("rows", [2, 2_000])
def test_what_the_noise_left_is_printed_and_warned_of(capsys, small_table, small_schema, rows):
    """In words on a terminal, and as figures, words and warnings in JSON; both commands."""
    table = small_table.head(rows)
    release = synthesize(table, small_schema, "seedless", 5)
    artefact = learn(table, small_schema, mode="seedless")
    out = Path("o")
    for show in (
        lambda **more: show_release(release, out, 5, **more),
        lambda **more: show_artefact(artefact, out, **more),
    ):
        show(quiet=False, as_json=False)
        printed = " ".join(capsys.readouterr().out.split())
        assert "What the noise left, by the noisy counts alone: - A single value:" in printed
        found = "no dependence stands out" if rows == 2 else "of 10 pairs of columns show a depend"
        assert found in printed
        assert (WARNING in printed) == (rows == 2)
        show(quiet=False, as_json=True)
        answer = json.loads(capsys.readouterr().out)
        assert answer["kept"]["pairs"] <= 10
        assert answer["kept"]["text"][0].startswith("A single value:")
        assert len(answer["warnings"]) == (rows == 2)
        show(quiet=True, as_json=False)
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("mode", "epsilon"), [("seedless", math.inf), ("tested", 1.0)])
def test_without_noisy_pairs_nothing_is_said_of_them(
    capsys, small_table, small_schema, mode, epsilon
):
    options = {"k": 5, "omega": "3"} if mode == "tested" else {}
    release = synthesize(small_table, small_schema, mode, 5, epsilon=epsilon, **options)
    show_release(release, Path("o"), 5, quiet=False, as_json=False)
    assert "What the noise left" not in capsys.readouterr().out
    show_release(release, Path("o"), 5, quiet=False, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kept"], answer["warnings"]) == (None, [])
    if release.artefact is not None:
        assert summarize_kept(release.artefact) == {"kept": None, "warnings": []}
