"""Relationships in a draft: the text parses, is unconfirmed, and records obey it."""

import re
from dataclasses import replace
from itertools import groupby

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.drafting import exclusions
from deniable.drafting.column_formulas import ColumnFormula
from deniable.drafting.dependencies import Dependency
from deniable.drafting.draft import draft_schema
from deniable.drafting.empty_regions import AxisCondition, Exclusion
from deniable.drafting.relationships import ColumnOrder, Relationships, find_relationships
from deniable.errors import InvariantError
from deniable.schema.schema import Schema

RNG = np.random.default_rng(4)
ROWS = 5000
EVIDENCE = re.compile(r"Expected by chance ([\d,]+), found 0\.")


@pytest.fixture(scope="module")
def census() -> pl.DataFrame:
    ages = RNG.integers(0, 90, ROWS)
    trade = RNG.integers(0, 30, ROWS)
    visits = RNG.integers(0, 40, ROWS)
    return pl.DataFrame(
        {
            "age": ages,
            "group": np.where(ages < 18, "child", np.where(ages < 65, "adult", "old")),
            "trade": [f"t{x:02d}" for x in trade],
            "branch": [f"b{x % 5}" for x in trade],
            "pay": [None if a < 15 else int(RNG.integers(1, 60)) for a in ages],
            "visits": visits,
            "calls": visits + RNG.integers(0, 40, ROWS),
        }
    )


@pytest.fixture(scope="module")
def schema(census) -> Schema:
    return Schema.parse(draft_schema(census).text)


def test_what_follows_is_computed_and_everything_is_unconfirmed(schema):
    kinds = {column.name: column.kind for column in schema.columns}
    assert (kinds["group"], kinds["branch"]) == ("computed", "computed")
    assert len(schema.constraints) == 3
    assert not any(each.confirmed for each in (*schema.columns, *schema.constraints))
    assert len(schema.drafted) == 1 + len(schema.columns) + len(schema.constraints)
    assert Schema.parse(schema.text()) == schema


def test_values_are_listed_by_the_group_they_belong_to(schema):
    """The model merges neighbours of a list."""
    [trade] = [column for column in schema.columns if column.name == "trade"]
    branches = [int(value[1:]) % 5 for value in trade.values]
    assert branches == sorted(branches)


def test_records_obey_what_was_drafted_even_if_noise_hides_it(census, schema):
    release = deniable.synthesize(
        census, schema, records=1000, epsilon=0.02, key=3, accept_drafted_schema=True
    )
    records = release.frame()
    branches = [f"b{int(value[1:]) % 5}" for value in records["trade"]]
    assert records["branch"].to_list() == branches
    ages = records["age"].to_numpy()
    expected = np.where(ages < 18, "child", np.where(ages < 65, "adult", "old"))
    assert records["group"].to_list() == expected.tolist()
    assert ((ages < 15) == records["pay"].is_null().to_numpy()).all()
    assert (records["visits"] <= records["calls"]).all()


def test_constraints_are_ranked_by_surprise_and_stand_together_by_columns(census):
    """Chance would have broken the first of a group in more rows than that of a later one."""
    stage = [f"s{x // 15}" for x in census["age"].to_numpy() + RNG.integers(0, 12, ROWS)]
    sharp = census.with_columns(stage=pl.Series(stage))
    draft = draft_schema(sharp)
    rules = Schema.parse(draft.text).constraints
    evidence = [int(n.replace(",", "")) for n in EVIDENCE.findall(" ".join(draft.text.split("# ")))]
    assert len(evidence) == len(rules) == draft.rules > 6
    groups = [
        [number for _, number in group]
        for _, group in groupby(
            zip(rules, evidence, strict=True), key=lambda each: frozenset(each[0].columns)
        )
    ]
    assert len(groups) == len({frozenset(rule.columns) for rule in rules}) < len(rules)
    assert groups == sorted(groups, key=lambda group: -group[0])
    assert all(group == sorted(group, reverse=True) for group in groups)
    assert f"1 of {max(map(len, groups))} on" in draft.text
    [note] = [note for note in draft.notes if "at the end of the file" in note]
    assert f"on {len(groups)} sets of columns" in note


