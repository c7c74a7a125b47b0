"""Report sections: the numbers and sentences for given findings."""

from dataclasses import replace

import pytest

from deniable.evaluation.distances import Distances
from deniable.evaluation.distinguishability import measure_distinguishability
from deniable.evaluation.ml_efficacy import measure_ml_efficacy
from deniable.evaluation.report_sections import (
    distances_section,
    distinguishability_section,
    method_section,
    ml_efficacy_section,
    pairs_section,
    subgroups_section,
)
from deniable.evaluation.subgroups import RarityBand, SubgroupFindings

pytestmark = pytest.mark.slow


def distances_of(columns):
    """All pairs of some columns; the pairs of later columns are further apart."""
    names = [(f"c{i}", f"c{j}") for j in range(columns) for i in range(j)]
    values = tuple(0.001 * int(second[1:]) for _, second in names)
    pairs = Distances(names=tuple(names), values=values, mean=0.1, interval=(0.0, 0.2))
    single = Distances(
        names=tuple((f"c{i}",) for i in range(columns)),
        values=(0.0,) * columns,
        mean=0.0,
        interval=(0.0, 0.0),
    )
    return {
        "attributes": dict.fromkeys(("released", "marginals", "reals"), single),
        "pairs": dict.fromkeys(("released", "marginals", "reals"), pairs),
    }


def test_distances_state_whether_the_reference_was_held_out(internal):
    findings = internal[0].findings
    assert "no held-out table was given" in distances_section(findings)
    held_out = distances_section(replace(findings, held_out=True))
    assert "no held-out table" not in held_out
    assert "that the release was not learnt from" in held_out


def test_a_large_heatmap_has_only_the_columns_with_the_largest_distances():
    small, large = pairs_section(distances_of(5)), pairs_section(distances_of(40))
    assert "Shown:" not in small
    assert "Shown: the 30 of 40 columns" in large
    drawn = large.partition("</svg>")[0]
    assert ">c39<" in drawn
    assert ">c0<" not in drawn


def test_private_classifiers_are_shown_for_two_classes_only(tables, small_schema, little):
    two, three = (
        ml_efficacy_section(measure_ml_efficacy(tables, small_schema, little, target=target))
        for target in ("home", "pet")
    )
    assert "predict home" in two
    assert "with differential privacy" in two
    assert "with differential privacy" not in three


def test_distinguishability_has_a_row_for_each_classifier(tables, little):
    found = measure_distinguishability(tables, little)
    text = distinguishability_section(found)
    assert f"trained on {found.rounds['forest']['released'].trained_on:,} records" in text
    assert text.count("<tr>") == 3
    assert "Random forest" in text


@pytest.mark.parametrize(
    ("least", "below", "words"),
    [
        (0, 1, "never in real rows"),
        (10, 50, "10 to 49 times"),
        (1_000, None, "1,000 times or more"),
    ],
)
def test_a_rarity_band_is_named_by_its_counts(least, below, words):
    band = RarityBand(least=least, below=below, reference=0.5, reals=0.25, released=0.125)
    text = subgroups_section(SubgroupFindings(bands=(band,), subgroups=()))
    assert words in text
    assert all(share in text for share in ("50.0", "25.0", "12.5"))


def test_the_method_has_the_size_of_every_table(internal):
    metrics, _ = internal
    text = method_section(metrics.findings, records=metrics.records)
    assert f"{metrics.records:,}" in text
    assert "at most 500 rows" in text
    assert "5 trees" in text
