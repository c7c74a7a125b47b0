"""Words on the attacks on one release: they follow the numbers, and speak of evidence only."""

from deniable.audit.inference_attacks import AttackComparison
from deniable.audit.release_sections import inference_sections, posterior_section
from deniable.audit.seed_posterior import SeedPosterior


def comparison(name, low, high, *, is_column=False):
    return AttackComparison(
        name=name,
        is_column=is_column,
        table=0.3 + (low + high) / 2,
        control=0.3,
        attempts=(1000, 1000),
        interval=(low, high),
    )


def test_attacks_without_evidence_are_said_to_show_none():
    comparisons = [
        comparison("singling out", -0.02, 0.03),
        comparison("linkability", 0.10, 0.20),
        comparison("attribute inference", 0.86, 0.9),
        comparison("linkability", -0.1, 0.1, is_column=True),
    ]
    sections = inference_sections(comparisons)
    singling, linking, inferring = sections
    assert singling.words[0].startswith("No evidence of singling out")
    assert linking.words[0].startswith("There is evidence of linkability")
    assert [row[0] for row in inferring.tables[0].rows] == ["attribute inference", "linkability"]
    assert inferring.results["columns"][0]["name"] == "linkability"
    assert not [part for part in sections if "failed" in " ".join(part.words)]


def test_a_comparison_with_other_rows_gives_no_verdict():
    """(ε, δ) bounds what the presence of one row changes; a holdout may differ for any reason."""
    (part,) = inference_sections([comparison("linkability", 0.9, 1.0)])
    assert part.within is None
    assert part.words[0].startswith("There is evidence of linkability")


def test_seeds_are_spoken_of_as_promised_and_not_promised():
    posterior = SeedPosterior(
        k=20,
        largest=(0.01, 0.02, 0.05),
        sharing=20,
        at_limit=0.1,
        proven=0.1,
        with_row=(5, 5),
        without_row=(0, 5),
    )
    seeds = posterior_section(posterior)
    assert seeds.within
    assert "at least 20 equally likely seeds" in seeds.words[0]
    assert "5 rows that were in the table 5 were seen" in seeds.words[2]
    assert "of 5 that were not, 0." in seeds.words[2]
    broken = SeedPosterior.read({**posterior.document(), "seeds_sharing_largest": 19})
    assert posterior_section(broken).within is False