def test_the_notes_say_how_many_constraints_were_left_out(census, monkeypatch):
    whole = draft_schema(census)
    assert (whole.rules, whole.rules_left_out) == (3, 0)
    assert "left out" not in " ".join(whole.notes)
    monkeypatch.setattr(exclusions, "_MAX_RULES", 1)
    draft = draft_schema(census)
    assert (draft.rules, draft.rules_left_out) == (2, 1)
    assert "1 more combination was found and left out" in " ".join(draft.notes)


def plant(monkeypatch, **wrong):
    """Let the search find more than there is."""

    def find(columns, guesses):
        found = find_relationships(columns, guesses)
        return replace(
            found, **{kind: [*getattr(found, kind), *own] for kind, own in wrong.items()}
        )

    monkeypatch.setattr("deniable.drafting.draft.find_relationships", find)


def pairs(*steps, **options):
    return Dependency(source="visits", target="calls", pairs=steps, **options)


CHILD_OR_OLD = (
    AxisCondition(column="group", values=("child",)),
    AxisCondition(column="trade", values=("t01",)),
)
WRONG = {
    "two steps with one bound": {"dependencies": [pairs((0, 1), (0, 2), by_steps=True)]},
    "steps that no row follows": {"dependencies": [pairs((0, 1), (9, 2), by_steps=True)]},
    "an incomplete map": {"dependencies": [pairs((1, 2), (2, 3))]},
    "a formula that is none": {
        "formulas": [ColumnFormula(column="calls", text="visits +", terms=("visits",))]
    },
    "a formula that no row follows": {
        "formulas": [ColumnFormula(column="calls", text="visits + 1", terms=("visits",))]
    },
    "an order that rows break": {"orders": [ColumnOrder("calls", "visits", is_strict=False)]},
    "a combination of rows": {
        "exclusions": [Exclusion(conditions=CHILD_OR_OLD, masks=(None, None), expected=50.0)]
    },
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_parse_or_a_row_contradicts_is_left_out(census, schema, monkeypatch, what):
    plant(monkeypatch, **WRONG[what])
    census = census.drop("group").with_columns(group=census["group"].shuffle(seed=3))
    draft = Schema.parse(draft_schema(census).text)
    kinds = {column.name: column.kind for column in draft.columns}
    assert kinds == {column.name: column.kind for column in schema.columns} | {
        "group": "categorical"
    }
    assert draft.constraints == schema.constraints


def test_of_two_columns_computed_from_each_other_one_is_learnt(monkeypatch):
    """Each description holds, but not both together."""
    one = RNG.integers(0, 1000, ROWS)
    table = pl.DataFrame({"one": one, "two": one + 7, "x": one % 3})
    monkeypatch.setattr(
        "deniable.drafting.draft.find_relationships",
        lambda *_: Relationships(
            formulas=[
                ColumnFormula(column="one", text="two - 7", terms=("two",)),
                ColumnFormula(column="two", text="one + 7", terms=("one",)),
            ]
        ),
    )
    kinds = {each.name: each.kind for each in Schema.parse(draft_schema(table).text).columns}
    assert sorted((kinds["one"], kinds["two"])) == ["computed", "integer"]


@pytest.mark.parametrize("draft_epsilon", [None, 1.0])
def test_a_draft_that_does_not_parse_is_a_bug_and_quotes_nothing(
    census, monkeypatch, draft_epsilon
):
    def write(attribute):
        return f'[[attribute]]\nname = "{attribute.name}"\ntype = "t01"\n'

    monkeypatch.setattr("deniable.drafting.draft.write_attribute", write)
    with pytest.raises(InvariantError, match="drafted is not valid") as error:
        draft_schema(census, draft_epsilon=draft_epsilon)
    assert "t01" not in str(error.value)
    assert error.value.exit_code == 4
