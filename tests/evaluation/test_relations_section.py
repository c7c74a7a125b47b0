"""The section on relations: words first, then a plot, names and figures."""

from dataclasses import replace

import pytest

from deniable.evaluation.relations import Association
from deniable.evaluation.relations_section import relations_section


@pytest.fixture
def relations(internal):
    return internal[0].findings.relations


def with_strengths(relations, **strengths):
    return replace(
        relations,
        associations=tuple(
            Association(names=(name, "x"), real=real, released=released, limit=real + 0.1)
            for name, (real, released) in strengths.items()
        ),
    )


def test_words_come_before_the_plot_and_the_figures(relations):
    text = relations_section(relations, records=800)
    order = ["Associations (", "Sample equivalent", "<svg", "pair of columns", "Other real rows"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "With 800 records, a perfect model" in text


def test_the_five_strongest_relations_are_named_lost_and_kept(relations):
    lost = {f"lost{at}": (0.9 - 0.1 * at, 0.1) for at in range(6)}
    kept = {f"kept{at}": (0.9 - 0.1 * at, 0.9 - 0.1 * at) for at in range(6)}
    text = relations_section(with_strengths(relations, **lost, **kept), records=800)
    tables = text.partition("</svg>")[2]
    for name in ("lost", "kept"):
        assert [f"{name}{at} × x" in tables for at in range(6)] == [True] * 5 + [False]
    assert tables.index("lost0") < tables.index("lost1") < tables.index("kept0")


def test_without_lost_or_kept_relations_the_section_says_so(relations):
    text = relations_section(with_strengths(relations, a=(0.5, 0.3)), records=800)
    assert "No strong relation lost more than half of its strength." in text
    assert "No strong relation kept at least 80 % of its strength." in text


def test_of_many_pairs_the_section_states_that_some_were_chosen(relations):
    many = {f"n{at}": (0.2, 0.2) for at in range(400)}
    assert "Compared: a random choice of 400 pairs" in relations_section(
        with_strengths(relations, **many), records=800
    )
    assert "Compared:" not in relations_section(relations, records=800)
