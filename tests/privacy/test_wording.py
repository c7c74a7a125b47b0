"""Guarantee sentences: their numbers, and what each mode may claim."""

import ast
from pathlib import Path

import pytest

import deniable
from deniable.privacy import wording
from deniable.privacy.composition import Guarantee
from deniable.privacy.wording import (
    caution,
    format_cost,
    is_meaningless,
    meaningless_claim,
    neighbouring_relation,
    no_claim,
    one_shot_claim,
    protected_unit,
    randomized_claim,
    schema_claim,
    seedless_claim,
    split_claim,
)

COST = Guarantee(epsilon=0.99603060232, delta=1.0000001e-9)
EACH = Guarantee(epsilon=0.01, delta=1e-12)


@pytest.mark.parametrize(
    ("draft", "start"), [(False, "The schema was fixed"), (True, "The number")]
)
def test_a_claim_without_the_sentence_about_k_rows_does_not_name_k(draft, start):
    short = wording.without_prefix_claim(one_shot_claim(COST, k=5, private_draft=draft), 5)
    assert f"CSPRNG]. {start}" in short
    assert " k " not in short


def test_printed_costs_are_rounded_up():
    assert format_cost(COST) == "ε = 0.996031, δ = 1.00001e-09"


@pytest.mark.parametrize(
    "claim",
    [
        one_shot_claim(COST, k=5),
        seedless_claim(COST),
        randomized_claim(COST, records=10, each=EACH),
        wording.tested_claim(COST, k=5, gamma=None, one_omega=True),
    ],
)
def test_every_claim_has_its_cost_its_neighbours_and_the_source_of_noise(claim):
    assert format_cost(COST) in claim
    assert "adding or removing one input row" in claim
    assert "operating system's CSPRNG" in claim


def test_k_of_one_claims_no_deniability():
    assert "at least 5 input rows" in one_shot_claim(COST, k=5)
    assert "input rows" not in one_shot_claim(COST, k=1)


def test_one_randomized_record_is_singular():
    assert randomized_claim(COST, records=1, each=EACH).startswith("This record,")
    assert randomized_claim(COST, records=7, each=EACH).startswith("These 7 records,")
    assert f"7 × ({format_cost(EACH)})" in randomized_claim(COST, records=7, each=EACH)


@pytest.mark.parametrize("cost", [None, COST])
@pytest.mark.parametrize(
    ("gamma", "one_omega", "first"),
    [
        (4.0, True, "Each record is (50, 4)-plausibly deniable"),
        (None, True, "Each record is (50, 1)-plausibly deniable"),
        (None, False, "Given the model, at least 50 input rows share the highest posterior"),
    ],
)
def test_tested_records_are_never_claimed_to_be_differentially_private(
    cost, gamma, one_omega, first
):
    claim = wording.tested_claim(cost, k=50, gamma=gamma, one_omega=one_omega)
    assert claim.startswith(first)
    assert "This is not differential privacy" in claim
    assert ("The model alone is" in claim) == (cost is not None)


def test_a_split_names_its_parts_and_probabilities():
    assert "(structure 0.3, parameters 0.7)" in split_claim({"structure": 0.3, "parameters": 0.7})


def test_the_privacy_unit_is_a_row_or_all_rows_of_a_unit():
    assert protected_unit(None) == "one input row"
    assert neighbouring_relation("who") == 'adding or removing all input rows of one "who"'


def test_without_secret_noise_nothing_is_claimed():
    assert no_claim(why="a reason").startswith("No privacy is claimed: a reason.")


def test_a_schema_fixed_in_advance_adds_nothing():
    assert not schema_claim(unit=None, rows=1, k=50, draft=None, drafted=())


def test_a_drafted_schema_is_mentioned_with_its_cost_and_its_unconfirmed_columns():
    assert format_cost(EACH) in schema_claim(unit=None, rows=1, k=50, draft=EACH, drafted=())
    assert "2 of its entries" in schema_claim(
        unit=None, rows=1, k=50, draft=None, drafted=("a", "b")
    )


@pytest.mark.parametrize(("rows", "k", "persons"), [(10, 50, 5), (3, 50, 17), (200, 50, 1)])
def test_the_sentence_says_of_how_few_persons_k_rows_may_be(rows, k, persons):
    text = schema_claim(unit="who", rows=rows, k=k, draft=None, drafted=())
    assert f'The {k} rows may be of as few as {persons} different "who".' in text
    assert "as few as" not in schema_claim(unit="who", rows=1, k=k, draft=None, drafted=())
    assert "as few as" not in schema_claim(unit="who", rows=rows, k=None, draft=None, drafted=())


# Guarantees that promise next to nothing


@pytest.mark.parametrize(
    ("delta", "rows", "meaningless"),
    [
        (9.99e-6, 100_000, False),
        (1e-5, 100_000, True),
        (1e-3, 100, True),
        (0.1, 5, True),
        (1e-4, 100, False),
        (1e-5, 10_000_000, True),
        (1e-4, None, False),
        (1.1e-4, None, True),
    ],
)
def test_from_one_in_the_number_of_rows_on_a_delta_means_nothing(delta, rows, meaningless):
    assert is_meaningless(delta, rows=rows) == meaningless
    assert bool(meaningless_claim(delta, rows=rows)) == meaningless


def test_the_sentence_names_a_release_that_has_this_delta():
    """Publishing each unit with probability δ is (0, δ)-DP: Pr[seen] = δ with it, 0 without."""
    words = meaningless_claim(1e-3, rows=12_500)
    assert words.startswith("No meaningful guarantee: publishing every input row unchanged")
    assert "δ = 0.001, on average 12.5 of 12,500 rows" in words
    assert "on average 0.003 of 3 rows" in meaningless_claim(1e-3, rows=3)
    assert 'all input rows of every "person"' in meaningless_claim(1e-3, rows=None, unit="person")
    assert "guarantee of the model:" in meaningless_claim(1e-3, rows=None, of_model=True)


@pytest.mark.parametrize(("epsilon", "said"), [(10.0, ""), (10.1, "ε = 10.1 is above 10")])
def test_an_epsilon_above_ten_is_warned_of(epsilon, said):
    cost = Guarantee(epsilon=epsilon, delta=1e-9)
    assert caution(cost, rows=100, unit=None, of_model=False).startswith(said)
    assert bool(caution(cost, rows=100, unit=None, of_model=False)) == bool(said)


def test_no_message_offers_an_epsilon_above_ten():
    """A larger ε is a way out up to 10 only; no noise at all is none."""
    package = Path(deniable.__file__).parent
    messages = [
        node.value
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    pages = [path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.html"))]
    offers = [
        text for text in [*messages, *pages] if "larger ε" in text and "larger ε0" not in text
    ]
    assert len(offers) > 5
    assert [text for text in offers if "larger ε (up to 10)" not in text] == []
    assert not [text for text in messages if "or ε = inf" in text]
