"""Drafts of long lists of values: in the order of a number that follows from the value."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from deniable.schema.schema import Schema

ROWS, SCHOOLS = 4_000, 40


def pupils(key=3, *, strength=1.0, schools=SCHOOLS, text=False):
    """Pupils of schools; a school's mean status follows from it and goes with a pupil's status."""
    draws = np.random.default_rng(key)
    school = draws.integers(0, schools, ROWS)
    mean = draws.normal(0, 1, schools).round(3)[school]
    codes = 1_000 + 17 * school
    return pl.DataFrame(
        {
            "school": [f"S{code}" for code in codes] if text else codes,
            "mean": mean,
            "status": (strength * mean + draws.normal(0, 1, ROWS)).round(2),
            "sex": draws.choice(["m", "f"], ROWS),
        }
    )


def school_of(table):
    schema = Schema.parse(draft_schema(table).text)
    return next(each for each in schema.columns if each.name == "school")


@pytest.mark.parametrize("text", [False, True])
def test_values_are_listed_by_the_number_that_follows_from_them(text):
    table = pupils(text=text)
    school = school_of(table)
    assert school.kind == "ordered"
    mean = dict(table.select("school", "mean").rows())
    listed = [mean[value] for value in school.values]
    assert listed == sorted(listed)
    assert set(school.values) == set(mean)
    notes = [note for note in draft_schema(table).notes if "in the order of" in note]
    assert len(notes) == 1
    assert '"mean"' in notes[0]


def test_a_number_may_be_missing_for_some_values():
    table = pupils()
    gaps = pl.when(pl.col("school") % 5 > 0).then(pl.col("mean"))
    school = school_of(table.with_columns(mean=gaps))
    assert school.kind == "ordered"
    mean = dict(table.select("school", "mean").rows())
    known = [value for value in school.values if value % 5 > 0]
    assert list(school.values[: len(known)]) == sorted(known, key=mean.get)


def test_a_number_that_goes_with_nothing_is_no_order():
    school = school_of(pupils(strength=0.0))
    assert list(school.values) == sorted(school.values)
    assert school_of(pupils(strength=0.0, text=True)).kind == "categorical"


def test_a_short_list_stays_as_it_is():
    assert school_of(pupils(schools=14, text=True)).kind == "categorical"


def test_an_order_that_goes_with_others_stays():
    """Codes that are numbers of something, such as years, are not listed by something else."""
    table = pupils()
    with_order = table.with_columns(age=pl.col("school") // 17 + pl.int_range(pl.len()) % 3)
    school = school_of(with_order)
    assert list(school.values) == sorted(school.values)


def test_amounts_are_never_listed_by_something_else():
    table = pupils().with_columns(pl.col("school") / 10)
    school = school_of(table)
    assert school.kind != "ordered" or list(school.values) == sorted(school.values)


def test_constraints_of_such_a_draft_list_values():
    """A bound would mean the order of the list, which is no order of the codes."""
    table = pupils()
    rare = pl.when(pl.col("school") < 1_200).then(pl.lit("f")).otherwise(pl.col("sex"))
    document = draft_schema(table.with_columns(sex=rare)).text
    schema = Schema.parse(document)
    assert schema.constraints
    about = document[document.index("[[constraint]]") :]
    assert "school = [" in about
    assert "school = {" not in about
